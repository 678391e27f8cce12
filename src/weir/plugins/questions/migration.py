"""Compare an old and a new system without judgments, and decide between them by few labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.corpus import Queries
from weir.core.dangling import two_compositions
from weir.core.judged import Judged
from weir.core.pairs import pair_rows
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.results import ResultKind
from weir.core.rounding import between, change, count, counted, exact, percent, probability
from weir.core.run import Run
from weir.core.strings import Float64, Ids, Int32, Int64
from weir.core.tables import Table, excerpt, sentences, table_of
from weir.errors import BadValue, warn_of_ranking
from weir.measures.measure import Measure, parse_measure
from weir.registry import check_whole
from weir.stats.resampling import LEVEL, interval, percentiles, resampled_counts
from weir.stats.sequential import e_values

DECOMPOSABLE = ("DCG", "P", "RBP", "SDCG")
"""Measures that are sums over documents, so that a single label changes them by a known amount."""

Verdict: TypeAlias = Literal["better", "worse", "equal", "undecided"]


@named_arguments
@dataclass(frozen=True)
class MigrationRules:
    """Settings for deciding between two systems with as few new labels as possible.

    Raises BadValue for numbers out of range, and a measure that is no sum over the first k documents
    (DECOMPOSABLE).
    """

    measure: str = "DCG@10"
    """The measure to be decided: a sum over the first k documents, each relevant or not."""
    rel: float = 1
    """Lowest relevant grade."""
    level: float = LEVEL
    """The probability, at least, that a verdict is right, however often one looks."""
    seed: int = 17
    """Seed of the order in which documents are drawn for labels."""

    def __post_init__(self) -> None:
        measure = parse_measure(self.measure)
        object.__setattr__(self, "measure", str(measure))
        scaled = dict(measure.settings).get("gain") == "scaled"  # RBP by the best grade of the query
        if measure.name not in DECOMPOSABLE or measure.cutoff is None or measure.condensed or scaled:
            takes = ", ".join(f"{name}@k" for name in DECOMPOSABLE)
            raise BadValue(f"{measure} is no sum over the first k documents; take one of {takes}")
        if not _rank_weights(measure).any():
            raise BadValue(
                f"{measure} gives nothing to a document of grade 1; which grades count is set by rel"
            )
        if not self.rel > 0 or not 0 < self.level < 1:
            raise BadValue(
                f"found rel {self.rel} and level {self.level}; expected a grade above 0, a level within 0 and 1"
            )
        check_whole("seed", self.seed, 0)

    @property
    def k(self) -> int:
        """The cut-off of the measure, in documents."""
        return parse_measure(self.measure).cutoff or 1


# ----------
# How far the first k documents change.


@dataclass(frozen=True)
class ChangedQuery:
    """A query whose first k documents, or their order, differ between two systems."""

    query: str
    text: str
    """The query's text; "" if unknown."""
    kept: float
    """Share of the old first k documents that are among the new first k."""
    gone: tuple[str, ...]
    """Old documents that are no longer among the first k, in their old order."""
    came: tuple[str, ...]
    """New documents among the first k, in their order."""


@dataclass(frozen=True)
class ChangedGroup:
    """How far the first k documents change in a group of queries."""

    group: str
    queries: int
    changed: int
    """Number of queries with other documents among the first k."""
    kept: float
    """Mean share of old documents that stay among the first k, with its 95% interval (NaN for fewer than 6 queries)."""
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class _FirstDocuments:
    queries: Ids
    docs: Ids
    query: Int32
    """int32[pairs]."""
    doc: Int32
    before: Int64
    """int64[pairs]: rank in the old ranking, 0 if it is not among its first k; `after` likewise in the new one."""
    after: Int64

    @staticmethod
    def of(old: Run, new: Run, k: int) -> _FirstDocuments:
        queries = Ids.of(dict.fromkeys([*old.queries.tolist(), *new.queries.tolist()]))
        runs = old.top(k), new.top(k)
        docs = Ids.of(dict.fromkeys(name for run in runs for name in run.docs.take(run.doc).tolist()))
        keys = [_pair_keys(run, queries, docs) for run in runs]
        pairs = np.unique(np.concatenate(keys))
        ranks = np.zeros((2, len(pairs)), np.int64)
        for side, (key, run) in enumerate(zip(keys, runs, strict=True)):
            ranks[side, np.searchsorted(pairs, key)] = run.ranks()
        query, doc = (part.astype(np.int32) for part in np.divmod(pairs, max(1, len(docs))))
        return _FirstDocuments(queries, docs, query, doc, *ranks)

    def counted(self, rows: NDArray[np.bool_]) -> Int64:
        return np.bincount(self.query[rows], minlength=len(self.queries))


