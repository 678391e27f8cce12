"""Rows of result tables, and the notes below them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from weir.argument_types import checked
from weir.core.intents import IntentQrels
from weir.core.judged import OWN_DEPTH, Judged, barred_said
from weir.core.origin import other_algorithms
from weir.core.qrels import Qrels
from weir.core.rank_order import ORDER_COUNTS
from weir.core.roles import scores_as_grades
from weir.core.rounding import between, count, counted, one_or_more, part_of, percent, score
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
    known_mean,
)
from weir.core.short_names import look_alike_notes
from weir.core.strings import Float64, Int32
from weir.core.tables import Cell, Table, table_of
from weir.errors import BadValue, WeirError
from weir.measures.aliases import ALIKE
from weir.measures.evaluate import Conventions, parse_conventions, scores_of
from weir.measures.measure import (
    Measure,
    direction,
    is_best,
    less_note,
    must_stay_zero,
    parse_measure,
    within_unit,
)
from weir.stats.resampling import LEVEL, MEAN_INTERVALS, fewest, intervals, mean_bounds, or_nan, share_below

if TYPE_CHECKING:
    from weir.stats.calibration import GatedLabels


_MANY_TIED = 0.1  # share of tied documents that is noted even if no printed mean depends on their order
ENOUGH_JUDGED = 0.9
"""Judged@10 from which there is no note."""
FEW_JUDGED, MANY_TIMES = 0.01, 10
"""Judged rate below which a system is noted as a stranger to the pool, if another's is so many times as high."""
TIES_MATTER = 0.01
"""Least change of a mean by the order of ties that is noted of a results folder."""
APART = 0.05
"""Both judged rates are named if they differ by this much."""
FAR_DEEPER = 2
"""Ratio of the depths of two systems' rankings from which a note warns."""
LISTED_CELLS = 3
LITTLE_JUDGED, MANY_UNANSWERED = 0.2, 0.1
"""Shares from which a notebook shows a note unfolded: below it of the first 10 documents, from it of the queries."""
SELF_MATCHES = 0.5
"""Share of rankings that begin with their own query from which a note says so."""
CUT_QUERIES, CUT_SHARE = 5, 0.9
"""Rankings count as cut if at least so many queries, and this share of them, have equally many documents."""


def _score_notes(scores: Scores) -> tuple[Note, ...]:
    return tuple(system_notes({"": scores}))


def system_notes(scores: Mapping[str, Scores]) -> list[Note]:
    """Return the notes on several systems' scores; a note on some systems begins with their names."""
    several, first = len(scores) > 1, next(iter(scores.values()), None)
    shared = [] if first is None else list(first.remarks)
    conventions, rates = list[Note](), dict[str, float]()
    for one in scores.values():
        shared = [note for note in shared if note in one.remarks] if shared else []
    alike = dict[Note, list[str]]()
    for name, one in scores.items():
        for note in (*_own_notes(one), *one.remarks):
            if note not in shared:
                alike.setdefault(note, []).append(name)
        rate = _rate_of_answers(one)
        if not math.isnan(rate):
            rates[name if several else ""] = rate
        if one.conventions != "default":
            said = () if one.answered.all() else ("missing=",)  # by the note on unanswered queries
            sentences = parse_conventions(one.conventions).sentences()
            conventions += [Note(sentence) for sentence in sentences if not sentence.startswith(said)]
    notes = [
        note.about("each system" if len(names) == len(scores) > 2 else _few(names)) if several else note
        for note, names in alike.items()
    ]
    partial = any(not one.answered.all() for one in scores.values())
    judged = _judged_notes(rates, ANSWERED * partial)
    between = _notes_between(scores) if several else ()
    return list(dict.fromkeys([*notes, *between, *judged, *shared, *conventions]))


def _notes_between(scores: Mapping[str, Scores]) -> list[Note]:
    made = {
        name: {f"measure {m}": number for m, number in one.origin.algorithms.items() if m in one.measures}
        for name, one in scores.items()
    }
    apart = map(Note, [*look_alike_notes(scores), *other_algorithms(made)])
    return [*_disjoint_notes(scores), *_other_texts_notes(scores), *apart, *deeper_notes(scores)]


