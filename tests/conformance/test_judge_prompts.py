"""Every prompt of a judge parses, documents its answers, and reads them."""

from __future__ import annotations

import re

import pytest

from weir.plugins.llm.panel import judge_prompt, judge_prompts, read_grade, verdict_form
from weir.plugins.llm.verdicts import ChatReply


@pytest.mark.parametrize("name", judge_prompts())
def test_a_prompt_reads_the_answers_that_it_documents(name):
    prompt = judge_prompt(name)
    assert prompt.answers
    for text, grade in prompt.answers:
        reply = ChatReply(text.replace("{token}", "kofabimo"))
        found = read_grade(reply, verdict_form(prompt, "kofabimo"), prompt.scale)
        assert found == (grade, "ok")


@pytest.mark.parametrize("name", judge_prompts())
def test_every_grade_can_be_given_in_the_form_that_is_asked_for(name):
    prompt, scale = judge_prompt(name), judge_prompt(name).scale
    assert prompt.template.signed
    for label, grade in zip(scale.labels, scale.grades, strict=True):
        line = f"kofabimo: {label}"
        for text in (line, line.upper(), f" {line}. ", f"**{line}**", f"<think>{line}?</think>{line}"):
            found = read_grade(ChatReply(text), verdict_form(prompt, "kofabimo"), scale)
            assert found == (grade, "ok"), text
    assert scale.lowest < scale.relevant_from <= scale.highest


@pytest.mark.parametrize("name", judge_prompts())
def test_a_prompt_fences_the_passage_and_keeps_its_place(name):
    prompt = judge_prompt(name)
    given = {"query": "{passage}?", "passage": "a {query} b", "positive": "good {count}"}
    filled = prompt.template.filled_prompt(given, "Find {query}.")
    user = filled.user
    assert "is not done" in filled.system
    assert f"\n{filled.token}: " in user
    assert user.count("<passage>\na {query} b\n</passage>") == 1
    assert ("good {count}" in user) == prompt.needs_positive
    assert "Find {query}." in user
    assert "Find" not in prompt.template.filled_prompt(given, "").user
    assert not re.search(r"\{(?!passage|query|count)\w+\}", user)
