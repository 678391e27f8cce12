"""Recognise exchanged columns, and exchanged rankings and judgments, by their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Grades, Ids, Int64, Strings
from weir.errors import BadValue, FormatError, warn_of_ranking

GRADES = range(5)
"""Grades from 0 up on usual scales."""
MANY_QUERIES = 5
"""Least number of queries that cannot all lack a relevant document, or a judged answer, by chance."""
_SCALE = {str(grade) for grade in range(-2, GRADES.stop)}
_FRACTION = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_COUNTED = 3
"""Fewest documents of a ranking that count as its ranks."""
_RATERS = range(1, 21)
"""Numbers of raters whose means count as grades."""
_LEVELS = 21
"""Most different grades on a usual scale, as the means of five raters from 0 to 4."""
_TIED, _TIED_SCORES = 0.1, 0.7
"""Largest shares of a query's documents equal to the next one: if nearly all differ, and of usual rankings."""
_DEEPER = 20
"""Ratio of judgments to returned documents from which no pool made the judgments."""


def _is_grade(name: str) -> bool:
    return name in _SCALE


def like_grades(names: Strings) -> bool:
    """Return True if there are names and all are whole numbers from -2 to 4."""
    return len(names) > 0 and int(names.lengths().max()) <= 2 and set(names.tolist()) <= _SCALE


def refuse_grades_as_documents(docs: Strings, grades: Sequence[str], name: object = None) -> None:
    """Raise FormatError, or BadValue without a file `name`, if documents and grades are exchanged; few rows always
    pass.
    """
    if len(docs) < MANY_QUERIES or not like_grades(docs):
        return
    if sum(map(_is_grade, grades)) * 2 >= len(grades) or len({*grades}) <= len({*docs.tolist()}):
        return
    beyond = next(one for one in grades if not _is_grade(one))
    found = f"documents that are all grades, such as '{docs[0]}', and grades such as '{beyond}'"
    expected = "documents before grades; the two columns look exchanged"
    raise (
        BadValue(f"found {found}; expected {expected}")
        if name is None
        else FormatError(name, found, expected)
    )


def refuse_exchanged_columns(qrels: Qrels, run: Run, where: str = "") -> None:
    """Raise BadValue, beginning with `where`, if two columns of the run or of the judgments are exchanged."""
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


def scores_as_grades(grade: Grades, ptr: Int64, deeper: bool = False) -> str:
    """Return why grades must be scores of rankings, as a clause; "" if they may be grades.

    ptr: offsets of the queries in `grade`.
    deeper: the rankings are much shorter, so that equal values do not speak for grades.
    """
    deep, fractional = len(grade) >= _COUNTED * max(len(ptr) - 1, 1), grade.dtype.kind == "f"
    if not (deep or fractional) or (not fractional and grade.max() < GRADES.stop):
        return ""
    levels = np.unique(grade)
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    order = np.lexsort((grade, query))
    steps = np.diff(grade[order].astype(np.float64))[query[1:] == query[:-1]]
    same, ranks = (steps == 0).mean() if len(steps) else 0, (steps == 1).all()
    if _on_a_scale(levels) and not (deep and ranks):
        return ""
    if deep and same <= _TIED:
        return f"{'nearly ' * bool(same)}all grades of each query differ"
    many = len(levels) > max(GRADES.stop, min(_LEVELS, len(grade) // 4))
    if fractional and many and (deeper or same <= _TIED_SCORES):  # counts of clicks are whole
        return f"grades have {len(levels):,} different values"
    return ""


def refuse_exchanged_files(judged: Judged, run: Run | Callable[[], Run], where: str = "") -> None:
    """Raise BadValue if run and judgments are exchanged; warn (RankingWarning) if they only seem so.

    run: the run, or a function that returns it.
    where: begins the messages on the run, such as "run.trec: ".
    """
    returned, grades = int(judged.retrieved.sum()), len(judged.ideal)
    if clause := scores_as_grades(judged.ideal, judged.ideal_ptr, _DEEPER * returned <= grades):
        ranked = run if isinstance(run, Run) else run()
        if _has_grades(ranked, 2 * returned <= grades):
            raise BadValue(
                f"{where}its scores are grades such as {ranked.score.max():g}, and {clause} in the judgments, as "
                "scores do; judgments come first, then runs; if these do stand in that order, multiply the scores by "
                "1,000, which changes no ranking"
            )
    elif grades and (judged.ideal.dtype.kind == "f" or judged.ideal.max() >= GRADES.stop):
        levels = len(np.unique(judged.ideal))
        if levels > GRADES.stop and _has_grades(run if isinstance(run, Run) else run(), short=False):
            warn_exchanged(f"{where}all scores are usual grades, and the judgments have {levels:,} grades")
    relevant, every = (np.count_nonzero(of > 0) for of in (judged.grade, judged.ideal))
    oracle = returned == len(judged.rank) > len(judged) and relevant == every
    if (
        oracle
        and len(judged) >= MANY_QUERIES
        and _has_judged_grades(run if isinstance(run, Run) else run(), judged)
    ):
        warn_of_ranking(f"{where}every score is its document's grade, as if these were the judgments")


def warn_exchanged(why: str) -> None:
    """Warn (RankingWarning) that judgments and run may be exchanged, because of `why`."""
    warn_of_ranking(f"{why}; judgments come first, then the run")


def judged_run(run: Run, qrels: Qrels, where: str = "") -> Judged:
    """Return a run matched with judgments. Raises BadValue and warns as `refuse_exchanged_files`."""
    judged = Judged.of(run, qrels)
    refuse_exchanged_files(judged, run, where)
    return judged


def _on_a_scale(levels: NDArray[np.integer | np.floating]) -> bool:
    # Whether these may be means of several raters, also rounded, on a scale within -2 to 10.
    within = levels[0] >= -2 and levels[-1] <= 10
    return within and any(bool((np.abs(levels - np.rint(levels * n) / n) <= 0.005).all()) for n in _RATERS)


def _has_grades(run: Run, short: bool) -> bool:
    # Other scales than the usual ones are certain only in short rankings.
    levels = np.unique(run.score)
    usual = bool((levels % 1 == 0).all()) and levels.min(initial=0) >= -2 and levels.max(initial=0) in GRADES
    if not len(levels) or not (usual or (short and len(levels) <= _LEVELS and _on_a_scale(levels))):
        return False
    steps = np.diff(run.score)[np.diff(run.query_of_row()) == 0]
    listed = 2 * np.count_nonzero(np.diff(run.ptr) > 1) >= len(run) and levels[0] >= 1 and (steps == -1).all()
    return not listed  # documents in order, whose scores count down


def _has_judged_grades(run: Run, judged: Judged) -> bool:
    query = judged.queries.codes(run.queries.strings)[run.query_of_row()]
    rows = np.argsort(query, kind="stable")
    return bool((run.score[rows[np.count_nonzero(query < 0) :]] == judged.grade).all())


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
    """Return a clause that documents are named by their ranks, counting up from 0 or 1; "" if not, or in short
    rankings.
    """
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
