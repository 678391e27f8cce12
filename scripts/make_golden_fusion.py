"""Recompute tests/golden/fusion: what ranx makes of small made-up runs, and what its fusions of real runs score.

    python scripts/make_golden_fusion.py --ranx PYTHON [--data FOLDER]

PYTHON is the interpreter of an environment with ranx 0.3.21; FOLDER holds trec-dl/ as ../shared/data does, and
without it the figures of real runs stay as they are. The made-up runs have no ties and no list of one document or
of equal scores: there ranx's order is that of an unstable sort, and its normalisations give 0 (see docs/fusion.md).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden" / "fusion"
NORMS = {"none": None, "minmax": "min-max", "zscore": "zmuv", "rank": "rank", "sum": "sum", "max": "max"}
RANKED = {
    "rrf": ("rrf", {}),
    "rrf(k=10)": ("rrf", {"k": 10}),
    "isr": ("isr", {}),
    "logisr": ("log_isr", {}),
    "logisr(sigma=0.01)": ("logn_isr", {"sigma": 0.01}),
    "rbc": ("rbc", {"phi": 0.8}),
    "rbc(p=0.95)": ("rbc", {"phi": 0.95}),
    "borda": ("bordafuse", {}),
}
SCORED = {f"comb{name}": name for name in ("sum", "mnz", "anz", "min", "max", "med")}
REAL = {"two": ("BM25", "OPEN_AI_ADA2"), "three": ("BM25", "BM25_RM3", "OPEN_AI_ADA2")}


def asked(runs: int) -> dict[str, tuple[str, str | None, dict[str, Any]]]:
    """Weir's name of each fusion: ranx's method, normalisation and parameters."""
    found: dict[str, tuple[str, str | None, dict[str, Any]]] = {}
    found |= {text: (method, None, given) for text, (method, given) in RANKED.items()}
    weights = [0.5, 0.3, 0.2][:runs]
    for norm, theirs in NORMS.items():
        found |= {f'{text}(norm="{norm}")': (method, theirs, {}) for text, method in SCORED.items()}
        found[f'wsum(weights={weights}, norm="{norm}")'] = ("wsum", theirs, {"weights": weights})
    return found


def made_up() -> list[dict[str, dict[str, float]]]:
    """Three runs that share some documents; no two scores of a ranking are equal."""
    import numpy as np

    random = np.random.default_rng(20_210_427)
    runs = []
    for size in (6, 9, 4):
        run = {}
        for query in ("q1", "q2"):
            documents = random.permutation([f"d{i:02}" for i in range(12)])[:size]
            scores = np.round(random.permutation(np.arange(1, 40))[:size] * 0.37 + 0.1, 4)
            run[query] = dict(
                sorted(zip(documents.tolist(), scores.tolist(), strict=True), key=lambda p: -p[1])
            )
        runs.append(run)
    return runs


def agreeing() -> list[dict[str, dict[str, float]]]:
    """Three full rankings of the same documents whose majorities make no circle."""
    orders = ("abcdefg", "bacdfeg", "acbdegf")
    return [{"q": {d: float(len(order) - i) for i, d in enumerate(order)}} for order in orders]


def fused_by_ranx(python: str, runs: list[Any], wanted: list[Any]) -> list[Any]:
    """What ranx makes of the runs, for each (method, normalisation, parameters)."""
    spec = json.dumps({"runs": runs, "wanted": wanted})
    done = subprocess.run(
        [python, __file__, "--child"], input=spec, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.strip().split("\n")[-1])


def child() -> None:
    """Inside ranx's interpreter: fuse and print."""
    from ranx import Run, fuse

    spec = json.loads(sys.stdin.read())
    found = []
    for method, norm, parameters in spec["wanted"]:
        runs = [Run.from_dict(run) for run in spec["runs"]]
        run = fuse(runs, norm=norm, method=method, params=parameters)
        found.append({str(q): {str(d): float(s) for d, s in row.items()} for q, row in run.run.items()})
    print(json.dumps(found))


def real_figures(python: str, data: Path) -> dict[str, Any]:
    """nDCG@10 of ranx's fusions of runs of TREC DL 2019: its scores, ordered and measured by Weir."""
    import weir.files.runs

    runs, qrels = data / "trec-dl" / "runs" / "dl19", data / "trec-dl" / "qrels" / "qrels.dl19-passage.txt"
    found: dict[str, Any] = {}
    for case, names in REAL.items():
        given = [weir.files.runs.read_run(runs / f"{name}.trec.gz").to_dict() for name in names]
        wanted = asked(len(names))
        made = fused_by_ranx(python, given, list(wanted.values()))
        # Three numbers added in another order differ in their last bit: sums that are equal must be equal.
        digits = None if len(names) == 2 else 12
        if digits is not None:
            made = [
                {q: {d: round(s, digits) for d, s in row.items()} for q, row in run.items()} for run in made
            ]
        means = [float(weir.evaluate(qrels, run, ["nDCG@10"]).mean_values()[0]) for run in made]
        figures = dict(zip(wanted, means, strict=True))
        found[case] = {"runs": list(names), "digits": digits, "nDCG@10": figures}
    return found


def main() -> None:
    """Rewrite tests/golden/fusion/ranx.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ranx", help="Python of an environment with ranx")
    parser.add_argument("--data", type=Path, help="folder that holds trec-dl/")
    options = parser.parse_args()
    if options.child:
        child()
        return
    path = FOLDER / "ranx.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    runs, wanted = made_up(), asked(3)
    made = fused_by_ranx(options.ranx, runs, list(wanted.values()))
    order = fused_by_ranx(options.ranx, agreeing(), [("condorcet", None, {})])[0]["q"]
    golden = {
        "tool": "ranx 0.3.21",
        "runs": runs,
        "fused": dict(zip(wanted, made, strict=True)),
        "condorcet": {"runs": agreeing(), "order": sorted(order, key=lambda d: -order[d])},
        "real": real_figures(options.ranx, options.data) if options.data else old.get("real", {}),
    }
    FOLDER.mkdir(exist_ok=True)
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items() if key != "fused"]
    fused = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in golden["fused"].items())
    path.write_text("{\n" + ",\n".join([*lines, f' "fused": {{\n{fused}\n }}']) + "\n}\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {len(wanted)} fusions")


if __name__ == "__main__":
    main()
