"""Origins of scores (collection, judgments, depth), and reasons why two scores must not be compared."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from itertools import combinations
from typing import Any, Protocol

from weir.core.qrels import Qrels
from weir.errors import BadValue

_MARK_DIGITS = 8  # hexadecimal
_NAMED = 3  # queries of a sentence


class Grades(Protocol):
    """Judgments of any kind; scores compare only if theirs are equal."""

    def to_dict(self) -> Mapping[str, Mapping[str, Any]]:
        """Return {query: {document: grade}}, or {query: {intent: {document: grade}}}."""


@dataclass(frozen=True, eq=False)
class Origin:
    """The origin of scores; unknown facts are "" or None."""

    judgments: Grades | None = None
    """Judgments that the scores were computed from."""
    digest: str = ""
    """Hash of the judgments, as stored with results."""
    saved: Mapping[str, str] = field(default_factory=dict)
    """{query: hash of its judgments}, if read from a file."""
    collection: str = ""
    split: str = ""
    system: str = ""
    depth: int | None = None
    """Most documents returned for a query."""
    texts: str = ""
    """Fingerprints of the documents and of the queries with what may be ranked for them."""
    algorithms: Mapping[str, str] = field(default_factory=dict)
    """{measure: number of the algorithm that computed it}; empty if not known."""
    whole: bool = False
    """True if every document judged relevant is in its query's ranking, so that longer rankings gain nothing."""
    uncounted: bool = False
    """True if means over datasets leave the dataset out: an older version, or another has its queries and judgments."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all judgments; "" if unknown."""
        if self.digest or self.judgments is None:
            return self.digest
        try:
            judged = (
                self.judgments if isinstance(self.judgments, Qrels) else Qrels.of(self.judgments.to_dict())
            )
        except BadValue:  # of intents, or changed since they were used
            return hashlib.sha256(repr(sorted(self.marks.items())).encode()).hexdigest()
        return judged.fingerprint

    @property
    def asked(self) -> str:
        """Hashes of judgments and queries, equal for one collection under any name; "" if unknown."""
        queries = self.texts.split(" ")[-1]
        return f"{self.digest} {queries}" if self.digest and queries not in ("", "None") else ""

    @cached_property
    def marks(self) -> Mapping[str, str]:
        """{query: hash of its judgments}; empty if not known."""
        return self.saved if self.judgments is None else judgment_marks(self.judgments)


def apart(first: Origin, second: Origin, paired: bool = True) -> list[str]:
    """Return reasons why two scores must not be compared, as phrases after "they are"; [] if they may be.

    paired: only shared queries are compared and need equal judgments.
    """
    if first.judgments is not None and first.judgments == second.judgments:
        return []
    if first.digest and first.digest == second.digest:
        return []
    if first.marks and second.marks:
        common = first.marks.keys() & second.marks.keys()
        anew = sorted(q for q in common if first.marks[q] != second.marks[q])
        names = ", ".join(anew[:_NAMED]) + (", ..." if len(anew) > _NAMED else "")
        count = f"{len(anew):,} quer{'y' if len(anew) == 1 else 'ies'}"
        if anew:
            return [f"by other judgments of {count} ({names})"]
        if paired or len(common) == len(first.marks) == len(second.marks):
            return []
    places = [f"{one.collection}:{one.split}" for one in (first, second)]
    if first.collection and second.collection and places[0] != places[1]:
        return [f"of {places[0]} and of {places[1]}"]
    if first.marks and second.marks:
        return ["of other queries"]
    if not (first.fingerprint and second.fingerprint) or first.fingerprint == second.fingerprint:
        return []
    ordered = ", or by the same in another order" if first.marks or second.marks else ""
    return [f"by other judgments{ordered}"]


