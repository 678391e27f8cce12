"""A search server behind HTTP as a system, as a TOML file describes it."""

from __future__ import annotations

import http.client
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from weir.core.corpus import Corpus
from weir.errors import BadValue, RankingWarning, UnknownName
from weir.registry import declared_version
from weir.services.asking import Outcome, Request, Retried, Terms
from weir.services.attempts import AttemptError, broken, refusal, until_answered
from weir.services.http import AnswerTooLargeError, HttpReply, HttpRequest, KeptConnection, NotSentError
from weir.services.keys import Key
from weir.services.limits import Bucket, Clock
from weir.settings import secret
from weir.systems.compose import shown, then
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Component, Context, called
from weir.systems.remote.placeholders import ABSENT, JsonPath, filled, filled_path
from weir.systems.remote.remote_searcher import RemoteSearcher, RemoteService, check_on_failure
from weir.systems.remote.result_list import brief, kept_columns
from weir.systems.remote.search_template import SearchTemplate, read_template

__all__ = ["Http"]

UNAUTHORIZED = 401
SHOWN_CHARACTERS = 300
"""Of what a server says, in a message."""
T = TypeVar("T")
MOST_PAGES = 1000
"""Pages of one query."""


@SYSTEMS.register("http")
@dataclass(frozen=True)
class Http:
    """A search server behind HTTP, described by a TOML file; docs/retrievers.md says what may stand in it.

    file: the TOML file; version: what stands for what the server searches, in keys: with one, its answers are kept and
    never asked for twice, without one they are not read by another process. on_failure: "refuse" scores nothing where a
    query has no answer after the attempts that the file allows, "missing" scores it as missing; dataset: what {dataset}
    in the file stands for, by default the collection's name. Raises FormatError for what the file says, BadValue.
    """

    file: str
    version: str | None = None
    on_failure: str = "refuse"
    dataset: str | None = None

    __repr__ = shown
    __rshift__ = then

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not self.file:
            raise BadValue(f"http: the file is {self.file!r}; expected such as 'search.toml'")
        declared_version(self.version)
        check_on_failure("http", self.on_failure)
        if self.dataset is not None and not isinstance(self.dataset, str):
            raise BadValue(f"http: dataset is {self.dataset!r}; expected a text")

    def __str__(self) -> str:
        given: dict[str, object] = {
            "version": self.version,
            "on_failure": self.on_failure,
            "dataset": self.dataset,
        }
        changed = {n: v for n, v in given.items() if v != self.__dataclass_fields__[n].default}
        return called("http", [self.file], changed)

    @property
    def service(self) -> str:
        """The server that the file describes."""
        return f"the server of {self.file}"

    def describe(self) -> dict[str, object]:
        """What the file says but for its limits, and the version or the session; raises FormatError."""
        return {**self._about(read_template(Path(self.file), self.dataset)), "on_failure": self.on_failure}

    def title(self) -> tuple[str, str]:
        """The file, and the name that it gives; raises FormatError for what it says."""
        return self.file, read_template(Path(self.file), self.dataset).name

    def adapted_to(self, collection: str, instruction: str) -> Http:
        """The same for a collection, where the file asks which it is."""
        uses = self.dataset is None and read_template(Path(self.file)).uses("dataset")
        return replace(self, dataset=collection) if uses else self

    def components(self) -> tuple[Component, ...]:
        """None: it keeps no index here."""
        return ()

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RemoteSearcher:
        """Nothing is indexed here; raises FormatError for what the file says."""
        template = read_template(Path(self.file), self.dataset)
        patience, clock = template.patience, Clock()
        bucket = Bucket(patience.requests_per_minute, clock)
        opened = partial(_opened, template, self.dataset or "", _Shared(clock, bucket))
        terms = Terms(patience.concurrency, failures=patience.failures)
        service = RemoteService(str(self), self._about(template), _asked, opened, terms, self.on_failure)
        return RemoteSearcher(service, corpus)

    def open(self, corpus: Corpus, context: Context) -> RemoteSearcher:
        """As `index`."""
        return self.index(corpus, context)

    def _about(self, template: SearchTemplate) -> dict[str, object]:
        """Everything that decides an answer."""
        dataset = {} if self.dataset is None else {"dataset": self.dataset}
        return {"system": "http", **template.describe(), **dataset, **declared_version(self.version)}


