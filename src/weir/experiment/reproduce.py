"""Check results against published scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import change, count, one_or_more, score
from weir.core.run import Run
from weir.core.scores import Row
from weir.core.short_names import short_names
from weir.core.tables import Table, sentences, table_of
from weir.datasets import catalogue
from weir.datasets.load import Dataset
from weir.errors import BadValue, WeirError
from weir.experiment.published import (
    PublishedNames,
    PublishedScore,
    Publisher,
    Reported,
    close_queries,
    model_named,
    places_of,
    published,
    publisher_of,
    reported_of,
    unknown_name,
)
from weir.experiment.results import (
    ResultCell,
    chosen_cells,
    collection_of_cell,
    collection_places,
    dataset_of,
    finished_cells,
    group_rows,
    whereabouts,
)
from weir.experiment.ties_at_cut import cell_cut_note, with_ties_beyond
from weir.experiment.why import Scoring, defined_mean, rescored
from weir.files.runs import read_run
from weir.measures import Measure, parse_measure
from weir.measures.evaluate import each_file, names_of_runs
from weir.measures.measure import within_unit
from weir.stats.birco import BircoScore, birco_remarks, birco_scores

# ----------
# A results folder compared with published scores of the same systems.


Outcome: TypeAlias = Literal[
    "reproduced",
    "explained",
    "within ties",
    "off",
    "not claimed",
    "not published",
    "other data",
    "not scored again",
]
OPEN: frozenset[Outcome] = frozenset({"other data", "not scored again"})
"""Outcomes that leave open whether a score is reproduced."""
OUTCOMES: tuple[Outcome, ...] = tuple(get_args(Outcome))
MEANINGS: Mapping[Outcome, str] = {
    "reproduced": "equal to the last printed digit",
    "explained": "equal once scored by the rules that the publisher documents",
    "within ties": "another order of equal scores gives the published score",
    "other data": "documents, queries or judgments are not those of the published collection",
    "not scored again": "scores differ, and the collection is not here to score by the publisher's rules",
}
NEAREST = 3


@dataclass(frozen=True)
class Neighbour:
    """Another system's published score near one's own."""

    model: str
    printed: str
    source: str


@dataclass(frozen=True)
class PublishedCheck:
    """A mean compared with the published score that its system should reproduce."""

    folder: str
    dataset: str
    split: str
    system: str
    measure: str
    ours: float
    outcome: Outcome
    """"reproduced": equal to the last compared decimal. "explained": equal by the publisher's documented rule in
    `because`. "within ties": equal for another order of ties. "off": none of these; `because` tells of ties cut at k.
    "not claimed": the system claims none of the published models. "not published": nobody published this measure on
    the collection. "other data": documents, queries or judgments differ from the published ones as `because` says.
    "not scored again": scores differ, and the collection that could explain it is not here.
    """
    published: PublishedScore | None = None
    difference: float = math.nan
    """Own minus published; NaN without a published score."""
    decimals: int = 0
    """Number of compared decimals."""
    nearest: tuple[Neighbour, ...] = ()
    """Other systems' scores."""
    because: str = ""
    title: str = ""
    """What tables call the system, "" for its own name."""


def reproduce(
    root: Path,
    model: str | None = None,
    decimals: int | None = None,
    nearest: bool = False,
    systems: Sequence[str] = (),
    datasets: Sequence[str] = (),
    published_as: Sequence[str] = (),
    collections: Sequence[str | Path | Dataset] = (),
) -> list[PublishedCheck]:
    """Return a check of each mean of finished results and complete groups against each published score to
    reproduce, or one that says why there is none.

    model: compare the only system with this published model instead, by name or unique words.
    decimals: compare at most so many decimals.
    nearest: add the three nearest published scores of other systems.
    systems, datasets: by default all.
    published_as: OWN=PUBLISHED for systems and collections, such as "mine=minilm-l6 v2".
    collections: where collections are now, as NAME=PATH or PATH.

    A differing result is scored again by the publisher's rules if its collection is here. Raises FormatError
    without a result, UnknownName for an unknown name, BadValue for an ambiguous model, a model and several
    systems, or a collection of other judgments.
    """
    if decimals is not None and decimals < 0:
        raise BadValue(f"the tolerance is {decimals} decimals; expected a whole number from 0")
    cells = chosen_cells(finished_cells(root), datasets, systems)
    names = PublishedNames.of(published_as, cells)
    name = None if model is None else model_named(model, {reported_of(cell).dataset for cell in cells})
    compared = dict.fromkeys(cell.called for cell in cells)
    if name is not None and len(compared) > 1:
        several = f"{len(compared)} systems ({', '.join(compared)})"
        raise BadValue(
            f"'{name}' would be compared with {several}; choose one, as by `systems={[next(iter(compared))]!r}`"
        )
    checks_found, lie_at = [], collection_places(cells, collections)
    for cell in cells:
        again = _Rescored(cell, lie_at.get(cell.collection))
        known, other = names.place_of(cell)
        for row in cell.rows:
            place = str(cell.folder), cell.split
            models = names.claimed(row.system, known.dataset) if name is None else (name,)
            checks = _checks(row, place, known, models, decimals, nearest, other)
            for check in checks:
                claim = check.published
                far = claim is not None and not again.is_here and again.is_beyond(claim, row, decimals)
                checks_found.append(_scored_again(check, [again], decimals, far))
    places = places_of(cells, names)
    for row in group_rows([replace(cell, label="") for cell in cells]):
        known, other = places[row.dataset]
        known = replace(known, queries=row.queries)
        models = names.claimed(row.system, known.dataset) if name is None else (name,)
        parts = [
            _Rescored(cell, lie_at.get(cell.collection))
            for cell in cells
            if cell.system == row.system and cell.dataset in catalogue.group(row.dataset).members
        ]
        for check in _checks(row, (str(root), known.split), known, models, decimals, nearest, other):
            checks_found.append(_scored_again(check, parts, decimals, False))
    titles = {cell.system: cell.title for cell in cells}
    return [replace(check, title=titles.get(check.system, "")) for check in checks_found]


