"""Rules that forbid, date or supersede documents, and measures of their breaches.

They stand in `document-rules.tsv` beside the judgments.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import counted
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int32, Int64
from weir.core.tables import Table, sentences, table_of
from weir.errors import BadValue, FormatError
from weir.files.beside import RULES_FILE
from weir.files.frames import qrels_from
from weir.files.paths import path_of
from weir.files.text_files import read_text
from weir.measures.measure import measure
from weir.stats.score_rows import never_note

HEAD = ("rule", "document", "for", "value")
EVERYONE = "*"
KINDS = ("query", "user", "group")
"""Kinds of users of a forbidden document, written before a colon and a name."""
ASKERS = f"'{EVERYONE}', or one of {', '.join(f'{kind}:NAME' for kind in KINDS)}"

# ----------
# Rules, and their join with a run.


@dataclass(frozen=True, eq=False)
class JoinedRules:
    """The ranked documents that rules name, and the rules that each breaks, sorted by query, then rank."""

    query: Int32
    """int32[n], numbered as the judged queries."""
    rank: Int64
    """int64[n], from 1."""
    forbidden: NDArray[np.bool_]
    """bool[n]: the document is forbidden for the query."""
    stale: NDArray[np.bool_]
    """bool[n]: the query was asked before or after the document was valid."""
    superseded: NDArray[np.bool_]
    """bool[n]: the document is superseded, and no document that supersedes it is ranked above it."""
    doc: Int32
    """int32[n]: codes into the documents of the run."""


@dataclass(frozen=True, eq=False)
class DocumentRules:
    """Rules by which documents are forbidden, stale or superseded."""

    docs: Ids
    """The D documents that rules name."""
    forbidden: Mapping[str, Int32]
    """Documents forbidden for everyone ("*"), a query, user or group, by names such as "group:sales"."""
    begin: Float64
    """float64[D], in seconds since 1970: when each becomes valid; -inf for always."""
    end: Float64
    """float64[D], in seconds since 1970: when it is no longer valid; inf for never."""
    newer: Int32
    """int32[D]: the document that supersedes each; -1 for none."""
    asked: Mapping[str, float]
    """When each query was asked, in seconds since 1970, by its identifier or "*"."""
    belongs: Mapping[str, tuple[str, ...]]
    """Users and groups of each query."""
    digest: str
    """Hash of the file."""

    @property
    def queries(self) -> Ids:
        barred = [name.removeprefix("query:") for name in self.forbidden if name.startswith("query:")]
        return Ids.of(
            dict.fromkeys((*barred, *(one for one in self.asked if one != EVERYONE), *self.belongs))
        )

    def join(self, run: Run, queries: Ids) -> JoinedRules:
        run.refuse_nameless()
        of_doc = np.full(len(run.docs), -1, np.int32)
        codes = run.docs.codes(self.docs.strings)
        of_doc[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
        query = queries.codes(run.queries.strings)[run.query_of_row()]
        rows = np.flatnonzero((of_doc[run.doc] >= 0) & (query >= 0))
        rows = rows[np.argsort(query[rows], kind="stable")]
        query, rank, rule = query[rows], run.ranks()[rows], of_doc[run.doc[rows]]
        times = np.array([self.asked.get(name, self.asked.get(EVERYONE, np.nan)) for name in queries])
        with np.errstate(invalid="ignore"):  # without a time of the query no rule says when
            stale = (times[query] < self.begin[rule]) | (times[query] >= self.end[rule])
        superseded = self._above_successors(query, rank, rule)
        return JoinedRules(
            query, rank, self._forbidden(queries, query, rule), stale, superseded, run.doc[rows]
        )

    def _forbidden(self, queries: Ids, query: Int32, rule: Int32) -> NDArray[np.bool_]:
        width = max(len(self.docs), 1)
        barred = [
            number * width + self.forbidden[name].astype(np.int64)
            for number, asked in enumerate(queries)
            for name in (EVERYONE, f"query:{asked}", *self.belongs.get(asked, ()))
            if name in self.forbidden
        ]
        if not barred:
            return np.zeros(len(rule), np.bool_)
        return np.isin(query.astype(np.int64) * width + rule, np.concatenate(barred))

    def _above_successors(self, query: Int32, rank: Int64, rule: Int32) -> NDArray[np.bool_]:
        width = max(len(self.docs), 1)
        key = query.astype(np.int64) * width + rule
        order = np.argsort(key)
        highest = np.full(len(rule), np.iinfo(np.int64).max)
        newer = self.newer[rule]
        while (newer >= 0).any():  # along chains: the successor of a successor is newer, too
            wanted = np.where(newer >= 0, query.astype(np.int64) * width + newer, -1)
            row = np.append(order, -1)[np.searchsorted(key, wanted, sorter=order)]
            found = (row >= 0) & (np.append(key, -2)[row] == wanted)
            highest[found] = np.minimum(highest[found], rank[row[found]])
            newer = np.where(newer >= 0, self.newer[newer], -1)
        return (self.newer[rule] >= 0) & (rank < highest)


# ----------
# The file.


@dataclass(frozen=True)
class _Row:
    line: int
    rule: str
    document: str
    asker: str
    value: str


@checked
def with_document_rules(qrels: object, path: str | Path) -> Qrels:
    """Return judgments with a file's rules, which replace those in the judgments' folder.

    qrels: judgments as `weir.evaluate` takes them.
    path: a file such as document-rules.tsv.

    Raises FormatError, with the line, for an invalid or contradictory rule.
    """
    judgments = qrels_from(qrels)
    return replace(judgments, beside=read_document_rules(path_of(path), judgments))


def read_document_rules(path: Path, qrels: Qrels) -> DocumentRules:
    """Return the rules in a tab-separated file with the header `rule document for value`.

    A line has one of these rules:
        forbidden: the document, for a query, user, group or everyone
        superseded: the document, by the one in `value`
        valid-from, valid-until: the document, a date or time
        asked: when a query was asked, or all were
        is: a query's user or group

    Raises FormatError, with the line, for other or contradictory rules, for a user or group without a query,
    and for a judged query without a time if documents have dates.
    """
    text = read_text(path)
    rows = _rows(path, text)
    names = dict.fromkeys(row.document for row in rows if row.document)
    names |= dict.fromkeys(row.value for row in rows if row.rule == "superseded")
    number = {name: n for n, name in enumerate(names)}
    begin, end = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    newer = np.full(len(names), -1, np.int32)
    forbidden, belongs = defaultdict[str, list[int]](list), defaultdict[str, list[str]](list)
    asked, said = dict[str, float](), dict[tuple[str, str], int]()
    for row in rows:
        code = number.get(row.document, -1)
        once = (row.rule, row.document or row.asker)
        if row.rule not in ("forbidden", "is") and said.setdefault(once, row.line) != row.line:
            raise FormatError(
                path, f"{row.rule} of '{once[1]}' again", f"it once (line {said[once]})", row.line
            )
        match row.rule:
            case "forbidden":
                forbidden[row.asker].append(code)
            case "superseded":
                newer[code] = number[row.value]
            case "valid-from":
                begin[code] = _second(path, row)
            case "valid-until":
                end[code] = _second(path, row, after=True)
            case "asked":
                asked[row.asker.removeprefix("query:")] = _second(path, row)
            case _:
                belongs[row.asker.removeprefix("query:")].append(row.value)
    _check(path, rows, qrels, asked, belongs)
    for row in rows:
        code = number.get(row.document, -1)
        if row.rule.startswith("valid") and not begin[code] < end[code]:
            raise FormatError(path, f"'{row.document}' valid from after until", "a time in between", row.line)
        steps, at = 0, code
        while row.rule == "superseded" and at >= 0:
            at, steps = int(newer[at]), steps + 1
            if steps > len(names):
                raise FormatError(
                    path, f"'{row.document}' superseded by itself", "another document", row.line
                )
    return DocumentRules(
        Ids.of(names),
        {name: np.array(codes, np.int32) for name, codes in forbidden.items()},
        *(begin, end, newer, asked),
        {query: tuple(of) for query, of in belongs.items()},
        hashlib.sha256(text.encode()).hexdigest()[:32],
    )


def _rows(path: Path, text: str) -> list[_Row]:
    rows, head = list[_Row](), False
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        cells = [cell.strip() for cell in line.rstrip("\r").split("\t")]
        if cells == [""] or line.startswith("#"):
            continue
        if not head:
            if tuple(cells) != HEAD:
                raise FormatError(path, f"'{line[:80]}'", f"the header {' '.join(HEAD)} between tabs", number)
            head = True
            continue
        rows.append(_row(path, number, line, cells))
    if not rows:
        raise FormatError(path, "no rule", f"the header {' '.join(HEAD)} and a rule on each line")
    return rows


def _row(path: Path, number: int, line: str, cells: list[str]) -> _Row:
    if len(cells) > len(HEAD):
        raise FormatError(path, f"'{line[:80]}'", f"{len(HEAD)} columns between tabs", number)
    rule, document, asker, value = [*cells, "", "", ""][: len(HEAD)]
    kind, colon, name = asker.partition(":")
    is_asker = asker == EVERYONE or (bool(colon) and bool(name) and kind in KINDS)
    of_query = kind == "query" and is_asker
    shape: Mapping[str, tuple[bool, str]] = {
        "forbidden": (bool(document) and is_asker and not value, f"a document, and for: {ASKERS}"),
        "superseded": (bool(document and value) and not asker, "a document, and as value another one"),
        "valid-from": (bool(document and value) and not asker, "a document, and as value a date"),
        "valid-until": (bool(document and value) and not asker, "a document, and as value a date"),
        "asked": (not document and (of_query or asker == EVERYONE) and bool(value),
                  f"for: query:NAME or '{EVERYONE}', and as value a date"),
        "is": (not document and of_query and value.partition(":")[0] in KINDS[1:] and bool(value.partition(":")[2]),
               "for: query:NAME, and as value user:NAME or group:NAME"),
    }  # fmt: skip
    if rule not in shape:
        raise FormatError(path, f"the rule '{rule[:40]}'", f"one of {', '.join(shape)}", number)
    fits, expected = shape[rule]
    if not fits:
        raise FormatError(path, f"'{line[:80]}'", f"{rule} with {expected}", number)
    return _Row(number, rule, document, asker, value)


def _second(path: Path, row: _Row, after: bool = False) -> float:
    """Return a date or time in seconds since 1970, in UTC if without a zone; raises FormatError for other
    text.

    after: return the end of the day, or a microsecond after a time.
    """
    try:
        time = datetime.fromisoformat(row.value)
    except ValueError:
        raise FormatError(
            path, f"'{row.value[:40]}'", "a date such as 2026-11-30, or 2026-11-30T09:00", row.line
        ) from None
    whole_day = len(row.value) <= len("2026-11-30")
    if after:
        time += timedelta(days=1) if whole_day else timedelta(microseconds=1)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _check(
    path: Path,
    rows: list[_Row],
    qrels: Qrels,
    asked: Mapping[str, float],
    belongs: Mapping[str, list[str]],
) -> None:
    known = {name for names in belongs.values() for name in names}
    for row in rows:
        if row.rule == "forbidden" and row.asker.startswith(("user:", "group:")) and row.asker not in known:
            expected = f"a row 'is', which says for which queries: query:NAME, {row.asker}"
            raise FormatError(path, f"'{row.asker}', of which no query is", expected, row.line)
        if row.rule.startswith("valid") and EVERYONE not in asked:
            lacking = next((name for name in qrels.queries if name not in asked), None)
            if lacking is not None:
                found = f"{row.rule}, and query '{lacking}' without a time"
                raise FormatError(path, found, f"a row 'asked' for it, or for '{EVERYONE}'", row.line)


# ----------
# Which documents break them.


@dataclass(frozen=True)
class Breach:
    """A document among a query's first k that breaks a rule."""

    query: str
    document: str
    rank: int
    rule: str
    """forbidden, stale or superseded; as the measures Leak, Stale and Superseded have it."""


