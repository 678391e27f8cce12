"""Any search server that answers JSON over HTTP, described by a TOML file."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus
from weir.errors import (
    BadValue,
    FormatError,
    ServiceError,
    UnknownName,
    WeirError,
    warn_of_ranking,
)
from weir.files.network import KeptConnection
from weir.files.text_files import read_toml
from weir.plugins.servers.live_index import ElasticLiveIndex, LiveIndex
from weir.plugins.servers.live_solr import SolrLiveIndex
from weir.registry import changed_settings, declared_version
from weir.services.answers import Outcome, Request, RequestPolicy, Retried
from weir.services.requests import (
    AnswerTooLargeError,
    AttemptError,
    Bucket,
    Clock,
    HttpRequest,
    Key,
    Limits,
    check_address,
    exchange,
    parsed_answer,
    retry,
)
from weir.settings import KEY_VARIABLE
from weir.systems.compose import system_text, then
from weir.systems.composite import check_unknown, described_unknown, open_anew
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Retriever, called, no_parts
from weir.systems.remote.remote_searcher import (
    RemoteSearcher,
    RemoteService,
    brief,
    check_on_failure,
    kept_columns,
)

# ----------
# Placeholders of requests, and paths into answers.


Json: TypeAlias = Any
Values: TypeAlias = Mapping[str, Json]

_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)(?:\|([a-z]+))?\}")
_STEP = re.compile(r"\.?(?:([^.\[\]']+)|\['([^']+)'\]|\[(-?\d+)\])")
_OPERATORS = re.compile(r"\b(AND|OR|NOT|TO)\b")
_SPECIAL = re.compile(r'([+\-&|!(){}\[\]^"~*?:\\/<>=])')


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()
"""Replaces a value that a request leaves out or an answer lacks."""


ESCAPES: Mapping[str, Callable[[Json], str]] = {
    "json": lambda value: json.dumps(value, ensure_ascii=False),
    "lucene": lambda value: _OPERATORS.sub(r"\\\1", _SPECIAL.sub(r"\\\1", str(value))),
}
"""How a value is written inside another language: as a JSON literal, or with Lucene's query syntax escaped."""


def _names_in(tree: Json) -> Iterator[tuple[str, str | None]]:
    if isinstance(tree, str):
        yield from ((match[1], match[2]) for match in _PLACE.finditer(tree))
    elif isinstance(tree, (dict, list)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _names_in(part)


def filled_json(tree: Json, values: Values) -> Json:
    """Return JSON with placeholders such as "{k}" replaced in its values, not in its keys.

    A text that is only a placeholder becomes its value with its type; ABSENT is left out of objects and lists. Raises
    UnknownName for a placeholder without a value.
    """
    if isinstance(tree, dict):
        parts = {key: filled_json(part, values) for key, part in tree.items()}
        return {key: part for key, part in parts.items() if part is not ABSENT}
    if isinstance(tree, list):
        return [part for part in (filled_json(part, values) for part in tree) if part is not ABSENT]
    if not isinstance(tree, str):
        return tree
    alone = _PLACE.fullmatch(tree)
    if alone is not None and alone[2] is None:
        return _known(alone[1], values)
    return _filled_text(tree, values)


def _filled_text(text: str, values: Values) -> str:
    def one(match: re.Match[str]) -> str:
        value, escape = _known(match[1], values), match[2]
        if escape is None:
            return "" if value is ABSENT else str(value)
        if escape not in ESCAPES:
            raise UnknownName("escape of a placeholder", escape, ESCAPES)
        return ESCAPES[escape](value)

    return _PLACE.sub(one, text)


def filled_path(text: str, values: Values) -> str:
    """Return a path with placeholders replaced by percent-encoded values, each one segment; raises
    UnknownName for a placeholder without a value."""
    return _PLACE.sub(lambda match: quote(str(_known(match[1], values)), safe=""), text)


def _known(name: str, values: Values) -> Json:
    if name not in values:
        raise UnknownName("placeholder", name, values)
    return values[name]


@dataclass(frozen=True)
class JsonPath:
    """A path into an answer, such as `hits.hits`, `_source['doc.id']` or `hits[-1].sort`."""

    text: str
    steps: tuple[str | int, ...]

    @staticmethod
    def of(text: str) -> JsonPath:
        """Parse a path such as hits[0].id; raises BadValue for other text."""
        steps: list[str | int] = []
        at = 0
        while at < len(text):
            match = _STEP.match(text, at)
            if match is None:
                raise BadValue(f"'{text}' is no path of an answer; expected such as hits.hits or hits[0].id")
            steps.append(int(match[3]) if match[3] is not None else match[1] or match[2])
            at = match.end()
        return JsonPath(text, tuple(steps))

    @property
    def of_request(self) -> bool:
        """True if the path leads into the body or the parameters of a request."""
        return len(self.steps) > 1 and self.steps[0] in ("body", "params")

    def find(self, value: Json) -> Json:
        """Return the value at this path in JSON; ABSENT if there is none."""
        for step in self.steps:
            if isinstance(step, str):
                value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
            else:
                there = isinstance(value, list) and -len(value) <= step < len(value)
                value = value[step] if there else ABSENT
        return value

    def values_at(self, values: list[Json]) -> list[Json]:
        """Return the value at this path in each element of a list; ABSENT where there is none."""
        if len(self.steps) == 1 and isinstance(self.steps[0], str) and set(map(type, values)) <= {dict}:
            step = self.steps[0]
            return [value.get(step, ABSENT) for value in values]
        return [self.find(value) for value in values]


# ----------
# The TOML file.


TEMPLATES = Path(__file__).with_name("templates")
EXPECTED = "a description of a search server (docs/retrievers.md)"
QUERY_NAMES = ("query", "id", "k", "size", "offset", "page", "page0", "cursor", "dataset")
"""Placeholders beside the file's own values: the query's text and id, the number of documents; a page's size, offset,
number from 1 and from 0, and the previous page's cursor; the collection.
"""
MERGED = ("values", "headers", "params", "answer", "page", "limits", "fields", "stages")
"""Tables that a file merges, entry by entry, into the template it extends; all else is replaced whole."""
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SECRET = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)
_PUBLIC = {"x-algolia-application-id"}