def _scored_again(
    check: PublishedCheck, parts: Sequence[_Rescored], decimals: int | None, far: bool
) -> PublishedCheck:
    claim, measure = check.published, parse_measure(check.measure)
    if check.outcome != "off" or claim is None:
        return check
    outcome: Outcome
    if (absent := next((part for part in parts if not part.is_here), None)) is not None:
        remedy = f"say where it lies now with `collection={ {absent.cell.collection: 'PATH'} }`"
        tried = "could explain this difference" if far else f"were tried; {remedy}"
        why = f"the collection {whereabouts(absent.cell)}; neither ties nor the publisher's rules {tried}"
        return replace(check, outcome="off" if far else "not scored again", because=why)
    for reason, scoring in documented(publisher_of(claim.model), measure):
        if claim.agrees(_mean_under(parts, scoring), decimals):
            return replace(check, outcome="explained", because=reason)
    low, high = (_mean_under(parts, Scoring(measure, ties)) for ties in ("worst", "best"))
    within = low <= claim.value <= high or claim.agrees(low, decimals) or claim.agrees(high, decimals)
    note = next(filter(None, (part.tied_cut(measure) for part in parts)), "")
    outcome = "within ties" if within else "off"
    return replace(check, outcome=outcome, because="" if within else note)


def _mean_under(parts: Sequence[_Rescored], scoring: Scoring) -> float:
    means = [mean for part in parts if (mean := part.mean_under(scoring)) is not None]
    return math.fsum(means) / len(means) if len(means) == len(parts) else math.nan


def _checks(
    row: Row,
    place: tuple[str, str],
    known: Reported,
    models: tuple[str, ...],
    decimals: int | None,
    nearest: bool,
    other: str,
) -> list[PublishedCheck]:
    scores = [s for s in published(known.dataset, measure=row.measure) if s.split == known.split]
    others = sorted((s for s in scores if s.model not in models), key=lambda s: abs(s.value - row.mean))
    neighbours = tuple(Neighbour(s.model, s.printed, s.source) for s in others[:NEAREST] if nearest)
    claims = [s for s in scores if s.model in models]
    folder, split = place
    ours = (folder, row.dataset, split, row.system, row.measure, row.mean)
    outcome: Outcome
    if not claims:
        outcome = "not claimed" if scores else "not published"
        because = unknown_name(known) or ("" if scores else _published_alike(row.measure, known))
        return [PublishedCheck(*ours, outcome, nearest=neighbours, because=because, title=row.title)]
    checks = []
    for claim in claims:
        outcome = "reproduced" if claim.agrees(row.mean, decimals) else "off"
        compared = claim.decimals if decimals is None else min(decimals, claim.decimals)
        difference = row.mean - claim.value
        if other or row.queries != known.queries:
            outcome = "other data"
        checks.append(
            PublishedCheck(*ours, outcome, claim, difference, compared, neighbours, other, row.title)
        )
    return checks


def _published_alike(measure: str, known: Reported) -> str:
    scores = (s for s in published(known.dataset) if s.split == known.split)
    name = parse_measure(measure).name
    alike = [one for one in dict.fromkeys(s.measure for s in scores) if parse_measure(one).name == name]
    have = f"{', '.join(alike)} {one_or_more(len(alike), 'is', 'are')}"
    return f"{measure} is not among the published scores that Weir has; {have}" if alike else ""


