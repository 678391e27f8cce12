"""Encode a text as the mean of its tokens' vectors from a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weir.core.strings import Float32
from weir.errors import BadValue, StoreError
from weir.models.checkpoints import Checkpoint
from weir.models.heads import AnyHead, VectorHead
from weir.models.openvino_engine import NORM_FLOOR, joined_rows, layered, values_above
from weir.models.tokens import Tokens
from weir.models.weights import read_state

TABLES = ("embedding.weight", "embeddings")
"""Names of the table in sentence-transformers and model2vec."""


@dataclass(frozen=True, eq=False)
class StaticTable:
    """An engine that encodes a text as the mean of its tokens' vectors."""

    table: Float32
    """float32[V, d]: vector of each token."""
    head: VectorHead
    """Layers after the mean."""
    padded: bool = False
    batch_independent: bool = True

    def rows(self, batch: Tokens) -> Float32:
        """Return each text's vector, float32[n, d]: the head's layers over the mean of its tokens' vectors (0
        without tokens).
        """
        filled = batch.lengths > 0
        rows = np.zeros((len(batch), self.table.shape[1]), np.float32)
        if filled.any():
            vectors = self.table[batch.ids].astype(np.float64)
            sums = np.add.reduceat(vectors, batch.ptr[:-1][filled], axis=0)
            rows[filled] = sums / batch.lengths[filled][:, None]
        for layer in self.head.layers:
            rows = layered(rows, layer)
        if self.head.normalise:
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), NORM_FLOOR)
        return rows

    array = staticmethod(joined_rows)
    above = staticmethod(values_above)


def static_engine(checkpoint: Checkpoint, head: AnyHead) -> StaticTable:
    """Return an engine that averages the token vectors of a checkpoint's table.

    Raises BadValue for a head without mean pooling and a table with a mapping or weights, StoreError without a
    table.
    """
    if not isinstance(head, VectorHead) or head.pooling != "mean":
        raise BadValue(f"{checkpoint.folder}: a table of vectors has a mean for each text, and nothing else")
    state = read_state(checkpoint.folder)
    if more := sorted({"mapping", "weights"} & set(state)):
        raise BadValue(
            f"{checkpoint.folder}: its table has {' and '.join(more)} beside it, which Weir does not read"
        )
    table = next((state[name] for name in TABLES if name in state), None)
    if table is None or table.ndim != 2:
        raise StoreError(f"{checkpoint.folder}: no table of vectors there; expected {' or '.join(TABLES)}")
    return StaticTable(np.ascontiguousarray(table, np.float32), head)