def _few(names: Sequence[str]) -> str:
    more = [f"{len(names) - LISTED_CELLS} more"] * (len(names) > LISTED_CELLS)
    *first, last = [*names[:LISTED_CELLS], *more]
    return f"{', '.join(first)} and {last}" if first else last


def _disjoint_notes(scores: Mapping[str, Scores]) -> list[Note]:
    partly = {name: one for name, one in scores.items() if not one.answered.all()}
    apart = []
    for (name, one), (other_name, other) in combinations(partly.items(), 2):
        code = other.queries.codes(one.queries.strings)
        if not (one.answered & (code >= 0) & other.answered[code]).any():
            apart.append(f"{name} and {other_name}")
    if not apart:
        return []
    more = f", and {len(apart) - 1} more pairs" if len(apart) > 1 else ""
    what = f"{apart[0]}{more} answer no query in common: what tells them apart is which queries they answer"
    return [Note(what, "; ".join(apart[1:]))]


def _other_texts_notes(scores: Mapping[str, Scores]) -> list[Note]:
    first: dict[tuple[str, str], tuple[str, str]] = {}
    notes = []
    for name, one in scores.items():
        of = one.origin
        other, texts = first.setdefault((of.collection, of.split), (name, of.texts)) if of.texts else ("", "")
        if texts != of.texts:
            what = "ranked other documents, or other queries or candidates, of one collection"
            notes.append(Note(f"{other} and {name} {what}"))
    return notes


def row_notes(rows: Iterable[Row]) -> list[Note]:
    """Return notes on unanswered queries, wide ties and few judged documents; rows of groups are ignored."""
    rows = [row for row in rows if not row.group and row.groups is None]
    unanswered = {(r.system, r.dataset): r for r in rows if r.answered < r.queries}
    worst = sorted(unanswered.values(), key=lambda r: r.answered / r.queries)
    notes = []
    if worst:
        cells = [f"{r.queries - r.answered:,} of {r.queries:,} ({r.called} on {r.dataset})" for r in worst]
        more = f" and {len(cells) - LISTED_CELLS} more" if len(cells) > LISTED_CELLS else ""
        conventions = {r.conventions for r in worst}
        outcome = unanswered_outcome(conventions)
        notes.append(
            Note(
                f"queries that were not answered {outcome}: {', '.join(cells[:LISTED_CELLS])}{more}",
                ", ".join(cells[LISTED_CELLS:]),
                decisive=worst[0].queries - worst[0].answered >= MANY_UNANSWERED * worst[0].queries,
            )
        )
    strangers = [f"{r.called} on {r.dataset}" for r in rows if r.judged_at_10 == 0 and r.answered]
    strangers = list(dict.fromkeys(strangers))
    if strangers:
        more = f" and {len(strangers) - LISTED_CELLS} more" if len(strangers) > LISTED_CELLS else ""
        notes.append(
            Note(
                f"none of the first 10 documents is judged ({', '.join(strangers[:LISTED_CELLS])}{more}); judgments "
                "may name documents otherwise, such as whole ones where chunks are returned (weir data convert RUN OUT "
                "--collapse '#')",
                decisive=True,
            )
        )
    several = len({(r.system, r.dataset) for r in rows}) > 1
    for row in rows:
        if must_stay_zero(row.measure) and not math.isnan(row.mean):
            queries = row.queries if row.counted is None else row.counted
            note = never_note(row.measure, round(row.mean * queries), queries)
            notes.append(note.about(f"{row.called} on {row.dataset}") if several else note)
    notes += wide_tie_notes(rows, several)
    rates = {
        f"{r.called} on {r.dataset}" if several else "": rate
        for r in rows
        if (rate := answered_rate(r)) is not None
    }
    partial = any(r.answered < r.queries for r in rows)
    whose = " of the queries in the mean" if any(map(_with_unanswered, rows)) else ANSWERED * partial
    return [*notes, *_judged_notes(rates, whose, compared=False)]


