"""hf:... against a server that speaks the hub's API: what is downloaded, once, checked, from which commit."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from functools import partial

import pytest

import weir
from tests.kills import killed_when
from tests.unit.hub_server import Hub, served
from weir.cli.main import main
from weir.errors import BadValue, DownloadError, FormatError
from weir.files import downloads as hub_files
from weir.files.downloads import Patience
from weir.plugins.importing.references.hub import chosen_parts, parts_of
from weir.settings import settings

pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")

DOCUMENTS = [
    {"_id": f"d{n}", "title": f"Weir {n}", "text": f"a weir of {n} metres", "lang": "en"} for n in range(60)
]
QUERIES = [{"_id": f"q{n}", "text": f"weir of {n} metres"} for n in range(6)]
QRELS = [{"query-id": f"q{n}", "corpus-id": f"d{n}", "score": 1} for n in range(6)]


def parquet(rows):
    import pyarrow as arrow
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(arrow.Table.from_pylist(rows), out)
    return out.getvalue()


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def mteb(documents=DOCUMENTS, qrels=QRELS):
    return {
        "README.md": b"---\nlicence: none\n---\n",
        "corpus/corpus-00000-of-00001.parquet": parquet(documents),
        "queries/queries-00000-of-00001.parquet": parquet(QUERIES),
        "qrels/test-00000-of-00001.parquet": parquet(qrels),
    }


LAYOUTS = {
    "MTEB": mteb(),
    "MTEB's first": {"corpus.jsonl": lines(DOCUMENTS), "queries.jsonl": lines(QUERIES), "qrels/test.jsonl": lines(QRELS),
                     "qrels/train.jsonl": lines(QRELS[:1])},
    "BEIR": {"corpus.jsonl": lines(DOCUMENTS), "queries.jsonl": lines(QUERIES),
             "qrels/test.tsv": ("query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(6))).encode()},
    "NanoBEIR": {"corpus/train-00000-of-00001.parquet": parquet([{"_id": d["_id"], "text": d["text"]} for d in DOCUMENTS]),
                 "queries/train-00000-of-00001.parquet": parquet(QUERIES),
                 "qrels/train-00000-of-00001.parquet": parquet([{"query-id": q["query-id"], "corpus-id": q["corpus-id"]} for q in QRELS])},
    "shards": {f"corpus/corpus-0000{n}-of-00003.parquet": parquet(DOCUMENTS[n::3]) for n in range(3)}
    | {"queries.jsonl": lines(QUERIES), "data/test-00000-of-00001.parquet": parquet([{**q, "score": float(q["score"])} for q in QRELS])},
    "the hub's own conversion": {"corpus/corpus/0000.parquet": parquet(DOCUMENTS), "queries/queries/0000.parquet": parquet(QUERIES),
                                 "default/test/0000.parquet": parquet(QRELS)},
}  # fmt: skip


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub whose name main stands for MTEB's layout."""
    monkeypatch.setattr(hub_files, "_API", Patience(attempts=2, pause=0.01))
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with served(Hub()) as one:
        monkeypatch.setenv("HF_ENDPOINT", one.url)
        one.put("weirs/small", mteb())
        yield one


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_one_collection(hub, layout):
    hub.put("weirs/shape", LAYOUTS[layout])
    dataset = weir.load("hf:weirs/shape")
    assert sorted(dataset.corpus.ids.tolist()) == sorted(d["_id"] for d in DOCUMENTS)
    assert dataset.queries.to_dict() == {q["_id"]: q["text"] for q in QUERIES}
    assert dataset.qrels.to_dict() == {q["query-id"]: {q["corpus-id"]: 1} for q in QRELS}
    assert dataset.split == ("train" if layout == "NanoBEIR" else "test")
    assert [weir.load(f"hf:weirs/shape:{split}").split for split in dataset.splits] == dataset.splits
    assert (dataset.name, dataset.source) == (
        "hf:weirs/shape",
        f"hf:weirs/shape@{hub.branches['weirs/shape', 'main']}",
    )


