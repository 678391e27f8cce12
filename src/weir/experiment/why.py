"""Explain why two numbers differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from weir.core.corpus import Corpus
from weir.core.frames import json_value
from weir.core.judged import Judged
from weir.core.order import Ties, compared, ranked
from weir.core.origin import Origin, apart
from weir.core.qrels import Qrels, plain_grades
from weir.core.results import ResultKind, member_html, member_text
from weir.core.roles import judged_run
from weir.core.rounding import change, count, score
from weir.core.run import Run
from weir.core.scores import Scores, averaged
from weir.core.strings import Float64, hash_strings
from weir.core.tables import Table, sentences, table_of
from weir.datasets.load import Dataset
from weir.datasets.scoring_rules import NO_COLLECTION, ScoringRules
from weir.errors import BadValue, WeirError
from weir.experiment.published import (
    PublishedScore,
    Publisher,
    claimant,
    claimed,
    facts_table,
    lowered,
    model_named,
    published,
    publisher_of,
    reported_of,
    unknown_name,
)
from weir.experiment.results import (
    ResultCell,
    as_weir_writes_it,
    dataset_of,
    not_as_published,
    open_cell,
    shared_measures,
)
from weir.experiment.stages import flattened
from weir.experiment.ties_at_cut import cell_cut_note, with_ties_beyond
from weir.files.frames import qrels_from
from weir.files.runs import read_run
from weir.measures import DEFAULT_MEASURES, MEASURES, Measure, condensed, parse_measure
from weir.measures.evaluate import scores_of
from weir.measures.ties.over_orders import Tied, expected_values, extreme_values
from weir.stats.score_rows import noted, reaches, system_notes
from weir.systems.expression import parse_system
from weir.systems.protocol import MAX_DEPTH

# ----------
# Settings of two results that differ, the likeliest cause first.


UNKNOWN = (45.0, "a setting of the system")
ENVIRONMENT = (5.0, "where it ran")
NAMES = frozenset({"system", "reproduces"})  # settings that are composed of others


@dataclass(frozen=True)
class SettingDifference:
    """A setting that differs between two results."""

    setting: str
    first: str
    second: str
    weight: float
    """How likely it is to affect the scores, 0 to 100."""
    why: str
    """The reason for `weight`."""


def differences(
    first: Iterable[tuple[str, str]], second: Iterable[tuple[str, str]]
) -> tuple[SettingDifference, ...]:
    """Return the settings that differ, likeliest cause first, without mere consequences of others.

    first, second: (dotted name, text) of each setting.

    A setting absent on one side counts only between systems, or results, of one kind.
    """
    one, other = _with_kind(dict(first)), _with_kind(dict(second))
    same_kind = "system" in one and one["system"] == other.get("system")
    cells = "fingerprint" in one and "fingerprint" in other
    # Weights of effects.tsv are experience, not measurements.
    effects = {name: (float(weight), why) for name, weight, why in facts_table("effects.tsv")}
    different = []
    for name in dict.fromkeys([*one, *other]):
        a, b = one.get(name), other.get(name)
        both = a is not None and b is not None
        if a != b and (both or (same_kind and (cells or name.startswith("system.")))):
            parts = name.split(".")
            endings = [".".join(parts[i:]) for i in range(1, len(parts) - 1)]
            inner = [p for p in reversed(parts[1:]) if p not in NAMES]
            listed = next((effects[key] for key in (name, *endings, *inner) if key in effects), None)
            weight, why = listed or (ENVIRONMENT if parts[0] == "environment" else UNKNOWN)
            different.append(
                SettingDifference(name, "-" if a is None else a, "-" if b is None else b, weight, why)
            )
    names = {d.setting for d in different}
    settings_differ = "system" in names or any(
        n.startswith("system.") and n.rpartition(".")[2] not in NAMES for n in names
    )

    def follows(name: str) -> bool:
        if name == "fingerprint":
            return not names.isdisjoint({"dataset", "split"})
        before, inside, _ = name.partition(".analysis.")
        if inside:
            return f"{before}.analyzer" in names
        parent, _, leaf = name.rpartition(".")
        return leaf in NAMES and parent.startswith("system") and settings_differ

    return tuple(sorted((d for d in different if not follows(d.setting)), key=lambda d: -d.weight))


def _with_kind(settings: dict[str, str]) -> dict[str, str]:
    name = settings.get("system.system")
    return settings if name is None else {"system": name.partition("(")[0].strip()} | settings


# ----------
# A run scored by other rules that are in use.


TieRule: TypeAlias = Literal["trec", "trec9", "ascending", "anserini", "expected", "best", "worst"]
Counted: TypeAlias = Literal["zero", "answered-only", "relevant-only"]
CUTOFFS = (10, 100, 1000)
_MOST_LEVELS = 20  # different grades with fractions that are tried as levels of relevance
TIE_RULES: dict[str, str] = {
    "trec": "descending ids",
    "trec9": "descending ids, scores as floats",
    "ascending": "ascending ids",
    "anserini": "ascending ids, each 1e-6 lower in floats",
}
"""How settings print the order of equal scores."""
ANSERINI = "ascending ids, 1e-6 apart in floats, as Anserini"


@dataclass(frozen=True)
class Scoring:
    """How a score is computed from a run and judgments; the defaults are Weir's."""

    measure: Measure
    ties: TieRule = "trec"
    """"trec", "trec9": larger identifier first, by full or float32 scores. "ascending": smaller identifier first, as
    Lucene. "anserini": as trec_eval 9 reads Anserini's files (`lowered`). "expected", "best", "worst": exact mean or
    extreme over all orders of equal scores.
    """
    self_match: Literal["keep", "drop"] = "keep"
    """"drop" removes a document with the query's own identifier."""
    missing: Counted = "zero"
    """Queries that count: "zero" all judged, "answered-only" the answered, "relevant-only" any with a grade from 1."""
    depth: int | None = None
    """Rankings are cut there first; None keeps them whole."""
    binary: bool = False
    """True to treat every grade above 0 as 1."""