def answered_rate(row: Row) -> float | None:
    """Return the mean share of judged documents in answered queries' top 10; None if unknown."""
    if row.judged_at_10 is None or not row.answered:
        return None
    if "missing=" in row.conventions or _with_unanswered(row):
        return row.judged_at_10
    return row.judged_at_10 * row.queries / row.answered


def _with_unanswered(row: Row) -> bool:
    # The row does not say how many of the queries with relevant documents were answered.
    unknown = "empty=" in row.conventions and "missing=" not in row.conventions
    return unknown and row.answered < row.queries


def _rate_of_answers(scores: Scores) -> float:
    if scores.judged is not None:
        return known_mean(scores.judged[scores.answered])
    counted = (scores.conventions == "default") | ~np.isnan(scores.values).all(axis=0)
    answered = int(np.count_nonzero(counted & scores.answered))
    return scores.judged_at_10 * int(np.count_nonzero(counted)) / answered if answered else math.nan


def _judged_notes(rates: Mapping[str, float], whose: str, compared: bool = True) -> list[Note]:
    if not rates or min(rates.values()) >= ENOUGH_JUDGED:
        return []
    low, high = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    of = f" ({low})" if low else ""
    few = f"as few as {percent(rates[low])}" if len(rates) > 1 else percent(rates[low])
    far = compared and rates[high] - rates[low] >= APART
    apart = f", {percent(rates[high])} of {high}'s" if far else ""
    if compared and low != high and rates[low] < FEW_JUDGED and rates[high] >= MANY_TIMES * rates[low]:
        apart += f"; {low} may be a ranking of another collection, or name documents otherwise"
    return [
        Note(
            f"{few} of the first 10 documents{whose} are judged{of}{apart}; unjudged ones count as not relevant",
            "so scores can be too low, most for systems unlike those whose documents were judged, which can decide "
            "between two systems; condensed(nDCG@10) leaves unjudged documents out",
            decisive=rates[low] < LITTLE_JUDGED,
        )
    ]


def grade_notes(qrels: Qrels | IntentQrels, measures: Iterable[Measure]) -> list[Note]:
    """Return notes on fractional grades, grades that look like scores, and the origin of judgments."""
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
        above = qrels.origin.counts_in_words(qrels.grade > 0)
        notes.append(
            Note(f"judgments by origin: {qrels.origin.counts_in_words()}; above 0: {above or 'none'}")
        )
    return notes


def exchange_notes(qrels: Qrels) -> list[Note]:
    """Return one note if the judgments look like a run's scores, else []."""
    clause = scores_as_grades(qrels.grade, qrels.ptr)
    return [Note(f"{clause}, as scores do; judgments come first, then runs")] * bool(clause)


def scored(
    judgments: Qrels | IntentQrels,
    join: Callable[[Qrels | IntentQrels, Conventions], Judged],
    measures: tuple[Measure, ...],
    conventions: Conventions,
    gate: GatedLabels | None = None,
) -> Scores:
    """Return a ranking's scores, with notes on judgments, cut-offs and ties.

    join: matches the ranking with judgments, by conventions.
    gate: calibrates a model's labels, which otherwise count as uncalibrated.
    """
    judged = join(judgments, conventions)
    scores = scores_of(judged, measures, conventions)
    if gate is not None:
        scores = gate.marked(scores, judged, lambda p: join(p, conventions), measures, conventions)
    elif isinstance(judgments, Qrels) and judgments.origin is not None:
        scores = replace(scores, labels=uncalibrated(judgments))
    return noted(scores, judged, judgments, measures)


def uncalibrated(qrels: Qrels) -> LabelUse | None:
    """Return a `LabelUse` with a warning if a model made some judgments, else None."""
    if qrels.origin is None:
        return None
    rows = qrels.origin.of_models()
    if not rows.any():
        return None
    above = qrels.grade > 0
    among = f" ({percent(float(rows[above].mean()))} of those above 0)" if above.any() else ""
    return LabelUse(
        f"{percent(float(rows.mean()))} of the judgments{among} are a model's, not held against people's; give "
        "people's as the judgments and these by `labels`",
        False,
    )


NOTHING_JUDGED = Note(
    "no document that was returned is judged; both files may write identifiers otherwise", decisive=True
)


