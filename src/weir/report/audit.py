"""Audits as text and JSON: findings, the worst first."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from weir.audit import CHECKS, Audit
from weir.errors import printable
from weir.report.terminal_layout import columns, paragraph

__all__ = ["audit_json", "audit_text", "checks_text"]


def audit_text(audits: Sequence[Audit], width: int | None = None) -> str:
    """Findings of each subject, a paragraph each: severity and check, what was found, examples, what to do."""
    return "\n\n".join(_one(audit, width) for audit in audits)


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
    count = len(audit.findings)
    lines = [
        f"{printable(audit.subject)}: {count} finding{'' if count == 1 else 's'} of {len(audit.ran)} checks"
    ]
    for finding in audit.findings:
        lines += ["", paragraph(f"{finding.severity}: {finding.check}: {finding.statement}", width)]
        if finding.examples:
            lines.append(paragraph("  such as: " + "; ".join(finding.examples), width))
        if finding.remedy:
            lines.append(paragraph("  do: " + finding.remedy, width))
    if audit.left_out:
        said = "; ".join(f"{name} (needs {what})" for name, what in audit.left_out)
        lines += ["", paragraph(f"not looked at: {said}", width)]
    return "\n".join(lines)
