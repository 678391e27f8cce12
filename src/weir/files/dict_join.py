"""Join judgments and rankings given as dicts, without numbering documents."""

from __future__ import annotations

import math
import unicodedata
from array import array
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, islice, pairwise, repeat
from operator import contains, itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.core.dangling import NUMBERED, NUMBERED_PARTS, PART, SAMPLE, TOP, spelled_otherwise
from weir.core.judged import Groups, Judged, descending_grades
from weir.core.order import tie_groups, tied, tied_at_end
from weir.core.qrels import grade_column
from weir.core.rank_order import may_rise, order_counts
from weir.core.strings import Float64, Ids, Int64, Strings
from weir.errors import BadValue
from weir.files.frames import is_columns, small_frame
from weir.settings import IDENTIFIER_BYTES

Row: TypeAlias = dict[Any, Any]
Rows: TypeAlias = dict[Any, Row]
Scores: TypeAlias = NDArray[np.floating]

_DICTS = frozenset({dict, defaultdict, OrderedDict, Counter})
_LISTS = frozenset({list, tuple})
_SETS = frozenset({set, frozenset})
_GRADE_SCALE = range(5)  # as in `refuse_mismatched`
_SHORT_CHARACTERS = IDENTIFIER_BYTES // 4  # an identifier of no more is short enough in UTF-8
_NO_RANKING: Row = {}


class _Unusual(Exception):
    pass


