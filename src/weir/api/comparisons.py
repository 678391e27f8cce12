"""Compare systems: tests, differences by query, the gate, groups of queries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from weir.api.auditing import Places, place_of, places_of
from weir.api.benchmark import Benchmark
from weir.api.collection_notes import construction_notes, construction_notes_of
from weir.api.comparison_tables import COMPARISONS
from weir.api.evaluation import conventions_of, evaluate, judgments_from
from weir.api.given import (
    all_rankings,
    copy_notes,
    is_results_folder,
    one_ranking,
    run_from_given,
    run_paths,
    two_folders,
    two_given,
    two_rankings,
    unnamed,
)
from weir.api.result_set import ResultSet
from weir.api.rows import labels_of
from weir.api.scoring import p_mrr_of_files
from weir.argument_types import checked
from weir.core.origin import judgment_marks
from weir.core.qrels import Qrels
from weir.core.run import Named, Run
from weir.core.scores import GroupedScores, JudgedScores, Note, Scores, SystemScores
from weir.core.short_names import run_titles, systems_called
from weir.datasets.load import Dataset, load, query_groups, unanswerable_queries
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue, FormatError, WeirError
from weir.experiment.comparing import (
    GATED,
    GateCases,
    collections_of,
    compare_cells,
    compare_cells_by_group,
    diff_cells,
    diff_files,
    diff_runs,
    gate_cases,
    gate_inputs,
    gateable,
    lacking_notes,
    measures_wanted,
    scores_of_files,
    system_of,
)
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
    finished_and_lacking,
    largest_k,
    run_files_of,
    scored_measures,
    system_titles,
    with_collections,
)
from weir.experiment.why import WHYS, Judgments, explain_cells, explain_published, explain_rankings
from weir.files.atomic import write_text
from weir.files.frames import qrels_from, refuse_mismatched, refuse_rankings, run_from
from weir.files.paths import path_of
from weir.files.runs import RESULT_RUNS, judgments_name, run_name
from weir.files.score_files import is_baseline, read_baseline, read_values, write_baseline
from weir.files.text_files import refuse_pack
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, parse_measure
from weir.measures.evaluate import DEFAULT, Conventions, distinct_names
from weir.measures.measure import judged_by_default, no_direction_note
from weir.registry import Registry
from weir.stats import paired_sets
from weir.stats import threshold as thresholds
from weir.stats.compare import (
    ComparisonMethod,
    compare_scores,
    refuse_correction,
    relabelled,
    shared_measures,
    table,
    usual_correction,
)
from weir.stats.factors import FACTOR_STUDIES
from weir.stats.gate import GATES, Gate, GateRules, gate_junit, gates
from weir.stats.paired_sets import WITHIN_GROUPS, WithinGroups
from weir.stats.power import POWER, POWER_PLANS, PowerPlan
from weir.stats.power import plan as power_plan
from weir.stats.query_differences import DIFFERENCES, QueryDifferences
from weir.stats.resampling import SEED
from weir.stats.run_noise import RunNoise, noise_notes
from weir.stats.score_rows import system_notes
from weir.stats.threshold import ABSTENTIONS, THRESHOLDS, Abstention, Threshold, ThresholdRules
from weir.systems import Retriever, system
from weir.systems.protocol import SYSTEMS

if TYPE_CHECKING:
    from weir.core.intents import IntentQrels


JUDGED_QUERIES = "the judged queries"
"""The name of a collection without one."""
Measures: TypeAlias = "Measure | str | Iterable[Measure | str]"
FolderPath: TypeAlias = "str | os.PathLike[str]"
Collection: TypeAlias = "str | Path | Dataset | None"
"""A collection by name, path or itself."""


@checked
def compare(
    qrels: object,
    *systems: object,
    measures: Measures = (),
    baseline: str | None = None,
    method: ComparisonMethod | str | Mapping[str, object] = "permutation",
    conventions: Conventions | str | Mapping[str, str] = DEFAULT,
    by: object = None,
    factors: str | Iterable[str] | Literal[True] | None = None,
    collection: Collection | Places = None,
    datasets: Sequence[str] = (),
    only: Sequence[str] = (),
    labels: Sequence[str] = (),
    noise: FolderPath | None = None,
) -> ResultSet[Any]:
    """Return a comparison of systems for each measure and dataset, and across datasets, with a test of each pair.

    qrels: judgments as `evaluate` takes them, or only scores: a results folder, a benchmark, a .csv file of values,
        Scores, or {name: Scores}.
    systems: rankings as `evaluate` takes them, as arguments, a list or {name: ranking}, perhaps followed by measures.
    measures: by default nDCG@10 and R@100, or all measures of scores that have a direction.
    baseline: the system that all others are compared with, by default each is compared with each.
    method: a test by name, or a ComparisonMethod or {name: value} of its fields.
    conventions: rules of scoring, such as "ties=expected"; not for scores.
    by: groups of queries as `Scores.by` takes them. Adds comparisons of the macro mean over the groups and of each
        group, corrected by Benjamini and Hochberg.
    factors: True, or names of settings in which the systems differ. Returns a FactorStudy of their effects instead,
        without `baseline` and `by`.
    collection: the rankings' collection, by name or path. Its rules hold (self-matches, candidates, queries without
        an answer), and `by` may name its columns. In Python also {name: path} of a results folder's collections that
        moved.
    datasets: only these datasets or groups of a results folder.
    only: only these systems of a results folder.
    labels: names to show for systems, such as "tuned=bm25(k1=1.2)".
    noise: file of weir audit --save-noise with the noise of the systems' means between runs. Intervals and tests on
        queries allow for it.

    A difference is the later system minus the earlier, or each minus the baseline. Of three or more run files, one
    that cannot be scored is left out with a note. Raises BadValue for fewer than two systems or shared queries,
    UnknownName for an unknown baseline, test or correction.
    """
    how = _method_of(method, by is not None)
    if noise is not None:
        how = replace(how, noise=_noise_in(noise))
    if systems and not measures and _are_measures(systems[-1]):
        systems, measures = systems[:-1], cast("Measures", systems[-1])
    if factors is not None:
        refuse_beside_factors(baseline, by)
    chosen = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
    names = None if factors is None else factor_names(factors)
    wanted = _Wanted(chosen, baseline, how, by, names, tuple(labels))
    if isinstance(qrels, Benchmark):
        if systems or by is not None or datasets or only or labels:
            raise BadValue(
                'a benchmark is compared alone; out="results/" keeps it as a folder, which takes all options'
            )
        return qrels.compare(baseline, chosen, how) if names is None else qrels.factors(names, chosen, how)
    if not systems and isinstance(qrels, (str, os.PathLike)) and path_of(qrels).suffix == ".csv":
        qrels = read_values(path_of(qrels))
    if is_results_folder(qrels) and len(systems) == 1 and is_results_folder(systems[0]):
        raise BadValue(two_folders(qrels, systems[0]))
    if not systems and isinstance(qrels, (str, os.PathLike)):
        if conventions_of(conventions) != DEFAULT:
            raise BadValue(
                f"{conventions}: a results folder holds scores already; pass judgments and runs instead"
            )
        return _compare_folder(path_of(qrels), datasets, only, places_of(collection), wanted)
    if datasets or only:
        raise BadValue("`datasets` and `only` are of a results folder; name the run files instead")
    name = _judgments_name(qrels)
    qrels, collection = judged_by(qrels, place_of(collection))
    rules = ScoringRules.of(collection, conventions_of(conventions))
    scores, left_out = _scores_of_systems(qrels, systems, rules, wanted)
    compared = _compare_scores(name, scores, left_out, rules.dataset, wanted)
    return replace(compared, remarks=(*_copies(systems, rules.dataset), *compared.remarks))


def _copies(systems: tuple[object, ...], collection: Collection) -> list[Note]:
    rankings = all_rankings(systems, collection)
    several = rankings[0] if len(rankings) == 1 else rankings
    if isinstance(several, Mapping):
        return copy_notes((str(name), one) for name, one in several.items())
    listed = list(several) if isinstance(several, Sequence) else []
    names = (
        str(one) if isinstance(one, Path) else name
        for one, name in zip(listed, unnamed(len(listed)), strict=True)
    )
    return copy_notes(zip(names, listed, strict=True))


def _judgments_name(judged: object) -> str:
    if isinstance(judged, (str, os.PathLike)):
        return judgments_name(judged)
    if isinstance(judged, Mapping):
        judged = next((one for one in judged.values() if isinstance(one, Scores)), None)
    if isinstance(judged, Scores):
        judgments = judged.origin.judgments
        return judged.origin.collection or (
            _judgments_name(judgments) if judgments is not None else JUDGED_QUERIES
        )
    return judged.name or JUDGED_QUERIES if isinstance(judged, (Dataset, Qrels)) else JUDGED_QUERIES


@dataclass(frozen=True)
class _Wanted:
    measures: tuple[Measure | str, ...]
    baseline: str | None
    method: ComparisonMethod
    by: object
    factors: tuple[str, ...] | None
    """Names of settings, () for all; None for a comparison of systems."""
    labels: tuple[str, ...]


def _method_of(method: ComparisonMethod | str | Mapping[str, Any], by_group: bool) -> ComparisonMethod:
    if isinstance(method, ComparisonMethod):
        return method
    given: Mapping[str, Any] = {"test": method} if isinstance(method, str) else method
    how = ComparisonMethod(**{str(name): value for name, value in given.items()})
    if not isinstance(method, str) and "correct" in method:
        refuse_correction(how.test, how.correct, how.margin)
        return how
    return replace(how, correct=usual_correction(how.test, by_group))


def _compare_folder(
    folder: Path,
    datasets: Sequence[str],
    only: Sequence[str],
    places: tuple[str | Path | Dataset, ...],
    wanted: _Wanted,
) -> ResultSet[Any]:
    finished, without_scores = finished_and_lacking(folder, datasets, only)
    cells, remarks = current_cells(chosen_cells(finished, datasets, only))
    if remarks and len({cell.dataset for cell in cells}) == len(cells):
        raise BadValue(f"no dataset has two systems to compare: {'; '.join(remarks)}")
    if not any("#" in system for system in only):  # a label means its cell, whatever its depth
        cells, more = largest_k(cells)
        remarks += more
    with_column, lacking = with_collections(cells, wanted.by, places)
    cells, remarks = [cell for cell, _ in with_column], [*remarks, *lacking]
    chosen = labels_of(wanted.labels, [cell.label for cell in cells])
    names = {**system_titles(cells), **chosen}
    files = {cell.label for cell in cells if run_titles([cell.system])[cell.system] != cell.system}
    remarks += [f"{title} is {label}" for label, title in names.items() if label not in {*chosen, *files}]
    baseline = _one_called(wanted.baseline, {cell.label: names.get(cell.label, "") for cell in cells})
    cells = [replace(cell, title=names.get(cell.label, "")) for cell in cells]  # as notes call it
    remarks += [*twin_notes(twin_systems(cells), names), *lacking_notes(cells, wanted.measures, baseline)]
    remarks += without_scores
    scored = scored_measures(cells)
    by_construction = construction_notes_of(cells, map(str, measures_of(wanted.measures or scored)))
    systems = Counter(cell.dataset for cell in cells)
    compared = [cell for cell in cells if systems[cell.dataset] > 1] or cells
    notes = (
        *map(Note, remarks),
        *cell_notes(compared, measures_wanted(scored, wanted.measures)),
        *by_construction,
    )
    if wanted.factors is not None:
        studies = study_cells(cells, wanted.factors, wanted.measures, wanted.method)
        return ResultSet(FACTOR_STUDIES, tuple(studies), notes)
    if wanted.by is None:
        comparisons = compare_cells(cells, wanted.measures, baseline, wanted.method)
    else:
        datasets_of = {cell.folder: dataset for cell, dataset in with_column}
        comparisons, ungrouped = compare_cells_by_group(
            cells,
            lambda cell, queries: query_groups(wanted.by, queries, datasets_of[cell.folder]),
            wanted.measures,
            baseline,
            wanted.method,
        )
        notes = (*map(Note, ungrouped), *notes)
    return ResultSet(COMPARISONS, tuple(relabelled(comparisons, names)), notes)


def _one_called(text: str | None, titles: Mapping[str, str]) -> str | None:
    found = set() if text is None else systems_called(text, titles)
    return found.pop() if len(found) == 1 else text


def _scores_of_systems(
    qrels: object, systems: tuple[object, ...], rules: ScoringRules, wanted: _Wanted
) -> tuple[dict[str, Scores], tuple[Note, ...]]:
    if isinstance(qrels, Scores):
        return _named_scores((qrels, *systems)), ()
    rankings = all_rankings(systems, rules.dataset)
    if len(rankings) == 1 and isinstance(rankings[0], (str, os.PathLike)):
        raise BadValue(
            f"found one ranking, {rankings[0]}; expected judgments and two or more runs, or one results folder"
        )
    if not rankings:
        return _named_scores(qrels), ()
    if len(rankings) == 1 or not (paths := _all_paths((qrels, *rankings))):
        several = rankings[0] if len(rankings) == 1 else rankings
        return _scores_by_name(qrels, several, wanted.measures or DEFAULT_MEASURES, rules), ()
    scores, reasons = scores_of_files(
        paths[0], paths[1:], measures_of(wanted.measures or DEFAULT_MEASURES), rules
    )
    if wanted.baseline not in scores:
        for run in (path for path in paths[1:] if wanted.baseline in (run_name(path), str(path))):
            for reason in (one for one in reasons if one.startswith(str(run))):
                raise BadValue(f"the baseline '{wanted.baseline}' cannot be scored: {reason}")
    return scores, tuple(Note(f"left out: {reason}") for reason in reasons)


def _compare_scores(
    name: str, scores: dict[str, Scores], left_out: tuple[Note, ...], dataset: Dataset | None, wanted: _Wanted
) -> ResultSet[Any]:
    label_of = labels_of(wanted.labels, scores)
    called = {run_name(Path(name)): name for name in scores} | {label: one for one, label in label_of.items()}
    baseline = wanted.baseline
    baseline = _one_called(baseline, {name: label_of.get(name, "") for name in scores})
    if baseline is not None and baseline not in scores:
        baseline = called.get(baseline, called.get(run_name(Path(baseline)), baseline))
    notes = tuple(system_notes({label_of.get(name, name): one for name, one in scores.items()}))
    if wanted.factors is not None:
        of = {(name, system): one for system, one in scores.items()}
        studies = study_factors(of, wanted.factors, wanted.measures, wanted.method)
        return ResultSet(FACTOR_STUDIES, tuple(studies), notes, left_out)
    groups = (
        None if wanted.by is None else query_groups(wanted.by, next(iter(scores.values())).queries, dataset)
    )
    if groups is not None:
        notes = (*map(Note, groups.lacking(next(iter(scores.values())).queries)), *notes)
    there = shared_measures(scores.values())
    given = (
        one if one in there else measures_of(one) for one in wanted.measures
    )  # a foreign name is as it is there
    measures = [str(measure) for one in given for measure in ([one] if isinstance(one, str) else one)]
    if dataset is not None:
        notes = (*notes, *construction_notes([dataset], measures or there))
    comparisons = compare_scores(scores, name, baseline, wanted.method, groups, measures)
    return ResultSet(COMPARISONS, tuple(relabelled(comparisons, label_of)), notes, left_out)


@checked
def power(
    qrels: object,
    first: object,
    second: object = None,
    measures: Measures = (),
    *,
    effects: Sequence[float] = (0.01, 0.02, 0.05),
    alpha: float = 0.05,
    power: float = POWER,
    test: str = "permutation",
    conventions: Conventions | str | Mapping[str, str] = DEFAULT,
    collection: Collection = None,
) -> ResultSet[PowerPlan]:
    """Return, for each measure, the smallest difference that the queries can show, and how many queries given
    differences need.

    qrels: judgments as `evaluate` takes them.
    first, second: rankings as `evaluate` takes them, or Scores, or {name: ranking} of both.
    measures: by default nDCG@10 and R@100, of Scores those with a direction.
    effects: differences to plan for.
    alpha: level of the two-sided test.
    power: wanted probability of finding a true difference.
    test: one of permutation, t and bootstrap-shift.
    conventions: rules of scoring.
    collection: the rankings' collection, by name or path. Its rules hold (self-matches, candidates, queries without
        an answer).

    Differences are the second minus the first. Raises BadValue for fewer than two queries, numbers out of range and
    another test.
    """
    name = _judgments_name(qrels)
    if isinstance(first, Mapping) and not measures and _are_measures(second):
        second, measures = None, cast("Measures", second)
    qrels, collection = judged_by(qrels, collection)
    first, second = two_rankings(*two_given("power", first, second), collection)
    asked = measures_of(measures or judged_by_default(DEFAULT_MEASURES))
    rules = ScoringRules.of(collection, conventions_of(conventions))
    if paths := _all_paths((qrels, first, second)):
        scores = scores_of_files(paths[0], paths[1:], asked, rules)[0]
    else:
        scores = _scores_of_two(qrels, (first, second), asked, rules)
    shared = shared_measures(scores.values())
    chosen = shared if measures else judged_by_default(shared)
    one, other = scores
    pairs = [(m, table(name, m, scores).values) for m in chosen]
    plans = tuple(power_plan(m, v[1] - v[0], effects, power, alpha, test, (one, other)) for m, v in pairs)
    return ResultSet(POWER_PLANS, plans, tuple(system_notes(scores)))


@checked
def diff(
    first: object,
    second: object,
    third: object = None,
    *,
    measure: Measure | str | None = None,
    top: int = 10,
    collection: Collection = None,
    conventions: Conventions | str | Mapping[str, str] = DEFAULT,
) -> ResultSet[QueryDifferences]:
    """Return a comparison of two runs by query, with the second's largest gains and losses: diff(qrels, first,
    second).

    first, second, third: judgments and two rankings as `evaluate` takes them, or {name: ranking} of both, or the
        folders of two results.
    measure: by default nDCG@10, for folders the first that both have.
    top: how many of the largest gains and of the largest losses are shown.
    collection: the collection, by name or path. Its texts are shown, and its rules hold for rankings.
    conventions: rules of scoring rankings.

    A difference is the second run minus the first. Raises BadValue for a run that answers no judged query.
    """
    name = None if measure is None else str(measure)
    if third is None and isinstance(second, Mapping):
        second, third = two_given("diff", second, None)
    if third is None:
        one, other = _folder(first), _folder(second)
        if conventions_of(conventions) != DEFAULT:
            raise BadValue(
                f"{conventions}: folders of results are scored already; pass judgments and two runs instead"
            )
        return ResultSet(DIFFERENCES, (diff_cells(one, other, name, collection, top),))
    first, collection = judged_by(first, collection)
    second, third = two_rankings(second, third, collection)
    rules = ScoringRules.of(collection, conventions_of(conventions))
    if paths := _all_paths((first, second, third)):
        return ResultSet(
            DIFFERENCES, (diff_files(paths[0], (paths[1], paths[2]), name or "nDCG@10", rules, top),)
        )
    runs = run_from(second), run_from(third)
    refuse_mismatched(first, second)
    refuse_mismatched(first, third)
    names = distinct_names([run.name for run in runs], unnamed(2))
    moves = diff_runs(qrels_from(first), dict(zip(names, runs, strict=True)), name or "nDCG@10", rules, top)
    return ResultSet(DIFFERENCES, (moves,))


@checked
def why(
    *results: object,
    published: str | None = None,
    measure: Measure | str | None = None,
    qrels: FolderPath | None = None,
    collection: Collection = None,
) -> ResultSet[Any]:
    """Return why two numbers differ: why(qrels, first, second), why(folder, other_folder), or a folder and a
    published score.

    results: judgments and two rankings as `evaluate` takes them, or {name: ranking} of both. Or one or two folders
        such as results/scifact/bm25-fa19b4d424. Or two systems, one a live engine, which is asked for its fields,
        terms and scores.
    published: a published model to compare one folder with, such as "anserini bm25 flat", by default the one that its
        system should reproduce.
    measure: a measure such as nDCG@10, by default the first that both have.
    qrels: judgments with which folders are scored again, by default the recorded ones.
    collection: the collection, by name or path. Folders take its judgments, rankings take its rules.

    Raises BadValue for another number of results.
    """
    name = None if measure is None else str(measure)
    if qrels is not None:
        judged, collection = judged_by(qrels, collection)
    judgments = Judgments(None if qrels is None else judged, collection)
    if len(results) == 2 and isinstance(results[1], Mapping):
        results = (results[0], *two_given("why", results[1], None))
    match results:
        case (one,):
            explanation = explain_published(_folder(one), published, name, judgments)
        case (_, _) if published is not None:
            raise BadValue("published takes one result; two results are compared with each other")
        case (one, other) if _is_system(one) and _is_system(other):
            return _why_engine(one, other, measure, qrels, collection)
        case (one, other):
            folders = _folder(one), _folder(other)
            for folder in folders:
                refuse_pack(folder)
            if any(folder.is_file() for folder in folders):
                raise BadValue(
                    "run files, also one beside a result's folder, need their judgments before them: weir why QRELS "
                    "RUN RUN"
                )
            explanation = explain_cells(*folders, name, judgments)
        case (judged, one, other) if not (published or qrels or _is_cell(judged)):
            judged, collection = judged_by(judged, collection)
            one, other = two_rankings(one, other, collection)
            refuse_mismatched(judged, one)
            runs = run_from(one), run_from(other)
            long = [str(run) for run in _all_paths([one, other])] or unnamed(2)
            names = distinct_names([run.name for run in runs], long)
            by_name = dict(zip(names, runs, strict=True))
            explanation = explain_rankings(qrels_from(judged), by_name, name, ScoringRules.of(collection))
        case _:
            raise BadValue(
                f"found {len(results)} results; expected one or two result folders, or judgments and two runs alone"
            )
    return ResultSet(WHYS, (explanation,))


def _is_cell(given: object) -> bool:
    return isinstance(given, (str, os.PathLike)) and run_name(path_of(given) / RESULT_RUNS[0]) != "run"


def _is_system(given: object) -> bool:
    if isinstance(given, str):
        return given.partition("(")[0].strip() in SYSTEMS.names() and not Path(given).exists()
    return isinstance(given, Retriever)


EXPLANATIONS = Registry[Callable[[object, object, object, Measure], ResultSet[Any]]]("explanation")
"""Explanations that slices add, such as of live engines ("engine")."""


def _why_engine(
    first: object, second: object, measure: Measure | str | None, qrels: object, collection: Collection
) -> ResultSet[Any]:
    if collection is None or qrels is not None:
        raise BadValue(
            "two systems are asked the queries of a collection: name it with `collection`, without `qrels`"
        )
    dataset = collection if isinstance(collection, Dataset) else load(collection)
    parsed = parse_measure(str(measure or DEFAULT_MEASURES[0]))
    return EXPLANATIONS.get("engine")(system(first), system(second), dataset, parsed)


@checked
def abstention(
    run: object, scores: Scores, confidence: Literal["max", "std", "diff1"] = "max"
) -> ResultSet[Abstention]:
    """Return, for each measure, the mean at each share of least confident queries left out, and nAUC.

    nAUC is the area gained over the mean of all, as a share of the gain if the worst queries went first.

    run: the ranking that was scored, as `evaluate` takes it.
    confidence: "max", the best score, "std", the standard deviation of the scores, or "diff1", the best less the
        second.

    Unanswered queries are the least confident. Raises UnknownName for another confidence, BadValue for other than
    Scores and a run that answers none of their queries.
    """
    if not isinstance(scores, Scores):
        raise BadValue(
            f"found {type(scores).__name__} as the scores; expected the run, then what weir.evaluate gave"
        )
    return ResultSet(ABSTENTIONS, tuple(thresholds.abstention(run_from_given(run), scores, confidence)))


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
    """Return the score below which a system should not answer, chosen on half of the queries and tested on the other
    half.

    qrels, run: in any form of `evaluate`. A query without a grade above 0 has no answer.
    measure: the measure of queries with an answer. A query left unanswered scores 0.
    max_false: the largest share of queries without an answer that may be answered, in the half that chooses.
    confidence: how sure the run is: its best score, the deviation of its scores, or the best less the second.
    unanswerable: more queries without an answer.
    seed: seed of the split in halves.
    collection: the ranking's collection, by name or path. Its rules hold, and it says which queries have no answer.

    Raises BadValue for fewer than four queries of either kind.
    """
    qrels, collection = judged_by(qrels, collection)
    refuse_mismatched(qrels, run)
    rules = ThresholdRules(max_false, confidence, SEED if seed is None else seed)
    scoring, parsed = ScoringRules.of(collection), measures_of(measure)[0]
    silent = [] if scoring.queries is None else unanswerable_queries(scoring.queries)
    ranked = scoring.ranked(run_from_given(run, collection))
    rows = qrels.items() if isinstance(qrels, Mapping) else ()
    empty = [str(query) for query, row in rows if isinstance(row, Sized) and not len(row)]
    judged = qrels_from(qrels)
    result = thresholds.threshold(ranked, judged, parsed, rules, [*unanswerable, *silent, *empty])
    return ResultSet(THRESHOLDS, (result,), (*scoring.notes, *scoring.dangling_notes(judged)))


def _all_paths(values: Sequence[object]) -> list[Path]:
    paths = [Path(one) for one in values if isinstance(one, (str, os.PathLike))]
    return paths if len(paths) == len(values) else []


def _folder(value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise BadValue(
            f"found {type(value).__name__} where a folder of results belongs; judgments and rankings are given as "
            "why(qrels, first, second)"
        )
    return path_of(value)


def _scores_of_two(
    qrels: object, pair: tuple[object, object], measures: Measures, rules: ScoringRules
) -> dict[str, Scores]:
    wanted = next((one.measures for one in pair if isinstance(one, Scores)), measures)

    def scores_of_side(side: object) -> Scores:
        if isinstance(side, Scores):
            return side
        [run] = _checked_runs(qrels, [side])
        return _evaluated(judgments_from(qrels, measures_of(wanted)), run, wanted, rules)

    names = [one.name for one in pair if isinstance(one, Run) and one.name != Named().name]
    names = names if len(set(names)) == len(pair) else unnamed(2)
    return {name: scores_of_side(side) for name, side in zip(names, pair, strict=True)}


def _evaluated(qrels: Qrels | IntentQrels, run: Run, measures: Measures, rules: ScoringRules) -> Scores:
    return evaluate(qrels, run, measures, rules.conventions, collection=rules.dataset)


def _checked_runs(qrels: object, rankings: Iterable[object]) -> list[Run]:
    runs = []
    for one in rankings:
        refuse_mismatched(qrels, one)
        runs.append(run_from(one))
    return runs


def _are_measures(value: object) -> bool:
    if isinstance(value, (str, Measure)):
        value = [value]
    if not isinstance(value, (list, tuple)) or not value:
        return False
    try:
        return all(isinstance(one, Measure) or (isinstance(one, str) and measures_of(one)) for one in value)
    except WeirError:
        return False


def _named_scores(value: object) -> dict[str, Scores]:
    if isinstance(value, Mapping) and value and all(isinstance(one, Scores) for one in value.values()):
        return dict(value)
    if isinstance(value, Sequence) and all(isinstance(one, Scores) for one in value):
        return dict(zip(unnamed(len(value)), value, strict=True))
    if isinstance(value, Mapping) and value and all(isinstance(one, Mapping) for one in value.values()):
        raise BadValue(
            "found dicts without judgments; known values are compared as "
            'compare({name: weir.Scores.from_dict({"nDCG@10": {query: value}}), ...})'
        )
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
        kind, how = type(systems).__name__, ""
        if hasattr(systems, "groupby"):
            how = "; of several systems in one frame: dict(list(frame.groupby('system')))"
        raise BadValue(
            f"found one {kind} as the systems; judgments come first, then two or more rankings{how}"
        )
    by_intent = any(m.by_intent for m in measures_of(measures))
    if not by_intent:
        refuse_rankings(qrels)
    if isinstance(systems, Mapping) and all(isinstance(one, Mapping) and one for one in systems.values()):
        inner = [next(iter(one.values())) for one in systems.values() if isinstance(one, Mapping)]
        if inner and all(isinstance(score, (int, float)) for score in inner):
            raise BadValue("found one ranking; expected two or more, such as compare(qrels, one, other)")
    runs = _checked_runs(qrels, systems.values() if isinstance(systems, Mapping) else systems)
    if isinstance(systems, Mapping):
        names = list(systems)
    else:
        names = distinct_names([one.name for one in runs], unnamed(len(runs)))
    judgments = judgments_from(qrels, measures)
    return {n: _evaluated(judgments, one, measures, rules) for n, one in zip(names, runs, strict=True)}


@checked
def within_groups(scores: Scores, by: object) -> ResultSet[WithinGroups]:
    """Return mean, worst, best and spread of each measure within groups of queries, averaged over the groups.

    by: groups as `Scores.by` takes them, such as "stem:-" for paraphrases q7-a, q7-b.

    The worst by nDCG@10 is InstructIR's robustness@10. Intervals resample groups. Raises BadValue if no query has a
    group.
    """
    return ResultSet(
        WITHIN_GROUPS,
        tuple(paired_sets.within_groups(GroupedScores.of(scores, query_groups(by, scores.queries)))),
    )


@checked
def p_mrr(
    qrels: object, run: object, changed: object = None, signs: tuple[str, str] = ("-og", "-changed")
) -> Scores:
    """Return p-MRR of each pair of queries, -1..1: how far documents fall if a changed instruction makes them
    irrelevant.

    qrels, run: in any form of `evaluate`, with a query for the original and one for the changed instruction.
    changed: rankings under the changed instruction if they are another run.
    signs: endings of original and changed queries' identifiers. The scores name pairs without them.

    Omits pairs in which no document becomes irrelevant; raises BadValue if all are omitted.
    """
    qrels, collection = judged_by(qrels)
    refuse_mismatched(qrels, run)
    rules = ScoringRules.of(collection)
    later = None if changed is None else rules.ranked(run_from_given(changed, collection))
    return paired_sets.p_mrr(qrels_from(qrels), rules.ranked(run_from_given(run, collection)), later, signs)


def p_mrr_beside(
    paths: Sequence[str],
    signs: str,
    conventions: Mapping[str, str],
    collection: Places,
    measures: Measures = (),
) -> dict[str, Scores]:
    """Return {system: p-MRR scores} of run files.

    paths: judgments, then run files.
    signs: endings of original and changed queries' identifiers, such as "-og:-changed".

    Raises BadValue for fewer than two runs, any `measures`, and other signs.
    """
    if len(paths) < 3 or measures:
        raise BadValue("`signs` takes judgments and run files, and no other measure beside it")
    judged, dataset = judged_by(paths[0], place_of(collection))
    rules = ScoringRules.of(dataset, conventions_of(conventions))
    return p_mrr_of_files(judged, run_paths(paths[1:], dataset), signs, rules)


MAX_DROP = 0.01


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
    conventions: Conventions | str | Mapping[str, str] | None = None,
    collection: Collection | Places = None,
    systems: Sequence[str] = (),
    noise: FolderPath | None = None,
) -> ResultSet[Gate]:
    """Return verdicts on a candidate's mean differences: `assert weir.gate(qrels, old, new)` fails unless all pass.

    first, second, third: judgments, baseline and candidate. Scores or a saved baseline may replace a ranking; of two
        folders of run files, files of one name are compared. Or only baseline and candidate, results folders or files
        of `save_baseline`.
    measures: by default the measures of a saved baseline, else nDCG@10.
    max_drop: the largest drop of a mean that is accepted. In Python also {measure: drop}, with 0.01 for other
        measures.
    confidence: confidence that a pass and a failure need.
    interval: one of t, percentile, bca and studentised.
    by: groups of queries as `Scores.by` takes them. Each can fail the gate too.
    common: compare on the queries that both sides have with the same judgments.
    fetch: download the collections that records of results name.
    conventions: rules of scoring, by default as a baseline was scored.
    collection: the rankings' collection, by name or path. Its rules hold (self-matches, candidates, queries without
        an answer), and `by` may name its columns. In Python also {name: path} of results folders' collections that
        moved.
    systems: only these systems of results folders.
    noise: file of weir audit --save-noise with the noise of the systems' means between runs. Bounds and p-values
        allow for it.

    A measure passes if the one-sided lower bound of candidate minus baseline is within the allowed drop, fails if its
    mean surely dropped, and by more than allowed, else is undecided. Raises BadValue for numbers out of range, fewer
    than two queries, and sides of different judgments, UnknownName for another interval.
    """
    allowed = gate_rules(max_drop, confidence, interval)
    cases, notes = cases_to_gate(
        (first, second, third), measures, allowed, by, common, fetch, conventions, collection, systems
    )
    if noise is not None:
        known = _noise_in(noise)
        measured = list(dict.fromkeys(one.measure for one in known))
        if lacking := sorted({table.measure for _, table in cases} - set(measured)):
            raise BadValue(f"{noise} has the noise of {', '.join(measured)}, not of {', '.join(lacking)}")
        allowed = replace(allowed, noise=known)
        notes += map(Note, noise_notes(known, dict.fromkeys(table.measure for _, table in cases)))
    cases, alone = gateable(cases)
    return ResultSet(GATES, tuple(gates(cases, allowed)), (*alone, *notes))


def _noise_in(path: FolderPath) -> tuple[RunNoise, ...]:
    found = ResultSet.load(path)
    if found.kind.name != "noise":
        raise FormatError(
            path_of(path), f"results of {found.kind.name}", "what weir audit --save-noise wrote"
        )
    noises: list[RunNoise] = [one.of_mean for one in found]
    return tuple(sorted(noises, key=lambda one: -one.variance))


def gate_rules(
    max_drop: float | Mapping[str, float] = MAX_DROP, confidence: float = 0.95, interval: str = "t"
) -> GateRules:
    """Return a gate's rules.

    max_drop: for a {measure: drop}, other measures have MAX_DROP.

    Raises BadValue for a negative drop and a confidence outside 0.5..1, UnknownName for another interval.
    """
    drops: dict[str, float] = {}
    if isinstance(max_drop, Mapping):
        drops = {str(parse_measure(str(measure))): drop for measure, drop in max_drop.items()}
        max_drop = MAX_DROP
    return GateRules(max_drop, drops, confidence, interval)


def cases_to_gate(
    given: tuple[object, object, object],
    measures: Measures,
    allowed: GateRules,
    by: object = None,
    common: bool = False,
    fetch: bool = False,
    conventions: Conventions | str | Mapping[str, str] | None = None,
    collection: Collection | Places = None,
    systems: Sequence[str] = (),
) -> tuple[GateCases, list[Note]]:
    """Return (score tables of baseline and candidate, one for each test of a gate; notes).

    given: the first three arguments of `gate`.

    Other parameters as for `gate`; raises its errors.
    """
    first, second, third = given
    requested = _requested(measures)
    name = JUDGED_QUERIES
    if third is not None:
        name = _judgments_name(first)
        first, collection = judged_by(first, place_of(collection))
        rankings = [path_of(one) for one in (second, third) if isinstance(one, (str, os.PathLike))]
        if sum(path.is_dir() and not run_files_of(path) for path in rankings) == 2:
            second, third = two_rankings(second, third, place_of(collection))
        else:  # a folder keeps its scores beside a file
            run_paths((path for path in rankings if path.is_file()), place_of(collection))
    inputs = [one for one in (first, second, third) if one is not None]
    paths = [path_of(one) for one in inputs if isinstance(one, (str, os.PathLike))]
    _refuse_chosen(systems, paths)
    grounds: dict[str, Dataset] = {}
    if len(paths) == len(inputs):
        chosen = None if conventions is None else conventions_of(conventions)
        of_runs = place_of(collection) if len(paths) == 3 else None
        baseline, candidate, names = gate_inputs(
            paths, tuple(requested), chosen, systems, of_runs, fetch, name
        )
        grounds = collections_of(paths, places_of(collection), fetch)
    else:
        scores = _scores_of_side(second) or _scores_of_side(third)
        names = list(map(str, requested)) or (judged_by_default(scores.measures) if scores else [GATED])
        usual = conventions or (scores.conventions if scores else DEFAULT)
        rules = ScoringRules.of(place_of(collection), conventions_of(usual))
        baseline, candidate = (
            [one] for one in _baseline_and_candidate(first, (second, third), names, rules, name)
        )
        grounds = {} if rules.dataset is None else {"": rules.dataset}
    if ungated := [measure for measure in allowed.drops if measure not in names]:
        raise BadValue(f"max_drop names {', '.join(ungated)}, and what is gated is {', '.join(names)}")
    cases, notes = gate_cases((baseline, candidate), names, by, common, grounds)
    known = (m for side in baseline for one in side.datasets.values() for m in one.scores.measures)
    not_gated = map(Note, no_direction_note(measure for measure in known if measure not in names))
    same = [] if third is None else _same_sides(second, third)
    return cases, [*same, *notes, *not_gated]


def _same_sides(baseline: object, candidate: object) -> list[Note]:
    """Return a note for each ranking of the candidate that is a copy of the baseline's."""
    before, after = (_by_run_name(one, of) for one, of in ((baseline, "baseline"), (candidate, "candidate")))
    pairs = ((before[name], after[name]) for name in before if name in after)
    return [note for pair in pairs for note in copy_notes(pair)]


