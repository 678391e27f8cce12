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
from weir.plugins.conform.certificate import Cause, Counts, Summary, grade, summarised, vectors_fingerprint
from weir.plugins.conform.vectors import vectors

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

`weir study conform` asks an evaluation tool {vectors} inputs whose exact answers are known, and explains every
other value. Each measure of an input is a question: {questions} in all. The exact answers come from code that
shares nothing with Weir's measures: plain Python in exact fractions, with logarithms of 60 digits.
`scripts/make_conformance.py` makes this page.

    weir study conform                                     # Weir itself
    weir study conform ranx --python ENV/bin/python        # a tool in an environment of its own
    weir study conform birco --checkout BIRCO/             # BIRCO's program, which was not at hand here
    weir study conform --answers FILE                      # what your own program wrote
    weir study conform --export DIR                        # the inputs, for a program in any language

The exit code is 0 when every value is exact, 1 when one differs, 2 when the tool could not be asked.

| result | means |
|---|---|
| passed | exact to 1e-9 or to the last decimal of a tool that rounds; or input without a right answer was refused |
| differs | another value, or a value where there is none |
| refused | the tool raised an error although there is a right answer |
| not applicable | it has no such measure or convention, or its types cannot hold the input |

Tools are asked with their defaults. A value that differs is not wrong: it is another number under the same name,
and the column *why* names the convention that gives it.
"""
SHOWN_CAUSES = 3
"""Causes of a tool that the page shows, those of most questions; conformance.json holds all."""
ANSWERS = """\
## Answers of another program

`weir study conform --export DIR` writes the inputs as JSON, in 14 groups, with a README that describes their fields
and conventions. Write one JSON object per line and run `weir study conform --answers FILE`:

    {"tool": "mine", "version": "1.0"}
    {"id": "constant-first", "measures": {"nDCG@10": {"mean": 0.38685, "per_query": {"q1": 0.38685}, "decimals": 5}}}
    {"id": "twice-relevant", "measures": {"nDCG@10": {"refused": "document a occurs twice"}}}
    {"id": "expected-constant", "not_applicable": "it cannot average over ties"}

`mean` or `per_query` may be left out, and measures that the program does not have. `decimals` is how many it gives,
where it rounds. A value is right within 1e-9 (of the value, where that is above 1), or within its last decimal. For
an input without a right answer a refusal passes.
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
    return summarised(answers, grade(answers, members))


def page(known: dict[str, Any]) -> str:
    """The page of what is known."""
    summaries = sorted(map(read, known["tools"]), key=lambda s: ORDER.index(s.tool))
    total = summaries[0].total_counts
    questions = total.passed + total.differs + total.refused + total.not_applicable
    lines = [INTRODUCTION.format(vectors=total.vectors, questions=f"{questions:,}"), *overview(summaries)]
    lines += ["", "## Who differs, where and why", ""]
    lines += [f"The {SHOWN_CAUSES} causes of most questions; `docs/conformance.json` holds the others.", ""]
    for one in summaries:
        lines += tool_section(one)
    lines += [ANSWERS]
    return "\n".join(lines).rstrip() + "\n"


def overview(summaries: Sequence[Summary]) -> list[str]:
    """A row for each tool."""
    lines = [
        "| tool | version | vectors passed whole | passed | differs | refused | not applicable |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for s in summaries:
        t = s.total_counts
        lines.append(
            f"| {s.package} | {s.version} | {s.clean} of {s.asked} | {t.passed:,} | {t.differs:,} | {t.refused:,} | "
            f"{t.not_applicable:,} |"
        )
    return lines


def tool_section(s: Summary) -> list[str]:
    """What a tool does otherwise."""
    about = ast.get_docstring(ast.parse((ADAPTERS / f"{s.tool}.py").read_text(encoding="utf-8"))) or ""
    about = about.partition("\n\n")[0]
    if not s.causes:
        return []
    lines = [f"### {s.package} {s.version}", "", f"Asked: {about}", ""]
    lines += ["| questions | | why | example | says | exact |", "|---:|---|---|---|---:|---:|"]
    for c in sorted(s.causes, key=lambda c: -c.questions)[:SHOWN_CAUSES]:
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


def main(arguments: list[str]) -> int:
    known = held()
    current = vectors_fingerprint()
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
