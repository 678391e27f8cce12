"""Answers with documents that the collection does not have: refused, or left out and counted, whatever gives them."""

from __future__ import annotations

import shlex
import sys

import pytest

import weir
from weir.errors import BadRanking, BadValue
from weir.systems import parse_system

CORPUS = {"d1": "weir", "d2": "dam"}
SAID = "4 of 6 answers are documents that the collection does not have, the first 'x7' to query 'q0'"


def program(tmp_path) -> str:
    """A program that answers every query with two documents of another collection."""
    script = tmp_path / "search.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    answer = {'id': json.loads(line)['id'], 'results': ['x7', 'd2', 'x8']}\n"
        "    print(json.dumps(answer), flush=True)\n",
        encoding="utf-8",
    )
    return f"command({weir.registry.printed(shlex.join([sys.executable, str(script)]))}"


def stored(tmp_path) -> str:
    """The same rankings in a file."""
    lines = [f"q{n} Q0 {d} {r} {9 - r} t\n" for n in range(2) for r, d in enumerate(("x7", "d2", "x8"), 1)]
    (tmp_path / "r.trec").write_text("".join(lines), encoding="utf-8")
    return f"run({weir.registry.printed(str(tmp_path / 'r.trec'))}"


@pytest.fixture(params=[program, stored])
def begun(request, tmp_path) -> str:
    return request.param(tmp_path)


def search(name: str):
    queries = weir.Queries.of({"q0": "weir", "q1": "dam"})
    return parse_system(name).index(weir.Corpus.of(CORPUS)).search(queries, 10)


def test_unknown_documents_are_refused_with_the_way_to_leave_them_out(begun):
    with pytest.raises(
        BadRanking, match=rf'{SAID}; is it of this collection\? unknown="drop" leaves them out'
    ):
        search(f"{begun})")


def test_unknown_documents_are_left_out_and_counted(begun):
    with pytest.warns(weir.errors.RankingWarning, match=f"{SAID}; they are left out"):
        assert [list(docs) for docs in search(f'{begun}, unknown="drop")').to_dict().values()] == [["d2"]] * 2


def test_another_word_is_refused(begun):
    with pytest.raises(BadValue, match="unknown is 'keep'; expected 'refuse' or 'drop'"):
        parse_system(f'{begun}, unknown="keep")')


def test_a_function_is_refused_too():
    mine = weir.system(lambda queries, k: {query: ["d1", "x7"] for query in queries}, name="mine")
    searcher, queries = mine.index(weir.Corpus.of(CORPUS)), weir.Queries.of({"q0": "weir"})
    with pytest.raises(BadRanking, match="1 of 2 answers are documents that the collection does not have"):
        searcher.search(queries, 10)


def test_dropping_is_part_of_the_key_and_refusing_is_not(begun):
    plain, dropped = (parse_system(f"{begun}{end}").describe() for end in (")", ', unknown="drop")'))
    assert plain != dropped
    assert begun.startswith("run(") or "unknown" not in plain
