"""Checks and findings: a check is one decorated function from a subject to what it found."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from weir.audit.subject import Subject
from weir.errors import BadValue
from weir.registry import Registry

__all__ = ["CHECKS", "SEVERITIES", "Audit", "Check", "Finding", "Severity", "audited", "check"]

Severity: TypeAlias = Literal["wrong", "serious", "caution", "note"]
"""wrong: a number that is reported is not what it says; serious: conclusions may turn; caution: a number needs this
said beside it; note: for the record."""
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
EXAMPLES_SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """One thing that was found, with its evidence and what to do next.

    statement: a sentence with the numbers in it; numbers: the same numbers by name, at full precision; examples: some
    identifiers or texts, at most a few; remedy: the next thing to do; check, subject: filled in by `audited`.
    """

    severity: Severity
    statement: str
    remedy: str = ""
    numbers: tuple[tuple[str, float], ...] = ()
    examples: tuple[str, ...] = ()
    check: str = ""
    subject: str = ""


CheckFunction: TypeAlias = Callable[[Subject], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """A check by name: its function, and the parts of a subject without which it does not run."""

    name: str
    function: CheckFunction
    needs: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.function) or "").split("\n\n")[0].replace("\n", " ")


CHECKS: Registry[Check] = Registry("check")


def check(name: str, needs: Sequence[str]) -> Callable[[CheckFunction], CheckFunction]:
    """Register the decorated function as a check; needs: of "corpus", "queries", "qrels", "runs"."""

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS.add(name, Check(name, function, tuple(needs)))
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
        """The severity of the worst finding, None where nothing was found."""
        return self.findings[0].severity if self.findings else None


def audited(subject: Subject, only: Iterable[str] = ()) -> Audit:
    """Run the checks whose parts are there, or those named; raises UnknownName, BadValue where nothing can run."""
    wanted = [CHECKS.get(name) for name in (list(only) or CHECKS.names())]
    lacking = {one.name: sorted(set(one.needs) - subject.parts) for one in wanted}
    ready = [one for one in wanted if not lacking[one.name]]
    if not ready:
        what = "; ".join(f"{name} needs {', '.join(parts)}" for name, parts in lacking.items())
        raise BadValue(f"{subject.name}: no check can run: {what}")
    found = [
        replace(finding, check=one.name, subject=subject.name, examples=finding.examples[:EXAMPLES_SHOWN])
        for one in ready
        for finding in one.function(subject)
    ]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    left = tuple((name, ", ".join(parts)) for name, parts in lacking.items() if parts)
    return Audit(subject.name, tuple(found), tuple(one.name for one in ready), left)
