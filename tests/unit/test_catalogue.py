"""The catalogue: every entry complete, lazy, and fetched from a local server as from the real one."""

from __future__ import annotations

import functools
import hashlib
import http.server
import pickle
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from threading import Thread

import pytest

from tests.unit.brooklet import write_collection
from weir.datasets import catalogue
from weir.datasets.fetch import fetch
from weir.datasets.load import load, load_group
from weir.errors import BadValue, DownloadError, FormatError, NameNote, UnknownName
from weir.settings import settings

BEIR = {
    "trec-covid", "nfcorpus", "bioasq", "nq", "hotpotqa", "fiqa", "signal1m", "trec-news", "robust04",
    "arguana", "webis-touche2020", "quora", "dbpedia-entity", "scidocs", "fever", "climate-fever", "scifact",
}  # fmt: skip
GATED = {"bioasq", "signal1m", "trec-news", "robust04", "birco-doris-mae"}
BIRCO = {f"birco-{name}" for name in ("arguana", "clinical-trial", "doris-mae", "relic", "wtb")}
ONLY_COPIES = BIRCO - {"birco-relic"}  # nobody publishes a checksum of the others
FORUMS = {
    "android", "english", "gaming", "gis", "mathematica", "physics",
    "programmers", "stats", "tex", "unix", "webmasters", "wordpress",
}  # fmt: skip
TASKS = {
    "Bio-Medical IR", "Question Answering", "Tweet-Retrieval", "News Retrieval", "Argument Retrieval",
    "Duplicate-Question Retrieval", "Entity-Retrieval", "Citation-Prediction", "Fact Checking",
}  # fmt: skip


def test_every_collection_of_the_benchmark_is_there():
    names = set(catalogue.collection_names())
    assert BEIR | {"msmarco"} | {f"cqadupstack-{forum}" for forum in FORUMS} <= names
    assert names >= BIRCO


def test_groups():
    assert {"birco", "brook", "cqadupstack"} <= set(catalogue.groups())
    assert set(catalogue.group("birco").members) == BIRCO
    assert set(catalogue.group("cqadupstack").members) == {f"cqadupstack-{forum}" for forum in FORUMS}
    assert "unweighted mean" in catalogue.group("cqadupstack").notes
    assert {catalogue.get(name).task for name in catalogue.group("brook").members} == TASKS
    with pytest.raises(UnknownName, match="did you mean brook"):
        catalogue.group("brok")


def test_a_member_may_stand_behind_its_group(tmp_path, monkeypatch):
    assert catalogue.get("birco/relic") is catalogue.get("birco-relic")
    assert catalogue.members("cqadupstack/gis") == ("cqadupstack-gis",)
    for wrong in ("birco/scifact", "trec/covid", "birco/", "relic/birco"):
        with pytest.raises(UnknownName):
            catalogue.get(wrong)
    with pytest.raises(DownloadError, match="birco-relic is not on this machine"):
        load("birco/relic")
    monkeypatch.chdir(tmp_path)
    assert load("brook/facts").name == "brook-facts"
    write_collection(tmp_path / "brook" / "facts")
    assert load("brook/facts").entry is None  # a path that is there is meant


@pytest.mark.parametrize("name", catalogue.collection_names())
def test_an_entry_is_complete(name: str):
    entry = catalogue.get(name)
    assert entry.name == name
    assert entry.task
    assert entry.title
    assert entry.domain
    assert entry.licence
    assert entry.layout == "beir"
    assert entry.documents > 0
    assert entry.queries > 0
    assert entry.split in ("dev", "test")
    assert entry.self_match in ("drop", "keep")
    assert bool(entry.obtain) == (not (entry.urls or entry.copies) and not entry.embedded)
    assert all(url.startswith("https://") and url.endswith((".zip", ".pickle")) for url in entry.urls)
    assert bool(entry.urls) == (len(entry.md5) == 32) == (entry.bytes > 0)
    assert sum(entry.grades.values()) >= entry.queries or name in {"robust04", "birco-doris-mae"}
    assert not entry.folder.startswith(("/", "."))
    if not entry.embedded:
        assert entry.site.startswith("http")


