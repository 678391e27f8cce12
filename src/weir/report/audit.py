"""Audits as text and JSON: findings, the worst first."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from weir.audit import CHECKS, Audit, Finding
from weir.core.rounding import counted
from weir.core.tables import Cell, Table, columns, paragraph
from weir.errors import printable

SYSTEMS_SHOWN = 5
"""Systems of which something is told by one finding, at most."""


def audit_text(audits: Sequence[Audit], width: int | None = None) -> str:
    """Findings of each subject, a paragraph each: severity and check, what was found, examples, what to do.

    What was found of several systems is one paragraph.
    """
    return "\n\n".join(_one(audit, width) for audit in audits)


def audit_html(audits: Sequence[Audit]) -> str:
    """The same as tables of HTML, a line for each finding."""
    header = ("severity", "check", "system", "finding", "such as", "do")
    tables = []
    for audit in audits:
        rows = tuple(
            tuple(map(Cell, (f.severity, f.check, f.system, f.statement, "; ".join(f.examples), f.remedy)))
            for f in audit.findings
        )
        skipped = "; ".join(f"{name} (needs {what})" for name, what in audit.left_out)
        notes = (f"skipped: {skipped}",) if skipped else ()
        tables.append(Table(audit.subject, header, rows, notes, keys=len(header)))
    return "\n".join([*(table.html() for table in tables[:1]), *(table.html_body() for table in tables[1:])])


def audit_json(audits: Sequence[Audit]) -> str:
    """One JSON object for each finding, numbers at full precision."""
    rows = []
    for audit in audits:
        for finding in audit.findings:
            numbers = {n: None if math.isnan(v) else v for n, v in finding.numbers}
            rows.append(json.dumps(asdict(finding) | {"numbers": numbers}, ensure_ascii=False))
    return "\n".join(rows)


def checks_text(width: int | None) -> str:
    """Every check, what it needs and what it looks for."""
    lines = [["check", "needs", "looks for"]]
    lines += [
        [c.name, ", ".join(c.needs) + (" of each of several" if c.comparing else ""), c.summary]
        for c in (CHECKS.get(name) for name in CHECKS)
    ]
    return columns(lines, width=width)


def _one(audit: Audit, width: int | None) -> str:
    found, ran = counted(len(audit.findings), "finding"), counted(len(audit.ran), "check")
    lines = [f"{printable(audit.subject)}: {found} of {ran}"]
    for (severity, check, remedy, several), told in groupby(audit.findings, _kind):
        same = list(told)
        for part in [same] if several else [[finding] for finding in same]:
            lines += ["", *_told(f"{severity}: {check}", part, width)]
            if remedy:
                lines.append(paragraph("  do: " + remedy, width))
    if audit.left_out:
        said = "; ".join(f"{name} (needs {what})" for name, what in audit.left_out)
        lines += ["", paragraph(f"skipped: {said}", width)]
    return "\n".join(lines)


def _kind(finding: Finding) -> tuple[str, str, str, bool]:
    """What is told once of all systems: severity, check and remedy; whether it is of a system."""
    return finding.severity, finding.check, finding.remedy, bool(finding.system)


def _told(heading: str, findings: Sequence[Finding], width: int | None) -> list[str]:
    """One finding, or what was found of several systems: equal statements once, else a line for each system."""
    systems: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in findings:
        systems.setdefault((one.statement, one.examples), []).append(one.system)
    if len(systems) == 1:
        [((statement, examples), names)] = systems.items()
        of = f"{', '.join(names)}: " if names != [""] else ""
        return [paragraph(f"{heading}: {of}{statement}", width), *_examples("  ", examples, width)]
    lines = [paragraph(f"{heading}, of {len(findings)} systems:", width)]
    for (statement, examples), names in list(systems.items())[:SYSTEMS_SHOWN]:
        lines.append(paragraph(f"  {', '.join(names)}: {statement}", width))
        lines += _examples("    ", examples, width)
    left = sum(map(len, list(systems.values())[SYSTEMS_SHOWN:]))
    return [*lines, f"  and {left} more, which --json shows"] if left else lines


def _examples(indent: str, examples: Sequence[str], width: int | None) -> list[str]:
    return [paragraph(f"{indent}such as: " + "; ".join(examples), width)] if examples else []
