"""Make the golden vectors of weir.plugins.conform: inputs from scripts/vector_cases, answers from the oracle.

`python scripts/make_vectors.py` writes them; with --check it exits with 1 where a file would change.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from weir.plugins.conform.vectors import Vector, to_text, with_answers  # noqa: E402 - after the path of the cases

FOLDER = ROOT / "src" / "weir" / "conform" / "vectors"
# Name of a group -> the module of scripts/vector_cases that writes its inputs.
GROUPS = {
    "binary": "binary",
    "drawn": "drawn",
    "examples": "examples",
    "fractions": "fractions",
    "grades": "grades",
    "ideal-and-cut": "ideal",
    "identifiers": "identifiers",
    "incomplete": "incomplete",
    "missing-queries": "missing",
    "order": "order",
    "refused": "refused",
    "restricted": "restricted",
    "self-matches": "selfmatch",
    "ties": "ties",
}


def group(name: str) -> tuple[str, list[Vector]]:
    """What a group is about and its vectors with their answers."""
    written = importlib.import_module(f"vector_cases.{GROUPS[name]}")
    members = [with_answers(_tagged(replace(v, group=name))) for v in written.cases()]
    wrong = [v.id for v in members if (v.error is None) == (name == "refused")]
    if wrong or len({v.id for v in members}) < len(members):
        raise SystemExit(f"group {name}: refused or answered against expectation, or named twice: {wrong}")
    return written.ABOUT, members


def _tagged(v: Vector) -> Vector:
    """The conventions that differ from the usual ones, as tags, and whether scores tie or queries miss."""
    usual = type(v.case.conventions)()
    tags = [f"{key}={value}" for key, value in vars(v.case.conventions).items() if value != vars(usual)[key]]
    tags += [name for name in ("candidates", "excluded") if vars(v.case)[name]]
    if any(len({s for _, s in row}) < len(row) for row in v.case.run.values()):
        tags.append("ties")
    if any(row and not v.case.run.get(q) for q, row in v.case.qrels.items()):
        tags.append("unanswered")
    if any(grade not in (0, 1) for row in v.case.qrels.values() for _, grade in row):
        tags.append("graded")
    if any(grade < 0 for row in v.case.qrels.values() for _, grade in row):
        tags.append("negative-grades")
    return replace(v, tags=tuple(tags))


def texts() -> dict[str, str]:
    """The files by name."""
    return {f"{name}.json": to_text(name, *group(name)) for name in GROUPS}


def main(check: bool) -> int:
    stale = 0
    for name, text in texts().items():
        path = FOLDER / name
        same = path.exists() and path.read_text(encoding="utf-8") == text
        stale += not same
        if not check and not same:
            path.write_text(text, encoding="utf-8")
        print(f"{name}: {text.count(chr(10)) - 2} vectors{'' if same else ', changed'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
