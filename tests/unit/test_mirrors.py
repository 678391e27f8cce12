"""A collection of the catalogue from the first source that gives it whole, and the reason why others did not."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from functools import partial

import pytest

import weir
from tests.unit.hub_server import Hub, served
from weir.cli.main import main
from weir.datasets import catalogue
from weir.datasets.fetch import content_of, fetch
from weir.errors import DownloadError, DownloadWarning
from weir.files import downloads as hub_files
from weir.files import downloads as net
from weir.settings import settings

DOCUMENTS = [{"_id": f"d{n}", "title": f"Weir {n}", "text": f"a weir  of {n} metres\n"} for n in range(9)]
QUERIES = [{"_id": "q1", "text": "weir of 1 metre"}, {"_id": "q2", "text": "weir of 2 metres"}]
QRELS = [("q1", "d1", 1), ("q2", "d2", 2), ("q2", "d3", 0)]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def judged(rows):
    return ("query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in rows)).encode()


def files(documents=DOCUMENTS, qrels=QRELS):
    return {
        "corpus.jsonl": lines(documents),
        "queries.jsonl": lines(QUERIES),
        "qrels/test.tsv": judged(qrels),
    }


def archive():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, data in files().items():
            made.writestr(f"scifact/{name}", data)
    return out.getvalue()


ARCHIVE = archive()
# Sorted otherwise and with other white space: the same content.
COPY = files([{**row, "text": " ".join(row["text"].split())} for row in reversed(DOCUMENTS)], QRELS[::-1])


@pytest.fixture
def hosts(monkeypatch, tmp_path):
    """A hub with the archive (as a file of a data set) and with two copies, and the catalogue's entry of all."""
    patience = net.Patience(slowest=100_000, window=1, attempts=2, pause=0.01)
    monkeypatch.setattr(net, "download", partial(net.download, patience=patience))
    monkeypatch.setattr(hub_files, "_API", patience)
    monkeypatch.setattr(
        "weir.plugins.importing.references.hub.download", partial(hub_files.download, patience=patience)
    )
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    with served(Hub()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.put("zips", {"scifact.zip": ARCHIVE})
        hub.put("copies/other", files(DOCUMENTS[:8]))
        hub.put("copies/same", COPY)
        entry = replace(
            catalogue.get("scifact"), urls=(f"{hub.url}/datasets/zips/resolve/main/scifact.zip",), bytes=len(ARCHIVE), content="",
            md5=hashlib.md5(ARCHIVE).hexdigest(), copies=("hf:copies/none", "hf:copies/other", "hf:copies/same"),
            documents=9, queries=2, grades={0: 1, 1: 1, 2: 1},
        )  # fmt: skip
        monkeypatch.setattr(catalogue, "get", lambda _: entry)
        yield hub, entry


def put(monkeypatch, entry, **facts):
    changed = replace(entry, **facts)
    monkeypatch.setattr(catalogue, "get", lambda _: changed)


BROKEN = {
    "down": (lambda hub: {"urls": ("http://127.0.0.1:9/scifact.zip",)}, "refused"),
    "absent": (lambda hub: hub.held["zips"].clear() or {}, "404 Not Found"),
    "damaged": (lambda hub: hub.spoiled.add("scifact.zip") or {}, "published is md5:"),
    "slow": (lambda hub: setattr(hub, "drip", 1.5) or (hub.put("zips", {"scifact.zip": bytes(400_000)}) and {"bytes": 400_000}), "stalled at"),
}  # fmt: skip


@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=[pytest.mark.slow] * (how == "slow")) for how in BROKEN]
)
@pytest.mark.parametrize("known", ["content", "counts"])
def test_the_second_source_is_taken_and_the_reason_said(hosts, monkeypatch, how, known, home):
    hub, entry = hosts
    broken, reason = BROKEN[how]
    content = ""
    if known == "content":
        (home / "own").mkdir()
        for name, data in files().items():
            (home / "own" / name).parent.mkdir(exist_ok=True)
            (home / "own" / name).write_bytes(data)
        content = content_of(weir.load(home / "own"))
    put(monkeypatch, entry, content=content, **broken(hub))
    different = "its content is" if content else "its documents are 8, published are 9"
    with pytest.warns(
        DownloadWarning,
        match=rf"scifact comes from hf:copies/same: .*{reason}.*hf:copies/none: the hub knows no .*{different}",
    ):
        (dataset,) = fetch("scifact")
    assert (len(dataset.corpus), dataset.qrels.to_dict()) == (9, {"q1": {"d1": 1}, "q2": {"d2": 2, "d3": 0}})
    assert sorted(one.name for one in (home / "datasets").iterdir() if not one.name.startswith(".")) == [
        "scifact"
    ]


def test_the_first_source_is_enough(hosts, capsys):
    hub, _ = hosts
    assert main(["data", "fetch", "-q", "scifact"]) == 0
    assert capsys.readouterr().out == "scifact: 9 documents, 2 queries\n"
    assert hub.paths() == ["/datasets/zips/resolve/main/scifact.zip"]


def test_a_run_fetches_what_is_not_here_where_it_may(hosts, capsys, home, monkeypatch, tmp_path):
    """With --fetch, from a mirror where one is named, with the same checks; without, one line says what to do."""
    hub, _ = hosts
    run = ["run", "-q", "-d", "scifact:test", "-s", "bm25", "-m", "nDCG@10", "-o", str(tmp_path / "results")]
    assert main(run) == 2
    told = capsys.readouterr().err.rstrip("\n")
    assert (
        told
        == "weir: scifact is not on this machine; get it with: weir data fetch scifact (0.0 MB), or weir run --fetch; "
        "in Python weir.fetch('scifact')"
    )
    assert hub.paths() == []
    monkeypatch.setenv("WEIR_MIRROR", f"{hub.url}/datasets/zips/resolve/main")
    settings.cache_clear()
    assert main([*run, "--fetch"]) == 0
    assert "2/2" in capsys.readouterr().out
    assert hub.paths() == ["/datasets/zips/resolve/main/scifact.zip"]
    assert main([*run, "--fetch", "-s", "rm3"]) == 0  # what is here is not asked for again
    assert len(hub.paths()) == 1


def test_a_run_takes_no_damaged_archive(hosts, capsys, monkeypatch, tmp_path):
    hub, entry = hosts
    hub.spoiled.add("scifact.zip")
    put(monkeypatch, entry, copies=())
    run = ["run", "-q", "--fetch", "-d", "scifact", "-s", "bm25", "-o", str(tmp_path / "results")]
    assert main(run) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "published is md5:" in told
    assert f"without a network copy its folder from another machine to {entry.path}" in told
    assert not entry.here


def test_no_source_is_one_line_with_every_reason(hosts, monkeypatch, capsys):
    _, entry = hosts
    put(monkeypatch, entry, urls=("http://127.0.0.1:9/scifact.zip",), copies=entry.copies[:2])
    with pytest.raises(
        DownloadError, match=r"refused.*; hf:copies/none: .*; hf:copies/other: its documents are 8"
    ):
        fetch("scifact")
    assert main(["data", "fetch", "-q", "scifact"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)


def test_a_damaged_grade_is_another_content(tmp_path):
    def made(name, rows):
        for path, data in files(qrels=rows).items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(data)
        return content_of(weir.load(tmp_path / name))

    assert made("a", QRELS) == made("b", QRELS[::-1])
    assert len({made("a", QRELS), made("c", [*QRELS[:2], ("q2", "d3", 1)]), made("d", QRELS[:2])}) == 3