def documented(rules: Publisher, measure: Measure) -> Iterator[tuple[str, Scoring]]:
    """Yield (name, scoring) for each documented rule of a publisher that differs from Weir's, then for all
    together.
    """
    usual = Scoring(measure)
    together = Scoring(measure, rules.ties or "trec", rules.self_match or "keep", rules.missing or "zero")
    alone = {
        "ties": replace(usual, ties=together.ties),
        "self-matches": replace(usual, self_match=together.self_match),
        "missing queries": replace(usual, missing=together.missing),
    }
    changed = {name: scoring for name, scoring in alone.items() if scoring != usual}
    yield from changed.items()
    if len(changed) > 1:
        yield " and ".join(changed), together


@dataclass(frozen=True)
class _Rescored:
    cell: ResultCell
    place: str | Path | Dataset | None = None
    """Where its collection is now, if the user says so."""

    @property
    def is_here(self) -> bool:
        return self._read is not None

    def mean_under(self, scoring: Scoring) -> float | None:
        """Return the mean by other rules; None if the collection is not here."""
        if self._read is None:
            return None
        run, qrels, k = self._read
        return defined_mean(rescored(run, qrels, scoring, k), scoring.measure)

    def is_beyond(self, claim: PublishedScore, row: Row, decimals: int | None) -> bool:
        """Return True if the rankings alone rule out that ties or the publisher's rules give the published
        score.
        """
        measure, rules = parse_measure(row.measure), publisher_of(claim.model)
        if row.lowest is None or row.highest is None or not within_unit(row.measure):
            return False
        try:
            run = read_run(self.cell.run)
            own = rules.self_match == "drop" and len(run.without_self()) < len(run)
        except WeirError:
            return False
        if own or cell_cut_note(self.cell, run, measure, False) is not None:
            return False
        # The recorded bounds hold for equal scores; a query whose scores are equal by the publisher's rule alone may
        # have any value from 0 to 1.
        queries = row.queries if row.counted is None else row.counted
        share = close_queries(run, rules.ties or "trec", measure.cutoff) / queries
        low, high = row.lowest - share, row.highest + share
        if rules.missing == "answered-only" and row.answered:
            low, high = min(low, low * queries / row.answered), max(high, high * queries / row.answered)
        return not low - claim.tolerance(decimals) <= claim.value <= high + claim.tolerance(decimals)

    def tied_cut(self, measure: Measure) -> str:
        """Return a note on ties cut at the result's depth; "" without any, or if searched or unreadable."""
        note = None if self._read is None else cell_cut_note(self.cell, self._read[0], measure, False)
        return "" if note is None or self._read is None or self._read[2] is not None else note.text

    @cached_property
    def _read(self) -> tuple[Run, Qrels, int | None] | None:
        dataset = dataset_of(self.cell, self.place)
        if dataset is None:
            return None
        if self.place is not None and dataset.qrels_fingerprint != self.cell.judgments:
            place = self.place.name if isinstance(self.place, Dataset) else self.place
            raise BadValue(f"{place}: its judgments are not those by which {self.cell.dataset} was scored")
        run = read_run(self.cell.run)
        whole = with_ties_beyond(self.cell, dataset, run)
        return (run, dataset.qrels, None) if whole is None else (whole, dataset.qrels, self.cell.depth)


# ----------
# The official figures of BIRCO.


def birco_of_files(
    judgments: Qrels, called: str, runs: Sequence[Path]
) -> tuple[list[BircoScore], list[str], list[str]]:
    """Return (BIRCO's scores of run files, remarks on judgments, reasons for omitted files).

    called: name of the collection.

    Raises BadValue or the WeirErrors of reading if no file is left.
    """
    names = dict(zip(runs, names_of_runs(runs), strict=True))
    figures, refused = each_file(
        runs, lambda path: birco_scores(judgments, read_run(path), called, names[path])
    )
    return [one for scores in figures.values() for one in scores], birco_remarks(judgments), refused


def birco_of_cells(
    cells: Sequence[ResultCell], collections: Sequence[str | Path | Dataset] = (), fetch: bool = False
) -> tuple[list[BircoScore], list[str]]:
    """Return (BIRCO's scores of results, remarks on judgments and omitted results).

    collections: where collections are now, as NAME=PATH or PATH.
    fetch: download missing ones.

    Raises BadValue if no result is left, StoreError for changed rankings.
    """
    figures, remarks_on_cells = [], []
    judgments: dict[tuple[str, str], Qrels | None] = {}
    places = collection_places(cells, collections)
    for cell in cells:
        about = cell.dataset, cell.split
        if about not in judgments:
            dataset = collection_of_cell(cell, places, fetch)
            judgments[about] = None if dataset is None else dataset.qrels
        qrels = judgments[about]
        try:
            if qrels is None:
                raise BadValue(
                    f"{cell.label}: its judgments are not on this machine as they were used; name their collection"
                )
            cell.ranked.verify(cell.folder)
            figures += birco_scores(qrels, read_run(cell.run), cell.dataset, cell.label)
        except BadValue as error:
            remarks_on_cells.append(f"{cell.dataset}: {error}")
    if not figures:
        raise BadValue(remarks_on_cells[0] if remarks_on_cells else "no cell to score")
    remarks = {name: birco_remarks(qrels) for (name, _), qrels in judgments.items() if qrels is not None}
    return figures, [
        *remarks_on_cells,
        *(f"{name}: {one}" for name, several in remarks.items() for one in several),
    ]