SHARES_OF_RETURNED = ("SetP", "SetF", "SetAP", "SetR_cap")
"""Measures that divide by the number of documents returned."""


def without_relevant(queries: int, judged: int) -> str:
    """Return a sentence that so many judged queries have no relevant document and score 0."""
    return f"{queries:,} of {judged:,} judged queries have no relevant document and score 0"


def own_counts(judged: Judged) -> tuple[int, int]:
    """Return the numbers of rankings that begin with the query's own document, and that have it in the top
    OWN_DEPTH.

    The second is 0 if an own document is judged relevant.
    """
    qrels, near = judged.judgments, judged.own_near
    meant = near and not (isinstance(qrels, Qrels) and not qrels.own_relevant)
    return judged.own_first, 0 if meant else near


def own_documents_said(first: int, near: int, rankings: int) -> str:
    """Return a sentence on rankings that begin with their query's own document, if many, or have it near the
    top; "" if neither.

    first, near: from `own_counts`.
    """
    if first > 1 and first >= SELF_MATCHES * rankings:
        return f"{first:,} of {rankings:,} rankings begin with the query itself"
    if not near:
        return ""
    have = part_of(near, rankings, "rankings", "has", "have")
    return f"{have} the query's own document among the first {OWN_DEPTH}"


def _alike_notes(measures: Iterable[Measure]) -> Iterator[Note]:
    cut = [measure for measure in measures if measure.cutoff]
    for name, meaning in ALIKE.items():
        if of := [one for one in cut if one.name == name]:
            called = f"each of {', '.join(map(str, of))}" if len(of) > 1 else str(of[0])
            yield Note(f"{called} {meaning.format(of[0].cutoff if len(of) == 1 else 'k')}")


def noted(
    scores: Scores,
    judged: Judged,
    qrels: Qrels | IntentQrels | None,
    measures: tuple[Measure, ...],
) -> Scores:
    """Return the scores with notes on grades, measures, unjudged rankings, suspicious orders, cut-offs and
    ties.

    qrels: None if all grades are whole and of unknown origin.
    """
    remarks = [] if qrels is None else grade_notes(qrels, measures)
    remarks += _alike_notes(measures)
    best = judged.ideal.max(initial=0)
    for measure in measures:
        least = dict(measure.settings).get("rel")
        if isinstance(least, (int, float)) and least > best > 0:
            remarks.append(Note(f"{measure} is 0 by construction: the highest grade is {best:g}"))
    unanswered = len(judged) - int(np.count_nonzero(judged.answered))
    if unanswered and LEFT_OUT not in scores.conventions:
        shares = [str(measure) for measure in measures if measure.name in SHARES_OF_RETURNED]
        if shares:
            where = f"of {counted(unanswered, 'query', 'queries')} with nothing returned"
            said = f"{', '.join(shares)} {where}: a share of nothing, taken as 0, as trec_eval does"
            remarks.append(Note(said, "`conventions='missing=answered-only'` leaves such queries out"))
    if judged.doubts:
        remarks.append(Note(f"{'; '.join(judged.doubts)}; {ORDER_COUNTS}", decisive=True))
    retrieved = judged.retrieved[judged.retrieved > 0]
    if len(retrieved) and not len(judged.rank):
        remarks.append(NOTHING_JUDGED)
    if own := own_documents_said(*own_counts(judged), len(retrieved) + judged.ignored):
        advice = "a document with the identifier of the query counts like any other; BEIR leaves it out"
        remarks.append(Note(f"{own}; `conventions='self_matches=drop'` leaves it out", advice))
    if judged.without_relevant and "empty=left-out" not in scores.conventions:
        said = without_relevant(judged.without_relevant, len(judged))
        remarks.append(Note(said, "`conventions='empty=left-out'` leaves them out"))
    k, tied_there = judged.cut_in_ties()
    if tied_there and any(reaches(measure, k) for measure in measures):
        remarks.append(tied_cut_note(k, tied_there, known=False))
    documents, of = judged.barred
    if documents:
        remarks.append(Note(barred_said(documents, of)))
    if cut := cut_depth(retrieved):
        remarks += shallow_notes(cut, map(str, measures), ", once barred ones are removed" * (documents > 0))
    if judged.float_rank is not None:
        conventions = parse_conventions(scores.conventions)
        if conventions.ties == "trec":  # else trec_eval 9 puts every ranking in the same order
            as_floats = scores_of(judged.by_floats(), measures, replace(conventions, ties="trec9"))
            means = zip(scores.measures, scores.mean_values(), as_floats.mean_values(), strict=True)
            remarks += [
                Note(
                    f"{measure} is {score(float(there))} under trec_eval 9, which compares scores as floats "
                    "(ties=trec9)"
                )
                for measure, here, there in means
                if score(float(here)) != score(float(there))
            ]
    return replace(scores, remarks=(*scores.remarks, *remarks)) if remarks else scores