# Only scores of judged documents are looked up and located among the sorted scores of their query; identifiers are
# compared only for ties.
@dataclass(frozen=True, eq=False)
class _Given:
    rows: Rows
    grades: NDArray[Any]
    cuts: list[int]
    """Offsets of each query's grades."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Given) or self.rows is not other.rows:
            return False
        return np.array_equal(self.grades, other.grades)

    __hash__ = object.__hash__

    def to_dict(self) -> dict[str, dict[str, float]]:
        grades = (self.grades[a:b].tolist() for a, b in pairwise(self.cuts))
        return {
            str(query): {str(d): g for d, g in row.items()}
            if list(row.values()) == before
            else {"": math.nan}
            for (query, row), before in zip(self.rows.items(), grades, strict=False)
        }


def join_dicts(qrels: object, run: object) -> Judged | None:
    """Return {query: {document: grade}} joined with {query: {document: score}}, as `Judged.of` would; None if
    unsuited.

    qrels, run: inner lists, sets and frames below 20,000 rows are taken too.

    Unsuited are other types, mixed identifiers, unusual numbers, repeated documents, and input that needs a warning or
    error; raises nothing.
    """
    try:
        judgments = qrels if type(qrels) in _DICTS else small_frame(qrels, "qrels")
        rankings = run if type(run) in _DICTS else small_frame(run, "run")
        if judgments is None or rankings is None:
            return None
        return _joined(judgments, rankings)  # type: ignore[arg-type]  # dicts, as the types just looked at
    except (_Unusual, BadValue, TypeError, ValueError, OverflowError):
        return None


def _joined(qrels: dict[Any, Any], run: dict[Any, Any]) -> Judged:
    rows, rankings = _rows(qrels, ranked=False), _rows(run, ranked=True)
    _refuse_odd_identifiers(rows, rankings)
    judgments = rows if all(rows.values()) else {name: row for name, row in rows.items() if row}
    _refuse_other_spellings(judgments, rankings)
    grade_types = set(map(type, _values(judgments)))
    if not grade_types or not grade_types <= {int, float}:
        raise _Unusual
    number: NDArray[Any] = np.array(
        list(_values(judgments)), np.int64 if grade_types == {int} else np.float64
    )
    score = np.frombuffer(array("d", list(_values(rankings))))  # TypeError for what is no number, such as "1"
    if (
        not len(score)
        or not np.isfinite(score).all()
        or (score[0] in (0, 1) and {bool, np.bool_} & set(map(type, _values(rankings))))
        or (
            (grade_types == {float} or (rows is not qrels and score[0] in _GRADE_SCALE))
            and _all_whole(rankings)
        )
    ):
        raise _Unusual
    cuts = _cuts(rankings)
    begins = np.array([*dict.fromkeys(cuts)])
    if may_rise(begins, score) and order_counts(begins, score).doubts():
        raise _Unusual
    key = -score  # ascending, so that numpy can search it
    if len(key) == cuts[1] * len(rankings) and len(set(map(len, rankings.values()))) == 1:
        key.reshape(len(rankings), -1).sort(axis=1)
    else:
        for a, b in pairwise(cuts):
            key[a:b].sort()
    if any(map(contains, rankings.values(), rankings)) and any(
        query in row and (row[query] == -key[at] or not query.isdecimal())
        for (query, row), at in zip(rankings.items(), cuts, strict=False)
    ):
        raise _Unusual  # perhaps a self-match, which is counted
    return _located(judgments, number, rankings, score, key)


def _located(judgments: Rows, number: NDArray[Any], rankings: Rows, score: Float64, key: Float64) -> Judged:
    ideal_cuts, cuts = _cuts(judgments), _cuts(rankings)
    ptr, ideal_ptr = np.array(cuts), np.array(ideal_cuts)
    with np.errstate(over="ignore"):
        single = key.astype(np.float32)
    single_groups = tie_groups(ptr, single)  # what is equal as doubles is equal as floats
    groups = tie_groups(ptr, key) if len(single_groups[0]) else single_groups
    begin = dict(zip(rankings, cuts, strict=False))  # the last cut is the end
    answers = [rankings.get(q, _NO_RANKING) for q in judgments]
    starts, sizes = [begin.get(q, 0) for q in judgments], list(map(len, answers))

    grade = grade_column(number)
    query_of_row = np.arange(len(judgments)).repeat(ideal_ptr[1:] - ideal_ptr[:-1])
    row, judged_key = _looked_up(judgments, answers, len(number))
    query = query_of_row[row]
    hits = row.searchsorted(ideal_ptr).tolist()
    start_of_row = np.array(starts)[query]

    def ranks_and_ties(key: Scores, judged_key: Scores, groups: Groups) -> tuple[Int64, Int64, Int64]:
        first = np.ones(len(row), np.int64)
        for (c, d), a, n in zip(pairwise(hits), starts, sizes, strict=True):
            if c < d:
                first[c:d] += key[a : a + n].searchsorted(judged_key[c:d])
        begins, ends = groups
        if len(begins) == 0:
            return first, first, first
        at = first - 1 + start_of_row
        group = np.minimum(begins.searchsorted(at), len(begins) - 1)
        last = np.where(begins[group] == at, ends[group] - start_of_row, first)
        scored = [(answer, score[a:]) for answer, a in zip(answers, starts, strict=True)]
        return _ranks_with_ties(judgments, scored, row, query, first, last), first, last

    rank, first, last = ranks_and_ties(key, judged_key, groups)
    order = ((query << 32) + rank).argsort()
    ranks = rank[order].astype(np.int32)
    float_rank, (begins, ends) = None, single_groups
    if len(begins) and (key[begins] != key[ends - 1]).any():
        with np.errstate(over="ignore"):
            moved = ranks_and_ties(single, judged_key.astype(np.float32), single_groups)[0]
        float_rank = None if (moved == rank).all() else moved[order].astype(np.int32)
    others = [str(name) for name in rankings if name not in judgments]
    shared, tied_end = np.zeros(len(judgments), np.int32), np.zeros(len(judgments), np.bool_)
    if len(groups[0]):
        shared = _of_judged_queries(judgments, rankings, tied(ptr, groups))
        tied_end = _of_judged_queries(judgments, rankings, tied_at_end(ptr, groups))
    return Judged(
        Ids(Strings.of(map(str, judgments))),
        np.array(sizes, np.int32),
        shared,
        query[order].astype(np.int32),
        ranks,
        grade[row[order]],
        ranks if last is rank else first[order].astype(np.int32),
        ranks if last is rank else last[order].astype(np.int32),
        ideal_ptr,
        descending_grades(query_of_row, grade),
        len(others),
        min(others, default=""),
        float_rank,
        judgments=_Given(judgments, number, ideal_cuts),
        tied_end=tied_end,
    )


def _looked_up(judgments: Rows, answers: list[Row], count: int) -> tuple[Int64, Float64]:
    scores = (
        map(answer.get, row, repeat(math.nan))
        for answer, row in zip(answers, judgments.values(), strict=True)
    )
    key = -np.fromiter(chain.from_iterable(scores), np.float64, count)
    row = (~np.isnan(key)).nonzero()[0]
    return row, key[row]


def _of_judged_queries(judgments: Rows, rankings: Rows, values: NDArray[Any]) -> NDArray[Any]:
    of_query = dict(zip(rankings, values.tolist(), strict=True))
    return np.array([of_query.get(query, 0) for query in judgments], values.dtype)


def _rows(value: dict[Any, Any], *, ranked: bool) -> Rows:
    if _DICTS.issuperset(map(type, value.values())):
        return value
    if is_columns(value):
        raise _Unusual
    rows = {}
    for name, row in value.items():
        if type(row) in _DICTS:
            rows[name] = row
        elif type(row) in _LISTS and ranked:
            # Scores keep the order of a list: from its length down to 1.
            rows[name] = dict(zip(row, np.arange(len(row), 0.0, -1.0).tolist(), strict=True))
            if len(rows[name]) < len(row):
                raise _Unusual
        elif type(row) in _LISTS | _SETS and not ranked:
            rows[name] = dict.fromkeys(row, 1)  # pairs become identifiers that are no text, and so unusual
        else:
            raise _Unusual
    return rows


def _refuse_odd_identifiers(*tables: Rows) -> None:
    for rows in (tables, [row for table in tables for row in table.values()]):
        types = set(map(type, chain.from_iterable(rows)))
        if types == {str}:
            for names in rows:
                text = "".join(names)
                if not text.isascii():
                    text.encode("utf-8")  # raises for half of a surrogate pair
                    if not unicodedata.is_normalized("NFC", text):
                        raise _Unusual  # perhaps judged ones, composed in another way
                long = len(text) > _SHORT_CHARACTERS and max(map(len, names)) > _SHORT_CHARACTERS
                if long or "" in names:
                    raise _Unusual
        elif types and types != {int}:
            raise _Unusual


def _refuse_other_spellings(judgments: Rows, rankings: Rows) -> None:
    none: Row = {}
    pairs = list(
        islice(
            (
                (query, name)
                for query, row in rankings.items()
                for name in islice(row, TOP)
                if name not in judgments.get(query, none)
            ),
            SAMPLE,
        )
    )
    unjudged = list(map(itemgetter(1), pairs))
    queries = list(rankings.keys() - judgments.keys())[:SAMPLE]
    some = islice((name for row in judgments.values() for name in islice(row, TOP)), SAMPLE)
    try:
        text = "\n".join(["", *unjudged, *queries, *some, *islice(judgments, SAMPLE), ""])
    except TypeError:  # numbers
        return
    for query, name in pairs if NUMBERED_PARTS.search(text) else ():
        if (part := PART.fullmatch(name)) and part[1] in judgments.get(query, none):
            raise _Unusual
    if NUMBERED.search(text) or (text.lower() != text and text.upper() != text):
        docs = Ids.of(dict.fromkeys(chain.from_iterable(judgments.values())))
        if spelled_otherwise(unjudged, docs) or spelled_otherwise(queries, Ids.of(judgments)):
            raise _Unusual


def _cuts(rows: Rows) -> list[int]:
    return [0, *accumulate(map(len, rows.values()))]


def _values(rows: Rows) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, rows.values()))


def _all_whole(rankings: Rows) -> bool:
    return all(issubclass(one, (int, np.integer)) for one in set(map(type, _values(rankings))))


def _ranks_with_ties(
    judgments: Rows, answers: list[tuple[Row, Float64]], row: Int64, query: Int64, first: Int64, last: Int64
) -> Int64:
    shared = (last > first).nonzero()[0]
    if len(shared) == 0:
        return first
    rank = first.copy()
    documents = list(chain.from_iterable(judgments.values()))
    for code, rows in groupby(shared.tolist(), query.tolist().__getitem__):
        (ranking, score), places = answers[code], dict[int, dict[Any, int]]()
        ranked = list(ranking)
        order = (-score[: len(ranking)]).argsort()
        for at in rows:
            start, stop = int(first[at]), int(last[at])
            if start not in places:
                equal = sorted((ranked[i] for i in order[start - 1 : stop].tolist()), key=str, reverse=True)
                places[start] = dict(zip(equal, range(start, stop + 1), strict=True))
            rank[at] = places[start][documents[row[at]]]
    return rank
