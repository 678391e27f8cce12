"""Recognise exchanged columns of rankings and judgments by their values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids, Strings
from weir.errors import BadValue

GRADES = range(5)
"""Grades from 0 up on usual scales."""
MANY_QUERIES = 5
"""Least number of queries that cannot all lack a relevant document, or a judged answer, by chance."""
_SCALE = {str(grade) for grade in range(-2, GRADES.stop)}
_FRACTION = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_COUNTED = 3
"""Fewest documents of a ranking that count as its ranks."""


def is_grade(name: str) -> bool:
    """Return True for the text of a grade on a usual scale, -2 to 4."""
    return name in _SCALE


def like_grades(names: Strings) -> bool:
    """Return True if all names are grades on a usual scale, -2 to 4; False for no names."""
    return len(names) > 0 and int(names.lengths().max()) <= 2 and set(names.tolist()) <= _SCALE


def grades_as_documents(docs: Strings, grades: Sequence[str]) -> str:
    """Return a phrase on the values found if columns of documents and grades are exchanged; "" if they are not,
    or for few rows.

    docs, grades: the cells of both columns in judgments.
    """
    if len(docs) < MANY_QUERIES or not like_grades(docs):
        return ""
    if sum(map(is_grade, grades)) * 2 >= len(grades) or len({*grades}) <= len({*docs.tolist()}):
        return ""
    beyond = next(one for one in grades if not is_grade(one))
    return f"documents that are all grades, such as '{docs[0]}', and grades such as '{beyond}'"


def refuse_exchanged_columns(qrels: Qrels, run: Run, where: str = "") -> None:
    """Raise BadValue if two columns of the run, or of the judgments, are exchanged.

    where: beginning of messages on the run, such as "run.trec: ".
    """
    queries, docs = run.queries.strings, run.docs.strings.take(np.unique(run.doc))
    common_queries, common_docs = len(_among(queries, qrels.queries)), len(_among(docs, qrels.docs))
    as_docs, as_queries = _among(queries, qrels.docs), _among(docs, qrels.queries)
    if len(as_docs) and len(as_queries) and 2 * common_queries <= len(queries):
        of_run = len(as_queries) == len(docs) > common_docs
        of_judgments = len(as_docs) == len(queries) > common_queries
        if of_run or of_judgments or not (common_queries or common_docs):
            raise BadValue(_crossed(where, (queries, as_docs), (docs, as_queries)))
    whole = bool((run.score % 1 == 0).all())
    for kind, names, common in (("queries", queries, common_queries), ("documents", docs, common_docs)):
        if len(names) and not common and whole and _like_fractions(names):
            raise BadValue(
                f"{where}its {kind} are numbers with a fraction, such as '{names[0]}', and its scores whole "
                f"numbers: the columns of {kind} and scores are exchanged"
            )
    if not common_docs and (ranks := ranks_as_documents(run)):
        raise BadValue(
            f"{where}{ranks}, and none is judged: the columns of documents and ranks are exchanged"
        )
    judged_docs = qrels.docs.strings.take(np.unique(qrels.doc))
    beyond = len(qrels.grade) and qrels.grade.max() not in GRADES
    many = len(np.unique(qrels.grade))  # as identifiers in their place are
    for kind, names, common in (
        ("queries", qrels.queries.strings, common_queries),
        ("documents", judged_docs, common_docs),
    ):
        if beyond and not common and like_grades(names) and many > len(names):
            raise BadValue(
                f"the judgments: all {kind} are grades, such as '{names[0]}', and grades are not, such as "
                f"{qrels.grade.max():g}: the columns of {kind} and grades are exchanged"
            )


def _among(names: Strings, known: Ids) -> Strings:
    return names.take(np.flatnonzero(known.codes(names) >= 0))


def _crossed(where: str, queries: tuple[Strings, Strings], docs: tuple[Strings, Strings]) -> str:
    # The side whose identifiers are all known in the other role is true: most documents of a run are not judged.
    def part(some: tuple[Strings, Strings], kind: str) -> str:
        every, found = len(some[0]), len(some[1])
        share = f"all {every:,} {kind}" if found == every else f"{found:,} of {every:,} {kind}"
        return f"{share} that the run has, such as '{some[1][0]}',"

    of_run, of_judgments = (len(found) / len(every) for every, found in (docs, queries))
    whose = f"{where}its" if of_run >= of_judgments else "the judgments'"
    either = ", or the judgments'," if of_run == of_judgments else ""
    return (
        f"{whose} columns{either} of queries and documents are exchanged: {part(docs, 'documents')} are judged "
        f"queries, and {part(queries, 'queries')} judged documents"
    )


def _like_fractions(names: Strings) -> bool:
    return all(map(_FRACTION.fullmatch, names.tolist()))


def ranks_as_documents(run: Run) -> str:
    """Return a clause that each ranking's documents are its ranks, 1, 2, 3 ... or 0, 1, 2 ...; "" if not, or if
    all are short."""
    lengths = np.diff(run.ptr)
    longest = int(lengths.max(initial=0))
    if longest < _COUNTED:
        return ""
    number = np.full(len(run.docs), -1)
    codes = run.docs.codes([str(rank) for rank in range(longest + 1)])
    number[codes[codes >= 0]] = np.flatnonzero(codes >= 0)
    query, value = run.query_of_row(), number[run.doc]
    if (value < 0).any() or value.min() > 1:
        return ""
    place = np.arange(len(value)) - np.repeat(run.ptr[:-1], lengths) + int(value.min())
    in_order = value[np.lexsort((value, query))]
    # Documents with equal scores may stand in another order.
    if not (in_order == place).all() or 2 * (value == place).sum() <= len(value):
        return ""
    return f"its documents count up from '{value.min()}' in each ranking, as ranks do"
