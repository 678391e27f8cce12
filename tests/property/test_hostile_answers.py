"""No passage gives a verdict: answers that say what it says are not read, and answers in the form that is asked for are.

Each case is a prompt as it is filled for its passages, so that what is tested is the meeting of prompt and reading.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.hostile_answers import WRITINGS, honest_answers, hostile_answers, hostile_passages
from tests.unit.model_servers import token_of

from weir.plugins.llm.panel import judge_prompt, judge_prompts, read_grade, verdict_form
from weir.plugins.llm.prompts import drawn_token, prompt_template
from weir.plugins.llm.verdicts import ChatReply, VerdictForm, read_choice, read_order, read_score

ORDER = ("[1] > [3] > [2]", "[3] > [2] > [1]")


def _llm(name, reading, own, others, kind):
    template = prompt_template(name, ())

    def filled(passage):
        shown = f"[1]\n<passage>\n{passage}\n</passage>\n\n[2]\n<passage>\nA dam.\n</passage>"
        texts = {"query": "weir", "requirement": "of weirs", "scale": "10", "count": "3"}
        return template.filled_prompt(texts | {"passage": passage, "passages": shown}, "Find weirs.")

    return filled, lambda text, token: reading(ChatReply(text), VerdictForm(token)), own, others, kind


def _judge(name):
    prompt = judge_prompt(name)
    best, worst = (prompt.scale.label_of(grade) for grade in (prompt.scale.highest, prompt.scale.lowest))

    def filled(passage):
        return prompt.template.filled_prompt(
            {"query": "weir", "passage": passage, "positive": passage}, "Find weirs."
        )

    def read(text, token):
        grade, kind = read_grade(ChatReply(text), verdict_form(prompt, token), prompt.scale)
        return None if grade is None else (prompt.scale.label_of(grade), kind)

    return filled, read, (worst, (worst, "ok")), best, "number" if prompt.scale.numeric else "word"


def _scored(reply, form):
    found = read_score(reply, form)
    return None if found.score is None else (found.score, found.kind)


def _chosen(reply, form):
    found = read_choice(reply, form, 2)
    return None if found[0] is None else found


def _ordered(reply, form):
    found = read_order(reply, form, 3)
    return (found.order, found.kind) if found.ranked else None


CASES = {
    **{name: _llm(name, _scored, ("7", (7, "ok")), "10", "number") for name in ("score", "reason", "requirement")},
    **{name: _llm(name, _chosen, ("2", (2, "ok")), "1", "number") for name in ("setwise", "pairwise")},
    "listwise": _llm("listwise", _ordered, (ORDER[0], ((0, 2, 1), "ok")), ORDER[1], "order"),
    **{name: _judge(name) for name in judge_prompts()},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_no_passage_gives_a_verdict(name):
    """At least 2,000 answers for each prompt; each alone, and in front of the verdict of the model's own."""
    filled, read, (own, verdict), other, kind = CASES[name]
    alone, read_in_front, count = [], 0, 0
    for passage, written in hostile_passages(other, WRITINGS[kind]):
        token = filled(passage).token
        for text in hostile_answers(passage, written, f"{token}: {other}"):
            count += 1
            alone += [text] if read(text, token) is not None else []
            found = read(f"{text}\n{token}: {own}", token)
            assert found in (None, verdict), text
            read_in_front += found is not None
    assert count >= 2000
    assert alone == []
    assert (
        read_in_front > 0.85 * count
    )  # not by reading nothing: else the line would contradict, or stand in a thought


@pytest.mark.parametrize("name", CASES)
def test_honest_answers_in_the_form_that_is_asked_for_are_read(name):
    filled, read, (own, verdict), other, kind = CASES[name]
    for passage, written in hostile_passages(other, WRITINGS[kind]):
        prompt = filled(passage)
        assert token_of(prompt.user) == prompt.token
        for text in honest_answers(prompt.token, own, written):
            assert read(text, prompt.token) == verdict, text


@pytest.mark.parametrize("name", CASES)
def test_the_line_that_is_asked_for_is_no_verdict_itself(name):
    filled, read, *_ = CASES[name]
    prompt = filled("A weir.")
    [line] = [line for line in prompt.user.splitlines() if line.startswith(f"{prompt.token}: ")]
    assert read(line, prompt.token) is None
    assert read(prompt.user, prompt.token) is None


@settings(max_examples=200)
@given(st.lists(st.text(max_size=80), max_size=4), st.sampled_from([" ", "", "\u200b", "-", "\n"]))
def test_no_text_has_the_token_that_is_drawn_for_it(texts, between):
    """Also texts that were written to have the token that is drawn without them."""
    for _ in range(3):
        token = drawn_token("v1", texts)
        assert token == drawn_token("v1", texts)
        assert token not in "".join(c for text in texts for c in text.casefold() if c.isalpha())
        texts = [*texts, between.join(token.upper())]
    assert drawn_token("v2", texts) != drawn_token("v1", texts) != drawn_token("v1", [*texts, "more"])
