"""An index made on disk, by any memory and after any interruption, has the bytes of one made in memory."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.corpus import Corpus
from weir.kernels.inverted import block_bounds, packed
from weir.settings import MemoryBudget
from weir.systems.expression import parse_system
from weir.systems.lexical import bm25, inversion
from weir.systems.lexical.terms import TermTable
from weir.systems.protocol import Context

SYSTEMS = ("bm25", 'bm25("lucene-multifield")', 'bm25("elastic")', "bm25f", "rm3(bm25)")
WORDS = st.sampled_from([*"abcdefgh", "water", "stream", "the", "a-b", "naïve"])
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)
ENOUGH = "1T"


def budget(memory: int) -> Callable[[], MemoryBudget]:
    return lambda: MemoryBudget(memory, "the test")


def corpus_of(rows: list[tuple[str, str]], seed: int) -> Corpus:
    """Documents whose identifiers stand in no order."""
    numbers = np.random.default_rng(seed).permutation(len(rows))
    return Corpus.of(
        {f"d{n}": {"title": title, "text": text} for n, (title, text) in zip(numbers, rows, strict=True)}
    )


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def made_in_memory(system: str, corpus: Corpus, at: Path, patch: pytest.MonkeyPatch) -> dict[str, str]:
    patch.setenv("WEIR_MAX_RAM", ENOUGH)
    parse_system(system).index(corpus, Context(at))
    return digests(at)


@pytest.mark.parametrize("system", SYSTEMS)
@given(
    rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=25),
    seed=st.integers(0, 9),
    memory=st.integers(1, 4000),
    batch=st.integers(1, 200),
    few=st.sampled_from([0, packed.EXHAUSTIVE_DOCUMENTS]),
)
@settings(max_examples=12)
def test_memory_decides_no_byte(system, rows, seed, memory, batch, few):
    corpus = corpus_of(rows, seed)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        root = Path(name)
        patch.setattr(packed, "EXHAUSTIVE_DOCUMENTS", few)  # lists are packed beyond, in groups of terms
        patch.setattr(block_bounds, "_BLOCKED_POSTINGS", 3)
        patch.setattr(bm25, "GROUP_POSTINGS", batch)
        expected = made_in_memory(system, corpus, root / "memory", patch)
        patch.setattr(inversion, "memory_budget", budget(memory))
        patch.setattr(os, "fsync", lambda descriptor: None)  # the disk is not what is tested
        patch.setattr(inversion, "BATCH_BYTES", batch)
        patch.setattr(bm25, "fits_into_memory", lambda corpus: False)
        parse_system(system).index(corpus, Context(root / "disk"))
        assert digests(root / "disk") == expected
        assert sorted(path.name for path in root.iterdir()) == ["disk", "memory"]


@pytest.mark.parametrize("system", SYSTEMS)
@given(
    data=st.data(), seed=st.integers(0, 9), memory=st.integers(1, 2000), seconds=st.sampled_from([0.0, 30.0])
)
@settings(max_examples=8)
def test_an_interrupted_process_goes_on(system, data, seed, memory, seconds):
    rng = np.random.default_rng(seed)
    words = np.array(["water", "stream", "weir", "dam", "level", "flow", "rain"])
    rows = [(" ".join(rng.choice(words, 2)), " ".join(rng.choice(words, 9))) for _ in range(30)]
    corpus = corpus_of(rows, seed)
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        root = Path(name)
        expected = made_in_memory(system, corpus, root / "memory", patch)
        patch.setattr(inversion, "memory_budget", budget(memory))
        patch.setattr(os, "fsync", lambda descriptor: None)  # the disk is not what is tested
        patch.setattr(inversion, "BATCH_BYTES", 200)
        patch.setattr(inversion, "COMMIT_SECONDS", seconds)
        patch.setattr(bm25, "fits_into_memory", lambda corpus: False)
        append, calls = inversion.GrowingFiles.append, [0]

        def interrupted(files, file, values):
            calls[0] -= 1
            if calls[0] == 0:
                raise KeyboardInterrupt
            append(files, file, values)

        patch.setattr(inversion.GrowingFiles, "append", interrupted)
        for _ in range(4):
            calls[0] = data.draw(st.integers(1, 400))
            try:
                parse_system(system).index(corpus, Context(root / "disk"))
            except KeyboardInterrupt:
                patch.setattr(inversion, "memory_budget", budget(data.draw(st.integers(1, 2000))))
                continue
            break
        patch.setattr(inversion.GrowingFiles, "append", append)
        parse_system(system).index(corpus, Context(root / "disk"))
        assert digests(root / "disk") == expected


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_was_committed_is_not_done_again(system, tmp_path, monkeypatch):
    corpus = corpus_of([("water", f"a stream of {n} words") for n in range(40)], 1)
    monkeypatch.setattr(bm25, "fits_into_memory", lambda corpus: False)
    expected = made_in_memory(system, corpus, tmp_path / "memory", monkeypatch)
    monkeypatch.setattr(inversion, "memory_budget", budget(1000))
    monkeypatch.setattr(inversion, "BATCH_BYTES", 1)  # a document at a time
    monkeypatch.setattr(inversion, "COMMIT_SECONDS", 0.0)
    parts, analysed, add = (
        2 if "elastic" in system or "multi" in system or "bm25f" in system else 1,
        [0],
        TermTable.add,
    )

    def stopped(table, texts):
        analysed[0] += len(texts)
        if analysed[0] == 30:
            raise KeyboardInterrupt
        return add(table, texts)

    monkeypatch.setattr(inversion.TermTable, "add", stopped)
    with pytest.raises(KeyboardInterrupt):
        parse_system(system).index(corpus, Context(tmp_path / "disk"))
    parse_system(system).index(corpus, Context(tmp_path / "disk"))
    assert analysed[0] == 40 * parts + 1  # the document at which it was stopped was not committed
    assert digests(tmp_path / "disk") == expected


CHILD = """
import os
import signal
import sys
from pathlib import Path
from weir.core.corpus import Corpus
from weir.systems.expression import parse_system
from weir.systems.lexical import inversion
from weir.systems.protocol import Context

