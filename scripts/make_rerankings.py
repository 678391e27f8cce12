"""Analyse stored re-rankings by language models, and write docs/rerankings.md from docs/rerankings.jsonl.

The words of the page stand in rerankings_page.md beside this script.

    python scripts/make_rerankings.py [FOLDER]   # analyses, half a minute
    python scripts/make_rerankings.py --page     # rewrites the page alone

FOLDER: qrels and runs of TREC DL 2019 and 2020, rerank.FIRST.MODEL.trec.gz beside FIRST.trec.gz; by default
../shared/data/trec-dl beside the checkout. They are not part of the project, the figures found are.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.frames import json_value
from weir.core.rounding import change, percent, probability, score
from weir.core.tables import markdown_escaped
from weir.files.runs import read_qrels, read_run
from weir.measures import parse_measure
from weir.plugins.llm.reordering import ReorderRules, reorderings
from weir.stats.significance import adjusted

ROOT = Path(__file__).resolve().parents[1]
STORED, PAGE = ROOT / "docs" / "rerankings.jsonl", ROOT / "docs" / "rerankings.md"
TEMPLATE = Path(__file__).with_name("rerankings_page.md")
TRACKS = {"dl19": "DL 2019", "dl20": "DL 2020"}
RELEVANT_GRADE = 2
"""From which the tracks call a passage relevant."""
LEVEL = 0.05
WINDOW = 20
"""Documents that one prompt shows."""
KEPT_SHARE = 0.5
SHOWN = ("BM25", "SPLADE_P_P_ENSEMBLE_DISTIL")
"""First stages of DL 2019 whose re-rankings the tables show; rerankings.jsonl holds the others."""
STRONG_SCORE = 0.6
"""nDCG@10 of a first stage above which there is little left to gain."""

Record = dict[str, Any]


def analysed(folder: Path) -> Iterator[Record]:
    """A record for each re-ranking: the track, the model, and what `weir study reranking` says."""
    for track in TRACKS:
        qrels = read_qrels(folder / "qrels" / f"qrels.{track}-passage.txt")
        for path in sorted((folder / "runs" / track).glob("rerank.*.trec.gz")):
            _, first, model = path.name.removesuffix(".trec.gz").split(".", 2)
            before = read_run(folder / "runs" / track / f"{first}.trec.gz")
            rules = ReorderRules(rel=RELEVANT_GRADE)
            [found] = reorderings(before, {model: read_run(path)}, qrels, parse_measure("nDCG@10"), rules)
            yield {"track": track, **json_value(found), "first": first}


def _with_nan(fields: dict[str, object]) -> dict[str, object]:
    """The fields of an interval, NaN where JSON has null as there is none."""
    return {k: math.nan if v is None and k in ("low", "high") else v for k, v in fields.items()}


def page(stored: Path) -> str:
    """The page of stored figures."""
    lines_of = stored.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line, object_hook=_with_nan) for line in lines_of]
    holm = adjusted(np.array([one["gain"]["p"] for one in records]))
    for one, p in zip(records, holm.tolist(), strict=True):
        one["gain"]["adjusted"] = p
    said = {
        "count": len(records),
        "strong_score": STRONG_SCORE,
        "queries": {track: next(r["queries"] for r in records if r["track"] == track) for track in TRACKS},
        **_failures(records),
        **_learned(records),
        **{name: _table(records, columns) for name, columns in TABLES.items()},
        **_blocks(records),
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**said)


def _mean(one: Record, name: str, part: str = "mean") -> float:
    found: float = next(m[part] for m in one["means"] if m["name"] == name)
    return found


def _points(one: Record) -> str:
    mean, low, high = (100 * _mean(one, "sealed", part) for part in ("mean", "low", "high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _reach(one: Record, part: str) -> str:
    found = one["bias"][part]
    return f"{found['ratio']:.2f}"


Column = tuple[str, Callable[[Record], str]]
TABLES: dict[str, Sequence[Column]] = {
    "orders": (
        ("first 10 kept", lambda r: percent(_mean(r, "kept first"))),
        ("all kept", lambda r: percent(_mean(r, "kept"))),
        ("one order", lambda r: percent(r["repeated"] / r["queries"])),
        ("tau-b", lambda r: score(_mean(r, "tau"))),
        ("sealed at borders", _points),
    ),
    "gains": (
        ("before", lambda r: score(r["gain"]["before"])),
        ("after", lambda r: score(r["gain"]["after"])),
        ("change", lambda r: change(r["gain"]["change"])),
        ("95% interval", lambda r: f"[{change(r['gain']['low'])}, {change(r['gain']['high'])}]"),
        ("p, Holm", lambda r: probability(r["gain"]["adjusted"])),
        ("hurt", lambda r: percent(r["gain"]["hurt"])),
    ),
    "places": (
        ("from the first 10", lambda r: _reach(r, "early")),
        ("from further down", lambda r: _reach(r, "late")),
        ("95% interval of the difference", lambda r: f"[{r['bias']['low']:+.2f}, {r['bias']['high']:+.2f}]"),
    ),
}


def _table(records: Sequence[Record], columns: Sequence[Column]) -> str:
    lines = [["re-ranking", *(name for name, _ in columns)]]
    shown = [one for one in records if one["track"] == "dl19" and one["first"] in SHOWN]
    lines += [[f"{one['first']} {one['system']}", *(cell(one) for _, cell in columns)] for one in shown]
    head, *rows = [[markdown_escaped(cell) for cell in line] for line in lines]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rows])


def _blocks(records: Sequence[Record]) -> dict[str, object]:
    """How far re-rankings that worked bring up relevant passages of the first and of the last block of ten places."""
    worked = [
        one for one in records if any(b["reach"]["reached"] for b in one["blocks"] if b["start"] > WINDOW)
    ]
    first, last = (sorted(one["blocks"][n]["reach"]["ratio"] for one in worked) for n in (0, -1))
    return {
        "first_block": f"{first[0]:.2f} to {first[-1]:.2f}",
        "last_block": f"{last[0]:.2f} to {last[-1]:.2f}",
    }


def _failures(records: Sequence[Record]) -> dict[str, object]:
    """What failed outright: kept orders, fixed orders, documents lost."""
    kept = [one for one in records if _mean(one, "kept first") >= KEPT_SHARE]
    fixed = [one for one in records if one["repeated"] >= KEPT_SHARE * one["queries"]]
    [one_kept], [one_fixed] = kept, fixed
    return {
        "kept": one_kept["system"],
        "kept_first": round(_mean(one_kept, "kept first") * one_kept["queries"]),
        "kept_all": round(_mean(one_kept, "kept") * one_kept["queries"]),
        "fixed": one_fixed["system"],
        "fixed_times": one_fixed["repeated"],
        "fixed_order": ", ".join(map(str, one_fixed["pattern"])),
        "fixed_kept": round(_mean(one_fixed, "kept first") * one_fixed["queries"]),
        "fixed_change": change(one_fixed["gain"]["change"]),
        "fixed_hurt": percent(one_fixed["gain"]["hurt"]),
        "lost": sum(one["lost"] + one["new"] for one in records),
        "deep": sum(one["beyond"] for one in records),
        "candidates": f"{sum(one['candidates'] for one in records):,}",
        "tied": sum(one["tied"] > 0 for one in records),
    }


def _learned(records: Sequence[Record]) -> dict[str, object]:
    """Which gains are real, and what distinguishes the models."""
    strong = [one for one in records if one["gain"]["before"] > STRONG_SCORE]
    up, down, alone = (
        lambda group: [r for r in group if r["gain"]["adjusted"] <= LEVEL and r["gain"]["change"] > 0],
        lambda group: [r for r in group if r["gain"]["adjusted"] <= LEVEL and r["gain"]["change"] < 0],
        lambda group: [r for r in group if r["gain"]["p"] <= LEVEL < r["gain"]["adjusted"]],
    )
    weak = [one for one in records if one not in strong]
    by_model = {
        m: [r for r in records if r["system"].startswith(m)]
        for m in ("output_v2_aug", "vicuna-7b-checkpoint")
    }
    shown: dict[str, object] = {
        "up": len(up(records)),
        "down": len(down(records)),
        "weak": len(weak),
        "weak_up": len(up(weak)),
        "strong": len(strong),
        "strong_up": len(up(strong)),
        "alone": len(alone(records)),
        "apart": sum(one["bias"]["high"] < 0 for one in records),
        "strong_names": " and ".join(sorted({r["system"] for r in up(strong)})),
    }
    for name, group in (("weak", weak), ("strong", strong)):
        shown[f"unjudged_{name}"] = sum(r["gain"]["judged_after"] < r["gain"]["judged_before"] for r in group)
    for name, group in zip(("aug", "checkpoint"), by_model.values(), strict=True):
        for what, values in (
            ("late", [f"{r['bias']['late']['ratio']:.2f}" for r in group]),
            ("kept", [percent(_mean(r, "kept first"), 0) for r in group]),
            ("sealed", [f"{100 * _mean(r, 'sealed'):.1f}" for r in group]),
            ("hurt", [percent(r["gain"]["hurt"], 0) for r in group if r in strong]),
        ):
            ordered = sorted(values, key=lambda text: float(text.rstrip("%")))
            shown[f"{name}_{what}"] = f"{ordered[0]} to {ordered[-1]}"
        shown[f"{name}_runs"] = len(group)
        shown[f"{name}_traced"] = sum(_mean(r, "sealed", "low") > 0 for r in group)
    return shown


def main() -> int:
    """Analyse, or rewrite the page; the exit code."""
    parser = argparse.ArgumentParser(description="Analyse stored re-rankings by language models.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT.parent / "shared" / "data" / "trec-dl")
    parser.add_argument("--page", action="store_true", help="rewrite the page alone")
    given = parser.parse_args()
    if not given.page:
        if not (given.folder / "runs").is_dir():
            print(f"{given.folder}: no runs of TREC DL are there", file=sys.stderr)
            return 2
        lines = [json.dumps(one) for one in analysed(given.folder)]
        STORED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    PAGE.write_text(page(STORED), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