def _pair_keys(run: Run, queries: Ids, docs: Ids) -> Int64:
    keys = _query_codes(run, queries) * max(1, len(docs))
    return keys + docs.codes(run.docs.strings)[run.doc] if len(run.doc) else keys


def _query_codes(run: Run, queries: Ids) -> Int64:
    codes: Int64 = queries.codes(run.queries.strings)[run.query_of_row()].astype(np.int64)
    return codes


def _kept_shares(first: _FirstDocuments) -> Float64:
    old, new = first.before > 0, first.after > 0
    before, both, after = first.counted(old), first.counted(old & new), first.counted(new)
    return np.where(before > 0, both / np.maximum(before, 1), np.where(after > 0, 0.0, 1.0))


def _changed_queries(first: _FirstDocuments, kept: Float64, texts: Mapping[str, str]) -> list[ChangedQuery]:
    found, cuts = [], np.searchsorted(first.query, np.arange(len(first.queries) + 1))
    moved = np.unique(first.query[first.before != first.after]).tolist()
    for query in sorted(moved, key=lambda one: kept[one]):
        rows = np.arange(cuts[query], cuts[query + 1])
        gone, came = rows[first.after[rows] == 0], rows[first.before[rows] == 0]
        name = first.queries[query]
        found.append(
            ChangedQuery(
                name,
                texts.get(name, ""),
                float(kept[query]),
                tuple(first.docs.take(first.doc[gone[np.argsort(first.before[gone])]]).tolist()),
                tuple(first.docs.take(first.doc[came[np.argsort(first.after[came])]]).tolist()),
            )
        )
    return found


WORD_COUNTS = ((1, 2), (3, 5), (6, 10), (11, None))
"""Groups of query lengths in words, (shortest, longest)."""


def _by_length(queries: Queries) -> QueryGroups:
    words = np.array([max(1, len(text.split())) for text in queries.text.tolist()], np.int64)
    group = np.searchsorted([low for low, _ in WORD_COUNTS], words, side="right") - 1
    labels = [
        f"{low} words or more" if high is None else f"{low} to {high} words" for low, high in WORD_COUNTS
    ]
    return QueryGroups("length", queries.ids, tuple(labels), group.astype(np.int32))


def _groups(
    groups: QueryGroups, queries: Ids, kept: Float64, changed: NDArray[np.bool_]
) -> list[ChangedGroup]:
    code = groups.queries.codes(queries.strings)
    group = np.where(code >= 0, np.append(groups.group, -1)[code], -1)
    lines = []
    for number, label in enumerate(groups.labels):
        mine = group == number
        if mine.any():
            mean, ends = float(kept[mine].mean()), interval(kept[mine], unit=True)
            lines.append(ChangedGroup(label, int(mine.sum()), int(changed[mine].sum()), mean, *ends))
    return lines


# ----------
# Which documents to label, in which order.


@dataclass(frozen=True, eq=False)
class ContestedPairs:
    """The (query, document) pairs whose labels can change the difference of two systems, in a random order
    that favours large effects."""

    queries: Ids
    docs: Ids
    query: Int32
    """int32[pairs], numbers in `queries`; `doc` likewise in `docs`."""
    doc: Int32
    gain: Float64
    """float64[pairs]: gain of the new system over the old one, as a sum over queries, if the document is relevant."""
    chance: Float64
    """float64[pairs]: chance of being drawn next, relative to the other pairs that are left."""

    def __len__(self) -> int:
        return len(self.query)

    def labels(self, qrels: Qrels, rel: float) -> Float64:
        """Return each pair's label, float64[pairs]: 1 relevant, 0 judged otherwise, NaN unjudged."""
        row = pair_rows(qrels, self.queries, self.docs, self.query, self.doc)
        return np.where(row >= 0, np.append(qrels.grade, 0)[row] >= rel, np.nan)


