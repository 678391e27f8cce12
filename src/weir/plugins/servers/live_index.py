"""An index of Elasticsearch or OpenSearch: fields, analyzers and explanations of scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import quote

from weir.errors import BadValue, ServiceError

if TYPE_CHECKING:
    from weir.core.corpus import Corpus

Json: TypeAlias = Any
Words: TypeAlias = tuple[tuple[str, str], ...]
"""(word as written, its term) for each word of a text; the term is "" for a word that the analyzer drops."""

SEARCHED_TYPES = ("text", "keyword", "match_only_text", "search_as_you_type", "annotated_text")
MATCH_KEYS = ("query", "fields", "type", "tie_breaker")
"""Entries of a multi_match that `QueryShape` holds in fields of its own."""
COMPOUNDS = ("bool", "should", "must", "multi_match", "match")
"""Parts of a query that are understood; anything else becomes an option."""
_WEIGHT = re.compile(r"weight\((?:Synonym\()?([^:]+):(.*?)\)? in \d+\)")


@dataclass(frozen=True)
class QueryShape:
    """The fields that a server's search matches, and how their scores combine."""

    fields: tuple[tuple[str, float], ...]
    """(field, weight)."""
    adding: str
    """How the fields' scores become one, in words."""
    tie_breaker: float | None
    """None unless the query is a multi_match of type best_fields."""
    options: tuple[tuple[str, str], ...]
    """(name, value) of all other entries."""
    preset: str
    """The preset of bm25 that combines fields as this search does, or as its change with `as_bm25` does."""


@dataclass(frozen=True)
class SearchChange:
    """A change of a server's search, which `weir why` tries."""

    text: str
    entries: Mapping[str, Json]
    """Entries to set; None removes one."""
    as_bm25: bool = False
    """True if fields are then combined as bm25's preset combines them."""


@dataclass(frozen=True)
class Explanation:
    """The server's score of a document, split by field and term."""

    score: float
    counting: str
    """In words, which of several fields counts; "" for all."""
    terms: tuple[tuple[str, str, float], ...]
    """(field, term, score) of each matching term."""
    constants: Mapping[str, Mapping[str, float]]
    """Field -> BM25's `k1`, `b`, `boost` and `N`, if the explanation has them."""


class LiveIndex(Protocol):
    """An index on a server that analyses texts and explains scores."""

    @property
    def body(self) -> Callable[[str, int], Json]:
        """The function (text, k) -> body of a search."""

    @property
    def shape(self) -> QueryShape:
        """The fields of a search, and how their scores combine."""

    @property
    def statistics(self) -> str:
        """The part of the index over which document frequencies are counted; "" for the whole."""

    def analyzer(self, field: str, search: bool) -> str:
        """Return the name of a field's analyzer, for queries if `search`, else for documents; "" for a field
        without words."""

    def analyzer_text(self, name: str) -> str:
        """Return an analyzer's name, tokenizer and filters, for display."""

    def similarity(self, field: str) -> str:
        """Return the similarity of a field; "BM25" or "default" is BM25."""

    def analysed(self, analyzer: str, text: str) -> Words:
        """Return (word, its terms joined by "+") of each word in a text."""

    def changes(self) -> Iterator[SearchChange]:
        """Yield changes of the search: another tie breaker, scores of fields added, no field weights, or one
        option fewer.

        Nothing for a search without fields, with scores already added, or of an unknown kind.
        """

    def changed(self, body: Json, entries: Mapping[str, Json]) -> Json:
        """Return the body of a search with these entries set; None removes an entry."""

    def hits(self, body: Json) -> list[tuple[str, float]]:
        """Return (document, score) of a search's hits, best first; raises ServiceError for an answer without
        hits."""

    def explained(self, body: Json, document: str) -> Explanation | None:
        """Return the parts of a document's score in a search; None if it does not match, or the body has no
        query."""


@runtime_checkable
class LiveIndexed(Protocol):
    """A system whose server can explain scores."""

    def live_index(self, corpus: Corpus) -> LiveIndex:
        """Return the server's index of a corpus; raises BadValue for vectors, or a server that explains no
        scores."""


BEST_FIELDS_TIE = 0.5
"""The tie breaker of BEIR's baseline and of bm25("elastic")."""


