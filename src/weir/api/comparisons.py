"""Comparisons of systems in Python: tests, differences by query, the gate, queries that belong together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, overload

from weir.api.auditing import Places, place_of, places_of
from weir.api.evaluation import conventions_of, evaluate, judgments_from
from weir.api.given import all_rankings, one_ranking, ranking, two_rankings
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.origin import judgment_marks
from weir.core.scores import GroupedScores, JudgedScores, Note, Scores, SystemScores
from weir.datasets.load import query_groups
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue, WeirError
from weir.files.frames import qrels_from, refuse_mismatched, refuse_rankings, run_from
from weir.files.paths import path_of
from weir.files.runs import RESULT_RUNS, run_name
from weir.files.score_files import is_baseline, read_baseline
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, parse_measure
from weir.measures.evaluate import DEFAULT, Conventions, distinct_names, names_of_runs
from weir.measures.measure import judged_by_default, no_direction_note

if TYPE_CHECKING:
    from weir.core.intents import IntentQrels
    from weir.core.qrels import Qrels
    from weir.core.run import Run
    from weir.core.tables import Table
    from weir.datasets.load import Dataset
    from weir.experiment.results import ResultCell
    from weir.experiment.why import Why
    from weir.experiment.why_engine import EngineWhy
    from weir.stats.compare import Comparison, ComparisonMethod
    from weir.stats.factors import FactorStudy
    from weir.stats.gate import Gate
    from weir.stats.paired_sets import WithinGroups
    from weir.stats.power import PowerPlan
    from weir.stats.query_differences import QueryDifferences
    from weir.stats.threshold import Abstention, Threshold


Measures: TypeAlias = "Measure | str | Iterable[Measure | str]"
FolderPath: TypeAlias = "str | os.PathLike[str]"
Collection: TypeAlias = "str | Path | Dataset | None"
"""A collection by name, path or itself."""


@overload
def compare(qrels: object, *systems: object, measures: Measures = ..., baseline: str | None = ...,
            method: ComparisonMethod | str = ..., conventions: Conventions | str = ..., by: object = ...,
            factors: None = ..., collection: Collection | Places = ..., datasets: Sequence[str] = ...,
            only: Sequence[str] = ...) -> ResultSet[Comparison]: ...  # fmt: skip
@overload
def compare(qrels: object, *systems: object, measures: Measures = ..., baseline: None = ...,
            method: ComparisonMethod | str = ..., conventions: Conventions | str = ..., by: None = ...,
            factors: str | Iterable[str] | Literal[True], collection: Collection | Places = ...,
            datasets: Sequence[str] = ..., only: Sequence[str] = ...) -> ResultSet[FactorStudy]: ...  # fmt: skip
@checked
def compare(
    qrels: object,
    *systems: object,
    measures: Measures = (),
    baseline: str | None = None,
    method: ComparisonMethod | str = "permutation",
    conventions: Conventions | str = DEFAULT,
    by: object = None,
    factors: str | Iterable[str] | Literal[True] | None = None,
    collection: Collection | Places = None,
    datasets: Sequence[str] = (),
    only: Sequence[str] = (),
) -> ResultSet[Comparison] | ResultSet[FactorStudy]:
    """Compare systems, with significance tests: for each measure a comparison, each pair of systems with its verdict.

    compare(qrels, a, b), compare(qrels, {"a": a, "b": b}) or compare(qrels, [a, b]): judgments and rankings, both as
    `evaluate` takes them; measures may stand behind them without a name. What holds scores already needs no
    judgments: compare(folder) of a results folder, compare(scores_a, scores_b), or Scores by name in a dict.
    baseline: compare with this one instead of each with each. method: a test by name, or weir.stats.ComparisonMethod
    with correction, intervals, level, margin of equivalence, draws and seed. Differences are the second system minus
    the first, as in `weir diff`, `weir gate` and `weir power`: the later given minus the earlier, or each minus the
    baseline. by: groups of queries as `Scores.by` takes them, or a column of the collections of a folder: then the
    macro mean over groups and each group follow, corrected by Benjamini and Hochberg.
    factors: True, or names of the settings in which the systems' names differ: then a study of their effects for each
    measure and collection, and over collections, stands in the place of comparisons. collection: of rankings, by name,
    path or itself, whose rules hold (self-matches, candidates, queries without an answer) and whose columns `by` may
    name; of a folder, where the collections of such columns lie now, {name: path}. datasets, only: of a folder, these
    datasets (or members of groups) and these systems alone. Of three or more run files one that cannot be scored is
    left out, and a note says why.
    Raises BadValue for fewer than two systems and for systems that share no query or one only, UnknownName for a
    baseline, test or correction that does not exist, and the WeirErrors of the parts.
    """
    return compare_shown(
        qrels,
        *systems,
        measures=measures,
        baseline=baseline,
        method=method,
        conventions=conventions,
        by=by,
        factors=factors,
        collection=collection,
        datasets=datasets,
        only=only,
    ).results


@dataclass(frozen=True)
class ShownComparison:
    """A comparison with what its tables need.

    cells: of a results folder; labels: names to show for systems; left_out: the notes on runs that were not scored.
    """

    results: ResultSet[Comparison] | ResultSet[FactorStudy]
    cells: Sequence[ResultCell] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out: Sequence[Note] = ()

    def tables(
        self, long: bool = False, explain: bool = False, width: int | None = None
    ) -> tuple[Table, ...]:
        """The comparisons as tables for a terminal of this width; those of several datasets as a grid for each measure,
        followed by the comparison across them.

        long: every pair on every dataset; explain: with how the numbers were made.
        """
        from weir.api.rows import grid_tables, grids_marked
        from weir.experiment.results import rows_with_groups, system_titles
        from weir.stats.compare import compare_tables
        from weir.stats.factors import factor_tables

        if self.results.kind == "factors":
            return factor_tables(cast("ResultSet[FactorStudy]", self.results), long)
        comparisons = cast("ResultSet[Comparison]", self.results)
        across = [one for one in comparisons if one.unit == "datasets"]
        if long or not across:
            return compare_tables(comparisons, long, explain)
        names = {**system_titles(self.cells), **self.labels}
        measures = {one.measure for one in comparisons}
        rows = [
            replace(row, system=names.get(row.system, row.system), title="")
            for row in rows_with_groups(self.cells)
            if row.measure in measures
        ]
        grids = grid_tables(rows, comparisons, {label: label for label in self.labels.values()})
        marked = grids_marked([grid for grid in grids if grid.measure in measures], width, legend=False)
        return (*marked, *compare_tables(across, long, explain))


def compare_shown(
    qrels: object,
    *systems: object,
    measures: Measures = (),
    baseline: str | None = None,
    method: ComparisonMethod | str = "permutation",
    conventions: Conventions | str = DEFAULT,
    by: object = None,
    factors: str | Iterable[str] | Literal[True] | None = None,
    collection: Collection | Places = None,
    datasets: Sequence[str] = (),
    only: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> ShownComparison:
    """As `compare`, with the tables of `weir compare`; labels: names for these, such as "tuned=bm25(k1=1.2)".

    Raises as `compare`, and as `labels_of`.
    """
    from weir.api.rows import labels_of
    from weir.experiment.comparing import compare_cells, compare_cells_by_group, lacking_notes
    from weir.experiment.factors import (
        factor_names,
        refuse_beside_factors,
        study_cells,
        study_factors,
        twin_notes,
        twin_systems,
    )
    from weir.experiment.results import (
        cell_notes,
        chosen_cells,
        current_cells,
        finished_cells,
        largest_k,
        system_titles,
        systems_without_scores,
        with_collections,
    )
    from weir.stats.compare import ComparisonMethod, compare_scores, relabelled
    from weir.stats.score_rows import system_notes

    how = ComparisonMethod(method, "holm" if by is None else "bh") if isinstance(method, str) else method
    rankings = systems
    if systems and not measures and _are_measures(systems[-1]):
        rankings, measures = systems[:-1], cast("Measures", systems[-1])
    chosen = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
    if factors is not None:
        refuse_beside_factors(baseline, by)
    if not rankings and isinstance(qrels, (str, os.PathLike)):
        results = path_of(qrels)
        if conventions_of(conventions) != DEFAULT:
            raise BadValue(
                f"{conventions}: a results folder holds scores already; pass judgments and runs instead"
            )
        finished = finished_cells(results)
        cells, remarks = current_cells(chosen_cells(finished, datasets, only))
        if remarks and len({cell.dataset for cell in cells}) == len(cells):
            raise BadValue(f"no dataset has two systems to compare: {'; '.join(remarks)}")
        if not any("#" in system for system in only):  # a label means its cell, whatever its depth
            cells, more = largest_k(cells)
            remarks += more
        with_column, lacking = with_collections(cells, by, places_of(collection))
        cells, remarks = [cell for cell, _ in with_column], [*remarks, *lacking]
        label_of = labels_of(labels, [cell.label for cell in cells])
        names = {**system_titles(cells), **label_of}
        baseline = next((name for name, label in names.items() if label == baseline), baseline)
        remarks += [*twin_notes(twin_systems(cells)), *lacking_notes(cells, chosen, baseline)]
        remarks += systems_without_scores(results, finished, datasets)
        notes = (*map(Note, remarks), *cell_notes(cells))
        if factors is not None:
            studies = study_cells(cells, factor_names(factors), chosen, how)
            return ShownComparison(ResultSet("factors", tuple(studies), notes))
        if by is None:
            comparisons = compare_cells(cells, chosen, baseline, how)
        else:
            datasets_of = {id(cell): dataset for cell, dataset in with_column}
            comparisons = compare_cells_by_group(
                cells, lambda c, queries: query_groups(by, queries, datasets_of[id(c)]), chosen, baseline, how
            )
        compared = ResultSet("compare", tuple(relabelled(comparisons, names)), notes)
        return ShownComparison(compared, cells, label_of)
    if datasets or only:
        raise BadValue(
            "datasets and systems (-d, -s) are those of a results folder; name the run files instead"
        )
    name = Path(qrels).name if isinstance(qrels, (str, os.PathLike)) else "the judged queries"
    qrels, collection = judged_by(qrels, place_of(collection))
    if not isinstance(qrels, Scores):
        rankings = tuple(all_rankings(rankings))
    if len(rankings) == 1 and isinstance(rankings[0], (str, os.PathLike)):
        raise BadValue(
            f"found one ranking, {rankings[0]}; expected judgments and two or more, or one results folder"
        )
    dataset, reasons = None, list[str]()
    if isinstance(qrels, Scores):
        scores = _scored((qrels, *rankings))
    elif not rankings:
        scores = _scored(qrels)
    elif len(rankings) > 1 and (paths := _all_paths((qrels, *rankings))):
        scores, dataset, reasons = _scores_of_files(paths, collection, conventions, chosen)
        lost = dict(zip(names_of_runs(paths[1:]), paths[1:], strict=True)).get(baseline or "")
        if lost is not None and baseline not in scores:
            reason = next(one for one in reasons if one.startswith(str(lost)))
            raise BadValue(f"the baseline '{baseline}' cannot be scored: {reason}")
    else:
        rules = ScoringRules.of(collection, conventions_of(conventions))
        dataset, several = rules.dataset, rankings[0] if len(rankings) == 1 else rankings
        scores = _scores_by_name(qrels, several, chosen or DEFAULT_MEASURES, rules)
    label_of = labels_of(labels, scores)
    baseline = next((system for system, label in label_of.items() if label == baseline), baseline)
    left_out = tuple(Note(f"left out: {reason}") for reason in reasons)
    notes = (*system_notes(scores), *left_out)
    if factors is not None:
        of = {(name, system): one for system, one in scores.items()}
        studies = study_factors(of, factor_names(factors), chosen, how)
        return ShownComparison(ResultSet("factors", tuple(studies), notes), left_out=left_out)
    groups = None if by is None else query_groups(by, next(iter(scores.values())).queries, dataset)
    comparisons = compare_scores(
        scores, name, baseline, how, groups, [str(m) for m in measures_of(chosen)] if chosen else ()
    )
    compared = ResultSet("compare", tuple(relabelled(comparisons, label_of)), notes)
    return ShownComparison(compared, left_out=left_out)


@checked
def power(
    qrels: object,
    first: object,
    second: object,
    measures: Measures = DEFAULT_MEASURES,
    *,
    effects: Sequence[float] = (0.01, 0.02, 0.05),
    alpha: float = 0.05,
    power: float = 0.8,
    test: str = "permutation",
    conventions: Conventions | str = DEFAULT,
    collection: Collection = None,
) -> ResultSet[PowerPlan]:
    """How small a difference the queries can show, and how many queries would show a smaller one.

    qrels, first, second: as `evaluate` takes them; Scores stand for a run. effects: differences to plan for; alpha:
    level of the two-sided test; power: probability with which a true difference shall be found in new data; test:
    permutation, t or bootstrap-shift; collection: of the rankings, whose rules hold, as in `evaluate`. Raises BadValue
    for fewer than two queries, for numbers out of range and another test, and the WeirErrors of the parts.
    """
    from weir.stats.compare import shared_measures, table
    from weir.stats.power import plan as planned
    from weir.stats.score_rows import system_notes

    name = Path(qrels).name if isinstance(qrels, (str, os.PathLike)) else "the judged queries"
    qrels, collection = judged_by(qrels, collection)
    first, second = two_rankings(first, second)
    if paths := _all_paths((qrels, first, second)):
        scores = _scores_of_files(paths, collection, conventions, measures)[0]
    else:
        rules = ScoringRules.of(collection, conventions_of(conventions))
        scores = _two(qrels, (first, second), measures, rules)
    pairs = [(m, table(name, m, scores).values) for m in shared_measures(scores.values())]
    plans = tuple(planned(m, v[1] - v[0], effects, power, alpha, test) for m, v in pairs)
    return ResultSet("power", plans, tuple(system_notes(scores)))


@overload
def diff(first: FolderPath, second: FolderPath, *, measure: Measure | str | None = ..., top: int = ...,
         collection: Collection = ...) -> ResultSet[QueryDifferences]: ...  # fmt: skip
@overload
def diff(first: object, second: object, third: object, *, measure: Measure | str | None = ..., top: int = ...,
         collection: Collection = ...,
         conventions: Conventions | str = ...) -> ResultSet[QueryDifferences]: ...  # fmt: skip
@checked
def diff(
    first: object,
    second: object,
    third: object = None,
    *,
    measure: Measure | str | None = None,
    top: int = 10,
    collection: Collection = None,
    conventions: Conventions | str = DEFAULT,
) -> ResultSet[QueryDifferences]:
    """Which queries one run wins and loses against another: diff(qrels, one, other), or two cells of results folders.

    Judgments and runs as `evaluate` takes them; a difference is the second run minus the first. measure: by default
    nDCG@10, of cells the first that both have; top: how many of the largest gains and losses are kept; collection:
    whose texts are shown, and whose rules hold for rankings; conventions: of rankings. Raises BadValue for a run that
    answers none of the judged queries and the WeirErrors of the parts.
    """
    from weir.experiment.comparing import diff_cells, diff_files, diff_runs

    name = None if measure is None else str(measure)
    if third is None:
        one, other = _folder(first), _folder(second)
        if conventions_of(conventions) != DEFAULT:
            raise BadValue(
                f"{conventions}: folders of results are scored already; pass judgments and two runs instead"
            )
        return ResultSet("diff", (diff_cells(one, other, name, collection, top),))
    first, collection = judged_by(first, collection)
    second, third = two_rankings(second, third)
    rules = ScoringRules.of(collection, conventions_of(conventions))
    if paths := _all_paths((first, second, third)):
        return ResultSet("diff", (diff_files(paths[0], (paths[1], paths[2]), name or "nDCG@10", rules, top),))
    runs = run_from(second), run_from(third)
    refuse_mismatched(first, second)
    refuse_mismatched(first, third)
    names = distinct_names([run.name for run in runs], ["first", "second"])
    moves = diff_runs(qrels_from(first), dict(zip(names, runs, strict=True)), name or "nDCG@10", rules, top)
    return ResultSet("diff", (moves,))


@checked
def why(
    *results: object,
    published: str | None = None,
    measure: Measure | str | None = None,
    qrels: FolderPath | None = None,
    collection: Collection = None,
) -> ResultSet[Why] | ResultSet[EngineWhy]:
    """Why two numbers differ: why(qrels, one, other), why(cell, other_cell), or a cell and what is published.

    why("elasticsearch(url=...)", "bm25", collection="scifact") asks a live engine of its fields, terms and scores; an
    engine may also be http("search.toml") of an index of Elasticsearch, OpenSearch or Solr, on either side or both.

    results: judgments and two runs as `evaluate` takes them; two folders such as results/scifact/bm25-fa19b4d424; or
    one, which is compared with the published model that its system claims to be, or with the one named. qrels,
    collection: where the judgments of folders are, if not on this machine; collection: of rankings, whose rules hold.
    Raises BadValue for another number of
    results, and the WeirErrors of the parts.
    """
    from weir.experiment.why import Judgments, explain_cells, explain_published, explain_rankings

    name = None if measure is None else str(measure)
    if qrels is not None:
        judged, collection = judged_by(qrels, collection)
    judgments = Judgments(None if qrels is None else judged, collection)
    match results:
        case (one,):
            explanation = explain_published(_folder(one), published, name, judgments)
        case (_, _) if published is not None:
            raise BadValue("published takes one result; two results are compared with each other")
        case (one, other) if _is_system(one) and _is_system(other):
            return _why_engine(one, other, measure, qrels, collection)
        case (one, other):
            folders = _folder(one), _folder(other)
            if all(folder.is_file() for folder in folders):
                raise BadValue("two run files need their judgments before them: weir why QRELS RUN RUN")
            explanation = explain_cells(*folders, name, judgments)
        case (judged, one, other) if not (published or qrels or _is_cell(judged)):
            judged, collection = judged_by(judged, collection)
            one, other = two_rankings(one, other)
            refuse_mismatched(judged, one)
            runs = run_from(one), run_from(other)
            long = [str(run) for run in _all_paths([one, other])] or ["first", "second"]
            names = distinct_names([run.name for run in runs], long)
            by_name = dict(zip(names, runs, strict=True))
            explanation = explain_rankings(qrels_from(judged), by_name, name, ScoringRules.of(collection))
        case _:
            raise BadValue(
                f"found {len(results)} results; expected one or two result folders, or judgments and two runs alone"
            )
    return ResultSet("why", (explanation,))


def _is_cell(given: object) -> bool:
    """Whether it is the folder of a result, which holds no judgments."""
    return isinstance(given, (str, os.PathLike)) and run_name(path_of(given) / RESULT_RUNS[0]) != "run"


def _is_system(given: object) -> bool:
    """Whether it is a system, or a text that names one rather than a folder."""
    from weir.systems.protocol import SYSTEMS, Retriever

    if isinstance(given, str):
        return given.partition("(")[0].strip() in SYSTEMS.names() and not Path(given).exists()
    return isinstance(given, Retriever)


def _why_engine(
    first: object, second: object, measure: Measure | str | None, qrels: object, collection: Collection
) -> ResultSet[EngineWhy]:
    from weir.datasets.load import Dataset, load
    from weir.experiment.why_engine import explain_engine
    from weir.systems import system

    if collection is None or qrels is not None:
        raise BadValue(
            "two systems are asked the queries of a collection: name it with --collection, without --qrels"
        )
    dataset = collection if isinstance(collection, Dataset) else load(collection)
    parsed = parse_measure(str(measure or DEFAULT_MEASURES[0]))
    return ResultSet("why-engine", (explain_engine(system(first), system(second), dataset, parsed),))


@checked
def abstention(
    run: object, scores: Scores, confidence: Literal["max", "std", "diff1"] = "max"
) -> ResultSet[Abstention]:
    """What leaving out the queries that a system is least sure of would gain: a curve for each measure, and its nAUC.

    run: what was scored, as `evaluate` takes it; confidence: "max", the best score, "std", the standard deviation of
    the scores, or "diff1", the best less the second. Raises UnknownName for another, BadValue for other scores, and the
    WeirErrors of reading.
    """
    from weir.stats.threshold import abstention as curves

    if not isinstance(scores, Scores):
        raise BadValue(
            f"found {type(scores).__name__} as the scores; expected the run, then what weir.evaluate gave"
        )
    return ResultSet("abstention", tuple(curves(ranking(run), scores, confidence)))


@checked
def threshold(
    qrels: object,
    run: object,
    measure: Measure | str = "R@10",
    *,
    max_false: float = 0.1,
    confidence: Literal["max", "std", "diff1"] = "max",
    unanswerable: Iterable[str] = (),
    seed: int | None = None,
    collection: Collection = None,
) -> ResultSet[Threshold]:
    """The score below which a system should stay silent, chosen on half of the queries and reported on the other.

    qrels, run: as `evaluate` takes them; a query without a grade above 0, also one of a dict with nothing behind it,
    and each of `unanswerable`, has no answer.
    max_false: the largest share of those that may be answered; measure: what is kept of the others; confidence: as
    `abstention` has it; seed: of the split; collection: of the ranking, whose rules hold and which says what queries
    have no answer. Raises BadValue for fewer than four queries of either kind.
    """
    from weir.datasets.load import unanswerable_queries
    from weir.stats.resampling import SEED
    from weir.stats.threshold import ThresholdRules
    from weir.stats.threshold import threshold as chosen

    qrels, collection = judged_by(qrels, collection)
    refuse_mismatched(qrels, run)
    rules = ThresholdRules(max_false, confidence, SEED if seed is None else seed)
    scoring, parsed = ScoringRules.of(collection), measures_of(measure)[0]
    silent = [] if scoring.queries is None else unanswerable_queries(scoring.queries)
    ranked = scoring.ranked(ranking(run))
    rows = qrels.items() if isinstance(qrels, Mapping) else ()
    empty = [str(query) for query, row in rows if isinstance(row, Sized) and not len(row)]
    judged = qrels_from(qrels)
    result = chosen(ranked, judged, parsed, rules, [*unanswerable, *silent, *empty])
    return ResultSet("threshold", (result,), (*scoring.notes, *scoring.dangling_notes(judged)))


def _all_paths(values: Sequence[object]) -> list[Path]:
    """The paths, where nothing else is given; else none."""
    paths = [Path(one) for one in values if isinstance(one, (str, os.PathLike))]
    return paths if len(paths) == len(values) else []


def _scores_of_files(
    paths: Sequence[Path], collection: Collection, conventions: Conventions | str, measures: Measures
) -> tuple[dict[str, Scores], Dataset | None, list[str]]:
    """(the scores of run files by name, their collection, a sentence on each file that cannot be scored).

    The files stand behind their judgments, with which they are joined while they are read.
    """
    from weir.experiment.comparing import scores_of_files

    qrels, runs = paths[0], paths[1:]
    rules = ScoringRules.of(collection, conventions_of(conventions))
    parsed = measures_of(measures) if measures else ()
    scores, left_out = scores_of_files(qrels, runs, parsed, rules)
    return scores, rules.dataset, left_out


def _folder(value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise BadValue(
            f"found {type(value).__name__} alone; expected judgments and two runs, or folders of results"
        )
    return path_of(value)


def _two(
    qrels: object, pair: tuple[object, object], measures: Measures, rules: ScoringRules
) -> dict[str, Scores]:
    """The scores of two runs, or what was given for them, as "first" and "second"; a run by the measures of Scores
    beside it."""
    wanted = next((one.measures for one in pair if isinstance(one, Scores)), measures)

    def scores_of_side(side: object) -> Scores:
        if isinstance(side, Scores):
            return side
        [run] = _runs(qrels, [side])
        return _evaluated(judgments_from(qrels, measures_of(wanted)), run, wanted, rules)

    return {name: scores_of_side(side) for name, side in zip(("first", "second"), pair, strict=True)}


def _evaluated(qrels: Qrels | IntentQrels, run: Run, measures: Measures, rules: ScoringRules) -> Scores:
    return evaluate(qrels, run, measures, rules.conventions, collection=rules.dataset)


def _runs(qrels: object, rankings: Iterable[object]) -> list[Run]:
    """Rankings, each found to belong to the judgments as these were given."""
    runs = []
    for one in rankings:
        refuse_mismatched(qrels, one)
        runs.append(run_from(one))
    return runs


def _are_measures(value: object) -> bool:
    """Whether what stands last is a measure, or several, and no ranking."""
    if isinstance(value, (str, Measure)):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        return False
    try:
        return all(isinstance(one, Measure) or (isinstance(one, str) and measures_of(one)) for one in value)
    except WeirError:
        return False


def _scored(value: object) -> dict[str, Scores]:
    """Scores by name, from such or from several; raises BadValue for anything else."""
    if isinstance(value, Mapping) and value and all(isinstance(one, Scores) for one in value.values()):
        return dict(value)
    if isinstance(value, Sequence) and all(isinstance(one, Scores) for one in value):
        return {f"system {n}": one for n, one in enumerate(value, 1)}
    found = f"{type(value).__name__} alone"
    if isinstance(value, tuple):
        found = " beside ".join(dict.fromkeys(type(one).__name__ for one in value)) + " without judgments"
    raise BadValue(
        f"found {found}; rankings are compared against judgments, compare(qrels, systems), and Scores with Scores"
    )


def _scores_by_name(
    qrels: object,
    systems: object,
    measures: tuple[Measure | str, ...],
    rules: ScoringRules,
) -> dict[str, Scores]:
    if not isinstance(systems, (Mapping, Sequence)) or isinstance(systems, str):
        kind = type(systems).__name__
        raise BadValue(f"found {kind} as the systems; judgments come first, then two or more rankings")
    by_intent = any(m.by_intent for m in measures_of(measures))
    if not by_intent:
        refuse_rankings(qrels)
    if isinstance(systems, Mapping) and all(isinstance(one, Mapping) and one for one in systems.values()):
        inner = [next(iter(one.values())) for one in systems.values() if isinstance(one, Mapping)]
        if inner and all(isinstance(score, (int, float)) for score in inner):
            raise BadValue("found one ranking; expected two or more, such as compare(qrels, one, other)")
    runs = _runs(qrels, systems.values() if isinstance(systems, Mapping) else systems)
    if isinstance(systems, Mapping):
        names = list(systems)
    else:
        names = distinct_names([one.name for one in runs], [f"system {n}" for n in range(1, len(runs) + 1)])
    judgments = judgments_from(qrels, measures)
    return {n: _evaluated(judgments, one, measures, rules) for n, one in zip(names, runs, strict=True)}


@checked
def within_groups(scores: Scores, by: object) -> ResultSet[WithinGroups]:
    """Mean, worst, best and spread of each measure within groups of queries, averaged over the groups.

    by: as `Scores.by` takes it, such as "stem:-" for paraphrases q7-a, q7-b. The worst by nDCG@10 is InstructIR's
    robustness@10. Intervals resample groups. Raises BadValue where no query has a group.
    """
    from weir.stats.paired_sets import within_groups as within

    return ResultSet("within", tuple(within(GroupedScores.of(scores, query_groups(by, scores.queries)))))


@checked
def p_mrr(
    qrels: object, run: object, changed: object = None, signs: tuple[str, str] = ("-og", "-changed")
) -> Scores:
    """p-MRR: how far documents fall that a changed instruction makes irrelevant, from -1 to 1, for each pair.

    qrels, run: as `evaluate` takes them, of queries under the original and the changed instruction, whose identifiers
    end in the two signs; changed: the rankings under the changed instruction where they are another run. Raises
    BadValue where no pair has a document that becomes irrelevant. Source: Weller et al. 2024 (FollowIR).
    """
    from weir.stats.paired_sets import p_mrr as falls

    qrels, collection = judged_by(qrels)
    refuse_mismatched(qrels, run)
    rules = ScoringRules.of(collection)
    later = None if changed is None else rules.ranked(ranking(changed))
    return falls(qrels_from(qrels), rules.ranked(ranking(run)), later, signs)


def p_mrr_of_files(qrels: object, runs: Sequence[Path], signs: str, rules: ScoringRules) -> dict[str, Scores]:
    """p-MRR of run files by name; signs: how identifiers end, as in -og:-changed, else raises BadValue; as `p_mrr`."""
    from weir.files.runs import read_run
    from weir.stats.paired_sets import p_mrr as falls

    ends = signs.split(":")
    if len(ends) != 2 or not all(ends):
        raise BadValue(f"--p-mrr {signs}: expected how both identifiers end, such as -og:-changed")
    judgments = qrels_from(qrels)
    return {
        name: falls(judgments, rules.ranked(read_run(run)), signs=(ends[0], ends[1]))
        for name, run in zip(names_of_runs(runs), runs, strict=True)
    }


MAX_DROP = 0.01
NAME = "the judged queries"


@checked
def gate(
    first: object,
    second: object,
    third: object = None,
    measures: Measures = (),
    *,
    max_drop: float | Mapping[str, float] = MAX_DROP,
    confidence: float = 0.95,
    interval: str = "t",
    by: object = None,
    common: bool = False,
    fetch: bool = False,
    conventions: Conventions | str | None = None,
    collection: Collection | Places = None,
    systems: Sequence[str] = (),
) -> ResultSet[Gate]:
    """Whether a candidate may have become worse than allowed: `assert weir.gate(qrels, old, new)` stops a change.

    gate(qrels, baseline, candidate) of rankings as `evaluate` takes them, where Scores or a saved baseline may stand
    for one; gate(baseline, candidate) of results folders and baselines that `save_baseline` wrote. measures: by default
    those of a saved baseline, else nDCG@10; max_drop: one for all or {measure: drop}, 0.01 for those it does not name;
    interval: t, percentile, bca or studentised; by: groups of queries as `Scores.by` takes them, each of which can fail
    the gate too; common: compare on the queries that both have with the same judgments; fetch: whether the
    collections that records of results name may be brought here, else nothing is asked of the network; collection: of
    rankings, whose rules hold, as in `evaluate`, and whose columns `by` may name, or of folders as `compare` takes it;
    systems: of results folders, these alone. A measure passes where the one-sided lower bound of candidate minus
    baseline is at least minus its drop with that confidence; it fails where the mean dropped by more and the drop is
    certain; else it is undecided. The result is true where all of it passes.
    Raises BadValue for a negative drop, a confidence outside 0.5..1, fewer than two queries and sides of different
    judgments, UnknownName for another interval, and the WeirErrors of the parts.
    """
    from weir.experiment.comparing import collections_of, gate_cases, gate_inputs
    from weir.stats.gate import GateRules, gates

    allowed = GateRules(*_drops(max_drop), confidence, interval)
    requested = measures_of(measures) if isinstance(measures, (str, Measure)) or measures else ()
    name = NAME
    if third is not None:
        name = Path(first).name if isinstance(first, (str, os.PathLike)) else NAME
        first, collection = judged_by(first, place_of(collection))
        if all(isinstance(one, (str, os.PathLike)) and path_of(one).is_dir() for one in (second, third)):
            second, third = two_rankings(second, third)  # beside a file, a folder keeps its scores
    inputs = [one for one in (first, second, third) if one is not None]
    paths = [path_of(one) for one in inputs if isinstance(one, (str, os.PathLike))]
    grounds: dict[str, Dataset] = {}
    if len(paths) == len(inputs):
        chosen = None if conventions is None else conventions_of(conventions)
        of_runs = place_of(collection) if len(paths) == 3 else None
        baseline, candidate, names = gate_inputs(
            paths, tuple(requested), chosen, systems, of_runs, fetch, name
        )
        grounds = collections_of(paths, places_of(collection), fetch) if by is not None else {}
    else:
        scores = _scores_of_side(second) or _scores_of_side(third)
        names = list(map(str, requested)) or (judged_by_default(scores.measures) if scores else ["nDCG@10"])
        usual = conventions or (scores.conventions if scores else DEFAULT)
        rules = ScoringRules.of(place_of(collection), conventions_of(usual))
        baseline, candidate = ([one] for one in _sides(first, (second, third), names, rules, name))
        grounds = {} if rules.dataset is None else {"": rules.dataset}
    if ungated := [measure for measure in allowed.drops if measure not in names]:
        raise BadValue(f"max_drop names {', '.join(ungated)}, and what is gated is {', '.join(names)}")
    pairs = gate_cases((baseline, candidate), names, by, common, grounds)
    known = (m for side in baseline for one in side.datasets.values() for m in one.scores.measures)
    not_gated = map(Note, no_direction_note(measure for measure in known if measure not in names))
    return ResultSet("gate", tuple(gates(pairs.cases, allowed)), (*pairs.notes, *not_gated))


@checked
def save_baseline(
    path: FolderPath,
    results: object,
    run: object = None,
    measures: Measures = "nDCG@10",
    conventions: Conventions | str = DEFAULT,
    collection: Collection = None,
    systems: Sequence[str] = (),
    fetch: bool = False,
) -> SystemScores:
    """Write the scores of a system by query as a baseline to commit, and return them: `weir gate --save`.

    results, run: judgments and a ranking as `evaluate` takes them, or the path of a results folder with one system;
    conventions, collection: of a ranking, as in `evaluate`; systems: one of a folder with several; fetch: as `gate`.
    Raises BadValue for a folder with several systems or
    whose judgments are not here, StoreError, and the WeirErrors of the parts.
    """
    from weir.experiment.comparing import system_of
    from weir.files.score_files import write_baseline

    requested = measures_of(measures)
    how = conventions_of(conventions)
    name = Path(results).name if run is not None and isinstance(results, (str, os.PathLike)) else NAME
    if run is not None:
        results, collection = judged_by(results, collection)
        run = one_ranking(run)
    paths = [path_of(one) for one in (results, run) if isinstance(one, (str, os.PathLike))]
    if run is None and not paths:
        raise BadValue(
            f"found {type(results).__name__} alone; expected judgments and a run, or a results folder"
        )
    if run is None or (len(paths) == 2 and not is_baseline(paths[1])):
        system = system_of(paths, requested, how, systems, collection, fetch, name)
    else:
        system = _system(results, run, requested, ScoringRules.of(collection, how), name)
    write_baseline(system, path_of(path))
    return system


def _drops(max_drop: float | Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The drop accepted of measures that are not named, and those of others by name."""
    if isinstance(max_drop, Mapping):
        return MAX_DROP, {str(parse_measure(str(measure))): drop for measure, drop in max_drop.items()}
    return max_drop, {}


