"""How much memory may be taken, and what is refused before it starts."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from weir import settings
from weir.core.corpus import Corpus
from weir.core.strings import Strings
from weir.errors import BadValue
from weir.files import text_files
from weir.files.label_files import read_labels
from weir.files.runs import read_qrels, read_run
from weir.plugins.encoders.maxsim_search import require_memory_for
from weir.settings import half_of_memory, memory_budget, size_of
from weir.systems import parse_system
from weir.systems.vectors import store
from weir.systems.vectors.journal import locked_store
from weir.systems.vectors.store import (
    Codec,
    EncodingBlocks,
    RowStore,
    TextSource,
    encoded_in_memory,
    encoded_rows,
)

MEMINFO = "MemTotal:       16000000 kB\nMemFree: 1 kB\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 << 30), ("512M", 512 << 20), ("1.5 GiB", 3 << 29), ("2000000", 2_000_000), ("3gb", 3 << 30)],
)
def test_sizes(text, size, monkeypatch):
    assert size_of(text) == size
    monkeypatch.setenv("WEIR_MAX_RAM", text)
    assert memory_budget() == settings.MemoryBudget(size, "WEIR_MAX_RAM")


@pytest.mark.parametrize("text", ["4", "-4G", "much", "4X", "0G", "1e9", ""])
def test_what_is_no_size(text):
    with pytest.raises(BadValue, match="expected such as 4G"):
        size_of(text)


def machine(root, groups, limits):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(MEMINFO)
    (root / "proc/self/cgroup").write_text(groups)
    for path, limit in limits.items():
        (root / "sys/fs/cgroup" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "sys/fs/cgroup" / path).write_text(limit)
    return half_of_memory(root)


@pytest.mark.parametrize(
    ("groups", "limits", "least"),
    [
        ("", {}, 16_000_000 * 1024),
        ("0::/a/b\n", {"a/b/memory.max": "max\n"}, 16_000_000 * 1024),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "8000000000\n"}, 8_000_000_000),
        (
            "9:name=systemd:/x\n4:memory:/a\n",
            {"memory/a/memory.limit_in_bytes": "5000000000\n"},
            5_000_000_000,
        ),
        ("4:memory,cpu:/a\n", {"memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 16_000_000 * 1024),
    ],
)
def test_the_least_limit_counts(tmp_path, groups, limits, least):
    assert machine(tmp_path, groups, limits).bytes == least // 2


def test_ulimit_counts():
    code = "from weir.settings import memory_budget; print(memory_budget())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "MemoryBudget(bytes=536870912, source='half of ulimit -v')"


@pytest.mark.parametrize("read", [read_qrels, read_run, read_labels])
def test_json_is_parsed_where_memory_holds_its_values(tmp_path, monkeypatch, read):
    """20,000 values in 0.2 MB take 3 MB as objects, a list of empty ones more: counted before they are parsed."""
    monkeypatch.setenv("WEIR_MAX_RAM", "2M")
    objects = {f"q{n}": {"d": 1} for n in range(10_000)}
    pieces = [json.dumps(objects), json.dumps([[]] * 20_000), json.dumps({"q": [{}] * 20_000})]
    for piece in pieces:
        path = tmp_path / "r.json"
        path.write_text(piece)
        message = r"reading .*r\.json whole needs about 0\.0 GB .* an object on each line \(\.jsonl\) takes less; WEIR_MAX_RAM"
        with pytest.raises(BadValue, match=message):
            read(path)
    monkeypatch.setenv("WEIR_MAX_RAM", "20M")
    (tmp_path / "r.json").write_text(pieces[0])
    assert len(read(tmp_path / "r.json").queries) == 10_000


def test_a_large_json_run_is_held_against_memory_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "HARMLESS_BYTES", 1 << 20)
    monkeypatch.setenv("WEIR_MAX_RAM", "40M")
    with (tmp_path / "r.json").open("wb") as file:
        file.write(b'{"q"')
        file.truncate(24 << 20)
    with pytest.raises(BadValue, match=r"whole needs about 0\.1 GB"):
        read_run(tmp_path / "r.json")


@pytest.mark.parametrize("system", ["bm25", "bm25f"])
def test_an_index_that_memory_does_not_hold_is_refused_before_it_starts(system, monkeypatch):
    monkeypatch.setenv("WEIR_MAX_RAM", "1M")
    corpus = Corpus.of({f"d{n}": "a weir measures a stream " * 50 for n in range(400)})
    with pytest.raises(
        BadValue, match=r"an index of 400 documents in memory needs about .* may be taken \(WEIR_MAX_RAM\)"
    ):
        parse_system(system).index(corpus)


def test_vectors_that_memory_does_not_hold_are_refused_before_they_are_made(tmp_path, monkeypatch):
    made = []

    def encode(texts):
        made.extend(texts)
        return np.ones((len(texts), 4096), np.float32)

    texts = TextSource.of(Strings.of([f"text {n}" for n in range(400)]))
    monkeypatch.setenv("WEIR_MAX_RAM", "2M")
    message = r'keeping 400 vectors in memory as fp32 needs about .*; store="int8" takes fewer bytes; WEIR_MAX_RAM raises'
    with pytest.raises(BadValue, match=message):
        encoded_in_memory(Codec("fp32"), texts, encode, None, EncodingBlocks(10))
    assert len(made) == 10
    assert len(encoded_in_memory(Codec("int8"), texts, encode, None, EncodingBlocks(10))) == 400
    monkeypatch.setenv("WEIR_MAX_RAM", "1M")
    monkeypatch.setattr(store, "LOOKED_UP_BYTES", 1 << 12)
    made.clear()
    for begin in (
        lambda: encoded_in_memory(Codec("int8"), texts, encode, None, EncodingBlocks(10)),
        lambda: encoded_rows(RowStore.of(tmp_path, {"model": "m"}), texts, encode),
    ):
        with pytest.raises(BadValue, match="looking up the vectors of 400 texts"):
            begin()
    assert not made
    assert not list(tmp_path.iterdir())


def test_centroids_that_memory_does_not_hold_are_refused(monkeypatch):
    monkeypatch.setenv("WEIR_MAX_RAM", "4G")
    require_memory_for(10_000_000, 128, 2, lists=True)
    with pytest.raises(
        BadValue, match=r"an index of 900,000,000 token vectors .*candidates=None with bits=0"
    ):
        require_memory_for(900_000_000, 128, 0, lists=True)


SEARCH = """
import resource, sys
import numpy as np
from pathlib import Path
from weir.systems.vectors.exact_search import search
from weir.systems.vectors.store import StoredRows, RowStore