def test_what_a_branch_stands_for_stays_until_it_is_fetched_again(hub, capsys):
    first = hub.branches["weirs/small", "main"]
    before = weir.load("hf:weirs/small")
    second = hub.put("weirs/small", mteb(DOCUMENTS[:50]))
    asked = len(hub.asked)
    assert weir.load("hf:weirs/small").source == f"hf:weirs/small@{first}" == before.source
    assert len(hub.asked) == asked  # nothing was asked of the network
    assert main(["data", "fetch", "hf:weirs/small"]) == 0
    assert capsys.readouterr().out == "hf:weirs/small: 50 documents, 6 queries\n"
    assert weir.load("hf:weirs/small").source == f"hf:weirs/small@{second}"
    assert len(weir.load(f"hf:weirs/small@{first}").corpus) == 60
    hub.put("weirs/small", mteb(DOCUMENTS[:40]), branch="v1")
    assert len(weir.load("hf:weirs/small@v1").corpus) == 40


def test_results_name_the_commit(hub, tmp_path):
    pytest.importorskip("numba", reason="BM25 takes numba")
    assert (
        main(["run", "-q", "-d", "hf:weirs/small", "-s", "bm25", "-m", "RR", "-o", str(tmp_path / "results")])
        == 0
    )
    (scores,) = tmp_path.glob("results/*/*/scores-*.json")
    told = json.loads(scores.read_text())["facts"]
    assert (told["dataset"], told["collection"]) == (
        "hf:weirs/small",
        f"hf:weirs/small@{hub.branches['weirs/small', 'main']}",
    )
    assert main(["verify", str(tmp_path / "results")]) == 0


def test_a_download_that_was_cut_goes_on_and_bytes_are_checked(hub, monkeypatch, home):
    monkeypatch.setattr(
        "weir.plugins.importing.references.hub.download",
        partial(hub_files.download, patience=Patience(pause=0.01, attempts=2)),
    )
    corpus = hub.held["weirs/small"][hub.branches["weirs/small", "main"]][
        "corpus/corpus-00000-of-00001.parquet"
    ]
    hub.cut = [1000]
    assert len(weir.load("hf:weirs/small").corpus) == 60
    hub.put("weirs/other", mteb(DOCUMENTS[:30]))
    hub.spoiled = {"corpus-00000", "/lfs/"}
    with pytest.raises(
        DownloadError, match=r"corpus-00000-of-00001.parquet.* has sha256:.*, published is sha256:"
    ):
        weir.load("hf:weirs/other")
    assert len(corpus) > 1000
    assert not list(home.glob("references/hf-weirs-other-*"))


def test_a_killed_download_is_continued_and_nothing_is_asked_twice(hub, home):
    many = [{"_id": f"d{n}", "title": "", "text": os.urandom(400).hex()} for n in range(3000)]
    hub.put("weirs/large", mteb(many))
    hub.hold = 400_000
    code = "import weir; print(len(weir.load('hf:weirs/large').corpus))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    part = home / "references"
    killed_when(process, lambda: any(p.stat().st_size > 300_000 for p in part.rglob("*.parquet.part")))
    hub.released.set()
    (begun,) = part.rglob("*.parquet.part")
    size = begun.stat().st_size
    assert not list(part.glob("hf-weirs-large-*"))
    hub.hold, done = None, set(hub.paths())
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "3000\n"
    )
    assert size > 300_000
    finished = {path for path in done if "/resolve/" in path} - {path for path in done if "corpus" in path}
    assert not [path for path in hub.paths()[len(done) :] if path in finished]
    assert not list(part.glob("downloads/*"))


def test_offline_what_was_brought_is_there_and_the_rest_is_one_line(hub, monkeypatch):
    weir.load("hf:weirs/small")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    asked = len(hub.asked)
    assert len(weir.load("hf:weirs/small").corpus) == 60
    with pytest.raises(
        DownloadError, match="hf:weirs/none is not on this machine, and HF_HUB_OFFLINE forbids"
    ):
        weir.load("hf:weirs/none")
    assert len(hub.asked) == asked


