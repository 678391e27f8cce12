"""Rankings and judgments as Parquet and Arrow files, through pyarrow, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Strings
from weir.errors import require
from weir.io.runs.column_names import WRITTEN
from weir.io.runs.tables import as_arrow
from weir.io.runs.write_text import QueryRows, ranked_blocks

__all__ = ["write_table"]

_GROUPS = {True: 1 << 20, False: 1 << 16}  # rows of a row group of Parquet, of a batch of Arrow


def write_table(
    value: Run | Qrels, path: Path, parquet: bool, progress: Callable[[int], None] | None = None
) -> None:
    """Write columns of query, document and score (double) or grade (int32).

    progress: told how many rows are written. Raises MissingExtra without pyarrow.
    """
    arrow, ranked = require("pyarrow", "run"), isinstance(value, Run)
    names, number = WRITTEN["run" if ranked else "qrels"], arrow.float64() if ranked else arrow.int32()
    schema = arrow.schema(list(zip(names, (arrow.string(), arrow.string(), number), strict=True)))
    done = 0
    with path.open("wb") as file, _writer(file, schema, parquet) as writer:
        for block in ranked_blocks(value, _GROUPS[parquet]):
            writer.write_batch(_batch(value, block, schema))
            done += len(block.docs)
            if progress is not None:
                progress(done)


def _writer(file: Any, schema: Any, parquet: bool) -> Any:  # noqa: ANN401  pyarrow has no types
    if not parquet:
        return require("pyarrow.ipc", "run").new_file(file, schema)
    # Queries repeat and documents hardly do: only the former are worth a dictionary. Numbers hardly shrink.
    writer, packed = (
        require("pyarrow.parquet", "run").ParquetWriter,
        {name: "zstd" for name in schema.names[:2]},
    )
    return writer(
        file, schema, compression=packed | {schema.names[2]: "none"}, use_dictionary=schema.names[:1]
    )


def _batch(value: Run | Qrels, block: QueryRows, schema: Any) -> Any:  # noqa: ANN401  pyarrow has no types
    arrow = require("pyarrow", "run")
    query = np.repeat(np.arange(block.queries.start, block.queries.stop), np.diff(block.cuts))
    columns = [_texts(value.queries.strings.take(query)), _texts(block.docs)]
    number = block.number.astype(np.float64 if isinstance(value, Run) else np.int32)
    return arrow.record_batch([*columns, as_arrow(number)], schema=schema)


def _texts(strings: Strings) -> Any:  # noqa: ANN401  pyarrow has no types
    arrow = require("pyarrow", "run")
    data, ptr = arrow.py_buffer(np.ascontiguousarray(strings.data)), arrow.py_buffer(strings.ptr)
    return arrow.LargeStringArray.from_buffers(len(strings), ptr, data).cast(arrow.string())
