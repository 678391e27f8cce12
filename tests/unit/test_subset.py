"""Mini collections: what they hold, and that the proof says what was measured."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

import weir
from tests.kills import killed_later_each_time
from weir.audit.subsets import chosen, proof, write_subset
from weir.cli import main
from weir.core.filters import records
from weir.datasets.load import load
from weir.errors import BadValue


@pytest.fixture(scope="module")
def brook():
    return load("brook-news")


def test_a_subset_holds_the_judged_documents_of_its_queries_and_nothing_twice(brook):
    docs, queries = chosen(brook, len(brook.corpus) // 2)
    assert len(docs) == len(brook.corpus) // 2 == len(np.unique(docs))
    names = set(brook.corpus.ids.take(docs).tolist())
    for query in brook.queries.ids.take(queries).tolist():
        assert {d for d in brook.qrels.to_dict()[query] if d in set(brook.corpus.ids)} <= names
    others = chosen(brook, len(brook.corpus) // 2, seed=2)
    assert [numbers.tolist() for numbers in others] != [docs.tolist(), queries.tolist()]
    for size, said in ((len(brook.corpus), "is none"), (0, "is none"), (1, "of no query")):
        with pytest.raises(BadValue, match=said):
            chosen(brook, size)


def test_metadata_and_the_origin_of_judgments_stay_in_a_subset(tmp_path):
    place = tmp_path / "mine"
    (place / "qrels").mkdir(parents=True)
    docs = [
        {"_id": f"d{n}", "text": f"river {n}", "metadata": {"year": n, "tags": ["a", f"t{n}"]}}
        for n in range(9)
    ]
    (place / "corpus.jsonl").write_text("\n".join(json.dumps(doc) for doc in docs))
    (place / "queries.jsonl").write_text('{"_id": "q", "text": "river 3"}')
    (place / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\torigin\nq\td3\t1\tada\nq\td4\t0\tbob\n"
    )
    whole = load(str(place))
    part = write_subset(whole, chosen(whole, 5), tmp_path / "part")
    fields = dict(zip(part.corpus.ids.tolist(), records(part.corpus.metadata, len(part.corpus)), strict=True))
    assert len(fields) == 5
    assert all(fields[doc["_id"]] == doc["metadata"] for doc in docs if doc["_id"] in fields)
    assert whole.qrels.origin is not None
    assert [one.origin.names[code] for one in (part.qrels,) for code in one.origin.code] == ["ada", "bob"]


def test_a_collection_proves_to_rank_as_itself_and_three_systems_are_asked_for(brook):
    systems = ["bm25", "bm25(k1=0.1, b=0.0)", "rm3"]
    found = proof(brook, brook, systems)
    means = [weir.benchmark(brook, [name], ["nDCG@10"]).rows[0].mean for name in systems]
    assert found.whole == found.part == pytest.approx(means, abs=1e-15)
    assert (found.tau, found.high) == (1, 1)
    with pytest.raises(BadValue, match="three at least"):
        proof(brook, brook, systems[:2])


def test_the_command_writes_a_collection_that_loads_and_says_whether_it_is_proved(tmp_path, capsys):
    out = tmp_path / "mini"
    arguments = [
        "data",
        "subset",
        "brook-news",
        "--docs",
        "20",
        "-o",
        str(out),
        "-s",
        "bm25",
        "-s",
        "rm3",
        "-s",
        "bm25(b=0.0)",
    ]
    assert main([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    part = load(out)
    assert (
        (len(part.corpus), len(part.queries)) == (20, said["queries"]) == (said["documents"], len(part.qrels))
    )
    assert said["valid"] == (said["low"] >= 0.8)
    assert main(arguments) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--docs", "0"], ["-s", "bm25", "-s", "rm3"], ["-m", "nDCG@x"], ["--seed", "-1"]]
)
def test_a_call_that_is_refused_writes_nothing(tmp_path, capsys, wrong):
    out = tmp_path / "none"
    assert main(["data", "subset", "brook-news", "--docs", "20", "-o", str(out), *wrong]) == 2
    assert capsys.readouterr().err.startswith("weir: ")
    assert list(tmp_path.iterdir()) == []


def test_killed_at_any_moment_it_leaves_no_part_of_a_collection(tmp_path):
    out = tmp_path / "mini"
    command = [sys.executable, "-m", "weir", "data", "subset", "brook-news", "--docs", "40", "-o", str(out)]
    whole = 0
    for _ in killed_later_each_time(command, tmp_path):
        if out.exists():
            assert (len(load(out).corpus), len(load(out).qrels)) == (40, len(load(out).queries))
            shutil.rmtree(out)
            whole += 1
    assert whole
