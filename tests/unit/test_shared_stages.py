"""Stages in a store that machines share, with fsspec's memory: what is fetched, what is not, what is refused.

Processes, kills and a real server: tests/real/test_shared_stages.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import weir
from tests.unit.brooklet import write_collection
from weir.cli.main import main
from weir.core.strings import Strings, offsets
from weir.errors import BadValue, StoreError
from weir.experiment.efficiency import efficiency
from weir.experiment.experiment import Experiment
from weir.files.paths import is_address
from weir.models.batching import Ragged
from weir.plugins.cluster.object_store import ObjectStore
from weir.settings import settings
from weir.systems.vectors.store import RAW, RowStore, TextSource, encoded_rows

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*its vectors are compared by cosine:weir.errors.RankingWarning"
)

fsspec = pytest.importorskip("fsspec", reason="needs fsspec, as the `neural` and `cloud` extras bring it")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")


@pytest.fixture
def address():
    yield "memory://shared/weir"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Be another machine: with a home of its own, and so without the vectors of others."""

    def become(name):
        monkeypatch.setenv("WEIR_HOME", str(tmp_path / "homes" / name))
        settings.cache_clear()
        return tmp_path / name

    return become


class Letters:
    """An encoder by the letters of a text, which notes what it is asked."""

    dimensions = 26

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        codes = [np.frombuffer(text.lower().encode("ascii", "ignore"), np.uint8) for text in texts]
        counts = [np.bincount(c[(c >= 97) & (c < 123)] - 97, minlength=26) for c in codes]
        return np.array(counts, np.float32) + 1


def values(folder):
    paths = [path for name in ("run.trec", "scores-*.jsonl") for path in folder.rglob(name)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def grid(collection, encoder, address, *k):
    systems = [weir.Dense(weir.encoder(encoder, version="1"))]
    return Experiment((str(collection),), tuple(systems), ("AP",), *k, stages=address)


def test_vectors_are_encoded_once_for_all_machines(tmp_path, address, machine):
    """The index refers to rows of a store of this machine: the vectors travel, and the index is made of them."""
    collection, first, second = write_collection(tmp_path / "data"), Letters(), Letters()
    documents = set(weir.load(str(collection)).corpus.view("title text").tolist())
    grid(collection, first, address).execute(machine("one"))
    assert documents <= set(first.asked)
    grid(collection, second, address).execute(machine("two"))
    assert second.asked == []  # the rankings came
    assert values(tmp_path / "two") == values(tmp_path / "one")
    assert not (settings().home / "vectors").exists()
    costs = [efficiency(tmp_path / name)[0] for name in ("one", "two")]
    assert costs[0] == costs[1]
    grid(collection, second, address, 2).execute(machine("two"))
    assert second.asked
    assert not documents & set(second.asked)  # the vectors came, queries were encoded
    grid(collection, Letters(), None, 2).execute(machine("alone"))
    ranked = values(tmp_path / "alone")
    assert ranked.items() <= values(tmp_path / "two").items()
    assert not list((tmp_path / "two").rglob(".vectors"))


@pytest.mark.parametrize("damaged", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:20])])
def test_rankings_lost_or_cut_come_again(damaged, tmp_path, address, machine):
    collection, encoder = write_collection(tmp_path / "data"), Letters()
    grid(collection, encoder, address).execute(machine("one"))
    before = values(tmp_path / "one")
    encoder.asked.clear()
    for path in (tmp_path / "one").rglob("run.trec"):
        damaged(path)
    grid(collection, encoder, address).execute(machine("one"))
    assert values(tmp_path / "one") == before
    assert encoder.asked == []


def test_damaged_vectors_are_made_again(tmp_path, address, machine):
    collection, files = write_collection(tmp_path / "data"), fsspec.filesystem("memory")
    grid(collection, Letters(), address).execute(machine("one"))
    paths = [path for path in files.find("/shared") if "vectors.bin" in path]
    assert len(paths) == 1
    files.pipe_file(paths[0], b"x" * files.size(paths[0]))
    second, third, notes = Letters(), Letters(), []
    grid(collection, second, address, 2).complete(
        machine("two"), lambda what, done, total: notes.append(what)
    )
    assert any("vectors" in note and "is damaged in memory://" in note for note in notes)
    assert len(second.asked) > 2
    grid(collection, third, address, 1).execute(machine("three"))
    documents = set(weir.load(str(collection)).corpus.view("title text").tolist())
    assert not documents & set(third.asked)


def test_what_has_no_version_stays_where_it_was_made(tmp_path, address, machine):
    collection = write_collection(tmp_path / "data")
    mine = weir.system(lambda queries, k: {}, name="mine")
    Experiment((str(collection),), (mine, weir.Dense(Letters())), ("AP",), stages=address).execute(
        machine("one")
    )
    assert fsspec.filesystem("memory").find("/shared") == []


