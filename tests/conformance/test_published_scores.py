"""How many published scores a system of Weir is compared with, counted by comparing."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from tests.unit.cells import MANIFEST, noted, write_cell

from weir.datasets import catalogue
from weir.experiment.published import comparable, published
from weir.experiment.reproduce import reproduce
from weir.experiment.results import open_cell
from weir.systems import parse_system

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = tomllib.loads(
    (files("weir.experiment") / "facts" / "collections.toml").read_text(encoding="utf-8")
)
"""Collections that are not in the catalogue, with what a user of Weir calls them."""


def cells_of(root: Path) -> None:
    """A finished cell of each system and collection with scores to compare, whose means are the published ones.

    Members of a group, whose own mean is compared too, have the means of their values.
    """
    wanted: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for score, system in comparable().items():
        grouped = [
            group for group in map(catalogue.group, catalogue.groups()) if score.dataset in group.members
        ]
        members = catalogue.members(score.dataset) if catalogue.is_group(score.dataset) else [score.dataset]
        for name in members:
            alone = not grouped and members == [score.dataset]
            means = wanted.setdefault((system, name, score.split), {})
            means.setdefault(score.measure, score.value if alone else None)
    for number, ((system, name, split), means) in enumerate(wanted.items()):
        called = ELSEWHERE[name]["names"][0].partition(":test")[0] if name in ELSEWHERE else name
        about = {"dataset": called, "split": split, "system": MANIFEST["system"] | {"system": system}}
        folder = write_cell(root / f"{number:04}" / "cell", manifest=MANIFEST | about, measures=tuple(means))
        queries = ELSEWHERE[name]["queries"] if name in ELSEWHERE else catalogue.get(name).queries
        rows = [replace(row, queries=queries) for row in open_cell(folder).rows]
        rows = [row if means[row.measure] is None else replace(row, mean=means[row.measure]) for row in rows]
        noted(folder, queries=queries, rows=[row.to_dict() for row in rows])


@pytest.mark.slow
def test_every_comparable_score_is_compared(tmp_path):
    cells_of(tmp_path / "results")
    found = [check for check in reproduce(tmp_path / "results") if check.outcome != "other data"]
    assert {check.published for check in found} - {None} == set(comparable())
    members = {name for group in catalogue.groups() for name in [group, *catalogue.group(group).members]}
    alone = [check for check in found if check.dataset not in members]
    # Where several published scores of one system differ, a cell has the mean of the first.
    assert all(check.outcome == "reproduced" for check in alone if check.ours == check.published.value)
    assert len({check.published for check in alone if check.outcome == "reproduced"}) > 3000


def test_scores_that_one_system_claims_are_alike():
    """A wrong pair would stand out: two publishers' scores of one system lie within 0.016 of each other."""
    claimed_together: dict[tuple[str, ...], list[float]] = {}
    for score, system in comparable().items():
        place = system, score.dataset, score.split, score.measure
        claimed_together.setdefault(place, []).append(score.value)
    apart = {place: max(values) - min(values) for place, values in claimed_together.items()}
    assert sum(len(values) > 1 for values in claimed_together.values()) > 500
    assert {place: gap for place, gap in apart.items() if gap > 0.016} == {}
    assert sum(gap > 0.006 for gap in apart.values()) < 10


def test_most_published_scores_are_comparable_by_a_system_that_can_be_written():
    assert len(comparable()) > 6000
    assert {str(parse_system(system)) for system in comparable().values()} == set(comparable().values())
    assert set(comparable()) < set(published())


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("docs/comparing.md", r"([\d,]+) of them by a system that Weir has"),
        ("docs/published.md", r"([\d,]+) of them are those of\na system that can be written in Weir"),
        ("CHANGELOG.md", r"([\d,]+) of [\d,]+ are those of a system that Weir has"),
    ],
)
def test_pages_say_how_many_are_comparable(page, sentence):
    (count,) = re.findall(sentence, (ROOT / page).read_text(encoding="utf-8"))
    assert count == f"{len(comparable()):,}"


def test_the_page_says_of_how_many_models_scores_are():
    text = (ROOT / "docs" / "published.md").read_text(encoding="utf-8")
    models = len({score.model for score in published()})
    assert f"{len(published()):,} published scores of {models} models" in text
