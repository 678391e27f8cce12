"""Measures with a geometric mean over queries; values are logarithms. Relevant: the grade is `rel` or better."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64
from weir.measures.library.binary import AP
from weir.measures.library.incomplete import bpref
from weir.measures.measure import Measure, measure

__all__ = ["gmAP", "gmbpref"]

_LEAST_VALUE = 0.00001  # trec_eval's MIN_GEO_MEAN


@measure("gmAP", values="logarithm")
def gmAP(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Geometric mean of average precision: each query has the logarithm of its AP, at least 0.00001.

    Source: Robertson 2006; trec_eval m_gm_map.c.
    """
    return _logarithm(AP, j, k, rel)


@measure("gmbpref", values="logarithm")
def gmbpref(j: Judged, *, k: int | None = None, rel: float = 1) -> Float64:
    """Geometric mean of bpref: each query has the logarithm of its bpref, at least 0.00001.

    Source: trec_eval m_gm_bpref.c.
    """
    return _logarithm(bpref, j, k, rel)


def _logarithm(of: Measure, j: Judged, k: int | None, rel: float) -> Float64:
    cut = of if k is None else of @ k
    return np.log(np.maximum(cut(rel=rel).per_query(j), _LEAST_VALUE))