def contested_pairs(old: Run, new: Run, rules: MigrationRules) -> ContestedPairs:
    """Return, in random order, the (query, document) pairs that the measure weights differently in the two
    rankings."""
    return _contested(_FirstDocuments.of(old, new, rules.k), rules)


def _contested(first: _FirstDocuments, rules: MigrationRules) -> ContestedPairs:
    weights = _rank_weights(parse_measure(rules.measure))
    gain = weights[first.after] - weights[first.before]
    rows = np.flatnonzero(gain)
    before, after = first.before[rows], first.after[rows]
    best = np.where(before == 0, after, np.where(after == 0, before, np.minimum(before, after)))
    # The variance of an estimate is least if a pair is drawn in proportion to its effect times the root of its chance
    # to be relevant, which falls with the rank.
    chance = np.abs(gain[rows]) / np.sqrt(best)
    # Efraimidis and Spirakis 2006: the order of these keys is that of draws one by one without replacement.
    keys = np.log(np.random.default_rng(rules.seed).random(len(rows))) / chance
    order = np.argsort(-keys, kind="stable")
    rows, chance = rows[order], chance[order]
    return ContestedPairs(first.queries, first.docs, first.query[rows], first.doc[rows], gain[rows], chance)


def _rank_weights(measure: Measure) -> Float64:
    """Return a relevant document's weight at each rank, float64[k + 1]; 0 at rank 0 (not returned)."""
    k = measure.cutoff or 1
    rank, zeros = np.arange(1, k + 1, dtype=np.int32), np.zeros(k, np.int32)
    each, ptr, ones = np.arange(k, dtype=np.int32), np.arange(k + 1, dtype=np.int64), np.ones(k)
    names = Ids.of(map(str, range(k)))
    alone = Judged(names, rank, zeros, each, rank, ones, rank, rank, ptr, ones)
    return np.concatenate([[0.0], measure.per_query(alone)])


# ----------
# What labels decide.

BISECTIONS = 30
DECIDING = (0.17, 0.87)
"""Least and largest median share of the labels at the verdict, over six pairs of systems (docs/calibration.md)."""
TOLERANCE = 1e-12
"""Largest sum of gains that counts as 0."""


@dataclass(frozen=True)
class LabelVerdict:
    """Which of two systems has the higher mean over these queries, by the labels so far, and with which risk."""

    labels: int
    """Number of labels in the drawn order, up to the first that is missing."""
    ahead: int
    """Number of labels after the first missing one, which do not count yet."""
    contested: int
    """Number of documents whose labels could change the difference."""
    verdict: Verdict
    """Verdict on the new system against the old one."""
    after: int
    """Number of labels at which it was decided; 0 if undecided."""
    risk: float
    """Largest probability that the likelier verdict is wrong, at this or an earlier look; 0 if it is certain."""
    low: float
    """Confidence sequence of the mean difference, valid at all looks together."""
    high: float
    risks: tuple[float, ...]
    """The risk after each label."""


def label_verdict(
    pairs: ContestedPairs, relevant: Float64, queries: int, level: float = LEVEL
) -> LabelVerdict:
    """Return the verdict of the labels so far, valid at any number of looks.

    relevant: float64[pairs], 1 for relevant, 0 for not, NaN for no label; labels after the first NaN do not
        count.
    queries: number of queries over which the difference is a mean.
    """
    missing = np.flatnonzero(np.isnan(relevant))
    known = int(missing[0]) if len(missing) else len(pairs)
    drawn, whole = _Draws.of(pairs, relevant[:known]), known == len(pairs)
    alpha, up, down, sure = (1 - level) / 2, drawn.wealth(0.0, 1), drawn.wealth(0.0, -1), drawn.certain()
    risks = np.where(sure, 0.0, np.exp(-np.maximum(0.0, np.maximum(up, down))))
    decided = np.flatnonzero(risks <= alpha)
    low, high = (drawn.sums[-1],) * 2 if whole else drawn.bounds(math.log(1 / alpha))
    verdict: Verdict = "undecided"
    if len(decided):
        at = decided[0]
        wins = drawn.sums[at + 1] > 0 if sure[at] else up[at] > down[at]
        verdict = "better" if wins else "worse"
    elif whole:
        verdict = "equal" if abs(low) <= TOLERANCE else "better" if low > 0 else "worse"
    return LabelVerdict(
        known,
        int((~np.isnan(relevant[known:])).sum()),
        len(pairs),
        verdict,
        int(decided[0]) + 1 if len(decided) else known if whole else 0,
        0.0 if whole else float(risks[-1]) if known else 1.0,
        float(low) / queries,
        float(high) / queries,
        tuple(risks.tolist()),
    )


