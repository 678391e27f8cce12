"""Measure what filters cost FAISS, and where a dense system loses documents, and write it into docs/questions.md.

    python scripts/make_questions.py [--data FOLDER]   # some ten minutes on one core
    python scripts/make_questions.py --page            # rewrites the page alone

FOLDER: scifact/ and nfcorpus/ in BEIR's layout, by default ../shared/data beside the checkout. Takes the extra
`neural` and the model minilm. docs/questions.jsonl holds the figures; a block of the page follows each line
`<!-- figures: NAME -->`. pgvector and OpenSearch are tried by tests/real/test_filters_real.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import weir
from weir.plugins.questions.filter_recall import FilteredSearch, FilterStudy

ROOT = Path(__file__).resolve().parents[1]
STORED, PAGE = ROOT / "docs" / "questions.jsonl", ROOT / "docs" / "questions.md"
HNSW, IVF = 'dense("minilm", index="HNSW32")', 'dense("minilm", index="IVF64,Flat")'
FUNNEL = 'rrf(bm25, dense("minilm")) >> score(dense("minilm"), depth=50)'
STUDIED = (("SciFact", HNSW), ("NFCorpus", HNSW), ("NFCorpus", IVF))
SHOWN = (("none", 1.0), ("by lot", 0.1), ("by lot", 0.01), ("near", 0.01), ("far", 0.1), ("far", 0.01))
"""Filters of the table, with their selectivity."""

Record = dict[str, object]


def measured(data: Path) -> Iterator[Record]:
    """Every figure of the page: a record for each filter, and of the funnel one."""
    with tempfile.TemporaryDirectory() as kept:
        for collection, system in STUDIED:
            [study] = weir.filters(data / collection.lower(), system, results=kept)
            for filter_, share in SHOWN:
                during, after = (_tried(study, filter_, share, applied) for applied in ("during", "after"))
                yield {"kind": "filters", "collection": collection, "system": system, "documents": study.documents,
                       "filter": filter_, "selectivity": share, "permitted": round(during[0].permitted),
                       "of exact": during[0].correlation, "during": during[0].recall, "after": after[0].recall,
                       "short": after[0].short, "during from": _cheapest(study, during),
                       "after from": _cheapest(study, after)}  # fmt: skip
        [funnel] = weir.funnel(data / "nfcorpus", FUNNEL, results=kept)
        fused, cut, scored = funnel.whole[-4:-1]
        yield {"kind": "funnel", "system": FUNNEL, "relevant": funnel.relevant, "cut": cut.name, "left": cut.left,
               "at best": cut.ceiling, "before": fused.value, "after": scored.value}  # fmt: skip


def _tried(study: FilterStudy, filter_: str, share: float, applied: str) -> list[FilteredSearch]:
    permitted = max(1, round(share * study.documents))
    return [
        one
        for one in study.searches
        if (one.filter, round(one.permitted), one.applied) == (filter_, permitted, applied)
    ]


def _cheapest(study: FilterStudy, tried: list[FilteredSearch]) -> list[object]:
    """The setting that has the target, as `weir study filters` chooses it, and the vectors it compares."""
    reaching = [one for one in tried if one.recall >= study.target]
    if not reaching:
        return ["never", None]
    best = min(reaching, key=lambda one: (one is not tried[0], one.compared, one.overfetch, one.effort))
    setting = best.setting.removesuffix(", overfetch 1")
    if best.effort == tried[0].effort:
        setting = setting.rpartition(", ")[2]
    return ["usual" if best is tried[0] else setting, best.compared]


def _table(found: list[Record]) -> str:
    lines = [
        "| FAISS HNSW32, SciFact | permitted | of the exact 10 | applied during: recall@10 | 0.95 from | applied "
        "after: recall@10 | short | 0.95 from |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in _of(found, "SciFact", HNSW):
        cells = [one["filter"], format(one["permitted"], ","), format(one["of exact"], ".1%").replace("100.0%", "100%"),
                 format(one["during"], ".3f"), one["during from"][0], format(one["after"], ".3f"),
                 one["short"], one["after from"][0]]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _filters(found: list[Record]) -> str:
    hnsw, ivf = (
        {(one["filter"], one["selectivity"]): one["during"] for one in _of(found, "NFCorpus", system)}
        for system in (HNSW, IVF)
    )
    at = [("none", 1.0), ("by lot", 0.1), ("far", 0.1)]
    first, second, third = (f"{hnsw[one]:.3f}" for one in at)
    lists = ", ".join(f"{ivf[one]:.3f}" for one in at[:2]) + f" and {ivf[at[2]]:.3f}"
    tenth = next(
        one for one in _of(found, "SciFact", HNSW) if (one["filter"], one["selectivity"]) == ("by lot", 0.1)
    )
    return (
        f"For 0.95 under the {tenth['permitted']} by lot HNSW compares {tenth['during from'][1]:,.0f} vectors, an "
        f"exact search of the permitted ones, which loses nothing, {tenth['permitted']}. On NFCorpus HNSW32 has "
        f"{first} without a filter, {second} under 10% by lot, {third} far; 64 lists of IVF, one of them "
        f"visited, have {lists}."
    )


def _funnel(found: list[Record]) -> str:
    [one] = [record for record in found if record["kind"] == "funnel"]
    return (
        f"The stage decides the repair. With `{one['system']}` on NFCorpus, {one['left']:,} of {one['relevant']:,} "
        f"relevant documents are among the {one['cut']}: the re-ranker can reach {one['at best']:.3f} at best, and "
        f"{'lowers' if one['after'] < one['before'] else 'raises'} {one['before']:.3f} to {one['after']:.3f}."
    )


def _of(found: list[Record], collection: str, system: str) -> list[Record]:
    return [one for one in found if (one.get("collection"), one["system"]) == (collection, system)]


BLOCKS: dict[str, Callable[[list[Record]], str]] = {
    "filters of SciFact": _table,
    "filters": _filters,
    "funnel": _funnel,
}


def page(text: str, found: list[Record]) -> str:
    """The page with the blocks that follow their names written anew."""
    for name, block in BLOCKS.items():
        made = block(found)
        made = made if made.startswith("|") else textwrap.fill(made, 150, break_on_hyphens=False)
        text, times = re.subn(
            rf"(?<=<!-- figures: {name} -->\n\n).+?(?=\n\n)", lambda _, made=made: made, text, flags=re.DOTALL
        )
        if times != 1:
            raise SystemExit(f"{PAGE}: found {times} blocks of {name}; expected one")
    return text


def main() -> None:
    """Measure unless told not to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if not given.page:
        lines = []
        for record in measured(given.data):
            lines.append(json.dumps(record))
            print(lines[-1], file=sys.stderr, flush=True)
        STORED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = [json.loads(line) for line in STORED.read_text(encoding="utf-8").splitlines()]
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
