"""Hold every measure against trec_eval on every stored run and write docs/certificates.md.

Needs ../shared/data (real runs are not part of the project) and pytrec_eval-terrier; about a minute.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "certificates.md"


def main() -> None:
    """Compare, and write the page."""
    sys.path.insert(0, str(ROOT))
    from tests.certified import FAMILY, MEASURES, Checked, check, pairs
    from tests.conftest import SHARED

    by_measure: dict[str, list[Checked]] = defaultdict(list)
    by_group: dict[str, list[list[Checked]]] = defaultdict(list)
    for pair in pairs(SHARED):
        found = check(pair, MEASURES + FAMILY)
        by_group[pair.group].append(found)
        for one in found:
            by_measure[one.measure].append(one)
    runs = sum(map(len, by_group.values()))
    values = sum(one.queries for found in by_measure.values() for one in found)
    lines = [
        "# Certificates",
        "",
        f"Weir's measures against pytrec_eval-terrier {version('pytrec_eval-terrier')}, which is trec_eval 9, on",
        f"{runs} runs: {values:,} values compared query by query; 0 is no difference in the last bit. Written by",
        "`python scripts/certify.py`. `tests/real` repeats it and holds the measures against what trec_eval 9.0.8",
        "and 10.0 print for their own test files and against NIST's official scores of TREC DL 2019 (per topic",
        "and mean), which agree in every printed digit; `tests/golden` has cases made for ties, grades and names.",
        "",
        'trec_eval 9 compares scores as 32-bit floats: `ties="trec9"`. The default compares doubles, as trec_eval',
        "10 does; it is compared here in runs where no two scores are equal as floats only.",
        "",
        "| measure | runs | values, ties=trec9 | values, default | largest difference |",
        "|---|---:|---:|---:|---:|",
    ]
    for measure, found in sorted(by_measure.items()):
        counts = [sum(c.queries for c in found if c.ties == ties) for ties in ("trec9", "trec")]
        of_runs = sum(c.ties == "trec9" for c in found)
        worst = max(c.difference for c in found)
        lines.append(f"| {measure} | {of_runs} | {counts[0]:,} | {counts[1]:,} | {worst:.3g} |")
    lines += ["", "| runs of | runs | without float-only ties | largest difference |", "|---|---:|---:|---:|"]
    for group, all_found in by_group.items():
        plain = sum(any(c.ties == "trec" for c in found) for found in all_found)
        worst = max(c.difference for found in all_found for c in found)
        lines.append(f"| {group} | {len(all_found)} | {plain} | {worst:.3g} |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {runs} runs, {values:,} values")


if __name__ == "__main__":
    main()
