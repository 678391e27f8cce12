"""Make docs/conformance.md from docs/conformance.json, and that from the tools that are installed.

`python scripts/make_conformance.py` writes the page. `... TOOL=PYTHON ...` asks these tools first, each in the Python
of its environment (`weir=` for this one), and keeps what is known of the others. Results hold for the vectors of one
fingerprint: after a change of the vectors every tool must be asked again.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weir.plugins.conform import tools as conform_tools
from weir.plugins.conform.certificate import Cause, Counts, Summary, fingerprint, grade, summary
from weir.plugins.conform.vectors import files, vectors

DOCS = Path(__file__).resolve().parents[1] / "docs"
ADAPTERS = Path(conform_tools.__file__).with_name("adapters")
# First the reference, then what builds on it, then the others.
ORDER = (
    "weir",
    "pytrec_eval",
    "ir_measures",
    "beir",
    "mteb",
    "ranx",
    "sentence_transformers",
    "sklearn",
)
INTRODUCTION = """\
# Conformance

Made by `python scripts/make_conformance.py`. What each tool says of {vectors} inputs whose exact answers are known,
each measure of an input being one question: {questions} in all. The exact answers come from an oracle that shares no
code with Weir's measures: plain Python in exact fractions, with logarithms of 60 digits.

    weir conform                                     # Weir itself
    weir conform ranx --python ENV/bin/python        # a tool in an environment of its own
    weir conform birco --checkout BIRCO/             # BIRCO's program, which is no package; it was not at hand here
    weir conform --answers FILE                      # whatever your own program wrote
    weir conform --export DIR                        # the vectors, for any program in any language

The exit code is 0 when every value is exact, 1 when one differs, 2 when the tool could not be asked.

*Passed*: the value is exact, to 1e-9 or to the last decimal of a tool that rounds; or input without a right answer
was refused. *Differs*: another value, or a value where there is none. *Refused*: the tool raised an error although
there is a right answer. *Not applicable*: it has no such measure, offers no such convention, or its types cannot hold
the input. Tools are asked with their defaults. That a value differs from the usual conventions here does not make
it wrong: it makes it another number under the same name, and the column *why* names the convention that gives it.
"""


def held() -> dict[str, Any]:
    """What is known of the tools."""
    path = DOCS / "conformance.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"tools": []}
    return found


def read(raw: dict[str, Any]) -> Summary:
    """A summary as it was stored."""
    counts, causes = (
        tuple(Counts(**c) for c in raw["counts"]),
        tuple(Cause(**c) for c in raw["causes"]),
    )
    return Summary(**{**raw, "counts": counts, "causes": causes})


def asked(tool: str, python: str | None) -> Summary:
    """The summary of a tool, asked now."""
    members = vectors()
    answers = conform_tools.ask(tool, members, python)
    return summary(answers, grade(answers, members))


def page(known: dict[str, Any]) -> str:
    """The page of what is known."""
    summaries = sorted(map(read, known["tools"]), key=lambda s: ORDER.index(s.tool))
    total = summaries[0].total
    questions = total.passed + total.differs + total.refused + total.not_applicable
    lines = [INTRODUCTION.format(vectors=total.vectors, questions=f"{questions:,}"), *overview(summaries)]
    lines += ["", "## Questions passed, of those a tool can be asked", "", *by_group(summaries)]
    lines += ["", "## Who differs, where and why", ""]
    for one in summaries:
        lines += tool_section(one)
    lines += [
        "## The groups",
        "",
        *groups_table(),
        "",
        files()["README.md"].replace("\n## ", "\n### ").replace("# The", "## The", 1),
    ]
    return "\n".join(lines).rstrip() + "\n"


def overview(summaries: Sequence[Summary]) -> list[str]:
    """A row for each tool."""
    lines = [
        "| tool | version | vectors passed whole | passed | differs | refused | not applicable |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for s in summaries:
        t = s.total
        lines.append(
            f"| {s.package} | {s.version} | {s.clean} of {s.asked} | {t.passed:,} | {t.differs:,} | {t.refused:,} | "
            f"{t.not_applicable:,} |"
        )
    return lines


def by_group(summaries: Sequence[Summary]) -> list[str]:
    """A row for each group, a column for each tool."""
    lines = [
        "| group | " + " | ".join(s.package for s in summaries) + " |",
        "|---|" + "---:|" * len(summaries),
    ]
    for rows in zip(*(s.counts for s in summaries), strict=True):
        lines.append(f"| {rows[0].group} | " + " | ".join(map(cell, rows)) + " |")
    return lines


def cell(c: Counts) -> str:
    """Passed of asked; a dash where nothing could be asked."""
    asked_of = c.passed + c.differs + c.refused
    return f"{c.passed}/{asked_of}" if asked_of else "-"


def tool_section(s: Summary) -> list[str]:
    """What a tool does otherwise."""
    about = ast.get_docstring(ast.parse((ADAPTERS / f"{s.tool}.py").read_text(encoding="utf-8"))) or ""
    lines = [f"### {s.package} {s.version}", "", f"Asked: {about}", ""]
    if not s.causes:
        return [*lines, "Every value is exact.", ""]
    lines += ["| questions | | why | example | says | exact |", "|---:|---|---|---|---:|---:|"]
    for c in s.causes:
        where = f"`{c.vector}`, {c.measure}" + (f", {c.query}" if c.query else "")
        says = short(c.found) if c.kind == "differs" else ""
        why = c.why if c.kind == "differs" else f"`{c.why}`"
        lines.append(f"| {c.questions} | {c.kind} | {why} | {where} | {says} | {short(c.exact)} |")
    return [*lines, ""]


def short(number: str) -> str:
    """A number as a reader takes it in; fractions stay."""
    if not number or "/" in number or len(number) <= 7:
        return number
    return f"{float(number):.5f}"


def groups_table() -> list[str]:
    """What each group of vectors is about."""
    lines = ["| group | vectors | about |", "|---|---:|---|"]
    for name, text in files().items():
        if name.endswith(".json"):
            group = json.loads(text)
            lines.append(f"| {group['group']} | {len(group['vectors'])} | {group['about']} |")
    return lines


def main(arguments: list[str]) -> int:
    known = held()
    current = fingerprint()
    stored = {raw["tool"]: raw for raw in known["tools"] if known.get("vectors") == current}
    for argument in arguments:
        tool, _, python = argument.partition("=")
        stored[tool] = asdict(asked(tool, python or None))
        print(f"{tool}: {stored[tool]['clean']} of {stored[tool]['asked']} vectors")
    if set(stored) != set(ORDER):
        print(
            f"to be asked for these vectors: {', '.join(t for t in ORDER if t not in stored)}",
            file=sys.stderr,
        )
        if not stored:
            return 1
    known = {"vectors": current, "tools": [stored[tool] for tool in ORDER if tool in stored]}
    (DOCS / "conformance.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    (DOCS / "conformance.md").write_text(page(known), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
