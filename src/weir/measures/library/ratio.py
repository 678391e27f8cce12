"""Division that every measure shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.strings import Float64

__all__ = ["ratio"]


def ratio(above: NDArray[np.number], below: NDArray[np.number]) -> Float64:
    """above / below, and 0 where below is 0: a query with nothing to find scores 0, as in trec_eval."""
    values = np.zeros(len(above), np.float64)
    np.divide(above, below, out=values, where=np.asarray(below) != 0)
    return values