def test_what_the_hubs_own_library_has_kept_is_used(hub, monkeypatch, tmp_path):
    library = pytest.importorskip("huggingface_hub", reason="the hub's library is not installed")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # it reads the environment once
    cache = os.environ["HF_HUB_CACHE"]
    with served(Hub(held=hub.held)) as store:  # large files lie on another host, as the hub's do
        hub.store = store.url
        library.snapshot_download("weirs/small", repo_type="dataset", endpoint=hub.url, cache_dir=cache)
    told = library.HfApi(endpoint=hub.url).dataset_info("weirs/small", files_metadata=True)
    files = {file.path: file for file in hub_files.hub_revision("weirs/small").files}
    assert {one.rfilename: one.size for one in told.siblings} == {
        path: one.bytes for path, one in files.items()
    }
    asked = len(hub.asked)
    assert len(weir.load("hf:weirs/small").corpus) == 60
    assert not [path for path in hub.paths()[asked:] if "/resolve/" in path]
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "fresh"))
    settings.cache_clear()
    dataset = weir.load("hf:weirs/small")
    assert (len(dataset.corpus), dataset.source) == (60, f"hf:weirs/small@{told.sha}")


def test_the_token_opens_what_is_gated_and_goes_to_the_hub_alone(hub, monkeypatch):
    hub.token = "secret"
    with pytest.raises(
        DownloadError, match=r"hf:weirs/small: the hub knows no such public data set.*HF_TOKEN"
    ):
        weir.load("hf:weirs/small")
    monkeypatch.setenv("HF_TOKEN", "secret")
    with served(Hub(held=hub.held)) as store:
        hub.store = store.url
        assert len(weir.load("hf:weirs/small").corpus) == 60
        assert store.asked
        assert not any(authorised for *_, authorised in store.asked)


