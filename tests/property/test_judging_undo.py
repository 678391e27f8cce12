"""Undo on any page that takes grades: the page it leads to begins with what was taken back, and nothing else changes."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the `app` extra")

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.judging_place import SYSTEMS, visitors

from weir.plugins.app.judging.room import Answer

PAGES = ("", "query", "decide", "compare")
STEPS = st.one_of(
    st.tuples(st.sampled_from(["next", "decide", "compare"]), st.integers(0, 1), st.integers(0, 2)),
    st.tuples(st.just("list"), st.integers(0, 2), st.integers(0, 5), st.integers(0, 1)),
    st.tuples(st.just("note"), st.integers(0, 2), st.integers(0, 5)),
    st.tuples(st.just("undo"), st.sampled_from(PAGES)),
    st.tuples(st.just("undo"), st.sampled_from(PAGES)),
)


@settings(max_examples=15)
@given(st.lists(STEPS, min_size=4, max_size=24))
def test_the_page_after_an_undo_begins_with_what_was_taken_back(steps):
    with tempfile.TemporaryDirectory() as folder:
        rooms, owner, ann, *_ = visitors(Path(folder))
        [room] = rooms
        owner.post("plan", each=3)
        owner.post("compare", task="rankings", first=SYSTEMS[0], second=SYSTEMS[1], k=3)
        owner.post("compare", task="documents", each=1)
        for pair in room.tasks.pairs[:8]:  # of which ann may decide those that she does not grade
            for judge, grade in (("ben", 0.0), ("cyd", 3.0)):
                room.answer(judge, pair, Answer("graded", grade))
        queries = list(room.tasks.of_query)
        for step, *values in steps:
            if step == "undo":
                _undone(room, ann, values[0], queries[0])
                continue
            if step in ("list", "note"):
                pairs = ann.read("q", queries[values[0]])["pairs"]
                one = pairs[values[1] % len(pairs)] if pairs else None
                kind = {"kind": "noted", "note": f"{values}"} if step == "note" else {"grade": values[2]}
                if one is not None:
                    ann.post("answer", number=one["number"], back="query", **kind)
                continue
            page = ann.read(*([] if step == "next" else [step]))
            later = {"kind": "later"} if not values[1] else {"grade": values[0]}
            if step == "compare" and page["number"] >= 0:
                ann.post("prefer", number=page["number"], **later)
            elif step != "compare" and page["pair"] is not None:
                back = "decide" if step == "decide" else ""
                ann.post("answer", number=page["pair"]["number"], back=back, **later)
        rooms.close()


def _undone(room, ann, back, query):
    with room.journal.reading() as standing:
        mine = standing.undoable.get("ann", [])
        expected = mine[-1] if mine else None
        others = [event for event in standing.current() if event.judge != "ann"]
    answer = ann.post("undo", back=back, query=query)
    if expected is None:
        return
    with room.journal.reading() as standing:
        assert [event for event in standing.current() if event.judge != "ann"] == others
        assert expected not in standing.undoable["ann"]
    place = answer.headers["location"].removeprefix(f"/judge/{room.name}").removeprefix("/")
    if listed := re.fullmatch(r"q/(\w+)\?at=(\d+)", place):
        page = ann.read("q", listed[1])
        assert int(listed[2]) in [one["number"] for one in page["pairs"]]
        shown = room.pair(listed[2]).pair
    elif place == "compare":
        found = room.comparisons()[ann.read("compare")["number"]]
        assert found.item("ann") == expected.item
        return
    else:
        page = ann.read(*filter(None, [place]))
        shown = page["pair"]["query"], page["pair"]["document"]
        assert (place == "decide") == (expected.task == "decide")
    assert shown == (expected.query, expected.document)
