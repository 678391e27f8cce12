"""What a TOML file says of a search server: how it is asked, how its answer is read, how gently it is treated."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from weir.errors import BadValue, FormatError, UnknownName, WeirError
from weir.io.storage.toml_file import read_toml
from weir.services.http import check_address
from weir.services.limits import Limits
from weir.settings import KEY_VARIABLE
from weir.systems.remote.placeholders import ESCAPES, JsonPath, filled, filled_path, filled_text, names_in

__all__ = ["FieldsTemplate", "SearchTemplate", "ServerLimits", "read_template", "template_names"]

EXPECTED = "a description of a search server (docs/retrievers.md)"
QUERY_NAMES = ("query", "id", "k", "size", "offset", "page", "page0", "cursor", "dataset")
"""What placeholders may name besides the file's own values: the query's text and identifier, how many documents; of a
page its size, how many stand before it, its number from 1 and from 0, the cursor of the one before; the collection."""
MERGED = ("values", "headers", "params", "answer", "page", "limits", "fields")
"""Tables of which a file that extends another replaces single entries; all else is replaced whole."""
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SECRET = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)
_PUBLIC = {"x-algolia-application-id"}


@dataclass(frozen=True)
class ServerLimits:
    """How a server is treated; nothing of it is part of a key.

    concurrency: requests at a time; requests_per_minute: None for as fast as answers come; attempts, pause_s,
    longest_s, timeout_s, whole_s: see Limits in services/limits.py; answer_mb: the largest answer; failures: queries in
    a row without an answer after which no further one is asked.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    attempts: int = 4
    pause_s: float = 0.5
    longest_s: float = 60.0
    timeout_s: float = 30.0
    whole_s: float = 120.0
    answer_mb: float = 16.0
    failures: int = 20

    def limits(self) -> Limits:
        """The limits of one request."""
        return Limits(
            requests_per_minute=self.requests_per_minute,
            timeout=self.timeout_s,
            whole=self.whole_s,
            attempts=self.attempts,
            pause=self.pause_s,
            longest=self.longest_s,
        )


@dataclass(frozen=True)
class FieldsTemplate:
    """How a server is asked, once and before the queries, for the fields that it has.

    path: of the request, with placeholders; names: where the answer has a table or a list of them; searched: those that
    the file searches: patterns, a weight behind ^.
    """

    path: str
    names: JsonPath
    searched: tuple[str, ...]


