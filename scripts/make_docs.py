"""Make the pages and the picture that come from the code: docs/measures.md, docs/systems.md, docs/brook.svg.

Run by `make docs`; tests/conformance/test_docs.py fails when a page no longer says what the code does.
"""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path

from weir.measures import MEASURES
from weir.measures.aliases import CUT, REFUSED, VALUE, WHOLE
from weir.systems import PRESETS, RERANKERS, SYSTEMS, usage

DOCS = Path(__file__).resolve().parents[1] / "docs"
MINILM = 'dense("minilm", dtype="bf16")'
SHOWN = {
    "bm25": "#1f6f8b",
    MINILM: "#d9822b",
    f"rrf(bm25, {MINILM})": "#6b4c9a",
    f"bm25 >> score({MINILM}, depth=20)": "#5b8c3a",
}
"""What `make demo` runs, and the colours."""


def measures_page() -> str:
    """Every measure with its settings and documentation."""
    lines = [
        "# Measures",
        "",
        "Made from the code by `make docs`. `@k` is required, `[@k]` may be left out.",
        "`condensed(nDCG@10)` is any measure on the ranking without the documents that nobody judged.",
        "",
    ]
    for name in MEASURES:
        known = MEASURES.get(name)
        lines += [f"## {name}", "", f"`{name}{'@k' if known.cutoff == 'required' else '[@k]'}`", ""]
        for key, value in known.defaults().items():
            choices = dict(known.choices).get(key)
            allowed = f", one of {', '.join(map(repr, choices))}" if choices else ""
            allowed += ", or a table such as '1=1,2=3'" if key in dict(known.forms) else ""
            lines += [f"- setting `{key}={value!r}`{allowed}"]
        if known.of == "intents":
            lines += ["- needs judgments of intents: the second column of a TREC file names the intent"]
        lines += [*([""] if known.defaults() else []), inspect.getdoc(known.function) or "", ""]
    return "\n".join([*lines, *_names_of_others()])


def _names_of_others() -> list[str]:
    """What other tools call the measures."""
    lines = [
        "## Names of other tools",
        "",
        "Read wherever a measure is named, in any case and with or without `_` and `-`; results print our name. A rank",
        "follows as in `ndcg_cut_10`, `P.10`, `recall@100`, `map_at_10` or `nDCG10`. ranx's `map@10-l2` is",
        "`AP(rel=2)@10`, sentence-transformers' `cosine_ndcg@10` is `nDCG@10`; of ir-measures,",
        "`nDCG(dcg='exp-log2')@10` is `nDCG(gain='exp')@10` and `P(judged_only=True)@5` is `condensed(P@5)`.",
        "`Accuracy@10` is ir-measures', `accuracy@10` that of sentence-transformers. Counts such as `num_rel`",
        "have a mean here and a total in trec_eval.",
        "",
        "| elsewhere | here |",
        "|---|---|",
    ]
    found = {f"{name}@k": ours.format("k") for name, ours in CUT.items()} | WHOLE
    found |= {f"{name}_0.1": ours.format("0.1") for name, ours in VALUE.items()}
    lines += [f"| `{name}` | `{found[name]}` |" for name in sorted(found)]
    lines += [f"| `{name.rstrip('.*')}` | refused: {why} |" for name, why in REFUSED.items()]
    return [*lines, ""]


def systems_page() -> str:
    """Every system, and every preset with all that moves its numbers."""
    lines = ["# Systems", "", "Made from the code by `make docs`.", ""]
    lines += [
        "What is written `name(system, system, ...)` fuses the answers of two or more systems; `depth` is how many are",
        "taken from each for a query, None for 1000, or k where that is more. See [fusion.md](fusion.md).",
        "",
    ]
    for name in SYSTEMS:
        lines += [f"## {name}", "", f"`{usage(name)}`", ""]
        lines += [inspect.getdoc(SYSTEMS.get(name)) or "", ""]
    lines += [
        "## Re-rankers",
        "",
        "Behind a system, as in `bm25 >> score(rm3, depth=50)`: the first `depth` documents of each ranking are scored",
        "anew, the others keep their order behind them.",
        "",
    ]
    for name in RERANKERS:
        lines += [f"### {name}", "", f"`{usage(name)}`", ""]
        lines += [inspect.getdoc(RERANKERS.get(name)) or "", ""]
    lines += [
        "## Presets of bm25",
        "",
        "| preset | reproduces | analyzer | k1 | b | lengths | fields | fields combine |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for preset, r in PRESETS.items():
        rule = "one field" if len(r.fields) == 1 else "sum"
        rule = rule if r.tie_breaker is None else f"best + {r.tie_breaker} x the others"
        fields = ", ".join(r.fields)
        lines += [
            f"| `{preset}` | {r.reproduces} | `{r.analyzer}` | {r.k1} | {r.b} | {r.lengths} | {fields} | {rule} |"
        ]
    return "\n".join([*lines, ""])


def picture(path: Path) -> None:
    """The result of `make demo` as a chart of means and intervals."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    from weir.experiment import Experiment, read_results

    with tempfile.TemporaryDirectory() as folder:
        Experiment(("brook",), tuple(SHOWN), ("nDCG@10",)).execute(folder)
        rows = read_results(Path(folder))
    names = sorted({r.dataset for r in rows}, reverse=True)
    mpl.rcParams.update({"svg.hashsalt": "weir", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(7.2, 5.0))
    for number, (system, colour) in enumerate(SHOWN.items()):
        chosen = {r.dataset: r for r in rows if r.system == system}
        y = [names.index(n) + 0.2 * (1.5 - number) for n in names]
        means = [chosen[n].mean for n in names]
        spread = [
            [chosen[n].mean - chosen[n].low for n in names],
            [chosen[n].high - chosen[n].mean for n in names],
        ]
        axes.errorbar(means, y, xerr=spread, fmt="o", ms=4, color=colour, elinewidth=1.2, label=system)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1)
    axes.set_xlabel("nDCG@10, mean and 95% bootstrap interval over queries")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": "weir"})


if __name__ == "__main__":
    (DOCS / "measures.md").write_text(measures_page(), encoding="utf-8")
    (DOCS / "systems.md").write_text(systems_page(), encoding="utf-8")
    picture(DOCS / "brook.svg")
