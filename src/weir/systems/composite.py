"""Checked calls of systems that others wrote, and the parts of composite systems."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from weir.argument_types import with_article
from weir.core.corpus import NO_DOCUMENTS, Corpus, Queries
from weir.core.rounding import counted
from weir.core.run import Named, Run
from weir.core.strings import Float64, Ids, Int32, Int64
from weir.errors import BadRanking, BadValue, PluginError, ServiceError, StoreWarning, WeirError, give_warning
from weir.files.atomic import storing
from weir.registry import Identified, Identity, printed, session_only
from weir.systems.protocol import (
    IN_MEMORY,
    CollectionAware,
    Context,
    FieldReader,
    Remote,
    Reranker,
    Retriever,
    Scorer,
    Searcher,
    Shelf,
    Titled,
)
from weir.systems.restricted import MOST_ASKED, restricted_search

PLAIN = (type(None), bool, int, float, str)
"""Types of settings that are no systems, to avoid slower checks of protocols."""

# ----------
# Calls of systems and re-rankers, which may be anyone's: errors name them, and answers are checked.


def indexed(part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
    """Index a corpus with a system and return its searcher.

    Raises PluginError, naming the system, if it returns none or raises anything but WeirError and
    MemoryError.
    """
    with _named(part, "", f"indexing {len(corpus):,} documents"):
        searcher = part.index(corpus, context)
        if not isinstance(searcher, Searcher):
            raise PluginError(
                f"made {_type_name(searcher)} of a corpus; expected a searcher, with search(queries, k, context) and "
                "costs()"
            )
    return searcher


def rankings(
    searcher: Searcher,
    queries: Queries,
    k: int,
    who: object,
    collection: str = "",
    context: Context = IN_MEMORY,
    beyond: int = 0,
) -> Run:
    """Return a searcher's checked rankings of permitted documents, one per query, in the order of `queries`.

    who, collection: name the system in messages.
    beyond: how many of the k results only show whether more follow.

    Raises PluginError for an invalid run, and for any exception but WeirError and MemoryError.
    """
    with _named(who, collection, _request_text(queries)):
        run = restricted_search(searcher, queries, k, replace(context, beyond=beyond))
        if flaw := _run_flaw(run, queries):
            raise PluginError(flaw)
    return run


def scores(
    scorer: Scorer, queries: Queries, candidates: Run, who: object, context: Context = IN_MEMORY
) -> Float64:
    """Return a re-ranker's score of each candidate, float64[candidates], all finite.

    Raises BadRanking for a wrong number of scores or one that is not finite; PluginError for an answer
    without numbers, and for any exception but WeirError and MemoryError.
    """
    with _named(who, "", _request_text(queries)):
        answer = scorer.scores(queries, candidates, context)
        try:
            score = np.asarray(answer, np.float64)
        except (TypeError, ValueError):
            raise PluginError(
                f"answered with {_type_name(answer)}; expected a number for each candidate"
            ) from None
        count = len(candidates.doc)
        if score.shape != (count,):
            raise BadRanking(f"{score.size} scores for {count} candidates; expected one for each")
        bad = np.flatnonzero(~np.isfinite(score))
        if len(bad):
            query = candidates.queries[int(candidates.query_of_row()[bad[0]])]
            document = candidates.docs[int(candidates.doc[bad[0]])]
            raise BadRanking(
                f"{len(bad)} of {count} scores are not finite, the first that of query '{query}', "
                f"document '{document}': {score[bad[0]]}"
            )
    return score


@contextmanager
def _named(who: object, collection: str, doing: str) -> Iterator[None]:
    subject = f"{who} on {collection}" if collection else str(who)
    try:
        yield
    except (PluginError, ServiceError, BadRanking) as error:
        raise type(error)(f"{subject}: {error}") from error
    except (WeirError, MemoryError):
        raise
    except Exception as error:
        failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise PluginError(f"{subject}, {doing}: failed with {failure}") from error


def _request_text(queries: Queries) -> str:
    count = len(queries)
    return (
        f"asked {counted(count, 'query', 'queries')}, the first '{queries.ids[0]}'"
        if count
        else "asked no queries"
    )


def _type_name(value: object) -> str:
    if value is None:
        return "nothing"
    return with_article(type(value).__name__)


def _run_flaw(run: object, queries: Queries) -> str:
    if not isinstance(run, Run):
        return f"answered with {_type_name(run)}; expected a weir.Run"
    if run.queries is not queries.ids and run.queries != queries.ids:
        return f"answered {len(run)} queries of other names or order than the {len(queries)} asked"
    rows, documents = len(run.doc), len(run.docs)
    whole = len(run.ptr) == len(queries) + 1 and run.ptr[0] == 0 and run.ptr[-1] == rows == len(run.score)
    if not whole or (np.diff(run.ptr) < 0).any():
        return "answered with a run whose rows do not fit its queries"
    if rows and not (int(run.doc.min()) >= 0 and int(run.doc.max()) < documents):
        return f"answered with documents beyond the {documents:,} that it names"
    return "" if np.isfinite(run.score).all() else "answered with scores that are not finite"


def run_of_answer(answer: object, queries: Queries, corpus: Corpus, name: str) -> Run:
    """Return a user's function's rankings as a run; an unanswered query has an empty ranking.

    answer: anything that `weir.evaluate` takes except a path, or a list of rankings, one per query.

    Raises BadRanking for unknown queries, unknown or repeated documents, and scores that are not finite;
    PluginError for an answer of another type.
    """
    from weir.files.frames import run_from  # the readers of files come with it

    if isinstance(answer, (list, tuple)):
        if len(answer) != len(queries):
            raise PluginError(f"answered with {len(answer)} rankings for {len(queries)} queries")
        answer = dict(zip(queries.ids, answer, strict=True))
    if answer is None or isinstance(answer, (str, os.PathLike, int, float)):
        raise PluginError(
            f"answered with {_type_name(answer)}; expected {{query: {{document: score}}}} or {{query: [documents]}}"
        )
    try:
        run = run_from(answer, name)
    except BadValue as error:
        raise PluginError(f"answered with {_type_name(answer)}: {error}") from None
    documents = AnsweredDocuments(corpus)
    query, doc = queries.ids.codes(run.queries.strings), documents.codes(run.docs.strings)
    for number in np.flatnonzero(query < 0):
        raise BadRanking(f"answered query '{run.queries[int(number)]}', which was not asked")
    rows, code = query[run.query_of_row()], doc[run.doc]
    known_rows(rows, code, lambda row: run.docs[int(run.doc[row])], queries.ids)
    return Run.from_columns(queries.ids, documents.ids, rows, code, run.score, Named(name, run.ties))


@dataclass(frozen=True, eq=False)
class AnsweredDocuments:
    """Numbers documents in answers as the collection does; for NO_DOCUMENTS, in order of appearance."""

    corpus: Corpus
    _numbers: dict[str, int] = field(default_factory=dict)

    def codes(self, names: Iterable[str]) -> Int32:
        """Return each document's position in `ids`, int32[names]; -1 outside the collection."""
        if self.corpus is not NO_DOCUMENTS:
            return self.corpus.ids.codes(names).astype(np.int32)
        numbers = self._numbers
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)

    @property
    def ids(self) -> Ids:
        """Identifiers of the collection's documents; for NO_DOCUMENTS, of those given to `codes` so far."""
        return Ids.of(self._numbers) if self.corpus is NO_DOCUMENTS else self.corpus.ids


