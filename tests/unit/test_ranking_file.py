"""Single rankings of run files are those of the whole file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.run import Run
from weir.errors import FormatError
from weir.files.ranking_file import RankingFile
from weir.files.runs import read_run
from weir.files.write import write_run

IDS = st.text(
    st.characters(categories=["L", "N", "P"], exclude_characters="#\ufeff"), min_size=1, max_size=12
)
SCORES = st.floats(-1e6, 1e6, allow_nan=False)


@given(
    st.dictionaries(IDS, st.dictionaries(IDS, SCORES, max_size=40), max_size=12),
    st.integers(1, 5),
)
def test_each_ranking_is_that_of_the_whole_file(tmp_path_factory, rankings, k):
    path = tmp_path_factory.mktemp("run") / "run.trec"
    write_run(Run.of(rankings), path)
    opened, whole = RankingFile.open(path), read_run(path)
    answered = {query: list(whole[query].items()) for query in whole}
    assert opened.queries.tolist() == list(answered)
    assert {query: list(opened.ranking(query)) for query in answered} == answered
    assert {query: list(opened.ranking(query, k)) for query in answered} == {
        q: a[:k] for q, a in answered.items()
    }
    assert opened.top(k).to_dict() == {query: dict(a[:k]) for query, a in answered.items()}
    assert opened.ranking("another query") == ()


@pytest.mark.parametrize(
    "text", ["q\n", "q Q0\n", "q Q0 d 1 x tag\n", "q Q0 a 1 2 t\nr Q0 a 1 2 t\nq Q0 b 2 1 t\n"]
)
def test_a_file_of_another_form_is_refused_by_name(tmp_path, text):
    path = tmp_path / "run.trec"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"run\.trec"):
        RankingFile.open(path).ranking("q")
    with pytest.raises(FormatError, match="No such file"):
        RankingFile.open(tmp_path / "absent")
