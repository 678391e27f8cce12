"""Checks of collections, judgments and rankings.

check.py holds findings and the registry of checks, each other file the checks of one matter. A check is a decorated
function from a subject to findings. It runs if the subject has the parts that it needs.
"""

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
