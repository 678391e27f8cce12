"""The list of a collection's queries, comparing two systems."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from weir.audit.bias import feature_groups
from weir.audit.rankings import OFF_TOPIC_RANKS, off_topic_results
from weir.core.judged import Judged
from weir.core.scores import Scores
from weir.core.strings import Float64, Ids
from weir.core.subject import Subject
from weir.core.tables import excerpt
from weir.datasets.load import Dataset
from weir.errors import UnknownName, WeirError
from weir.experiment.experiment import DEPTH
from weir.experiment.results import ResultCell, name_given, scored_measures
from weir.files.layouts import left_out
from weir.measures import parse_measure
from weir.measures.measure import direction
from weir.plugins.app.choices import System, cells_of, measure_of, systems_text
from weir.plugins.app.folder import Results, scored_by
from weir.plugins.app.server import Page, Visit
from weir.stats.compare import Comparison, Pair
from weir.stats.query_differences import WORDS, query_differences

PART_ROWS = 100
"""Rows of a page of the list."""
TEXT_CHARACTERS = 160
SORTS = {
    "difference": "largest difference",
    "loss": "largest loss",
    "gain": "largest gain",
    "hardest": "lowest values",
    "judged": "fewest judged",
    "file": "order of the file",
}
TITLES = {"": "all", "unjudged": "unjudged among the first ten"}


@dataclass(frozen=True)
class QueryRow:
    """A query of the list, with its values for the compared systems."""

    query: str
    text: str
    values: tuple[float, ...]
    """Values of the compared systems; NaN for none."""
    difference: float
    """Second minus first; NaN without two values."""
    outcome: str
    """Of the second system: won, lost or tied, or a word of `WORDS` for a measure without a direction; ""
    without two values."""
    judged: float
    """Smallest share of judged documents among the first ten; NaN if unknown or not yet computed."""
    howlers: tuple[tuple[str, str], ...]
    """(short name of a system, document) among its first three, neither relevant nor with a word of the query."""

    @property
    def identifier(self) -> str:
        """The query's identifier; "" if it is the text or was made from it."""
        made = re.fullmatch(r"(.+)-[0-9a-f]{12}", self.query)
        words = "-".join(re.findall(r"[a-z0-9]+", self.text.casefold())) or "q"
        told = self.text in ("", self.query) or (made is not None and words.startswith(made[1]))
        return "" if told else self.query


@dataclass(frozen=True)
class Filter:
    """A filter of queries and the number of queries that pass."""

    name: str
    """The value of the parameter `show`."""
    title: str
    count: int


@dataclass(frozen=True)
class Queries:
    """A page of the list of a collection's queries."""

    collection: str
    measure: str
    measures: tuple[str, ...]
    systems: tuple[System, ...]
    """All systems of the collection."""
    compared: tuple[System, ...]
    """The two compared systems, or the only one."""
    means: tuple[float, ...]
    compares: Pair | None
    """The second system against the first; None for one system, without scores or tests, and while they are
    compared."""
    comparing: bool
    sentences: tuple[str, ...]
    sort: str
    show: str
    find: str
    filters: tuple[Filter, ...]
    slices: tuple[Filter, ...]
    """Groups of queries, as in the audit."""
    here: bool
    """True if judgments are on this machine."""
    readable: bool
    """True if documents are on this machine."""
    looking: bool
    """True while judged shares, `QueryRow.howlers` and slices are computed."""
    largest: float
    """Largest absolute difference of a query."""
    total: int
    """Queries that pass the filters."""
    start: int
    """Position of the first row, from 0."""
    rows: tuple[QueryRow, ...]
    parameters: tuple[tuple[str, str | list[str]], ...]
    """Parameters of the URL; a link changes one of them."""
    adds: str
    """The command that adds a system to these results."""
    losses: tuple[str, ...] = ()
    """Sentences on files and rows that the collection leaves out."""
    new: tuple[tuple[str, int], ...] = ()
    """(pool, number) of people's judgments, which no number here counts."""

    @property
    def again(self) -> dict[str, object]:
        """The URL parameters that show this list from its first row."""
        return dict(self.parameters)

    @property
    def next_start(self) -> int | None:
        """Position of the next page's first row; None on the last page."""
        end = self.start + len(self.rows)
        return end if end < self.total else None