def _by_run_name(side: object, called: str) -> dict[str, tuple[str, object]]:
    if not isinstance(side, (str, os.PathLike)):
        return {"": (f"the {called}", side)}
    path = path_of(side)
    return {run_name(run): (str(run), run) for run in run_files_of(path)} or {"": (str(path), path)}


@checked
def save_baseline(
    path: FolderPath,
    results: object,
    run: object = None,
    measures: Measures = (),
    conventions: Conventions | str | Mapping[str, str] = DEFAULT,
    collection: Collection = None,
    systems: Sequence[str] = (),
    fetch: bool = False,
) -> SystemScores:
    """Write a system's scores by query as a baseline file to commit, and return them.

    results: judgments as `evaluate` takes them, or a results folder.
    run: a ranking as `evaluate` takes it; None for a results folder.
    measures: by default nDCG@10.
    conventions, collection: of a ranking, as `evaluate` takes them.
    systems: the system to save from a folder of several.
    fetch: download the collections that records of results name.

    Raises BadValue for a folder with several systems or without their judgments on this machine.
    """
    requested = _requested(measures)
    how = conventions_of(conventions)
    name = JUDGED_QUERIES if run is None else _judgments_name(results)
    if run is not None:
        results, collection = judged_by(results, collection)
        run = one_ranking(run, collection)
    paths = [path_of(one) for one in (results, run) if isinstance(one, (str, os.PathLike))]
    _refuse_chosen(systems, paths)
    if run is None and not paths:
        raise BadValue(
            f"found {type(results).__name__} alone; expected judgments and a run, or a results folder"
        )
    if run is None or (len(paths) == 2 and not is_baseline(paths[1])):
        system = system_of(paths, requested, how, systems, collection, fetch, name)
    else:
        gated = requested or measures_of(GATED)
        system = _scores_of_side_given(results, run, gated, ScoringRules.of(collection, how), name)
    write_baseline(system, path_of(path))
    return system