def reaches(measure: Measure, k: int) -> bool:
    """Return True if the measure reads rank k."""
    return measure.cutoff is None or measure.cutoff >= k


def tied_cut_note(k: int, queries: int, known: bool, searched: bool = False) -> Note:
    """Return a note that `queries` rankings end, at rank k, among documents of equal score.

    known: documents beyond the cut certainly have the same score.
    searched: they were searched too.
    """
    where = f"the last document, at rank {k:,}, is tied in {counted(queries, 'query', 'queries')}"
    if searched:
        return Note(f"{where}, and so are others beyond it, which were searched now")
    follow = "and others beyond it are not seen" if known else "and others beyond it may have been cut"
    return Note(f"{where}, {follow}; search deeper, such as to rank {2 * k:,}")


def cut_depth(retrieved: Int32) -> int | None:
    """Return the length at which rankings seem cut: the longest, if CUT_SHARE of the nonempty ones have it;
    else None.

    None also for fewer than CUT_QUERIES nonempty rankings. retrieved: length of each ranking.
    """
    lengths = retrieved[retrieved > 0]
    if len(lengths) < CUT_QUERIES or (lengths == lengths.max()).mean() < CUT_SHARE:
        return None
    return int(lengths.max())


def shallow_notes(depth: int, measures: Iterable[str], once: str = "") -> list[Note]:
    """Return one note on the measures whose cut-off exceeds the longest ranking's `depth`; [] if none.

    once: words on documents removed from the rankings.
    """
    beyond = sorted(name for name in measures if (parse_measure(name).cutoff or 0) > depth)
    looks = one_or_more(len(beyond), "looks", "look")
    what = (
        f"rankings have at most {counted(depth, 'document')}{once}, and {', '.join(beyond)} {looks} no deeper"
    )
    return [Note(what)] if beyond else []


