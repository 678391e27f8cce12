"""Collections of others that name candidates and excluded documents: BIRCO, FollowIR's layout, BRIGHT."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import weir
import weir.systems
from weir.core.run import Run
from weir.errors import RankingWarning
from weir.experiment.experiment import Experiment
from weir.files.runs import read_qrels
from weir.plugins.importing import import_files

pytestmark = pytest.mark.real

NDCG_AT_10 = {"relic": 0.1534, "clinical-trial-dev": 0.4195, "wtb": 0.2163}
"""Of bm25 over the judged documents, as Weir scored them when candidates came in."""


def ran(results: Path, collection: str | weir.Dataset, *systems: str) -> list[tuple[Run, float]]:
    """The rankings of systems, as they stand on disk, and nDCG@10."""
    grid = Experiment((collection,), systems, ("nDCG@10",), k=100)
    means = [row.mean for row in grid.execute(results)]
    folders = [cell.stages.root / cell.stage.folder_name for cell in grid.cells(results)]
    files = [next(p for p in folder.iterdir() if p.name in ("run.trec", "run.json")) for folder in folders]
    return list(zip(map(Run.load, files), means, strict=True))


def pools_of(shared: Path, tmp_path: Path, name: str) -> Path:
    """A set of BIRCO whose judged documents are the candidates."""
    folder = shared / "data" / "birco" / "beir" / name
    if not folder.is_dir():
        pytest.skip("../shared/data/birco is not there: its texts are not part of the project")
    [qrels] = (folder / "qrels").iterdir()
    toml = tmp_path / f"{name}.toml"
    toml.write_text(
        f'documents = "{folder}/corpus.jsonl"\nqueries = "{folder}/queries.jsonl"\nqrels = "{qrels}"\n'
        'candidates = "judged"\n'
    )
    return toml


def test_pools_of_two_thousand_are_reranked_whole(shared: Path, tmp_path: Path) -> None:
    toml = pools_of(shared, tmp_path, "wtb-dev")
    systems = ("bm25", "pool >> score(bm25)", "pool >> score(bm25, depth=100)")
    with pytest.warns(RankingWarning, match="`k=2404` keeps all"):
        (bm25, score), (whole, all_scored), (_, cut) = ran(tmp_path / "results", str(toml), *systems)
    assert [f"{score:.4f}", f"{all_scored:.4f}"] == ["0.1372", "0.1372"]
    assert cut < 0.05
    for query, ranking in bm25.to_dict().items():
        first = list(whole.to_dict()[query])[: len(ranking)]  # equal scores in another order
        assert [ranking[document] for document in first] == list(ranking.values())


@pytest.mark.parametrize("name", ["relic", "wtb", "wtb-dev", "clinical-trial-dev", "doris-mae-dev"])
def test_folders_of_birco_need_no_toml(shared: Path, tmp_path: Path, name: str) -> None:
    said, plain = pools_of(shared, tmp_path, name), shared / "data" / "birco" / "beir" / name
    pools = [weir.load(where).queries.metadata.candidates.tolist() for where in (said, plain)]
    assert pools[0] == pools[1]


@pytest.mark.parametrize("name", ["relic", "wtb", "wtb-dev", "clinical-trial-dev", "doris-mae-dev"])
def test_a_pool_of_birco_scores_as_chance(shared: Path, tmp_path: Path, name: str) -> None:
    dataset = weir.load(pools_of(shared, tmp_path, name))
    measure, rng = "nDCG@10", np.random.default_rng(11)
    grades = dataset.qrels.to_dict()
    drawn = [
        weir.evaluate(
            grades, {q: rng.permutation(list(pool)).tolist() for q, pool in grades.items()}, measure
        ).mean_values()[0]
        for _ in range(30)
    ]
    run = weir.systems.parse_system("pool").index(dataset.corpus).search(dataset.queries, 5000)
    mean = weir.evaluate(dataset.qrels, run, measure).mean_values()[0]
    assert abs(mean - np.mean(drawn)) < 3.3 * np.std(drawn)


@pytest.mark.parametrize("name", NDCG_AT_10)
def test_birco_is_ranked_by_pools(shared: Path, tmp_path: Path, name: str) -> None:
    toml = pools_of(shared, tmp_path, name)

    [qrels] = (shared / "data" / "birco" / "beir" / name / "qrels").iterdir()
    (bm25, score), (pool, _), (scored, _) = ran(
        tmp_path / "results", str(toml), "bm25", "pool", "pool >> score(bm25)"
    )
    assert score == pytest.approx(NDCG_AT_10[name], abs=5e-5)
    judged = {query: set(row) for query, row in read_qrels(qrels).to_dict().items()}
    assert {query: set(row) for query, row in pool.to_dict().items()} == judged
    dataset = weir.load(toml)
    everything = weir.BM25().index(dataset.corpus).search(dataset.queries, len(dataset.corpus))
    for query, ranking in everything.to_dict().items():
        left = [document for document in ranking if document in judged[query]]
        assert list(bm25.to_dict().get(query, {})) == left
        first = list(scored.to_dict()[query])[: len(left)]  # equal scores in another order
        assert [ranking[document] for document in first] == [ranking[document] for document in left]


def test_followir_and_bright_come_in_by_import(shared: Path, tmp_path: Path) -> None:
    interop = shared / "data" / "interop"
    if not interop.is_dir():
        pytest.skip("../shared/data/interop is not there: files of other tools are not part of the project")
    pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")
    layout = interop / "followir" / "hub_layout"
    parts = ("corpus", "queries", "qrels", "instruction", "top_ranked")
    import_files([next((layout / part).glob("*.parquet")) for part in parts], tmp_path / "followir")
    followir = weir.load(tmp_path / "followir")
    said = followir.queries.metadata
    assert said is not None
    assert said.instruction is not None
    assert said.candidates is not None
    assert all("changed" in q or "not relevant, whatever" not in i
               for q, i in zip(followir.queries.ids, said.instruction, strict=True))  # fmt: skip
    (bm25, _), (pool, _) = ran(tmp_path / "results", str(tmp_path / "followir"), "bm25", "pool")
    candidates = dict(zip(followir.queries.ids, said.candidates.tolist(), strict=True))
    assert {query: set(row) for query, row in pool.to_dict().items()} == {
        q: set(d) for q, d in candidates.items()
    }
    assert all(set(row) <= set(candidates[query]) for query, row in bm25.to_dict().items())

    bright = interop / "bright"
    files = [bright / "examples.leetcode.jsonl", bright / "exclude.bright-leetcode.txt"]
    import_files(files, tmp_path / "bright")
    rows = [json.loads(line) for line in (tmp_path / "bright" / "queries.jsonl").read_text().splitlines()]
    gold = [
        doc
        for row in read_qrels(tmp_path / "bright" / "qrels" / "test.tsv").to_dict().values()
        for doc in row
    ]
    left_out = {row["_id"]: row["metadata"]["excluded"] for row in rows}
    every = sorted({*gold, *(doc for docs in left_out.values() for doc in docs)})
    words = " ".join(row["text"] for row in rows)  # texts of documents are not given: all match
    corpus = "".join(json.dumps({"_id": doc, "text": words}) + "\n" for doc in every)
    (tmp_path / "bright" / "corpus.jsonl").write_text(corpus)
    [(run, _)] = ran(tmp_path / "results", str(tmp_path / "bright"), "bm25")
    answers = run.to_dict()
    assert all(set(answers[query]) == set(every) - set(docs) for query, docs in left_out.items())