vectors = RowStore.of(Path(sys.argv[1]), {"model": "m"}, "int8")
queries = np.random.default_rng(1).standard_normal((40, 64), dtype=np.float32)
small = StoredRows(vectors.snapshot(), np.arange(2000))
search(small, queries, 10)  # what is compiled is loaded
if sys.argv[2] != "0":
    size = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize:"))) << 10
    limit = size + int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
snapshot = vectors.snapshot()
if sys.argv[3] == "whole":
    StoredRows(snapshot, np.arange(len(snapshot.texts))).values
answers = search(StoredRows(snapshot, np.arange(len(snapshot.texts))), queries, 10)
print(answers.doc.tolist(), answers.score.tolist())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is enforced on Linux")
def test_a_store_is_searched_under_ulimit(tmp_path):
    """20 MB of bytes are mapped, and searched in less memory than the 77 MB of their floats."""
    count, rng = 300_000, np.random.default_rng(0)
    vectors = RowStore.of(tmp_path, {"model": "m"}, "int8")
    numbers = np.arange(count, dtype=np.uint64)
    with locked_store(vectors.folder):
        vectors.add(np.stack([numbers, numbers], axis=1), rng.standard_normal((count, 64), dtype=np.float32))

    def run(limit: int, way: str = "streamed") -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-c", SEARCH, str(tmp_path), str(limit), way]
        return subprocess.run(arguments, capture_output=True, text=True, check=False)

    free, limited = run(0), run(70_000_000)
    assert free.returncode == limited.returncode == 0, limited.stderr
    assert limited.stdout == free.stdout
    assert "MemoryError" in run(70_000_000, "whole").stderr
    assert "0.0 GB cannot be mapped, since `ulimit -v` counts" in run(15_000_000).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is Linux's")
