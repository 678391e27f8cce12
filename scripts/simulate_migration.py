"""How often the verdict from few labels on two systems is that of all labels, and how many labels it takes.

python scripts/make_calibration.py --migration   # minutes; writes docs/calibration.md

For each pair of Lucene's rankings of SciFact and NFCorpus (flat, RM3, multifield) the labels of the collection are
hidden and shown one by one in the drawn order, from another seed each time, until there is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

import weir
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.plugins.questions.migration import ContestedPairs, MigrationRules, contested_pairs, label_verdict

KINDS = ("migration",)
LUCENE = {"Lucene flat": "flat", "Lucene RM3": "flat-rm3", "Lucene multifield": "multifield"}


def all_labels(pairs: ContestedPairs, qrels: Qrels, rel: float) -> np.ndarray:
    """Return the labels of all pairs; an unjudged document counts as not relevant, as it does in every score."""
    return np.nan_to_num(pairs.labels(qrels, rel))


def studied(name: str, old: Run, new: Run, qrels: Qrels, draws: int) -> dict[str, object]:
    """Return how many verdicts were those of all labels, and their share of the labels."""
    judged = qrels.queries
    old, new = (one._keep(judged.codes(one.queries.strings)[one.query_of_row()] >= 0) for one in (old, new))
    rules = MigrationRules()
    pairs = contested_pairs(old, new, rules)
    truth = label_verdict(pairs, all_labels(pairs, qrels, rules.rel), len(judged))
    equal, shares, fifty = 0, [], []
    for seed in range(draws):
        drawn = contested_pairs(old, new, replace(rules, seed=seed))
        found = label_verdict(drawn, all_labels(drawn, qrels, rules.rel), len(judged))
        equal += found.verdict == truth.verdict  # as it was at the label that decided
        shares.append(found.after / len(drawn))
        fifty.append(found.after <= 50)
    return {
        "kind": "migration",
        "pair": name,
        "queries": len(judged),
        "contested": len(pairs),
        "difference": truth.low,
        "draws": draws,
        "same verdict": equal / draws,
        "labels, median share": float(np.median(shares)),
        "labels, 9 of 10": float(np.quantile(shares, 0.9)),
        "decided by 50 labels": float(np.mean(fifty)),
    }


def measured(data: Path, draws: int) -> Iterator[dict[str, object]]:
    """The pairs of Lucene's rankings."""
    for collection in ("scifact", "nfcorpus"):
        qrels = weir.Qrels.load(data / collection / "qrels" / "test.tsv")
        files = {
            name: data / "lucene-golden" / f"{collection}.lucene-{file}.trec.gz"
            for name, file in LUCENE.items()
        }
        for old, new in combinations(files, 2):
            before, after = weir.Run.load(files[old]), weir.Run.load(files[new])
            yield studied(f"{collection}: {old} to {new}", before, after, qrels, draws)


def page(found: list[dict]) -> list[str]:
    """The section of docs/calibration.md."""
    lines = ["## Verdicts from some of the labels", "", LABELS, ""]
    lines += [
        "| rankings | documents | difference | same verdict | labels, median | labels, 9 of 10 | decided by 50 |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [
        f"| {row['pair']} | {row['contested']:,} | {row['difference']:+.4f} | {row['same verdict']:.1%} | "
        f"{row['labels, median share']:.0%} | {row['labels, 9 of 10']:.0%} | {row['decided by 50 labels']:.0%} |"
        for row in found
        if row["kind"] == "migration"
    ]
    return [*lines, ""]


LABELS = """`weir study migrate --labelled`: the labels of a collection are hidden and shown one by one in the drawn
order, 500 times, until there is a verdict on DCG@10. It should be that of all labels in 95 of 100 at least; documents
are those whose labels can change the difference."""
