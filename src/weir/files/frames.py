"""Read rankings and judgments from frames, dicts, lists and paths."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from numbers import Real
from typing import Any, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from weir.core.input_shapes import grades_of, scores_of_ranking
from weir.core.intents import IntentQrels
from weir.core.judged import Judged
from weir.core.order import Ties
from weir.core.qrels import Origins, Qrels, grade_of
from weir.core.rank_order import counts_of_scores, order_counts
from weir.core.roles import GRADES, refuse_grades_as_documents, warn_exchanged
from weir.core.run import Named, Run, score_array
from weir.core.strings import Ids, Int32
from weir.errors import BadRanking, BadValue, FormatError, WeirError
from weir.files.column_names import (
    Kind,
    is_named,
    origin_column,
    other_columns,
    part_columns,
    rank_column,
    row_columns,
    say_no_grades,
)
from weir.files.one_system import REMEDIES, SystemRow, orders_apart, refuse_several_systems
from weir.files.parsers import Source
from weir.files.runs import (
    join_run_file,
    join_source,
    judgments_of,
    read_qrels,
    read_run,
    run_of,
    say_order,
    say_spelled_otherwise,
)
from weir.files.tables import frame_source

# Rankings and judgments from dicts, data frames and files.
#
# Frames are recognised by their methods, so none of their libraries is imported here.

_STREAM_ROWS = 20_000  # rows of a frame from which Arrow's stream of its columns is worth being loaded for

T = TypeVar("T")
Columns: TypeAlias = dict[str, Callable[[], Sequence[object]]]


@runtime_checkable
class _Named(Protocol):
    _fields: tuple[str, ...]


@runtime_checkable
class _ByQuery(Protocol):
    def to_dict(self) -> Mapping[Any, Any]: ...


def run_from(value: object, name: str | None = None, ties: Ties | None = None) -> Run:
    """Return a run from a Run, {query: ranking}, a data frame (pandas, polars, Arrow), a dict of columns, or a path.

    name: by default the Run's own or the file's, else "run".
    ties: order of equal scores; by default the Run's own, else "trec".

    Accepts ranx's Run and named tuples such as ScoredDoc. Frames need usual names for query, document and score.
    Raises BadValue for other values or columns, BadRanking for an invalid ranking, FormatError for an unreadable
    file. Warns (RankingWarning) if ranks contradict scores.
    """
    if isinstance(value, (str, os.PathLike)):
        value = read_run(os.fspath(value), ties or "trec")
    if isinstance(value, Run):
        run = value
        if ties is not None and ties != run.ties:
            run.refuse_nameless()
            rows = run.queries, run.docs, run.query_of_row(), run.doc, run.score
            run = replace(Run.from_columns(*rows, Named(run.name, ties)), doubts=run.doubts)
        return run if name is None else replace(run, name=name)
    label = Named(name or "run", ties or "trec")
    quickly = _quickly(value, "run", lambda source: run_of(source, label.name, label.ties))
    if quickly is not None:
        return quickly
    columns = frame_columns(value)
    if columns is None:
        rankings = {
            query: scores_of_ranking(f"query '{query}'", row)
            for query, row in _nested(value, "a run", "score").items()
        }
        run = Run.of(rankings, label.name, label.ties)
        listed = (row.values() if hasattr(row, "values") else () for row in rankings.values())
        return replace(run, doubts=say_order(label.name, counts_of_scores(listed)))
    _refuse_several_parts(columns, "run")
    queries, query, docs, doc, values = _three(columns, "run")
    if any(issubclass(kind, (str, bytes)) for kind in set(map(type, values))):
        raise BadRanking("the score column holds text; convert it to numbers first")
    if any(issubclass(kind, (bool, np.bool_)) for kind in set(map(type, values))):
        raise BadRanking("the score column holds true and false; expected numbers")
    scores = score_array(
        values, lambda row: f"query '{queries[int(query[row])]}', document '{docs[int(doc[row])]}'"
    )
    run = Run.from_columns(queries, docs, query, doc, scores, label)
    order = np.argsort(query, kind="stable")
    place = rank_column(list(columns), "run")
    rank = None if place is None else _places(list(columns.values())[place]())[order]
    cuts = np.append(np.flatnonzero(np.diff(query[order], prepend=-1)), len(query))
    return replace(run, doubts=say_order(label.name, order_counts(cuts, scores[order], rank)))


def _places(values: Sequence[object]) -> NDArray[np.float64]:
    numbers = (Real, np.number)
    return np.array([float(one) if isinstance(one, numbers) else np.nan for one in values])


def qrels_from(value: object) -> Qrels:
    """Return judgments from a Qrels, {query: judgments}, a data frame (pandas, polars, Arrow), a dict of columns, or
    a path.

    Frames need usual names for query, document and grade, and may have `origin`. Raises BadValue for other values or
    columns and infinite grades, FormatError for an unreadable file.
    """
    if isinstance(value, Qrels):
        return value
    if isinstance(value, (str, os.PathLike)):
        return read_qrels(os.fspath(value))
    quickly = _quickly(value, "qrels", judgments_of)
    if quickly is not None and quickly[1] == 0:
        return quickly[0]
    columns = frame_columns(value)
    if columns is None:
        return Qrels.of(_nested(value, "judgments", "grade"))
    _refuse_several_parts(columns, "qrels")
    queries, query, docs, doc, grade = _three(columns, "qrels")
    at, origins = origin_column(list(columns), "qrels"), None
    if at is not None:
        texts = ["" if text is None else str(text) for text in list(columns.values())[at]()]
        if len(texts) != len(grade):
            raise BadValue(f"the column origin holds {len(texts)} rows; expected {len(grade)}")
        origins = Origins.of(texts)
    where = [f"query '{queries[q]}', document '{docs[d]}'" for q, d in zip(query, doc, strict=True)]
    try:
        grades = np.array([grade_of(g, w) for g, w in zip(grade, where, strict=True)])
        return Qrels.from_columns(queries, docs, query, doc, grades, origins)
    except BadValue:
        refuse_grades_as_documents(docs.strings.take(doc), [str(g).removesuffix(".0") for g in grade])
        raise


def judged_from(value: object, qrels: Qrels, ties: Ties = "trec") -> Judged:
    """Return judgments joined with a run in any form of `run_from`.

    ties: order of equal scores; overrides a Run's own.

    Raises the errors of `run_from`. Warns (RankingWarning) of identifiers that are judged under another spelling.
    """
    if isinstance(value, (str, os.PathLike)):
        return join_run_file(os.fspath(value), qrels, ties)
    if qrels.beside is None:
        quickly = _quickly(value, "run", lambda source: join_source(source, qrels, ties))
        if quickly is not None:
            return quickly
    run = run_from(value, ties=ties)
    say_spelled_otherwise("the run", run, qrels)
    return Judged.of(run, qrels)


def small_frame(value: object, kind: Kind) -> dict[object, dict[object, object]] | None:
    """Return a frame of fewer than 20,000 rows as {query: {document: number}}.

    None for other values, and a frame with ranks, origins or repeated documents, or without grades or scores.

    Raises BadValue for missing or ambiguous columns, FormatError for a query with rows of several systems or
    collections.
    """
    frame: Any = value
    if not hasattr(frame, "__len__") or not hasattr(frame, "columns") or len(frame) >= _STREAM_ROWS:
        return None
    columns = frame_columns(frame)
    if columns is None or origin_column(list(columns), kind) is not None:
        return None
    if rank_column(list(columns), kind) is not None:
        return None
    _refuse_several_parts(columns, kind)
    listed, rows = list(columns), defaultdict[object, dict[object, object]](dict)
    cells = [columns[listed[at]]() for at in row_columns(listed, kind)]
    if len(cells) < 3:
        return None  # `qrels_from` says so
    for query, document, number in zip(*cells, strict=True):
        rows[query][document] = number
    return dict(rows) if sum(map(len, rows.values())) == len(cells[0]) else None


def is_columns(value: Mapping[Any, Any]) -> bool:
    """Return True for a table (columns, frame, named tuples), False for rankings or judgments by query."""
    return frame_columns(value) is not None


def _quickly(value: object, kind: Kind, use: Callable[[Source], T]) -> T | None:
    frame = _at_hand(value)
    if not hasattr(frame, "__arrow_c_stream__") or not hasattr(frame, "columns") or len(frame) < _STREAM_ROWS:
        return None
    try:
        return use(frame_source(frame, kind))
    except (WeirError, TypeError, ValueError, OSError, NotImplementedError):
        return None


def _at_hand(value: object) -> Any:  # noqa: ANN401  any library's frame
    frame: Any = value
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):  # a lazy frame of Polars or another
        return frame.collect()
    levels = getattr(getattr(frame, "index", None), "names", None)
    series = not hasattr(frame, "columns")
    if levels is None or None in levels or not hasattr(frame, "reset_index") or (series and len(levels) == 1):
        return frame  # a series by query is a value of its own
    columns = list(frame.columns) if not series else []
    for name in [name for name in levels if name in columns]:
        if not (frame.index.get_level_values(name) == frame[name]).all():
            raise BadValue(
                f"the index and a column are both named '{name}' and differ; expected each name once"
            )
    kept = [name for name in levels if name not in columns]
    return frame.reset_index(kept) if kept else frame


def frame_columns(value: object) -> Columns | None:
    """Return {column: function that returns its cells} of a frame, dict of columns or list of named tuples, else
    None.

    Raises BadValue for repeated or unreadable columns and mixed named tuples.
    """
    frame = _at_hand(value)
    if isinstance(frame, Mapping):
        sequences = [isinstance(c, (Sequence, np.ndarray)) and not isinstance(c, str) for c in frame.values()]
        columns = sequences and all(sequences) and is_named([str(name) for name in frame])
        return {str(k): partial(list, c) for k, c in frame.items()} if columns else None
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if isinstance(names, Iterable) and hasattr(frame, "__getitem__"):
        names = list(names)
        if twice := [name for name in names if names.count(name) > 1]:
            raise BadValue(f"found two columns named '{twice[0]}'; expected each name once")
        return {str(name): partial(_column, frame, name) for name in names}
    # Named tuples are such as the ScoredDoc and Qrel of ir-measures.
    try:
        rows = list(frame) if isinstance(frame, Iterable) and not isinstance(frame, (str, bytes)) else []
    except Exception as error:  # the object's own
        found = f"{type(frame).__name__} whose iteration ends in {type(error).__name__}: {error}"
        raise BadValue(f"found a {found}; expected a frame, columns or named tuples") from error
    if not rows or not all(isinstance(row, _Named) for row in rows):
        return None
    if several := [row for row in rows if row._fields != rows[0]._fields]:
        kinds = f"{', '.join(rows[0]._fields)} and {', '.join(several[0]._fields)}"
        raise BadValue(f"found named tuples of {kinds}; expected the same fields in all")
    return {
        name: partial(lambda name: [getattr(row, name) for row in rows], name) for name in rows[0]._fields
    }


def _column(frame: Any, name: Any) -> Sequence[object]:  # noqa: ANN401  any library's frame
    column = frame[name]
    for to_list in ("to_pylist", "to_list", "tolist"):  # Arrow, polars and pandas, numpy
        if hasattr(column, to_list):
            return list(getattr(column, to_list)())
    if not isinstance(column, Iterable) or isinstance(column, (str, bytes)):
        raise BadValue(f"the column '{name}' is {type(column).__name__}; expected its cells")
    return list(column)


def _nested(value: object, what: str, number: str) -> Mapping[Any, Any]:
    if isinstance(value, _ByQuery) and not type(value).__module__.startswith(
        "weir."
    ):  # Scores have it as well
        value = value.to_dict()
    if not isinstance(value, Mapping):
        raise BadValue(
            f"{what} cannot be made from {type(value).__name__}; expected a path, a frame with columns for "
            f"query, document and {number}, or {{query: {{document: {number}}}}}, or {{query: [document, ...]}}"
        )
    return value


def _refuse_several_parts(columns: Columns, kind: Kind) -> None:
    listed = list(columns)
    for at, part in part_columns(listed, kind):
        used = row_columns(listed, kind)[0], at, rank_column(listed, kind)
        cells = [columns[listed[one]]() for one in used if one is not None]

        def rows(cells: Sequence[Sequence[object]] = cells) -> Iterator[SystemRow]:
            for n, (query, system, *rank) in enumerate(zip(*cells, strict=False), 1):
                yield f", row {n}", str(query), str(system), str(rank[0]) if rank else ""

        if part == "system":
            refuse_several_systems("frame", rows, f"one system; give the rows of one, by '{listed[at]}'")
        else:
            refuse_several_systems("frame", rows, REMEDIES[part], str(listed[at]))
    if kind == "run":
        query, score, others = other_columns(listed)
        for at in others:
            cells = [columns[listed[one]]() for one in (query, at, score)]
            if found := orders_apart(listed[at], zip(*cells, strict=False)):
                remedy = f"the rows of one system; keep these, or leave out the column '{listed[at]}'"
                raise FormatError("frame", found, remedy)


def _three(columns: Columns, kind: Kind) -> tuple[Ids, Int32, Ids, Int32, Sequence[object]]:
    listed = list(columns)
    names = [listed[at] for at in row_columns(listed, kind)]
    query, doc, *numbers = (columns[name]() for name in names)
    if not numbers:
        say_no_grades("the judgments")
    number = numbers[0] if numbers else [1] * len(doc)
    if not len(query) == len(doc) == len(number):
        raise BadValue(f"the columns {', '.join(names)} hold {len(query)}, {len(doc)} and {len(number)} rows")
    return *_numbered(query, names[0]), *_numbered(doc, names[1]), number


def _numbered(values: Sequence[object], column: str) -> tuple[Ids, Int32]:
    odd = [
        kind
        for kind in set(map(type, values))
        if kind is bool or not issubclass(kind, (str, int, np.integer))
    ]
    if odd:
        # A float column would turn 7 into 7.0, a missing value into "nan": neither names anything.
        row = next(number for number, value in enumerate(values, 1) if type(value) is odd[0])
        raise BadValue(
            f"column {column} holds {odd[0].__name__}, first {values[row - 1]!r} in row {row}; expected text or whole "
            "numbers"
        )
    number: dict[object, int] = {}
    code = np.array([number.setdefault(v, len(number)) for v in values], np.int32)
    try:
        return Ids.of(number), code
    except BadValue as error:
        raise BadValue(f"column {column}: {error}") from None


# Checks that judgments and run can belong together.

Nested: TypeAlias = Mapping[Any, Mapping[Any, Any]]


def refuse_mismatched(qrels: object, run: object) -> None:
    """Raise BadValue if judgments and run are exchanged, or have identifiers of different types.

    Warns (RankingWarning) if they are probably exchanged. Raises BadRanking for an invalid ranking.
    """
    # Of two {query: {document: number}}, floats as judgments with whole numbers as run are refused. A RankingWarning
    # is given if the judgments are lists and all scores are grades (0 to 4). In dicts 1 is not "1".
    if isinstance(qrels, Run):
        raise BadValue("found a Run as the judgments; judgments come first, then the run")
    if isinstance(run, (Qrels, IntentQrels)):
        raise BadValue(f"found {type(run).__name__} as the run; judgments come first, then the run")
    listed = _by_query(qrels) and not _is_nested(qrels)
    if _by_query(qrels):
        qrels = {q: grades_of(f"query '{q}'", row) for q, row in qrels.items()}
    if _by_query(run):
        run = {q: scores_of_ranking(f"query '{q}'", row) for q, row in run.items()}
    if _is_nested(qrels) and _is_nested(run):
        values = [v for row in run.values() for v in row.values()]
        if listed and values and all(_whole(type(v)) and v in GRADES for v in values):
            warn_exchanged("the judgments are lists and the scores of the run look like grades")
        _refuse_other_types("query", qrels, run)
        _refuse_other_types(
            "document", chain.from_iterable(qrels.values()), chain.from_iterable(run.values())
        )
        grades, scores = ({type(v) for row in rows.values() for v in row.values()} for rows in (qrels, run))
        floats = bool(grades) and all(issubclass(kind, (float, np.floating)) for kind in grades)
        if floats and scores and all(map(_whole, scores)):
            raise BadValue(
                "the judgments hold floats and the run whole numbers only; judgments come first, then the run; "
                "if these do stand in that order, give the scores as float"
            )


def refuse_rankings(qrels: object) -> None:
    """Raise BadValue for {name: ranking} given as judgments; a single ranking is not detected."""
    if isinstance(qrels, Mapping) and any(
        isinstance(one, Run) or (isinstance(one, Mapping) and _holds_mappings(one)) for one in qrels.values()
    ):
        raise BadValue("found rankings by name as the judgments; judgments come first, then the rankings")


def _by_query(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping) and not is_columns(value)


def _is_nested(value: object) -> TypeGuard[Nested]:
    return isinstance(value, Mapping) and all(
        isinstance(row, Mapping) and not _holds_mappings(row) for row in value.values()
    )


def _holds_mappings(row: Mapping[Any, Any]) -> bool:
    kinds = set(map(type, row.values()))
    return not kinds <= {float, int} and any(issubclass(kind, Mapping) for kind in kinds)


def _refuse_other_types(what: str, judged: Iterable[object], ranked: Iterable[object]) -> None:
    ours, theirs = _examples(judged), _examples(ranked)
    if not ours or not theirs or ours.keys() == theirs.keys():
        return
    first, second = (
        " and ".join(f"{kind} ({example!r})" for kind, example in sorted(types.items()))
        for types in (ours, theirs)
    )
    raise BadValue(
        f"{what} identifiers are {first} in the judgments and {second} in the run; make them one type, such as str"
    )


def _examples(identifiers: Iterable[object]) -> dict[str, object]:
    by_type = {type(one): one for one in identifiers}
    return {
        "int" if _whole(kind) else "str" if issubclass(kind, str) else kind.__name__: one
        for kind, one in by_type.items()
    }


def _whole(kind: type) -> bool:
    return issubclass(kind, (int, np.integer)) and not issubclass(kind, bool)