def _scores_of_side(side: object) -> Scores | None:
    """The scores that a side holds already, of its first dataset."""
    if isinstance(side, Scores):
        return side
    if isinstance(side, (str, os.PathLike)) and is_baseline(Path(side)):
        return next(iter(read_baseline(Path(side)).datasets.values())).scores
    return None


def _sides(
    qrels: object,
    pair: tuple[object, object],
    measures: Sequence[Measure | str],
    rules: ScoringRules,
    name: str,
) -> list[SystemScores]:
    """Baseline and candidate from values, as `_system`; two Scores are of the judgments that they know."""
    if all(isinstance(one, Scores) for one in pair):
        scores = [one for one in pair if isinstance(one, Scores)]
        marks = [one.origin.marks for one in scores]
        known = all(marks)  # else they are taken to be of the same judgments
        return [
            SystemScores("", {NAME: JudgedScores(one, of if known else {}, "" if known else "as given")})
            for one, of in zip(scores, marks, strict=True)
        ]
    return [_system(qrels, one, measures, rules, name) for one in pair]


def _system(
    qrels: object, run: object, measures: Sequence[Measure | str], rules: ScoringRules, name: str
) -> SystemScores:
    """A ranking as `evaluate` takes it, scored; or its Scores, or a baseline that was saved."""
    if isinstance(run, (str, os.PathLike)) and is_baseline(Path(run)):
        return read_baseline(Path(run))
    judgments = rules.counted(judgments_from(qrels, measures))
    if not isinstance(run, Scores):
        refuse_mismatched(qrels, run)
        run = evaluate(judgments, run, measures, rules.conventions, collection=rules.dataset)
    return SystemScores("candidate", {name: JudgedScores(run, run.origin.marks or judgment_marks(judgments))})