def test_entries_have_the_rules_of_their_benchmark():
    entries = [catalogue.get(name) for name in catalogue.collection_names()]
    tasks = {entry.task for entry in entries}
    assert len({task.casefold().replace("-", " ") for task in tasks}) == len(
        tasks
    )  # one spelling of each task
    known = BEIR | BIRCO | {"msmarco"} | set(catalogue.group("brook").members)
    known |= set(catalogue.group("cqadupstack").members)
    ours = {entry.name: entry for entry in entries if entry.name in known}
    assert {name for name, entry in ours.items() if entry.split == "dev"} == {"msmarco"}
    dropped = {"arguana", "quora", "brook-arguments", "brook-questions"}
    assert {name for name, entry in ours.items() if entry.self_match == "drop"} == dropped
    assert {name for name, entry in ours.items() if entry.obtain} == GATED
    without = {name for name, entry in ours.items() if not (entry.urls or entry.embedded)}
    assert without == ONLY_COPIES | GATED
    assert {name for name, entry in ours.items() if entry.candidates == "judged"} == BIRCO
    assert {name for name, entry in ours.items() if entry.archive.endswith("pickle")} == BIRCO - without


def test_the_right_one_of_two_published_sums():
    assert catalogue.get("fever").md5 == "5a818580227bfb4b35bb6fa46d9b6c03"
    assert catalogue.get("webis-touche2020").md5 == "46f650ba5a527fc69e0a6521c5a23563"
    sums = [catalogue.get(name).md5 for name in BEIR - GATED]
    assert len(set(sums)) == len(sums)


def test_a_collection_without_an_archive_is_asked_of_its_copies_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    assert home
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    entry = replace(catalogue.get("birco-wtb"), copies=("hf:nobody/nothing",))
    monkeypatch.setattr(catalogue, "get", lambda _: entry)
    with pytest.raises(
        DownloadError,
        match=r"birco-wtb is not on this machine; get it with: weir data fetch birco-wtb, or weir run --fetch; in Python weir.fetch",
    ):
        load("birco-wtb")
    with pytest.raises(DownloadError, match=r"tried: hf:nobody/nothing is not on this machine"):
        fetch("birco-wtb")


def test_the_forums_come_in_one_archive():
    forums = [catalogue.get(f"cqadupstack-{forum}") for forum in FORUMS]
    assert {e.archive for e in forums} == {"cqadupstack.zip"}
    assert sum(e.documents for e in forums) == 457_199
    assert sum(e.queries for e in forums) == 13_145
    assert sum(e.grades[1] for e in forums) == 23_703


def test_only_what_is_asked_for_is_parsed(monkeypatch: pytest.MonkeyPatch):
    parsed: list[str] = []
    real = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(text) or real(text))
    catalogue.get.cache_clear()
    catalogue.collection_names()
    catalogue.is_group("scifact")
    assert parsed == []
    catalogue.get("scifact")
    catalogue.get("scifact")
    assert len(parsed) == 1
    assert len(catalogue.entries()) == len(catalogue.collection_names())


def test_unknown_names_get_a_suggestion():
    for wrong, near in (
        ("scifct", "scifact"),
        ("SciFact", "scifact"),
        ("cqadupstak", "cqadupstack"),
        ("nfcorp", "nfcorpus"),
    ):
        with pytest.raises(UnknownName, match=f"did you mean .*{near}"):
            catalogue.get(wrong)


def test_every_file_of_the_package_is_an_entry():
    for path in (files("weir.datasets") / "catalog").iterdir():
        assert path.name == "groups" or path.name.endswith(".toml")
    for folder in (files("weir.datasets") / "brook").iterdir():
        if folder.is_dir() and not folder.name.startswith("_"):
            assert f"brook-{folder.name}" in catalogue.group("brook").members