# ----------
# Tables.


def check_cells(check: PublishedCheck) -> list[str]:
    """Return the last cells of a check's row: own score, published score, difference, verdict."""
    claim, difference = check.published, f"{abs(check.difference):.4f}"
    assert claim is not None
    partly = f" to {check.decimals} decimals" if check.decimals != claim.decimals else ""
    verdicts: dict[Outcome, str] = {
        "reproduced": f"reproduced{partly}",
        "explained": f"explained: {check.because}",
        "within ties": f"inside what ties allow (by {difference})",
        "off": f"off by {difference}",
        "not scored again": f"open (by {difference}): not scored again",
    }
    ours = f"{check.ours:.{max(4, claim.decimals)}f}"
    return [ours, claim.printed, change(check.difference), verdicts.get(check.outcome, "other data")]


def _reproduce_pages(checks: Sequence[PublishedCheck]) -> tuple[Table, ...]:
    names = list(dict.fromkeys(c.title or c.system for c in checks))
    short = dict(zip(names, short_names(names), strict=True))
    shown = [(c, short[c.title or c.system]) for c in checks]
    named = [replace(c, title="" if name == c.system else name) for c, name in shown]
    return _reproduce_tables(named, advised=False)


def _reproduce_tables(checks: Sequence[PublishedCheck], advised: bool = True) -> tuple[Table, ...]:
    numbers: dict[tuple[str, str], int] = {}
    lines = [["dataset", "system", "measure", "ours", "published", "difference", "verdict", "by"]]
    for c in checks:
        cell = [c.dataset, c.title or c.system, c.measure]
        if c.published is not None:
            number = numbers.setdefault((c.published.source, c.published.note), len(numbers) + 1)
            lines.append([*cell, *check_cells(c), f"{c.published.model} [{number}]"])
        elif c.nearest:
            lines.append([*cell, score(c.ours), "-", "-", "published, not claimed", ""])
        lines += [["", "", "", "", n.printed, "", "nearby", n.model] for n in c.nearest]
    numbers_of = Counter(c.outcome for c in checks)
    phrases: dict[Outcome, str] = {
        "reproduced": "reproduced",
        "off": "off",
        "not claimed": "published, not claimed"
        + " (`nearest=True` lists the nearest, `model=MODEL` says what a system is)" * advised,
        "not published": "with nothing published",
        "within ties": f"inside what ties allow ({MEANINGS['within ties']})",
        "explained": f"explained ({MEANINGS['explained']})",
        "other data": f"on other data ({MEANINGS['other data']})",
        "not scored again": f"open ({MEANINGS['not scored again']})",
    }
    always = ("reproduced", "off", "not published")
    parts = [
        f"{count(numbers_of[outcome])} {phrase}"
        for outcome, phrase in phrases.items()
        if outcome in always or numbers_of[outcome]
    ]
    notes = [", ".join(parts)]
    notes += dict.fromkeys(
        f"{c.dataset}: {c.because}" for c in checks if c.because and c.outcome == "not published"
    )
    notes += dict.fromkeys(
        f"{c.dataset}, {c.system}: {c.because}"
        for c in checks
        if c.because and (c.outcome == "off" or c.outcome in OPEN)
    )
    off = next((c for c in checks if c.outcome == "off" and c.published), None)
    if advised and off is not None and off.published is not None:
        notes.append(
            f"why: weir why {off.folder} --published '{off.published.model}' -m '{off.measure}' [--collection PATH]"
        )
    notes += dict.fromkeys(f"{c.title}: {c.system}" for c in checks if c.title and (c.published or c.nearest))
    notes += [f"[{n}] {source}{f' ({note})' if note else ''}" for (source, note), n in numbers.items()]
    return (table_of(lines, notes=notes) if len(lines) > 1 else sentences(*notes),)


CHECKS = ResultKind(
    "reproduce",
    PublishedCheck,
    _reproduce_tables,
    page=_reproduce_pages,
    html=_reproduce_tables,
    outcome=lambda one: "fail" if one.outcome == "off" else "undecided" if one.outcome in OPEN else "pass",
)
