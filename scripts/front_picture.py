"""Draw the picture of README.md, docs/front-*.svg, from the numbers in docs/front.json.

    python scripts/front_picture.py               # draws
    python scripts/front_picture.py --run FOLDER  # measures first, which takes minutes: scifact, nfcorpus, 7 systems

FOLDER is a results folder, new or begun. The collections are fetched before (`weir data fetch scifact nfcorpus`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TypedDict

import weir
from weir.core.charts import FONT, ICONS, ticks
from weir.core.colours import INKS
from weir.core.short_names import short_names
from weir.core.tables import html_escaped
from weir.stats.compare import rank_text

DOCS = Path(__file__).resolve().parents[1] / "docs"
NUMBERS = DOCS / "front.json"
MINILM = 'dense("minilm")'
BASELINE = "bm25"
FUSIONS = (f"wsum(bm25, {MINILM}, weights=[0.5, 0.5])", f"rrf(bm25, {MINILM})")
SYSTEMS = (
    *FUSIONS,
    f"bm25 >> score({MINILM}, depth=100)",
    BASELINE,
    "rm3",
    MINILM,
    'bm25(analyzer="whitespace")',
)
COLLECTIONS = ("scifact", "nfcorpus")
MEASURE = "nDCG@10"
CLAIM = "BM25 and MiniLM fused are better than either; which fusion is better stays open"
THEMES = ("light", "dark")

WIDTH, ROW, TOP = 800, 30, 84
LABELS, PLOT, BESIDE = 212, 168, 108  # widths of the names, of a plot, and of the mean and the rank beside it
NARROW_WIDTH, NARROW_PLOT = 440, 120


class Collection(TypedDict):
    """Of a collection: queries; mean, interval and rank of each system; what the test says of systems against some."""

    queries: int
    systems: dict[str, tuple[float, float, float, str]]
    against: dict[str, dict[str, str]]


def measured(folder: Path) -> dict[str, Collection]:
    """Means, intervals, ranks and verdicts of a grid that this folder has or is given."""
    weir.Experiment(COLLECTIONS, SYSTEMS, (MEASURE,)).execute(folder)
    record: dict[str, Collection] = {}
    for name in COLLECTIONS:
        [found] = weir.compare(folder, measures=[MEASURE], datasets=[name])
        rows = {
            one.system: (
                round(one.mean, 4),
                round(one.low or 0, 4),
                round(one.high or 0, 4),
                rank_text(one, "–"),
            )
            for one in found.standings
        }
        verdicts: dict[str, dict[str, str]] = {
            other: {one: pair.verdict for one in SYSTEMS if (pair := found.against(one, other))}
            for other in (BASELINE, MINILM, FUSIONS[1])
        }
        record[name] = {"queries": found.count, "systems": rows, "against": verdicts}
    return record


def picture(record: dict[str, Collection], theme: str, narrow: bool = False) -> str:
    """The numbers as SVG on a light or a dark ground: mean, interval and rank of each system on each collection.

    Collections stand beside one another or, on a narrow screen, one below the other.
    """
    ink = {name: pair[THEMES.index(theme)] for name, pair in INKS.items()}
    width, plot = (NARROW_WIDTH, NARROW_PLOT) if narrow else (WIDTH, PLOT)
    lines = CLAIM.replace("; ", ";\n").split("\n") if narrow else [CLAIM]
    first_row = TOP + 20 * (len(lines) - 1)
    panel = ROW * len(SYSTEMS) + 66  # from the first row of a collection to that of the one below it
    height = first_row + panel * (len(record) if narrow else 1) + 8 + 36 * narrow
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="{html_escaped(FONT)}" font-size="13" role="img">',
        f"<title>{CLAIM}</title>",
        f'<rect width="{width}" height="{height}" fill="{ink["paper"]}"/>',
    ]

    def text(x: float, y: float, said: str, colour: str = "ink", more: str = "") -> None:
        parts.append(f'<text x="{x:g}" y="{y:g}" fill="{ink[colour]}" {more}>{html_escaped(said)}</text>')

    def icon(x: float, y: float, system: str, said: str) -> None:
        shape, colour = ICONS.get(said, ICONS[""]), said if said in ICONS else "soft"
        if system == BASELINE:
            shape, colour = "M0-5 5 0 0 5-5 0Z", "s0"
        inside = ink["paper"] if colour == "soft" else ink[colour]
        parts.append(
            f'<path transform="translate({x:.1f} {y:g})" d="{shape}" fill="{inside}" stroke="{ink[colour]}" '
            'stroke-width="1.6"/>'
        )

    for number, line in enumerate(lines):
        text(8, 26 + 20 * number, line, more='font-size="16" font-weight="650"')
    for place, (name, found) in enumerate(record.items()):
        rows = found["systems"]
        left = LABELS + (0 if narrow else place * (plot + BESIDE + 16))
        top = first_row + (place * panel if narrow else 0)
        for number, label in enumerate(short_names(SYSTEMS)):
            if narrow or place == 0:
                text(8, top + ROW * (number + 0.5) + 4.5, label)
        low, high = min(row[1] for row in rows.values()), max(row[2] for row in rows.values())

        def at(value: float, left: float = left, low: float = low, high: float = high) -> float:
            return left + 8 + (plot - 16) * (value - low) / (high - low)

        bottom = top + ROW * len(SYSTEMS)
        text(8 if narrow else left, top - 28, f"{name}, {found['queries']} queries", more='font-weight="650"')
        text(left + plot + 46, top - 10, "mean", "soft", 'text-anchor="end" font-size="12"')
        text(left + plot + BESIDE - 8, top - 10, "rank", "soft", 'text-anchor="end" font-size="12"')
        for tick in ticks(low, high, 4):
            parts.append(
                f'<path d="M{at(tick):.1f} {top - 4}V{bottom}" stroke="{ink["line"]}" stroke-width="1"/>'
            )
            text(at(tick), bottom + 15, f"{tick:g}", "soft", 'text-anchor="middle" font-size="11.5"')
        for number, system in enumerate(SYSTEMS):
            mean, least, most, rank = rows[system]
            said = found["against"][BASELINE].get(system, "")
            y = top + ROW * (number + 0.5)
            colour = "s0" if system == BASELINE else said if said in ICONS else "soft"
            parts.append(
                f'<path d="M{at(least):.1f} {y:g}H{at(most):.1f}" stroke="{ink[colour]}" stroke-width="2.5"/>'
            )
            icon(at(mean), y, system, said)
            numerals = 'text-anchor="end" style="font-variant-numeric:tabular-nums"'
            text(left + plot + 46, y + 4.5, f"{mean:.4f}", more=numerals)
            text(left + plot + BESIDE - 8, y + 4.5, rank, more=numerals + ' font-weight="650"')
    y = first_row + panel * (len(record) if narrow else 1) - 26
    for x, said, words in (
        (16, "better", f"better than {BASELINE}"),
        (152, "not separable", "not separable"),
        (262, "worse", "worse"),
    ):
        icon(x, y - 4, "", said)
        text(x + 10, y, words, "soft", 'font-size="12"')
    pairs = len(SYSTEMS) * (len(SYSTEMS) - 1) // 2
    said = f"{MEASURE}, mean and 95% interval over queries"
    more = [
        "A rank is a range: it follows from paired tests",
        f"of {pairs} pairs, with Holm; intervals may overlap.",
    ]
    text(8 if narrow else 330, y + 20 * narrow, said, "soft", 'font-size="12"')
    for number, line in enumerate(more if narrow else [" ".join(more)], 1 + narrow):
        text(8, y + 20 * number, line, "soft", 'font-size="12"')
    return "\n".join([*parts, "</svg>", ""])


def pictures() -> dict[str, str]:
    """Each picture of the front page by its name."""
    record = json.loads(NUMBERS.read_text(encoding="utf-8"))
    wide = {f"front-{theme}.svg": picture(record, theme) for theme in THEMES}
    return wide | {f"front-narrow-{theme}.svg": picture(record, theme, narrow=True) for theme in THEMES}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the picture of README.md")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="measure into this results folder first")
    given = parser.parse_args()
    if given.run:
        NUMBERS.write_text(json.dumps(measured(given.run), indent=1) + "\n", encoding="utf-8")
    for file, drawn in pictures().items():
        (DOCS / file).write_text(drawn, encoding="utf-8")
