"""Whatever the store held before, and wherever a process was killed: the bytes are those of an undisturbed encoding."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural import late_checkpoint
from tests.neural.conftest import WORDS, sentence_transformer
from weir.core.corpus import Corpus
from weir.core.strings import Strings
from weir.settings import settings
from weir.systems import dense_search as dense
from weir.systems import parse_system
from weir.systems.protocol import Context
from weir.systems.vectors.journal import hash_texts, locked_store
from weir.systems.vectors.store import RowStore

pytestmark = pytest.mark.filterwarnings("default")

COUNT, SIZE = 61, 8
made, colbert = late_checkpoint.made, late_checkpoint.colbert


@pytest.fixture
def corpus():
    rng = np.random.default_rng(7)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.integers(0, 40, COUNT)]
    return Corpus.of({f"d{i}": text for i, text in enumerate([*texts, *texts[3:9]])})


@pytest.fixture(params=["torch fp32", "torch bf16", "transformers fp32", "openvino fp32", "openvino int8"])
def system(request, checkpoint_of, tmp_path, monkeypatch):
    engine, dtype = request.param.split()
    for name in ("openvino", "nncf") if engine == "openvino" else ():
        pytest.importorskip(name, reason=f"needs the `neural` extra ({name})")
    monkeypatch.setitem(dense.BATCH_TEXTS, "cpu", SIZE)
    folder = sentence_transformer(shutil.copytree(checkpoint_of("bert"), tmp_path / "bert"))
    return parse_system(f'dense("{folder}", engine="{engine}", dtype="{dtype}", batch_tokens=60)')


@pytest.fixture
def fresh_home(tmp_path, monkeypatch):
    """A function: from here on Weir's home is an empty folder of this name; what was quantised is there already."""

    def change(name):
        before = settings().home / "openvino"
        monkeypatch.setenv("WEIR_HOME", str(tmp_path / name))
        settings.cache_clear()
        if before.is_dir():
            shutil.copytree(before, tmp_path / name / "openvino")
        return tmp_path / name

    return change


def files(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.glob("vectors/*/*.bin")}


def test_killed_after_any_block_it_ends_with_the_same_files(system, corpus, fresh_home):
    home = fresh_home("whole")
    blocks: list[int] = []
    system.index(corpus, Context(progress=lambda done, _: blocks.append(done)))
    whole = files(home)
    assert len(blocks) == -(-COUNT // SIZE)
    for killed in range(1, len(blocks), 2):
        home = fresh_home(f"killed {killed}")
        calls = iter(range(len(blocks)))

        def stop(*_: int, calls=calls, killed=killed) -> None:
            if next(calls) == killed:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            system.index(corpus, Context(progress=stop))
        assert len(files(home)["texts.bin"]) == 16 * SIZE * killed
        system.index(corpus)
        assert files(home) == whole


@pytest.mark.parametrize("step", [2, 3, 7])
def test_whatever_was_there_before_a_text_gets_the_same_bytes(system, corpus, fresh_home, step):
    fresh_home("whole")
    whole = system.index(corpus).documents.stored
    home = fresh_home("some of it")
    (folder,) = (home.parent / "whole" / "vectors").iterdir()
    about = json.loads((folder / "store.json").read_text())["about"]
    here = RowStore.of(home / "vectors", {name: value for name, value in about.items() if name != "stored"})
    assert here.folder.name == folder.name
    some = np.arange(1, COUNT, step)
    texts = [t.encode() for t in Strings.of(corpus.view("title text").tolist()).take(some).tolist()]
    with locked_store(here.folder):
        here.add(hash_texts(texts), whole.take(some))
    found = system.index(corpus)
    assert found.reused >= len(some)
    assert np.array_equal(found.documents.stored.values, whole.values)


def test_token_vectors_too(corpus, fresh_home, monkeypatch, colbert):
    from weir.plugins.encoders import late_interaction as late

    monkeypatch.setitem(late.BATCH_TEXTS, "cpu", SIZE)
    folder, _, _ = colbert()
    for engine in ("torch", "transformers"):
        system = parse_system(f'colbert("{folder}", engine="{engine}", batch_tokens=60)')
        home = fresh_home(f"whole {engine}")
        system.index(corpus)
        whole = files(home)
        home = fresh_home(f"killed {engine}")
        calls = iter(range(99))

        def stop(*_: int, calls=calls) -> None:
            if next(calls) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            system.index(corpus, Context(progress=stop))
        system.index(corpus)
        assert files(home) == whole
