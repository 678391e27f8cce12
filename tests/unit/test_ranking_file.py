"""Single rankings of run files are those of the whole file."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.run import Run
from weir.errors import FormatError
from weir.files.ranking_file import RankingFile, _line_from
from weir.files.runs import read_run
from weir.files.write import write_run

IDS = st.text(
    st.characters(categories=["L", "N", "P"], exclude_characters="#\ufeff"), min_size=1, max_size=12
)
SCORES = st.floats(-1e6, 1e6, allow_nan=False)


def places(queries):
    return {query: place for place, query in enumerate(dict.fromkeys(queries))}


@given(
    st.dictionaries(IDS, st.dictionaries(IDS, SCORES, max_size=40), max_size=12),
    st.integers(1, 5),
    st.data(),
)
def test_each_ranking_is_that_of_the_whole_file_whatever_order_is_expected(
    tmp_path_factory, rankings, k, data
):
    path = tmp_path_factory.mktemp("run") / "run.trec"
    write_run(Run.of(rankings), path)
    asked = [*rankings, *data.draw(st.lists(IDS, max_size=3))]
    orders = st.one_of(st.just(asked), st.permutations(asked), st.lists(st.sampled_from(asked or ["q"])))
    expected = places(data.draw(orders))
    opened, whole = RankingFile(path, expected), read_run(path)
    answered = {query: list(whole[query].items()) for query in whole}
    assert {query: list(opened.ranking(query)) for query in answered} == answered
    assert {query: list(opened.ranking(query, k)) for query in answered} == {
        q: a[:k] for q, a in answered.items()
    }
    assert opened.places[0].tolist() == list(answered)
    assert opened.top(k).to_dict() == {query: dict(a[:k]) for query, a in answered.items()}
    assert opened.ranking("another query") == ()


@pytest.mark.parametrize(
    "text", ["q\n", "q Q0\n", "q Q0 d 1 x tag\n", "q Q0 a 1 2 t\nr Q0 a 1 2 t\nq Q0 b 2 1 t\n"]
)
def test_a_file_of_another_form_is_refused_by_name(tmp_path, text):
    path = tmp_path / "run.trec"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"run\.trec"):
        RankingFile(path).ranking("q")
    with pytest.raises(FormatError, match="No such file"):
        RankingFile(tmp_path / "absent").ranking("q")


def test_a_file_that_changes_meanwhile_is_told(tmp_path):
    path = tmp_path / "run.trec"
    write_run(Run.of({"q": {"d": 1.0}, "r": {"d": 1.0}}), path)
    opened = RankingFile(path, {}, path.stat().st_size)
    assert opened.ranking("r") == (("d", 1.0),)
    path.write_text("x\n")
    with pytest.raises(FormatError, match="has changed"):
        opened.ranking("r")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FormatError, match="has changed"):
        opened.ranking("r")


def test_a_ranking_where_it_is_expected_is_found_without_looking_at_all_of_the_file(tmp_path, monkeypatch):
    path, names = tmp_path / "run.trec", [f"q{n}" for n in range(2000)]
    write_run(Run.of({name: {f"{name}-d{n}": -float(n) for n in range(50)} for name in names}), path)
    read = []
    monkeypatch.setattr(
        "weir.files.ranking_file._line_from", lambda *given: read.append(1) or _line_from(*given)
    )
    opened = RankingFile(path, places(names))
    assert all(opened.ranking(name, 1) == ((f"{name}-d0", 0.0),) for name in names[::97])
    assert "places" not in vars(opened)
    assert len(read) <= 30 * len(names[::97])
