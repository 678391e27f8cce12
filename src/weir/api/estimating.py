"""Scores from few human judgments and many of a model, in Python; and what people should judge next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.result_set import ResultSet

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.query_metadata import QueryGroups, QueryWeights
    from weir.core.run import Run
    from weir.datasets.load import Dataset
    from weir.datasets.scoring_rules import ScoringRules
    from weir.labels.estimates import CorrectedScore, QueryPlan
    from weir.measures.measure import Measure


def estimate(
    human: object,
    model: object,
    *runs: object,
    measure: Measure | str = "P@10",
    strata: object = None,
    weights: object = None,
    pairs: bool = False,
    sheets: Iterable[str | Path] = (),
    collection: str | Path | None = None,
) -> ResultSet[CorrectedScore]:
    """Scores of runs from few human judgments and many of a model: `weir labels estimate`.

    human, model, runs: as `weir.evaluate` takes them, labels as `weir.labels.agree`, too; strata: within which the
    queries that people judged were drawn: groups as `scores.by` takes them, or a column of the collection; weights:
    {query: weight} or a file, one over the probability with which each was drawn; pairs: people judged a random part
    of the first documents of each query; sheets: of `next_queries` or `judging_pool`, filled in, beside human;
    collection: of the runs, whose rules hold, such as that of self-matches.
    Raises BadValue for a measure that cannot be estimated so, and for too few queries.
    """
    from weir.datasets.scoring_rules import ScoringRules
    from weir.labels.estimates import estimated_scores
    from weir.labels.sampling import SampleDesign
    from weir.measures.measure import parse_measure

    by_people, by_model = _people(human, sheets), _labels(model)
    design = SampleDesign(_strata(strata, by_model, collection), _weights(weights), pairs)
    rules = ScoringRules.of(collection)
    estimates = estimated_scores(
        _rankings_by_name(runs, rules), by_people, by_model, parse_measure(str(measure)), design
    )
    return ResultSet("estimate", tuple(estimates), rules.notes)


def next_queries(
    human: object,
    model: object,
    *runs: object,
    measure: Measure | str = "P@10",
    count: int | None = None,
    width: float | None = None,
    strata: object = None,
    sheets: Iterable[str | Path] = (),
    out: str | Path | None = None,
    collection: str | Path | None = None,
) -> ResultSet[QueryPlan]:
    """Which queries people should judge next, so that estimates become narrower: `weir labels estimate --next`.

    human, model, runs, measure, strata, sheets: as `estimate`; count: how many queries; width: half an interval that is
    asked for; out: the folder of the sheet, None to write none; collection: whose texts stand on it, and
    whose rules hold. Raises BadValue
    where nothing is left to judge and for a folder that is there, and as `estimate`.
    """
    from weir.core.subject import Subject
    from weir.datasets.scoring_rules import ScoringRules
    from weir.labels.estimates import next_queries as drawn_queries
    from weir.labels.estimates import write_plan
    from weir.measures.measure import parse_measure

    labels = _people(human, sheets), _labels(model)
    groups = _strata(strata, labels[1], collection)
    drawn = drawn_queries(
        _rankings_by_name(runs, ScoringRules.of(collection)),
        labels,
        parse_measure(str(measure)),
        count,
        width,
        groups,
    )
    if out is not None:
        dataset = _dataset(collection)
        texts = (None, None) if dataset is None else (dataset.corpus, dataset.all_queries)
        write_plan(drawn, Subject("estimate", *texts), Path(out))
    return ResultSet("next queries", (drawn.plan,))


def _labels(value: object) -> Qrels:
    from weir.files.label_files import labels_from

    return labels_from(value)


def _people(human: object, sheets: Iterable[str | Path]) -> Qrels:
    """The judgments of people with those of filled sheets, of which the last counts first."""
    from weir.core.qrels import merge_qrels
    from weir.labels.pools import read_sheet

    found = _labels(human)
    for sheet in sheets:
        found = merge_qrels(read_sheet(Path(sheet))[0], found)
    return found


def _rankings_by_name(runs: Sequence[object], rules: ScoringRules) -> dict[str, Run]:
    """Runs by name, as the rules of their collection have them."""
    from weir.files.frames import run_from
    from weir.measures.evaluate import names_of_runs

    paths = [Path(one) for one in runs if isinstance(one, (str, Path))]
    names = names_of_runs(paths) if len(paths) == len(runs) else [f"run {n}" for n in range(1, len(runs) + 1)]
    return {name: rules.ranked(run_from(run)) for name, run in zip(names, runs, strict=True)}


def _strata(strata: object, model: Qrels, collection: str | Path | None) -> QueryGroups | None:
    from weir.datasets.load import query_groups

    return None if strata is None else query_groups(strata, model.queries, _dataset(collection))


def _dataset(collection: str | Path | None) -> Dataset | None:
    from weir.datasets.load import load

    return None if collection is None else load(collection)


def _weights(weights: object) -> QueryWeights | None:
    from weir.core.query_metadata import QueryWeights
    from weir.files.query_files import read_weights

    if weights is None or isinstance(weights, QueryWeights):
        return weights
    if isinstance(weights, Mapping):
        return QueryWeights.of(weights)
    return read_weights(Path(str(weights)))
