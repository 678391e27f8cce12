"""The page of why two systems differ, by `weir why`."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from weir.errors import BadValue
from weir.experiment.results import scored_measures
from weir.experiment.why import Why, explain_cells, why_tables
from weir.plugins.app.choices import System, cells_of, measure_of
from weir.plugins.app.folder import scored_by
from weir.plugins.app.marking import tables_html
from weir.plugins.app.server import Page, Visit
from weir.values import dataclass


@dataclass(frozen=True)
class WhyTwo:
    """Why two systems' means differ."""

    collection: str
    first: System
    second: System
    why: Why

    @property
    def tables(self) -> Markup:
        return tables_html(why_tables([self.why]))


def why(visit: Visit) -> WhyTwo:
    """Return why the means of the two systems that the URL names differ; raises BadValue for a single system."""
    results = visit.folder.results()
    collection = visit.names["collection"]
    cells = results.of(collection)
    measure = measure_of(visit, scored_measures(cells))
    chosen = cells_of(visit, results, cells, measure)[:2]
    if len(chosen) < 2:
        raise BadValue(f"{collection} has one system; two are compared")
    first, second = chosen
    key = measure, scored_by(first), scored_by(second)
    explained = results.kept.value_of(
        ("why", key), lambda: explain_cells(first.folder, second.folder, measure)
    )
    one, other = (System.of(results.numbers, cell.label) for cell in chosen)
    return WhyTwo(collection, one, other, explained)


PAGES: Sequence[Page] = [Page("/c/{collection}/why", "why.html", why)]