@dataclass(frozen=True)
class SearchTemplate:
    """A search server as a file describes it, templates that it extends filled in.

    url: up to the path; path, params, headers, body: of a request, with placeholders; values: those of the file;
    results: where an answer has its list of documents; id, score: where one of them has its identifier and score, None
    for rank order; empty: whether an answer without the list holds nothing, else it is none; expect: what an answer
    says where it is whole, equal: places of it that say the same then; error: where it says why it is none; empty_body:
    the body of a request that is sent after an empty answer, which is only believed where that is not refused; fields:
    how the server is asked for the fields that it has; page_size: documents of one request at most; next: where an
    answer has the cursor of the next page; patience: how it is treated;
    name: what tables call it, "" for its file.
    """

    method: str
    url: str
    path: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Any
    values: Mapping[str, Any]
    results: JsonPath
    id: JsonPath
    score: JsonPath | None
    empty: bool
    expect: tuple[tuple[JsonPath, Any], ...]
    page_size: int | None
    next: JsonPath | None
    equal: tuple[tuple[JsonPath, JsonPath], ...] = ()
    error: JsonPath | None = None
    empty_body: Any = None
    fields: FieldsTemplate | None = None
    patience: ServerLimits = field(default_factory=ServerLimits)
    name: str = ""

    def describe(self) -> dict[str, object]:
        """Everything that decides an answer; what a file does not use is left out."""
        later = {
            "equal": {path.text: other.text for path, other in self.equal},
            "error": self.error and self.error.text,
            "empty_body": self.empty_body,
        }
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        found = {
            name: value for name, value in found.items() if name not in (*later, "fields", "patience", "name")
        }
        paths = {n: None if found[n] is None else found[n].text for n in ("results", "id", "score", "next")}
        used = {name: value for name, value in later.items() if value}
        return found | paths | {"expect": {path.text: value for path, value in self.expect}} | used

    @property
    def variables(self) -> list[str]:
        """The environment variables that its headers name."""
        return [name for text in self.headers.values() for name in _VARIABLE.findall(text)]

    def uses(self, *names: str) -> bool:
        """Whether a placeholder of one of these names stands in a request."""
        used = names_in([self.path, dict(self.params), self.body, dict(self.values)])
        return any(name in names for name, _ in used)

    def headers_with(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """The headers with what the environment variables hold."""
        return {name: _VARIABLE.sub(lambda m: secrets[m[1]], text) for name, text in self.headers.items()}


def template_names() -> list[str]:
    """The names of the templates that a file may extend."""
    return sorted(p.name.removesuffix(".toml") for p in _templates().iterdir() if p.name.endswith(".toml"))


def read_template(path: Path, dataset: str | None = None) -> SearchTemplate:
    """What a file says, with the templates that it extends; dataset: what {dataset} in its values stands for.

    Raises FormatError, naming the file and the entry, for what is no such description.
    """
    said = _with_extended(read_toml(path, EXPECTED), path)
    try:
        return _template(said, {} if dataset is None else {"dataset": dataset})
    except FormatError:
        raise
    except WeirError as error:
        raise FormatError(path, str(error), EXPECTED) from None


def _templates() -> Path:
    return Path(str(files("weir.systems.remote") / "templates"))


def _with_extended(said: dict[str, Any], path: Path, levels: int = 4) -> dict[str, Any]:
    name = said.pop("extends", None)
    if name is None:
        return said
    if levels == 0 or name not in template_names():
        known = ", ".join(template_names())
        raise FormatError(path, f"extends = {name!r}", f"one of {known}")
    base_path = _templates() / f"{name}.toml"
    base = _with_extended(read_toml(base_path, EXPECTED), base_path, levels - 1)
    merged = {
        key: {**base[key], **said[key]}
        for key in MERGED
        if isinstance(base.get(key), dict) and isinstance(said.get(key), dict)
    }
    if "body" in said:  # it is another question than that of the base
        base.pop("empty_body", None)
    return {**base, **said, **merged}


_TOP: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "method": (str,),
    "url": (str,),
    "path": (str,),
    "plain_http": (bool,),
    "params": (dict,),
    "headers": (dict,),
    "body": (dict, list, str),
    "values": (dict,),
    "answer": (dict,),
    "page": (dict,),
    "limits": (dict,),
    "fields": (dict,),
    "empty_body": (dict,),
}
_ANSWER: dict[str, tuple[type, ...]] = {
    "results": (str,),
    "id": (str,),
    "score": (str,),
    "empty": (bool,),
    "expect": (dict,),
    "equal": (dict,),
    "error": (str,),
}
_FIELDS: dict[str, tuple[type, ...]] = {"path": (str,), "names": (str,), "searched": (str, list)}
_PAGE: dict[str, tuple[type, ...]] = {"size": (int,), "next": (str,)}
_SHAPES = {str: "a text", bool: "true or false", dict: "a table", list: "a list", int: "a whole number"}


def _template(said: dict[str, Any], named: Mapping[str, str]) -> SearchTemplate:
    _check(said, _TOP, "")
    answer, page = said.get("answer", {}), said.get("page", {})
    _check(answer, _ANSWER, "answer.")
    _check(page, _PAGE, "page.")
    for name in ("url", "answer"):
        if name not in said:
            raise BadValue(f"no '{name}'")
    for name in ("results", "id"):
        if name not in answer:
            raise BadValue(f"no 'answer.{name}'")
    values = _values(said.get("values", {}), named)
    size = page.get("size")
    if size is not None and size < 1:
        raise BadValue(f"page.size is {size}")
    body = said.get("body")
    body = _json(body) if isinstance(body, str) else body
    template = SearchTemplate(
        method=_method(said.get("method", "POST" if body is not None else "GET")),
        url=_address(said, values),
        path=said.get("path", ""),
        params=said.get("params", {}),
        headers={name: _header(name, text, values) for name, text in said.get("headers", {}).items()},
        body=body,
        values=values,
        results=_path(answer["results"], values),
        id=_path(answer["id"], values),
        score=_path(answer["score"], values) if answer.get("score") else None,
        empty=answer.get("empty", False),
        expect=tuple((_path(at, values), value) for at, value in answer.get("expect", {}).items()),
        page_size=size,
        next=_path(page["next"], values) if page.get("next") else None,
        equal=tuple((_path(at, values), _path(other, values)) for at, other in _texts(answer, "equal")),
        error=_path(answer["error"], values) if answer.get("error") else None,
        empty_body=_merged(body, said["empty_body"]) if "empty_body" in said else None,
        fields=_fields(said.get("fields"), body, values),
        patience=_patience(said.get("limits", {})),
        name=said.get("name", ""),
    )
    _check_places(template)
    return template