UNKNOWN = ("refuse", "drop")
"""Ways to treat answers with documents outside the collection."""


def check_unknown(name: str, value: object) -> None:
    """Raise BadValue, naming the system `name`, unless `value` is "refuse" or "drop"."""
    if value not in UNKNOWN:
        raise BadValue(f"{name}: unknown is {value!r}; expected 'refuse' or 'drop'")


def described_unknown(unknown: str) -> dict[str, object]:
    """Return {"unknown": unknown} for a system's description; {} for the default "refuse"."""
    return {} if unknown == "refuse" else {"unknown": unknown}


_OUTSIDE = "answers are documents that the collection does not have"


def tells_of_removed(sentence: str) -> bool:
    """Return True for a sentence of `known_rows` on answers that were removed."""
    return _OUTSIDE in sentence


def known_rows(
    query: Int32, doc: Int32, names: Callable[[int], str], queries: Ids, unknown: str = "", hint: str = ""
) -> tuple[Int64, str]:
    """Return (positions of the rows whose documents the collection has, int64, sentence on the dropped rows,
    or "").

    query, doc: query and document number of each row, with -1 for an unknown document.
    names: returns the identifier of a row's document.
    unknown: "refuse" or "drop"; "" refuses, for a system without this setting.
    hint: advice for the message.

    Raises BadRanking for unknown documents unless dropped.
    """
    others = np.flatnonzero(doc < 0)
    if len(others) == 0:
        return np.arange(len(doc)), ""
    row = int(others[0])
    problem = (
        f"{len(others):,} of {len(doc):,} {_OUTSIDE}, the first "
        f"'{names(row)}' to query '{queries[int(query[row])]}'"
    )
    if unknown == "drop":
        return np.flatnonzero(doc >= 0), f"{problem}; they are left out, so scores can rise"
    ways = ['unknown="drop" leaves them out, so that scores can rise'] * bool(unknown) + [hint] * bool(hint)
    raise BadRanking(f"{problem}; is it of this collection? {'; '.join(ways)}".rstrip())