def test_a_renamed_collection_of_names_finds_what_is_there(tmp_path, address, machine):
    """What is looked for is the key, not the name: two encoders of one description, under two names."""
    collection, first, second = write_collection(tmp_path / "data"), Letters(), Letters()
    grid(collection, first, address).execute(machine("one"))
    renamed = weir.Dense(weir.encoder(second, version="1"))
    Experiment((str(collection),), (renamed,), ("AP",), stages=address).execute(machine("two"))
    assert second.asked == []


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("s3:/bucket", "expected such as s3://bucket/prefix"),
        ("s3://", "expected such as s3://bucket/prefix"),
        ("s3://key:secret@bucket/x", "credentials where its package looks for them"),
        ("abfs://x/y?sig=secret", "credentials where its package looks for them"),
        ("file:///srv/stages", "named as a folder"),
        ("nothing://bucket/x", "Protocol not known: nothing"),
    ],
)
def test_what_is_no_store_is_one_line(place, said, tmp_path, capsys):
    assert (
        main(["run", "-d", "brook-facts", "-s", "bm25", "-o", str(tmp_path / "out"), "--stages", place]) == 2
    )
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert "secret" not in error
    assert not (tmp_path / "out").exists()


def test_results_stand_in_a_folder(capsys):
    assert main(["run", "-d", "brook-facts", "-s", "bm25", "-o", "s3://bucket/results"]) == 2
    assert "results stand in a folder" in capsys.readouterr().err
    assert not Path("s3:").exists()


def test_addresses_and_folders():
    assert [is_address(place) for place in ("s3://b", "gs://b/c", "memory://x", Path("s3:/b"))] == [True] * 4
    assert [is_address(place) for place in ("stages", "/srv/stages", "C:/stages", "a:b", Path("x"))] == [
        False
    ] * 5


def test_a_store_that_ignores_conditions_is_refused(address, monkeypatch):
    written = type(fsspec.filesystem("memory")).pipe_file
    monkeypatch.setattr(
        "fsspec.implementations.memory.MemoryFileSystem.pipe_file",
        lambda self, path, value, mode="overwrite": written(self, path, value),
    )
    with pytest.raises(StoreError, match="ignores conditional writes"):
        ObjectStore.open(address)
    assert fsspec.filesystem("memory").find("/shared") == []


def test_a_store_without_its_package_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    with pytest.raises(BadValue, match="gcsfs"):
        ObjectStore.open("gs://bucket/x")


@pytest.mark.parametrize("dtype", ["fp32", "int8", "binary"])
def test_vectors_of_a_store_join_another(tmp_path, dtype):
    """What both have is written once; every row has the bytes that it had."""

    def made(at, texts):
        store = RowStore.of(tmp_path / at, {"model": "m"}, dtype)
        letters = Letters()
        return store, encoded_rows(store, TextSource.of(Strings.of(texts)), letters.encode), letters

    _, one, _ = made("one", ["a weir", "a stream", "a weir", "a dam"])
    one.export(tmp_path / "out")
    store, _, _ = made("two", ["a lake", "a dam"])
    store.take_in(tmp_path / "out")
    store.take_in(tmp_path / "out")
    _, two, letters = made("two", ["a weir", "a stream", "a weir", "a dam"])
    assert letters.asked == []
    assert len(two.snapshot.texts) == 4
    assert np.array_equal(one.block(0, 4), two.block(0, 4))
    shutil.rmtree(tmp_path / "out")
    store.take_in(tmp_path / "out")  # of no texts there is none
    assert one.digest() == two.digest()


def test_rows_of_a_store_join_another(tmp_path):
    def made(at, texts):
        store, asked = RowStore.of(tmp_path / at, {"model": "m"}, RAW, 1), []

        def encode(some):
            asked.extend(some)
            rows = np.frombuffer("".join(some).encode(), np.uint8).reshape(-1, 1)
            return Ragged(offsets(np.array([len(text) for text in some])), rows)

        return store, encoded_rows(store, TextSource.of(Strings.of(texts)), encode), asked

    texts = ["a weir", "", "a stream", "a weir", "dam"]
    _, one, _ = made("one", texts)
    one.export(tmp_path / "out")
    store, _, _ = made("two", ["a lake", "dam"])
    store.take_in(tmp_path / "out")
    _, two, asked = made("two", texts)
    assert asked == []
    assert len(two.snapshot.texts) == 5
    for part in ("ptr", "values"):
        assert getattr(one.rows(0, 5), part).tolist() == getattr(two.rows(0, 5), part).tolist()
