"""Writing rankings and judgments in any format, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, UnknownName
from weir.io.runs.formats import FORMATS, named_format
from weir.io.runs.write_tables import write_table
from weir.io.runs.write_text import TEXTS
from weir.io.storage.atomic import atomic_file
from weir.io.storage.compression import PACKED, packing, unpacked_name

__all__ = ["Told", "refuse_unknown", "write_qrels", "write_run"]

Told = Callable[[int, int], None]  # rows written, rows in all


def write_run(run: Run, path: Path | str, progress: Told | None = None) -> None:
    """Write a run in the format that the file's name says: TREC, JSON, CSV, TSV, Parquet or Arrow.

    A name that says none is TREC's; `.gz` and `.zst` pack the texts. Scores are written in full: the shortest text
    that reads back as the same double. The file appears complete or not at all. progress: told (rows written,
    rows in all). Raises BadValue for an identifier that TREC format cannot hold (white space, or a query that
    starts with `#`) and for a packed table, MissingExtra where pyarrow is needed, StoreError when the disk refuses.
    """
    run.refuse_nameless()
    _write(run, Path(path), progress)


def write_qrels(qrels: Qrels, path: Path | str, progress: Told | None = None) -> None:
    """Write judgments in the format that the file's name says; arguments and errors as `write_run`.

    A TSV has BEIR's header.
    """
    _write(qrels, Path(path), progress)


def refuse_unknown(target: Path, source: Path) -> None:
    """Raise BadValue for a name that says no format, and for the file that is read itself."""
    if named_format(target) is None:
        known = [suffix for form in FORMATS for suffix in form.suffixes]
        suffix = PurePath(unpacked_name(target)).suffix
        raise UnknownName("format", suffix or target.name, known)
    if target.exists() and source.exists() and target.samefile(source):
        raise BadValue(f"{target} is the file that is read; give the result another name")


def _write(value: Run | Qrels, path: Path, progress: Told | None) -> None:
    form = named_format(path)
    name, total = form.name if form else "trec", len(value.doc)

    def told(done: int) -> None:
        if progress is not None:
            progress(done, total)

    if form is not None and not form.packs and path.suffix in PACKED:
        raise BadValue(f"{path}: {name} files are packed inside; leave out {path.suffix}")
    with atomic_file(path) as temporary:
        if name in TEXTS:
            with temporary.open("wb") as file, packing(path, file) as out:
                done = 0
                for text, rows in TEXTS[name](value):
                    out.write(text.encode("utf-8"))
                    done += rows
                    told(done)
        else:
            write_table(value, temporary, name == "parquet", told)
