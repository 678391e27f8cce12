"""docs/certificates.md says of every measure what it is held against, and every value agrees."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("pytrec_eval")
from tests.certified import DIVERSITY, FAMILY, MEASURES, OTHERS

from weir.measures import MEASURES as KNOWN
from weir.measures import parse_measure

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "certificates.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.split("\n")
    if line.startswith("| ")
]
CERTIFIED = [row for row in ROWS if len(row) == 5 and row[0] != "measure"]
GROUPS = [row for row in ROWS if len(row) == 3 and row[0] != "runs of"]
LOOPS = re.findall(r"^- (\w+)$", PAGE, re.MULTILINE)


def written(measures):
    return {str(parse_measure(text)) for text in measures}


def test_what_is_certified_is_on_the_page():
    by_reference = {}
    for measure, reference, *_ in CERTIFIED:
        by_reference.setdefault(reference.split(",")[0].split(" ")[0], set()).add(measure)
    assert by_reference["pytrec_eval"] == written(MEASURES + FAMILY)
    assert by_reference["ir-measures"] | by_reference["gdeval.pl"] == written(OTHERS)
    assert by_reference["ndeval"] == written(DIVERSITY)
    assert len(CERTIFIED) == len({(measure, reference) for measure, reference, *_ in CERTIFIED})


def test_every_measure_is_certified_or_named_as_held_against_loops():
    certified = {parse_measure(measure).name for measure, *_ in CERTIFIED}
    of_rules = {
        name for name in KNOWN.names() if KNOWN.get(name).of == "rules"
    }  # test_document_rules.py has loops
    assert certified | set(LOOPS) | of_rules == set(KNOWN.names())
    assert not certified & set(LOOPS)


def test_every_value_agrees():
    assert len(CERTIFIED) > 150
    for measure, reference, runs, values, difference in CERTIFIED:
        assert float(difference) <= 1e-12, (measure, reference)
        assert int(values.replace(",", "")) >= 100, (measure, reference)
        assert int(runs) >= 5
    for _, _, difference in GROUPS:
        assert float(difference) <= 1e-12


def test_the_numbers_add_up_and_the_versions_are_those_installed():
    runs, values = re.search(r"^on ([\d,]+) runs: ([\d,]+) values", PAGE, re.MULTILINE).groups()
    assert int(values.replace(",", "")) == sum(int(row[3].replace(",", "")) for row in CERTIFIED)
    assert int(runs) == sum(int(row[1]) for row in GROUPS)
    assert f"pytrec_eval-terrier {version('pytrec_eval-terrier')}," in PAGE
    assert re.search(r"ir-measures [\d.]+, cwl-eval [\d.]+, pyndeval [\d.]+ and gdeval.pl 1.2a", PAGE)
