"""Count and find documents of equal score that were cut off at rank k."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from weir.core.order import cut_in_ties, tie_groups, tied_at_end
from weir.core.run import Named, Run
from weir.core.scores import Note
from weir.datasets.load import Dataset
from weir.errors import WeirError
from weir.experiment.results import ResultCell
from weir.experiment.stage_store import index_stage
from weir.measures import Measure
from weir.stats.score_rows import reaches, tied_cut_note
from weir.systems.composite import adapted_to
from weir.systems.expression import parse_system
from weir.systems.protocol import Context, NestedSearcher
from weir.systems.restricted import restricted_search

GROWTH, MOST = 8, 1 << 20
"""Factor by which the depth grows until the tie ends; most documents of a ranking that are searched for."""


def cell_cut_note(cell: ResultCell, run: Run, measure: Measure, searched: bool) -> Note | None:
    """Return a note on tied documents cut off at a result's k; None without any, or if the measure stops
    before k.

    searched: the documents beyond k were searched.
    """
    known, k = cell.tied_beyond, cell.depth
    queries = int(_at_risk(run, k).sum()) if known is None else known
    if known is None and not queries:
        k, queries = cut_in_ties(np.diff(run.ptr), tied_at_end(run.ptr, tie_groups(run.ptr, run.score)))
    return tied_cut_note(k, queries, known is not None, searched) if queries and reaches(measure, k) else None


def _at_risk(run: Run, k: int) -> np.ndarray:
    full = np.flatnonzero(np.diff(run.ptr) >= max(k, 2))
    risky, last = np.zeros(len(run), np.bool_), run.ptr[full] + k - 1
    risky[full] = run.score[last] == run.score[np.maximum(last - 1, 0)] if k > 1 else True
    return risky


def with_ties_beyond(cell: ResultCell, dataset: Dataset, run: Run) -> Run | None:
    """Return a result's run extended by all documents that tie with the k-th, searched in its index.

    None unless the system is an exact search of one stored index that keeps self-matches, if the search
    fails, or for over MOST ties.
    """
    k = cell.depth
    with suppress(WeirError, OSError):
        system = adapted_to(parse_system(cell.system), dataset.name, dataset.instruction)
        stage = index_stage(system, dataset.corpus)
        place = next((at for at, r in cell.stages if r.kind == "index" and stage.is_of(r)), None)
        if place is None or cell.ranked.declared.get("self_match") == "drop":
            return None
        searcher = system.open(dataset.corpus, Context(Path(place)))
        # Only rankings of k documents are searched again.
        codes = dataset.queries.ids.codes(run.queries.strings)
        waiting = np.flatnonzero((np.diff(run.ptr) == k) & (codes >= 0))
        if not (isinstance(searcher, NestedSearcher) and searcher.nested(dataset.queries, k)):
            return None
        docs = dataset.corpus.ids
        own = docs.codes(run.docs.strings).astype(np.int32)[run.doc]
        columns = [(run.query_of_row(), own, run.score)]
        depth = k + 1
        while len(waiting):
            deeper = restricted_search(
                searcher, dataset.queries.take(codes[waiting]), depth, Context(reuse=False)
            )
            bar = run.score[run.ptr[waiting + 1] - 1]
            length = np.diff(deeper.ptr)
            last = np.where(length > 0, deeper.score[np.maximum(deeper.ptr[1:] - 1, 0)], -np.inf)
            open_end = (length == depth) & (last == bar)
            if depth > MOST and open_end.any():
                return None
            for place_in, q in enumerate(waiting.tolist()):
                if not open_end[place_in]:
                    rows = slice(int(deeper.ptr[place_in]) + k, int(deeper.ptr[place_in + 1]))
                    equal = deeper.score[rows] == bar[place_in]
                    doc = deeper.doc[rows][equal]
                    columns.append((np.full(len(doc), q), doc, deeper.score[rows][equal]))
            waiting, depth = waiting[open_end], GROWTH * depth
        query, doc, score = (np.concatenate([column[n] for column in columns]) for n in range(3))
        return Run.from_columns(
            run.queries, docs, query, doc.astype(np.int32), score, Named(run.name, run.ties)
        )
    return None
