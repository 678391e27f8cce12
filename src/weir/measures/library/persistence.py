"""Rank-biased precision and its unknown part. Relevant: the grade is `rel` or better."""

from __future__ import annotations

import numpy as np

from weir.core.judged import Judged
from weir.core.strings import Float64, Int32
from weir.measures.library.arithmetic import best_grades, powers, ratio
from weir.measures.measure import Setting, measure

__all__ = ["RBP", "RBP_residual"]

_PERSISTENCE = {"p": (0.0, 0.9999)}
_GAINS: dict[str, tuple[Setting, ...]] = {"gain": ("binary", "scaled")}


@measure("RBP", choices=_GAINS, within=_PERSISTENCE)
def RBP(j: Judged, *, k: int | None = None, p: float = 0.8, gain: str = "binary", rel: float = 1) -> Float64:
    """Rank-biased precision: the gain of a reader who goes on to each next rank with probability p.

    (1 - p) times the sum of gain * p^(rank - 1), so below 1 even for a list of only relevant documents (see
    RBP_residual).

    p: probability of going on to the next rank, 0 to 0.9999; trec_eval's default is 0.9.
    gain: "binary" is 1 for a relevant document (ir-measures' RBP(rel=1)), "scaled" is its grade divided by
        the query's highest (trec_eval 10).

    Source: Moffat and Zobel 2008; trec_eval 10 m_rbp.c.
    """
    rows = j.found(k, rel)
    query = j.query[rows]
    worth = np.ones(len(query))
    if gain == "scaled":
        worth = ratio(np.maximum(j.grade[rows], 0), best_grades(j)[query])
    return (1.0 - p) * j.total(query, worth * _reached(j.rank[rows], p))


@measure("RBP_residual", within=_PERSISTENCE, of="presence", better="less")
def RBP_residual(j: Judged, *, k: int | None = None, p: float = 0.8) -> Float64:
    """The most that RBP could rise if every unjudged document, and all beyond the list, were relevant.

    1 if nothing was returned. A grade below 0 counts as unjudged; trec_eval leaves out the part beyond a
    wholly judged list.

    p: probability of going on to the next rank, 0 to 0.9999.

    Source: Moffat and Zobel 2008; trec_eval 10 m_rbp_resid.c.
    """
    rows = j.found(k, 0)
    # The weights of all ranks to infinity add up to 1, so what is not known is 1 less what is.
    known = (1.0 - p) * j.total(j.query[rows], _reached(j.rank[rows], p))
    return np.maximum(1.0 - known, 0.0)


def _reached(rank: Int32, p: float) -> Float64:
    return powers(p, rank - 1)
