"""A collection of Solr: fields, analyzers and explanations of scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from urllib.parse import quote

from weir.errors import BadValue, ServiceError
from weir.plugins.servers.live_index import (
    Explanation,
    Json,
    QueryShape,
    SearchChange,
    Words,
    explanation_of,
    words_of,
)
from weir.values import dataclass

SHAPE = ("defType", "qf", "df", "tie")
"""Parameters that `QueryShape` holds in fields of its own."""
NEUTRAL = ("q", "q.op", "rows", "start", "fl", "wt", "json", "rid", "echoParams", "indent")
"""Parameters that do not change which documents match or their scores."""
_CLASS = re.compile(r"^(?:.*\.)?(.*?)(?:FilterFactory|TokenizerFactory|Factory)?$")


@dataclass(frozen=True)
class SolrLiveIndex:
    """A collection on a Solr server, whose fields, analyzers and scores `weir why` explains."""

    name: str
    ask: Callable[[str, Json], Json]
    """(path after the collection's name, body or None for GET) -> the answer; raises ServiceError."""
    body: Callable[[str, int], Json]
    """(text, k) -> the body of a search."""

    @cached_property
    def schema(self) -> Mapping[str, Json]:
        """The schema of the collection, requested once."""
        return self.ask("/schema?wt=json", None)["schema"]  # type: ignore[no-any-return]  # JSON

    @cached_property
    def parameters(self) -> Mapping[str, Json]:
        """The parameters of a search with the server's defaults, requested once."""
        answer = self.ask("/query", self.changed(self.body("words", 1), {"echoParams": "all"}))
        return answer["responseHeader"]["params"]  # type: ignore[no-any-return]  # JSON

    @cached_property
    def shape(self) -> QueryShape:
        """The fields that a search matches; raises BadValue unless its parser is dismax or edismax."""
        given = self.parameters
        if given.get("defType") not in ("dismax", "edismax"):
            raise BadValue(
                f"{self.name}: the parser is {given.get('defType', 'lucene')}; dismax and edismax name their fields"
            )
        fields = []
        for one in str(given.get("qf", given.get("df", ""))).split():
            name, _, weight = one.partition("^")
            fields.append((name, float(weight or 1)))
        tie = float(given.get("tie", 0))
        adding = "of each word the best field" + (f", and {tie:g} of the others" if tie else "")
        adding = "one field" if len(fields) == 1 else "added" if tie == 1 else adding
        options = {name: str(value) for name, value in given.items() if name not in (*SHAPE, *NEUTRAL)}
        if given.get("q.op") == "AND":
            options["q.op"] = "AND"
        preset = "elastic" if len(fields) == 1 else "lucene-multifield"
        return QueryShape(tuple(fields), adding, None, tuple(options.items()), preset)

    @property
    def statistics(self) -> str:
        """Always "", although each shard counts its own document frequencies."""
        return ""

    def changes(self) -> Iterator[SearchChange]:
        """Yield changes of the search: scores of fields added, no field weights, or one option of the body
        fewer."""
        shape = self.shape
        if len(shape.fields) > 1 and shape.adding != "added":
            yield SearchChange("tie = 1: scores of fields added", {"tie": "1"}, True)
        if any(weight != 1 for _, weight in shape.fields):
            yield SearchChange("fields without weights", {"qf": " ".join(name for name, _ in shape.fields)})
        own = self.body("words", 1).get("params", {})
        for name, value in shape.options:
            if name in own:
                yield SearchChange(f"without {name} = {value}", {name: None})

    def changed(self, body: Json, entries: Mapping[str, Json]) -> Json:
        parameters = {**body.get("params", {}), **entries}
        return {**body, "params": {name: value for name, value in parameters.items() if value is not None}}

    def _type(self, field: str) -> Mapping[str, Json]:
        schema = self.schema
        named = {one["name"]: one["type"] for one in schema.get("fields", [])}
        patterns = [one for one in schema.get("dynamicFields", []) if fnmatchcase(field, one["name"])]
        longest = max(patterns, key=lambda one: len(one["name"]), default={"type": ""})
        kind = named.get(field, longest["type"])
        return self._kind(kind)

    def _kind(self, name: str) -> Mapping[str, Json]:
        return next((one for one in self.schema.get("fieldTypes", []) if one["name"] == name), {"name": name})

    def analyzer(self, field: str, search: bool) -> str:
        """Return a field's type, with :query (`search`) or :index if these differ; "" for a field without
        words."""
        kind = self._type(field)
        if "analyzer" in kind:
            return str(kind["name"])
        sides = ("queryAnalyzer", "query") if search else ("indexAnalyzer", "index")
        return f"{kind['name']}:{sides[1]}" if sides[0] in kind else ""

    def analyzer_text(self, name: str) -> str:
        kind, _, side = name.partition(":")
        parts = self._kind(kind).get(f"{side}Analyzer" if side else "analyzer")
        if not isinstance(parts, dict):
            return name
        steps = [
            *parts.get("charFilters", []),
            *filter(None, [parts.get("tokenizer")]),
            *parts.get("filters", []),
        ]
        names = [_CLASS.sub(r"\1", str(one.get("class", one.get("name", "")))) for one in steps]
        return f"{kind} ({', '.join(names or [str(parts.get('class', 'not known'))])})"

    def similarity(self, field: str) -> str:
        own = self._type(field).get("similarity", self.schema.get("similarity", {}))
        name = _CLASS.sub(r"\1", str(own.get("class", "default"))).removesuffix("Similarity")
        return "default" if name == "Schema" else name

    def analysed(self, analyzer: str, text: str) -> Words:
        kind = quote(analyzer.partition(":")[0], safe="")
        asked = f"analysis.fieldtype={kind}&analysis.query={quote(text, safe='')}&wt=json"
        types: dict[str, Json] = self.ask(f"/analysis/field?{asked}", None)["analysis"]["field_types"]
        [stages] = types.values()
        return words_of(text, [(one["start"], one["end"], one["text"]) for one in stages["query"][-1]])

    def hits(self, body: Json) -> list[tuple[str, float]]:
        answer, key = self.ask("/query", body), self.schema.get("uniqueKey", "id")
        try:
            return [(str(hit[key]), float(hit["score"])) for hit in answer["response"]["docs"]]
        except (KeyError, TypeError, ValueError):
            raise ServiceError(
                f"{self.name}: the answer to a search has no hits with {key} and scores"
            ) from None

    def explained(self, body: Json, document: str) -> Explanation | None:
        escaped = document.replace("\\", "\\\\").replace('"', '\\"')
        other = {"debug": "results", "debug.explain.structured": "true",
                 "explainOther": f'{self.schema.get("uniqueKey", "id")}:"{escaped}"'}  # fmt: skip
        answer = self.ask("/query", {**self.changed(body, other), "limit": 0})
        tree = answer.get("debug", {}).get("explainOther", {}).get(document)
        return explanation_of(tree) if isinstance(tree, dict) and tree.get("match") else None