def counted_once(datasets: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return {dataset: dataset that stands for it in means over datasets}.

    Of datasets with equal queries and judgments it is the one that `asked` names, else the first with most results;
    for an older version the newest, "" if that is absent.

    datasets: (dataset, asked, newer) of each result: hash of its queries and judgments, and of its newer version's,
        or a dataset's name; "" equals no other.
    """
    results, chosen = Counter(datasets), dict[str, tuple[str, str, str]]()

    def weight(one: tuple[str, str, str]) -> tuple[bool, int]:
        return one[0] == one[1], results[one]

    for one in results:
        _, asked, newer = one
        if asked and not newer and weight(one) > weight(chosen.setdefault(asked, one)):
            chosen[asked] = one
    return {
        name: chosen[newer or asked][0] if (newer or asked) in chosen else "" if newer else name
        for name, asked, newer in results
    }


def repeated_notes(datasets: Mapping[str, str], older: Collection[str] = ()) -> list[str]:
    """Return sentences on older versions and on datasets with the same queries and judgments.

    datasets: {dataset: dataset that stands for it, "" if none}.
    older: datasets that are older versions of a collection.
    """
    alike: dict[str, list[str]] = {}
    for name, first in datasets.items():
        alike.setdefault(first, [first] * (first not in datasets)).extend([name] * (name not in older))
    sentences = [
        f"{name} was measured before its documents, queries or judgments changed: over several datasets "
        + (f"{datasets[name]} alone counts" if datasets[name] else "it does not count")
        for name in older
    ]
    for first, names in alike.items():
        shown = names if len(names) <= _NAMED else [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
        if len(names) > 1:
            sentences.append(
                f"{', '.join(shown[:-1])} and {shown[-1]} have the same queries and judgments: over several datasets "
                f"{first} alone counts"
            )
    return sentences


def shared_notes(queries: Mapping[str, Collection[str]]) -> list[str]:
    """Return a sentence if datasets share queries, which a mean over them counts more than once; [] otherwise.

    queries: {dataset: hashes of its queries, each of text and judgments}, as from `query_marks`.
    """
    having = dict[str, list[str]]()
    for name, marks in queries.items():
        for mark in sorted(set(marks)):
            having.setdefault(mark, []).append(name)
    pairs = Counter(pair for of in having.values() for pair in combinations(of, 2))
    said = list[str]()
    for names, shared in pairs.most_common():
        part, whole = sorted(names, key=lambda name: len(set(queries[name])))
        every = len(set(queries[part]))
        count = f"all {shared:,}" if shared == every else f"{shared:,} of {every:,}"
        if len(queries[whole]) >= MARKED:
            count = f"at least {shared:,}"
        said.append(f"{count} of {part} are in {whole}")
    more = f" and {len(said) - _NAMED} more pairs" if len(said) > _NAMED else ""
    listed = ", ".join(said[:_NAMED])
    sentence = f"a mean over datasets counts queries of equal text and judgments twice: {listed}{more}"
    return [sentence] if said else []


MARKED = 1_000
"""Queries of a dataset whose hashes are kept: those with the least, so that datasets keep the same of equal ones."""


def query_marks(judged: Iterable[tuple[str, Mapping[str, object]]]) -> list[str]:
    """Return the least MARKED hashes of queries, sorted, each of 12 hexadecimal digits.

    judged: text and {document: grade} of each query.
    """
    hashes = (hashlib.sha256(f"{text}\n{_grades_text(grades)}".encode()) for text, grades in judged)
    return nsmallest(MARKED, {one.hexdigest()[:12] for one in hashes})


def other_algorithms(made: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a sentence for each part of scores, such as a measure, that different algorithms computed.

    made: {name of the scores: {part: number of its algorithm}}.
    """
    numbers: dict[str, dict[str, list[str]]] = {}
    for name, parts in made.items():
        for part, number in parts.items():
            numbers.setdefault(part, {}).setdefault(number, []).append(name)
    return [
        f"{part} was made by different algorithms and does not compare: "
        + "; ".join(f"number {number} in {', '.join(names)}" for number, names in sorted(of.items()))
        for part, of in numbers.items()
        if len(of) > 1
    ]


def judgment_marks(judgments: Grades) -> dict[str, str]:
    """Return {query: hash of its judgments, 8 hexadecimal digits}, whatever the order of documents."""
    return {query: _mark(grades) for query, grades in judgments.to_dict().items()}


def _mark(grades: Mapping[str, object]) -> str:
    return hashlib.sha256(_grades_text(grades).encode()).hexdigest()[:_MARK_DIGITS]


def _grades_text(grades: Mapping[str, object]) -> str:
    return json.dumps(_as_floats(grades), sort_keys=True)


def _as_floats(grades: Mapping[str, Any]) -> dict[str, object]:
    return {name: _as_floats(one) if isinstance(one, Mapping) else float(one) for name, one in grades.items()}
