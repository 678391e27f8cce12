"""Two results, or a result and a published score, made ready for `explained`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.datasets.load import Dataset
from weir.datasets.scoring_rules import NO_COLLECTION, ScoringRules
from weir.errors import BadValue, WeirError
from weir.experiment.explain.what_if import TIE_RULES, Scoring, mean, rescored
from weir.experiment.explain.why import ComparedResult, Why, explained
from weir.experiment.finished import Finished, dataset_of, open_cell
from weir.experiment.published.published_scores import (
    PublishedScore,
    claimant,
    claimed,
    model_named,
    published,
    publisher_of,
)
from weir.io.runs.read import read_qrels, read_run
from weir.measures import DEFAULT_MEASURES, Measure, parse_measure
from weir.stages.stage import flattened

__all__ = ["Judgments", "explain_cells", "explain_published", "explain_rankings", "explain_runs"]

OURS = (("ties", TIE_RULES["trec"]), ("missing", "zero"))
SAME_MEAN = 1e-9


@dataclass(frozen=True)
class Judgments:
    """Where judgments come from: a file, or a collection by name or path; by default the cell's own collection."""

    qrels: Path | None = None
    collection: str | Path | Dataset | None = None


def explain_cells(
    first: Path, second: Path, measure: str | None = None, judgments: Judgments | None = None
) -> Why:
    """Why two cells of results folders have different means.

    measure: by default the first that both have. Where the judgments are on this machine both are scored again. Raises
    FormatError for a folder that is no finished cell, BadValue for cells without a measure in common.
    """
    cells = open_cell(first), open_cell(second)
    wanted = parse_measure(measure) if measure else _shared(*cells)
    notes: list[str] = []
    one, other = (_side(cell, wanted, judgments or Judgments(), notes) for cell in cells)
    return explained(one, other, wanted, tuple(dict.fromkeys(notes)))


def explain_published(
    cell: Path, model: str | None = None, measure: str | None = None, judgments: Judgments | None = None
) -> Why:
    """Why a cell and a published score differ.

    model: the published model, see `model_named`; by default what the cell's system claims to be. measure: by default
    the first that both have. Raises FormatError, UnknownName, and BadValue where nothing comparable is published.
    """
    ours = open_cell(cell)
    score = _score(ours, model, measure)
    notes: list[str] = []
    side = _side(ours, parse_measure(score.measure), judgments or Judgments(), notes)
    return explained(side, _published_side(score), parse_measure(score.measure), notes)


def explain_runs(
    qrels: Path, first: Path, second: Path, measure: str | None = None, rules: ScoringRules = NO_COLLECTION
) -> Why:
    """Why two run files have different means; their settings are what can be seen of them.

    rules: of their collection. Raises the errors of reading and measuring, and BadValue for a run that answers none of
    the judged queries.
    """
    judged, one, other = read_qrels(qrels), read_run(first), read_run(second)
    names = (one.name, other.name) if one.name != other.name else (str(first), str(second))
    return explain_rankings(judged, dict(zip(names, (one, other), strict=True)), measure, rules)


def explain_rankings(
    qrels: Qrels, runs: Mapping[str, Run], measure: str | None = None, rules: ScoringRules = NO_COLLECTION
) -> Why:
    """As `explain_runs`, of two runs by name."""
    judged, dropped = rules.counted(qrels), rules.conventions.self_matches == "drop"
    ranked = {name: rules.ranked(run) for name, run in runs.items()}
    one, other = (
        ComparedResult(name, _seen(run, judged), run=run, qrels=judged, dropped=dropped)
        for name, run in ranked.items()
    )
    said = [note.text for note in rules.notes]
    return explained(one, other, parse_measure(measure or DEFAULT_MEASURES[0]), said)


def _shared(first: Finished, second: Finished) -> Measure:
    """The first measure that both cells have; raises BadValue where there is none."""
    theirs = {r.measure for r in second.rows}
    found = next((r.measure for r in first.rows if r.measure in theirs), None)
    if found is None:
        raise BadValue(
            f"{first.folder} and {second.folder} have no measure in common; name one with -m, to be computed now"
        )
    return parse_measure(found)


