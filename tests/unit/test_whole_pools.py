"""Candidates are re-ranked whole, unless a depth is named; what is left unscored is said."""

from __future__ import annotations

import json
import pickle
import shutil
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import write_collection
from weir.api.collection_notes import restriction_notes
from weir.audit import Subject, audited
from weir.cli.main import main
from weir.core.run import Run
from weir.datasets import catalogue
from weir.datasets.load import load_here
from weir.errors import DownloadError, RankingWarning
from weir.experiment.experiment import Experiment
from weir.experiment.plan import planned
from weir.experiment.results import unscored_notes
from weir.plugins.bridges.candidates import candidate_ranking
from weir.settings import settings
from weir.systems import Pipeline, parse_system
from weir.systems.compose import as_reranker

POOL, QUERIES = 130, 4


def pools(folder: Path) -> Path:
    """Queries with pools of 130 candidates, in BEIR's layout; one document of each holds the query's word."""
    (folder / "qrels").mkdir(parents=True)
    names = {f"q{q}": [f"q{q}-{n:03}" for n in range(POOL)] for q in range(QUERIES)}
    corpus = [
        {"_id": d, "text": f"word{q} common" if d.endswith("-064") else "common filler"}
        for q, pool in names.items()
        for d in pool
    ]
    asked = [
        {"_id": q, "text": f"word{q} common", "metadata": {"candidates": pool}} for q, pool in names.items()
    ]
    for name, rows in (("corpus", corpus), ("queries", asked)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = "".join(f"{q}\t{d}\t{int(d.endswith('-064'))}\n" for q, pool in names.items() for d in pool)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pools(tmp_path_factory.mktemp("data") / "pools")


class Counting:
    """A re-ranker that counts what it is shown, of each query, and finds the last of it best."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        """Later ones score more."""
        self.shown.append(len(pairs))
        return [float(n) for n in range(len(pairs))]


def shown(dataset: weir.Dataset, first: object, k: int = 1000, depth: int | None = None) -> list[int]:
    """How many candidates of each query a re-ranker is shown."""
    counting = Counting()
    system = Pipeline(first, as_reranker(counting, depth))
    system.index(dataset.corpus).search(dataset.queries, k)
    return counting.shown


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_a_pool_is_reranked_whole(folder: Path, tmp_path: Path) -> None:
    systems = (
        "bm25",
        "pool >> score(bm25)",
        "pool >> score(bm25, depth=20)",
        "pool >> score(bm25, depth=200)",
    )
    rows = Experiment((str(folder),), systems, ("RR",)).execute(tmp_path / "results")
    bm25, whole, cut, deep = (row.mean for row in rows)
    assert (bm25, whole, deep) == (1.0, 1.0, 1.0)
    assert cut < 1.0


def test_the_depth_is_the_pool_unless_it_is_named(folder: Path, tmp_path: Path) -> None:
    dataset, every = weir.load(folder), [POOL] * QUERIES
    ranking = {q: dataset.corpus.ids.tolist()[:400] for q in dataset.queries.ids}
    Run.of(ranking).save(tmp_path / "some.trec")
    free = weir.Dataset.of(
        dict(zip(dataset.corpus.ids, dataset.corpus.text, strict=True)),
        dict(zip(dataset.queries.ids, dataset.queries.text, strict=True)),
        dataset.qrels,
    )
    run = f'run("{tmp_path}/some.trec")'
    cases = [
        ("pool", dataset, every),
        ("bm25", dataset, every),  # restricted to the candidates
        ("pool >> score(bm25)", dataset, every),
        ("filtered(pool, \"text != 'none'\")", dataset, every),
        (run, dataset, [130, 130, 130, 10]),  # of which only candidates may be ranked
        (run, free, [400] * QUERIES),
        ("rrf(bm25, rm3)", free, [520] * QUERIES),
        ("rrf(bm25, rm3, depth=150)", free, None),
        ("bm25", free, [100] * QUERIES),
        ("bm25 >> score(rm3)", free, [100] * QUERIES),
    ]
    for name, collection, expected in cases:
        first = parse_system(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)
            found = shown(collection, first, k=10)
            named = shown(collection, first, k=10, depth=100)
            deep = first.index(collection.corpus).search(collection.queries, 1000)
        assert max(named) == 100, name
        assert found == (np.diff(deep.ptr).tolist() if expected is None else expected), name


def test_a_name_says_a_depth_of_100_where_it_was_named() -> None:
    for text in ("pool >> score(bm25)", "bm25 >> score(rm3)", 'rrf(bm25, rm3) >> cross("minilm-cross")'):
        named = text[:-1] + ", depth=100)"
        for name in (text, named):
            assert str(parse_system(name)) == name
            assert parse_system(str(parse_system(name))) == parse_system(name)
        assert parse_system(text) != parse_system(named)


def keys(folder: Path, at: Path, *systems: str) -> list[str]:
    return [cell.stage.key for cell in Experiment((str(folder),), systems).cells(at)]


def test_keys_tell_whole_pools_from_a_named_depth_and_others_stay(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unicodedata, "unidata_version", "14.0.0")
    plain = write_collection(tmp_path / "brooklet")
    assert keys(plain, tmp_path, "bm25 >> score(rm3)", "bm25 >> score(rm3, depth=50)") == KEYS
    for first in ("pool", "bm25", "rrf(bm25, rm3)"):
        names = [f"{first} >> score(rm3{more})" for more in ("", ", depth=100", ", depth=99")]
        assert len(set(keys(folder, tmp_path, *names))) == 3


KEYS = ["1e9db5b020", "bd777c2faa"]
"""Of a collection without candidates, as 0.2.0 had them with the Unicode tables of Python 3.11."""


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_what_is_left_unscored_stands_in_record_table_gate_and_plan(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    left = "pools: pool >> score(bm25, depth=100) leaves 120 of 520 candidates unscored, beyond its depth"
    grids = {}
    for name, systems in {
        "whole": ("pool >> score(bm25)",),
        "cut": ("pool >> score(bm25, depth=100)",),
    }.items():
        out = tmp_path / name
        arguments = [one for system in systems for one in ("-s", system)]
        assert main(["run", "-d", str(folder), *arguments, "-m", "RR", "-o", str(out)]) == 0
        grids[name] = capsys.readouterr().err
        assert main(["results", str(out)]) == 0
        grids[f"{name} results"] = capsys.readouterr().err
    assert f"note: {left}" in grids["cut"]
    assert f"note: {left}" in grids["cut results"]
    assert "candidates unscored" not in grids["whole"] + grids["whole results"]
    [cell] = Experiment((str(folder),), ("pool >> score(bm25, depth=100)",), ("RR",)).complete(
        tmp_path / "cut"
    )
    facts = [record.facts["reranked"] for _, record in cell.stages if "reranked" in record.facts]
    assert facts == [{"candidates": 520, "unscored": 120}]
    assert unscored_notes([cell]) == [left]
    searched = Experiment((str(folder),), tuple(f"bm25 >> score(rm3, depth={n})" for n in (100, 10)), ("RR",))
    usual, asked = (unscored_notes([one]) for one in searched.complete(tmp_path / "searched"))
    assert ["unscored" in note for note in usual] == [True]
    assert asked == []  # since somebody asked for it: 100 is the usual depth
    assert main(["gate", str(tmp_path / "whole"), str(tmp_path / "cut"), "-m", "RR"]) in (0, 1, 3)
    assert f"note: candidate: {left}" in capsys.readouterr().err
    systems = ("pool >> score(bm25)", "pool >> score(bm25, depth=100)", "bm25 >> score(rm3, depth=10)")
    plans = planned(Experiment((str(folder),), systems), lambda *_: None)
    assert [[note for note in one.notes if "unscored" in note] for one in plans] == [
        [],
        ["pool >> score(bm25, depth=100) leaves up to 120 of 520 candidates unscored, beyond its depth"],
        ["bm25 >> score(rm3, depth=10) leaves up to 480 of 520 candidates unscored, beyond its depth"],
    ]


def test_prompts_are_planned_for_whole_pools(folder: Path, tmp_path: Path) -> None:
    Run.of({"q0": [f"q0-{n:03}" for n in range(120)]}).save(tmp_path / "one.trec")
    systems = [
        f'{first} >> llm("score", model="openai:m"{depth})'
        for first in ("pool", "bm25", f'run("{tmp_path}/one.trec")')
        for depth in ("", ", depth=100")
    ]
    plans = planned(Experiment((str(folder),), tuple(systems)), lambda *_: None)
    assert [one.prompts for one in plans] == [520, 400, 520, 400, 120, 100]


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_an_audit_says_which_systems_rank_less_than_whole_pools(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = ("pool", "pool >> score(bm25)", "pool >> score(bm25, depth=30)", "bm25", "pool >> score(rm3)")
    Experiment((str(folder),), systems[:4], ("RR",)).execute(tmp_path / "results")
    Experiment((str(folder),), systems[4:], ("RR",), k=100).execute(tmp_path / "results")
    assert (
        main(
            [
                "audit",
                str(tmp_path / "results"),
                "--collection",
                str(folder),
                "--only",
                "whole pools",
                "--json",
            ]
        )
        == 0
    )
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    findings = [one for one in lines if "statement" in one]
    assert sorted((one["severity"], one["system"], one["statement"]) for one in findings) == [
        (
            "caution",
            "pool >> score(bm25, depth=30)",
            "leaves 400 of 520 candidates unscored, beyond its depth",
        ),
        ("caution", "pool >> score(rm3)", "leaves out 120 of 520 candidates, those of 4 of 4 queries"),
    ]


def test_a_candidate_that_is_no_document_or_excluded_need_not_be_ranked(tmp_path: Path) -> None:
    said = {"candidates": ["a", "b", "c", "q", "absent"], "excluded": ["c"]}
    asked = weir.Queries.of({"q": {"text": "x", **said}, "r": "x"})
    corpus = weir.Corpus.of(dict.fromkeys("abcq", "x"))
    for ranking, findings in ((["b", "a"], 0), (["a", "c", "q"], 1), ([], 1)):
        subject = Subject("s", corpus, asked, asked=asked, runs={"mine": Run.of({"q": ranking, "r": ["a"]})})
        assert len(audited(subject, ["whole pools"]).findings) == findings
    assert audited(Subject("s", runs={"mine": Run.of({"q": ["a"]})}), ["whole pools"]).findings == ()


def test_folders_of_birco_need_no_hand_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    texts = {f"d{n}": f"a weir {n}" for n in range(12)}
    test_set = {"query": {"q": "weir 3"}, "corpus": texts, "qrel": {"q": dict.fromkeys(texts, 0) | {"d3": 1}}}
    folder = tmp_path / "BIRCO" / "datasets" / "relic"
    folder.mkdir(parents=True)
    (folder / "test_set.pickle").write_bytes(pickle.dumps(test_set))
    (folder / "dev_set.pickle").write_bytes(pickle.dumps({**test_set, "query": {"q": "another"}}))
    with pytest.raises(DownloadError, match="is not in Weir's home yet"):
        load_here(folder)
    assert not (tmp_path / "home").exists()
    dataset = weir.load(folder)
    assert load_here(folder).name == "relic"
    assert (dataset.name, dataset.queries.text.tolist()) == ("relic", ["weir 3"])
    assert shown(dataset, parse_system("pool")) == [12]
    settings.cache_clear()


def test_a_folder_with_the_counts_of_a_set_of_birco_is_ranked_by_its_pools(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    shutil.copytree(folder, plain)
    rows = [json.loads(line) for line in (plain / "queries.jsonl").read_text().splitlines()]
    lines = [json.dumps({"_id": row["_id"], "text": row["text"]}) + "\n" for row in rows]
    (plain / "queries.jsonl").write_text("".join(lines))
    assert weir.load(plain).queries.metadata is None
    for counts, same in (((520, 4, 520), True), ((521, 4, 520), False), ((520, 4, 519), False)):
        monkeypatch.setattr(catalogue, "published_pools", lambda counts=counts: {counts: "birco-relic"})
        assert (weir.load(plain).queries.metadata is not None) == same
        said = [note.text for note in restriction_notes(weir.load(plain)) if "birco-relic" in note.text]
        assert len(said) == same
        assert all('candidates = "all" into collection.toml' in one for one in said)
    monkeypatch.setattr(catalogue, "published_pools", lambda: {(520, 4, 520): "birco-relic"})
    for one in (plain, folder):  # a copy, and a collection that lists candidates itself
        (one / "collection.toml").write_text('candidates = "all"\n')
        free = weir.load(one).queries.metadata
        assert free is None or free.candidates is None
        assert not restriction_notes(weir.load(one))


def test_the_counts_of_birco_are_those_of_its_catalogue() -> None:
    pools = catalogue.published_pools()
    assert pools[5023, 100, 5062] == "birco-relic"
    assert pools[2404, 57, 137_028] == "birco-wtb"
    assert len(pools) == 4 + 3  # the grades of DORIS-MAE's test set are not known here


def test_candidates_that_another_tool_gives_are_ranked_whole(folder: Path) -> None:
    dataset, counting = weir.load(folder), Counting()
    given = Run.of({q: [f"{q}-{n:03}" for n in range(POOL)] for q in dataset.queries.ids})
    free = weir.Queries.of(dict(zip(dataset.queries.ids, dataset.queries.text, strict=True)))
    for system in (as_reranker(counting), weir.BM25() >> as_reranker(counting), weir.BM25()):
        run = candidate_ranking(system, given).index(dataset.corpus).search(free, 1000)
        assert (np.diff(run.ptr) == POOL).all()
    assert counting.shown == 2 * [POOL] * QUERIES
