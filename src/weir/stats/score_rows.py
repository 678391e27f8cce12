"""From scores to rows, the tables that show them, and the notes that stand beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weir.argument_types import checked
from weir.core.intents import IntentQrels
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.rounding import between, count, counted, one_or_more, score, share
from weir.core.scores import (
    GROUP_NOTES,
    GROUP_TABLES,
    SCORE_NOTES,
    SCORE_TABLES,
    GroupedScores,
    LabelUse,
    Note,
    Row,
    Scores,
)
from weir.core.strings import Float64
from weir.core.tables import Cell, Table, table_of
from weir.errors import BadValue, WeirError
from weir.measures.aliases import ALIKE
from weir.measures.evaluate import Conventions, parse_conventions, scores_of
from weir.measures.measure import Measure, best_of, direction, parse_measure, within_unit
from weir.stats.resampling import fewest, intervals, mean_bounds, or_nan

if TYPE_CHECKING:
    from weir.stats.calibration import GatedLabels


_EQUAL_SCORES = 0.1  # share of a ranking's documents that may tie with the next one
_FEW_GRADES = 3  # mean judgments of a query up to which nothing is made of grades that all differ
ENOUGH_JUDGED = 0.9
"""Judged@10 from which nothing is said."""
APART = 0.05
"""Difference of two judged rates from which both are named."""
FAR_DEEPER = 2
"""Times as many documents from which rankings of two systems are of another depth."""
LISTED_CELLS = 3
CUT_QUERIES, CUT_SHARE = 5, 0.9
"""Answered queries, and the share of them with equally many documents, from which rankings count as cut there."""


def score_notes(scores: Scores) -> tuple[Note, ...]:
    """Notes on unanswered and unjudged queries, ties, judged documents, grades and conventions."""
    return tuple(system_notes({"": scores}))


def system_notes(scores: Mapping[str, Scores]) -> list[Note]:
    """The same of several systems: what holds for one of them with its name, what holds for all once."""
    several, first = len(scores) > 1, next(iter(scores.values()), None)
    shared = [] if first is None else list(first.remarks)
    notes, conventions, rates = list[Note](), list[Note](), dict[str, float]()
    for one in scores.values():
        shared = [note for note in shared if note in one.remarks] if shared else []
    for name, one in scores.items():
        for note in (*_own_notes(one), *one.remarks):
            if note not in shared:
                notes.append(note.about(name) if several else note)
        if not math.isnan(one.judged_at_10):
            answered = int(np.count_nonzero(one.answered))
            rate = _rate_of_answers(one.judged_at_10, len(one.answered), answered, one.conventions)
            rates[name if several else ""] = rate
        if one.conventions != "default":
            conventions += map(Note, parse_conventions(one.conventions).sentences())
    depths = {name: one.origin.depth for name, one in scores.items() if one.origin.depth}
    deep = [] if first is None else depth_notes(depths, first.measures)
    return list(dict.fromkeys([*notes, *deep, *judged_notes(rates), *shared, *conventions]))


def row_notes(rows: Iterable[Row]) -> list[Note]:
    """Notes on the rows of a grid: queries that were not answered, and documents that nobody judged."""
    rows = [row for row in rows if not row.group and row.groups is None]
    unanswered = {(r.system, r.dataset): r for r in rows if r.answered < r.queries}
    worst = sorted(unanswered.values(), key=lambda r: r.answered / r.queries)
    notes = []
    if worst:
        cells = [f"{r.queries - r.answered:,} of {r.queries:,} ({r.system} on {r.dataset})" for r in worst]
        more = f" and {len(cells) - LISTED_CELLS} more" if len(cells) > LISTED_CELLS else ""
        conventions = {r.conventions for r in worst}
        outcome = "leave the mean" if all("missing=answered-only" in c for c in conventions) else "score 0"
        notes.append(
            Note(
                f"queries that were not answered {outcome}: {', '.join(cells[:LISTED_CELLS])}{more}",
                ", ".join(cells[LISTED_CELLS:]),
            )
        )
    strangers = [f"{r.system} on {r.dataset}" for r in rows if r.judged_at_10 == 0 and r.answered]
    strangers = list(dict.fromkeys(strangers))
    if strangers:
        more = f" and {len(strangers) - LISTED_CELLS} more" if len(strangers) > LISTED_CELLS else ""
        notes.append(
            Note(
                f"none of the first 10 documents is judged ({', '.join(strangers[:LISTED_CELLS])}{more}); judgments "
                "may name documents otherwise, such as whole ones where chunks are returned"
            )
        )
    several = len({(r.system, r.dataset) for r in rows}) > 1
    rates = {
        f"{r.system} on {r.dataset}" if several else "": rate
        for r in rows
        if (rate := answered_rate(r)) is not None
    }
    return [*notes, *judged_notes(rates, compared=False)]


def answered_rate(row: Row) -> float | None:
    """The share of a row's first 10 documents that are judged where something was returned, as Elastic's judge rate."""
    if row.judged_at_10 is None:
        return None
    return _rate_of_answers(row.judged_at_10, row.queries, row.answered, row.conventions)


def _rate_of_answers(rate: float, queries: int, answered: int, conventions: str) -> float:
    """The share of judged documents where something was returned, from a mean with 0 for queries without an answer.

    The mean itself where the conventions leave queries out of it.
    """
    of_all = "missing=" not in conventions and "empty=" not in conventions
    return rate * queries / answered if answered and of_all else rate


def judged_notes(rates: Mapping[str, float], compared: bool = True) -> list[Note]:
    """A note where fewer than 90% of the first 10 documents of a system are judged.

    rates: by system, "" for one; compared: whether they are of the same queries, so that rates far apart are told.
    """
    if not rates or min(rates.values()) >= ENOUGH_JUDGED:
        return []
    low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    of = f" ({low})" if low else ""
    few = f"as few as {share(rates[low])}" if len(rates) > 1 else share(rates[low])
    far = compared and rates[high] - rates[low] >= APART
    apart = f", {share(rates[high])} of {high}'s" if far else ""
    return [
        Note(
            f"{few} of the first 10 documents are judged{of}{apart}; unjudged ones count as not relevant",
            "so scores can be too low, most for systems unlike those whose documents were judged, which can decide "
            "between two systems; condensed(nDCG@10) leaves unjudged documents out",
        )
    ]


def grade_notes(qrels: Qrels | IntentQrels, measures: Iterable[Measure]) -> list[Note]:
    """Notes on grades with fractions, on what reads like scores, and on where judgments come from."""
    notes = []
    between = int(np.count_nonzero((qrels.grade > 0) & (qrels.grade < 1)))
    for measure in measures if between else ():
        if "rel" not in dict(measure.settings) and "rel" in measure.definition.defaults():
            notes.append(
                Note(
                    f"{between:,} of {len(qrels.grade):,} judgments have a grade above 0 and below 1, which "
                    f"{measure} does not take for relevant; {measure(rel=0.5)} does from 0.5 on"
                )
            )
            break
    if isinstance(qrels, Qrels):
        notes += exchange_notes(qrels)
    if isinstance(qrels, Qrels) and qrels.origin is not None:
        above = qrels.origin.summary(qrels.grade > 0)
        notes.append(Note(f"judgments by origin: {qrels.origin.summary()}; above 0: {above or 'none'}"))
    return notes


def exchange_notes(qrels: Qrels) -> list[Note]:
    """A note on judgments that read like the scores of a run, if they do."""
    if not qrels.fractional:
        return []
    query = qrels.query_of_row()
    order = np.lexsort((qrels.grade, query))
    same = (np.diff(query[order]) == 0) & (np.diff(qrels.grade[order]) == 0)
    if len(query) < _FEW_GRADES * max(len(qrels), 1) or same.mean() > _EQUAL_SCORES:
        return []
    nearly = "nearly " if same.any() else ""
    return [Note(f"{nearly}all grades of each query differ, as scores do; judgments come first, then runs")]


def scored(
    judgments: Qrels | IntentQrels,
    join: Callable[[Qrels | IntentQrels, Conventions], Judged],
    measures: tuple[Measure, ...],
    conventions: Conventions,
    gate: GatedLabels | None = None,
) -> Scores:
    """The scores of a ranking with what was seen while scoring.

    join: joins the ranking with judgments by conventions; gate: where a model's labels are among the judgments.
    """
    judged = join(judgments, conventions)
    scores = scores_of(judged, measures, conventions)
    if gate is not None:
        scores = gate.marked(scores, judged, lambda p: join(p, conventions), measures, conventions)
    elif isinstance(judgments, Qrels) and judgments.origin is not None:
        scores = replace(scores, labels=uncalibrated(judgments))
    return noted(scores, judged, judgments, measures)


def uncalibrated(qrels: Qrels) -> LabelUse | None:
    """A sentence on judgments of which some are a model's by their origin; None if there are none.

    Its share of places is unknown; the sentence has the share of the judgments.
    """
    if qrels.origin is None:
        return None
    rows = qrels.origin.of_models()
    if not rows.any():
        return None
    above = qrels.grade > 0
    among = f" ({share(float(rows[above].mean()))} of those above 0)" if above.any() else ""
    return LabelUse(
        f"{share(float(rows.mean()))} of the judgments{among} are a model's, not held against people's; give people's "
        "as the judgments and these by --model-labels",
        False,
    )


def noted(
    scores: Scores,
    judged: Judged,
    qrels: Qrels | IntentQrels | None,
    measures: tuple[Measure, ...],
) -> Scores:
    """The scores with remarks on grades, names of measures, rankings without judged documents, cut-offs that none
    reaches, and means that are others where scores compare as floats.

    judged: what was scored; qrels: its judgments, None where all grades are whole and of unknown origin.
    """
    remarks = [] if qrels is None else grade_notes(qrels, measures)
    remarks += [
        Note(f"{measure} {ALIKE[measure.name].format(measure.cutoff)}")
        for measure in measures
        if measure.name in ALIKE and measure.cutoff
    ]
    retrieved = judged.retrieved[judged.retrieved > 0]
    if len(retrieved) and not len(judged.rank):
        remarks.append(
            Note("no document that was returned is judged; both files may write identifiers otherwise")
        )
    empty = int(np.count_nonzero(judged.above_zero() == 0))
    if empty and "empty=left-out" not in scores.conventions:
        remarks.append(
            Note(
                f"{empty:,} of {len(judged):,} judged queries have no relevant document and score 0",
                "empty=left-out leaves them out",
            )
        )
    k, tied_there = judged.cut_in_ties()
    if tied_there and any(reaches(measure, k) for measure in measures):
        remarks.append(tied_cut_note(k, tied_there, known=False))
    if len(retrieved) >= CUT_QUERIES and (retrieved == retrieved.max()).mean() >= CUT_SHARE:
        remarks += shallow_notes(int(retrieved.max()), map(str, measures))
    if judged.float_rank is not None:
        conventions = parse_conventions(scores.conventions)
        if conventions.ties == "trec":  # else trec_eval 9 puts every ranking in the same order
            as_floats = scores_of(judged.by_floats(), measures, replace(conventions, ties="trec9"))
            means = zip(scores.measures, scores.mean_values(), as_floats.mean_values(), strict=True)
            remarks += [
                Note(
                    f"{measure} is {score(float(there))} under trec_eval 9, which compares scores as floats "
                    "(--ties trec9)"
                )
                for measure, here, there in means
                if score(float(here)) != score(float(there))
            ]
    return replace(scores, remarks=(*scores.remarks, *remarks)) if remarks else scores


def reaches(measure: Measure, k: int) -> bool:
    """Whether a measure depends on which documents of equal score are among the first k alone."""
    return measure.cutoff is None or measure.cutoff >= k


def tied_cut_note(k: int, queries: int, known: bool, searched: bool = False) -> Note:
    """The note on rankings cut at k within equal scores, with the remedy.

    known: whether equal scores are known to follow; searched: whether these were searched and are scored too.
    """
    where = f"the last document, at rank {k:,}, is tied in {counted(queries, 'query', 'queries')}"
    if searched:
        return Note(f"{where}, and so are others beyond it, which were searched now")
    follow = "and others beyond it are not seen" if known else "and others beyond it may have been cut"
    return Note(f"{where}, {follow}; search deeper, as with -k {2 * k}")


def shallow_notes(depth: int, measures: Iterable[str]) -> list[Note]:
    """A note on measures whose cut-off no ranking reaches, if there are any; depth: documents of the longest."""
    beyond = sorted(name for name in measures if (parse_measure(name).cutoff or 0) > depth)
    looks = one_or_more(len(beyond), "looks", "look")
    what = f"rankings have at most {counted(depth, 'document')}, and {', '.join(beyond)} {looks} no deeper"
    return [Note(what)] if beyond else []


def depth_notes(depths: Mapping[str, int], measures: Iterable[str]) -> list[Note]:
    """A note on measures of whole rankings where those of one system are much longer than another's.

    depths: documents of the longest ranking, by system.
    """
    by_depth = sorted(depths, key=depths.__getitem__)
    if not depths or depths[by_depth[-1]] < FAR_DEEPER * depths[by_depth[0]]:
        return []
    uncut = [name for name in measures if direction(name) and parsed_cutoff(name) is None]
    if not uncut:
        return []
    sides = " and ".join(
        f"{counted(depths[name], 'document')} of {name}" for name in (by_depth[0], by_depth[-1])
    )
    return [Note(f"{', '.join(uncut)}: looks at whole rankings, which hold at most {sides}")]


def parsed_cutoff(name: str) -> int | None:
    """The cut-off of the measure of a name, 0 for a name that is none of a measure here."""
    try:
        return parse_measure(name).cutoff
    except WeirError:
        return 0


def unanswered_note(missing: int, queries: int, conventions: str) -> Note:
    """A note on judged queries that are not answered, and what they are worth by the conventions."""
    outcome = "leave the mean" if "missing=answered-only" in conventions else "score 0"
    return Note(f"{missing:,} of {queries:,} judged queries are not answered and {outcome}")


def _own_notes(scores: Scores) -> list[Note]:
    """What became of queries without an answer or without judgments, and what the order of ties could change."""
    notes, missing = [], int(np.count_nonzero(~scores.answered))
    if missing:
        notes.append(unanswered_note(missing, len(scores.answered), scores.conventions))
    if scores.ignored:
        have = one_or_more(scores.ignored, "has no judgments and is", "have no judgments and are")
        queries = counted(scores.ignored, "query", "queries")
        notes.append(Note(f"{queries} of the run {have} ignored"))
    if scores.tied:
        notes.append(Note(f"{share(scores.tied)} of the documents returned share their score with another"))
    movable = scores.movable()
    ends = scores.tie_bounds() if movable.any() else np.empty((0, 2))
    for number in np.flatnonzero(movable).tolist():
        low, high = ends[number]
        mean = f", its mean between {score(low)} and {score(high)}"
        notes.append(
            Note(
                f"{scores.measures[number]}: {'up to ' if math.isnan(low) else ''}{movable[number]} of "
                f"{scores.counted()[number]} queries could score otherwise by the order of ties"
                f"{'' if math.isnan(low) else mean}",
                "ties=expected is the mean over all orders of ties, ties=bounds the worst and the best",
            )
        )
    return notes


@checked
def result_rows(scores: Scores, dataset: str, system: str) -> list[Row]:
    """One row for each measure: the mean over all queries that count and its 95% interval."""
    queries, answered = len(scores.queries), int(np.count_nonzero(scores.answered))
    counted, movable = scores.counted(), scores.movable()
    ends = scores.tie_bounds() if movable.any() else np.empty((0, 2))
    rows = []
    for number, (measure, i) in enumerate(zip(scores.measures, intervals(scores), strict=True)):
        row = Row(dataset, system, measure, i.mean, i.low, i.high, queries, answered, scores.conventions)
        if scores.conventions != "default" and counted[number] != queries:
            row = replace(row, counted=int(counted[number]))
        if movable[number]:
            lowest, highest = (None if math.isnan(end) else float(end) for end in ends[number])
            row = replace(row, movable=int(movable[number]), lowest=lowest, highest=highest)
        if not math.isnan(scores.judged_at_10):
            row = replace(row, judged_at_10=scores.judged_at_10)
        if scores.labels is not None:
            means = float(scores.people_means()[number]), scores.labels.share
            by_people, by_model = (None if math.isnan(v) else v for v in means)
            row = replace(row, labels=scores.labels.sentence, people=by_people, model_share=by_model)
        rows.append(row)
    return rows


def group_row(name: str, members: list[Row], values: list[Float64], geometric: bool = False) -> Row:
    """The row of a group of datasets: the unweighted mean of the members' means.

    members: one row for each member, of one system and measure; values: each member's per-query values
    in the order of Ids.tie_ranks, as `intervals` takes them; geometric: whether these are logarithms. The
    interval is over queries within each member; the order of the members changes nothing. Raises BadValue for
    no members or another number of values.
    """
    if not members or len(members) != len(values):
        raise BadValue(f"the group '{name}' has {len(members)} members and {len(values)} lists of values")
    by_name = sorted(range(len(members)), key=lambda i: members[i].dataset)
    defined = [values[i][~np.isnan(values[i])][None] for i in by_name]
    unit = np.array([within_unit(members[0].measure)])
    low, high = or_nan(mean_bounds(defined, unit=unit, geometric=geometric)[0].tolist())
    first = members[0]
    mean = math.fsum(m.mean for m in members) / len(members)
    queries, answered = sum(m.queries for m in members), sum(m.answered for m in members)
    row = Row(name, first.system, first.measure, mean, low, high, queries, answered)
    rates = [m.judged_at_10 for m in members if m.judged_at_10 is not None]
    return replace(row, judged_at_10=math.fsum(rates) / len(rates)) if len(rates) == len(members) else row


def rows_by_group(grouped: GroupedScores, dataset: str, system: str) -> list[Row]:
    """Rows of each group, then of the macro mean, then of all queries, each with its 95% interval.

    The macro mean is the unweighted mean of the groups' means, and its interval is over queries within each group; a
    group where a measure is undefined throughout is left out of it. The mean over all queries counts those without a
    group too.
    """
    parts = {label: result_rows(part, dataset, system) for label, part in grouped.items()}
    whole = result_rows(grouped.whole, dataset, system)
    rows = [replace(row, group=label) for label, part in parts.items() for row in part]
    for number, measure in enumerate(grouped.whole.measures):
        members, values = [], []
        for label, part in grouped.items():
            if not np.isnan(part.of(measure)).all():
                members.append(replace(parts[label][number], dataset=label))
                values.append(part.in_id_order(measure))
        if members:
            macro = group_row(dataset, members, values, measure in grouped.whole.geometric)
            rows.append(replace(macro, conventions=whole[number].conventions, groups=len(members)))
    return rows + whole


# ----------
# Rows as tables: a line for each dataset, system and group of queries.

JUDGED = "Judged@10"
BEST = "* the best of its dataset"
"""What the star behind a mean says; it is no verdict."""


def long_table(rows: Sequence[Row]) -> Table:
    """A line for each dataset, system and group of queries, a column for each measure.

    Each value is a mean with its 95% interval, and with ties=bounds the means of the worst and the best
    order of ties, * behind the best of several systems; then follow, where a model's labels count, the means by
    people's alone and the model's share of the judged places among the first 10, then Judged@10, where it is no
    measure of the rows already, and how many of the judged queries were answered.
    """
    by_line: dict[tuple[str, str, str], dict[str, Row]] = {}
    means: dict[tuple[str, str, str], list[float]] = {}
    measures, people, filled = dict[str, None](), dict[str, None](), set[str]()
    for row in rows:
        group = row.group or ("" if row.groups is None else f"macro mean of {row.groups} groups")
        by_line.setdefault((row.dataset, row.system, group), {})[row.measure] = row
        means.setdefault((row.dataset, group, row.measure), []).append(row.mean)
        measures[row.measure] = None
        if row.people is not None:
            people[row.measure] = None
        for key, value in (("dataset", row.dataset), ("system", row.system), ("group", row.group)):
            if value:
                filled.add(key)
    judged = shows_judged(rows)
    keys = [key for key in ("dataset", "system", "group") if key in filled]
    if "group" not in filled:
        keys = ["dataset", "system"]
    lines = []
    for (dataset, system, group), line in by_line.items():
        first = next(iter(line.values()))
        names = {"dataset": dataset, "system": first.title or system, "group": group or "all queries"}
        cells = [Cell(names[key]) for key in keys]
        for measure in measures:
            if measure not in line:
                cells.append(Cell(""))
                continue
            row, of_systems = line[measure], means[dataset, group, measure]
            more = between(row.low, row.high)
            if "ties=bounds" in row.conventions:
                lowest, highest = (row.mean if end is None else end for end in (row.lowest, row.highest))
                more += f" ties {score(lowest)}..{score(highest)}"
            is_best = len(of_systems) > 1 and row.mean == best_of(measure, of_systems)
            cells.append(Cell(score(row.mean), is_best, more=more))
        for measure in people:
            mean = line[measure].people if measure in line else None
            cells.append(Cell("-" if mean is None else score(mean)))
        if people:
            cells.append(Cell("-" if first.model_share is None else share(first.model_share)))
        if judged:
            cells.append(Cell("-" if first.judged_at_10 is None else score(first.judged_at_10)))
        lines.append((*cells, Cell(f"{first.answered}/{first.queries}")))
    header = [*keys, *measures]
    if people:
        header += [*(f"{measure} by people" for measure in people), "labels of the model"]
    header += [*[JUDGED] * judged, "answered"]
    starred = any(cell.best for cells in lines for cell in cells)
    star = f"{BEST}; weir compare tells which differences are more than chance"
    notes = (*((star,) if starred else ()), *interval_notes(rows), *label_notes(rows))
    return Table("", tuple(header), tuple(lines), notes, keys=len(keys))


def interval_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say why rows have no interval, in one sentence for all; () where each has one."""
    reasons = dict.fromkeys(_lacking(row) for row in rows if math.isnan(row.low) and not math.isnan(row.mean))
    return (f"no interval: {' or '.join(reasons)}",) if reasons else ()