@dataclass(frozen=True)
class Alternative:
    """A scoring rule that differs from Weir's in one respect."""

    kind: str
    """The respect, such as "tie rule"."""
    change: str
    """The change, in words."""
    scoring: Scoring


def rescored(run: Run, qrels: Qrels, scoring: Scoring, k: int | None = None) -> Float64:
    """Return each judged query's value by a scoring rule, float64[queries]; NaN if it does not count.

    k: depth of rankings if `run` also has ties beyond, else None.

    All NaN if the measure has no mean or extreme over orders of ties.
    """
    judgments = replace(qrels, grade=np.where(qrels.grade > 0, 1, qrels.grade)) if scoring.binary else qrels
    ordered = _ordered(run, scoring.ties)
    if scoring.self_match == "drop":
        ordered = ordered.without_self()
    depth = min(d for d in (scoring.depth, k, MAX_DEPTH) if d is not None)
    over_orders = scoring.ties in {"expected", "best", "worst"} and scoring.depth is None
    if depth < MAX_DEPTH and not (over_orders and (scoring.measure.cutoff or MAX_DEPTH) <= depth):
        ordered = ordered.top(depth)
    judged = Judged.of(ordered, judgments)
    values = scoring.measure.per_query(judged)
    try:
        if scoring.ties == "expected":
            values = expected_values(scoring.measure, Tied.of(judged), values)
        elif scoring.ties in {"best", "worst"}:
            low, high = extreme_values(scoring.measure, Tied.of(judged), values, strict=False)
            extreme = high if scoring.ties == "best" else low
            same = np.array_equal(np.isnan(extreme), np.isnan(values))
            values = extreme if same else np.full_like(values, np.nan)
    except BadValue:  # a measure without a formula, and too many orders to try
        values = np.full_like(values, np.nan)
    if scoring.missing == "answered-only":
        return np.where(judged.answered, values, np.nan)
    if scoring.missing == "relevant-only":
        return np.where(judged.relevant() > 0, values, np.nan)
    return values


def defined_mean(values: Float64, measure: Measure) -> float:
    """Return the mean of the values that are not NaN, geometric if the measure's is; NaN without any."""
    counted = values[~np.isnan(values)]
    value = math.fsum(counted.tolist()) / len(counted) if len(counted) else math.nan
    return averaged(value, measure.geometric)


def other_rules(
    measure: Measure, dropped: bool = False, depths: tuple[int, ...] = CUTOFFS
) -> Iterator[Alternative]:
    """Yield other tools' scoring rules, each different from Weir's in one respect.

    dropped: self-matches are removed already.
    depths: depths at which to cut rankings.
    """
    usual = Scoring(measure)
    yield Alternative("tie rule", "ascending ids, as Lucene", replace(usual, ties="ascending"))
    yield Alternative("tie rule", ANSERINI, replace(usual, ties="anserini"))
    yield Alternative("tie rule", "scores as floats, as trec_eval 9", replace(usual, ties="trec9"))
    yield Alternative("tie rule", "mean over all orders", replace(usual, ties="expected"))
    yield Alternative("tie rule", "best order", replace(usual, ties="best"))
    yield Alternative("tie rule", "worst order", replace(usual, ties="worst"))
    if not dropped:
        yield Alternative("self-match", "dropped", replace(usual, self_match="drop"))
    yield Alternative("missing queries", "left out of the mean", replace(usual, missing="answered-only"))
    yield Alternative(
        "queries without a relevant document", "left out of the mean", replace(usual, missing="relevant-only")
    )
    for depth in depths:
        yield Alternative("depth", f"rankings cut at {depth}", replace(usual, depth=depth))
    if not measure.condensed:
        yield Alternative("unjudged documents", "left out", replace(usual, measure=condensed(measure)))


