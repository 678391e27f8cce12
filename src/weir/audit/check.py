"""Findings, the registry of checks, and how an audit runs them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from weir.core.subject import Subject
from weir.errors import BadValue
from weir.registry import Registry

Severity: TypeAlias = Literal["wrong", "serious", "caution", "note"]
"""wrong: a reported number is not what it claims to be; serious: conclusions may change; caution: report this beside
the number; note: for the record."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
EXAMPLES_SHOWN = 5
NAMES_BEFORE = {
    "howlers": "off-topic results",
    "hubs": "hub documents",
    "one order": "query-independent rankings",
}
"""Names of checks in version 0.2, which still select them -> their names."""


@dataclass(frozen=True)
class Finding:
    """One defect or fact, with its evidence and what to do next.

    statement: a sentence with the numbers in it; numbers: the same numbers by name, at full precision; examples: a few
    identifiers or texts; remedy: the next thing to do; check, subject, source: filled in by `audited`, the source is
    the publication of the check or ""; system: the system it is about, "" if that is not one system.
    """

    severity: Severity
    statement: str
    remedy: str = ""
    numbers: tuple[tuple[str, float], ...] = ()
    examples: tuple[str, ...] = ()
    check: str = ""
    subject: str = ""
    source: str = ""
    system: str = ""


CheckFunction: TypeAlias = Callable[[Subject], Iterable[Finding]]
ComparingFunction: TypeAlias = Callable[[Sequence[Subject]], Iterable[Finding]]
AuditProgress: TypeAlias = Callable[[str, int, int], None]
"""Called before each check with what is audited, the checks done and the checks in all."""


@dataclass(frozen=True)
class Check:
    """A check by name: its function, and the parts of a subject that it needs.

    comparing: the function takes several subjects and compares them; else it takes one.
    """

    name: str
    function: Callable[[Any], Iterable[Finding]]
    needs: tuple[str, ...]
    comparing: bool = False

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def source(self) -> str:
        """The text behind "Source:" in its documentation, "" without one."""
        text = (inspect.getdoc(self.function) or "").replace("\n", " ")
        match = re.search(r"\bSources?(?: of [^:]*)?: (.*)\.", text)
        return match[1] if match else ""


CHECKS: Registry[Check] = Registry("check")


def check(name: str, needs: Sequence[str]) -> Callable[[CheckFunction], CheckFunction]:
    """Register the decorated function as a check; needs: of "corpus", "queries", "qrels", "runs"."""

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS.add(name, Check(name, function, tuple(needs)))
        return function

    return register


def comparing_check(name: str, needs: Sequence[str]) -> Callable[[ComparingFunction], ComparingFunction]:
    """Register the decorated function as a check that compares several subjects; needs: of each."""

    def register(function: ComparingFunction) -> ComparingFunction:
        CHECKS.add(name, Check(name, function, tuple(needs), comparing=True))
        return function

    return register


@dataclass(frozen=True)
class Audit:
    """The findings on a subject, the worst first; ran: the checks that ran; left_out: (check, what it lacked)."""

    subject: str
    findings: tuple[Finding, ...]
    ran: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding, None without findings."""
        return self.findings[0].severity if self.findings else None


def audited(subject: Subject, only: Iterable[str] = ()) -> Audit:
    """Run the checks that the subject has the parts for, or those named; raises UnknownName, BadValue for none."""
    return _audit(subject.name, subject, subject.parts, _wanted(only, comparing=False))


def audited_all(
    subjects: Sequence[Subject], only: Iterable[str] = (), progress: AuditProgress | None = None
) -> list[Audit]:
    """An audit of each subject, and of several one that compares them; raises as `audited`."""
    names = list(only)
    single, several = _wanted(names, comparing=False), _wanted(names, comparing=True)
    if not single and len(subjects) < 2:
        raise BadValue(f"{several[0].name} compares collections; name two or more")
    audits = [_audit(one.name, one, one.parts, single, progress) for one in subjects] if single else []
    if several and len(subjects) > 1:
        everywhere = frozenset.intersection(*(one.parts for one in subjects))
        together = ", ".join(one.name for one in subjects)
        audits.append(_audit(together, subjects, everywhere, several, progress))
    return audits


def _wanted(only: Iterable[str], comparing: bool) -> list[Check]:
    checks = [CHECKS.get(NAMES_BEFORE.get(name, name)) for name in (list(only) or CHECKS.names())]
    return [one for one in checks if one.comparing == comparing]


def _audit(
    name: str,
    subject: Subject | Sequence[Subject],
    parts: frozenset[str],
    checks: Sequence[Check],
    progress: AuditProgress | None = None,
) -> Audit:
    missing = {one.name: sorted(set(one.needs) - parts) for one in checks}
    ready = [one for one in checks if not missing[one.name]]
    if not ready:
        needs = "; ".join(f"{check} needs {', '.join(lacking)}" for check, lacking in missing.items())
        raise BadValue(f"{name}: no check can run: {needs}")
    findings = []
    for done, one in enumerate(ready):
        if progress is not None:
            progress(f"auditing {name}", done, len(ready))
        findings += [
            replace(
                finding,
                check=one.name,
                subject=name,
                source=one.source,
                examples=finding.examples[:EXAMPLES_SHOWN],
            )
            for finding in one.function(subject)
        ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    left_out = tuple((check, ", ".join(lacking)) for check, lacking in missing.items() if lacking)
    return Audit(name, tuple(findings), tuple(one.name for one in ready), left_out)