def depth_notes(
    depths: Mapping[str, int], measured: Mapping[str, Collection[str]], whole: Collection[str] = ()
) -> list[Note]:
    """Return notes on measures that read deeper than the shortest ranking, if another system's are much
    longer.

    depths: {system: length of its longest ranking}.
    measured: {measure: systems that have it}.
    whole: systems whose rankings have every relevant document.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for measure, systems in measured.items():
        alike.setdefault(tuple(name for name in depths if name in systems), []).append(measure)
    return [
        note
        for systems, measures in alike.items()
        for note in _depth_notes({name: depths[name] for name in systems}, measures, whole)
    ]


def deeper_notes(scores: Mapping[str, Scores], measures: Iterable[str] = ()) -> list[Note]:
    """Return `depth_notes` on these scores, by default for all measures."""
    depths = {name: one.origin.depth for name, one in scores.items() if one.origin.depth}
    whole = {name for name, one in scores.items() if one.origin.whole}
    names = tuple(measures) or dict.fromkeys(m for one in scores.values() for m in one.measures)
    return depth_notes(
        depths, {m: [n for n, one in scores.items() if m in one.measures] for m in names}, whole
    )


def ranked_notes(joins: Mapping[str, Judged], measures: Sequence[Measure]) -> list[Note]:
    """Return notes on rankings that leave queries unanswered or differ much in depth.

    joins: {system: its ranking matched with judgments}.
    """
    scores = {name: scores_of(joined, tuple(measures)) for name, joined in joins.items()}
    missing = {name: int(np.count_nonzero(~one.answered)) for name, one in scores.items()}
    unanswered = [
        unanswered_note(missing[name], len(one.answered), one.conventions).about(name)
        for name, one in scores.items()
        if missing[name]
    ]
    return [*unanswered, *deeper_notes(scores)]


def _depth_notes(depths: Mapping[str, int], measures: Iterable[str], whole: Collection[str]) -> list[Note]:
    by_depth = sorted(depths, key=lambda name: (name in whole, depths[name]))
    longest = max(depths, key=depths.__getitem__, default="")
    if not depths or by_depth[0] in whole or depths[longest] < FAR_DEEPER * depths[by_depth[0]]:
        return []
    cutoffs = {name: _parsed_cutoff(name) for name in measures if direction(name)}
    first, last = (f"{counted(depths[name], 'document')} of {name}" for name in (by_depth[0], longest))
    least, notes = depths[by_depth[0]], list[Note]()
    if whole := [name for name, cutoff in cutoffs.items() if cutoff is None]:
        look = one_or_more(len(whole), "looks", "look")
        notes.append(
            Note(f"{', '.join(whole)} {look} at whole rankings, which hold at most {first} and {last}")
        )
    if beyond := [name for name, cutoff in cutoffs.items() if cutoff is not None and cutoff > least]:
        look = one_or_more(len(beyond), "looks", "look")
        notes.append(Note(f"{', '.join(beyond)} {look} deeper than the {first}, beside {last}"))
    return notes


def _parsed_cutoff(name: str) -> int | None:
    try:
        return parse_measure(name).cutoff
    except WeirError:
        return 0


ANSWERED = " of answered queries"
LEFT_OUT = "missing=answered-only"
"""Convention by which unanswered queries are left out of the mean."""


def unanswered_outcome(conventions: Iterable[str]) -> str:
    """Return how unanswered queries count: "leave the mean" if all conventions leave them out, else "score
    0", or both.
    """
    by_each = list(conventions)
    if all(LEFT_OUT in one for one in by_each):
        return "leave the mean"
    return "score 0, or leave the mean" if any("empty=" in one for one in by_each) else "score 0"


def unanswered_note(missing: int, queries: int, conventions: str) -> Note:
    """Return a note that `missing` judged queries are unanswered, and how they count; decisive from a share
    of MANY_UNANSWERED.
    """
    convention = f" ({LEFT_OUT})" * (LEFT_OUT in conventions)
    return Note(
        f"{missing:,} of {queries:,} judged queries are not answered and "
        f"{unanswered_outcome([conventions])}{convention}",
        decisive=missing >= MANY_UNANSWERED * queries,
    )


def _own_notes(scores: Scores) -> list[Note]:
    notes, missing = [], int(np.count_nonzero(~scores.answered))
    if missing:
        notes.append(unanswered_note(missing, len(scores.answered), scores.conventions))
    if scores.ignored:
        have = one_or_more(scores.ignored, "has no judgments and is", "have no judgments and are")
        queries = counted(scores.ignored, "query", "queries")
        notes.append(Note(f"{queries} of the run {have} ignored"))
    for measure, values in zip(scores.measures, scores.values, strict=True):
        if must_stay_zero(measure):
            notes.append(
                never_note(measure, int(np.count_nonzero(values > 0)), int(np.sum(~np.isnan(values))))
            )
    rows = result_rows(scores, "", "") if scores.movable().any() else ()
    return [*notes, *_tie_notes(rows, scores.tied or 0.0)]


def never_note(measure: str, failed: int, queries: int) -> Note:
    """Return a note on the number of queries with a failure, such as a leak, and an upper bound of their
    share.
    """
    share = "" if not failed else f", {percent(failed / queries)}"
    return Note(
        f"{measure}: {failed:,} of {counted(queries, 'query', 'queries')}{share}: below "
        f"{percent(share_below(failed, queries))} at {percent(LEVEL, 0)}",
        "the largest share of all such queries with which so few are seen once in 20 times (Clopper and Pearson)",
    )


_RANGES_SHOWN = 6
"""Ranges of means over orders of ties that a note lists."""


def _tie_notes(
    rows: Iterable[Row], tied: float = 0.0, of: Mapping[str, str] = MappingProxyType({})
) -> list[Note]:
    rows = [row for row in rows if row.movable]
    moved = {row: _tie_range(row) for row in rows}
    shown = {row: there for row, there in moved.items() if there}
    share = f"{percent(tied)} of the documents returned share their score with another" if tied else ""
    remedy = "ties=expected is the mean over all orders of ties, ties=bounds the worst and the best"
    if not shown:
        return [Note(share, f"{remedy}; no printed mean changes" if rows else "")] * (tied >= _MANY_TIED)
    most = max(shown, key=lambda row: row.movable)
    queries = most.queries if most.counted is None else most.counted
    whole = f"{'up to ' if len(shown) > 1 else ''}{most.movable} of {counted(queries, 'query', 'queries')}"
    first = [f"{row.measure} {there}{of.get(row.measure, '')}" for row, there in shown.items()]
    more = len(first) - _RANGES_SHOWN
    ranges = ", ".join(first[:_RANGES_SHOWN]) + f", and {counted(more, 'more measure')}" * (more > 0)
    text = f"{whole} could score otherwise by the order of ties: {ranges}"
    return [Note(f"{share}, and {text}" if share else text, remedy)]


def _tie_range(row: Row) -> str:
    ends = _tie_ends(row)
    if ends is None:
        return "(its range over their orders is not computed)"
    low, high = map(score, ends)
    return "" if low == high else f"{low} to {high}"


def _tie_ends(row: Row) -> tuple[float, float] | None:
    return None if row.lowest is None or row.highest is None else (row.lowest, row.highest)


def wide_tie_notes(rows: Sequence[Row], named: bool = False) -> list[Note]:
    """Return one note on the means that the order of ties can change by TIES_MATTER or more; [] if none.

    named: name the system and dataset.
    """
    by_measure: dict[str, list[tuple[float, Row]]] = {}
    for row in rows:
        ends = _tie_ends(row)
        width = math.inf if ends is None else ends[1] - ends[0]
        if row.movable and width >= TIES_MATTER:
            by_measure.setdefault(row.measure, []).append((width, row))
    most, of = list[Row](), dict[str, str]()
    for measure, moved in by_measure.items():
        row = max(moved, key=lambda one: one[0])[1]
        more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
        of |= {measure: f" ({row.called} on {row.dataset}{more})"} if named else {}
        most.append(row)
    return _tie_notes(most, of=of)


@checked
def result_rows(scores: Scores, dataset: str, system: str) -> list[Row]:
    """Return a row for each measure: mean, 95% interval and, if known, range over ties, judged share and mean
    by people's labels.
    """
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
    """Return the row of a group of datasets: the unweighted mean of its members' means, with its 95%
    interval.

    members: a row of each, of one system and measure.
    values: of each member's queries, resampled within members.
    geometric: values are logarithms.

    Raises BadValue for no members or another number of values.
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
    row = Row(name, first.system, first.measure, mean, low, high, queries, answered, title=first.title)
    rates = [m.judged_at_10 for m in members if m.judged_at_10 is not None]
    return replace(row, judged_at_10=math.fsum(rates) / len(rates)) if len(rates) == len(members) else row


