"""Check collections, judgments and rankings for defects."""

# check.py has findings and the registry of checks, each other file the checks of one matter.
from weir.audit import (  # noqa: F401 - each registers its checks
    bias,
    duplicates,
    judgments,
    leakage,
    rankings,
    spelling,
    subsets,
    texts,
)
from weir.audit.check import CHECKS, Audit, Check, Finding, audited, audited_all, check
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
]