@dataclass(frozen=True)
class _ServerLimits:
    concurrency: int = 8
    """Requests at a time."""
    requests_per_minute: float | None = None
    """None for no limit."""
    attempts: int = 4
    """This and the next four: see Limits in services/requests.py."""
    pause_s: float = 0.5
    longest_s: float = 60.0
    timeout_s: float = 30.0
    whole_s: float = 120.0
    answer_mb: float = 16.0
    """Largest answer in MiB."""
    failures: int = 20
    """Unanswered queries in a row after which no more are asked."""

    def of_request(self) -> Limits:
        return Limits(
            requests_per_minute=self.requests_per_minute,
            timeout=self.timeout_s,
            whole=self.whole_s,
            attempts=self.attempts,
            pause=self.pause_s,
            longest=self.longest_s,
        )


@dataclass(frozen=True)
class _FieldsTemplate:
    """A request for a server's field names, sent before the queries to refuse fields that do not exist."""

    path: str
    """The path of the request, with placeholders."""
    names: JsonPath
    """Where the answer has a table or list of field names."""
    searched: tuple[str, ...]
    """Patterns of the fields that the file searches; a number after ^ is the weight."""


@dataclass(frozen=True)
class SearchTemplate:
    """A server's search requests and answers; queries fill placeholders in `path`, `params` and `body`."""

    method: str
    url: str
    """The address up to the path."""
    path: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Any
    values: Mapping[str, Any]
    """The file's own values of placeholders."""
    results: JsonPath
    """Where an answer has its list of documents."""
    id: JsonPath
    """Where a result has its identifier."""
    score: JsonPath | None
    """Where a result has its score; None scores by rank."""
    empty: bool
    """True if an answer without the list means no results; otherwise it is malformed."""
    expect: tuple[tuple[JsonPath, Any], ...]
    """(path, value) of a complete answer."""
    page_size: int | None
    """Most documents of one request."""
    next: JsonPath | None
    """Where an answer has the cursor of the next page."""
    equal: tuple[tuple[JsonPath, JsonPath], ...] = ()
    """Pairs of paths whose values are equal in a complete answer."""
    error: JsonPath | None = None
    """Where an answer has its error."""
    empty_body: Any = None
    """The body of a request sent after an empty answer; the answer is believed unless this request is refused."""
    fields: _FieldsTemplate | None = None
    limits: _ServerLimits = field(default_factory=_ServerLimits)
    name: str = ""
    """The system's name in tables; "" takes the name of its file."""
    stages: Mapping[str, tuple[JsonPath, ...]] = field(default_factory=dict)
    """For each stage of the server but the last: entries of body and params that its requests leave out."""

    def before(self, stage: str) -> SearchTemplate:
        """Return the template of an earlier stage, which lacks some entries of the request; raises
        UnknownName for an unknown stage."""
        if stage not in self.stages:
            raise UnknownName("stage of this server", stage, self.stages)
        asked: Json = {"body": self.body, "params": dict(self.params)}
        for path in self.stages[stage]:
            asked = _left_out(asked, path.steps)
        return replace(self, body=asked.get("body"), params=asked.get("params", {}))

    def describe(self) -> dict[str, object]:
        """Return the entries that decide an answer: all but fields, limits, name and stages."""

        def text(value: Any) -> Any:  # noqa: ANN401  an entry
            return value.text if isinstance(value, JsonPath) else value

        later = {
            "equal": {path.text: other.text for path, other in self.equal},
            "error": text(self.error),
            "empty_body": self.empty_body,
        }
        left_out = (*later, "fields", "limits", "name", "stages")
        description = {f.name: text(getattr(self, f.name)) for f in fields(self) if f.name not in left_out}
        description["expect"] = {path.text: value for path, value in self.expect}
        return description | {name: value for name, value in later.items() if value}

    @property
    def variables(self) -> list[str]:
        """Return the environment variables with secrets that the headers name."""
        return [name for text in self.headers.values() for name in _VARIABLE.findall(text)]

    def uses(self, *names: str) -> bool:
        """Return True if the request has one of these placeholders."""
        used = _names_in([self.path, dict(self.params), self.body, dict(self.values)])
        return any(name in names for name, _ in used)

    def headers_with(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with the variables' values; raises KeyError for a missing variable."""
        return {name: _VARIABLE.sub(lambda m: secrets[m[1]], text) for name, text in self.headers.items()}


def template_names() -> list[str]:
    """Return the names of Weir's own settings files, sorted."""
    return sorted(path.stem for path in TEMPLATES.glob("*.toml"))


def _stand_in_alone(path: Path) -> str:
    name = read_toml(path, EXPECTED).get("extends")
    known = name in template_names() and "live" not in read_toml(TEMPLATES / f"{name}.toml", EXPECTED)
    return str(name) if known else ""


def read_template(path: Path, dataset: str | None = None) -> SearchTemplate:
    """Return a server's template from a TOML file; raises FormatError that names file and entry.

    dataset: value of the placeholder {dataset}.
    """
    entries = _with_extended(read_toml(path, EXPECTED), path)
    try:
        _check(entries, _TOP, "")
        answer, page = entries.get("answer", {}), entries.get("page", {})
        _check(answer, _ANSWER, "answer.")
        _check(page, _PAGE, "page.")
        for name in ("url", "answer"):
            if name not in entries:
                raise BadValue(f"no '{name}'")
        for name in ("results", "id"):
            if name not in answer:
                raise BadValue(f"no 'answer.{name}'")
        equal = answer.get("equal", {})
        for at, other in equal.items():
            if not isinstance(other, str):
                raise BadValue(f"answer.equal.{at} is {other!r:.80}, not a text")
        values = _file_values(entries.get("values", {}), {} if dataset is None else {"dataset": dataset})
        size = page.get("size")
        if size is not None and size < 1:
            raise BadValue(f"page.size is {size}")
        body = entries.get("body")
        body = _json(body) if isinstance(body, str) else body
        method = entries.get("method", "POST" if body is not None else "GET")
        if method not in ("GET", "POST", "PUT"):
            raise BadValue(f"method is '{method}', not GET, POST or PUT")
        url = filled_path(entries["url"], values).rstrip("/")
        check_address("url", url, bool(entries.get("plain_http", False)))
        template = SearchTemplate(
            method=method,
            url=url,
            path=entries.get("path", ""),
            params=entries.get("params", {}),
            headers={name: _header(name, text, values) for name, text in entries.get("headers", {}).items()},
            body=body,
            values=values,
            results=_path(answer["results"], values),
            id=_path(answer["id"], values),
            score=_path(answer["score"], values) if answer.get("score") else None,
            empty=answer.get("empty", False),
            expect=tuple((_path(at, values), value) for at, value in answer.get("expect", {}).items()),
            page_size=size,
            next=_path(page["next"], values) if page.get("next") else None,
            equal=tuple((_path(at, values), _path(other, values)) for at, other in equal.items()),
            error=_path(answer["error"], values) if answer.get("error") else None,
            empty_body=_merged(body, entries["empty_body"]) if "empty_body" in entries else None,
            fields=_fields_template(entries.get("fields"), body, values),
            limits=_server_limits(entries.get("limits", {})),
            name=entries.get("name", ""),
            stages=dict(_stage(name, paths) for name, paths in entries.get("stages", {}).items()),
        )
        _check_placeholders(template)
        return template
    except FormatError:
        raise
    except WeirError as error:
        raise FormatError(path, str(error), EXPECTED) from None


def _with_extended(entries: dict[str, Any], path: Path, levels: int = 4) -> dict[str, Any]:
    name = entries.pop("extends", None)
    if name is None:
        return entries
    if levels == 0 or name not in template_names():
        known = ", ".join(template_names())
        raise FormatError(path, f"extends = {name!r}", f"one of {known}")
    base_path = TEMPLATES / f"{name}.toml"
    base = _with_extended(read_toml(base_path, EXPECTED), base_path, levels - 1)
    base.pop("live", None)
    merged = {
        key: {**base[key], **entries[key]}
        for key in MERGED
        if isinstance(base.get(key), dict) and isinstance(entries.get(key), dict)
    }
    if "body" in entries:  # it is another question than that of the base
        base.pop("empty_body", None)
    return {**base, **entries, **merged}


_Types: TypeAlias = Mapping[str, tuple[type, ...]]
_TOP: _Types = {
    **dict.fromkeys(("name", "method", "url", "path"), (str,)),
    **dict.fromkeys(("params", "headers", "values", "answer", "page", "limits", "stages"), (dict,)),
    **dict.fromkeys(("fields", "empty_body"), (dict,)),
    "plain_http": (bool,),
    "body": (dict, list, str),
}
_ANSWER: _Types = {
    **dict.fromkeys(("results", "id", "score", "error"), (str,)),
    **dict.fromkeys(("expect", "equal"), (dict,)),
    "empty": (bool,),
}
_FIELDS: _Types = {"path": (str,), "names": (str,), "searched": (str, list)}
_PAGE: _Types = {"size": (int,), "next": (str,)}
_SHAPES = {str: "a text", bool: "true or false", dict: "a table", list: "a list", int: "a whole number"}


def _check(entries: Mapping[str, Any], types_of_entries: _Types, within: str) -> None:
    for name, value in entries.items():
        if name not in types_of_entries:
            raise UnknownName("entry", within + name, [within + one for one in types_of_entries])
        types = types_of_entries[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            expected = " or ".join(_SHAPES[one] for one in types)
            raise BadValue(f"{within}{name} is {value!r:.80}, not {expected}")


def _file_values(entries: Mapping[str, Any], dataset_value: Mapping[str, str]) -> dict[str, Any]:
    for name, value in entries.items():
        if name in QUERY_NAMES or not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            raise BadValue(
                f"values.{name}: a value has a name of small letters, and none of {', '.join(QUERY_NAMES)}"
            )
        if value == "":
            raise BadValue(f"values.{name} is empty: it has to be given")
        for place, _ in _names_in(value):
            if place != "dataset":
                raise UnknownName("placeholder of a value", place, ["dataset"])
    return {
        name: filled_json(value, dataset_value) if dataset_value else value for name, value in entries.items()
    }


def _merged(tree: Any, other: Any) -> Any:  # noqa: ANN401  any JSON
    if not (isinstance(tree, dict) and isinstance(other, dict)):
        return other
    return {**tree, **{name: _merged(tree.get(name), part) for name, part in other.items()}}


def _fields_template(
    entries: Mapping[str, Any] | None, body: object, values: Mapping[str, Any]
) -> _FieldsTemplate | None:
    if not entries:
        return None
    _check(entries, _FIELDS, "fields.")
    for name in _FIELDS:
        if name not in entries:
            raise BadValue(f"no 'fields.{name}'")
    searched = entries["searched"]
    if not {name for name, _ in _names_in(searched)} <= {name for name, _ in _names_in(body)}:
        return None
    filled_in = filled_json(searched, values)
    patterns = [filled_in] if isinstance(filled_in, str) else filled_in
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        raise BadValue(f"fields.searched is {patterns!r:.80}, not a list of texts")
    return _FieldsTemplate(entries["path"], _path(entries["names"], values), tuple(patterns))


def _stage(name: str, paths: object) -> tuple[str, tuple[JsonPath, ...]]:
    texts = paths if isinstance(paths, list) else []
    left_out = tuple(JsonPath.of(one) for one in texts if isinstance(one, str))
    if not texts or len(left_out) < len(texts) or any(not one.of_request for one in left_out):
        raise BadValue(f"stages.{name} is {paths!r:.80}, not a list such as ['body.rescore']")
    return name, left_out


def _left_out(tree: Json, steps: tuple[str | int, ...]) -> Json:
    first, *rest = steps
    if not isinstance(tree, dict) or first not in tree:
        return tree
    if not rest:
        return {name: part for name, part in tree.items() if name != first}
    return {**tree, first: _left_out(tree[first], tuple(rest))}


def _header(name: str, text: object, values: Mapping[str, Any]) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", name) or not isinstance(text, str) or not text.isprintable():
        raise BadValue(f"headers.{name} is no header")
    variables = _VARIABLE.findall(text)
    for variable in variables:
        if not re.fullmatch(KEY_VARIABLE, variable):
            raise BadValue(
                f"headers.{name} names '${{{variable}}}'; only variables called WEIR_KEY_NAME are sent anywhere"
            )
    if _SECRET.search(name) and name.lower() not in _PUBLIC and not variables:
        raise BadValue(
            f"headers.{name} holds what may be a secret; put it into WEIR_KEY_NAME and write '${{WEIR_KEY_NAME}}'"
        )
    parts = re.split(r"(\$\{[^}]*\})", text)
    return "".join(part if part.startswith("${") else _filled_text(part, values) for part in parts)


def _server_limits(entries: Mapping[str, Any]) -> _ServerLimits:
    limits = {f.name: f for f in fields(_ServerLimits)}
    for name, value in entries.items():
        if name not in limits:
            raise UnknownName("entry", f"limits.{name}", [f"limits.{one}" for one in limits])
        whole = isinstance(limits[name].default, int) and not isinstance(limits[name].default, float)
        number = type(value) is int or (type(value) is float and not whole)
        if not number or not 0 < value < 1e9:
            raise BadValue(f"limits.{name} is {value!r}, not a {'whole ' if whole else ''}number above 0")
    if entries.get("concurrency", 1) > 1024:
        raise BadValue(f"limits.concurrency is {entries['concurrency']}, more than 1024")
    return _ServerLimits(**entries)


def _check_placeholders(template: SearchTemplate) -> None:
    used = list(_names_in([template.path, dict(template.params), template.body, template.empty_body]))
    used += [] if template.fields is None else _names_in(template.fields.path)
    names = [*QUERY_NAMES, *template.values]
    for name, escape in used:
        if name not in names:
            raise UnknownName("placeholder", name, names)
        if escape is not None and escape not in ESCAPES:
            raise UnknownName("escape of a placeholder", escape, ESCAPES)
    if not {"query", "id"} & {name for name, _ in used}:
        raise BadValue("neither {query} nor {id} stands in path, params or body")


def _json(text: str) -> Any:  # noqa: ANN401  any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(
            f'body is no JSON ({error}); placeholders stand in quotes, also for numbers: {{"size": "{{k}}"}}'
        ) from None


def _path(text: str, values: Mapping[str, Any]) -> JsonPath:
    return JsonPath.of(_filled_text(text, values))


# ----------
# The system.


UNAUTHORIZED = 401
SHOWN_CHARACTERS = 300
"""Most characters of a server's message that are shown."""
T = TypeVar("T")
MOST_PAGES = 1000
"""Most pages of one query."""


@SYSTEMS.register("http")
@named_arguments
@dataclass(frozen=True)
class Http:
    """A search server over HTTP, described by a TOML file with the entries in docs/retrievers.md.

    Raises BadValue for settings, and FormatError for the file whenever it is used.
    """

    file: str
    """The TOML file."""
    version: str | None = None
    """Your label for the content of the server. With it answers are kept and never asked for twice; without it no
    other process reads them.
    """
    on_failure: str = "refuse"
    """"refuse": scores nothing if a query stays without an answer. "missing": scores that query as missing."""
    dataset: str | None = None
    """The value of {dataset} in the file; None for the collection's name."""
    unknown: str = "refuse"
    """"refuse" documents that the collection does not have, or "drop" and count them."""
    stage: str = ""
    """A stage of the server before the last, which the file names; "" for its whole answer."""

    __repr__ = system_text
    __rshift__ = then

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not self.file:
            raise BadValue(f"http: the file is {self.file!r}; expected such as 'search.toml'")
        declared_version(self.version)
        check_on_failure("http", self.on_failure)
        check_unknown("http", self.unknown)
        if self.dataset is not None and not isinstance(self.dataset, str):
            raise BadValue(f"http: dataset is {self.dataset!r}; expected a text")
        if not isinstance(self.stage, str):
            raise BadValue(f"http: stage is {self.stage!r}; expected a text")

    def __str__(self) -> str:
        return called("http", [self.file], changed_settings(self, ("file",)))

    @property
    def service(self) -> str:
        return f"the server of {self.file}"

    def describe(self) -> dict[str, object]:
        about = self._about(self._template())
        return {**about, "on_failure": self.on_failure, **described_unknown(self.unknown)}

    def title(self) -> tuple[str, str]:
        return self.file, read_template(Path(self.file), self.dataset).name

    def adapted_to(self, collection: str, instruction: str) -> Http:
        uses = self.dataset is None and read_template(Path(self.file)).uses("dataset")
        return replace(self, dataset=collection) if uses else self

    def keeps_documents(self) -> bool:
        return True

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> RemoteSearcher:
        """Return a searcher; raises FormatError for the file, warns (RankingWarning) of an untested template."""
        template = self._template()
        if name := _stand_in_alone(Path(self.file)):
            message = (
                f"the template {name} was tested against a stand-in of the published API, never on a server"
            )
            warn_of_ranking(f"{self}: {message}; check some answers by hand")
        limits = template.limits
        policy = RequestPolicy(limits.concurrency, failures=limits.failures)
        connect = self._connections(template)
        about = self._about(template)
        service = RemoteService(str(self), about, connect, policy, self.on_failure, unknown=self.unknown)
        return RemoteSearcher(service, corpus)

    components = no_parts
    open = open_anew

    def live_index(self, corpus: Corpus) -> LiveIndex:
        """Return the server's index for `weir why`; raises BadValue unless Elasticsearch, OpenSearch or Solr
        serves it."""
        template = self._template()
        values = {**template.values, "dataset": self.dataset or ""}
        solr = template.path.startswith("/solr/") and template.path.endswith("/query")
        index, ending, _ = template.path.partition("/query" if solr else "/_search")
        if not ending or not isinstance(template.body, dict):
            raise BadValue(
                f"{self}: {template.path} is no search of Elasticsearch, OpenSearch or Solr, which explain scores"
            )
        prefix = filled_path(index, values)
        connection = self._connections(template)(lambda _: None)

        def body(text: str, k: int) -> Json:
            page = {"offset": 0, "page": 1, "page0": 0, "cursor": ABSENT}
            return filled_json(template.body, {**values, "query": text, "id": "", "k": k, "size": k, **page})

        def ask(path: str, json: Json) -> Json:
            return connection.call(prefix + path, json)

        if solr:
            return SolrLiveIndex(prefix.rpartition("/")[2], ask, body)
        return ElasticLiveIndex(prefix.strip("/"), ask, "/_search", body)

    def earlier_stages(self) -> tuple[tuple[str, Retriever], ...]:
        whole = self._template()
        asked = (whole.body, dict(whole.params))
        names = () if self.stage else whole.stages
        fewer = {name: whole.before(name) for name in names}
        return tuple(
            (name, replace(self, stage=name))
            for name, one in fewer.items()
            if (one.body, dict(one.params)) != asked
        )

    def _template(self) -> SearchTemplate:
        template = read_template(Path(self.file), self.dataset)
        return template.before(self.stage) if self.stage else template

    def _connections(self, template: SearchTemplate) -> Callable[[Retried], _EndpointAsker]:
        clock = Clock()
        shared = _Shared(clock, Bucket(template.limits.requests_per_minute, clock))

        def connect(retried: Retried) -> _EndpointAsker:
            keys = tuple(map(Key.of, template.variables))
            headers = {"Accept": "application/json", "User-Agent": "weir", "Content-Type": "application/json"}
            headers |= template.headers_with({str(key.variable): key.checked() for key in keys})
            values = {**template.values, "dataset": self.dataset or ""}
            return _EndpointAsker(template, values, headers, keys, shared, retried)

        return connect

    def _about(self, template: SearchTemplate) -> dict[str, object]:
        dataset = {} if self.dataset is None else {"dataset": self.dataset}
        return {"system": "http", **template.describe(), **dataset, **declared_version(self.version)}


FULL, TOO_LARGE = 429, 413
"""Statuses of a server without room for a request, and of one that refuses its size."""


OTHER_SHAPES = 4
"""Answers of another shape, and none of the right one, after which a server is not asked again for the same."""


@dataclass(eq=False)
class _Shared:
    clock: Clock
    bucket: Bucket
    fields_known: bool = False
    """True once the server was asked for the searched fields."""
    turn: threading.Lock = field(default_factory=threading.Lock)
    other_shapes: float = 0
    """Answers of another shape than the file says, -inf once any had it."""

    def may_change(self) -> bool:
        self.other_shapes += 1
        return self.other_shapes < OTHER_SHAPES


@dataclass(eq=False)
class _EndpointAsker:
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
        for request in requests:
            try:
                self._check_fields()
                self.seconds = 0.0
                answer = self._pages(request.body)
            except AttemptError as error:
                yield Outcome(request, error=error)
            else:
                yield Outcome(request, answer, self.seconds)

    def call(self, path: str, body: Json) -> Json:
        url = self.template.url + path
        data = None if body is None else json.dumps(body).encode("ascii")
        request = HttpRequest("GET" if body is None else "POST", url, self.headers, data, self.keys)
        try:
            return self._answer(request, self._json)
        except AttemptError as error:
            raise ServiceError(f"{url}: {error}") from None

    def close(self) -> None:
        self.connection.close()

    def _pages(self, query: Mapping[str, Any]) -> dict[str, object]:
        template, k = self.template, int(query["k"])
        size = min(k, template.page_size or k)
        values = {**self.values, "query": query["text"], "id": query["id"], "k": k, "size": size}
        names: list[object] = []
        scores: list[object] = []
        cursor: object = ABSENT
        for number in range(MOST_PAGES):
            place = {"offset": len(names), "page": number + 1, "page0": number, "cursor": cursor}
            found, found_scores, following = self._answer(
                self._request(template.body, {**values, **place}), self._read
            )
            if not found and number == 0 and template.empty_body is not None:
                try:
                    self._answer(self._request(template.empty_body, {**values, **place}), self._read)
                except AttemptError as error:
                    words = len(str(query["text"]).split())
                    reason = f"the answer to a query of {words:,} words is empty, and in another form it is refused"
                    raise AttemptError(error.kind, f"{reason}: {error}", again=False) from None
            names += found
            scores += found_scores
            last = following in (ABSENT, None, "", cursor) if template.next else len(found) < size
            if len(names) >= k or not found or last or not (self.counted or template.next):
                break
            cursor = following
        try:
            return kept_columns(names[:k], None if template.score is None else scores[:k])
        except ValueError as error:
            raise AttemptError("malformed", str(error)) from None

    def _check_fields(self) -> None:
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
                warn_of_ranking(unknown)
            shared.fields_known = True

    def _request(self, body: Any, values: Mapping[str, Any]) -> HttpRequest:  # noqa: ANN401  any JSON
        template = self.template
        path = template.url + filled_path(template.path, values)
        params = filled_json(dict(template.params), values)
        params = {name: str(p).lower() if isinstance(p, bool) else p for name, p in params.items()}
        url = path + (f"?{urlencode(params, doseq=True)}" if params else "")
        data = None if body is None else json.dumps(filled_json(body, values)).encode("ascii")
        return HttpRequest(template.method, url, self.headers, data, self.keys)

    def _answer(self, request: HttpRequest, read: Callable[[bytes], T]) -> T:
        limits = self.template.limits.of_request()
        return retry(
            lambda: self._once(request, read), limits, self.shared.clock, lambda error, _: self.retried(error)
        )

    def _once(self, request: HttpRequest, read: Callable[[bytes], T]) -> T:
        self.shared.bucket.take(1)
        limits, start = self.template.limits, time.perf_counter()
        most = int(limits.answer_mb * (1 << 20))
        try:
            body = exchange(
                self.connection,
                request,
                most,
                (limits.timeout_s, limits.whole_s),
                self._masked,
                self.shared.clock,
            )
        except AnswerTooLargeError as error:
            raise AttemptError("malformed", f"{error} (limits.answer_mb)", again=False) from None
        except AttemptError as error:
            if error.status == FULL:
                error.message = f"{error}; a smaller limits.concurrency asks for less at once"
            if error.kind == "timed out":
                error.message = f"{error}; a larger limits.timeout_s waits longer"
            if error.status == TOO_LARGE:
                error.message = f"{error}; the server's own limit on requests allows longer queries"
            if error.status not in (401, 403):
                raise
            hints = "; ".join(key.hint() for key in self.keys) or "no header carries a key ([headers])"
            raise AttemptError(error.kind, f"{error}; {hints}", again=False, status=error.status) from None
        answer = read(body)
        self.seconds += time.perf_counter() - start
        return answer

    def _read(self, body: bytes) -> tuple[list[object], list[object], object]:
        """Return (names, scores, cursor of the next page) of an answer; the cursor is ABSENT on the last
        page.

        Scores are [] if the file names no path to them. Raises AttemptError for an error or an answer of
        another form.
        """
        template, answer = self.template, self._json(body)
        reason = ABSENT if template.error is None else template.error.find(answer)
        if reason not in (ABSENT, None):
            raise AttemptError("refused", self._masked(reason)[:SHOWN_CHARACTERS], again=False)
        for path, expected in template.expect:
            value = path.find(answer)
            if value is not ABSENT and (
                value != expected or isinstance(value, bool) != isinstance(expected, bool)
            ):
                raise AttemptError(
                    "failed", f"the answer says {path.text}: {brief(value)}, not {brief(expected)}"
                )
        for path, other in template.equal:
            value, expected = path.find(answer), other.find(answer)
            if value != expected:
                raise AttemptError(
                    "failed",
                    f"the answer says {path.text}: {brief(value)}, not {brief(expected)} as {other.text}",
                )
        results = template.results.find(answer)
        if results is ABSENT and template.empty:
            results = []
        if not isinstance(results, list):
            has = "no list" if results is ABSENT else f"{brief(results)}, no list,"
            raise AttemptError(
                "malformed",
                f"the answer has {has} at {template.results.text}: {brief(answer)}",
                again=self.shared.may_change(),
            )
        cursor = ABSENT if template.next is None else template.next.find(answer)
        names = self._column(results, template.id)
        scores = [] if template.score is None else self._column(results, template.score)
        self.shared.other_shapes = -math.inf
        return names, scores, cursor

    def _json(self, body: bytes) -> Any:  # noqa: ANN401  whatever the server says
        try:
            return parsed_answer(body)
        except (ValueError, RecursionError):
            raise AttemptError("malformed", "the answer is not JSON, or was cut") from None

    def _column(self, results: list[object], path: JsonPath) -> list[object]:
        column = path.values_at(results)
        for nothing in (ABSENT, None):
            if nothing in column:
                raise AttemptError(
                    "malformed",
                    f"a result has no {path.text}: {brief(results[column.index(nothing)])}",
                    again=self.shared.may_change(),
                )
        return column

    def _masked(self, text: object) -> str:
        for key in self.keys:
            text = key.masked(text)
        return " ".join(str(text).split())