def rows_by_group(grouped: GroupedScores, dataset: str, system: str) -> list[Row]:
    """Return rows of each group of queries, of the macro mean (groups with a value), and of all queries."""
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
"""Explains the star beside a mean, which is no verdict."""


def long_table(rows: Sequence[Row], explain: bool = False) -> Table:
    """Return a table with a row for each dataset, system and group, and a column for each measure.

    Cells are means with 95% interval and, with ties=bounds, the worst and best order's; * marks the best.

    explain: say how the intervals were made.
    """
    by_line: dict[tuple[str, str, str], dict[str, Row]] = {}
    means: dict[tuple[str, str, str], list[float]] = {}
    measures, people, filled = dict[str, None](), dict[str, None](), set[str]()
    for row in rows:
        group = row.group or ("" if row.groups is None else f"macro mean of {counted(row.groups, 'group')}")
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
    for (dataset, _, group), line in by_line.items():
        first = next(iter(line.values()))
        names = {"dataset": dataset, "system": first.called, "group": group or "all queries"}
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
            cells.append(Cell(score(row.mean), is_best(measure, row.mean, of_systems), more=more))
        for measure in people:
            mean = line[measure].people if measure in line else None
            cells.append(Cell("-" if mean is None else score(mean)))
        if people:
            cells.append(Cell("-" if first.model_share is None else percent(first.model_share)))
        if judged:
            cells.append(Cell("-" if first.judged_at_10 is None else score(first.judged_at_10)))
        lines.append((*cells, Cell(f"{first.answered}/{first.queries}")))
    header = [*keys, *measures]
    if people:
        header += [*(f"{measure} by people" for measure in people), "labels of the model"]
    header += [*[JUDGED] * judged, "answered"]
    starred = any(cell.best for cells in lines for cell in cells)
    star = f"{BEST}; weir compare tells which differences are more than chance"
    made = explain and any(not math.isnan(row.low) for row in rows)
    less = less_note(measures) if starred else []
    notes = (*[star] * starred, *less, *[MEAN_INTERVALS] * made, *_interval_notes(rows), *label_notes(rows))
    return Table("", tuple(header), tuple(lines), notes, keys=len(keys))


