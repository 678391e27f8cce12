"""The page of a document for a query."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weir
from weir.core.corpus import Queries
from weir.core.rounding import counted
from weir.core.run import Run
from weir.datasets.load import Dataset
from weir.errors import UnknownName, WeirError
from weir.experiment.results import ResultCell
from weir.experiment.stages import record_of
from weir.plugins.app.answers import Fields, Judgment, fields_of, judgments_of, news, pool_judgments, texts_of
from weir.plugins.app.choices import System
from weir.plugins.app.folder import Results
from weir.plugins.app.marking import Marked, Words
from weir.plugins.app.server import Page, Visit, address
from weir.systems.protocol import TermScored

ANSWER_CHARACTERS, PROMPT_CHARACTERS = 2000, 20_000
"""Most characters of a language model's answer."""
ANSWERS = 12
"""Answers about a document shown of each system."""


@dataclass(frozen=True)
class _Part:
    """A summand of a document's score: of a query term, or of a system in a fusion or re-ranking."""

    name: str
    field: str
    """The document's field that has the term; "" for none."""
    score: float
    rank: int | None = None
    """The document's rank in a system; None for a term, and if not returned."""


@dataclass(frozen=True)
class _ModelAnswer:
    """A language model's answer to a prompt that contains the document."""

    text: str
    verdict: str
    """The score or order read from it, as JSON; else its kind, such as "missing"."""
    documents: tuple[str, ...]
    """The documents of the prompt, in order."""
    prompt: str


@dataclass(frozen=True)
class Place:
    """A document's rank and score in a system's ranking, and the parts of the score."""

    system: System
    rank: int | None
    """None if not returned."""
    score: float | None
    kind: str
    """"terms", "cosine" or another similarity of vectors, "parts", or "" if unknown."""
    parts: tuple[_Part, ...]
    answers: tuple[_ModelAnswer, ...] = ()
    """A language model's answers about the document."""
    answered: int = 0
    """Number of all answers about it, of which `answers` has the first."""
    reason: str = ""
    """Why no parts are shown."""


@dataclass(frozen=True)
class Document:
    """A document's page for a query: text, judgment, and its place in each system's ranking."""

    collection: str
    query: str | None
    """None for a typed query."""
    text: str
    """The query's text."""
    document: str
    title: str
    body: Marked
    """() if the collection is not on this machine."""
    fields: Fields
    """Its metadata, such as price and brand."""
    judgment: Judgment | None
    aside: Judgment | None
    """A pool's judgment that no score counts; None without one."""
    places: tuple[Place, ...]
    """In each system, best rank first; for a typed query only systems that sum over terms."""

    @property
    def here(self) -> str:
        """The URL of this page."""
        if self.query is None:
            return address("c", self.collection, "d", self.document, query=self.text)
        return address("c", self.collection, "q", self.query, "d", self.document)


def document(visit: Visit) -> Document:
    """Return a document's page for a query.

    Raises UnknownName for an unknown collection, and for a document without text, judgment or rank.
    """
    results = visit.folder.results()
    collection, name, query = visit.names["collection"], visit.names["document"], visit.names.get("query")
    cells, dataset = results.of(collection), results.dataset(collection)
    text = visit.one("query") if query is None else ""
    if query is not None and dataset is not None and dataset.layout.queries is not None:
        text = dataset.all_queries.get(query) or ""
    places = [_place(results, cell, dataset, query, text, name) for cell in cells]
    title, body = texts_of(dataset, [name]).get(name, ("", ""))
    corpus = dataset.corpus if dataset is not None and results.readable(collection) else None
    judged = judgments_of(None if dataset is None else dataset.qrels, query or "")
    judgment = judged.get(name)
    aside = news(judged, pool_judgments(visit.rooms, collection, query or "", text)).get(name)
    if not (title or body or judgment or aside or any(place.rank for place in places)):
        raise UnknownName(f"document of {collection}", name, [])
    return Document(
        collection,
        query,
        text,
        name,
        title,
        Words.of(text, cells).marked(body),
        fields_of(corpus, [name]).get(name, ()),
        judgment,
        aside,
        tuple(
            sorted(
                (place for place in places if query is not None or place.parts),
                key=lambda place: place.rank or 1 << 30,
            )
        ),
    )


