"""Stages: indexes, rankings and scores on disk, each with a key and a record."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import re
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import numpy as np

from weir.algorithms import ALGORITHMS
from weir.core.scores import Row, Scores
from weir.errors import FormatError, StoreError, is_shortage
from weir.files.atomic import UNPORTABLE, write_json
from weir.files.integrity import Checksum, checksums_read, verify_files
from weir.files.json_record import parse_json
from weir.files.text_files import check_record
from weir.measures import Measure
from weir.models.hardware import package_version
from weir.registry import checkpoint_of
from weir.settings import settings

# ----------
# The cost of a stage while it is made: seconds, peak memory, requests to services, the stages it used.


COUNTED = ("seconds", "compile_seconds", "requests", "texts", "tokens", "answer_tokens")


@dataclass
class Making:
    """Costs and inputs of a stage (index, rankings or scores) being computed."""

    own: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0.0))
    """Counts of its own work, without the stages made within it."""
    elsewhere: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0.0))
    """Counts of the stages made within it."""
    prepared: float = 0.0
    """Seconds in which its kernels were compiled or loaded before it began."""
    peak_mb: float = 0.0
    """Peak resident memory of the process."""
    inputs: dict[tuple[str, str], None] = field(default_factory=dict)
    """The stages it used, as (kind, folder)."""
    objects: dict[str, object] = field(default_factory=dict)
    """A user's objects in its system, by name."""
    in_memory: dict[str, dict[str, object]] = field(default_factory=dict)
    """{key: documents and cost} of the indexes that it used in memory."""

    def cost(self) -> dict[str, object]:
        """Return {figure: value}: seconds without compilation, peak megabytes, seconds of compilation and API
        use unless 0.
        """
        compiling = self.own["compile_seconds"]
        compiled = self.prepared + compiling
        figures: dict[str, object] = {
            "seconds": max(self.own["seconds"] - compiling, 0.0),
            "peak_mb": self.peak_mb,
        }
        figures |= {"compile_seconds": compiled} if compiled else {}
        if self.own["requests"]:
            api = {name: self.own[name] for name in ("requests", "texts", "tokens")}
            answer_tokens = self.own["answer_tokens"]
            from weir.services.requests import Limits

            dollars = Limits.of(settings()).cost(int(api["tokens"]), int(answer_tokens))
            api |= {"answer_tokens": answer_tokens} if answer_tokens else {}
            figures["api"] = api | ({} if dollars is None else {"dollars": dollars})
        return figures


@dataclass(frozen=True, eq=False)
class Stopwatch:
    """The stages being computed, innermost last, with their costs."""

    at_work: list[Making] = field(default_factory=list)

    def used(self, kind: str, folder: str) -> None:
        """Record that the stage being computed, if any, uses the stage in `folder`."""
        if self.at_work:
            self.at_work[-1].inputs[kind, folder] = None

    def used_in_memory(self, key: str, cost: dict[str, object]) -> None:
        """Record that the stage being computed, if any, uses this index in memory."""
        if self.at_work:
            self.at_work[-1].in_memory[key] = cost

    @contextmanager
    def making(self) -> Iterator[Making]:
        """Yield the growing costs of a stage that the block computes; only code within `timed` counts."""
        one, begun = Making(), _counts()
        self.at_work.append(one)
        try:
            yield one
        finally:
            self.at_work.pop()
            if self.at_work:
                _add(self.at_work[-1].elsewhere, begun)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the block's time for the stage being computed, without stages within it."""
        one, begun = self.at_work[-1], _counts()
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii", newline="\n")
        before = dict(one.elsewhere)
        try:
            yield
        finally:
            _add(one.own, begun)
            for name in COUNTED:
                one.own[name] -= one.elsewhere[name] - before[name]
            one.peak_mb = max(one.peak_mb, _peak_mb())

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Leave the block's time out of the costs, but record the stages that it uses."""
        with self.making() as one:
            yield
        for kind, folder in one.inputs:
            self.used(kind, folder)


def _counts() -> dict[str, float]:
    jit, requests = sys.modules.get("weir.kernels.jit"), sys.modules.get("weir.services.requests")
    spent = None if requests is None else requests.paid()
    return {
        "seconds": time.perf_counter(),
        "compile_seconds": 0.0 if jit is None else float(jit.spent()),  # or loading compiled kernels
        **({} if spent is None else {name: getattr(spent, name) for name in COUNTED[2:]}),
    }