def test_what_lacks_addresses_is_refused_before_it_is_loaded():
    program = (
        "import resource\nfrom weir.settings import require_addresses\n"
        "require_addresses(1 << 40, 'a library')\n"  # no limit, no refusal
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "require_addresses(1 << 20, 'a library')\nrequire_addresses(2 << 30, 'a library', 'take a smaller one')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert re.search(
        r"BadValue: a library needs about 2\.1 GB of addresses; ulimit -v leaves [01]\.\d GB; "
        "take a smaller one, or raise it",
        done.stderr,
    )


SCORED = """
import sys
from pathlib import Path
import numpy as np
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids, Strings
from weir.measures import score_run
queries, hits, size = 10_000, 1_000, 200_000
docs = Ids(Strings.of(f"d{i}" for i in range(size)))
asked = Ids(Strings.of(f"q{i}" for i in range(queries)))
start = (np.arange(queries, dtype=np.int32) * 7919) % size
doc = ((start[:, None] + 7 * np.arange(hits, dtype=np.int32)) % size).astype(np.int32)
judged = doc[:, ::50].ravel().copy()
qrels = Qrels.from_columns(
    asked, docs, np.repeat(np.arange(queries, dtype=np.int32), 20), judged, np.arange(len(judged)) % 4
)
score = np.tile(np.linspace(1, 0, hits), queries)
run = Run.from_columns(asked, docs, np.repeat(np.arange(queries, dtype=np.int32), hits), doc.ravel(), score)
scores = score_run(qrels, run, ["nDCG@10", "nDCG@1000", "R@100", "AP", "RR@10", "P@10", "Judged@10", "Success@5"])
assert scores.of("Judged@10").tolist() == [0.1] * queries
assert "numba" not in sys.modules
# Not ru_maxrss: a process inherits that from the one that started it.
lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_ten_million_hits_are_scored_in_half_a_gigabyte_without_compiling():
    done = subprocess.run([sys.executable, "-c", SCORED], capture_output=True, text=True, check=True)
    assert int(done.stdout) / 1024 < 500


STORED = """
import sys
from pathlib import Path
import numpy as np
from weir.systems.vectors.exact_search import search
from weir.systems.vectors.journal import locked_store
from weir.systems.vectors.store import RowStore, StoredRows

def memory(key):
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(key))) / 1024

store, rng = RowStore.of(Path(sys.argv[1]), {"model": "m"}, sys.argv[2]), np.random.default_rng(8)
with locked_store(store.folder):
    for start in range(0, 160_000, 20_000):
        numbers = np.arange(start, start + 20_000, dtype=np.uint64)
        store.add(np.stack([numbers, numbers], axis=1), rng.standard_normal((20_000, 384), dtype=np.float32))
vectors = StoredRows(store.snapshot(check=False), np.arange(160_000))
queries = rng.standard_normal((50, 384), dtype=np.float32)
few = StoredRows(vectors.snapshot, np.arange(5000))
for asked in (queries, queries[:2]):
    search(few, asked, 100)  # compiles
vectors.release()
for asked in (queries, queries[:2]):
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    search(vectors, asked, 1000)
    print(memory("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int8", "binary"])
def test_exact_search_takes_memory_for_blocks_and_not_for_the_vectors(tmp_path, dtype):
    """Of 234 MB of float32; a million vectors are in benchmarks/."""
    command = [sys.executable, "-c", STORED, str(tmp_path), dtype]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(float(line) < 140 for line in done.stdout.split()), done.stdout
