"""Results checked against published scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from weir.core.qrels import Qrels
from weir.core.results import result
from weir.core.rounding import change, count, score
from weir.core.run import Run
from weir.core.scores import Row
from weir.core.tables import Table, sentences, table_of
from weir.datasets import catalogue
from weir.datasets.load import Dataset
from weir.errors import BadValue
from weir.experiment.published import (
    PublishedScore,
    Publisher,
    Reported,
    claimed,
    model_named,
    published,
    publisher_of,
    reported,
)
from weir.experiment.results import (
    ResultCell,
    collection_of_cell,
    collection_places,
    dataset_of,
    finished_cells,
    group_rows,
)
from weir.experiment.ties_at_cut import cell_cut_note, with_ties_beyond
from weir.experiment.why import Scoring, mean, rescored
from weir.files.runs import read_run
from weir.measures import Measure, parse_measure
from weir.measures.evaluate import each_file, names_of_runs
from weir.stats.birco import BircoScore, birco_remarks, birco_scores

# ----------
# A results folder compared with published scores of the same systems.


Outcome: TypeAlias = Literal[
    "reproduced", "explained", "within ties", "off", "not claimed", "not published", "other data"
]
NEAREST = 3


@dataclass(frozen=True)
class Neighbour:
    """A published score of another system near ours."""

    model: str
    printed: str
    source: str


@dataclass(frozen=True)
class PublishedCheck:
    """One mean of ours beside the published score that it claims to be.

    outcome: "reproduced" where the two agree to the last decimal that is compared; "explained" where they do once our
    rankings are scored by a rule that the publisher documents, named in `because`; "within ties" where another order of
    equal scores gives the published one; "off" where none does, `because` says what was cut within ties; "not
    claimed" where others published this measure on the collection and the system claims to be none of them; "not
    published" where nobody did; or "other data" where the collection has another number of judged queries than the
    published one; difference: ours minus published, NaN where there is none; decimals: how many are compared; nearest:
    other systems.
    """

    folder: str
    dataset: str
    split: str
    system: str
    measure: str
    ours: float
    outcome: Outcome
    published: PublishedScore | None = None
    difference: float = math.nan
    decimals: int = 0
    nearest: tuple[Neighbour, ...] = ()
    because: str = ""


def reproduce(
    root: Path, model: str | None = None, decimals: int | None = None, nearest: bool = False
) -> list[PublishedCheck]:
    """Check every finished cell of a results folder, and whole groups, against the published scores they claim to be.

    model: a published model that the systems are taken to be, instead of what they claim, see `model_named`; decimals:
    compare so many decimals, where more are printed; nearest: add the three nearest published scores of other systems.
    A cell that is off is scored again by the publisher's rules where its collection is on this machine.
    Raises FormatError where the folder holds no finished cell, UnknownName or BadValue for the model.
    """
    if decimals is not None and decimals < 0:
        raise BadValue(f"the tolerance is {decimals} decimals; expected a whole number from 0")
    name = None if model is None else model_named(model)
    cells = finished_cells(root)
    checks_found = []
    for cell in cells:
        known, again = reported(cell.dataset, cell.split), Rescored(cell)
        for row in cell.rows:
            checks = _checks(row, cell.split, known, name, decimals, nearest, str(cell.folder))
            for check in checks:
                claim, because = check.published, None
                outcome: Outcome = "explained"
                if check.outcome == "off" and claim is not None:
                    ways = documented(publisher_of(claim.model), parse_measure(check.measure))
                    means = ((reason, again.mean(scoring)) for reason, scoring in ways)
                    because = next((r for r, m in means if m is not None and claim.agrees(m, decimals)), None)
                    if because is None:
                        within = again.agrees_within(claim, parse_measure(check.measure), decimals)
                        note = again.tied_cut(parse_measure(check.measure))
                        outcome, because = "within ties" if within else "off", "" if within else note
                checks_found.append(
                    check if because is None else replace(check, outcome=outcome, because=because)
                )
    for row in group_rows([replace(cell, label="") for cell in cells]):
        members = catalogue.group(row.dataset).members
        split = next((cell.split for cell in cells if cell.dataset in members), "test")
        known = Reported(row.dataset, split, row.queries)
        checks_found += _checks(row, split, known, name, decimals, nearest, str(root))
    return checks_found


def _checks(
    row: Row,
    split: str,
    known: Reported,
    model: str | None,
    decimals: int | None,
    nearest: bool,
    folder: str,
) -> list[PublishedCheck]:
    """A check for each published score that a row claims to be, or one that says why there is none.

    known: as what published scores know its collection; model: what its system is taken to be instead.
    """
    models = claimed(row.system, known.dataset) if model is None else (model,)
    scores = [s for s in published(known.dataset, measure=row.measure) if s.split == known.split]
    others = sorted((s for s in scores if s.model not in models), key=lambda s: abs(s.value - row.mean))
    neighbours = tuple(Neighbour(s.model, s.printed, s.source) for s in others[:NEAREST] if nearest)
    claims = [s for s in scores if s.model in models]
    ours = (folder, row.dataset, split, row.system, row.measure, row.mean)
    if not claims:
        return [PublishedCheck(*ours, "not claimed" if scores else "not published", nearest=neighbours)]
    checks = []
    for claim in claims:
        outcome: Outcome = "reproduced" if claim.agrees(row.mean, decimals) else "off"
        compared = claim.decimals if decimals is None else min(decimals, claim.decimals)
        difference = row.mean - claim.value
        if row.queries != known.queries:
            outcome = "other data"
        checks.append(PublishedCheck(*ours, outcome, claim, difference, compared, neighbours))
    return checks


def documented(rules: Publisher, measure: Measure) -> Iterator[tuple[str, Scoring]]:
    """The ways in which a publisher is known to score otherwise than Weir, by what differs: each alone, then all."""
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
class Rescored:
    """A cell whose rankings and judgments are read when a score by other rules is first asked for."""

    cell: ResultCell

    def mean(self, scoring: Scoring) -> float | None:
        """The mean by other rules, None where the collection of the cell is not on this machine."""
        if self._read is None:
            return None
        run, qrels, k = self._read
        return mean(rescored(run, qrels, scoring, k), scoring.measure)

    def agrees_within(self, claim: PublishedScore, measure: Measure, decimals: int | None) -> bool:
        """Whether a published score lies between the means of the worst and the best order of ties."""
        ends = [self.mean(Scoring(measure, ties)) for ties in ("worst", "best")]
        if None in ends or any(math.isnan(end) for end in ends if end is not None):
            return False
        low, high = (end for end in ends if end is not None)
        return low <= claim.value <= high or claim.agrees(low, decimals) or claim.agrees(high, decimals)

    def tied_cut(self, measure: Measure) -> str:
        """The note on ties that cross k, "" where none do or they are searched."""
        note = None if self._read is None else cell_cut_note(self.cell, self._read[0], measure, False)
        return "" if note is None or self._read is None or self._read[2] is not None else note.text

    @cached_property
    def _read(self) -> tuple[Run, Qrels, int | None] | None:
        """(rankings, with what shares their k-th score where it can be searched, judgments, k then)."""
        dataset = dataset_of(self.cell)
        if dataset is None:
            return None
        run = read_run(self.cell.run)
        whole = with_ties_beyond(self.cell, dataset, run)
        return (run, dataset.qrels, None) if whole is None else (whole, dataset.qrels, self.cell.depth)


# ----------
# The official figures of BIRCO.


def birco_of_files(
    judgments: Qrels, called: str, runs: Sequence[Path]
) -> tuple[list[BircoScore], list[str], list[str]]:
    """(the figures of each run file, what has to be said of the judgments, why files are left out).

    called: the name of the judgments.
    Raises as `birco_scores` and readers where no file is left.
    """
    names = dict(zip(runs, names_of_runs(runs), strict=True))
    figures, refused = each_file(
        runs, lambda path: birco_scores(judgments, read_run(path), called, names[path])
    )
    return [one for scores in figures.values() for one in scores], birco_remarks(judgments), refused


def birco_of_cells(
    cells: Sequence[ResultCell], collections: Sequence[str | Path | Dataset] = (), fetch: bool = False
) -> tuple[list[BircoScore], list[str]]:
    """(the figures of each finished cell, what has to be said of judgments and of cells that were left out).

    collections: where those lie whose judgments they are scored by, as `collection_places` takes them, by default where
    records say; fetch: as `cell_collection` takes it. A cell that does not rank whole pools is left out. Raises
    BadValue where that leaves none, StoreError for rankings that are not as they were written, and as
    `collection_places` and `load`.
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
    """Of a check of a published score: ours, the published one, the difference, the verdict."""
    claim, difference = check.published, f"{abs(check.difference):.4f}"
    assert claim is not None
    partly = f" to {check.decimals} decimals" if check.decimals != claim.decimals else ""
    verdicts: dict[Outcome, str] = {
        "reproduced": f"reproduced{partly}",
        "explained": f"explained: {check.because}",
        "within ties": f"inside what ties allow (by {difference})",
        "off": f"off by {difference}",
    }
    ours = f"{check.ours:.{max(4, claim.decimals)}f}"
    return [ours, claim.printed, change(check.difference), verdicts.get(check.outcome, "other data")]


