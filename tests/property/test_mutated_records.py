"""Records of anybody's: whatever stands in one, sealed rightly, every command that reads it ends well or in one line."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.experiment.stages import Stage, _digest
from weir.files.integrity import SEAL, _checksum

WRONG = (None, True, False, 0, -1, 7, 0.5, -1e308, float("nan"), float("inf"), 10**90, "", "a", "\ud800", "a\0b", "\n",
         "../../../../etc/passwd", "/etc/passwd", "1" * 5000, [], {}, [[]], [None], {"a": None}, {"": {}}, "x" * 70_000)  # fmt: skip
DIGITS = "0123456789012345678901234567890123456789"
COMMANDS = (
    "results {}", "results {} --per-query", "compare {}", "audit {}", "verify {}", "report {} -o {}.html",
    "labels pool {} -o {}.pool", "study efficiency {}", "submit pack {} -o {}.zip", "data export {} --to hub -o {}.out",
    "data export {} --to mteb -o {}.out", "data export {} --to ranx -o {}.out", "study reproduce {}", "gate {} {} -s bm25", "study factors {}",
    "study cite {}",
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) within a JSON value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in list(entries):
        yield value, key
        yield from places(inner)


def mutated(value: Any, rng: random.Random) -> Any:
    """A value with an entry replaced, removed or renamed."""
    value = copy.deepcopy(value)
    parts = [key for key in value if key not in ("format", "check", "seal")]
    part = rng.choice(parts)
    inside, key = rng.choice([(value, part), *places(value[part])])
    what = rng.random()
    if what < 0.15:
        del inside[key]
    elif what < 0.25 and isinstance(inside, dict):
        inside[rng.choice(("\ud800", "a\0b", "", "../x", "x" * 5000))] = inside.pop(key)
    else:
        inside[key] = rng.choice(WRONG)
    return value


def resealed(path: Path, value: Any) -> None:
    """Write a record with the checksums that it should have, as somebody does who forges one."""
    if isinstance(value, dict) and "check" in value:
        value = {name: one for name, one in value.items() if name != "check"}
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            value["key"] = Stage(value["stage"], value["name"], value["declared"]).key
            value["check"] = _digest(value)
    elif isinstance(value, dict) and SEAL in value:
        value = {name: one for name, one in value.items() if name != SEAL}
        value[SEAL] = _checksum(value) if "\ud800" not in str(value) else "0"
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mine") / "results"
    weir.benchmark(["brook-facts"], ["bm25", "rm3"], ["nDCG@10", "RR"], out=folder)
    return folder