@dataclass(frozen=True, eq=False)
class Compared:
    """The values of one or two systems for each query, in the order of the first system's scores."""

    cells: tuple[ResultCell, ...]
    queries: Ids
    values: Float64
    """float64[systems, queries]."""
    difference: Float64
    outcome: tuple[str, ...]
    words: tuple[str, ...]
    """Names of the outcomes; () for one system."""
    way: int
    """-1 if lower values are better, else 1."""
    sentences: tuple[str, ...]
    means: tuple[float, ...]

    @staticmethod
    def of(results: Results, cells: Sequence[ResultCell], measure: str) -> Compared:
        """Return the values of one or two results for each query; NaN if missing, all NaN for measure ""."""
        if not measure:
            dataset = results.dataset(cells[0].dataset)
            queries = Ids.of([]) if dataset is None else dataset.queries.ids
            values = np.full((len(cells), len(queries)), np.nan)
        else:
            scores = [results.scores(cell) for cell in cells]
            queries = scores[0].queries
            values = np.full((len(cells), len(queries)), np.nan)
            for row, one in zip(values, scores, strict=True):
                if measure in one.measures:
                    at = one.queries.codes(queries.strings)
                    row[:] = np.where(at >= 0, one.of(measure)[at], np.nan)
        difference = np.full(len(queries), np.nan)
        way = (direction(measure) or 1) if measure else 1
        outcome, sentences, words = [""] * len(queries), list[str](), tuple[str, ...]()
        if measure and len(cells) > 1:
            difference = values[1] - values[0]
            names = results.numbers.label(cells[0].label), results.numbers.label(cells[1].label)
            scores = [_of_measure(one, measure) if measure in one.measures else one for one in scores]
            words = WORDS[bool(direction(measure))][3:6]
            try:
                moves = query_differences(measure, names, scores[0], scores[1])
                of_query = {one.query: one.outcome for one in moves.queries}
                outcome = [of_query.get(query, "") for query in queries]
                sentences = [str(note) for note in moves.notes]
            except WeirError as error:  # no query has two values
                sentences = [str(error)]
        means = tuple(mean if (mean := cell.mean(measure)) is not None else np.nan for cell in cells)
        return Compared(
            tuple(cells),
            queries,
            values,
            difference,
            tuple(outcome),
            words,
            way,
            tuple(sentences),
            means,
        )


@dataclass(frozen=True, eq=False)
class Looked:
    """For each query: share of documents judged, flagrant errors, groups it belongs to."""

    judged: Float64
    """float64[queries]: `QueryRow.judged` of each."""
    howlers: Mapping[int, tuple[tuple[str, str], ...]]
    """{position of a query: its `QueryRow.howlers`}."""
    slices: Mapping[str, NDArray[np.int64]]
    """{slice, a group of queries: their positions}."""

    @staticmethod
    def of(results: Results, compared: Compared) -> Looked:
        """Return facts on the compared queries' first ten documents: share judged, flagrant errors, groups of
        queries.

        Without the collection all are NaN or empty; without texts only the shares are known.
        """
        queries, cells = compared.queries, compared.cells
        judged, howlers = np.full(len(queries), np.nan), dict[int, list[tuple[str, str]]]()
        dataset = results.dataset(cells[0].dataset)
        if dataset is None:
            return Looked(judged, {}, {})
        documents = dataset.layout.documents is not None
        subject = Subject(
            dataset.name,
            dataset.corpus if documents else None,
            dataset.all_queries if dataset.layout.queries is not None else None,
            dataset.qrels,
        )
        for cell in cells:
            top = results.rankings(cell).top(10)
            shares = parse_measure("Judged@10").per_query(Judged.of(top, dataset.qrels))
            at = dataset.qrels.queries.codes(queries.strings)
            judged = np.fmin(judged, np.where(at >= 0, shares[at], np.nan) if len(shares) else judged)
            if subject.corpus is not None and subject.queries is not None:
                name = results.numbers.label(cell.label)
                found = off_topic_results(subject, top, OFF_TOPIC_RANKS)
                numbers = queries.codes([query for query, _ in found]).tolist()
                for number, (_, document) in zip(numbers, found, strict=True):
                    howlers.setdefault(number, []).append((name, document))
        slices = dict[str, NDArray[np.int64]]()
        if subject.queries is not None:
            for groups in feature_groups(subject):
                slices |= {f"{groups.name}: {label}": rows for label, rows in groups.rows(queries).items()}
        return Looked(judged, {n: tuple(of) for n, of in howlers.items()}, slices)


