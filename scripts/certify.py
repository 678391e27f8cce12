"""Hold every measure against the programs that compute it, on every stored run, and write docs/certificates.md.

    python scripts/certify.py [PYTHON]

PYTHON: that of an environment with ir-measures, cwl-eval and pyndeval, where this one has them not; perl runs
gdeval.pl. Needs ../shared/data (real runs are not part of the project) and pytrec_eval-terrier; some minutes.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "certificates.md"
SEEDS = range(5)
VERSIONS = (
    "from importlib.metadata import version\n"
    "print(', '.join(f'{n} {version(n)}' for n in ('ir-measures', 'cwl-eval', 'pyndeval')))"
)


def main() -> None:
    """Compare, and write the page."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    asked = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=False)
    if asked.returncode:
        raise SystemExit(f"{python} has not all of ir-measures, cwl-eval and pyndeval; name one that has")
    sys.path.insert(0, str(ROOT))
    from tests import certified
    from tests.conftest import SHARED

    by_measure: dict[tuple[str, str], list[certified.Checked]] = defaultdict(list)
    by_group: dict[str, list[list[certified.Checked]]] = defaultdict(list)
    for pair in certified.pairs(SHARED):
        found = certified.check(pair, certified.MEASURES + certified.FAMILY)
        others = certified.check_others(pair, python)
        by_group[pair.group].append([*found, *others.values()])
        for one in found:
            by_measure[one.measure, REFERENCES[one.ties]].append(one)
        for one in others.values():
            by_measure[one.measure, one.ties].append(one)
        print(f"{pair.group}: {pair.run.name}", file=sys.stderr)
    for seed in SEEDS:
        made = list(certified.check_intents(seed, python).values())
        by_group["drawn at random, with intents"].append(made)
        for one in made:
            by_measure[one.measure, one.ties].append(one)
    PAGE.write_text(page(by_measure, by_group, asked.stdout.strip()), encoding="utf-8")
    values = sum(one.queries for found in by_measure.values() for one in found)
    print(f"{PAGE.relative_to(ROOT)}: {sum(map(len, by_group.values()))} runs, {values:,} values")


REFERENCES = {"trec9": "pytrec_eval, ties=trec9", "trec": "pytrec_eval"}


def page(by_measure: dict[tuple[str, str], list], by_group: dict[str, list[list]], tools: str) -> str:
    """The page: what was compared, and how far apart the values are at most."""
    from weir.measures import MEASURES, parse_measure

    runs = sum(map(len, by_group.values()))
    values = sum(one.queries for found in by_measure.values() for one in found)
    lines = [
        "# Certificates",
        "",
        f"Weir's measures against pytrec_eval-terrier {version('pytrec_eval-terrier')}, which is trec_eval 9, and",
        f"against {tools} and gdeval.pl 1.2a",
        f"on {runs} runs: {values:,} values compared query by query; 0 is no difference in the last bit. Written by",
        "`python scripts/certify.py`. `tests/real` repeats it and holds the measures against what trec_eval 9.0.8",
        "and 10.0 print for their own test files and against NIST's official scores of TREC DL 2019 (per topic",
        "and mean), which agree in every printed digit; `tests/golden` has cases made for ties, grades and names.",
        "",
        "trec_eval 9 compares scores as 32-bit floats: `ties=trec9`. The default compares doubles, as trec_eval",
        "10 does; it is compared here in runs where no two scores are equal as floats only. The other programs",
        "order ties each in their own way and are handed the rankings in Weir's order; grades beyond 4, which",
        "gdeval's scale ends with, are cut to it; gdeval.pl is run from a copy that prints 17 digits, not 5; ndeval",
        "goes no deeper than rank 20, and at rank 1 it does not divide ERR-IA and alpha-DCG, which are left out there.",
        "",
        "| measure | reference | runs | values | largest difference |",
        "|---|---|---:|---:|---:|",
    ]
    for (measure, reference), found in sorted(by_measure.items()):
        compared, worst = sum(c.queries for c in found), max(c.difference for c in found)
        lines.append(f"| {measure} | {reference} | {len(found)} | {compared:,} | {worst:.3g} |")
    lines += ["", "| runs of | runs | largest difference |", "|---|---:|---:|"]
    for group, all_found in by_group.items():
        worst = max(c.difference for found in all_found for c in found)
        lines.append(f"| {group} | {len(all_found)} | {worst:.3g} |")
    held = {parse_measure(measure).name for measure, _ in by_measure}
    loops = [f"- {name}" for name in sorted(set(MEASURES.names()) - held)]
    lines += [
        "",
        "Measures that none of these programs computes are held against plain loops in exact fractions",
        "(`tests/reference.py` and the files beside it), and against what trec_eval 10 prints where it has them:",
        "",
        *loops,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