def _interval_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    reasons = dict.fromkeys(_lacking(row) for row in rows if math.isnan(row.low) and not math.isnan(row.mean))
    return (f"no interval: {' or '.join(reasons)}",) if reasons else ()


def _lacking(row: Row) -> str:
    if (row.queries if row.counted is None else row.counted) < fewest():
        return f"fewer than {fewest()} queries"
    return "values that are all equal" if row.groups is None else "a group of one query"


def label_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return each sentence on a model's labels once, after the dataset's name if there are several."""
    labels, datasets = dict[tuple[str, str], None](), set[str]()
    for row in rows:
        datasets.add(row.dataset)
        if row.labels:
            labels[row.dataset, row.labels] = None
    if len(datasets) < 2:
        return tuple([f"labels: {text}" for _, text in labels])
    return tuple([f"labels: {dataset}: {text}" for dataset, text in labels])


def shows_judged(rows: Sequence[Row]) -> bool:
    """Return True if a table should have a column Judged@10: it is known for every answered group, and no
    measure.
    """
    rated = False
    for row in rows:
        if row.measure == JUDGED or (row.group and row.answered and row.judged_at_10 is None):
            return False
        rated = rated or row.judged_at_10 is not None
    return rated


def _score_tables(scores: Scores) -> tuple[Table, ...]:
    rows, lines = result_rows(scores, "", ""), list[list[str]]()
    by_people = any(row.people is not None for row in rows)
    for row, queries in zip(rows, scores.counted().tolist(), strict=True):
        ends = "-" if math.isnan(row.low) else f"[{score(row.low)}, {score(row.high)}]"
        lines.append([row.measure, score(row.mean), ends, count(queries)])
        if by_people:
            lines[-1].append("-" if row.people is None else score(row.people))
    header = ["measure", "mean", "95% interval", "queries", *["by people"] * by_people]
    return (table_of([header, *lines], right=None, notes=(*_interval_notes(rows), *label_notes(rows))),)


def _group_tables(grouped: GroupedScores) -> tuple[Table, ...]:
    return (long_table(rows_by_group(grouped, "", "")),)


def _group_notes(grouped: GroupedScores) -> tuple[Note, ...]:
    small, notes = [label for label, part in grouped.items() if len(part.queries) < fewest()], list[Note]()
    if small:
        names = ", ".join(small[:5]) + (", ..." if len(small) > 5 else "")
        groups = f"{len(small)} group{'s have' if len(small) > 1 else ' has'}"
        notes.append(Note(f"{groups} fewer than {fewest()} queries, too few for an interval: {names}"))
    return (*notes, *map(Note, grouped.lacking))


SCORE_TABLES.register(_score_tables)
SCORE_NOTES.register(_score_notes)
GROUP_TABLES.register(_group_tables)
GROUP_NOTES.register(_group_notes)