def _add(total: dict[str, float], begun: dict[str, float]) -> None:
    for name, now in _counts().items():
        total[name] += now - begun.get(name, 0.0)


def _peak_mb() -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").split("\n"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# ----------
# The environment of a stage: code, packages, machine and time.


PACKAGES = {
    "numpy": "numpy",
    "numba": "numba",
    "llvmlite": "llvmlite",
    "Stemmer": "PyStemmer",
    "pyarrow": "pyarrow",
    "orjson": "orjson",
    "faiss": "faiss-cpu",
}
"""Module -> distribution of the packages that Weir itself imports and that can affect a number of any stage."""
MODEL_PACKAGES = {
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
    "openvino": "openvino",
    "nncf": "nncf",
    "onnxruntime": "onnxruntime",
    "ctranslate2": "ctranslate2",
}
"""Likewise of the packages that compute models."""
CPU_FLAGS = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")
"""Features of the processor that decide which instructions run."""


def current_environment(stage: Stage, objects: Mapping[str, object]) -> dict[str, object]:
    """Return time, machine and package versions, for a stage's record; `objects` are the user's, by name."""
    jit = sys.modules.get("weir.kernels.jit")
    compiled = (
        {"numba", "llvmlite"} if jit is not None and jit.spent() > 0 else set()
    )  # kept code is theirs too
    taken_part = compiled | set(sys.modules)
    packages, anything = _packages_of(map(_path, objects.values()))
    asked = PACKAGES | (MODEL_PACKAGES if stage.engines or anything else {})
    packages = {name: None for module, name in asked.items() if module in taken_part} | packages
    return {
        "when": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "weir": package_version("weir-ir"),
        "code": code_digest(),
        "packages": {name: package_version(name) for name in packages},
        **({"objects": {name: _described(one) for name, one in objects.items()}} if objects else {}),
        "python": platform.python_version(),
        "unicode": unicodedata.unidata_version,
        "system": f"{platform.system()} {platform.machine()}",
        **_processor(),
        "cores": os.cpu_count(),
        "threads": settings().threads,
    }


def _path(given: object) -> str:
    named: Any = given if inspect.isroutine(given) else type(given)
    return f"{named.__module__}.{named.__qualname__}"


def _described(given: object) -> dict[str, str]:
    checkpoint = checkpoint_of(given)
    return {"class": _path(given)} | ({"checkpoint": checkpoint} if checkpoint else {})


def _packages_of(paths: Iterable[str]) -> tuple[dict[str, None], bool]:
    modules = [path.partition(".")[0] for path in paths]
    if not modules:
        return {}, False
    found, anything = dict[str, None](), False
    modules_of: dict[str, list[str]] = {}
    by_module = packages_distributions()
    for module, distributions in by_module.items():
        for one in distributions:
            modules_of.setdefault(_normal(one), []).append(module)
    for module in modules:
        own = by_module.get(module, [])
        anything |= not own
        for distribution in own:
            asked = [one for one in requires(distribution) or () if "extra ==" not in one]
            names = [re.split(r"[^A-Za-z0-9._-]", one)[0] for one in asked]
            loaded = [
                one for one in names if any(name in sys.modules for name in modules_of.get(_normal(one), ()))
            ]
            anything |= not {*loaded}.isdisjoint(MODEL_PACKAGES.values())
            found |= dict.fromkeys([distribution, *loaded])
    return found, anything


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


@cache
def code_digest() -> str:
    """Return a hash of Weir's source files."""
    digest, root = hashlib.blake2b(digest_size=8), Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def _processor() -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return {"processor": platform.processor(), "instructions": "unknown"}
    pairs = (line.partition(":") for line in lines)
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    flags = set(facts.get("flags", facts.get("Features", "")).split())
    instructions = " ".join(flag for flag in CPU_FLAGS if flag in flags)
    return {"processor": facts.get("model name", platform.processor()), "instructions": instructions}


# ----------
# Stages, each a folder under a key, with a record that is never rewritten.
#
# Only what was declared decides the key. The environment (versions, machine, engine, time) stands beside it in the
# record.


FORMAT = 2
RECORD = "stage.json"
NAMES = frozenset({"system", "reranker"})
"""Entries of a description that contain a name with its settings, which are also separate entries."""
KEY_BYTES = 5
SLUG_LETTERS = 80