@dataclass(frozen=True, eq=False)
class _Draws:
    """The sum of a finite population, estimated by unequal-probability draws without replacement."""

    sums: Float64
    """float64[draws + 1]: sum of the labelled gains before each draw, and after the last."""
    rest: Float64
    """float64[draws]: estimate from each draw alone of the sum of the gains left before it."""
    reach: Float64
    """float64[draws]: largest absolute value that `rest` could have."""
    above: Float64
    """float64[draws + 1]: sum of the gains above 0 that are not labelled yet; `below` likewise below 0."""
    below: Float64

    @staticmethod
    def of(pairs: ContestedPairs, relevant: Float64) -> _Draws:
        drawn, gain, chance = len(relevant), pairs.gain, pairs.chance
        left = _left_from(chance)[:-1]
        widest = np.maximum.accumulate((np.abs(gain) / chance)[::-1])[::-1] * left
        found = gain[:drawn] * relevant
        return _Draws(
            np.concatenate([[0.0], np.cumsum(found)]),
            found / chance[:drawn] * left[:drawn],
            widest[:drawn],
            *(_left_from(np.where(gain * sign > 0, gain, 0.0))[: drawn + 1] for sign in (1, -1)),
        )

    def wealth(self, total: float, sign: int) -> Float64:
        """Return, float64[draws], the logarithm of the largest e-value up to each draw against a claim on the
        population's sum.

        sign: 1 claims that the sum is at most `total`, -1 at least.
        """
        if not len(self.rest):
            return self.rest
        mean = total - self.sums[:-1]
        scaled = sign * (self.rest - mean) / (self.reach + np.abs(mean) + 1e-300)
        return np.maximum.accumulate(np.log(e_values(np.clip(scaled, -1.0, 1.0))))

    def certain(self) -> NDArray[np.bool_]:
        """Return bool[draws], True if no later label can change the sign of the sum."""
        sums, above, below = self.sums[1:], self.above[1:], self.below[1:]
        return (sums + below > TOLERANCE) | (sums + above < -TOLERANCE)

    def bounds(self, threshold: float) -> tuple[float, float]:
        """Return the (smallest, largest) sum that the e-values do not exclude after the last draw.

        threshold: logarithm of the e-value that excludes a sum.
        """
        least, most = self.sums[-1] + self.below[-1], self.sums[-1] + self.above[-1]
        if not len(self.rest):
            return least, most
        low, high = self._end(1, most, least, threshold), self._end(-1, least, most, threshold)
        return min(low, high), max(low, high)

    def _end(self, sign: int, inside: float, outside: float, threshold: float) -> float:
        if self.wealth(outside, sign)[-1] < threshold:
            return outside
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2
            excluded = self.wealth(middle, sign)[-1] >= threshold
            inside, outside = (inside, middle) if excluded else (middle, outside)
        return outside


def _left_from(values: Float64) -> Float64:
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


# ----------
# Thresholds of scores.

THRESHOLD_RESAMPLES = 500


@dataclass(frozen=True)
class MappedThreshold:
    """A threshold on the old system's scores, and the new system's score that as many documents reach."""

    old: float
    new: float
    """The new threshold; NaN, with a `reason`, if all documents or none reach the old one, or the new system returns no
    more than reach it."""
    low: float
    """95% interval, by resampling queries."""
    high: float
    documents: float
    """Mean number of documents of a query that reach the threshold."""
    same: float
    """Share of the documents reaching the old threshold that reach the new one too."""
    reason: str = ""


