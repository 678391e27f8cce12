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
from weir.audit.check import CHECKS as CHECKS
from weir.audit.check import Audit as Audit
from weir.audit.check import Check as Check
from weir.audit.check import Finding as Finding
from weir.audit.check import audited as audited
from weir.audit.check import audited_all as audited_all
from weir.audit.check import check as check
from weir.core.subject import Subject as Subject
