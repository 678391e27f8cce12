"""The places that documents of equal score share, in runs and in joins with judgments."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.unit.test_values import example
from weir.core.judged import Judged
from weir.core.order import tie_groups, tied
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import HashIndex, Ids, Strings
from weir.files.runs import join_run_file, read_qrels, read_run
from weir.files.write import write_qrels, write_run
from weir.measures import measures_of
from weir.measures.measure import without_unjudged
from weir.measures.ties.tie_groups import hypergeometric


def test_groups_of_equal_score_and_their_places():
    ptr, score = np.array([0, 4, 4, 6, 8]), np.array([3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 0.5])
    begin, end = tie_groups(ptr, score)
    assert (begin.tolist(), end.tolist()) == ([1, 4], [4, 6])
    assert tied(ptr, (begin, end)).tolist() == [3, 0, 2, 0]
    nothing = tie_groups(np.array([0, 0]), np.empty(0))
    assert [len(edge) for edge in nothing] == [0, 0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_a_joined_file_knows_the_same_places_as_the_joined_run(tmp_path, seed, engine):
    run, qrels = example(seed)
    write_run(Run.of(run), tmp_path / "run.trec")
    write_qrels(Qrels.of(qrels), tmp_path / "qrels.trec")
    judgments = read_qrels(tmp_path / "qrels.trec")
    one = join_run_file(tmp_path / "run.trec", judgments, engine=engine)
    other = Judged.of(read_run(tmp_path / "run.trec", engine=engine), judgments)
    for name in ("retrieved", "tied", "query", "rank", "grade", "first", "last", "ideal"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    for q, rank, first, last in zip(one.query, one.rank, one.first, one.last, strict=True):
        ranked = sorted(run[one.queries[int(q)]].values(), reverse=True)
        same = [place for place, score in enumerate(ranked, 1) if score == ranked[rank - 1]]
        assert [first, last] == [same[0], same[-1]]


def test_queries_of_a_join_can_be_taken_again_and_again():
    run, qrels = example()
    judged = Judged.of(Run.of(run), Qrels.of(qrels))
    codes = np.array([3, 0, 3, 7])
    for measure in measures_of(["nDCG@5", "AP", "bpref", "Judged@5", "NumRet", "R@3"]):
        assert measure.per_query(judged.take(codes)).tolist() == measure.per_query(judged)[codes].tolist()
    assert len(judged.take(np.array([], np.int64))) == 0


def test_hypergeometric_chances_are_exact():
    for population, marked in [(0, 0), (1, 1), (5, 2), (9, 9), (40, 11)]:
        found = hypergeometric(population, marked, population + 1)
        for drawn, x in np.ndindex(found.shape):
            ways = math.comb(marked, x) * math.comb(population - marked, drawn - x) if x <= drawn else 0
            exact = Fraction(ways, math.comb(population, drawn))
            assert found[drawn, x] == pytest.approx(float(exact), rel=1e-13, abs=0)


COLUMNS = ("retrieved", "tied", "query", "rank", "grade", "first", "last", "ideal_ptr", "ideal")


@pytest.mark.parametrize("table", ["own", "collection", "indexed", "judgments"])
def test_the_join_is_the_same_whichever_table_numbers_the_documents(table):
    run, qrels = example()
    judgments = Qrels.of(qrels)
    whole = Strings.of(f"d{n}" for n in range(3000))  # most of them are neither ranked nor judged
    docs = {
        "own": Ids.of(f"d{n}" for n in range(40)),
        "collection": Ids(whole),
        "indexed": Ids(whole, lambda: HashIndex.of(whole)),
        "judgments": judgments.docs,
    }[table]
    made = Run.of(run)
    if table == "judgments":  # documents outside the table are known by their place alone
        doc = docs.codes(made.docs.strings)[made.doc]
        numbered = Run(made.queries, docs, made.ptr, doc, made.score)
    else:
        doc = docs.codes(made.docs.strings)[made.doc]
        numbered = Run.from_columns(made.queries, docs, made.query_of_row(), doc, made.score)
    one, other = Judged.of(made, judgments), Judged.of(numbered, judgments)
    for name in COLUMNS:
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    if table == "collection":  # judgments may be numbered by the collection as well
        codes = docs.codes(judgments.docs.strings)[judgments.doc]
        same = Qrels.from_columns(judgments.queries, docs, judgments.query_of_row(), codes, judgments.grade)
        for name in COLUMNS:
            assert getattr(Judged.of(numbered, same), name).tolist() == getattr(one, name).tolist(), name


def test_condensed_lists_have_ties_of_their_own():
    run = {"q": {"a": 3.0, "x": 2.0, "b": 2.0, "c": 2.0, "n": 2.0, "y": 1.0, "d": 1.0}}
    judged = Judged.of(Run.of(run), Qrels.of({"q": {"a": 1, "b": 0, "c": 2, "n": -1, "d": 1}}))
    closed = without_unjudged(judged)
    places = zip(closed.rank.tolist(), closed.first.tolist(), closed.last.tolist(), strict=True)
    assert list(places) == [(1, 1, 1), (2, 2, 3), (3, 2, 3), (4, 4, 4)]  # a, then c and b, then d alone
    assert (closed.retrieved.tolist(), closed.tied.tolist()) == ([4], [2])
