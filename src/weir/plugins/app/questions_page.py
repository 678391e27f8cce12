"""The questions of `weir.plugins.questions`, asked of one collection."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import Any

from markupsafe import Markup

from weir.api.result_set import KINDS, ResultSet
from weir.core.scores import Note
from weir.core.strings import Ids
from weir.errors import BadValue, UnknownName, WeirError
from weir.experiment.results import scored_measures
from weir.plugins.app.choices import System, cells_of, measure_of, systems_text
from weir.plugins.app.folder import scored_by
from weir.plugins.app.marking import tables_html
from weir.plugins.app.queries_page import query_texts
from weir.plugins.app.server import Page, Visit
from weir.plugins.questions.of_results import QUESTIONS, Held, Question, stored_answers

MOST_QUERIES = 24
"""Most queries of an answer shown as links."""


@dataclass(frozen=True)
class _Asked:
    name: str
    title: str
    about: str


@dataclass(frozen=True)
class _Found:
    """A part of a question's answer: results of one kind, with notes."""

    file: str
    """"" for the page's own."""
    kind: str
    results: tuple[object, ...]
    notes: tuple[Note, ...]

    @staticmethod
    def of(results: ResultSet[object], file: str = "") -> _Found:
        return _Found(file, results.kind.name, results.items, results.notes())

    @property
    def tables(self) -> Markup:
        return tables_html(ResultSet(KINDS.get(self.kind), self.results).tables("html"))

    @property
    def queries(self) -> list[str]:
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
    """The page of a question with its answer, or of the list of questions."""

    collection: str
    questions: tuple[_Asked, ...]
    question: _Asked | None
    """None for the list."""
    measure: str
    measures: tuple[str, ...]
    systems: tuple[System, ...]
    """All systems of the collection."""
    compared: tuple[System, ...]
    """The old and the new system of a question about two; () for one about all."""
    amount: str
    """The parameter of the question's number: `change`, `max_drop`, or "" for none."""
    number: float
    """Value of the parameter `amount`; 0 without one."""
    found: tuple[_Found, ...]
    looking: bool
    """True while the answer is computed."""
    lacking: str
    """Why the folder alone does not answer; "" if it does."""
    texts: Mapping[str, str]
    """{query: text} of the queries in answers; "" for a missing text."""
    command: str
    """A command that answers more."""
    parameters: tuple[tuple[str, str | list[str]], ...]
    """(parameter, value) of the URL; "" for a default."""
    without: tuple[str, ...]
    """Sentences on systems without results on the collection."""

    @property
    def again(self) -> dict[str, object]:
        """The URL parameters of this page."""
        return dict(self.parameters)

    @property
    def sides(self) -> tuple[str, str]:
        """The roles of the compared systems: ("baseline", "candidate") or ("from", "to")."""
        return ("baseline", "candidate") if self.amount == "max_drop" else ("from", "to")

    @property
    def of_query(self) -> dict[str, object]:
        """This page's URL parameters without `amount`, for opening a query."""
        return {name: value for name, value in self.parameters if name != self.amount}


def questions(visit: Visit) -> Answered:
    """Return the page of a question, or their list; raises UnknownName for an unknown question, collection,
    measure or system."""
    results = visit.folder.results()
    collection, name = visit.names["collection"], visit.names.get("question", "")
    cells, named = results.of(collection), {one.name: one for one in QUESTIONS}
    if name and name not in named:
        raise UnknownName("question", name, named)
    question = named.get(name)
    measures = scored_measures(cells)
    measure = measure_of(visit, measures)
    compared = tuple(cells_of(visit, results, cells, measure)[:2])
    labels = [results.numbers.label(cell.label) for cell in compared]
    of_two = question is not None and question.of_two
    dataset = results.dataset(collection) if question is not None else None
    held = Held(visit.folder.root, cells, compared, dataset, measure, results.numbers.label)
    amount = "" if question is None else question.amount
    if text := visit.one(amount) if amount else "":
        asked: dict[str, Any] = {amount: _number(text, amount)}
        held = replace(held, **asked)
    number = getattr(held, amount) if amount else 0.0
    found, looking, lacking = list[_Found](), False, ""
    if question is not None:
        key = name, measure, number, tuple(map(scored_by, compared if of_two else cells))
        answer = results.kept.soon(("question", key), lambda: _answer(question, held))
        looking, lacking = answer is None, answer if isinstance(answer, str) else ""
        found += [answer] if isinstance(answer, _Found) else []
        found += [_Found.of(one, file) for file, one in stored_answers(held.root, question, collection)]
    named_queries = list(dict.fromkeys(query for one in found for query in one.queries))
    texts = query_texts(dataset, Ids.of(named_queries))
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
        amount,
        number,
        tuple(found),
        looking,
        lacking,
        dict(zip(named_queries, texts, strict=True)),
        "" if question is None else question.command(held),
        tuple((given | ({amount: text} if amount else {})).items()),
        results.without(collection),
    )


def _asked(question: Question) -> _Asked:
    return _Asked(question.name, question.title, question.about)


def _answer(question: Question, held: Held) -> _Found | str:
    try:
        return _Found.of(question.ask(held))
    except WeirError as error:
        return str(error)


def _number(text: str, amount: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (number == 0 and amount == "max_drop")):
        least = "from 0" if amount == "max_drop" else "above 0"
        raise BadValue(f"{amount} is '{text[:40]}'; expected a number {least}")
    return number


PAGES: Sequence[Page] = [
    Page("/c/{collection}/questions", "questions.html", questions),
    Page("/c/{collection}/questions/{question}", "questions.html", questions),
]
