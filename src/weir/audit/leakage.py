"""Leakage: test queries that systems may have been trained on, and what the others alone score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.audit.check import Finding, check
from weir.core import rounding
from weir.core.corpus import Queries
from weir.core.rounding import part_of
from weir.core.subject import Subject, Training
from weir.datasets.same_text import normalised
from weir.measures.evaluate import scores_of
from weir.measures.measure import parse_measure
from weir.stats.bootstrap import SEED, interval

__all__ = ["Leaks", "leaks"]

MEASURE = parse_measure("nDCG@10")
GRAM_WORDS = 13
"""Consecutive words shared with a training query from which a query counts as known (Brown et al. 2020)."""
SERIOUS_SHARE = 0.05
"""Share of known queries from which conclusions may turn, whatever was trained on."""
MOVED = 0.005
"""Change of a system's mean without the known queries from which the same is said."""


@dataclass(frozen=True, eq=False)
class Leaks:
    """Which test queries are in the training data, bool[Q] for each way of looking.

    exact: the same text; normalised: after Unicode, case and white space; grams: GRAM_WORDS words in a row are shared;
    pairs: a relevant document of the query is relevant to a training query of the same normalised text.
    """

    exact: NDArray[np.bool_]
    normalised: NDArray[np.bool_]
    grams: NDArray[np.bool_]
    pairs: NDArray[np.bool_]

    @property
    def any(self) -> NDArray[np.bool_]:
        """Known in any way."""
        found: NDArray[np.bool_] = self.exact | self.normalised | self.grams
        return found


def leaks(queries: Queries, training: Training, relevant: Mapping[str, set[str]]) -> Leaks:
    """Look for each query among the training queries; relevant: documents by query, of the test's judgments."""
    texts = queries.text.tolist()
    known = training.queries.text.tolist()
    same, forms, grams = set(known), _documents_by_form(training), {g for text in known for g in _grams(text)}
    exact = [text in same for text in texts]
    alike = [normalised(text) in forms for text in texts]
    shared = [any(g in grams for g in _grams(text)) for text in texts]
    pairs = [
        bool(relevant.get(name, set()) & forms.get(normalised(text), set()))
        for name, text in zip(queries.ids.tolist(), texts, strict=True)
    ]
    return Leaks(*(np.array(column, np.bool_) for column in (exact, alike, shared, pairs)))


def _documents_by_form(training: Training) -> dict[str, set[str]]:
    relevant = {} if training.qrels is None else training.qrels.to_dict()
    forms: dict[str, set[str]] = {}
    for name, text in training.queries.to_dict().items():
        judged = relevant.get(name, {})
        forms.setdefault(normalised(text), set()).update(doc for doc, grade in judged.items() if grade > 0)
    return forms


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    words = normalised(text).split()
    return (tuple(words[i : i + GRAM_WORDS]) for i in range(len(words) - GRAM_WORDS + 1))


@check("leakage", needs=["queries", "qrels", "training"])
def leakage(subject: Subject) -> Iterator[Finding]:
    """Judged queries that are among the training queries: the same, the same after normalising, 13 words in a row.

    With rankings, each system's score on the queries that are not, beside that on all. Sources: Brown et al. 2020 for
    the 13 words; the maintainers of MTEB on training sets in tests.
    """
    qrels = subject.need_qrels()
    every = subject.need_queries()
    codes = every.ids.codes(qrels.queries.strings)
    queries = every.take(codes[codes >= 0])
    relevant = {
        name: {doc for doc, grade in judged.items() if grade > 0} for name, judged in qrels.to_dict().items()
    }
    for training in subject.training:
        found = leaks(queries, training, relevant)
        hit = np.flatnonzero(found.any)
        if len(hit):
            effects = _effects(subject, {queries.ids[int(i)] for i in hit})
            share = len(hit) / len(queries)
            moved = max((abs(change) for _, _, change in effects), default=0.0)
            yield Finding(
                "serious" if share >= SERIOUS_SHARE or moved >= MOVED else "caution",
                f"{part_of(len(hit), len(queries), 'judged queries', 'is', 'are')} in {training.name}: "
                f"{int(found.exact.sum()):,} "
                f"the same, {int(found.normalised.sum()):,} after normalising, {int(found.grams.sum()):,} by "
                f"{GRAM_WORDS} words in a row; {int(found.pairs.sum()):,} with a relevant document"
                + "".join(f"; {said}" for said, _, _ in effects),
                "a system that was trained on it has seen these: report the score on the others beside "
                "the whole",
                (
                    ("queries", float(len(hit))),
                    *(
                        (name, float(column.sum()))
                        for name, column in (("same", found.exact), ("normalised", found.normalised))
                    ),
                    ("words in a row", float(found.grams.sum())),
                    ("pairs", float(found.pairs.sum())),
                    *(number for _, number, _ in effects),
                ),
                tuple(queries.ids[int(i)] for i in hit),
            )


def _effects(subject: Subject, known: set[str]) -> list[tuple[str, tuple[str, float], float]]:
    """For each system its mean on the clean queries with its interval, as said and as a number; how far it moves."""
    found = []
    for name, join in subject.joins.items():
        values = scores_of(join, (MEASURE,)).values[0]
        clean = np.array([query not in known for query in join.queries.tolist()]) & ~np.isnan(values)
        if clean.any() and join.answered.any():
            low, high = interval(values[clean], np.random.default_rng(SEED))
            mean, whole = float(values[clean].mean()), float(np.nanmean(values))
            bounds = f"[{rounding.score(low)}, {rounding.score(high)}]"
            alone, all_of_them = rounding.score(mean), rounding.score(whole)
            said = f"{name}: {MEASURE} {alone} {bounds} without them, {all_of_them} with"
            found.append((said, (f"{name} without them", mean), mean - whole))
    return found
