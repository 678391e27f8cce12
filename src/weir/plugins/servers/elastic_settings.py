"""What is searched on an Elasticsearch or OpenSearch server, and how: a TOML file, or what a name says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weir.core.corpus import check_view
from weir.errors import BadValue, FormatError
from weir.io.storage.toml_file import read_toml
from weir.services.http import check_address, check_key
from weir.systems.remote.remote_searcher import check_on_failure
from weir.systems.remote.settings_file import (
    check_choice,
    check_number,
    check_text,
    check_whole,
    settings_value,
)

__all__ = ["ElasticSettings", "read_elastic_settings"]

QUERIES = ("best_fields", "most_fields", "cross_fields", "bool")
SCHEMES = ("ApiKey", "Basic", "Bearer")
NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class ElasticSettings:
    """A server, an index that Weir makes there, and how it is searched.

    url: the address of the server; plain_http: whether plain http may leave this machine; key: the environment variable
    with what authorises, WEIR_KEY_ and a name, "" for none, and scheme: ApiKey, Basic (user:password) or Bearer.
    prefix: how names of Weir's indexes begin. fields: of a document, each a field of the index, a number behind ^ is
    its weight; analyzer: of them all; settings: of the index, as its API takes them. query: best_fields, most_fields or
    cross_fields, a multi_match of that type with its tie_breaker, or bool, a match for each field, added. concurrency,
    batch: requests at a time, and searches in each. timeout_s: seconds without an answer; on_failure: "refuse" or
    "missing", what becomes of queries without one; name: what tables call it, "" for its file.
    """

    url: str
    plain_http: bool = False
    key: str = ""
    scheme: str = "ApiKey"
    prefix: str = "weir-"
    fields: tuple[str, ...] = ("title", "text")
    analyzer: str = "english"
    settings: Mapping[str, Any] = field(default_factory=lambda: NONE, hash=False)
    query: str = "best_fields"
    tie_breaker: float = 0.5
    concurrency: int = 8
    batch: int = 1
    timeout_s: float = 60.0
    on_failure: str = "refuse"
    name: str = ""

    def __post_init__(self) -> None:
        check_address("url", self.url, self.plain_http is True)
        if self.key:
            check_key(self.key, "WEIR_KEY_NAME", self.url)
        check_choice("scheme", self.scheme, SCHEMES)
        check_choice("query", self.query, QUERIES)
        check_on_failure("elasticsearch", self.on_failure)
        check_text("analyzer", self.analyzer)
        if not (isinstance(self.prefix, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]*", self.prefix)):
            raise BadValue(f"prefix is {self.prefix!r}; expected small letters, digits and dashes")
        check_whole("concurrency", self.concurrency, 1, 256)
        check_whole("batch", self.batch, 1, 1000)
        check_number("tie_breaker", self.tie_breaker, 1.0)
        check_number("timeout_s", self.timeout_s, 1e6)
        if not isinstance(self.settings, Mapping):
            raise BadValue(f"settings are {self.settings!r}; expected a table")
        if not self.fields or not all(isinstance(one, str) for one in self.fields):
            raise BadValue(
                f"fields are {list(self.fields)!r}; expected names of fields, such as title and text"
            )
        for one in self.names:
            check_view(one)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields without their weights."""
        return tuple(one.partition("^")[0] for one in self.fields)

    def index_facts(self) -> dict[str, object]:
        """What decides the index."""
        return {"fields": list(self.names), "analyzer": self.analyzer, "settings": dict(self.settings)}

    def search_facts(self) -> dict[str, object]:
        """What decides how it is searched."""
        tie = {} if self.query == "bool" else {"tie_breaker": self.tie_breaker}
        return {"query": self.query, "fields": list(self.fields), **tie, "on_failure": self.on_failure}

    def body(self, text: str, k: int) -> dict[str, Any]:
        """One search, as JSON."""
        if self.query == "bool":
            weighted = [one.partition("^") for one in self.fields]
            matches = [
                {"match": {name: {"query": text} | ({"boost": float(weight)} if weight else {})}}
                for name, _, weight in weighted
            ]
            query: dict[str, Any] = {"bool": {"should": matches}}
        else:
            asked = {"query": text, "type": self.query, "fields": list(self.fields)}
            query = {"multi_match": asked | {"tie_breaker": self.tie_breaker}}
        return {"query": query, "size": k, "_source": False, "track_total_hits": False}


def read_elastic_settings(path: Path) -> ElasticSettings:
    """The settings in a TOML file; raises FormatError and UnknownName for what it says."""
    given = read_toml(path, "the settings of an Elasticsearch server, see docs/servers.md")
    if isinstance(given.get("fields"), list):
        given["fields"] = tuple(given["fields"])
    if "url" not in given:
        raise FormatError(path, "no url", "the address of the server")
    return settings_value(ElasticSettings, path, "the file", given)
