"""Search by a system that runs elsewhere; answers are stored before use."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import islice
from math import comb
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.rank_order import OrderCounts, counts_of_scores
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int32
from weir.errors import BadValue, FormatError, ServiceError, UnknownName, warn_of_ranking
from weir.files.runs import say_order
from weir.registry import declared_version, session_only
from weir.services.answers import (
    Request,
    RequestCounts,
    RequestPolicy,
    Retried,
    ServiceUsage,
    Worker,
    answer_key,
    answer_store,
    run_requests,
)
from weir.services.requests import CONTINUES
from weir.systems.composite import AnsweredDocuments, known_rows
from weir.systems.protocol import ANSWERS, IN_MEMORY, Context, Costs, check_k, index_repr
from weir.systems.restricted import permitted_only

# ----------
# The fingerprint of a collection that is copied to a server.


HASHED_DOCUMENTS = 4096


def content_of(corpus: Corpus, views: tuple[str, ...]) -> str:
    """Return a fingerprint of a corpus's identifiers and of the fields in `views`."""
    fingerprint = corpus.fingerprint_with(views)
    if fingerprint:
        return fingerprint
    digest, names = hashlib.blake2b(digest_size=16), corpus.ids.tolist()
    for start in range(0, len(names), HASHED_DOCUMENTS):
        stop = min(start + HASHED_DOCUMENTS, len(names))
        columns = [corpus.view(view, start, stop).tolist() for view in views]
        for row in zip(names[start:stop], *columns, strict=True):
            digest.update("".join(f"{len(part)} {part}" for part in row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


# ----------
# Answers as they are stored.


SHOWN_CHARACTERS = 120


def kept_ranking(results: Sequence[tuple[object, object]]) -> dict[str, object]:
    """Return (identifier, score) pairs, best first, as columns to store: {"docs": [...], "scores": [...] or None}.

    Raises ValueError if only some have scores, for a bad or repeated identifier, and for a score that is not
    finite.
    """
    names, scores = [name for name, _ in results], [score for _, score in results]
    bare = scores.count(None)
    if 0 < bare < len(scores):
        raise ValueError(f"{bare} of {len(scores)} results have no score; expected all or none")
    return kept_columns(names, None if bare else scores)


def kept_columns(names: Sequence[object], scores: Sequence[object] | None) -> dict[str, object]:
    """Return results, best first, as columns to store: {"docs": [...], "scores": [...]}.

    scores: None if only the order is known.

    Raises ValueError for a bad or repeated identifier and a score that is not finite.
    """
    if not set(map(type, names)) <= {str, int} or "" in names:
        wrong = next(name for name in names if type(name) not in (str, int) or name == "")
        raise ValueError(f"found {brief(wrong)} as a document's identifier; expected a text")
    docs = list(map(str, names))
    if len(set(docs)) < len(docs):
        raise ValueError("a document stands twice among the results")
    if scores is None:
        return {"docs": docs, "scores": None}
    plain = set(map(type, scores)) <= {float, int} and all(map(_finite, scores))
    numbers = scores if plain else [_number(score, name) for score, name in zip(scores, docs, strict=True)]
    return {"docs": docs, "scores": numbers}


def brief(value: object) -> str:
    """Return the first 120 characters of a value's JSON, for a message."""
    return json.dumps(value, ensure_ascii=False, default=str)[:SHOWN_CHARACTERS]


def _number(score: object, name: str) -> float:
    number = math.nan
    if isinstance(score, (int, float, str)) and not isinstance(score, bool):
        with suppress(ValueError, OverflowError):
            number = float(score)
    if not math.isfinite(number):
        raise ValueError(f"the score of '{name}' is {brief(score)}; expected a finite number")
    return number


def _finite(score: Any) -> bool:  # noqa: ANN401  a number
    try:
        return math.isfinite(score)
    except OverflowError:  # a whole number beyond any float
        return False


# ----------
# Settings of a server from a TOML file.


T = TypeVar("T")
EXPECTED = "what docs/retrievers.md says"


def settings_value(kind: Callable[..., T], path: Path, where: str, table: object) -> T:
    """Return the dataclass `kind` filled from a table of a TOML file, called `where` in messages.

    Raises UnknownName for an unknown key; FormatError for a missing key, a bad value, and anything but a
    table.
    """
    if not isinstance(table, Mapping):
        raise FormatError(path, f"{where} is {type(table).__name__}", "a table")
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]  # each is a dataclass
    for key in table:
        if key not in names:
            raise UnknownName(f"setting in {where} of {path}", key, names)
    try:
        return kind(**table)
    except BadValue as error:
        raise FormatError(path, f"in {where}: {error}", EXPECTED) from None
    except TypeError as error:
        missing = str(error).partition("argument")[2] or str(error)
        name = missing.removeprefix("s").removeprefix(":")
        raise FormatError(path, f"{where} without{name}", EXPECTED) from None


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise BadValue unless the setting `name` is one of `choices`."""
    if not (isinstance(value, str) and value in choices):
        raise BadValue(f"{name} is {value!r}; expected {', '.join(choices)}")


def check_text(name: str, value: object) -> None:
    """Raise BadValue unless the setting `name` is a str that is not blank."""
    if not (isinstance(value, str) and value.strip() and "\0" not in value):
        raise BadValue(f"{name} is {value!r}; expected a text")


def check_number(name: str, value: object, most: float) -> None:
    """Raise BadValue unless the setting `name` is a number from 0 to `most`."""
    if isinstance(value, bool) or not (isinstance(value, (int, float)) and 0 <= value <= most):
        raise BadValue(f"{name} is {value!r}; expected a number from 0 to {most:g}")


# ----------
# Requests, stored answers and failures of a system that runs elsewhere.


ON_FAILURE = ("refuse", "missing")
Number = TypeVar("Number", np.int32, np.float64)

CHANCE = 0.01
"""Probability below which it is no chance that only the longest queries are empty."""
READ_ANSWERS = 1024
"""Answers read and turned into columns together."""


def check_on_failure(name: str, value: object) -> None:
    """Raise BadValue, naming the system `name`, unless `value` is "refuse" or "missing"."""
    if value not in ON_FAILURE:
        raise BadValue(f"{name}: on_failure is {value!r}; expected 'refuse' or 'missing'")


@dataclass(frozen=True, eq=False)
class RemoteService:
    """A server or program that ranks documents, with rules for requests and failures."""

    name: str
    about: Mapping[str, object]
    """Everything that decides an answer, the key of stored answers."""
    new_worker: Callable[[Retried], Worker]
    """Makes a Worker for requests of {"id", "text", "k"}."""
    policy: RequestPolicy
    on_failure: str
    """Treatment of queries without an answer: "refuse" or "missing"."""
    confirm: Callable[[], None] = lambda: None
    """Called after new answers are stored; raises if `about` no longer describes the service."""
    unknown: str = "refuse"
    """Treatment of documents outside the collection: "refuse" or "drop"."""


@dataclass(frozen=True, eq=False)
class RemoteSearcher:
    """Searches by a remote service, and stores its answers."""

    service: RemoteService
    corpus: Corpus
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))
    index: Costs = field(default_factory=Costs)
    """Costs of the index on the server, if known."""

    __repr__ = index_repr

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        """Return the service's rankings; stored answers are used unless `context.reuse` is False.

        Raises ServiceError after too many failures in a row and, unless queries may be missing, for
        unanswered queries or only empty rankings; BadRanking for documents outside the corpus unless dropped.
        Warns (RankingWarning) of missing queries, dropped documents, and if only the longest queries have no
        results.
        """
        check_k(k)
        service, report, total = self.service, context.progress, len(queries)
        progress = None if report is None else lambda done: report(done, total)
        about = service.about if context.reuse else {**service.about, **declared_version(None)}
        with answer_store(str(service.about["system"]), about) as store:
            counts = run_requests(
                self._requests(queries, k), service.new_worker, store, service.policy, progress
            )
            self.use.counts.add(counts)
            self._refuse(counts, total)
            if counts.answered:
                service.confirm()
            query: list[Int32] = []
            doc: list[Int32] = []
            score: list[Float64] = []
            requests, unknown, documents = self._requests(queries, k), "", AnsweredDocuments(self.corpus)
            order = OrderCounts()
            sizes = np.full(len(queries), -1, np.int64)  # -1: no answer
            while some := list(islice(requests, READ_ANSWERS)):
                numbers: list[int] = []
                names: list[str] = []
                values: list[float] = []
                given: list[list[float]] = []
                for request in some:
                    record = store.answer(request.key)
                    if record is None:
                        continue
                    self.use.answered(record)
                    docs, scores = record["answer"]["docs"], record["answer"]["scores"]
                    given.append(scores or [])
                    self.use.empty += not docs
                    sizes[request.number] = len(docs)
                    names += docs
                    values += range(len(docs), 0, -1) if scores is None else scores
                    numbers += [request.number] * len(docs)
                query.append(np.array(numbers, np.int32))
                doc.append(documents.codes(names))
                score.append(np.array(values, np.float64))
                order += counts_of_scores(given)
                lacking = np.flatnonzero(doc[-1] < 0)
                unknown = unknown or (names[lacking[0]] if len(lacking) else "")
            say_order(self.service.name, order)
            self._check_empty(queries, sizes)
            columns = (_joined(query, np.int32), _joined(doc, np.int32), _joined(score, np.float64))
            if unknown:
                kept = not session_only(service.about)
                hint = "once it answers otherwise, declare another version" if kept else ""
                rows, note = known_rows(*columns[:2], lambda _: unknown, queries.ids, service.unknown, hint)
                columns = (columns[0][rows], columns[1][rows], columns[2][rows])
                warn_of_ranking(f"{service.name}: {note}")
            run = Run.from_columns(queries.ids, documents.ids, *columns, Named(self.service.name))
            return run.top(k) if np.diff(run.ptr).max(initial=0) > k else run

    def costs(self) -> Costs:
        return self.index + Costs(services=(self.use.named(self.service.name),))

    def _requests(self, queries: Queries, k: int) -> Iterator[Request]:
        ids, texts = queries.ids.column, queries.text
        for start in range(0, len(queries), READ_ANSWERS):
            some = (ids.slice(start, start + READ_ANSWERS), texts.slice(start, start + READ_ANSWERS))
            for number, (query, text) in enumerate(zip(*some, strict=True), start):
                body = {"id": query, "text": text, "k": k}
                yield Request(number, answer_key(body), body)

    def _refuse(self, counts: RequestCounts, total: int) -> None:
        if counts.first is None:
            return
        request, why = counts.first
        first = f"the first, '{request.body['id']}': {why}"
        message = f"{counts.failed:,} of {total:,} queries have no answer ({counts.failed_by_kind}); {first}"
        again = "" if CONTINUES in message else f"; {CONTINUES}"
        if counts.stopped:
            row = self.service.policy.failures
            raise ServiceError(
                f"{row} queries in a row have no answer, and no further one was asked; {message}{again}"
            )
        if self.service.on_failure == "refuse":
            raise ServiceError(f'{message}{again}; on_failure="missing" scores them as missing')
        warn_of_ranking(f"{self.service.name}: {message}; they are missing")

    def _check_empty(self, queries: Queries, sizes: NDArray[np.int64]) -> None:
        answered, empty = int((sizes >= 0).sum()), int((sizes == 0).sum())
        if empty < 1 or answered < 2:
            return
        name = self.service.name
        if empty == answered:
            message = f"none of {answered:,} queries is answered with any document"
            if self.service.on_failure == "refuse":
                raise ServiceError(
                    f"{name}: {message}; check what is searched there and its fields, and declare a new version once "
                    f'it answers; on_failure="missing" scores them as missing'
                )
            warn_of_ranking(f"{name}: {message}")
            return
        lengths = np.array([len(text) for text in queries.text.tolist()])
        longest = int(lengths[sizes > 0].max())
        longer = int((lengths[sizes == 0] > longest).sum())
        if longer and comb(empty, longer) / comb(answered, longer) < CHANCE:
            warn_of_ranking(
                f"{name}: the {longer:,} longest queries, of more than {longest:,} characters each, have "
                f"no results, which is unlikely to be chance: the service may limit the number of words"
            )


def _joined(parts: list[NDArray[Number]], dtype: type[Number]) -> NDArray[Number]:
    whole = np.concatenate([np.empty(0, dtype), *parts])
    parts.clear()
    return whole
