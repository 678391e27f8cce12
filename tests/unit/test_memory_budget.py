"""How much memory may be taken, and what is refused before it starts."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from weir import settings
from weir.core.corpus import Corpus
from weir.errors import BadValue
from weir.settings import half_of_memory, memory_budget, size_of
from weir.systems import parse_system

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


@pytest.mark.parametrize("system", ["bm25", "bm25f"])
def test_an_index_that_memory_does_not_hold_is_refused_before_it_starts(system, monkeypatch):
    monkeypatch.setenv("WEIR_MAX_RAM", "1M")
    corpus = Corpus.of({f"d{n}": "a weir measures a stream " * 50 for n in range(400)})
    with pytest.raises(
        BadValue, match=r"an index of 400 documents in memory needs about .* may be taken \(WEIR_MAX_RAM\)"
    ):
        parse_system(system).index(corpus)