def mapped_threshold(old: Run, new: Run, threshold: float, seed: int = 17) -> MappedThreshold:
    """Return the threshold on the new scores that as many documents reach as reach `threshold` on the old,
    with an interval.

    NaN, with a reason, if no document or every document reaches the old threshold, or the new system returns
    no more than reach it.
    """
    queries = Ids.of(dict.fromkeys([*old.queries.tolist(), *new.queries.tolist()]))
    before = np.bincount(_query_codes(old, queries)[old.score >= threshold], minlength=len(queries))
    reach = int(before.sum())
    documents = reach / max(1, len(queries))
    if not reach or reach == len(old.doc) or reach >= len(new.doc):
        reason = "every returned document reaches it; return more" if reach else "no document reaches it"
        return MappedThreshold(threshold, *(math.nan,) * 3, documents, math.nan, reason)
    order = np.argsort(-new.score, kind="stable")
    scores, query = new.score[order], _query_codes(new, queries)[order]

    def reached(times: Float64) -> float:
        place = int(np.searchsorted(np.cumsum(times[query]), float(times @ before)))
        return float(scores[min(place, len(scores) - 1)])

    found = reached(np.ones(len(queries)))
    samples = resampled_counts(len(queries), THRESHOLD_RESAMPLES, np.random.default_rng(seed))
    low, high = percentiles(np.array([reached(times) for block in samples for times in block])).tolist()
    docs = Ids.of(dict.fromkeys([*old.docs.tolist(), *new.docs.tolist()]))
    old_pairs, new_pairs = (
        _pair_keys(run, queries, docs)[run.score >= least] for run, least in ((old, threshold), (new, found))
    )
    return MappedThreshold(
        threshold, found, low, high, documents, float(np.isin(old_pairs, new_pairs).mean())
    )


# ----------
# The whole.


@dataclass(frozen=True)
class Migration:
    """The changes from an old system's rankings to a new one's, and which system is better by the labels so
    far."""

    dataset: str
    old: str
    new: str
    measure: str
    k: int
    queries: int
    """Number of queries that at least one system answers."""
    other_documents: int
    """Number of queries with other documents among the first k."""
    other_order: int
    """Number of queries with the same first k documents in another order."""
    other_first: int
    """Number of queries with another first document."""
    kept: float
    """Mean share of the old first k documents that are kept, with its 95% interval."""
    low: float
    high: float
    groups: tuple[ChangedGroup, ...]
    """Changes by length of the queries, or by the given groups; () if no texts are known."""
    changed: tuple[ChangedQuery, ...]
    """Changed queries, largest change first."""
    labels: LabelVerdict
    thresholds: tuple[MappedThreshold, ...] = ()


def migration_of(
    old: Run,
    new: Run,
    rules: MigrationRules | None = None,
    labels: Qrels | None = None,
    queries: Queries | None = None,
    groups: QueryGroups | None = None,
    thresholds: Sequence[float] = (),
) -> Migration:
    """Return the changes from the old ranking to the new one, and the labels' verdict, where `dataset` is "".

    labels: labels of any documents; they count in the random order of `contested_pairs`.
    queries: texts of the queries, which are grouped by length without `groups`.
    thresholds: scores of the old system.

    Raises BadValue if the runs have no query in common.
    """
    rules = rules or MigrationRules()
    if not (old.queries.codes(new.queries.strings) >= 0).any():
        raise BadValue("the old and the new rankings have no query in common")
    first = _FirstDocuments.of(old, new, rules.k)
    for said in two_compositions(first.docs):
        warn_of_ranking(said)
    kept, pairs = _kept_shares(first), _contested(first, rules)
    changed = first.counted((first.before == 0) | (first.after == 0)) > 0
    moved = first.counted(first.before != first.after) > 0
    other_first = first.counted((first.before == 1) != (first.after == 1)) > 0
    texts = {} if queries is None else dict(zip(queries.ids.tolist(), queries.text.tolist(), strict=True))
    if groups is None and queries is not None:
        groups = _by_length(queries)
    known = np.full(len(pairs), np.nan) if labels is None else pairs.labels(labels, rules.rel)
    return Migration(
        "",
        old.name,
        new.name,
        rules.measure,
        rules.k,
        len(first.queries),
        int(changed.sum()),
        int((moved & ~changed).sum()),
        int(other_first.sum()),
        float(kept.mean()),
        *interval(kept, unit=True),
        () if groups is None else tuple(_groups(groups, first.queries, kept, changed)),
        tuple(_changed_queries(first, kept, texts)),
        label_verdict(pairs, known, len(first.queries), rules.level),
        tuple(mapped_threshold(old, new, one, rules.seed) for one in thresholds),
    )