@dataclass(frozen=True)
class ElasticLiveIndex:
    """An index of Elasticsearch or OpenSearch, whose fields, analyzers and scores `weir why` explains."""

    name: str
    ask: Callable[[str, Json], Json]
    """(path after the index's name, body or None for GET) -> the answer; raises ServiceError."""
    search: str
    """The path of a search after the index's name."""
    body: Callable[[str, int], Json]
    """(text, k) -> the body of a search."""

    @cached_property
    def described(self) -> Mapping[str, Json]:
        """The mappings and settings of the index; raises BadValue unless its name matches exactly one."""
        answer = self.ask("", None)
        if not isinstance(answer, dict) or len(answer) != 1:
            names = ", ".join(sorted(answer)) if isinstance(answer, dict) else "no index"
            raise BadValue(f"{self.name} stands for {names}; name one index of Elasticsearch or OpenSearch")
        [described] = answer.values()
        return described  # type: ignore[no-any-return]  # JSON

    @cached_property
    def fields(self) -> Mapping[str, Mapping[str, Json]]:
        """{field: mapping} of the fields with text; nested fields have dotted names."""
        return dict(_fields(self.described["mappings"].get("properties", {}), ""))

    @cached_property
    def shape(self) -> QueryShape:
        return _shape(self.body("words", 1), list(self.fields))

    def setting(self, name: str) -> Json:
        """Return a setting by its dotted name; None without it."""
        value: Json = self.described["settings"].get("index", {})
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value

    @property
    def statistics(self) -> str:
        shards = str(self.setting("number_of_shards") or 1)
        own = shards != "1" and "dfs_query_then_fetch" not in self.search
        return f"of each of {shards} shards" if own else ""

    def similarity(self, field: str) -> str:
        similarity = self.fields.get(field, {}).get("similarity", "default")
        return str(self.setting(f"similarity.{similarity}.type") or similarity)

    def changes(self) -> Iterator[SearchChange]:
        shape = self.shape
        if shape.adding in {"not known", "added"} or not shape.fields:
            return
        several = len(shape.fields) > 1
        if several and shape.tie_breaker != BEST_FIELDS_TIE:
            entries: dict[str, Json] = {"type": "best_fields", "tie_breaker": BEST_FIELDS_TIE}
            yield SearchChange(f"tie_breaker = {BEST_FIELDS_TIE:g}, as BEIR's baseline", entries, True)
        if several:
            added = {"type": "most_fields", "tie_breaker": None}
            yield SearchChange("most_fields: scores of fields added", added)
        if any(weight != 1 for _, weight in shape.fields):
            yield SearchChange("fields without weights", {"fields": [name for name, _ in shape.fields]})
        for name, value in shape.options:
            if value not in ("in the body", "in the query"):
                yield SearchChange(f"without {name} = {value}", {name: None})

    def changed(self, body: Json, entries: Mapping[str, Json]) -> Json:
        return _with_match(body, entries)

    def analyzer(self, field: str, search: bool) -> str:
        mapping = self.fields.get(field, {})
        if mapping.get("type") == "keyword":
            return ""
        own = [str(mapping["analyzer"])] if "analyzer" in mapping else []
        if search:
            asked = [value for name, value in self.shape.options if name == "analyzer"]
            asked += [str(mapping["search_analyzer"])] if "search_analyzer" in mapping else []
            asked += ["default_search"] if self.setting("analysis.analyzer.default_search") else []
            own = asked + own
        return (own or ["default" if self.setting("analysis.analyzer.default") else "standard"])[0]

    def analyzer_text(self, name: str) -> str:
        defined = self.setting(f"analysis.analyzer.{name}")
        if not isinstance(defined, dict):
            return name
        parts = []
        for key in ("type", "char_filter", "tokenizer", "filter", "stopwords", "language"):
            value = defined.get(key)
            if value is not None and (key, value) != ("type", "custom"):
                parts.append(", ".join(value) if isinstance(value, list) else str(value))
        return f"{name} ({', '.join(parts)})"

    def analysed(self, analyzer: str, text: str) -> Words:
        tokens = self.ask("/_analyze", {"analyzer": analyzer, "text": text}).get("tokens", [])
        return words_of(text, [(one["start_offset"], one["end_offset"], one["token"]) for one in tokens])

    def hits(self, body: Json) -> list[tuple[str, float]]:
        answer = self.ask(self.search, body)
        try:
            return [(hit["_id"], float(hit["_score"])) for hit in answer["hits"]["hits"]]
        except (KeyError, TypeError, ValueError):
            raise ServiceError(f"{self.name}: the answer to a search has no hits with scores") from None

    def explained(self, body: Json, document: str) -> Explanation | None:
        if "query" not in body:
            return None
        answer = self.ask(f"/_explain/{quote(document, safe='')}", {"query": body["query"]})
        tree = answer.get("explanation")
        return explanation_of(tree) if answer.get("matched") and isinstance(tree, dict) else None