def _requested(measures: Measures) -> tuple[Measure, ...]:
    return measures_of(measures) if isinstance(measures, (str, Measure)) or measures else ()


def _refuse_chosen(systems: Sequence[str], paths: Sequence[Path]) -> None:
    if systems and not any(path.is_dir() for path in paths):
        raise BadValue("`systems` chooses in a results folder, and none is gated; name the files themselves")


def baseline_notes(saved: SystemScores) -> tuple[Note, ...]:
    """Return notes on a baseline's scores, which its file does not hold."""
    scores = {name: one.scores for name, one in saved.datasets.items()}
    return (*map(Note, saved.remarks), *system_notes(scores))


def measures_with_drops(texts: Iterable[str]) -> tuple[tuple[str, ...], dict[str, float]]:
    """Return (names of measures, {name: drop}) from texts such as "nDCG@10:0.01" or "nDCG@10".

    The last drop of a measure counts. Raises BadValue for another drop, UnknownName for an unknown measure.
    """
    names, drops = list[str](), dict[str, float]()
    for text in texts:
        name, colon, drop = text.rpartition(":")
        named = [str(one) for one in measures_of(name if colon else text)]
        names += named
        if colon:
            try:
                drops |= dict.fromkeys(named, float(drop))
            except ValueError:
                raise BadValue(
                    f"`measures={text!r}`: the drop is '{drop}'; expected such as {name}:0.01"
                ) from None
    return tuple(dict.fromkeys(names)), drops