def _score(cell: Finished, model: str | None, measure: str | None) -> PublishedScore:
    """The published score to compare a cell with; raises BadValue where there is none."""
    if model is None:
        models = claimed(cell.system, cell.dataset)
        if not models:
            raise BadValue(f"{cell.system} claims no published model; name one, or another cell")
    else:
        models = (model_named(model, cell.dataset),)
    wanted = str(parse_measure(measure)) if measure else None
    found = [
        s
        for name in models
        for s in published(cell.dataset, name)
        if s.split == cell.split and wanted in (None, s.measure)
    ]
    found.sort(key=lambda s: cell.mean(s.measure) is None)  # what the cell has already comes first
    if not found:
        what = f"{wanted} " if wanted else ""
        raise BadValue(f"no {what}score of {' or '.join(models)} on {cell.dataset} {cell.split} is published")
    return found[0]


def _side(cell: Finished, measure: Measure, judgments: Judgments, notes: list[str]) -> ComparedResult:
    """A cell as a side, with its rankings and judgments if they are here and give the stored mean."""
    stored = cell.mean(str(measure))
    settings = (*cell.settings, *OURS)
    dropped = dict(cell.settings).get("self_match") == "drop"
    qrels, corpus = _data(cell, judgments)
    if qrels is None:
        if stored is None:
            have = ", ".join(r.measure for r in cell.rows)
            raise BadValue(
                f"{cell.folder} has no {measure} but {have}, and the judgments of {cell.dataset} are not here "
                "to compute it; pass them with --qrels or --collection"
            )
        notes.append(
            f"the judgments of {cell.dataset} are not on this machine: nothing was scored again; "
            "pass them with --qrels or --collection"
        )
        return ComparedResult(cell.system, settings, stored, dropped=dropped)
    run = read_run(cell.run)
    again = mean(rescored(run, qrels, Scoring(measure)), measure)
    if stored is not None and abs(again - stored) > SAME_MEAN:
        if judgments != Judgments():
            raise BadValue(
                f"these are not the judgments of {cell.folder}: {measure} is {again:.4f} with them, {stored:.4f} there"
            )
        notes.append(f"the judgments of {cell.dataset} on this machine are not those of {cell.folder.name}")
        return ComparedResult(cell.system, settings, stored, dropped=dropped)
    return ComparedResult(cell.system, settings, again, run, qrels, corpus, dropped)


def _published_side(score: PublishedScore) -> ComparedResult:
    """A published score as a side, with the rules of its publisher as far as they are documented."""
    rules = publisher_of(score.model)
    known = [("dataset", score.dataset), ("split", score.split), ("self_match", rules.self_match)]
    known += [("k", rules.k), ("ties", TIE_RULES.get(rules.ties or "")), ("missing", rules.missing)]
    settings = tuple((name, value) for name, value in known if value)
    return ComparedResult(
        score.model, settings + _claimed_settings(score.model), score.value, score=score, publisher=rules
    )


def _claimed_settings(model: str) -> tuple[tuple[str, str], ...]:
    """The settings of the system of Weir that claims to be a model; none where there is no such system here."""
    name = claimant(model)
    if name is None:
        return ()
    try:
        from weir.systems import parse_system  # it needs the `run` extra

        described = parse_system(name).describe()
    except (ImportError, WeirError):
        return ()
    return tuple(flattened("system", described))


def _data(cell: Finished, given: Judgments) -> tuple[Qrels | None, Corpus | None]:
    """The judgments of a cell and its documents, each None where it is not here."""
    found = None
    if given.collection is not None or given.qrels is None:
        found = dataset_of(cell, given.collection)
    corpus = None if found is None else found.corpus
    if given.qrels is not None:
        return read_qrels(given.qrels), corpus
    return (None if found is None else found.qrels), corpus


def _seen(run: Run, qrels: Qrels) -> tuple[tuple[str, str], ...]:
    """What can be seen of a run: its depth, what it answers, whether queries find themselves, how it writes scores."""
    lengths = np.diff(run.ptr)
    known = run.queries.codes(qrels.queries.strings)
    answered = int(np.count_nonzero(lengths[known[known >= 0]]))
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