def other_measures(measure: Measure, qrels: Qrels) -> Iterator[Alternative]:
    """Yield measures that other tools call by the same name: other cut-offs, capped recall, relevance levels,
    gains, binary grades.
    """
    usual = Scoring(measure)
    definition = MEASURES.get(measure.name)
    settings = definition.defaults() | dict(measure.settings)
    others: list[tuple[str, Measure]] = []
    if measure.cutoff is not None:
        others += [("cut-off", measure @ cut) for cut in CUTOFFS if cut != measure.cutoff]
        if definition.cutoff == "optional":
            others.append(("cut-off", replace(measure, cutoff=None)))
        if (name := {"R": "R_cap", "R_cap": "R"}.get(measure.name)) is not None:
            others.append(("capped recall", replace(measure, name=name)))
    if "rel" in settings:
        grades = np.unique(qrels.grade[qrels.grade > 0])
        few = not qrels.fractional or len(grades) <= _MOST_LEVELS
        levels = sorted({1, *plain_grades(grades)} if few else {1})
        others += [("relevance level", measure(rel=level)) for level in levels if level != settings["rel"]]
    for kind, other in others:
        yield Alternative(kind, str(other), replace(usual, measure=other))
    for key, values in definition.choices:
        for value in values:
            if value != settings[key]:
                other = measure(**{key: value})
                yield Alternative(
                    "gains" if key == "gain" else key, str(other), replace(usual, measure=other)
                )
    if ((qrels.grade > 0) & (qrels.grade != 1)).any():
        yield Alternative("grades", "relevant or not", replace(usual, binary=True))


def without_copies(run: Run, corpus: Corpus) -> Run:
    """Return the run without documents whose title and text equal a better ranked document's.

    Raises BadValue if document identifiers were not read.
    """
    run.refuse_nameless()
    at = corpus.ids.codes(run.docs.strings)
    in_corpus = np.flatnonzero(at >= 0)
    # Texts are compared by 64-bit hashes of title and text.
    keys = np.zeros((len(run.docs), 3), np.uint64)
    keys[:, 0] = np.where(at < 0, np.arange(1, len(run.docs) + 1), 0)
    for column, strings in enumerate((corpus.text, corpus.title), 1):
        if strings is not None:
            texts = strings.take(at[in_corpus])
            keys[in_corpus, column] = hash_strings(texts.data, texts.ptr[:-1], texts.lengths())
    _, same = np.unique(keys, axis=0, return_inverse=True)
    query = run.query_of_row()
    _, first = np.unique(query * np.int64(len(run.docs)) + same.reshape(-1)[run.doc], return_index=True)
    rows = np.sort(first)
    ptr = np.searchsorted(query[rows], np.arange(len(run.queries) + 1)).astype(np.int64)
    return replace(run, ptr=ptr, doc=run.doc[rows], score=run.score[rows])


def _ordered(run: Run, ties: TieRule) -> Run:
    if ties not in {"trec9", "ascending", "anserini"}:
        return run
    run.refuse_nameless()
    if ties == "anserini":
        run = _ordered(replace(run, score=compared(run.score, "trec9")), "ascending")
        run = replace(run, score=lowered(run.ptr, run.score))
    precise: Ties = "trec" if ties == "ascending" else "trec9"
    descending = run.docs.tie_ranks[run.doc].astype(np.int64)
    order = ranked(
        run.query_of_row(), compared(run.score, precise), -descending if ties == "ascending" else descending
    )
    return replace(run, doc=run.doc[order], score=run.score[order], ties=precise)


# ----------
# The difference of two numbers: settings, and scoring again by other rules.


NEGLIGIBLE = 1e-12
KINDS = {"ties": "tie rule", "self_match": "self-match", "missing": "missing queries", "k": "depth"}
"""Settings whose effect is measured by scoring again, with the kind of that change."""
SHOWN_QUERIES = 10


