"""What trec_eval says: Weir's measures asked of pytrec_eval-terrier, at full precision.

pytrec_eval is trec_eval 9 in a module: it compares scores as 32-bit floats (Weir's ties="trec9") and leaves
out queries that the run does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytrec_eval

from weir.measures import Measure, parse_measure

__all__ = ["by_trec_eval", "differences", "float32_ties", "has_peer"]

Judgments = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Mapping[str, float]]

# Weir's name: trec_eval's without a cut-off, and with one. None: trec_eval has no such measure.
NAMES: dict[str, tuple[str | None, str | None]] = {
    "AP": ("map", "map_cut"),
    "P": (None, "P"),
    "R": ("set_recall", "recall"),
    "RR": ("recip_rank", "recip_rank"),
    "Success": (None, "success"),
    "nDCG": ("ndcg", "ndcg_cut"),
}


def _name(measure: Measure) -> str | None:
    whole, cut = NAMES.get(measure.name, (None, None))
    return whole if measure.cutoff is None else cut


def has_peer(measure: Measure | str) -> bool:
    """Whether trec_eval can be asked for this measure."""
    return _name(parse_measure(measure) if isinstance(measure, str) else measure) is not None


def by_trec_eval(qrels: Judgments, run: Rankings, measures: Iterable[str]) -> dict[str, dict[str, float]]:
    """{measure: {query: value}} as pytrec_eval computes them, for the queries it returns."""
    asked: dict[tuple[int, bool, int | None], dict[str, str]] = {}
    for text in measures:
        measure = parse_measure(text)
        name, settings = _name(measure), dict(measure.settings)
        if name is None:
            raise ValueError(f"trec_eval has no {measure}")
        # Its reciprocal rank knows no cut-off (that is its option -M): the ranking itself is cut.
        cut = measure.cutoff if name == "recip_rank" else None
        plain = measure.cutoff is None or cut is not None
        key = name if plain else f"{name}.{measure.cutoff}"
        group = (int(settings.get("rel", 1)), settings.get("gain") == "exp", cut)
        asked.setdefault(group, {})[str(measure)] = key
    found: dict[str, dict[str, float]] = {}
    for (rel, steep, cut), keys in asked.items():
        judged = _steep(qrels) if steep else qrels
        ranked = run if cut is None else _cut(run, cut)
        evaluator = pytrec_eval.RelevanceEvaluator(_plain(judged), set(keys.values()), relevance_level=rel)
        values = evaluator.evaluate(_plain(ranked))
        for text, key in keys.items():
            found[text] = {q: row[key.replace(".", "_")] for q, row in values.items()}
    return found


def float32_ties(run: Rankings) -> bool:
    """Whether scores of one ranking are equal as 32-bit floats but not as they stand."""
    for ranking in run.values():
        scores = np.array(list(ranking.values()), np.float64)
        with np.errstate(over="ignore"):
            if len(np.unique(scores.astype(np.float32))) < len(np.unique(scores)):
                return True
    return False


def differences(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[int, float]:
    """How many queries were compared and the largest difference; a query they lack counts 0."""
    largest = max((abs(value - theirs.get(q, 0.0)) for q, value in ours.items()), default=0.0)
    return len(ours), largest


def _plain(table: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    return {q: dict(row) for q, row in table.items()}


def _steep(qrels: Judgments) -> dict[str, dict[str, int]]:
    """Exponential gains are linear gains of other grades."""
    return {q: {d: 2**g - 1 if g > 0 else g for d, g in row.items()} for q, row in qrels.items()}


def _cut(run: Rankings, k: int) -> dict[str, dict[str, float]]:
    def order(item: tuple[str, float]) -> tuple[np.float32, bytes]:
        return np.float32(item[1]), item[0].encode("utf-8")

    return {q: dict(sorted(row.items(), key=order, reverse=True)[:k]) for q, row in run.items()}