# ----------
# Tables.

SHOWN_QUERIES, SHOWN_NAMES = 10, 3
TEXT_CHARACTERS = 60


def _migration_tables(migrations: Sequence[Migration], show: int = SHOWN_QUERIES) -> tuple[Table, ...]:
    tables = []
    for one in migrations:
        tables.append(sentences(_changes_sentence(one)))
        if one.groups:
            lines = [
                ["queries of", "queries", f"other first {one.k}", f"of the old {one.k} kept", "95% interval"]
            ]
            lines += [
                [
                    each.group,
                    count(each.queries),
                    percent(each.changed / each.queries),
                    percent(each.kept),
                    between(each.low, each.high, percent),
                ]
                for each in one.groups
            ]
            tables.append(table_of(lines, right=4))
        if shown := one.changed[:show]:
            lines = [["query", "kept", "gone", "came", "text"]]
            lines += [
                [
                    each.query,
                    percent(each.kept, 0),
                    _names(each.gone),
                    _names(each.came),
                    excerpt(each.text, TEXT_CHARACTERS),
                ]
                for each in shown
            ]
            tables.append(table_of(lines, right=1, tail=1))
        tables.append(sentences(_verdict_sentence(one), *map(_threshold_sentence, one.thresholds)))
    return tuple(tables)


MIGRATIONS = ResultKind("migration", Migration, _migration_tables, parts="changed")


def _names(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return (", ".join(names[:SHOWN_NAMES]) or "-") + (f", {more} more" if more > 0 else "")


def _changes_sentence(one: Migration) -> str:
    where = f" on {one.dataset}" if one.dataset else ""
    return (
        f"{one.old} to {one.new}{where}: of {counted(one.queries, 'query', 'queries')} "
        f"{count(one.other_documents)} ({percent(one.other_documents / one.queries)}) have other documents among the "
        f"first {one.k}, {count(one.other_order)} the same in another order, {count(one.other_first)} another first "
        f"document; {percent(one.kept)} {between(one.low, one.high, percent)} of the old first {one.k} are kept"
    )


def _verdict_sentence(one: Migration) -> str:
    found, whole = one.labels, counted(one.labels.contested, "label")
    bounds = f"{one.measure} {change(found.low)} to {change(found.high)}"
    if not found.contested:
        return f"{one.measure} is the same whatever the labels are"
    if found.labels == found.contested:
        return f"after all {whole}: {one.new} is {found.verdict}, {one.measure} {change(found.low)}"
    later = f"; {counted(found.ahead, 'label')} beyond the first missing one count once it is there"
    ahead = later if found.ahead else ""
    if not found.labels:
        documents = counted(found.contested, "document")
        few, many = (math.ceil(share * found.contested) for share in DECIDING)
        shares = " to ".join(percent(share, 0) for share in DECIDING)
        return (
            f"{documents} without a label could change {one.measure}, by {bounds.partition(' ')[2]}{ahead}; a "
            f"verdict on it may take some {count(few)} to {count(many)} labels ({shares}: medians of six pairs of "
            "systems)"
        )
    of = f"after {count(found.labels)} of {whole}"
    if found.verdict == "undecided":
        return (
            f"{of}: not decided, {bounds}; a verdict now would be wrong with probability {probability(found.risk)} "
            f"at most{ahead}"
        )
    return (
        f"{of}: {one.new} is {found.verdict}, {bounds}, decided at label {count(found.after)}; wrong with probability "
        f"{probability(found.risk)} at most, however often one looked{ahead}"
    )


def _threshold_sentence(one: MappedThreshold) -> str:
    if one.reason:
        return f"threshold {exact(one.old)}: {one.reason}"
    ends = between(one.low, one.high, lambda value: f"{value:.4g}")
    return (
        f"threshold {exact(one.old)} becomes {one.new:.4g} {ends}: as many documents reach it, {one.documents:.2f} a "
        f"query, {percent(one.same)} of them the same"
    )