@dataclass(frozen=True, eq=False)
class ComparedResult:
    """One of two results to compare, with rankings and judgments if they are on this machine."""

    name: str
    settings: tuple[tuple[str, str], ...]
    mean: float = math.nan
    """As stored or printed."""
    run: Run | None = None
    """None if the rankings are not on this machine."""
    qrels: Qrels | None = None
    corpus: Corpus | None = None
    dropped: bool = False
    """True if self-matches were removed from the rankings."""
    score: PublishedScore | None = None
    """The published score, if the result is one."""
    publisher: Publisher | None = None
    """The publisher of `score`."""
    origin: Origin = field(default_factory=Origin)
    k: int | None = None
    """Depth of the rankings if `run` also has ties beyond, else None."""


@dataclass(frozen=True)
class Effect:
    """A change of scoring: both means after it, and how much of their gap it explains."""

    kind: str
    change: str
    first: float
    second: float
    gap: float
    """`second` minus `first`."""
    explains: float
    """Share of the original gap that is gone; above 1 its sign has changed, below 0 it has grown; NaN without a gap."""
    closes: bool
    """True if the numbers now agree."""
    documented: bool = False
    """True if the publisher documents this rule."""

    @property
    def in_words(self) -> str:
        """The explained share as text: a percentage, words below 0 or above 100%, "-" without a gap."""
        share = self.explains if math.isnan(self.explains) else round(self.explains, 2)
        if share > 2:
            return "reverses and widens the gap"
        if share > 1:
            return "reverses the gap"
        return "-" if math.isnan(share) else "widens the gap" if share < 0 else f"{abs(share):.0%}"


@dataclass(frozen=True, repr=False)
class Why:
    """The reasons why two means differ."""

    measure: str
    first: str
    second: str
    first_mean: float
    second_mean: float
    agree: bool
    """True if the numbers are equal, or equal as printed."""
    settings: tuple[SettingDifference, ...] = ()
    """Settings that differ, likeliest first."""
    effects: tuple[Effect, ...] = ()
    """Changes of scoring that move a mean, each alone: first those that close the gap, then by the gap left."""
    without: tuple[str, ...] = ()
    """Changes of scoring that move nothing."""
    same_top: int = 0
    """Number of `shared` queries with the same first ten documents in the same order."""
    shared: int = 0
    """Number of queries that both answer."""
    published: PublishedScore | None = None
    notes: tuple[str, ...] = ()
    """Remarks, such as on parts that could not be compared."""

    __repr__ = member_text
    _repr_html_ = member_html

    @property
    def gap(self) -> float:
        """Second mean minus first."""
        return self.second_mean - self.first_mean

    @property
    def unexplained(self) -> float:
        """The gap that the most effective single change of scoring leaves."""
        return min([self.gap, *(e.gap for e in self.effects)], key=abs)


def explained(
    first: ComparedResult, second: ComparedResult, measure: Measure, notes: Sequence[str] = ()
) -> Why:
    """Return why two means differ, scoring both again if rankings and judgments are on this machine.

    Each change of scoring is made alone, on both sides.
    """
    other = apart(first.origin, second.origin, paired=False)
    notes = [
        *notes,
        *(f"the two are scores {reason}, so that no rule of scoring explains their gap" for reason in other),
    ]
    before = _scored(first, Scoring(measure)), _scored(second, Scoring(measure))
    effects: list[Effect] = []
    without: list[str] = []
    for one, means in () if other else _changed_means(first, second, measure):
        effect = _effect(one, before, means, second)
        if effect is not None:
            effects.append(effect)
        elif not np.isnan(means).any() and one.kind != "duplicates":
            without.append(f"{one.kind} ({one.change})")
    effects.sort(key=lambda e: (not e.closes, not (e.closes and e.documented), abs(e.gap)))
    same, shared = same_top(first.run, second.run)
    settings = differences(first.settings, second.settings)
    weighed = [_weighed(one, effects, without, second.score is not None) for one in settings]
    return Why(
        str(measure),
        first.name,
        second.name,
        *before,
        _agree(*before, second.score),
        tuple(sorted(weighed, key=lambda d: -d.weight)),
        tuple(effects),
        tuple(without),
        same,
        shared,
        second.score,
        tuple(notes),
    )