def _check(said: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], within: str) -> None:
    """Raise UnknownName for an entry that does not exist, BadValue for one of another type."""
    for name, value in said.items():
        if name not in known:
            raise UnknownName("entry", within + name, [within + one for one in known])
        types = known[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            expected = " or ".join(_SHAPES[one] for one in types)
            raise BadValue(f"{within}{name} is {value!r:.80}, not {expected}")


def _values(given: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    for name, value in given.items():
        if name in QUERY_NAMES or not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            raise BadValue(
                f"values.{name}: a value has a name of small letters, and none of {', '.join(QUERY_NAMES)}"
            )
        if value == "":
            raise BadValue(f"values.{name} is empty: it has to be given")
        for place, _ in names_in(value):
            if place != "dataset":
                raise UnknownName("placeholder of a value", place, ["dataset"])
    return {name: filled(value, named) if named else value for name, value in given.items()}


def _texts(answer: Mapping[str, Any], name: str) -> list[tuple[str, str]]:
    """The entries of a table of texts; raises BadValue for another value."""
    for key, value in answer.get(name, {}).items():
        if not isinstance(value, str):
            raise BadValue(f"answer.{name}.{key} is {value!r:.80}, not a text")
    return list(answer.get(name, {}).items())


def _merged(tree: Any, other: Any) -> Any:  # noqa: ANN401  any JSON
    """A tree with entries of its tables replaced by those of another."""
    if not (isinstance(tree, dict) and isinstance(other, dict)):
        return other
    return {**tree, **{name: _merged(tree.get(name), part) for name, part in other.items()}}


def _fields(
    given: Mapping[str, Any] | None, body: object, values: Mapping[str, Any]
) -> FieldsTemplate | None:
    """How fields are asked for, None where the file does not say it, or where its body does not ask for such fields."""
    if not given:
        return None
    _check(given, _FIELDS, "fields.")
    for name in _FIELDS:
        if name not in given:
            raise BadValue(f"no 'fields.{name}'")
    searched = given["searched"]
    if not {name for name, _ in names_in(searched)} <= {name for name, _ in names_in(body)}:
        return None
    filled_in = filled(searched, values)
    patterns = [filled_in] if isinstance(filled_in, str) else filled_in
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        raise BadValue(f"fields.searched is {patterns!r:.80}, not a list of texts")
    return FieldsTemplate(given["path"], _path(given["names"], values), tuple(patterns))


def _method(given: str) -> str:
    if given not in ("GET", "POST", "PUT"):
        raise BadValue(f"method is '{given}', not GET, POST or PUT")
    return given


def _address(said: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    url = filled_path(said["url"], values).rstrip("/")
    check_address("url", url, bool(said.get("plain_http", False)))
    return url


def _header(name: str, text: object, values: Mapping[str, Any]) -> str:
    """A header as it is kept: variables of the environment in it stay unread."""
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
    plain = _VARIABLE.sub("", text)
    return text if plain == text and "{" not in text else _filled_header(text, values)


def _filled_header(text: str, values: Mapping[str, Any]) -> str:
    parts = re.split(r"(\$\{[^}]*\})", text)
    return "".join(part if part.startswith("${") else filled_text(part, values) for part in parts)


def _json(text: str) -> Any:  # noqa: ANN401  any JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(
            f'body is no JSON ({error}); placeholders stand in quotes, also for numbers: {{"size": "{{k}}"}}'
        ) from None


def _path(text: str, values: Mapping[str, Any]) -> JsonPath:
    return JsonPath.of(filled_text(text, values))


def _patience(said: Mapping[str, Any]) -> ServerLimits:
    known = {f.name: f for f in fields(ServerLimits)}
    for name, value in said.items():
        if name not in known:
            raise UnknownName("entry", f"limits.{name}", [f"limits.{one}" for one in known])
        whole = isinstance(known[name].default, int) and not isinstance(known[name].default, float)
        number = type(value) is int or (type(value) is float and not whole)
        if not number or not 0 < value < 1e9:
            raise BadValue(f"limits.{name} is {value!r}, not a {'whole ' if whole else ''}number above 0")
    if said.get("concurrency", 1) > 1024:
        raise BadValue(f"limits.concurrency is {said['concurrency']}, more than 1024")
    return ServerLimits(**said)


def _check_places(template: SearchTemplate) -> None:
    """Raise UnknownName for a placeholder that nothing fills, BadValue for a request without the query."""
    used: list[tuple[str, str | None]] = list(
        names_in([template.path, dict(template.params), template.body, template.empty_body])
    )
    used += [] if template.fields is None else names_in(template.fields.path)
    known = [*QUERY_NAMES, *template.values]
    for name, escape in used:
        if name not in known:
            raise UnknownName("placeholder", name, known)
        if escape is not None and escape not in ESCAPES:
            raise UnknownName("escape of a placeholder", escape, ESCAPES)
    if not {"query", "id"} & {name for name, _ in used}:
        raise BadValue("neither {query} nor {id} stands in path, params or body")
