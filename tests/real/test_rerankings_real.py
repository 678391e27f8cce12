"""The re-rankings of TREC DL: figures of docs/rerankings.md against the files and plain counting."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

import weir
from weir.cli import main
from weir.core.frames import json_value
from weir.measures import nDCG

pytestmark = pytest.mark.real
STORED = Path(__file__).resolve().parents[2] / "docs" / "rerankings.jsonl"
RECORDS = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def tracks(shared: Path) -> Path:
    if not (shared / "data" / "trec-dl" / "runs" / "dl19").is_dir():
        pytest.skip("../shared/data/trec-dl is not there: TREC's runs are not part of the project")
    return shared / "data" / "trec-dl"


def ranked(path):
    """{query: documents} of a file, by its own column of ranks."""
    found = {}
    with gzip.open(path, "rt") as lines:
        for line in lines:
            query, _, document, rank, _, _ = line.split()
            found.setdefault(query, {})[int(rank)] = document
    return {query: [by_rank[rank] for rank in sorted(by_rank)] for query, by_rank in found.items()}


def paths(tracks, one):
    folder = tracks / "runs" / one["track"]
    return folder / f"{one['first']}.trec.gz", folder / f"rerank.{one['first']}.{one['system']}.trec.gz"


@pytest.mark.parametrize("one", RECORDS, ids=lambda r: f"{r['track']}-{r['first']}-{r['system']}")
def test_orders_are_those_of_the_files(tracks, one):
    before, after = map(ranked, paths(tracks, one))
    means = {mean["name"]: mean["mean"] for mean in one["means"]}
    if not one["tied"]:  # else the ranks of the file are not the order of its scores
        assert means["kept first"] * len(before) == pytest.approx(
            sum(before[q][:10] == after[q][:10] for q in before)
        )
        assert means["kept"] * len(before) == pytest.approx(sum(before[q] == after[q] for q in before))
        places = Counter(tuple(before[q].index(d) + 1 for d in after[q][:10]) for q in before)
        places.pop(tuple(range(1, 11)), None)
        assert one["repeated"] == max(places.values(), default=0)
    assert one["lost"] == sum(len(set(before[q]) - set(after[q])) for q in before) == one["new"]
    assert one["candidates"] == sum(map(len, before.values()))


def alike(one, other):
    """Whether two values of JSON are equal but for the last digit of a sum, which libraries add in another order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or (isinstance(one, float) and one == pytest.approx(other, abs=1e-12))


@pytest.mark.parametrize("number", [3, 5, 13, 22])
def test_the_stored_figures_are_what_the_command_says(tracks, number):
    one = RECORDS[number]
    qrels = tracks / "qrels" / f"qrels.{one['track']}-passage.txt"
    first, again = paths(tracks, one)
    [found] = weir.reranking(first, again, qrels=qrels, rules=weir.ReorderRules(rel=2))
    said = json.loads(json.dumps(json_value(found)))
    for name in ("gain", "bias", "means", "blocks", "pattern", "repeated", "beyond", "tied"):
        assert alike(said[name], one[name]), name
    gain = (
        weir.evaluate(qrels, again, nDCG @ 10)[nDCG @ 10].mean
        - weir.evaluate(qrels, first, nDCG @ 10)[nDCG @ 10].mean
    )
    assert said["gain"]["change"] == pytest.approx(gain, abs=1e-12)


def test_the_two_failures_are_named(tracks, capsys):
    folder = tracks / "runs" / "dl19"
    names = [str(folder / f"rerank.BM25.vicuna-{size}-v1.5.trec.gz") for size in ("7b", "13b")]
    assert main(["study", "reranking", str(folder / "BM25.trec.gz"), *names]) == 0
    said = capsys.readouterr().out
    assert "vicuna-7b-v1.5 leaves the first 10 of 42 of 43 queries as they were" in said
    assert (
        "vicuna-13b-v1.5 gives 40 of 43 queries one order: their first 10 come from places 19, 1, 2, 3,"
        in said
    )