@pytest.mark.parametrize("name", catalogue.group("brook").members)
def test_the_embedded_collections_are_what_their_entries_say(name: str, home: Path):
    entry, dataset = catalogue.get(name), load(name)
    assert len(dataset.corpus) == entry.documents
    assert len(dataset.queries) == len(dataset.qrels) == entry.queries
    assert dataset.card.pairs == entry.grades
    assert dataset.card.relevance == entry.relevance
    assert (dataset.corpus.title is not None) == entry.has_title
    assert dataset.card.absent_documents == dataset.card.absent_queries == 0
    shared = set(dataset.corpus.ids.tolist()) & set(dataset.queries.ids.tolist())
    assert bool(shared) == (dataset.self_match == "drop")
    assert dataset.store.path.is_relative_to(home)  # the package itself is left alone


def test_the_embedded_collections_together():
    datasets = load_group("brook")
    assert sum(len(d.corpus) for d in datasets) >= 500
    assert sum(len(d.queries) for d in datasets) >= 120
    assert all(d.card.zero > 0 and d.card.copies_of_text > 0 and d.card.without_title > 0 for d in datasets)
    assert any(d.card.empty > 0 for d in datasets)


def test_what_is_not_here_says_how_to_get_it(home: Path):
    with pytest.raises(
        DownloadError,
        match=r"scifact is not on this machine; get it with: weir data fetch scifact \(2.8 MB\)",
    ):
        load("scifact")
    for name in GATED:
        with pytest.raises(DownloadError) as caught:
            load(name)
        message = str(caught.value)
        assert "\n" not in message
        folder = home / "datasets" / name.replace("birco-", "birco/")
        assert (
            f"{folder}/corpus.jsonl" in message or f"weir data import test_set.pickle -o {folder}" in message
        )
        assert "qrels/test.tsv" in message or name in BIRCO
        with pytest.raises(DownloadError, match="cannot be downloaded"):
            fetch(name)
    with pytest.raises(BadValue, match="a group of 12"):
        load("cqadupstack")
    with pytest.raises(UnknownName):
        fetch("nope")


def test_a_gated_collection_that_was_put_there_is_used(home: Path):
    folder = home / "datasets" / "robust04"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "FT1", "title": "", "text": "x"}\n', encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "301", "text": "y"}\n', encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("301\tFT1\t2\n", encoding="utf-8")
    dataset = load("robust04")
    assert (dataset.name, dataset.split, len(dataset.corpus), len(dataset.queries)) == (
        "robust04",
        "test",
        1,
        1,
    )
    assert dataset.card.title == "Robust04"


