"""The questions that scores leave open, asked of a collection, as `weir.plugins.questions` answers them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice

from markupsafe import Markup

from weir.api.result_set import KINDS, ResultSet
from weir.core.scores import Note
from weir.errors import BadValue, UnknownName, WeirError
from weir.plugins.app.choices import System, cells_of, measure_of, systems_text
from weir.plugins.app.folder import scored_by
from weir.plugins.app.marking import tables_html
from weir.plugins.app.server import Page, Visit
from weir.plugins.questions.of_results import QUESTIONS, Held, Question, stored_answers

MOST_QUERIES = 24
"""Most queries of an answer that are links."""


@dataclass(frozen=True)
class Asked:
    """A question in the list of all questions."""

    name: str
    title: str
    about: str


@dataclass(frozen=True)
class Found:
    """An answer to a question: computed for the page, or read from a file that a command wrote into the folder."""

    file: str
    """"" for the page's own."""
    kind: str
    results: tuple[object, ...]
    notes: tuple[Note, ...]

    @staticmethod
    def of(results: ResultSet[object], file: str = "") -> Found:
        """Return results as an answer.

        file: the file in which a command left them, "" if the page computed them.
        """
        return Found(file, results.kind.name, results.items, results.notes())

    @property
    def tables(self) -> Markup:
        """The tables as HTML, with all texts escaped."""
        return tables_html(ResultSet(KINDS.get(self.kind), self.results).tables("html"))

    @property
    def queries(self) -> list[str]:
        """The first queries that the answer names."""
        return list(islice(dict.fromkeys(_queries_in(self.results)), MOST_QUERIES))


def _queries_in(value: object) -> Iterator[str]:
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _queries_in(one)
    elif is_dataclass(value):
        if isinstance(query := getattr(value, "query", None), str):
            yield query
        for field in fields(value):
            yield from _queries_in(getattr(value, field.name))


@dataclass(frozen=True)
class Answered:
    """A question with its answers, or the list of questions."""

    collection: str
    questions: tuple[Asked, ...]
    question: Asked | None
    """None for the list."""
    measure: str
    measures: tuple[str, ...]
    systems: tuple[System, ...]
    """All systems of the collection."""
    compared: tuple[System, ...]
    """The old and the new system of a question about two; () for one about all."""
    change: float | None
    """The change to be shown, of the question that has one."""
    found: tuple[Found, ...]
    looking: bool
    """True while the answer is computed."""
    lacking: str
    """Why the folder alone does not answer; "" if it does."""
    command: str
    """The command that answers more."""
    parameters: tuple[tuple[str, str | list[str]], ...]
    """Parameters of the URL that differ from their defaults."""

    @property
    def again(self) -> dict[str, object]:
        """The parameters of this page's URL."""
        return dict(self.parameters)

    @property
    def of_query(self) -> dict[str, object]:
        """The parameters with which a query is opened."""
        return {name: value for name, value in self.parameters if name != "change"}


def questions(visit: Visit) -> Answered:
    """Return a question with its answers, or the list; raises UnknownName for names that are not there."""
    results = visit.folder.results()
    collection, name = visit.names["collection"], visit.names.get("question", "")
    cells, named = results.of(collection), {one.name: one for one in QUESTIONS}
    if name and name not in named:
        raise UnknownName("question", name, named)
    question = named.get(name)
    measures = tuple(dict.fromkeys(row.measure for cell in cells for row in cell.rows))
    measure = measure_of(visit, measures)
    compared = tuple(cells_of(visit, results, cells, measure)[:2])
    labels = [results.numbers.label(cell.label) for cell in compared]
    of_two = question is not None and question.of_two
    dataset = results.dataset(collection) if question is not None else None
    held = Held(visit.folder.root, cells, compared, dataset, measure, results.numbers.label, _change(visit))
    found, looking, lacking = list[Found](), False, ""
    if question is not None:
        key = name, measure, held.change, tuple(map(scored_by, compared if of_two else cells))
        answer = results.kept.soon(("question", key), lambda: _answer(question, held))
        looking, lacking = answer is None, answer if isinstance(answer, str) else ""
        found += [answer] if isinstance(answer, Found) else []
        found += [Found.of(one, file) for file, one in stored_answers(held.root, question, collection)]
    given = {
        "systems": systems_text(labels) if of_two else "",
        "measure": measure if visit.one("measure") else "",
    }
    return Answered(
        collection,
        tuple(map(_asked, QUESTIONS)),
        None if question is None else _asked(question),
        measure,
        measures,
        tuple(System.of(results.numbers, cell.label) for cell in cells),
        tuple(System.of(results.numbers, cell.label) for cell in compared) if of_two else (),
        held.change if name == "fitness" else None,
        tuple(found),
        looking,
        lacking,
        "" if question is None else question.command(held),
        tuple((given | {"change": visit.one("change")}).items()),
    )


def _asked(question: Question) -> Asked:
    return Asked(question.name, question.title, question.about)


def _answer(question: Question, held: Held) -> Found | str:
    try:
        return Found.of(question.ask(held))
    except WeirError as error:
        return str(error)


def _change(visit: Visit) -> float:
    text = visit.one("change")
    if not text:
        return Held.change
    try:
        change = float(text)
    except ValueError:
        change = math.nan
    if not 0 < change < math.inf:
        raise BadValue(f"change is '{text[:40]}'; expected a number above 0")
    return change


PAGES: Sequence[Page] = [
    Page("/c/{collection}/questions", "questions.html", questions),
    Page("/c/{collection}/questions/{question}", "questions.html", questions),
]
