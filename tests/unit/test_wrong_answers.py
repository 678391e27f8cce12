"""Near misses of relevant passages: each rule changes what it says, and a judge's acceptance is counted by kind."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.unit.judge_place import DOCUMENTS, PASSAGES, grade_of, lines, unjudged
from weir.cli import main
from weir.plugins.llm.wrong_answers import RULES, WrongAnswers, another_number, names_in

QUERY = "how high is the weir in Bern"


@pytest.mark.parametrize(
    ("kind", "passage", "changed"),
    [
        ("negated", "It rains. The weir is high.", "It rains. The weir is not high."),
        ("negated", "The weir was not built.", "The weir was built."),
        ("negated", "It rains. Nothing else happens here.", None),
        ("negated", "The weir stands.", None),
        ("number", "The weir is 1.95 m high, 10% of 940 in 1987.", "The weir is 2.95 m high, 20% of 140 in 1987."),
        ("number", "Built in 1987 of PPAR2 and covid-19x.", None),
        ("number", "Add 0.05 of 1,204.", "Add 0.06 of 2,204."),
        ("date", "Built in 1987, opened May 3, may it stand.", "Built in 1974, opened October 3, may it stand."),
        ("date", "It has 300 steps and 1987.5 litres.", None),
        ("name", "The high weir by Anna Frey stands. Then Anna Frey left.",
         "The high weir by Berta Moor stands. Then Berta Moor left."),
        ("name", "The weir stands.", None),
    ],
)  # fmt: skip
def test_a_rule_changes_what_it_says_and_no_more(kind, passage, changed):
    assert RULES[kind](passage, QUERY, ["Berta Moor", "Bern"]) == changed


TEXT = st.lists(
    st.sampled_from(
        [
            "It",
            "The",
            "weir",
            "is",
            "was",
            "can",
            "5",
            "1,204",
            "0.5",
            "1987",
            "May",
            "3",
            "Anna",
            "Frey",
            "Bern",
            "rains.",
            "high.",
            "not",
            "and",
        ]
    ),
    min_size=1,
    max_size=30,
).map(" ".join)


@given(TEXT, TEXT, st.sampled_from(list(RULES)))
def test_a_near_miss_differs_and_is_the_same_each_time(passage, other, kind):
    names = sorted({*names_in(passage), *names_in(other)})
    changed = RULES[kind](passage, QUERY, names)
    assert changed != passage
    assert changed == RULES[kind](passage, QUERY, names)
    if changed is not None and kind in ("number", "date"):
        assert re.sub(r"[\d.,]+|May|October", "#", changed) == re.sub(r"[\d.,]+|May|October", "#", passage)


def lenient(_, user):
    """A judge that accepts every passage of the collection, and of others those with an even hash."""
    passage = PASSAGES.findall(user)[-1]
    return f"##final score: {3 if passage in DOCUMENTS.values() or grade_of(passage) % 2 == 0 else 0}"


def test_a_planted_leniency_is_counted_by_kind(judge_server, judge_pool, tmp_path, capsys):
    model, manners = judge_server
    manners.say = lenient
    settings = weir.labels.JudgeSettings(probes=0, wrong=100)
    [report] = weir.judge(judge_pool, model=model, out=tmp_path / "labels", settings=settings)
    changed = [another_number(DOCUMENTS[doc], "", ()) for _, doc in unjudged()]
    accepted = sum(text in DOCUMENTS.values() or grade_of(text) % 2 == 0 for text in changed)
    found = {one.kind: (one.pairs, one.accepted, one.unread) for one in report.wrong}
    assert found == {
        "negated": (0, 0, 0),
        "number": (len(changed), accepted, 0),
        "name": (0, 0, 0),
        "date": (0, 0, 0),
    }
    assert report.probes == ()
    asked = Counter(line["probe"] for line in lines(tmp_path / "labels" / "probes.jsonl"))
    assert asked == {"number": len(changed)}
    command = [
        "judge",
        str(judge_pool),
        "--model",
        str(model),
        "-o",
        str(tmp_path / "ten"),
        "-q",
        "--wrong",
        "10",
    ]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert re.search(r"near miss +pairs +still relevant +95% interval +no grade", shown)
    assert re.search(r"number +10 +\d", shown)


@pytest.mark.parametrize(("accepted", "pairs"), [(0, 20), (7, 20), (20, 20)])
def test_the_interval_is_wilsons(accepted, pairs):
    after = np.array([3.0] * accepted + [0.0] * (pairs - accepted) + [np.nan] * 2)
    one = WrongAnswers.of("number", after, 2)
    z, share = 1.959963984540054, accepted / pairs
    middle, wide = (
        share + z * z / (2 * pairs),
        z * (share * (1 - share) / pairs + z * z / (4 * pairs**2)) ** 0.5,
    )
    ends = [(middle + sign * wide) / (1 + z * z / pairs) for sign in (-1, 1)]
    assert (one.pairs, one.accepted, one.unread, one.share) == (pairs, accepted, 2, share)
    assert [one.low, one.high] == pytest.approx(ends, abs=1e-9)