@result("reproduce", PublishedCheck)
def reproduce_tables(checks: Sequence[PublishedCheck]) -> tuple[Table, ...]:
    """A line for each claim, then the counts and the sources."""
    numbers: dict[tuple[str, str], int] = {}
    lines = [["dataset", "system", "measure", "ours", "published", "difference", "verdict", "by"]]
    for c in checks:
        cell = [c.dataset, c.system, c.measure]
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
        "not claimed": "published, not claimed (--published MODEL says what a system is)",
        "not published": "with nothing published",
        "within ties": "inside what ties allow (another order of equal scores gives the published score)",
        "explained": "explained (equal once scored by the rules that the publisher documents)",
        "other data": "on other data (another number of judged queries than published)",
    }
    always = ("reproduced", "off", "not published")
    parts = [
        f"{count(numbers_of[outcome])} {phrase}"
        for outcome, phrase in phrases.items()
        if outcome in always or numbers_of[outcome]
    ]
    notes = [", ".join(parts)]
    notes += dict.fromkeys(
        f"{c.dataset}, {c.system}: {c.because}" for c in checks if c.because and c.outcome == "off"
    )
    off = next((c for c in checks if c.outcome == "off" and c.published), None)
    if off is not None and off.published is not None:
        notes.append(
            f"why: weir why {off.folder} --published '{off.published.model}' -m '{off.measure}' [--collection PATH]"
        )
    notes += [f"[{n}] {source}{f' ({note})' if note else ''}" for (source, note), n in numbers.items()]
    return (table_of(lines, notes=notes) if len(lines) > 1 else sentences(*notes),)