def _lacking(row: Row) -> str:
    if (row.queries if row.counted is None else row.counted) < fewest():
        return f"fewer than {fewest()} queries"
    return "values that are all equal" if row.groups is None else "a group of one query"


def label_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """What has to be said of a model's labels, once for all rows of which it is so."""
    labels, datasets = dict[tuple[str, str], None](), set[str]()
    for row in rows:
        datasets.add(row.dataset)
        if row.labels:
            labels[row.dataset, row.labels] = None
    if len(datasets) < 2:
        return tuple([f"labels: {text}" for _, text in labels])
    return tuple([f"labels: {dataset}: {text}" for dataset, text in labels])


def shows_judged(rows: Sequence[Row]) -> bool:
    """Whether Judged@10 is known and stands beside the measures, as it is none of them."""
    rated = False
    for row in rows:
        if row.measure == JUDGED:
            return False
        rated = rated or row.judged_at_10 is not None
    return rated


def score_tables(scores: Scores) -> tuple[Table, ...]:
    """A line for each measure: mean, 95% interval over queries, and over how many."""
    rows, lines = result_rows(scores, "", ""), list[list[str]]()
    by_people = any(row.people is not None for row in rows)
    for row, queries in zip(rows, scores.counted().tolist(), strict=True):
        ends = "-" if math.isnan(row.low) else f"{score(row.low)} to {score(row.high)}"
        lines.append([row.measure, score(row.mean), ends, count(queries)])
        if by_people:
            lines[-1].append("-" if row.people is None else score(row.people))
    header = ["measure", "mean", "95% interval", "queries", *["by people"] * by_people]
    return (table_of([header, *lines], right=None, notes=(*interval_notes(rows), *label_notes(rows))),)


def group_tables(grouped: GroupedScores) -> tuple[Table, ...]:
    """A line for each group, the macro mean and all queries, a column for each measure."""
    return (long_table(rows_by_group(grouped, "", "")),)


def group_notes(grouped: GroupedScores) -> tuple[Note, ...]:
    """Notes on groups that are too small for an interval, and on queries without a group."""
    small, notes = [label for label, part in grouped.items() if len(part.queries) < fewest()], list[Note]()
    if small:
        names = ", ".join(small[:5]) + (", ..." if len(small) > 5 else "")
        groups = f"{len(small)} group{'s have' if len(small) > 1 else ' has'}"
        notes.append(Note(f"{groups} fewer than {fewest()} queries, too few for an interval: {names}"))
    if grouped.ungrouped:
        notes.append(
            Note(
                f"{counted(grouped.ungrouped, 'query has', 'queries have')} no group and count"
                f"{'s' * (grouped.ungrouped == 1)} among all queries alone"
            )
        )
    return tuple(notes)


SCORE_TABLES.register(score_tables)
SCORE_NOTES.register(score_notes)
GROUP_TABLES.register(group_tables)
GROUP_NOTES.register(group_notes)
