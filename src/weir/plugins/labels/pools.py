"""Choose documents to judge, write and read sheets of them, and score by new judgments."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from weir.core.frames import json_value
from weir.core.judged import Judged
from weir.core.qrels import Qrels, merge_qrels
from weir.core.results import ResultKind
from weir.core.rounding import between, change, count, counted, percent, score
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int32, StringColumn
from weir.core.subject import Subject
from weir.core.tables import Table, cell_text, csv_cell, table_of
from weir.errors import BadValue, FormatError, printable
from weir.experiment.audit_subjects import subjects_of
from weir.files.atomic import atomic_dir, write_json, write_text
from weir.files.column_names import SHEET_HEAD
from weir.files.formats import begins_as_sheet, number_records, table_head
from weir.files.journal_labels import SHEET
from weir.files.json_record import read_json
from weir.files.runs import read_qrels
from weir.files.text_files import read_text
from weir.measures.evaluate import scores_of
from weir.measures.measure import Measure, direction, parse_measure
from weir.stats.resampling import interval
from weir.stats.score_bounds import Unjudged
from weir.stats.score_rows import exchange_notes
from weir.stats.sequential import by_lot

ABOUT = "pool.json"
HEAD = SHEET_HEAD
POOL_SEED = 11
MOST_GRADE = 9
"""The highest grade that people give by a key."""
_BETWEEN = re.compile(r"[\t\r\n]")  # what ends a cell or a line of a sheet


@dataclass(frozen=True, eq=False)
class JudgingPool:
    """Unjudged (query, document) pairs, in the order to judge them."""

    queries: Ids
    docs: Ids
    query: Int32
    """int32[pairs], numbers in `queries`; `doc` likewise in `docs`."""
    doc: Int32
    weight: Float64
    """float64[pairs]: sum of nDCG's discounts at the pair's ranks, that is how far judging it narrows scores."""
    k: int
    """Ranks of each system that were considered."""
    systems: int

    def __len__(self) -> int:
        return len(self.query)

    def record(self) -> dict[str, object]:
        """Return the numbers of pairs, queries, ranks and systems, by name."""
        queries = len(set(self.query.tolist()))
        return {"pairs": len(self), "queries": queries, "k": self.k, "systems": self.systems}


def _pool_tables(pools: Sequence[JudgingPool]) -> tuple[Table, ...]:
    lines = [["pairs", "queries", "ranks", "systems"]]
    lines += [
        [count(number) for number in pool.record().values() if isinstance(number, int)] for pool in pools
    ]
    return (table_of(lines, right=None),)


POOLS = ResultKind(
    "pool", JudgingPool, _pool_tables, records=lambda pool: [pool.record()], csv=lambda pool: [pool.record()]
)


def judging_pool(
    runs: Mapping[str, Run], qrels: Qrels, k: int = 10, limit: int | None = None, lot: bool = False
) -> JudgingPool:
    """Return the unjudged documents among the first k of any run; queries whose judging narrows scores most come
    first.

    limit: keep this many pairs, of largest weight.
    lot: order queries at random instead.

    A query's documents are shuffled. Raises BadValue without runs, if nothing is unjudged, and for k or limit below
    1.
    """
    if not runs or k < 1 or (limit is not None and limit < 1):
        raise BadValue(
            f"found {len(runs)} runs, k {k}, limit {limit}; expected one run at least, and numbers from 1"
        )
    unjudged = Unjudged.of(list(runs.values()), qrels, k)
    if not len(unjudged.query):
        raise BadValue(
            f"everything among the first {k} documents of each system is judged; take a larger `k`"
        )
    weight = np.zeros(len(unjudged.query))
    for run in runs.values():
        rank = unjudged.ranks_in(run, k)
        weight += np.where(rank <= k, 1 / np.log2(rank + 1.0), 0.0)
    shuffled = np.random.default_rng(POOL_SEED).permutation(len(weight))
    pairs = shuffled[np.argsort(-weight[shuffled], kind="stable")[:limit]]
    of_query = np.bincount(unjudged.query[pairs], weight[pairs], minlength=len(qrels))
    first = (
        qrels.queries.codes(by_lot(qrels.queries.tolist())) if lot else np.argsort(-of_query, kind="stable")
    )
    place = np.empty(len(qrels), np.int64)
    place[first] = np.arange(len(qrels))
    in_turn = np.random.default_rng(POOL_SEED + 1).permutation(np.sort(pairs))
    rows = in_turn[np.argsort(place[unjudged.query[in_turn]], kind="stable")]
    return JudgingPool(
        qrels.queries,
        unjudged.qrels.docs,
        unjudged.query[rows],
        unjudged.doc[rows],
        weight[rows],
        k,
        len(runs),
    )


def pools_of(
    subjects: Sequence[Subject],
    out: Path | None,
    k: int = 10,
    limit: int | None = None,
    origin: Mapping[str, object] | None = None,
    lot: bool = False,
) -> list[JudgingPool]:
    """Return a pool for each collection, and write each to `out`, or for several collections to a folder in it.

    out: None writes nothing.
    origin: more entries of the description beside each sheet.
    lot: see `judging_pool`.

    Raises BadValue without runs, if nothing is unjudged, and for a folder that exists.
    """
    pools = [judging_pool(one.runs, _judgments(one), k, limit, lot) for one in subjects]
    for subject, pool in zip(subjects, pools, strict=True):
        if out is not None:
            folder = out / subject.name.replace(":", " ")  # which Windows has in no name
            write_pool(pool, subject, out if len(subjects) == 1 else folder, origin=origin)
    return pools


def _judgments(subject: Subject, queries: Ids | None = None) -> Qrels:
    qrels = subject.need_qrels()
    if len(qrels):
        return qrels
    answered = _answered(subject)
    ids = answered if queries is None else queries.take(np.flatnonzero(answered.codes(queries.strings) >= 0))
    return replace(qrels, queries=ids, ptr=np.zeros(len(ids) + 1, np.int64))


def _answered(subject: Subject) -> Ids:
    return Ids.of(dict.fromkeys(name for run in subject.runs.values() for name in run.queries.tolist()))


def pool_notes(subjects: Sequence[Subject]) -> list[str]:
    """Return notes on missing texts, queries without documents, and judgments that look like a run."""
    exchanged = [
        f"{one.name}: {note.text}"
        for one in subjects
        if one.qrels is not None
        for note in exchange_notes(one.qrels)
    ]
    exchanged += [note for one in subjects if (note := _unanswered_note(one))]
    return [*exchanged, *textless_sheets(subjects)]


def textless_sheets(subjects: Iterable[Subject]) -> list[str]:
    """Return one note that names sheets without texts, [] if each has them."""
    bare = [one.name for one in subjects if one.corpus is None or one.queries is None]
    if not bare:
        return []
    return [
        f"the sheet of {', '.join(bare)} has identifiers and no texts, as it is not known which collection it is of; "
        "`collection=NAME`, a name or a path, puts them on it"
    ]


def _unanswered_note(subject: Subject) -> str:
    qrels = subject.need_qrels()
    queries = qrels.queries if len(qrels) else None if subject.queries is None else subject.queries.ids
    if queries is None:
        return ""
    lengths = [(run.queries.tolist(), np.diff(run.ptr).tolist()) for run in subject.runs.values()]
    answered = {q for names, counts in lengths for q, n in zip(names, counts, strict=True) if n}
    lacking = [query for query in queries.tolist() if query not in answered]
    if not lacking:
        return ""
    return (
        f"{subject.name}: no system returns a document for {len(lacking):,} of {len(queries):,} queries, which are not "
        f"on the sheet; the first is '{lacking[0]}'"
    )


def write_pool(
    pool: JudgingPool,
    subject: Subject,
    folder: Path,
    beside: Mapping[str, str] | None = None,
    origin: Mapping[str, object] | None = None,
) -> None:
    """Write the sheet and its description to a new folder, which appears when complete.

    beside: {name: text} of more files for the folder.
    origin: more entries of the description.

    Raises BadValue for a folder that exists, and for an identifier with a tab or line end.
    """
    if folder.exists():
        raise BadValue(f"{folder} is there already; judged sheets are never overwritten, give another folder")
    with atomic_dir(folder) as temporary:
        write_text(temporary / SHEET, "".join(sheet_lines(pool, subject)))
        about = {
            "subject": subject.name,
            "systems": pool.systems,
            "names": sorted(subject.runs),
            "k": pool.k,
            "pairs": len(pool),
            "queries": len(np.unique(pool.query)),
            "grades": _scale(subject.qrels),
            **(origin or {}),
        }
        write_json(temporary / ABOUT, about)
        for name, text in (beside or {}).items():
            write_text(temporary / name, text)


def _scale(qrels: Qrels | None) -> list[int]:
    grades = np.unique(qrels.grade) if qrels is not None else np.zeros(0)
    highest = int(grades.max(initial=0))
    whole = bool((grades == np.floor(grades)).all())
    return list(range(highest + 1)) if whole and 1 <= highest <= MOST_GRADE else []


def sheet_lines(pool: JudgingPool, subject: Subject) -> Iterator[str]:
    """Yield a sheet's TSV lines with the header; texts become one line, and cells that a spreadsheet would calculate
    are escaped.

    Raises BadValue for an identifier with a tab or line end.
    """
    yield "\t".join(HEAD) + "\n"
    corpus, queries = subject.corpus, subject.queries
    for query, doc in zip(pool.query.tolist(), pool.doc.tolist(), strict=True):
        names = pool.queries[query], pool.docs[doc]
        if broken := next((name for name in names if _BETWEEN.search(name)), None):
            raise BadValue(
                f"{subject.name}: {broken!r} has a tab or line end, which no sheet can hold; name it without"
            )
        query_text = "" if queries is None else _text_of(queries.text, queries.ids, names[0])
        title = "" if corpus is None or corpus.title is None else _text_of(corpus.title, corpus.ids, names[1])
        text = "" if corpus is None else _text_of(corpus.text, corpus.ids, names[1])
        texts = map(sheet_text, (query_text, title, text))
        yield "\t".join(str(csv_cell(cell)) for cell in (*names, "", *texts)) + "\n"


def sheet_text(text: str) -> str:
    """Return a text on one line with single blanks."""
    return printable(" ".join(text.split()))


def _text_of(column: StringColumn, ids: Ids, name: str) -> str:
    code = int(ids.codes([name])[0])
    return column[code] if code >= 0 else ""


@dataclass(frozen=True)
class SheetLine:
    """A line of a sheet: a query and a document to judge."""

    number: int
    """Line in the file, from 1; the header is the first."""
    query: str
    doc: str
    grade: str
    """"" if not judged yet."""
    query_text: str
    """"" if the sheet has no texts, as `title` and `text`."""
    title: str
    text: str


def open_sheet(path: Path) -> Iterator[SheetLine]:
    """Yield the lines of a sheet (TSV, or a spreadsheet's CSV) except blank ones; raises FormatError at a malformed
    line."""
    if path.suffix == ".csv":
        records = number_records(path, table_head(path).separator, (HEAD.index("grade"),))
    else:
        lines = enumerate(read_text(path).split("\n")[1:], 2)
        records = ((number, line.rstrip("\r").split("\t")) for number, line in lines)
    for number, cells in records:
        if not "".join(cells).strip():
            continue
        if not 3 <= len(cells) <= len(HEAD) or not cells[0] or not cells[1]:
            between = "as CSV" if path.suffix == ".csv" else "with tabs between"
            raise FormatError(path, counted(len(cells), "cell"), f"{', '.join(HEAD)} {between}", number)
        given = (*map(cell_text, cells), *("",) * (len(HEAD) - len(cells)))
        query, doc, *rest = given
        yield SheetLine(number, query, doc, *(cell.strip() for cell in rest))


def about_sheet(path: Path) -> dict[str, Any]:
    """Return the description beside a sheet; {} if it is missing or invalid.

    It holds `subject` (the collection), `names` (of systems), and the arguments `targets` and `collections` of `weir
    labels pool`.
    """
    with suppress(OSError, FormatError):
        content = read_json(path.with_name(ABOUT))
        return content if isinstance(content, dict) else {}
    return {}


def subject_of_pool(sheet: Path) -> Subject:
    """Return the rankings and judgments from which a sheet was made; raises BadValue if it names none or they are
    gone."""
    about = about_sheet(sheet)
    targets, name = about.get("targets"), about.get("subject", sheet.parent.name)
    if not targets:
        raise BadValue(
            f"{sheet.parent} does not say of which results it was made; weir labels relabel takes them beside the "
            "judgments"
        )
    found = [one for one in subjects_of(targets, about.get("collections", [])) if one.name == name]
    if not found:
        raise BadValue(f"{', '.join(targets)} has no results on {name} any more")
    return found[0]


def read_sheet(path: Path) -> tuple[Qrels, int]:
    """Return (judgments of a filled sheet or of any file of judgments, number of lines without a grade).

    Raises FormatError for a missing file, an invalid grade, a pair judged twice, and if nothing is judged.
    """
    if not begins_as_sheet(path):
        return read_qrels(path), 0
    grades: dict[str, dict[str, float]] = {}
    empty = 0
    for line in open_sheet(path):
        if not line.grade:
            empty += 1
            continue
        if line.doc in grades.setdefault(line.query, {}):
            problem = f"'{line.doc}' judged again for '{line.query}'"
            raise FormatError(path, problem, "one grade for each pair", line.number)
        try:
            grade = float(line.grade)
        except ValueError:
            grade = math.nan
        if not math.isfinite(grade):
            raise FormatError(
                path, f"the grade '{line.grade}'", "a number, or nothing where it is open", line.number
            )
        grades[line.query][line.doc] = grade
    if not grades:
        raise FormatError(path, "no grade on any line", f"numbers in the column {HEAD[2]}")
    return Qrels.of(grades), empty


# New judgments over old ones: every system before and after (Thakur et al. 2021, section 6).

NDCG_AT_10 = parse_measure("nDCG@10")
HOLE_AT_10 = parse_measure("Hole@10")


@dataclass(frozen=True)
class Relabelled:
    """A system's mean before and after new judgments."""

    subject: str
    system: str
    measure: str
    hole_before: float
    """Mean Hole@10 before the new judgments; `hole_after` with them."""
    hole_after: float
    before: float
    after: float
    low: float
    """95% interval, with `high`, of the mean difference over queries; NaN for geometric means."""
    high: float

    @property
    def change(self) -> float:
        """The mean after minus the mean before."""
        return self.after - self.before


def judged_anew(subjects: Sequence[Subject], new: Qrels) -> list[Subject]:
    """Return the collections with a query judged by `new`; raises BadValue if there is none."""
    judged = [
        one
        for one in subjects
        if (_judgments(one, new.queries).queries.codes(new.queries.strings) >= 0).any()
    ]
    if not judged:
        names = ", ".join(one.name for one in subjects)
        raise BadValue(f"none of the {len(new):,} queries judged anew is a query of {names}")
    return judged


def relabelled(
    subject: Subject, new: Qrels, measure: Measure = NDCG_AT_10, origin: str = "new"
) -> tuple[list[Relabelled], Qrels]:
    """Return (each system's means before and after new judgments, old and new judgments with their origins).

    origin: of new judgments; old ones without get "before".

    New judgments replace old ones; unknown queries are left out. Means are over queries with old
    judgments, if any. Raises BadValue without runs, without new judgments of such queries, and for a run
    that answers no judged query.
    """
    old = _judgments(subject, new.queries)
    subject = replace(subject, qrels=old)
    if not subject.runs:
        raise BadValue(f"{subject.name}: there are no rankings to score again")
    shared = np.flatnonzero(old.queries.codes(new.queries.strings) >= 0)
    if not len(shared):
        raise BadValue(
            f"{subject.name}: none of the {len(new):,} queries judged anew is one of its {len(old):,}"
        )
    known = subject.queries.ids if subject.queries is not None else _answered(subject)
    own = (known.codes(new.queries.strings) >= 0) | (old.queries.codes(new.queries.strings) >= 0)
    whole = subject.all_qrels or old
    both = merge_qrels(
        new.only(np.flatnonzero(own)).labelled(origin),
        whole if whole.origin is not None else whole.labelled("before"),
    )
    measures, codes = (measure, HOLE_AT_10), both.queries.codes(old.queries.strings)
    of_same_queries = both.only(np.sort(codes[codes >= 0]))
    rows = []
    for name, run in subject.runs.items():
        before, after = (
            scores_of(joined, measures) for joined in (subject.joins[name], Judged.of(run, of_same_queries))
        )
        if not before.answered.any():
            raise BadValue(f"{subject.name}: {name} answers none of the {len(old):,} judged queries")
        one, other = (scores.in_id_order(str(measure)) for scores in (before, after))
        low, high = (math.nan, math.nan) if measure.geometric else interval(other - one)
        rows.append(
            Relabelled(
                subject.name,
                name,
                str(measure),
                before.means()[str(HOLE_AT_10)],
                after.means()[str(HOLE_AT_10)],
                before.means()[str(measure)],
                after.means()[str(measure)],
                low,
                high,
            )
        )
    return rows, both


def labels_of_new_queries(together: Qrels, old: Qrels) -> int:
    """Return the number of judgments of queries without old judgments; 0 if there are no old judgments at all."""
    new = old.queries.codes(together.queries.strings)[together.query_of_row()] < 0
    return int(np.count_nonzero(new)) if len(old) else 0


def turned(rows: list[Relabelled]) -> list[tuple[str, str]]:
    """Return (better before, better after) for each two systems of a collection whose order new judgments reverse."""
    return [
        (one.system, other.system)
        if _place(one, one.before) < _place(other, other.before)
        else (other.system, one.system)
        for one, other in combinations(rows, 2)
        if one.subject == other.subject and (one.before - other.before) * (one.after - other.after) < 0
    ]


def _place(row: Relabelled, mean: float) -> float:
    return -(direction(row.measure) or 1) * mean


def _relabel_tables(rows: Sequence[Relabelled]) -> tuple[Table, ...]:
    if not rows:
        return ()
    lines = [["collection", "system", "Hole@10", "now", rows[0].measure, "now", "change", "95% interval"]]
    lines += [
        [
            row.subject,
            row.system,
            percent(row.hole_before),
            percent(row.hole_after),
            score(row.before),
            score(row.after),
            change(row.change),
            between(row.low, row.high, change),
        ]
        for row in sorted(rows, key=lambda row: (row.subject, _place(row, row.after)))
    ]
    pairs = "; ".join(f"{better} was above {worse}" for better, worse in turned(list(rows)))
    note = f"changed places: {pairs}" if pairs else "no two systems changed places"
    return (table_of(lines, notes=[note]),)


RELABELLINGS = ResultKind(
    "relabel",
    Relabelled,
    _relabel_tables,
    records=lambda row: [json_value(row) | {"change": json_value(row.change)}],
)