def _changed_means(
    first: ComparedResult, second: ComparedResult, measure: Measure
) -> Iterator[tuple[Alternative, tuple[float, float]]]:
    if first.qrels is None or (second.qrels is None and second.score is None):
        return
    for one in _changes(first, second, measure):
        yield one, (_scored(first, one.scoring), _scored(second, one.scoring))
    if first.corpus is not None and (second.corpus is not None or second.score is not None):
        sides = [
            s
            if s.run is None or s.corpus is None
            else replace(s, run=without_copies(s.run if s.k is None else s.run.top(s.k), s.corpus))
            for s in (first, second)
        ]
        change = Alternative("duplicates", "copies of a text counted once", Scoring(measure))
        yield change, (_scored(sides[0], Scoring(measure)), _scored(sides[1], Scoring(measure)))
    if first.run is not None and second.run is not None and second.qrels is not None:
        answered = Scoring(measure, missing="answered-only")
        a = rescored(first.run, first.qrels, answered, first.k)
        b = rescored(second.run, second.qrels, answered, second.k)
        if first.qrels.queries == second.qrels.queries and not np.array_equal(np.isnan(a), np.isnan(b)):
            out = np.isnan(a) | np.isnan(b)
            means = [defined_mean(np.where(out, np.nan, values), measure) for values in (a, b)]
            yield (
                Alternative("missing queries", "only those that both answer", answered),
                (means[0], means[1]),
            )


def _weighed(
    setting: SettingDifference, effects: Sequence[Effect], without: Sequence[str], documented: bool
) -> SettingDifference:
    kind = KINDS.get(setting.setting, "")
    moved = [e for e in effects if e.kind == kind and (e.documented or not documented)]
    if any(e.closes for e in moved):
        return replace(setting, weight=100.0, why="scored again: it closes the gap")
    if not moved and any(w.startswith(f"{kind} (") for w in without):
        return replace(setting, weight=0.0, why="scored again: it moves nothing here")
    return setting


def _changes(first: ComparedResult, second: ComparedResult, measure: Measure) -> Iterator[Alternative]:
    depths = {int(np.diff(s.run.ptr).max(initial=0)) for s in (first, second) if s.run is not None}
    dropped = first.dropped and (second.dropped or second.score is not None)
    yield from other_rules(measure, dropped, tuple(sorted({*CUTOFFS, *depths} - {0})))
    if second.score is not None and first.qrels is not None:
        yield from other_measures(measure, first.qrels)
    if second.publisher is not None:
        rules = second.publisher
        together = Scoring(measure, rules.ties or "trec", rules.self_match or "keep", rules.missing or "zero")
        if together != Scoring(measure):
            yield Alternative("all rules", f"as {rules.name} documents them", together)


def _effect(
    one: Alternative, before: tuple[float, float], after: tuple[float, float], second: ComparedResult
) -> Effect | None:
    moves = [abs(a - b) for a, b in zip(after, before, strict=True)]
    if max(moves) <= NEGLIGIBLE or np.isnan(moves).any():
        return None
    gap, gap_after = before[1] - before[0], after[1] - after[0]
    explains = (gap - gap_after) / gap if abs(gap) > NEGLIGIBLE else math.nan
    usual, rules = Scoring(one.scoring.measure), second.publisher
    settings = [(name, getattr(one.scoring, name)) for name in ("ties", "self_match", "missing")]
    changed = [(name, value) for name, value in settings if value != getattr(usual, name)]
    documented = (
        rules is not None and bool(changed) and all(getattr(rules, name) == value for name, value in changed)
    )
    return Effect(one.kind, one.change, *after, gap_after, explains, _agree(*after, second.score), documented)


def _agree(first: float, second: float, score: PublishedScore | None) -> bool:
    return abs(second - first) <= NEGLIGIBLE if score is None else score.agrees(first)


def _scored(side: ComparedResult, scoring: Scoring) -> float:
    if side.run is None or side.qrels is None:
        return side.mean
    return defined_mean(rescored(side.run, side.qrels, scoring, side.k), scoring.measure)


def same_top(first: Run | None, second: Run | None) -> tuple[int, int]:
    """Return (queries with the same first ten documents in order, queries that both answer); (0, 0) if a run
    is None.
    """
    if first is None or second is None:
        return 0, 0
    one, other = first.top(SHOWN_QUERIES), second.top(SHOWN_QUERIES)
    at = other.queries.codes(one.queries.strings)
    docs = other.docs.codes(one.docs.strings)[one.doc]
    same = shared = 0
    for q in np.flatnonzero(at >= 0).tolist():
        mine = docs[one.ptr[q] : one.ptr[q + 1]]
        theirs = other.doc[other.ptr[at[q]] : other.ptr[at[q] + 1]]
        if len(mine) and len(theirs):
            shared += 1
            same += np.array_equal(mine, theirs)
    return same, shared


# ----------
# The two sides of an explanation: cells, run files, published scores.


