"""Layers of judgments: those that count first, and others where these say nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weir.core.ids import Ids
from weir.core.origins import Origins
from weir.core.qrels import Qrels
from weir.core.strings import Int32, Strings

__all__ = ["merge_qrels"]


def merge_qrels(base: Qrels, other: Qrels) -> Qrels:
    """The judgments of `base`, and those of `other` for the pairs that `base` does not judge.

    `merge_qrels(human, model)` fills what humans left open, `merge_qrels(corrections, old)` corrects. Origins are
    kept, "" for judgments of a layer that has none (`Qrels.labelled` gives one); queries and documents of `base` keep
    their numbers.
    """
    queries, of_query = _joined(base.queries, other.queries, np.arange(len(other.queries)))
    docs, of_doc = _joined(base.docs, other.docs, np.unique(other.doc))
    query = np.concatenate([base.query_of_row(), of_query[other.query_of_row()]])
    doc = np.concatenate([base.doc, of_doc[other.doc]])
    _, first = np.unique(query.astype(np.int64) * len(docs) + doc, return_index=True)
    grade = np.concatenate([base.grade, other.grade])
    origin = None
    if base.origin is not None or other.origin is not None:
        origin = _named(base).then(_named(other)).take(first)
    return Qrels.from_columns(queries, docs, query[first], doc[first], grade[first], origin)


def _named(qrels: Qrels) -> Origins:
    return qrels.origin if qrels.origin is not None else Origins.alike("", len(qrels.doc))


def _joined(ours: Ids, theirs: Ids, used: NDArray[np.integer]) -> tuple[Ids, Int32]:
    """Our identifiers and then those used that only they have, and the number of each of theirs, -1 if not used."""
    wanted = theirs.strings.take(used)
    found = ours.codes(wanted)
    new = np.flatnonzero(found < 0)
    found[new] = len(ours) + np.arange(len(new), dtype=np.int32)
    number = np.full(len(theirs), -1, np.int32)
    number[used] = found
    return (Ids(Strings.concatenated([ours.strings, wanted.take(new)])) if len(new) else ours), number