def _place(
    results: Results, cell: ResultCell, dataset: Dataset | None, query: str | None, text: str, name: str
) -> Place:
    system = System.of(results.numbers, cell.label)
    rank, score = None, None
    if query is not None:
        rank, score = _found(results, cell, cell.folder, query, name)
        if parts := tuple(_parts(results, cell, query, name)):
            said, lacking = _said(results, cell, query, name)
            return Place(system, rank, score, "parts", parts, tuple(said[:ANSWERS]), len(said), lacking)
        if similarity := _similarity(cell):
            return Place(system, rank, score, similarity, ())
    try:
        terms = tuple(_terms(results, cell, dataset, text, name))
    except WeirError as error:
        return Place(system, rank, score, "", (), reason=str(error))
    return Place(system, rank, score, "terms" if terms else "", terms)


def _found(
    results: Results, cell: ResultCell, folder: Path, query: str, name: str
) -> tuple[int | None, float | None]:
    ranking = results.rankings(cell, folder).ranking(query)
    return next(((rank, score) for rank, (one, score) in enumerate(ranking, 1) if one == name), (None, None))


def _parts(results: Results, cell: ResultCell, query: str, name: str) -> Iterator[_Part]:
    for kind, folder in cell.ranked.inputs:
        inner = Path(os.path.normpath(cell.folder.parent / folder))
        record = record_of(inner) if kind == "run" else None
        if record is not None:
            rank, score = _found(results, cell, inner, query, name)
            label = results.numbers.label(record.name)
            yield _Part(label, "", float("nan") if score is None else score, rank)


def _similarity(cell: ResultCell) -> str:
    declared = _declared(cell)
    encoder = declared.get("encoder") if "store" in declared else None
    return str(encoder.get("similarity", "")) if isinstance(encoder, dict) else ""


def _declared(cell: ResultCell) -> Mapping[str, object]:
    declared = cell.ranked.declared.get("system")
    return declared if isinstance(declared, dict) else {}


def _terms(
    results: Results, cell: ResultCell, dataset: Dataset | None, text: str, name: str
) -> Sequence[_Part]:
    lexical = {"analyzer", "analysis", "first"} & _declared(cell).keys()
    if dataset is None or not text or not lexical:
        return ()
    searcher = results.searcher(cell)
    code = int(dataset.corpus.ids.codes([name])[0])
    if code < 0 or not isinstance(searcher, TermScored):
        return ()
    asked = Queries.of({"q": text})
    candidate = Run(asked.ids, dataset.corpus.ids, np.array([0, 1]), np.array([code], np.int32), np.zeros(1))
    terms = [
        _Part(one.term, one.field, float(one.scores[0])) for one in searcher.term_scores(asked, candidate)
    ]
    return sorted(terms, key=lambda part: -part.score)


def _said(results: Results, cell: ResultCell, query: str, name: str) -> tuple[list[_ModelAnswer], str]:
    if "llm(" not in cell.system:
        return [], ""
    folder = cell.folder.parent.parent
    try:
        traces = results.kept.value_of(
            ("answers", cell.folder, query),
            lambda: weir.llm_trace(folder, query, cell.system, datasets=[cell.collection]),
        )
    except WeirError as error:  # the prompts, or what they were made of, are not as they were
        return [], str(error)
    about = [one for trace in traces for one in trace.exchanges if name in one.documents]
    answers = [
        _ModelAnswer(
            one.answer[:ANSWER_CHARACTERS],
            one.value or one.verdict,
            one.documents,
            one.user_text[:PROMPT_CHARACTERS],
        )
        for one in about
        if one.answer is not None
    ]
    lacking = len(about) - len(answers)
    return answers, f"{counted(lacking, 'answer')} of the model not kept on this machine" if lacking else ""


PAGES: Sequence[Page] = [
    Page("/c/{collection}/q/{query}/d/{document}", "document.html", document),
    Page("/c/{collection}/d/{document}", "document.html", document),
]
