"""An index on disk is as it was written, or it is refused: even where somebody made the checksums fit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from weir.core.corpus import Corpus, Queries
from weir.errors import StoreError
from weir.files.integrity import seal_folder
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS
from weir.systems import BM25, RM3
from weir.systems.lexical.inverted_index import load_index
from weir.systems.protocol import Context

DOCUMENTS = EXHAUSTIVE_DOCUMENTS + 8  # more than are searched without bounds
WORDS = [f"w{i}" for i in range(40)]
QUERIES = Queries.of({"q1": "w0 w1 w2 w39", "q2": "w3"})


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    texts = (" ".join(rng.choice(WORDS, 60)) for _ in range(DOCUMENTS))
    return Corpus.of({f"d{n}": text for n, text in enumerate(texts)})


@pytest.fixture(scope="module")
def index(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("made") / "index"
    RM3().index(corpus, Context(at))
    return at


def changed(index: Path, to: Path, name: str, change) -> Path:
    """The index with another array of that name, under checksums that fit it; its other files are the same ones."""
    shutil.copytree(index, to, copy_function=os.link)
    file = to / f"0-{name}.npy"
    array = np.load(file)
    file.unlink()
    np.save(file, change(array))
    facts = json.loads((to / "index.json").read_text(encoding="utf-8"))
    (to / "index.json").unlink()
    seal_folder(to, "index.json", {n: v for n, v in facts.items() if n not in ("seal", "files")})
    return to


def put(at: int, value: float):
    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[at] = value
        return array

    return change


CHANGES = {
    "order": [put(0, DOCUMENTS), put(0, -1), np.zeros_like, lambda a: a[:-1]],
    "ptr": [put(0, -1), put(3, 10**9), put(-1, 10**9), put(5, 0), lambda a: a[:-1]],
    "low": [put(0, DOCUMENTS), put(7, 2**16 - 1), lambda a: a[::-1].copy()],
    "high": [lambda a: np.ones(3, np.uint16), lambda a: a.astype(np.uint8)],
    "code": [put(0, 255), lambda a: a[:-1]],
    "value": [put(3, np.nan), put(3, -1), put(3, np.inf), lambda a: a[:-1], lambda a: a.astype(np.float64)],
    "levels": [put(0, 10**6), put(3, -7), lambda a: a[:-1]],
    "terms0-ptr": [put(3, 10**9), put(0, -(10**9)), put(-1, 10**9), lambda a: a[:-2]],
    "terms0-data": [lambda a: a[:-1]],
    "top": [put(0, np.nan), put(0, -1), lambda a: a[:, :2].copy()],
    "offset": [put(3, 10**9), put(3, -1), put(0, 5), put(-1, 0), np.zeros_like],
    "peak": [put(3, np.nan), lambda a: a[:-1]],
    "forward-ptr": [put(3, 10**9), put(0, -1), lambda a: a[:-1]],
    "forward-term": [put(0, 10**6), put(0, -1), lambda a: a[:-1]],
    "forward-count": [lambda a: a[:-1], lambda a: a.astype(np.float32)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name, c in CHANGES.items() for n in range(len(c))]
)
def test_no_array_leads_a_search_out_of_it(index, tmp_path, name, number):
    with pytest.raises(
        StoreError, match=rf"the index is damaged \(.*{name.partition('-')[0]}.*; delete it to build"
    ):
        load_index(changed(index, tmp_path / "index", name, CHANGES[name][number]))


def test_every_array_on_disk_is_among_those(index):
    assert {path.stem[2:] for path in index.glob("*.npy")} == set(CHANGES)


def test_lists_as_an_earlier_version_wrote_them_are_made_again(index, corpus, tmp_path):
    at = shutil.copytree(index, tmp_path / "index")
    facts = json.loads((at / "index.json").read_text(encoding="utf-8"))
    (at / "index.json").unlink()
    seal_folder(
        at, "index.json", {n: v for n, v in facts.items() if n not in ("seal", "files")} | {"format": 2}
    )
    with pytest.raises(
        StoreError,
        match=r"made by another version of weir \(format 2, expected 3\); delete it to build it again",
    ):
        RM3().open(corpus, Context(at))
    few = Corpus.of({"a": "w0 w1", "b": "w0"})
    RM3().index(few, Context(tmp_path / "few"))  # as earlier versions wrote it, which read it too
    assert json.loads((tmp_path / "few" / "index.json").read_text(encoding="utf-8"))["format"] == 2


def test_one_changed_byte_anywhere_is_refused(index, corpus, tmp_path):
    at = shutil.copytree(index, tmp_path / "index")
    expected = RM3().open(corpus, Context(at)).search(QUERIES, 10).to_dict()
    rng = np.random.default_rng(1)
    for file in sorted(at.iterdir()):
        data = file.read_bytes()
        for place in rng.integers(0, len(data), 4).tolist():
            file.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
            with pytest.raises(StoreError, match="damaged") as caught:
                RM3().open(corpus, Context(at))
            assert "\n" not in str(caught.value)
        file.write_bytes(data)
    assert RM3().open(corpus, Context(at)).search(QUERIES, 10).to_dict() == expected


def test_other_indexes_are_sound(corpus, tmp_path):
    titled = Corpus.of({f"d{n}": {"title": t[:40], "text": t} for n, t in enumerate(corpus.text)})
    for number, (system, given) in enumerate(
        [
            (BM25("elastic"), titled),
            (BM25("lucene-multifield"), titled),
            (BM25(), Corpus.of({})),
            (RM3(), Corpus.of({"a": "x"})),
        ]
    ):
        made = system.index(given, Context(tmp_path / str(number))).search(QUERIES, 10).to_dict()
        assert system.open(given, Context(tmp_path / str(number))).search(QUERIES, 10).to_dict() == made