@dataclass(frozen=True, eq=False)
class Stage:
    """The description of an index, rankings or scores, which may not exist yet."""

    kind: str
    """"index", "run" or "scores"."""
    name: str
    """For readers and folders; not part of the key."""
    declared: Mapping[str, Any]
    """Everything that decides the result."""

    @cached_property
    def _parts(self) -> tuple[object, tuple[str | None, ...]]:
        engines: list[str | None] = []
        return _plain(dict(self.declared), engines), tuple(dict.fromkeys(engines))

    @property
    def decisive(self) -> object:
        """The part of the description that decides the key, without engines and names."""
        return self._parts[0]

    @property
    def engines(self) -> tuple[str | None, ...]:
        """The engines that compute the stage; None for one that is not installed here."""
        return self._parts[1]

    @cached_property
    def key(self) -> str:
        """A hash of everything that decides the result."""
        text = json.dumps([FORMAT, self.kind, self.decisive], sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode("utf-8"), digest_size=KEY_BYTES).hexdigest()

    @cached_property
    def folder_name(self) -> str:
        """Name, key and engines in portable characters."""
        parts = [slug(self.name), self.key, *(slug(e, 40) for e in self.engines if e)]
        return "-".join(parts)

    def found(self, root: Path) -> tuple[Path, Record] | None:
        """Return (folder, record) of the stage below `root`; None without an intact record.

        Results of any engine are found if its own is not installed.
        """
        exact = root / self.folder_name
        engines_known = None not in self.engines
        others = [] if engines_known and exact.exists() else sorted(root.glob(f"*-{self.key}*"))
        for folder in [exact, *others]:
            record = record_of(folder)
            if record is not None and self.is_of(record):
                return folder, record
        return None

    def is_of(self, record: Record) -> bool:
        """Return True if a record is of this stage and engine, or of any engine if this one is not installed."""
        same = record.kind == self.kind and record.stage.decisive == self.decisive
        return same and (None in self.engines or record.engines == self.engines)


@dataclass(frozen=True, eq=False)
class Record:
    """A stage's record, written after its files."""

    kind: str
    name: str
    declared: Mapping[str, Any]
    files: Mapping[str, Checksum]
    """By name within the folder."""
    inputs: tuple[tuple[str, str], ...] = ()
    """The stages from which it was made, as (kind, folder relative to the collection's)."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """The environment: versions, machine and time."""
    cost: Mapping[str, Any] = field(default_factory=dict)
    """Seconds, megabytes, requests and the like."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Outcomes, such as numbers of documents or rows of scores."""

    @cached_property
    def stage(self) -> Stage:
        """The description in the record."""
        return Stage(self.kind, self.name, self.declared)

    @property
    def engines(self) -> tuple[str | None, ...]:
        """The engines that computed the stage, such as "numpy"; None for one that is not installed here."""
        return self.stage.engines

    def is_whole(self, folder: Path) -> bool:
        """Return True if every file has its recorded size; contents are not read."""
        try:
            return all((folder / name).stat().st_size == file.bytes for name, file in self.files.items())
        except OSError:
            return False

    def verify(self, folder: Path) -> None:
        """Raise StoreError for a missing or changed file."""
        verify_files(folder, self.files)

    def to_json(self) -> dict[str, object]:
        """Return the record with format, key and checksum."""
        entries = {
            "format": FORMAT,
            "stage": self.kind,
            "name": self.name,
            "key": self.stage.key,
            "declared": self.declared,
            "inputs": [list(one) for one in self.inputs],
            "files": {name: checksum.to_json() for name, checksum in self.files.items()},
            "made": self.made,
            "cost": self.cost,
            "facts": self.facts,
        }
        return {**entries, "check": _digest(entries)}


def setting_changes(before: Stage, now: Stage) -> list[tuple[str, str, str]]:
    """Return (dotted name, text before, text now) of each differing decisive setting; "" for an absent one."""
    one, other = (dict(flattened("", stage.decisive)) for stage in (before, now))
    names = [name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)]
    return [(name, one.get(name, ""), other.get(name, "")) for name in names]