def _of_measure(scores: Scores, measure: str) -> Scores:
    row = [scores.measures.index(measure)]
    others = tuple(f"{one}: " for one in scores.measures if one != measure)
    return replace(
        scores,
        measures=(measure,),
        values=scores.values[row],
        low=None if scores.low is None else scores.low[row],
        high=None if scores.high is None else scores.high[row],
        remarks=tuple(note for note in scores.remarks if not note.text.startswith(others)),
    )


def _adding(cell: ResultCell, measures: Sequence[str]) -> str:
    asked = [part for measure in measures for part in ("-m", measure)]
    depth = ["-k", str(cell.depth)] if cell.depth != DEPTH else []
    place = ["-d", name_given(cell), "-s", 'run("new.csv")', *asked, *depth]
    return shlex.join(["weir", "run", *place, "-o", str(cell.folder.parent.parent)])


def query_texts(dataset: Dataset | None, queries: Ids) -> tuple[str, ...]:
    """Return the first 160 characters of each query's text; "" if missing."""
    if dataset is None or dataset.layout.queries is None:
        return ("",) * len(queries)
    found = dataset.all_queries
    at = found.ids.codes(queries.strings)
    texts = found.text.take(np.maximum(at, 0)).tolist()
    return tuple(excerpt(text, TEXT_CHARACTERS) if n >= 0 else "" for text, n in zip(texts, at, strict=True))


def queries(visit: Visit) -> Queries:
    """Return a page of the list of queries; raises UnknownName for an unknown filter, order, measure, system
    or collection."""
    results = visit.folder.results()
    listed = Listed.of(visit, results)
    start = int(visit.one("from")) if visit.one("from").isdecimal() else 0
    rows = listed.order[start : start + PART_ROWS].tolist()
    new = () if visit.rooms is None else visit.rooms.judged(listed.collection)
    dataset = results.dataset(listed.collection)
    losses = () if dataset is None else tuple(left_out(dataset.layout))
    return replace(listed.part(start, rows), losses=losses, new=new)