def write_junit(gates: ResultSet[Gate], path: FolderPath) -> None:
    """Write gates as a JUnit XML file; raises StoreError if it cannot be written."""
    write_text(path_of(path), gate_junit(gates.items) + "\n")


def _scores_of_side(side: object) -> Scores | None:
    if isinstance(side, Scores):
        return side
    if isinstance(side, (str, os.PathLike)) and is_baseline(Path(side)):
        return next(iter(read_baseline(Path(side)).datasets.values())).scores
    return None


def _baseline_and_candidate(
    qrels: object,
    pair: tuple[object, object],
    measures: Sequence[Measure | str],
    rules: ScoringRules,
    name: str,
) -> list[SystemScores]:
    if all(isinstance(one, Scores) for one in pair):
        scores = [one for one in pair if isinstance(one, Scores)]
        marks = [one.origin.marks for one in scores]
        known = all(marks)  # else they are taken to be of the same judgments
        return [
            SystemScores(
                "",
                {
                    _judgments_name(scores[0]): JudgedScores(
                        one, of if known else {}, "" if known else "as given"
                    )
                },
            )
            for one, of in zip(scores, marks, strict=True)
        ]
    return [_scores_of_side_given(qrels, one, measures, rules, name) for one in pair]


def _scores_of_side_given(
    qrels: object, run: object, measures: Sequence[Measure | str], rules: ScoringRules, name: str
) -> SystemScores:
    if isinstance(run, (str, os.PathLike)) and is_baseline(Path(run)):
        return read_baseline(Path(run))
    judgments = judgments_from(qrels, measures)
    if not isinstance(run, Scores):
        refuse_mismatched(qrels, run)
        run = evaluate(judgments, run, measures, rules.conventions, collection=rules.dataset)
    marks = run.origin.marks or judgment_marks(rules.counted(judgments))
    return SystemScores("candidate", {name: JudgedScores(run, marks)})
