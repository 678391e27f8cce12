"""A search server behind HTTP as a system, as a TOML file describes it."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from weir.core.corpus import Corpus
from weir.errors import BadValue
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
        opened = partial(_opened, template, self.dataset or "", (clock, bucket))
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


def _opened(
    template: SearchTemplate, dataset: str, pace: tuple[Clock, Bucket], retried: Retried
) -> _EndpointAsker:
    keys = [Key(name, secret(name)) for name in template.variables]
    headers = template.headers_with({str(key.variable): key.checked() for key in keys})
    sent = {"Accept": "application/json", "User-Agent": "weir", "Content-Type": "application/json", **headers}
    return _EndpointAsker(template, {**template.values, "dataset": dataset}, sent, tuple(keys), pace, retried)


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
    pace: tuple[Clock, Bucket]
    retried: Retried
    seconds: float = 0.0  # of the answered attempts of one query

    def __post_init__(self) -> None:
        self.connection = KeptConnection()
        self.counted = self.template.uses("offset", "page", "page0")

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Each query, page by page."""
        for request in requests:
            self.seconds = 0.0
            try:
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
        template = self.template
        path = template.url + filled_path(template.path, values)
        params = filled(dict(template.params), values)
        params = {name: str(p).lower() if isinstance(p, bool) else p for name, p in params.items()}
        url = path + (f"?{urlencode(params, doseq=True)}" if params else "")
        body = None if template.body is None else json.dumps(filled(template.body, values)).encode("ascii")
        request = HttpRequest(template.method, url, self.headers, body, self.keys)
        limits = template.patience.limits()
        return until_answered(
            lambda: self._once(request), limits, self.pace[0], lambda error, _: self.retried(error)
        )

    def _once(self, request: HttpRequest) -> _Page:
        self.pace[1].take(1)
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
        page = self._read(reply.body)
        self.seconds += time.perf_counter() - begun
        return page

    def _refused(self, reply: HttpReply) -> AttemptError:
        error = refusal(reply, self._masked, self.pace[0])
        if reply.status not in (401, 403):
            return error
        hints = "; ".join(key.hint() for key in self.keys) or "no header carries a key ([headers])"
        return AttemptError(error.kind, f"{error}; {hints}", again=False)

    def _read(self, body: bytes) -> _Page:
        """A page from an answer; raises AttemptError for what is none, or is not whole."""
        template = self.template
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut") from None
        for path, wanted in template.expect:
            found = path.find(answer)
            if found is not ABSENT and (
                found != wanted or isinstance(found, bool) != isinstance(wanted, bool)
            ):
                raise AttemptError(
                    "failed", f"the answer says {path.text}: {brief(found)}, not {brief(wanted)}"
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