# Fetching


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder served as WEIR_MIRROR."""
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("WEIR_MIRROR", f"http://127.0.0.1:{httpd.server_port}/")
    settings.cache_clear()
    yield tmp_path
    httpd.shutdown()
    httpd.server_close()
    thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def published(path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an archive of small collections, and let the catalogue expect exactly it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in [catalogue.get(n).folder for n in names]:
            archive.writestr(f"{folder}/corpus.jsonl", f'{{"_id": "{folder}", "title": "", "text": "x"}}\n')
            archive.writestr(f"{folder}/queries.jsonl", '{"_id": "q", "text": "y"}\n')
            archive.writestr(f"{folder}/qrels/test.tsv", f"query-id\tcorpus-id\tscore\nq\t{folder}\t1\n")
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    real = catalogue.get
    offline = ("http://127.0.0.1:9/" + path.name,)
    monkeypatch.setattr(catalogue, "get", lambda name: replace(real(name), md5=md5, urls=offline, copies=()))


def test_a_collection_is_fetched_checked_and_made_ready(
    mirror: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    published(mirror / "scifact.zip", ["scifact"], monkeypatch)
    told: list[tuple[int, int | None]] = []
    (dataset,) = fetch("scifact", lambda done, total: told.append((done, total)))
    assert dataset.corpus.ids.tolist() == ["scifact"]
    assert told[-1][0] == told[-1][1] == (mirror / "scifact.zip").stat().st_size
    folder = home / "datasets"
    assert sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) == ["scifact"]
    assert (folder / "scifact" / "corpus.jsonl.weir").is_dir()
    (mirror / "scifact.zip").unlink()
    assert fetch("scifact")[0].fingerprint == dataset.fingerprint
    assert load("scifact").queries.ids.tolist() == ["q"]


def test_a_test_set_of_birco_is_fetched_and_its_pools_are_the_candidates(
    mirror: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    pools = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 0.5}}
    given = {
        "query": {"q1": "one", "q2": "two"},
        "corpus": dict.fromkeys(("d1", "d2", "d3"), "text"),
        "qrel": pools,
    }
    (mirror / "test_set.pickle").write_bytes(pickle.dumps(given))
    md5 = hashlib.md5((mirror / "test_set.pickle").read_bytes()).hexdigest()
    real = catalogue.get("birco-relic")
    offline = ("http://127.0.0.1:9/test_set.pickle",)
    monkeypatch.setattr(catalogue, "get", lambda _: replace(real, md5=md5, urls=offline, copies=()))
    (dataset,) = fetch("birco-relic")
    assert dataset.qrels.to_dict() == pools
    assert dataset.queries.metadata is not None
    lists = dataset.queries.metadata.candidates
    assert lists is not None
    assert (lists.ptr.tolist(), lists.docs.take(lists.doc).tolist()) == ([0, 2, 3], ["d2", "d1", "d3"])
    assert "fits the masked place" in dataset.instruction
    assert [p.name for p in (home / "datasets").iterdir() if not p.name.startswith(".")] == ["birco"]


def test_a_group_is_fetched_by_one_archive(mirror: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    names = list(catalogue.group("cqadupstack").members)
    published(mirror / "cqadupstack.zip", names, monkeypatch)
    datasets = fetch("cqadupstack")
    assert [d.name for d in datasets] == names
    assert datasets[3].corpus.ids.tolist() == [catalogue.get(names[3]).folder]
    assert not (home / "datasets" / "cqadupstack.zip").exists()


def test_a_zip_with_a_way_out_leaves_nothing(mirror: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    published(mirror / "scifact.zip", ["scifact"], monkeypatch)
    with zipfile.ZipFile(mirror / "scifact.zip", "a") as archive:
        archive.writestr("scifact/../../evil", "x")
    md5 = hashlib.md5((mirror / "scifact.zip").read_bytes()).hexdigest()
    entry = replace(catalogue.get("scifact"), md5=md5)
    monkeypatch.setattr(catalogue, "get", lambda name: entry)
    with pytest.raises(FormatError, match=r"the member 'scifact/../../evil', which leads outside"):
        fetch("scifact")
    assert not entry.here
    assert [p.name for p in (home / "datasets").iterdir() if not p.name.endswith(".lock")] == []


def test_a_mirror_with_another_file_is_not_believed(
    mirror: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    import time

    monkeypatch.setattr(time, "sleep", lambda _: None)
    published(mirror / "scifact.zip", ["scifact"], monkeypatch)
    (mirror / "scifact.zip").write_bytes(b"other")
    with pytest.raises(
        DownloadError,
        match=r"scifact.zip: has md5:\w+, published is md5:\w+; the file was removed; .*refused",
    ):
        fetch("scifact")
    assert not catalogue.get("scifact").here


def test_a_folder_of_a_known_name_is_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scifact").mkdir()
    with (
        pytest.warns(NameNote, match=r"scifact is the catalogue's; the folder is \./scifact"),
        pytest.raises(
            DownloadError, match=r"weir data fetch scifact .*; the folder of that name here is \./scifact"
        ),
    ):
        load("scifact")
