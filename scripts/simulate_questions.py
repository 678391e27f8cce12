"""Plant what a funnel, an audit of a ruler and a study of filters should find, and count what they find.

python scripts/make_calibration.py --questions   # about ten minutes; writes docs/calibration.md
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.unit.fit_sets import CHANGE, DEFECTS, fit_set

import weir
from weir.measures import score_run
from weir.plugins.questions.noise import variance_components
from weir.systems import SYSTEMS

KINDS = ("planted losses", "planted defects", "variance components", "filters by lot")
FUNNELS, STAGES, QUERIES, GOLD = 1000, 4, 30, 5
RULERS = 20
COMPONENTS = 1000
SHARES, OVERFETCH, DOCUMENTS, K = (0.5, 0.1, 0.02), (1, 4, 16), 500, 10


def measured() -> Iterator[dict]:
    """Everything that is planted, and the share that is found."""
    yield from _funnels()
    yield from _rulers()
    yield from _components()
    yield from _filters()


def _funnels() -> Iterator[dict]:
    # Each relevant document is dropped by a drawn stage, or by none; others stand between them.
    draw, held, documents, losses = np.random.default_rng(21), Counter[str](), 0, 0
    for _ in range(FUNNELS):
        plan = {
            (f"q{q}", f"d{d}"): int(draw.integers(STAGES + 1)) for q in range(QUERIES) for d in range(GOLD)
        }
        qrels: dict[str, dict[str, int]] = {}
        for query, doc in plan:
            qrels.setdefault(query, {})[doc] = int(draw.integers(1, 4))
        runs = []
        for stage in range(STAGES):
            alive = [pair for pair, lost in plan.items() if lost > stage]
            run = {query: {f"x{n}": float(draw.random()) for n in range(8)} for query in qrels}
            for query, doc in alive:
                run[query][doc] = float(draw.random())
            runs.append(run)
        rules = weir.FunnelRules(k=GOLD + 8)
        [funnel] = weir.funnel_of_rankings(qrels, *runs, rules=rules)
        named = {
            (lost.query, lost.document): at for at, one in enumerate(funnel.whole) for lost in one.losses
        }
        expected = {pair: lost for pair, lost in plan.items() if lost < STAGES}
        documents, losses = (
            documents + len(expected),
            losses + sum(named.get(p) == at for p, at in expected.items()),
        )
        held["invented"] += len(named.keys() - expected.keys())
        held["sums"] += funnel.whole[-1].left + sum(one.lost for one in funnel.whole) == len(plan)
        perfect = {q: {d: float(qrels[q].get(d, 0)) for d in docs} for q, docs in runs[0].items()}
        best = score_run(weir.Qrels.of(qrels), weir.Run.of(perfect), ["nDCG@10"]).mean_values()[0]
        held["ceilings"] += abs(funnel.whole[0].ceiling - best) < 1e-12
    for name, count, rate in (
        ("losses named at their stage", documents, losses / documents),
        ("others named", documents, held["invented"] / documents),
        ("losses and what is left add up", FUNNELS, held["sums"] / FUNNELS),
        ("the ceiling is an oracle's score", FUNNELS, held["ceilings"] / FUNNELS),
    ):
        yield {"kind": "planted losses", "source": name, "count": count, "rate": rate}


def _rulers() -> Iterator[dict]:
    for defect in (None, *DEFECTS):
        found = invented = 0
        for seed in range(RULERS):
            made = fit_set(seed + 100)
            if defect is not None:
                defect(made)
            with tempfile.TemporaryDirectory() as folder:
                files = made.write(Path(folder))
                [one] = weir.fitness(*files, change=CHANGE, collection=Path(folder) / "mine")
            kinds = {fault.kind for fault in one.faults}
            planted = {DEFECTS[defect]} if defect else set()
            found += planted <= kinds
            invented += bool(kinds - planted)
        name = "none" if defect is None else defect.__name__.replace("_", " ")
        kind = "-" if defect is None else DEFECTS[defect]
        yield {"kind": "planted defects", "source": name, "name": kind, "count": RULERS, "rate": found / RULERS,
               "false": invented / RULERS}  # fmt: skip


def _components() -> Iterator[dict]:
    draw, sizes = np.random.default_rng(22), (5, 3, 50)
    deviations = {
        ("system",): 0.02,
        ("judge",): 0.05,
        ("query",): 0.3,
        ("system", "query"): 0.1,
        ("judge", "query"): 0.08,
    }
    axes, seen = ("system", "judge", "query"), {factors: list[float]() for factors in deviations}
    for _ in range(COMPONENTS):
        values = draw.normal(0, 0.05, sizes)
        for factors, deviation in deviations.items():
            shape = [size if axis in factors else 1 for axis, size in zip(axes, sizes, strict=True)]
            values = values + draw.normal(0, deviation, shape)
        for one in variance_components(values):
            if one.factors in seen:
                seen[one.factors].append(one.variance)
    for factors, variances in seen.items():
        yield {"kind": "variance components", "source": " x ".join(factors), "count": COMPONENTS,
               "true": deviations[factors] ** 2, "mean": float(np.mean(variances)),
               "error": float(np.std(variances) / COMPONENTS**0.5)}  # fmt: skip


def _filters() -> Iterator[dict]:
    # Of the k * m first documents a filter by lot permits a hypergeometric number.
    draw = np.random.default_rng(23)
    rows = draw.normal(size=(DOCUMENTS + 300, 16)).astype(np.float32)
    texts = {f"text {n}": row for n, row in enumerate(rows)}
    dataset = weir.Dataset.of(
        {f"d{n}": f"text {n}" for n in range(DOCUMENTS)},
        {f"q{n}": f"text {DOCUMENTS + n}" for n in range(300)},
        {f"q{n}": {"d0": 1} for n in range(300)},
    )

    def encode(some: list[str]) -> np.ndarray:
        return np.array([texts[" ".join(text.split())] for text in some], np.float32)

    dense = SYSTEMS.get("dense")(weir.encoder(encode, name="drawn", version="1", similarity="cosine"))
    rules = weir.FilterRules(k=K, selectivity=SHARES, overfetch=OVERFETCH)
    [study] = weir.filters(dataset, dense, rules=rules)
    for one in study.searches:
        if one.filter != "by lot":
            continue
        permitted = round(one.permitted)
        of_first = draw.hypergeometric(
            permitted, DOCUMENTS - permitted, min(K * one.overfetch, DOCUMENTS), 1_000_000
        )
        most = min(K, permitted)
        expected = float(np.minimum(of_first, most).mean() / most)
        source = f"{permitted / DOCUMENTS:.0%}"
        yield {"kind": "filters by lot", "source": source, "name": str(one.overfetch), "count": one.queries,
               "true": expected, "mean": one.recall, "low": one.low, "high": one.high}  # fmt: skip


def page(found: list[dict]) -> list[str]:
    """The sections of docs/calibration.md."""
    of = {kind: [record for record in found if record["kind"] == kind] for kind in KINDS}
    lines = ["## What is planted is found", "", LOSSES, "", "| funnels | of | share |", "|---|---|---|"]
    lines += [f"| {r['source']} | {r['count']:,} | {r['rate']:.1%} |" for r in of["planted losses"]]
    lines += ["", DEFECTS_SAID, "", "| planted | to be named | named | another named |", "|---|---|---|---|"]
    lines += [
        f"| {r['source']} | {r['name']} | {'-' if r['name'] == '-' else format(r['rate'], '.0%')} | {r['false']:.0%} |"
        for r in of["planted defects"]
    ]
    lines += [
        "",
        COMPONENTS_SAID,
        "",
        "| component | planted | mean estimate | its standard error |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {r['source']} | {r['true']:.6f} | {r['mean']:.6f} | {r['error']:.6f} |"
        for r in of["variance components"]
    ]
    lines += [
        "",
        FILTERS,
        "",
        "| permitted | overfetch | expected | found | 95% interval |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['source']} | {r['name']} | {r['true']:.4f} | {r['mean']:.4f} | [{r['low']:.4f}, {r['high']:.4f}] |"
        for r in of["filters by lot"]
    ]
    return [*lines, ""]


LOSSES = f"""`weir study funnel`: {FUNNELS:,} pipelines of {STAGES} rankings, from each of which relevant documents are
taken by lot."""
DEFECTS_SAID = f"""`weir audit --fit`: sets that are fit to show {CHANGE:g}, each with one defect, {RULERS} of each
kind."""
COMPONENTS_SAID = f"""`weir audit --fit --repeats`: 5 askings, 3 judges and 50 queries, {COMPONENTS:,} times. Estimates
are unbiased."""
FILTERS = f"""`weir study filters`: an exact search of {DOCUMENTS} drawn vectors, whose answers are filtered by lot
after it. Of the first documents a hypergeometric number is permitted, which gives the recall to be expected."""