@dataclass(frozen=True)
class RuleBreaches:
    """The documents among a system's first k that break a rule."""

    dataset: str
    system: str
    k: int
    queries: int
    """Number of judged queries."""
    breaches: tuple[Breach, ...]
    """By rule, then query, then rank."""


RULES = {"forbidden": "Leak", "stale": "Stale", "superseded": "Superseded"}
"""The measure of each rule."""
SHOWN_BREACHES = 10


def breaches_of(run: Run, qrels: Qrels, k: int) -> tuple[Breach, ...]:
    """Return the documents among the first k of judged queries that break a rule, by rule, query and rank.

    Raises BadValue if the judgments have no rules.
    """
    first = run.top(k)
    rules, docs, found = _rules_of(Judged.of(first, qrels)), first.docs, list[Breach]()
    for rule in RULES:
        rows = np.flatnonzero(getattr(rules, rule) & (rules.rank <= k))
        names = qrels.queries.take(rules.query[rows]).tolist(), docs.take(rules.doc[rows]).tolist()
        found += [Breach(*of, rule) for of in zip(*names, rules.rank[rows].tolist(), strict=True)]
    return tuple(found)


def breach_tables(found: Sequence[RuleBreaches]) -> tuple[Table, ...]:
    """Return a table of breaches, if any, and a sentence for each system and rule with a bound on their rate."""
    lines, rows = list[str](), [["system", "rule", "query", "document", "rank"]]
    for one in found:
        for rule, name in RULES.items():
            broken = {each.query for each in one.breaches if each.rule == rule}
            lines.append(f"{one.system}: {never_note(f'{name}@{one.k}', len(broken), one.queries)}")
        shown = one.breaches[:SHOWN_BREACHES]
        rows += [[one.system, each.rule, each.query, each.document, str(each.rank)] for each in shown]
        if more := len(one.breaches) - len(shown):
            lines.append(f"{one.system}: {counted(more, 'further document')} not shown; JSON has all")
    return (*([table_of(rows, right=1, keys=4)] if len(rows) > 1 else []), sentences(*lines))