SAID = {
    "hf:weirs/none": (None, "the hub knows no such data set or revision"),
    "hf:weirs/small@v9": (None, "hf:weirs/small@v9: the hub knows no such data set or revision"),
    "hf:weirs small": (None, "expected hf:organisation/name"),
    "hf:weirs/small": (b"<html>", "something that is no JSON"),
    "hf:weirs/small@main": (b'{"sha": "x", "siblings": []}', "no description of a data set"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_wrong_is_one_line(hub, name, capsys):
    hub.said, said = SAID[name]
    assert main(["data", "stats", name]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err


def test_a_hub_that_fails_is_one_line(hub):
    hub.fail = [500, 503]
    with pytest.raises(DownloadError, match=r"hf:weirs/small: the request to the hub failed .*503"):
        weir.load("hf:weirs/small")
    hub.put("weirs/other", {"train.bin": b"x", "notes.csv": b"a,b\n1,2\n"})
    with pytest.raises(
        BadValue, match="hf:weirs/other: holds nothing with a known name; expected corpus, queries"
    ):
        weir.load("hf:weirs/other")


@pytest.mark.parametrize(
    ("bound", "said"),
    [({"most": 1000}, "sends more than 1,000 bytes"), ({"whole": 0.0}, "not done after 0 seconds")],
)
def test_a_description_has_bounds(hub, home, monkeypatch, bound, said):
    monkeypatch.setattr(hub_files, "_API", Patience(attempts=2, pause=0.01, **bound))
    hub.said = b'{"sha": "' + b"a" * (1 << 20)
    with pytest.raises(DownloadError, match=said):
        weir.load("hf:weirs/small")
    assert len(hub.asked) == 1, "an answer without end is not asked for again"


def test_several_collections_in_one(hub):
    files = {}
    for language, count in (("ar", 10), ("sw", 20)):
        files |= {f"{language}-{path}": data for path, data in mteb(DOCUMENTS[:count]).items()}
    hub.put("weirs/many", files)
    assert [len(weir.load(f"hf:weirs/many#{language}").corpus) for language in ("ar", "sw")] == [10, 20]
    with pytest.raises(
        BadValue,
        match="hf:weirs/many: holds several collections; choose one of ar, sw, as in hf:weirs/many#ar",
    ):
        weir.load("hf:weirs/many")
    with pytest.raises(BadValue, match="has no 'te'; choose one of ar, sw"):
        weir.load("hf:weirs/many#te")


def test_bright_s_examples_and_documents_by_domain(hub):
    def domain(name, count):
        example = {"id": "0", "query": f"which {name} weir", "reasoning": "none", "excluded_ids": [f"{name}/1.txt"],
                   "gold_ids": [f"{name}/0.txt"], "gold_ids_long": ["N/A"], "gold_answer": "N/A"}  # fmt: skip
        documents = [{"id": f"{name}/{n}.txt", "content": f"{name} {n}"} for n in range(count)]
        return {f"examples/{name}-00000-of-00001.parquet": parquet([example]), f"documents/{name}-00000-of-00001.parquet": parquet(documents),
                f"gpt4_reason/{name}-00000-of-00001.parquet": parquet([example])}  # fmt: skip

    hub.put("weirs/bright", domain("rivers", 4) | domain("lakes", 7))
    lakes = weir.load("hf:weirs/bright#lakes")
    assert (len(lakes.corpus), lakes.qrels.to_dict()) == (7, {"0": {"lakes/0.txt": 1}})
    assert lakes.queries.to_dict() == {"0": "which lakes weir"}
    queries = (lakes.layout.need_queries().path).read_text()
    assert json.loads(queries)["metadata"]["excluded"] == ["lakes/1.txt"]


def test_judgments_in_a_data_set_beside(hub):
    hub.put("weirs/apart", {path: data for path, data in mteb().items() if "qrels" not in path})
    with pytest.raises(BadValue, match="hf:weirs/apart: no judgments in it, and none beside it"):
        weir.load("hf:weirs/apart")
    hub.put("weirs/apart-qrels", {"test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t2\n"})
    assert weir.load("hf:weirs/apart").qrels.to_dict() == {"q1": {"d1": 2}}


def test_the_card_says_what_paths_do_not(hub):
    files = {"a.parquet": parquet(DOCUMENTS), "b.parquet": parquet(QUERIES), "c/d.parquet": parquet(QRELS)}
    hub.put("weirs/odd", files)
    hub.cards["weirs/odd"] = [{"config_name": "corpus", "data_files": "a.parquet"},
                              {"config_name": "queries", "data_files": [{"split": "queries", "path": ["b.parquet"]}]},
                              {"config_name": "default", "data_files": [{"split": "test", "path": "c/*"}]}]  # fmt: skip
    assert weir.load("hf:weirs/odd").splits == ["test"]


def test_instructions_and_candidates_go_with_the_queries():
    paths = [
        f"{name}/test-00000-of-00001.parquet"
        for name in ("corpus", "queries", "qrels", "top_ranked", "instruction", "qrel_diff")
    ]
    found = chosen_parts(parts_of(paths), "", "x")
    assert [part.role for part in found] == [
        "documents",
        "queries",
        "judgments",
        "candidates",
        "instructions",
    ]


@pytest.mark.parametrize(
    "patterns",
    ["[" * 50_000, ["*" + str(n) for n in range(20_000)], "[[" * 501],
    ids=["long", "many", "just"],
)
def test_patterns_of_a_card_take_no_time(patterns):
    begun = time.process_time()
    with pytest.raises(BadValue, match="the card of the data set"):
        parts_of([f"corpus/{n}.jsonl" for n in range(1000)], [{"data_files": patterns}])
    assert time.process_time() - begun < 30


def test_the_first_pattern_or_path_of_a_card_that_fits_counts():
    configs = [
        {"config_name": "queries", "data_files": "corpus.jsonl"},
        {"config_name": "corpus", "data_files": [{"split": "test", "path": ["*.jsonl", "b/**"]}]},
        {"config_name": "queries", "data_files": "q.jsonl"},
    ]
    found = {part.path: part.role for part in parts_of(["corpus.jsonl", "q.jsonl", "b/x.jsonl"], configs)}
    assert found == {"corpus.jsonl": "queries", "q.jsonl": "documents", "b/x.jsonl": "documents"}


def test_messages_about_a_folder_name_it_and_its_splits(tmp_path, capsys):
    mine = tmp_path / "mine"
    for name, content in {**mteb(), "qrels/dev-00000-of-00001.parquet": parquet(QRELS[:2])}.items():
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(f"{mine}: found judgments for dev, test; expected the")):
        weir.load(f"{mine}:train")
    with pytest.raises(
        BadValue, match=re.escape(f"has no 'x'; it holds one collection alone, which is {mine} ")
    ):
        weir.load(f"{mine}#x")
    assert main(["run", "-d", str(mine), "-s", "bm25", "-o", str(tmp_path / "r")]) == 0
    assert "note: mine: the split test counts, not dev" in capsys.readouterr().err
