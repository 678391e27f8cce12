"""Read rules on documents from a file beside judgments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from weir.core.qrels import Beside, Qrels
from weir.errors import FormatError
from weir.registry import Registry

RULES_FILE = "document-rules.tsv"
BESIDE: Registry[Callable[[Path, Qrels], Beside]] = Registry("file beside judgments", group="weir.beside")
"""Its reader by its name. Entry points are asked where the file is there: looking them up takes longer than scoring."""


def with_beside(qrels: Qrels, path: Path) -> Qrels:
    """Return judgments with the rules of a document-rules.tsv beside `path` or its folder `qrels`, else unchanged.

    Raises FormatError for an invalid file, and for two.
    """
    folders = [path.parent, *([path.parent.parent] if path.parent.name == "qrels" else [])]
    found = [folder / RULES_FILE for folder in folders if (folder / RULES_FILE).is_file()]
    if not found:
        return qrels
    if len(found) > 1:
        raise FormatError(found[1], f"other rules than in {found[0]}", "one file for these judgments")
    return replace(qrels, beside=BESIDE.get(RULES_FILE)(found[0], qrels))
