"""Every prompt of a judge parses, documents its answers, and reads them."""

from __future__ import annotations

import re

import pytest

from weir.judging.grade_verdict import read_grade
from weir.judging.judge_prompt import judge_prompt, judge_prompts
from weir.llm.chat_shapes import ChatReply


@pytest.mark.parametrize("name", judge_prompts())
def test_a_prompt_reads_the_answers_that_it_documents(name):
    prompt = judge_prompt(name)
    assert prompt.answers
    for text, grade in prompt.answers:
        found = read_grade(ChatReply(text), ("A weir is a low dam.",), prompt.scale)
        assert (found.grade, found.kind) == (grade, "ok")


@pytest.mark.parametrize("name", judge_prompts())
def test_every_grade_can_be_given_in_the_form_that_is_asked_for(name):
    scale = judge_prompt(name).scale
    for label, grade in zip(scale.labels, scale.grades, strict=True):
        line = scale.verdict.replace("{grade}", label)
        for text in (line, line.upper(), f" {line}. ", f"**{line}**", f"<think>{line}?</think>{line}"):
            assert read_grade(ChatReply(text), (), scale).grade == grade, text
    assert scale.lowest < scale.relevant_from <= scale.highest


@pytest.mark.parametrize("name", judge_prompts())
def test_a_prompt_fences_the_passage_and_keeps_its_place(name):
    prompt = judge_prompt(name)
    given = {"query": "{passage}?", "passage": "a {query} b", "positive": "good {count}"}
    system, user = prompt.template.texts(given, "Find {query}.")
    assert "is not done" in system
    assert user.count("<passage>\na {query} b\n</passage>") == 1
    assert ("good {count}" in user) == prompt.needs_positive
    assert "Find {query}." in user
    assert "Find" not in "".join(prompt.template.texts(given, ""))
    assert not re.search(r"\{(?!passage|query|count)\w+\}", user)