# ----------
# Systems within systems: the index of each part has a folder of its own.


T = TypeVar("T")
S_co = TypeVar("S_co", covariant=True)


class _Indexing(Protocol[S_co]):
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> S_co: ...


@dataclass(frozen=True, eq=False)
class FolderShelf:
    """Keeps each part's index in its own folder or in memory; a damaged index is built again, with a
    StoreWarning."""

    at: Path | None = None
    """Folder of these folders; None for memory."""
    build: bool = True
    """Build missing indexes; False raises StoreError."""
    opened: dict[str, Searcher] = field(default_factory=dict)

    def index(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        name = folder_name(part)
        if name in self.opened:
            return self.opened[name]
        at = None if self.at is None or session_only(part.describe()) else self.at / name
        own, searcher = replace(context, folder=at, shelf=None), None
        if at is not None and (at.exists() or not self.build):
            try:
                searcher = part.open(corpus, own)
            except WeirError as error:
                if not self.build:
                    raise
                give_warning(StoreWarning(f"{error}; {part} is indexed again"))
        if searcher is None:
            if at is not None:
                with storing(at):
                    at.parent.mkdir(parents=True, exist_ok=True)
            searcher = indexed(part, corpus, own)
        self.opened[name] = searcher
        return searcher

    def answers(self, part: Retriever, corpus: Corpus, context: Context = IN_MEMORY) -> Searcher:
        return self.index(part, corpus, context)


def shelf_of(context: Context, build: bool = True) -> Shelf:
    """Return the context's shelf, or a new FolderShelf in its folder.

    build: False makes a new shelf raise StoreError for a missing index.
    """
    return FolderShelf(context.folder, build) if context.shelf is None else context.shelf


def open_parts(system: _Indexing[S_co], corpus: Corpus, context: Context) -> S_co:
    """Return a composite system's searcher from its parts' stored indexes; raises StoreError if one is missing."""
    return system.index(corpus, replace(context, shelf=shelf_of(context, build=False)))


def open_anew(system: _Indexing[S_co], corpus: Corpus, context: Context) -> S_co:
    """Index the corpus anew and return the searcher; used as `open` of systems without a stored index."""
    return system.index(corpus, context)


def adapted_to(system: T, collection: str, instruction: str) -> T:
    """Return a system or re-ranker with its parts adapted to a collection, for example by prompts."""
    if isinstance(system, CollectionAware):
        return cast(T, system.adapted_to(collection, instruction))
    return _rebuilt(
        system, lambda part: adapted_to(part, collection, instruction), lambda a, b: a is b or a == b
    )


def _rebuilt(system: T, change: Callable[[object], object], same: Callable[[object, object], bool]) -> T:
    if isinstance(system, tuple):
        return cast(T, tuple(map(change, system)))
    if not (is_dataclass(type(system)) and isinstance(system, (Retriever, Reranker))):
        return system
    plain: Any = system
    before = {f.name: getattr(plain, f.name) for f in fields(plain) if f.init}
    after = {name: part if isinstance(part, PLAIN) else change(part) for name, part in before.items()}
    changed = {name: part for name, part in after.items() if not same(part, before[name])}
    return cast(T, replace(plain, **changed)) if changed else system


def one_session(systems: Iterable[T]) -> list[T]:
    """Return the systems, changed so that uses of one object without a version share stored results.

    An object's name also applies where it is used without one. Raises BadValue for two objects of one type
    and name.
    """
    # Each adaptation of an object without a version has a new session, so keys differ once it changes.
    several, named = list(systems), list[Identified]()
    for system in several:
        named += (one for one in _objects_in(system) if one.identity.named)
    firsts: dict[tuple[type, str], Identity] = {}
    return [_with_sessions(system, firsts, named) for system in several]


def objects_in(system: object) -> dict[str, object]:
    """Return {name: object} of the user's functions and objects anywhere in a system."""
    return {one.identity.name: one.identity.given for one in _objects_in(system)}


def _objects_in(system: object) -> Iterator[Identified]:
    for part in parts_of(system):
        if is_dataclass(part):
            values = (part, *(getattr(part, f.name) for f in fields(part)))
            yield from (one for one in values if is_dataclass(type(one)) and isinstance(one, Identified))


def _used_alike(one: Identified, other: Identified) -> bool:
    if type(one) is not type(other) or not one.identity.same_object(other.identity):
        return False
    plain: Any = one
    return bool(replace(plain, identity=other.identity).describe() == cast("Any", other).describe())


def _with_sessions(value: T, firsts: dict[tuple[type, str], Identity], named: Sequence[Identified]) -> T:
    if is_dataclass(type(value)) and isinstance(value, Identified):
        plain: Any = value
        own = value.identity
        if not own.named and own.version is None:
            own = next((one.identity for one in named if _used_alike(value, one)), own)
        first = firsts.setdefault((type(value), own.name), own)
        if not own.same_object(first):
            raise BadValue(
                f"two objects are named '{own.name}'; give one another name, of a benchmark by {{name: object}}, "
                f'anywhere by: {value.adapter}(..., name="other")'
            )
        return cast(T, value if value.identity.session == first.session else replace(plain, identity=first))
    # Values that differ in their session alone are equal, so that parts are held against each other one by one.
    return _rebuilt(value, lambda part: _with_sessions(part, firsts, named), _is_same)


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return all(map(_is_same, one, other))
    return one is other


def parts_of(system: object) -> Iterator[object]:
    """Yield a system or re-ranker, then every system and re-ranker within it."""
    yield system
    if is_dataclass(system):
        for value in (getattr(system, f.name) for f in fields(system)):
            for one in value if isinstance(value, tuple) else (value,):
                if not isinstance(one, PLAIN) and isinstance(one, (Retriever, Reranker)):
                    yield from parts_of(one)


def titled(system: object) -> str:
    """Return a system's name with settings files replaced by their titles; "" if none has one."""
    name = title = str(system)
    for part in parts_of(system):
        if isinstance(part, Titled):
            file, own = part.title()
            title = title.replace(printed(file), printed(own)) if file and own else title
    return title if title != name else ""


def asked_depth(system: object) -> dict[str, object]:
    """Return {"asked to depth": 10000} for the description of a system with a remote part, else {}."""
    remote = any(isinstance(part, Remote) for part in parts_of(system))
    return {"asked to depth": MOST_ASKED} if remote else {}


def fields_of(system: object) -> tuple[str, ...]:
    """Return the fields, and views such as "title text", that a system and its parts read."""
    read = (part.fields_read() for part in parts_of(system) if isinstance(part, FieldReader))
    return tuple(field for some in read for field in some)


def folder_name(part: Retriever) -> str:
    """Return a portable file name of a system: its name, and a hash of its description."""
    text = json.dumps(part.describe(), sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode("utf-8"), digest_size=5).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.=_]+', '-', str(part)).strip('-.')[:40] or 'part'}-{key}"


def renumbered(run: Run, corpus: Corpus) -> Run:
    """Return the run with documents numbered as in this corpus; -1 for documents that it lacks."""
    if run.docs is corpus.ids:
        return run
    return replace(run, docs=corpus.ids, doc=corpus.ids.codes(run.docs.strings)[run.doc])
