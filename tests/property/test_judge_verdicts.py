"""Answers that nobody would expect: a grade is one of the scale or none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.plugins.llm.panel import combined, judge_prompt, judge_prompts, read_grade, verdict_form
from weir.plugins.llm.verdicts import ChatReply, VerdictKind
from weir.services.answers import SCORED_KINDS

KINDS = VerdictKind.__args__
FRAGMENTS = st.sampled_from(
    ["<think>", "</think>", "##final score: ", "Answer: ", "Relevant", "not relevant", "yes", "no", "2", "3", "-1", "1.5",
     "7/10", "{", '"O": 2', "}", "```json\n", "\n", " ", ". ", "I cannot", "Punktzahl: 2", "评分:1", "٣", "“score 3”",
     "\u202e", "\x00", "O: 3", "1e99", "9" * 400, "2 or 3", "##final score:", "kofabimo: ", "kofabimo"]
)  # fmt: skip
answers = st.lists(FRAGMENTS, max_size=12).map("".join) | st.text(max_size=60)
finishes = st.sampled_from(["stop", "length", "refused"])
names = st.sampled_from(judge_prompts())
EXAMPLES = settings(max_examples=100)


@EXAMPLES
@given(names, answers, finishes, st.sampled_from(["kofabimo", ""]))
def test_a_grade_is_one_of_the_scale_or_none(name, text, finish, token):
    prompt = judge_prompt(name)
    scale, form = prompt.scale, verdict_form(prompt, token)
    found = grade, kind = read_grade(ChatReply(text, finish), form, scale)
    assert kind in KINDS
    assert (grade is None) == (kind not in SCORED_KINDS)
    assert grade is None or grade in scale.grades
    assert finish != "refused" or kind == "refused"
    assert found == read_grade(ChatReply(text, finish), form, scale)
    assert grade is None or not token or token in text


@EXAMPLES
@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan]), min_size=3, max_size=3), max_size=8))
def test_samples_are_combined_as_counting_does(rows):
    given_grades = np.array(rows, float).reshape(len(rows), 3)
    modes, tied = combined(given_grades, "mode")
    means, none = combined(given_grades, "mean")
    ties = 0
    for row, mode, mean in zip(rows, modes, means, strict=True):
        known = [grade for grade in row if not np.isnan(grade)]
        if not known:
            assert np.isnan(mode)
            assert np.isnan(mean)
            continue
        most = max(known.count(grade) for grade in known)
        best = {grade for grade in known if known.count(grade) == most}
        ties += len(best) > 1
        assert mode == min(best)
        assert mean == pytest.approx(sum(known) / len(known), abs=1e-12)
    assert (tied, none) == (ties, 0)
