"""A saved baseline reads back whatever its names are, and a damaged one is refused in one line."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.origin import Origin
from weir.core.query_metadata import QueryGroups
from weir.core.scores import JudgedScores, Scores, SystemScores
from weir.core.strings import Ids
from weir.errors import FormatError
from weir.files.score_files import is_baseline, read_baseline, write_baseline

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
VALUE = st.floats(allow_infinity=False) | st.sampled_from([0.0, 1.0, 2 / 3])


@st.composite
def baselines(draw: st.DrawFn) -> SystemScores:
    measures = tuple(draw(st.lists(st.sampled_from(["nDCG@10", "AP", "RR"]), min_size=1, unique=True)))
    found = {}
    for name in draw(st.lists(TEXT, min_size=1, max_size=3, unique=True)):
        queries = draw(st.lists(TEXT, min_size=1, max_size=5, unique=True))
        rows = st.lists(VALUE, min_size=len(queries), max_size=len(queries))
        values = np.array([draw(rows) for _ in measures])
        depth, texts = draw(st.none() | st.integers(1, 1000)), draw(st.sampled_from(["", "6b0f 0b1c"]))
        origin = Origin(depth=depth, whole=draw(st.booleans()), texts=texts)
        scores = Scores(measures, Ids.of(queries), values, np.ones(len(queries), np.bool_), origin=origin)
        found[name] = JudgedScores(scores, {q: f"{n:08x}" for n, q in enumerate(queries)})
    return SystemScores(draw(TEXT), found)


@given(baselines())
def test_a_baseline_reads_back(tmp_path_factory, given):
    path = tmp_path_factory.mktemp("baseline") / "b.tsv"
    write_baseline(given, path)
    assert is_baseline(path)
    found = read_baseline(path)
    assert (found.system, found.datasets.keys()) == (given.system, given.datasets.keys())
    for name, one in given.datasets.items():
        again = found.datasets[name]
        assert again.marks == one.marks
        was, known = one.scores.origin, again.scores.origin
        assert (known.depth, known.texts) == (was.depth, was.texts)
        assert known.whole == (was.whole and was.depth is not None)
        back = again.scores.values[:, again.scores.queries.codes(one.scores.queries.tolist())]
        assert np.array_equal(back, one.scores.values, equal_nan=True)


@given(baselines(), st.data())
def test_a_damaged_baseline_is_refused_or_reads_as_scores(tmp_path_factory, given, data):
    path = tmp_path_factory.mktemp("baseline") / "b.tsv"
    write_baseline(given, path)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(
        whole[:at] + data.draw(st.binary(max_size=4)) + whole[at + data.draw(st.integers(0, 9)) :]
    )
    with suppress(FormatError):  # any other error fails
        found = read_baseline(path)
        assert all(len(one.scores.queries) == len(one.marks) for one in found.datasets.values())


@given(
    st.dictionaries(TEXT, st.sampled_from(["a", "b", "", None]), max_size=8),
    st.lists(TEXT, max_size=8, unique=True),
)
def test_groups_part_the_queries(groups, asked):
    found = QueryGroups.of(groups).rows(Ids.of(asked))
    members = [asked[row] for rows in found.values() for row in rows.tolist()]
    assert sorted(members) == sorted(q for q in asked if groups.get(q))
    assert all(groups[asked[row]] == label for label, rows in found.items() for row in rows.tolist())


def test_a_folder_is_no_baseline(tmp_path):
    with pytest.raises(FormatError, match="found a folder"):
        is_baseline(tmp_path)


def test_half_of_a_surrogate_pair_is_named_by_its_line(tmp_path):
    path = tmp_path / "b.tsv"
    queries = Ids.of(["a b", '"c"'])
    scores = Scores(("AP",), queries, np.array([[0.5, 1.0]]), np.ones(2, np.bool_))
    write_baseline(SystemScores("s", {"d": JudgedScores(scores, {"a b": "0", '"c"': "1"})}), path)
    path.write_bytes(path.read_bytes().replace(rb"\"c", rb"\ud800"))
    with pytest.raises(FormatError, match=r"b\.tsv, line \d+: found"):
        read_baseline(path)