def _asked(query: str, text: str, k: int) -> dict[str, object]:
    return {"id": query, "text": text, "k": k}


def _opened(template: SearchTemplate, dataset: str, shared: _Shared, retried: Retried) -> _EndpointAsker:
    keys = [Key(name, secret(name)) for name in template.variables]
    headers = template.headers_with({str(key.variable): key.checked() for key in keys})
    sent = {"Accept": "application/json", "User-Agent": "weir", "Content-Type": "application/json", **headers}
    return _EndpointAsker(
        template, {**template.values, "dataset": dataset}, sent, tuple(keys), shared, retried
    )


@dataclass(eq=False)
class _Shared:
    """What the connections of a search share; fields_known: whether the searched fields were asked for."""

    clock: Clock
    bucket: Bucket
    fields_known: bool = False
    turn: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class _Page:
    """A page of an answer: identifiers and scores of its documents, and the cursor of the next, ABSENT on the last."""

    names: list[object]
    scores: list[object]
    cursor: object


@dataclass(eq=False)
class _EndpointAsker:
    """One connection to the server."""

    template: SearchTemplate
    values: Mapping[str, Any]
    headers: Mapping[str, str]
    keys: tuple[Key, ...]
    shared: _Shared
    retried: Retried
    seconds: float = 0.0  # of the answered attempts of one query

    def __post_init__(self) -> None:
        self.connection = KeptConnection()
        self.counted = self.template.uses("offset", "page", "page0")

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Each query, page by page; raises UnknownName for a searched field that the server does not have."""
        for request in requests:
            try:
                self._check_fields()
                self.seconds = 0.0
                answer = self._pages(request.asked)
            except AttemptError as error:
                yield Outcome(request, error=error)
            else:
                yield Outcome(request, answer, self.seconds)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()

    def _pages(self, asked: Mapping[str, Any]) -> dict[str, object]:
        template, k = self.template, int(asked["k"])
        size = min(k, template.page_size or k)
        known = {**self.values, "query": asked["text"], "id": asked["id"], "k": k, "size": size}
        names: list[object] = []
        scores: list[object] = []
        cursor: object = ABSENT
        for number in range(MOST_PAGES):
            place = {"offset": len(names), "page": number + 1, "page0": number, "cursor": cursor}
            page = self._page({**known, **place})
            if not page.names and number == 0 and template.empty_body is not None:
                self._confirm_empty({**known, **place})
            names += page.names
            scores += page.scores
            last = page.cursor in (ABSENT, None, "", cursor) if template.next else len(page.names) < size
            if len(names) >= k or not page.names or last or not (self.counted or template.next):
                break
            cursor = page.cursor
        try:
            return kept_columns(names[:k], None if template.score is None else scores[:k])
        except ValueError as error:
            raise AttemptError("malformed", str(error)) from None

    def _page(self, values: Mapping[str, Any]) -> _Page:
        return self._answer(self._request(self.template.body, values), self._read)

    def _confirm_empty(self, values: Mapping[str, Any]) -> None:
        """Raise AttemptError where the same query, asked in the file's other way, is refused."""
        try:
            self._answer(self._request(self.template.empty_body, values), self._read)
        except AttemptError as error:
            words = len(str(values["query"]).split())
            reason = f"the answer to a query of {words:,} words is empty, and asked otherwise it is refused: {error}"
            raise AttemptError(error.kind, reason, again=False) from None

    def _check_fields(self) -> None:
        """Ask for the fields that the server has, before the first query of a connection.

        Raises UnknownName for one that is searched and that it does not have; warns (RankingWarning) where it does not
        say them. Raises AttemptError where it does not answer, or knows no such key.
        """
        shared, fields = self.shared, self.template.fields
        if fields is None or shared.fields_known:
            return
        url, unknown = self.template.url + filled_path(fields.path, self.values), ""
        try:
            answer = self._answer(HttpRequest("GET", url, self.headers, None, self.keys), self._json)
        except AttemptError as error:
            if error.kind in ("failed", "timed out") or error.status == UNAUTHORIZED:
                raise
            unknown = f"whether the searched fields exist is not known: {url}: {error}"
        else:
            names = fields.names.find(answer)
            names = [str(name) for name in names] if isinstance(names, (dict, list)) else []
            names = [name for name in names if not name.startswith("_")]  # those are the server's own
            for one in fields.searched:
                pattern = one.partition("^")[0]
                if not any(fnmatchcase(name, pattern) for name in names):
                    raise UnknownName(f"field that {self.template.url} searches", pattern, names)
        with shared.turn:
            if unknown and not shared.fields_known:
                warnings.warn(RankingWarning(unknown), stacklevel=2)
            shared.fields_known = True

    def _request(self, body: Any, values: Mapping[str, Any]) -> HttpRequest:  # noqa: ANN401  any JSON
        template = self.template
        path = template.url + filled_path(template.path, values)
        params = filled(dict(template.params), values)
        params = {name: str(p).lower() if isinstance(p, bool) else p for name, p in params.items()}
        url = path + (f"?{urlencode(params, doseq=True)}" if params else "")
        data = None if body is None else json.dumps(filled(body, values)).encode("ascii")
        return HttpRequest(template.method, url, self.headers, data, self.keys)

    def _answer(self, request: HttpRequest, read: Callable[[bytes], T]) -> T:
        """What is read from the answer to a request, which is sent again where that may help."""
        limits = self.template.patience.limits()
        return until_answered(
            lambda: self._once(request, read), limits, self.shared.clock, lambda error, _: self.retried(error)
        )

    def _once(self, request: HttpRequest, read: Callable[[bytes], T]) -> T:
        self.shared.bucket.take(1)
        patience, begun = self.template.patience, time.perf_counter()
        most = int(patience.answer_mb * (1 << 20))
        try:
            reply = self.connection.send(request, most, (patience.timeout_s, patience.whole_s))
        except AnswerTooLargeError as error:
            raise AttemptError("malformed", f"{error} (limits.answer_mb)", again=False) from None
        except NotSentError as error:
            raise broken(error.reason, self._masked) from None
        except (http.client.HTTPException, OSError) as error:
            raise broken(error, self._masked) from None
        if reply.status // 100 != 2:
            raise self._refused(reply)
        answer = read(reply.body)
        self.seconds += time.perf_counter() - begun
        return answer

    def _refused(self, reply: HttpReply) -> AttemptError:
        error = refusal(reply, self._masked, self.shared.clock)
        if reply.status not in (401, 403):
            return error
        hints = "; ".join(key.hint() for key in self.keys) or "no header carries a key ([headers])"
        hinting = AttemptError(error.kind, f"{error}; {hints}", again=False)
        hinting.status = error.status
        return hinting

    def _read(self, body: bytes) -> _Page:
        """A page from an answer; raises AttemptError for what is none, or is not whole."""
        template, answer = self.template, self._json(body)
        reason = ABSENT if template.error is None else template.error.find(answer)
        if reason not in (ABSENT, None):
            raise AttemptError("refused", self._masked(reason)[:SHOWN_CHARACTERS], again=False)
        for path, wanted in template.expect:
            found = path.find(answer)
            if found is not ABSENT and (
                found != wanted or isinstance(found, bool) != isinstance(wanted, bool)
            ):
                raise AttemptError(
                    "failed", f"the answer says {path.text}: {brief(found)}, not {brief(wanted)}"
                )
        for path, other in template.equal:
            found, wanted = path.find(answer), other.find(answer)
            if found != wanted:
                raise AttemptError(
                    "failed",
                    f"the answer says {path.text}: {brief(found)}, not {brief(wanted)} as {other.text}",
                )
        results = template.results.find(answer)
        if results is ABSENT and template.empty:
            results = []
        if not isinstance(results, list):
            has = "no list" if results is ABSENT else f"{brief(results)}, no list,"
            raise AttemptError(
                "malformed", f"the answer has {has} at {template.results.text}: {brief(answer)}"
            )
        cursor = ABSENT if template.next is None else template.next.find(answer)
        names = self._column(results, template.id)
        scores = [] if template.score is None else self._column(results, template.score)
        return _Page(names, scores, cursor)

    def _json(self, body: bytes) -> Any:  # noqa: ANN401  whatever the server says
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut") from None

    def _column(self, results: list[object], path: JsonPath) -> list[object]:
        """What stands at a place of each result; raises AttemptError where nothing does."""
        found = path.column(results)
        for nothing in (ABSENT, None):
            if nothing in found:
                raise AttemptError(
                    "malformed", f"a result has no {path.text}: {brief(results[found.index(nothing)])}"
                )
        return found

    def _masked(self, text: object) -> str:
        for key in self.keys:
            text = key.masked(text)
        return " ".join(str(text).split())
