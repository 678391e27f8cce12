"""Audit: is this collection, are these judgments, is this comparison fit to measure with?

subject.py: what is looked at; check.py: findings, and the registry of checks; each other file holds the checks of one
matter. A check is one decorated function from a subject to findings; it runs where what it needs is there.
"""

from weir.audit import (  # noqa: F401 - each registers its checks
    bias,
    duplicates,
    judgments,
    leakage,
    rankings,
    subsets,
    texts,
)
from weir.audit.check import CHECKS, Audit, Check, Finding, audited, audited_all, check, comparing_check
from weir.core.subject import Subject

__all__ = [
    "CHECKS",
    "Audit",
    "Check",
    "Finding",
    "Subject",
    "audited",
    "audited_all",
    "check",
    "comparing_check",
]