@dataclass(frozen=True, eq=False)
class Listed:
    """The queries that pass a URL's filters, in its order."""

    results: Results
    collection: str
    measure: str
    compared: Compared
    looked: Looked | None
    sort: str
    show: str
    find: str
    counts: tuple[Filter, ...]
    slices: tuple[Filter, ...]
    order: NDArray[np.int64]
    """Positions of the queries."""

    @staticmethod
    def of(visit: Visit, results: Results) -> Listed:
        """Return the queries that pass a URL's filters, in its order, by default largest difference first.

        Raises UnknownName for an unknown filter, order, measure, system or collection.
        """
        collection = visit.names["collection"]
        cells = results.of(collection)
        measure = measure_of(visit, scored_measures(cells))
        chosen = cells_of(visit, results, cells, measure)[:2]
        key = measure, tuple(map(scored_by, chosen))
        compared = results.kept.value_of(("compared", key), lambda: Compared.of(results, chosen, measure))
        looked = results.kept.soon(("looked", key), lambda: Looked.of(results, compared))
        sort, show, find = visit.one("sort", "difference"), visit.one("show"), visit.one("find")
        if sort not in SORTS:
            raise UnknownName("order of queries", sort, SORTS)
        kinds = _kinds(compared, looked)
        groups = {} if looked is None else looked.slices
        if show in kinds:
            rows = np.flatnonzero(kinds[show])
        elif show in groups or looked is None:
            rows = groups.get(show, np.arange(0))
        else:
            raise UnknownName("filter of queries", show, [*kinds, *groups])
        words = find.casefold()
        if words:
            names = compared.queries.take(rows)
            texts = zip(names, query_texts(results.dataset(collection), names), strict=True)
            rows = rows[[any(words in text.casefold() for text in both) for both in texts]]
        order = rows[np.argsort(_sort_key(compared, looked, sort)[rows], kind="stable")]
        counts = tuple(Filter(name, TITLES.get(name, name), int(of.sum())) for name, of in kinds.items())
        slices = tuple(Filter(name, name, len(of)) for name, of in groups.items())
        return Listed(results, collection, measure, compared, looked, sort, show, find, counts, slices, order)

    @property
    def parameters(self) -> dict[str, str | list[str]]:
        """{parameter: value} of the list's URL; "" for a default."""
        labels = [self.results.numbers.label(cell.label) for cell in self.compared.cells]
        usual = self.sort == "difference"
        return {
            "systems": systems_text(labels),
            "measure": self.measure,
            "sort": "" if usual else self.sort,
            "show": self.show,
            "find": self.find,
        }

    def part(self, start: int, rows: Sequence[int]) -> Queries:
        """Return a page of the list: `rows` are positions of queries, `start` the place of the first in the
        list."""
        results, compared = self.results, self.compared
        cells, numbers = results.of(self.collection), results.numbers
        comparison: tuple[Comparison | None] | None = (None,)
        if len(compared.cells) > 1 and self.measure and direction(self.measure):
            comparison = results.comparison(self.collection, self.measure)
        first, second = compared.cells[0].label, compared.cells[-1].label
        of_all = comparison[0] if comparison is not None else None
        measures = scored_measures(cells)
        shown = np.array(rows, np.int64)
        dataset = results.dataset(self.collection)
        texts = query_texts(dataset, compared.queries.take(shown))
        return Queries(
            self.collection,
            self.measure,
            measures,
            tuple(System.of(numbers, cell.label) for cell in cells),
            tuple(System.of(numbers, cell.label) for cell in compared.cells),
            compared.means,
            None if of_all is None else of_all.against(second, first),
            comparison is None,
            (*compared.sentences, *results.without(self.collection)),
            self.sort,
            self.show,
            self.find,
            self.counts,
            self.slices,
            dataset is not None,
            results.readable(self.collection),
            self.looked is None,
            float(np.fmax.reduce(np.abs(compared.difference), initial=0.0)),
            len(self.order),
            start,
            tuple(map(self._row, rows, texts)),
            tuple(self.parameters.items()),
            _adding(cells[0], measures),
        )

    def _row(self, n: int, text: str) -> QueryRow:
        compared, looked = self.compared, self.looked
        return QueryRow(
            compared.queries[n],
            text,
            tuple(compared.values[:, n].tolist()),
            float(compared.difference[n]),
            compared.outcome[n],
            float("nan") if looked is None else float(looked.judged[n]),
            () if looked is None else looked.howlers.get(n, ()),
        )


def _kinds(compared: Compared, looked: Looked | None) -> dict[str, NDArray[np.bool_]]:
    kinds = {"": np.ones(len(compared.queries), np.bool_)}
    outcome = np.array(compared.outcome)
    kinds |= {word: outcome == word for word in compared.words}
    if looked is not None:
        howlers = np.isin(np.arange(len(outcome)), [*looked.howlers])
        kinds |= {"howlers": howlers, "unjudged": looked.judged < 1}
    return kinds


def _sort_key(compared: Compared, looked: Looked | None, sort: str) -> Float64:
    gain = compared.difference * compared.way
    match sort:
        case "loss":
            return gain
        case "gain":
            return -gain
        case "hardest":
            worst: Float64 = np.fmin.reduce(compared.values * compared.way)
            return worst
        case "judged" if looked is not None:
            return looked.judged
        case "difference":
            return -np.abs(gain)
        case _:
            return np.zeros(len(gain))


BAR_PX = 104


def _bar(difference: float, largest: float, outcome: str) -> Markup:
    """Return an SVG bar, right of the centre if positive; a difference of `largest` fills half of the width."""
    middle = BAR_PX / 2
    length = abs(difference) / (largest or 1) * (middle - 2)
    ink = {"won": "better", "lost": "worse"}.get(outcome, "soft")
    left = middle if difference > 0 else middle - length
    return Markup(
        f'<svg width="{BAR_PX}" height="14" aria-hidden="true"><path d="M{middle:g} 0V14" class="weir-l-axis"/>'
        f'<rect x="{left:.1f}" y="3" width="{length:.1f}" height="8" class="weir-f-{ink}"/></svg>'
    )


def shown(value: Queries) -> list[tuple[str, str]]:
    """Return (name, title with its number of queries) of each filter and group."""
    return [(one.name, f"{one.title} ({one.count:,})") for one in (*value.filters, *value.slices)]


WORDS_OF_TEMPLATES = {"bar": _bar, "shown": shown, "sorts": list(SORTS.items())}
PAGES: Sequence[Page] = [Page("/c/{collection}", "queries.html", queries)]
