"""How often the verdict from few labels on two systems is that of all labels, and how many labels it takes.

    python scripts/simulate_migration.py [--draws 500] [--data ../shared/data] [--results FOLDER]

For each pair of rankings the labels of a collection are hidden and shown one by one in the drawn order, from another
seed each time, until there is a verdict. Prints a JSON line for each pair, then the table of docs/calibration.md.
Rankings are Lucene's of NFCorpus and SciFact (flat, RM3, multifield) and all in FOLDER, a results folder of these.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

import weir
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.plugins.questions.migration import ContestedPairs, MigrationRules, contested_pairs, label_verdict

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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    rows = []
    for collection in ("scifact", "nfcorpus"):
        qrels = weir.Qrels.load(given.data / collection / "qrels" / "test.tsv")
        golden = given.data / "lucene-golden"
        runs = {name: golden / f"{collection}.lucene-{file}.trec.gz" for name, file in LUCENE.items()}
        for cell in (
            sorted((given.results or Path()).glob(f"{collection}/*/run.trec*")) if given.results else ()
        ):
            runs[cell.parent.name.rsplit("-", 1)[0]] = cell
        for old, new in combinations(runs, 2):
            before, after = weir.Run.load(runs[old]), weir.Run.load(runs[new])
            if not len(contested_pairs(before, after, MigrationRules())):
                continue
            rows.append(studied(f"{collection}: {old} to {new}", before, after, qrels, given.draws))
            print(json.dumps(rows[-1]), flush=True)
    print(
        "| rankings | documents | difference | same verdict | labels, median | labels, 9 of 10 | decided by 50 |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['pair']} | {row['contested']:,} | {row['difference']:+.4f} | {row['same verdict']:.1%} | "
            f"{row['labels, median share']:.0%} | {row['labels, 9 of 10']:.0%} | {row['decided by 50 labels']:.0%} |"
        )


if __name__ == "__main__":
    main()
