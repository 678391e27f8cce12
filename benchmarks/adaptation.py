"""What training on a collection does to an encoder: nDCG@10 of MiniLM before and after `weir study adapt`, over seeds.

    python benchmarks/adaptation.py --data COLLECTIONS --out FOLDER [--collections scifact nfcorpus] [--conditions ...]

Conditions: `crops` (no queries, no judgments), `pairs` (judged pairs of the split train, BM25's hard negatives), and
`pairs dot` (the same pairs and seeds compared by dot product: appendix H of the BEIR paper). For each the mean over
seeds of the difference to the base, query by query, with a 95% bootstrap interval over queries, the least and most of
the seeds, and the median words of the first ten documents. Trained models and rankings stay in FOLDER, so that what was
stopped goes on. Needs the extra `train` and the weights of MiniLM. One line a condition goes to
results/adaptation.jsonl.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from common import append, data_folder, machine, say, versions

MEASURE = "nDCG@10"
SEEDS = (0, 1, 2)
DTYPE = "bf16"
"""Of the products of the training and of the vectors: before and after are computed alike."""
CONDITIONS = {
    "crops": ("crops", {"negatives": 0, "batch": 64}),
    "pairs": ("pairs", {"negatives": 1}),
    "pairs dot": ("pairs", {"negatives": 1, "similarity": "dot"}),
}


def trained(collection: str, condition: str, seed: int, options: argparse.Namespace) -> Any:
    """The checkpoint of a condition and a seed, trained where it is not there."""
    from weir.api.progress import Progress
    from weir.plugins.training.pairs import Crops, GivenPairs
    from weir.plugins.training.training import AdaptRules, adapt

    kind, rules = CONDITIONS[condition]
    source = Crops() if kind == "crops" else GivenPairs()
    out = Path(options.out) / "models" / f"{collection}-{condition.replace(' ', '-')}-{seed}"
    folder = data_folder(options.data) / collection
    shared = {"max_length": 128, "most": options.most, "seed": seed, "dtype": DTYPE, "drop_known": True}
    return adapt(source, folder, out, AdaptRules(**(shared | rules)), progress=Progress())


def evaluated(collection: str, systems: list[str], options: argparse.Namespace) -> Any:
    """The benchmark of systems on a collection."""
    import weir

    return weir.benchmark(
        [data_folder(options.data) / collection], systems, [MEASURE, "R@100"], Path(options.out) / "results"
    )


def words(table: Any, collection: str, system: str, options: argparse.Namespace) -> list[float]:
    """Quartiles of the words of the first ten documents that a system returns."""
    import weir
    from weir.audit.texts import document_lengths, length_profile
    from weir.experiment.results import finished_cells
    from weir.files.runs import read_run

    dataset = weir.load(data_folder(options.data) / collection)
    cells = finished_cells(Path(options.out) / "results")
    cell = next(one for one in cells if (one.dataset, str(one.system)) == (collection, system))
    profile = length_profile(read_run(cell.run), dataset.corpus, document_lengths(dataset.corpus))
    return [] if profile is None else list(profile[0])


def compare(collection: str, condition: str, options: argparse.Namespace) -> dict[str, Any]:
    """A condition on a collection beside the base."""
    from weir.stats.resampling import SEED, interval

    results = [trained(collection, condition, seed, options) for seed in SEEDS]
    base = f'dense("minilm", dtype="{DTYPE}")'
    systems = [base, *(f'dense("{one.folder}", dtype="{DTYPE}")' for one in results)]
    table = evaluated(collection, systems, options)
    record: dict[str, Any] = {"collection": collection, "condition": condition, "pairs": results[0].pairs}
    record |= {
        "steps": results[0].steps,
        "dropped": results[0].dropped,
        "seconds": [r.seconds for r in results],
    }
    record["losses"] = [[r.losses[0][1], r.losses[-1][1]] for r in results]
    for measure in (MEASURE, "R@100"):
        values = [np.asarray(table[collection, system][measure].array) for system in systems]
        differences = np.array(values[1:]) - values[0]
        mean = differences.mean(0)
        record[measure] = {
            "base": float(np.nanmean(values[0])),
            "seeds": [float(np.nanmean(one)) for one in values[1:]],
            "difference": float(np.nanmean(mean)),
            "interval": list(interval(mean, np.random.default_rng(SEED))),
        }
    record["words"] = {name: words(table, collection, name, options) for name in systems[:2]}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data")
    parser.add_argument("--out", required=True, help="Where models and rankings stay.")
    parser.add_argument("--collections", nargs="*", default=["scifact", "nfcorpus"])
    parser.add_argument("--conditions", nargs="*", default=list(CONDITIONS))
    parser.add_argument("--most", type=int, default=1000, help="Pairs of a training.")
    parser.add_argument("--quick", action="store_true", help="Record nothing.")
    options = parser.parse_args()
    for collection in options.collections:
        for condition in options.conditions:
            record = compare(collection, condition, options)
            say(record)
            if not options.quick:
                packages = versions("sentence-transformers", "transformers", "torch", "openvino")
                append("adaptation", record | {"machine": machine(), "versions": packages})


if __name__ == "__main__":
    main()