ENGINES = ("elasticsearch(", "http(")
"""Beginnings of names of systems whose server can explain its scores."""
OURS = (("ties", TIE_RULES["trec"]), ("missing", "zero"))
SAME_MEAN = 1e-9


@dataclass(frozen=True)
class Judgments:
    """Judgments with which to score results again, by default the recorded ones."""

    qrels: object = None
    """A file or Qrels."""
    collection: str | Path | Dataset | None = None
    """A collection, its name or path."""


def explain_cells(
    first: Path, second: Path, measure: str | None = None, judgments: Judgments | None = None
) -> Why:
    """Return why the means of two results differ, by their folders.

    measure: by default the first that both have.

    Raises FormatError for an unfinished result, BadValue without a shared measure.
    """
    cells = open_cell(first), open_cell(second)
    name = measure or next(iter(shared_measures(*cells)), None)
    if name is None:
        raise BadValue(
            f"{first} and {second} have no measure in common; name one with `measure`, to be computed now"
        )
    parsed = parse_measure(name)
    notes: list[str] = []
    one, other = (_rescored_side(cell, parsed, judgments or Judgments(), notes) for cell in cells)
    if any(cell.system.startswith(ENGINES) for cell in cells):
        asked = f"weir why '{cells[0].system}' '{cells[1].system}' --collection {cells[0].dataset}"
        notes.append(f"an engine of Elasticsearch or OpenSearch explains its terms and scores: {asked}")
    return explained(one, other, parsed, tuple(dict.fromkeys(notes)))


def explain_published(
    cell: Path, model: str | None = None, measure: str | None = None, judgments: Judgments | None = None
) -> Why:
    """Return why a result, by its folder, and a published score differ.

    model: a name or unique words, by default the one that the system should reproduce.
    measure: by default the first that both have, else the first published.

    Raises FormatError for an unfinished result, UnknownName for a model, BadValue if nothing comparable is
    published.
    """
    ours = open_cell(cell)
    known = reported_of(ours)
    models = claimed(ours.system, known.dataset) if model is None else (model_named(model, {known.dataset}),)
    if not models:
        raise BadValue(f"{ours.system} claims no published model; name one, or another cell")
    parsed = str(parse_measure(measure)) if measure else None
    scores = [
        s
        for name in models
        for s in published(known.dataset, name)
        if s.split == known.split and parsed in (None, s.measure)
    ]
    if not scores:
        what = f"{parsed} " if parsed else ""
        why = f"; {unknown}" if (unknown := unknown_name(known)) else ""
        raise BadValue(
            f"no {what}score of {' or '.join(models)} on {ours.dataset} {ours.split} is published{why}"
        )
    claim = min(scores, key=lambda s: ours.mean(s.measure) is None)  # what the cell has already comes first
    notes: list[str] = []
    side = _rescored_side(ours, parse_measure(claim.measure), judgments or Judgments(), notes)
    rules = publisher_of(claim.model)
    entries = [("dataset", claim.dataset), ("split", claim.split), ("self_match", rules.self_match)]
    entries += [("k", rules.k), ("ties", TIE_RULES.get(rules.ties or "")), ("missing", rules.missing)]
    settings = [(name, value) for name, value in entries if value]
    claiming = claimant(claim.model)
    if claiming is not None:
        with suppress(ImportError, WeirError):  # there is no such system here
            settings += flattened("system", parse_system(claiming).describe())
    theirs = ComparedResult(claim.model, tuple(settings), claim.value, score=claim, publisher=rules)
    return explained(side, theirs, parse_measure(claim.measure), notes)


def explain_rankings(
    qrels: Qrels, runs: Mapping[str, Run], measure: str | None = None, rules: ScoringRules = NO_COLLECTION
) -> Why:
    """Return why the means of two rankings, {name: run}, by nDCG@10 or `measure`, differ.

    Raises BadValue for a run that answers no judged query.
    """
    judged, dropped = rules.counted(qrels), rules.conventions.self_matches == "drop"
    ranked = {name: rules.ranked(run) for name, run in runs.items()}
    one, other = (
        ComparedResult(name, _settings_of_run(run, judged), run=run, qrels=judged, dropped=dropped)
        for name, run in ranked.items()
    )
    wanted, scores = parse_measure(measure or DEFAULT_MEASURES[0]), dict[str, Scores]()
    for name, run in ranked.items():
        of_run = judged_run(run, judged)
        scores[name] = noted(scores_of(of_run, (wanted,), rules.conventions), of_run, judged, (wanted,))
    said = (*rules.notes, *rules.dangling_notes(qrels), *system_notes(scores))
    notes = list(dict.fromkeys(note.text for note in said))
    return explained(one, other, wanted, notes)