folder, system, killed_at = sys.argv[1], sys.argv[2], int(sys.argv[3])
append, written = inversion.GrowingFiles.append, [0]


def counted(files, name, values):
    written[0] += 1
    if written[0] == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    append(files, name, values)


inversion.GrowingFiles.append = counted
inversion.COMMIT_SECONDS, inversion.BATCH_BYTES = 0.0, 50_000
words = "water stream weir dam level flow rain gauge crest head".split()
rows = {f"d{7919 * n % 20011:05}": " ".join(words[(n * k + k * k) % 10] for k in range(1, 20)) for n in range(8_000)}
parse_system(system).index(Corpus.of(rows), Context(Path(folder)))
print(written[0])
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["bm25", "rm3(bm25)"])
def test_a_killed_process_goes_on(system, tmp_path):
    """Each process is killed at its nth append, n a seventh of all, wherever it goes on from."""

    def built(folder: str, memory: str, killed_at: int = 0) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", CHILD, str(tmp_path / folder), system, str(killed_at)]
        variables = os.environ | {"WEIR_MAX_RAM": memory}
        return subprocess.run(command, env=variables, stdout=subprocess.PIPE, check=False)

    assert built("memory", ENOUGH).returncode == 0
    appends = int(built("whole", "1M").stdout)
    ended = [built("disk", "1M", appends // 7).returncode]
    while ended[-1] == -signal.SIGKILL and len(ended) < 30:
        ended.append(built("disk", "1M", appends // 7).returncode)
    assert len(ended) > 3
    assert ended[-1] == 0
    assert digests(tmp_path / "disk") == digests(tmp_path / "whole") == digests(tmp_path / "memory")


def test_work_of_another_corpus_or_too_short_is_not_used(tmp_path):
    files = inversion.GrowingFiles(tmp_path / "work", {"corpus": "a"})
    files.append("column", np.arange(5))
    files.commit({"documents": 5})
    files.append("column", np.arange(3))  # after the last commit
    files.append("other", np.arange(3))
    files.close()
    again = inversion.GrowingFiles(tmp_path / "work", {"corpus": "a"})
    assert again.facts == {"documents": 5}
    assert again.content("column", np.int64).tolist() == [0, 1, 2, 3, 4]
    assert len(again.content("other", np.int64)) == 0
    (tmp_path / "work" / "column").write_bytes(b"12345678")
    for about in ({"corpus": "a"}, {"corpus": "b"}):
        none = inversion.GrowingFiles(tmp_path / "work", about)
        assert none.facts == {}
        assert len(none.content("column", np.int64)) == 0
