"""Findings, the registry of checks, and audits."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from weir.core.frames import json_value
from weir.core.results import ResultKind, member_html, member_text
from weir.core.rounding import counted
from weir.core.subject import Subject
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue, printable
from weir.files.text_files import Watch
from weir.registry import Registry

Severity: TypeAlias = Literal["wrong", "serious", "caution", "note"]
"""wrong: a reported number is not what it claims to be; serious: conclusions may change; caution: report this with
the number; note: for the record."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
EXAMPLES_SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """A defect or fact that a check found."""

    severity: Severity
    statement: str
    """A sentence with the numbers in it."""
    remedy: str = ""
    """The next thing to do."""
    numbers: tuple[tuple[str, float], ...] = ()
    """(name, number) for each number, at full precision."""
    examples: tuple[str, ...] = ()
    """A few ids or texts."""
    check: str = ""
    """Name of the check; `audited` sets it, `subject` and `source`."""
    subject: str = ""
    source: str = ""
    """Publication of the check, or ""."""
    system: str = ""
    """System that it is about; "" if about none or several."""


CheckFunction = TypeVar("CheckFunction", bound=Callable[..., Iterable[Finding]])


@dataclass(frozen=True)
class Check:
    """A registered check: its function, and the parts of a subject that it needs."""

    name: str
    function: Callable[[Any], Iterable[Finding]]
    needs: tuple[str, ...]
    comparing: bool = False
    """True if the function compares several subjects; else it takes one."""

    @property
    def summary(self) -> str:
        """First paragraph of the function's docstring."""
        return (inspect.getdoc(self.function) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def source(self) -> str:
        """Text after "Source:" in the function's docstring; "" if none."""
        text = (inspect.getdoc(self.function) or "").replace("\n", " ")
        match = re.search(r"\bSources?(?: of [^:]*)?: (.*)\.", text)
        return match[1] if match else ""


CHECKS: Registry[Check] = Registry("check")
PART_WORDS = {
    "corpus": "documents",
    "qrels": "judgments",
    "runs": "rankings",
    "training": "training data",
    "encoder": "an encoder",
}
"""Nouns for the parts of a subject that checks need."""


def check(
    name: str, needs: Sequence[str], comparing: bool = False
) -> Callable[[CheckFunction], CheckFunction]:
    """Return a decorator that registers a function from a subject to findings as a check.

    needs: any of "corpus", "queries", "qrels", "runs", "training", "encoder".
    comparing: the function takes several subjects.
    """

    def add_check(function: CheckFunction) -> CheckFunction:
        CHECKS.add(name, Check(name, function, tuple(needs), comparing))
        return function

    return add_check


@dataclass(frozen=True, repr=False)
class Audit:
    """The findings on a subject, worst first."""

    subject: str
    findings: tuple[Finding, ...]
    ran: tuple[str, ...]
    """Names of the checks that ran."""
    left_out: tuple[tuple[str, str], ...]
    """(check, parts that the subject lacks) for each check that did not run."""

    __repr__ = member_text
    _repr_html_ = member_html

    @property
    def worst(self) -> Severity | None:
        """Severity of the worst finding; None without findings."""
        return self.findings[0].severity if self.findings else None


def audited(subject: Subject, only: Iterable[str] = ()) -> Audit:
    """Return an audit of a subject by the named checks, by default all whose needs it meets; none that
    compares subjects.

    Raises UnknownName for an unknown check, BadValue if no check can run.
    """
    return _audit(subject.name, subject, subject.parts, [one for one in _checks(only) if not one.comparing])


def audited_all(
    subjects: Sequence[Subject], only: Iterable[str] = (), progress: Watch | None = None
) -> list[Audit]:
    """Return an audit of each subject by the named checks (default: all), then, of several subjects, one that
    compares them.

    progress: called before each check.

    Raises UnknownName for an unknown check, BadValue if no check can run.
    """
    checks = _checks(only)
    single, comparing = ([one for one in checks if one.comparing == several] for several in (False, True))
    if not single and len(subjects) < 2:
        raise BadValue(f"{comparing[0].name} compares collections; name two or more")
    able = any(one.parts >= {*check.needs} for check in single for one in subjects)
    audits = (
        [_audit(one.name, one, one.parts, single, progress, not able) for one in subjects] if single else []
    )
    everywhere = frozenset.intersection(*(one.parts for one in subjects))
    ready = any(everywhere >= {*check.needs} for check in comparing)
    if comparing and len(subjects) > 1 and (ready or not able):
        together = ", ".join(one.name for one in subjects)
        audits.append(_audit(together, subjects, everywhere, comparing, progress))
    return audits


def _checks(only: Iterable[str]) -> list[Check]:
    return [CHECKS.get(name) for name in (list(only) or CHECKS.names())]


def _audit(
    name: str,
    subject: Subject | Sequence[Subject],
    parts: frozenset[str],
    checks: Sequence[Check],
    progress: Watch | None = None,
    required: bool = True,
) -> Audit:
    missing = {one.name: sorted(set(one.needs) - parts) for one in checks}
    ready = [one for one in checks if not missing[one.name]]
    if required and not ready:
        needs = "; ".join(f"{check} needs {', '.join(lacking)}" for check, lacking in missing.items())
        raise BadValue(f"{name}: no check can run: {needs}")
    findings = []
    for done, one in enumerate(ready):
        if progress is not None:
            progress(f"auditing {name}", done, len(ready))
        findings += [
            replace(f, check=one.name, subject=name, source=one.source, examples=f.examples[:EXAMPLES_SHOWN])
            for f in one.function(subject)
        ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    left_out = tuple((check, ", ".join(lacking)) for check, lacking in missing.items() if lacking)
    return Audit(name, tuple(findings), tuple(one.name for one in ready), left_out)


# Tables.

_FOLDED, _FOLDED_ALONE = (
    5,
    15,
)  # cautions and notes in HTML beyond which they are folded; those of one subject
SYSTEMS_SHOWN = 5
"""Largest number of systems listed in one finding."""


def _records(audit: Audit) -> list[dict[str, object]]:
    return [
        json_value(finding) | {"numbers": json_value(dict(finding.numbers))} for finding in audit.findings
    ]


def _page(audits: Sequence[Audit]) -> tuple[Table, ...]:
    header = ["severity", "check", "system", "finding", "such as", "do"]
    tables = []
    for audit in audits:
        lines = [
            [f.severity, f.check, f.system, f.statement, "; ".join(f.examples), f.remedy]
            for f in audit.findings
        ]
        notes = _skipped(audit)
        tables.append(table_of([header, *lines], keys=len(header), title=audit.subject, notes=notes))
    return tuple(tables)


def _folded_page(audits: Sequence[Audit]) -> tuple[Table, ...]:
    tables = list[Table]()
    for table, audit in zip(_page(audits), audits, strict=True):
        severe = sum(f.severity in ("wrong", "serious") for f in audit.findings)
        rest = len(table.rows) - severe
        if rest <= (_FOLDED_ALONE if len(audits) == 1 else _FOLDED):
            tables.append(table)
            continue
        if severe:
            tables.append(replace(table, rows=table.rows[:severe], notes=()))
        words = f"{rest} cautions and notes" if severe else f"{audit.subject}: {rest} cautions and notes"
        tables.append(replace(table, rows=table.rows[severe:], title="", folded=words))
    return tuple(tables)


def _counts(audit: Audit) -> str:
    ran, skipped = counted(len(audit.ran), "check"), len(audit.left_out)
    lacking = sorted({part for _, parts in audit.left_out for part in parts.split(", ")})
    why = (
        f"; {skipped} skipped for want of {', '.join(PART_WORDS.get(one, one) for one in lacking)}"
        if skipped
        else ""
    )
    return f"{counted(len(audit.findings), 'finding')} by {ran}{why}"


def _skipped(audit: Audit) -> list[str]:
    names = "; ".join(f"{name} (needs {what})" for name, what in audit.left_out)
    return [f"skipped: {names}"] if names else []


def audit_tables(audits: Sequence[Audit]) -> tuple[Table, ...]:
    """Return tables of the findings by subject; a finding of several systems is shown once."""

    def shared_words(finding: Finding) -> tuple[str, str, str, bool]:
        return finding.severity, finding.check, finding.remedy, bool(finding.system)

    tables = []
    for audit in audits:
        tables.append(sentences(f"{printable(audit.subject)}: {_counts(audit)}"))
        for (severity, check, remedy, of_system), group in groupby(audit.findings, shared_words):
            same = list(group)
            for part in [same] if of_system else [[finding] for finding in same]:
                lines = _finding_lines(f"{severity}: {check}", part)
                tables.append(sentences(*lines, *([f"  do: {remedy}"] if remedy else [])))
        tables += [sentences(line) for line in _skipped(audit)]
    return tuple(tables)


AUDITS = ResultKind(
    "audit", Audit, audit_tables, page=_page, html=_folded_page, parts="findings", records=_records
)


def _finding_lines(heading: str, findings: Sequence[Finding]) -> list[str]:
    def examples_line(indent: str, examples: Sequence[str]) -> list[str]:
        return [f"{indent}such as: " + "; ".join(examples)] if examples else []

    systems: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in findings:
        systems.setdefault((one.statement, one.examples), []).append(one.system)
    if len(systems) == 1:
        [((statement, examples), names)] = systems.items()
        of = f"{', '.join(names)}: " if names != [""] else ""
        return [f"{heading}: {of}{statement}", *examples_line("  ", examples)]
    lines = [f"{heading}, of {len(findings)} systems:"]
    for (statement, examples), names in list(systems.items())[:SYSTEMS_SHOWN]:
        lines += [f"  {', '.join(names)}: {statement}", *examples_line("    ", examples)]
    more = sum(map(len, list(systems.values())[SYSTEMS_SHOWN:]))
    return [*lines, f"  and {more} more"] if more else lines


def check_table() -> Table:
    """Return a table of all checks with their needs and summaries."""
    lines = [["check", "needs", "looks for"]]
    lines += [
        [c.name, ", ".join(c.needs) + (" of each of several" if c.comparing else ""), c.summary]
        for c in (CHECKS.get(name) for name in CHECKS)
    ]
    return table_of(lines)