def _rescored_side(
    cell: ResultCell, measure: Measure, judgments: Judgments, notes: list[str]
) -> ComparedResult:
    stored = cell.mean(str(measure))
    with as_weir_writes_it(cell.folder):
        services = cell.ranked.facts.get("services", [])
        versions = [pair for one in services for pair in one.get("versions", {}).items()]
    settings = (*cell.settings, *OURS, *((f"environment.{name}", str(text)) for name, text in versions))
    dropped = dict(cell.settings).get("self_match") == "drop"
    if other := not_as_published(cell):
        notes.append(f"{cell.folder.name}: {other}")
    own = judgments.collection is not None or judgments.qrels is None
    dataset = dataset_of(cell, judgments.collection) if own else None
    corpus = None if dataset is None else dataset.corpus
    rules = ScoringRules(dataset=dataset)
    every = None if dataset is None else dataset.all_qrels
    if judgments.qrels is not None:
        every = qrels_from(judgments.qrels)
    if every is None:
        if stored is None:
            have = ", ".join(r.measure for r in cell.rows)
            raise BadValue(
                f"{cell.folder} has no {measure} but {have}, and the judgments of {cell.dataset} are not here "
                "to compute it; pass them with `qrels` or `collection`"
            )
        notes.append(
            f"the judgments of {cell.dataset} are not on this machine: nothing was scored again; "
            "pass them with `qrels` or `collection`"
        )
        return ComparedResult(cell.called, settings, stored, dropped=dropped, origin=cell.origin)
    notes += [note.text for note in rules.dangling_notes(every)]
    qrels = rules.counted(every)
    if dataset is None:
        qrels = qrels.only(np.flatnonzero(cell.values().queries.codes(qrels.queries.strings) >= 0))
    run = read_run(cell.run)
    whole = (
        with_ties_beyond(cell, dataset, run) if dataset is not None and reaches(measure, cell.depth) else None
    )
    note = cell_cut_note(cell, run, measure, whole is not None)
    notes += [] if note is None else [note.text]
    k = None if whole is None else cell.depth
    run = run if whole is None else whole
    again = defined_mean(rescored(run, qrels, Scoring(measure), k), measure)
    if stored is not None and abs(again - stored) > SAME_MEAN:
        if judgments != Judgments():
            raise BadValue(
                f"these are not the judgments of {cell.folder}: {measure} is {again:.4f} with them, {stored:.4f} there"
            )
        notes.append(f"the judgments of {cell.dataset} on this machine are not those of {cell.folder.name}")
        return ComparedResult(cell.called, settings, stored, dropped=dropped, origin=cell.origin)
    origin = replace(cell.origin, judgments=qrels, digest="")
    return ComparedResult(cell.called, settings, again, run, qrels, corpus, dropped, origin=origin, k=k)


SEEN_IN_RUNS = ("k", "answered", "self_match", "score_decimals", "distinct_scores")
"""Settings that a ranking itself shows, for rankings without a record."""


def _settings_of_run(run: Run, qrels: Qrels) -> tuple[tuple[str, str], ...]:
    lengths = np.diff(run.ptr)
    rows = run.queries.codes(qrels.queries.strings)
    answered = int(np.count_nonzero(lengths[rows[rows >= 0]]))
    if not answered:
        raise BadValue(f"{run.name} answers none of the {len(qrels)} judged queries")
    own = len(run.doc) - len(run.without_self().doc)
    decimals = next((n for n in range(17) if np.array_equal(np.round(run.score, n), run.score)), 17)
    return (
        ("k", str(int(lengths.max()))),
        ("answered", f"{answered} of {len(qrels)}"),
        ("self_match", f"{own} kept" if own else "none"),
        ("score_decimals", "more than 16" if decimals == 17 else str(decimals)),
        ("distinct_scores", f"{1 - float(run.tied().sum()) / max(1, len(run.doc)):.3f}"),
    )


# ----------
# Tables.

SETTING_CHARACTERS = 44
"""Longest value of a setting that is printed in full."""
NAME_CHARACTERS = 20
"""Longest name of a system that stands above its column; else "first" and "second" do, in the order of the heading."""