def flattened(name: str, value: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - whatever JSON holds
    """Return the settings in a nested value as (dotted name, text)."""
    if isinstance(value, dict):
        return [
            pair
            for key, inner in value.items()
            for pair in flattened(f"{name}.{key}" if name else key, inner)
        ]
    if isinstance(value, (list, tuple)) and any(isinstance(v, dict) for v in value):
        return [pair for n, inner in enumerate(value, 1) for pair in flattened(f"{name}.{n}", inner)]
    if isinstance(value, (list, tuple)):
        return [(name, ", ".join(map(str, value)))]
    return [(name, "none" if value is None else str(value))]


def write_record(path: Path, record: Record) -> None:
    """Write a stage's record as JSON, atomically; the stage is then valid."""
    write_json(path, record.to_json())


def read_record(path: Path) -> Record:
    """Return the stage record in a file; raises StoreError if missing, damaged, or of another format."""
    try:
        check_record(path)
        return parse_record(path.read_bytes(), path)
    except FormatError as error:
        raise StoreError(str(error)) from None
    except OSError as error:
        if is_shortage(error):
            raise
        raise StoreError(f"{path}: damaged ({type(error).__name__}: {error})") from None


def parse_record(data: bytes, path: Path | str) -> Record:
    """Return the record in JSON; raises StoreError, naming `path`, for damage or another format."""
    try:
        value = parse_json(data, path)
        if not isinstance(value, dict):
            raise StoreError(f"{path}: found a JSON {type(value).__name__}, expected a record of weir run")
        if value.get("format") != FORMAT:
            raise StoreError(f"{path}: format {value.get('format')!r}, expected {FORMAT}; run the grid again")
        entries = {name: one for name, one in value.items() if name != "check"}
        if value.get("check") != _digest(entries):
            raise StoreError(f"{path}: changed since it was written")
        record = Record(
            str(entries["stage"]),
            str(entries["name"]),
            entries["declared"],
            checksums_read(entries["files"]),
            tuple((str(kind), str(folder)) for kind, folder in entries["inputs"]),
            entries["made"],
            entries["cost"],
            entries["facts"],
        )
        if record.stage.key != entries["key"]:
            raise StoreError(f"{path}: its key is not that of what it declares")
        parts = (record.declared, record.made, record.cost, record.facts, record.made.get("packages", {}))
        if not all(isinstance(part, dict) for part in parts):
            raise TypeError("a part of it is no table")
        if any("\0" in folder for _, folder in record.inputs):
            raise ValueError("an input whose name no folder has")
    except FormatError as error:
        raise StoreError(str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"{path}: damaged ({type(error).__name__}: {error})") from None
    return record


def record_of(folder: Path, name: str = RECORD) -> Record | None:
    """Return the stage record in a folder; None without a valid one."""
    try:
        return read_record(folder / name)
    except StoreError:
        return None


def records_in(folder: Path, pattern: str) -> Iterator[tuple[Path, Record]]:
    """Yield (path, record) of valid records that match a glob pattern, sorted."""
    for path in sorted(folder.glob(pattern)):
        record = record_of(path.parent, path.name)
        if record is not None:
            yield path, record


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _plain(value: Any, engines: list[str | None]) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, Mapping):
        entries = {}
        for name, inner in value.items():
            if name == "engine":
                is_name = inner is None or isinstance(inner, str)
                engines.append(inner if is_name else json.dumps(inner, sort_keys=True))
            else:
                entries[str(name)] = first_word(inner) if name in NAMES else _plain(inner, engines)
                if name in NAMES and not isinstance(inner, str):
                    entries[str(name)] = _plain(inner, engines)
        return entries
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(inner, engines) for inner in value]
    return value


def first_word(name: object) -> str:
    """Return the kind of a system: the ASCII letters, digits and "_" that begin its name."""
    return re.split(r"[^A-Za-z0-9_]", str(name).strip(), maxsplit=1)[0]


def slug(text: str, letters: int = SLUG_LETTERS) -> str:
    """Return a text as a portable file name of at most `letters` characters."""
    plain = re.sub(r"[^A-Za-z0-9.=_-]+", "-", text).strip("-.")[:letters].rstrip(".")
    return f"_{plain}" if UNPORTABLE.search(plain) else plain or "unnamed"


# ----------
# Records of scores.


SCORES = "scores-*.json"


def stored_rows(record: Record) -> list[Row]:
    """Return the rows of means in a record of scores."""
    return [Row.of(row) for row in record.facts["rows"]]


def measure_number(measure: Measure) -> int:
    """Return the version number of a measure's algorithm."""
    return ALGORITHMS.get(f"measure {measure.name}", ALGORITHMS["measures"])


def outcome(scores: Scores) -> dict[str, object]:
    """Return numbers of queries, longest ranking and share of tied documents, for the record of scores."""
    return {
        "queries": len(scores.queries),
        "answered": int(np.count_nonzero(scores.answered)),
        "unjudged_queries": scores.ignored,
        "longest": scores.origin.depth,
        "whole": scores.origin.whole,
        "tied_share": scores.tied,
    }