RULE_BREACHES = ResultKind(
    "rule breaches", RuleBreaches, breach_tables, parts="breaches",
    outcome=lambda one: "fail" if one.breaches else "pass",
)  # fmt: skip


# ----------
# Measures.


def _rules_of(j: Judged) -> JoinedRules:
    if not isinstance(j.beside, JoinedRules):
        raise BadValue(
            f"no rules of documents stand beside these judgments; expected {RULES_FILE} in their folder "
            "(docs/questions.md)"
        )
    return j.beside


def _any(j: Judged, k: int | None, which: Callable[[JoinedRules], NDArray[np.bool_]]) -> Float64:
    rules = _rules_of(j)
    rows = which(rules) & (True if k is None else rules.rank <= k)
    return (np.bincount(rules.query[rows], minlength=len(j)) > 0).astype(np.float64)


@measure("Leak", of="rules", better="less", never=True)
def Leak(j: Judged, *, k: int | None = None) -> Float64:
    """1 if a document within the first k is forbidden for the query, its user or a group of it, else 0.

    Forbidden documents stand in document-rules.tsv beside the judgments (docs/questions.md). Source: Weir.
    """
    return _any(j, k, lambda rules: rules.forbidden)


@measure("Stale", of="rules", better="less", never=True)
def Stale(j: Judged, *, k: int | None = None) -> Float64:
    """1 if a document within the first k was not valid when the query was asked, else 0.

    Dates, whose last day is valid, stand in document-rules.tsv beside the judgments (docs/questions.md).
    Source: Weir.
    """
    return _any(j, k, lambda rules: rules.stale)


@measure("Superseded", of="rules", better="less", never=True)
def Superseded(j: Judged, *, k: int | None = None) -> Float64:
    """1 if a superseded document is among the first k and no document that supersedes it stands above it, else 0.

    Successors stand in document-rules.tsv beside the judgments (docs/questions.md); chains are followed. Source: Weir.
    """
    return _any(j, k, lambda rules: rules.superseded)