def words_of(text: str, tokens: Sequence[tuple[int, int, str]]) -> Words:
    """Return (word, its terms joined by "+") of each word in a text, by a server's tokens.

    tokens: (start, end, term), with offsets in UTF-16 code units.
    """
    units = text.encode("utf-16-le", "surrogatepass")
    terms: dict[tuple[int, int], list[str]] = {}
    for start, end, term in tokens:
        terms.setdefault((start, end), []).append(term)
    return tuple(
        (units[2 * a : 2 * b].decode("utf-16-le", "replace"), "+".join(at)) for (a, b), at in terms.items()
    )


def _fields(properties: Mapping[str, Json], within: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    for name, mapping in properties.items():
        if mapping.get("type") in SEARCHED_TYPES:
            yield within + name, mapping
        yield from _fields(mapping.get("fields", {}), f"{within}{name}.")
        yield from _fields(mapping.get("properties", {}), f"{within}{name}.")


def _clauses(tree: Json, name: str) -> Iterator[Mapping[str, Json]]:
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _clauses(part, name)
    if isinstance(tree, dict) and isinstance(tree.get(name), dict):
        yield tree[name]


def _with_match(tree: Json, changed: Mapping[str, Json]) -> Json:
    if isinstance(tree, list):
        return [_with_match(part, changed) for part in tree]
    if not isinstance(tree, dict):
        return tree
    parts = {name: _with_match(part, changed) for name, part in tree.items()}
    if isinstance(parts.get("multi_match"), dict):
        clause = {**parts["multi_match"], **changed}
        parts["multi_match"] = {name: value for name, value in clause.items() if value is not None}
    return parts


def _shape(body: Json, names: list[str]) -> QueryShape:
    query = body.get("query", {})
    options = {name: "in the body" for name in body if name in ("knn", "rescore", "sort", "min_score")}
    options |= {name: "in the query" for name in query if name not in COMPOUNDS}
    for clause in _clauses(query, "bool"):
        options |= {f"bool.{name}": "in the query" for name in clause if name not in COMPOUNDS}
    for clause in _clauses(query, "multi_match"):
        given = clause.get("fields", ["*"])
        weighted = _weighted([given] if isinstance(given, str) else given, names)
        kind, tie = clause.get("type", "best_fields"), float(clause.get("tie_breaker", 0.0))
        options |= {name: str(value) for name, value in clause.items() if name not in MATCH_KEYS}
        best = f"the best field, and {tie:g} of the others" if tie else "the best field alone"
        adding = str({"best_fields": best, "most_fields": "added"}.get(kind, kind))
        tie_breaker = tie if kind == "best_fields" else None
        adding = adding if len(weighted) > 1 else "one field"
        return QueryShape(weighted, adding, tie_breaker, tuple(options.items()), _preset(adding))
    matched: list[tuple[str, float]] = []
    for clause in _clauses(query, "match"):
        for name, value in clause.items():
            entries = value if isinstance(value, dict) else {}
            matched.append((name, float(entries.get("boost", 1.0))))
            options |= {key: str(one) for key, one in entries.items() if key not in ("query", "boost")}
    adding = "added" if len(matched) > 1 else "one field" if matched else "not known"
    return QueryShape(tuple(matched), adding, None, tuple(options.items()), _preset(adding))


def _preset(adding: str) -> str:
    return "lucene-multifield" if adding == "added" else "elastic"


def _weighted(patterns: list[str], names: list[str]) -> tuple[tuple[str, float], ...]:
    weights: dict[str, float] = {}
    for one in patterns:
        pattern, _, weight = one.partition("^")
        for name in [pattern] if "*" not in pattern else [n for n in names if fnmatchcase(n, pattern)]:
            weights[name] = float(weight or 1)
    return tuple(weights.items())


def explanation_of(tree: Mapping[str, Json]) -> Explanation:
    """Return a document's score, split by field and term, from Lucene's explanation tree."""
    terms: list[tuple[str, str, float]] = []
    constants: dict[str, dict[str, float]] = {}
    largest = False

    def walk(node: Mapping[str, Json], within: str) -> None:
        nonlocal largest
        description, value = str(node.get("description", "")), float(node.get("value", 0.0))
        largest = largest or description.startswith("max of")
        match = _WEIGHT.match(description)
        if match:
            within = match[1]
            terms.append((match[1], match[2], value))
        name = description.partition(",")[0]
        if within and name in ("k1", "b", "boost", "N"):
            numbers = constants.setdefault(within, {})  # a word that a query has twice has twice the boost
            numbers[name] = min(value, numbers.get(name, value))
        for part in node.get("details", []):
            walk(part, within)

    walk(tree, "")
    whole = str(tree.get("description", "")).startswith("max of")
    counting = f"of {'which' if whole else 'each word'} the largest alone counts" if largest else ""
    return Explanation(float(tree["value"]), counting, tuple(terms), constants)
