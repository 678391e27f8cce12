"""Reads a collection's judgments, on disk or in a zip."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from weir.core.qrels import Qrels
from weir.errors import FormatError
from weir.io.collections.layout import CollectionPart
from weir.io.collections.records import reading
from weir.io.runs.read import read_qrels
from weir.io.storage.text_files import check_regular

__all__ = ["read_judgments"]


def read_judgments(part: CollectionPart) -> Qrels:
    """The judgments of one part; formats and errors are those of `weir.io.runs.read.read_qrels`."""
    if part.member is None:
        if part.path.exists():
            check_regular(part.path)
        return read_qrels(part.path)
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        unpacked = Path(folder) / part.name
        with reading(part) as stream, unpacked.open("wb") as file:
            shutil.copyfileobj(stream, file)
        try:
            return read_qrels(unpacked)
        except FormatError as error:
            error.args = (str(error).replace(str(unpacked), str(part)),)
            raise