def settings_table(
    settings: Sequence[SettingDifference], names: tuple[str, str] = ("first", "second")
) -> Table:
    """Return a table of settings that differ, values under `names`; a sentence if none does."""
    lines = [["setting that differs", *names, "likely effect"]]
    for d in settings:
        values = (
            text if len(text) <= SETTING_CHARACTERS else text[: SETTING_CHARACTERS - 1] + "…"
            for text in (d.first, d.second)
        )
        lines.append([d.setting, *values, f"{d.weight:3g}  {d.why}"])
    return table_of(lines) if settings else sentences("no setting differs")


def why_tables(results: Sequence[Why]) -> tuple[Table, ...]:
    """Return, for each result, tables of its gap, settings, effects of scoring again (if scores differ) and
    conclusion.
    """
    tables = []
    for why in results:
        second = f"{_mean_shown(why, why.second_mean)} {why.second}" + (
            " (published)" if why.published else ""
        )
        tables.append(
            sentences(f"{why.measure}: {score(why.first_mean)} {why.first}, {second}: gap {change(why.gap)}")
        )
        tables.append(settings_table(why.settings, _column_names(why)))
        if (why.effects or why.without) and not why.agree:
            tables += _effect_tables(why)
        lines_below = [_verdict(why)]
        if why.shared:
            lines_below.append(
                f"rankings: {count(why.same_top)} of {count(why.shared)} queries that both answer begin with the same "
                "ten documents in one order"
            )
        if any(e.documented for e in why.effects) and not why.agree:
            lines_below.append("*: the publisher is known to score so")
        if why.settings:
            lines_below.append(
                "likely effect: 100 most; an order from experience, measured only where it says so"
            )
        if why.published is not None:
            note = f" ({why.published.note})" if why.published.note else ""
            lines_below.append(f"source: {why.published.source}{note}")
        tables.append(sentences(*lines_below, *(f"note: {note}" for note in why.notes)))
    return tuple(tables)


WHYS = ResultKind(
    "why",
    Why,
    why_tables,
    parts="effects",
    records=lambda why: [
        json_value(why) | {"gap": json_value(why.gap), "unexplained": json_value(why.unexplained)}
    ],
)


def _column_names(why: Why) -> tuple[str, str]:
    second = "published" if why.published else why.second
    short = max(len(why.first), len(second)) <= NAME_CHARACTERS and why.first != second
    return (why.first, second) if short else ("first", "second")


def _effect_tables(why: Why) -> list[Table]:
    near = [e for e in why.effects if why.published is None or e.closes or abs(e.gap) < abs(why.gap)]
    near_kinds, all_kinds = {e.kind for e in near}, {e.kind for e in why.effects}
    far = ", ".join(
        k for k in dict.fromkeys(e.kind for e in why.effects if e not in near) if k not in near_kinds
    )
    without = dict.fromkeys(w.partition(" (")[0] for w in why.without)
    idle = ", ".join(k for k in without if k not in all_kinds)
    tables = []
    if near:
        lines = [["scored again, each change alone", *_column_names(why), "gap left", "explains"]]
        for e in near:
            name = f"{e.kind}: {e.change}{' *' if e.documented else ''}"
            lines.append([name, score(e.first), _mean_shown(why, e.second), change(e.gap), e.in_words])
        tables.append(table_of(lines, right=4))
    notes = [f"further away: {far}"] * bool(far) + [f"no effect: {idle}"] * bool(idle)
    return [*tables, *([replace(sentences(*notes), follows=bool(near))] if notes else [])]


def _verdict(why: Why) -> str:
    closing = [e for e in why.effects if e.closes]
    if why.agree:
        same = "the published score, to the last printed digit" if why.published else "the same number"
        return f"no gap: {same}"
    if closing:
        best = closing[0]
        shown = ", below the printed digits" if why.published else ""
        return f"explained: {best.kind}: with {best.change}, the gap is {change(best.gap)}{shown}"
    if not (why.effects or why.without):
        return f"unexplained: {change(why.gap)}; only the settings can be compared"
    if why.published is not None:
        nearest = f"; the nearest change leaves {change(why.unexplained)}" if why.effects else ""
        return f"not explained by scoring{nearest}: the rankings differ, or a rule that is not known here"
    unknown = all(one.setting in SEEN_IN_RUNS for one in why.settings)
    made = (
        "run files do not say how they were made, folders of weir run do" if unknown else "see the settings"
    )
    smallest = min((e.gap for e in why.effects), key=abs, default=why.gap)
    left = f"; the nearest leaves {change(smallest)}" * (abs(smallest) < abs(why.gap))
    apart = f"no single change of scoring makes the means equal, {change(why.gap)} apart{left}"
    return f"{apart}, so the rankings differ: {made}"


def _mean_shown(why: Why, value: float) -> str:
    return why.published.printed if why.published is not None else score(value)
