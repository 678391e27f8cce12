"""Compare results in folders, and run files: compare, diff, gate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np

from weir.core.judged import Judged
from weir.core.order import Ties
from weir.core.origin import judgment_marks
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryGroups
from weir.core.roles import judged_run
from weir.core.rounding import counted
from weir.core.run import Run
from weir.core.scores import JudgedScores, Note, Scores, SystemScores
from weir.core.short_names import run_titles
from weir.core.strings import Ids
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load, query_groups
from weir.datasets.scoring_rules import NO_COLLECTION, ScoringRules
from weir.errors import BadValue, FormatError, StoreError, UnknownName
from weir.experiment.results import (
    ResultCell,
    answered_texts,
    by_split,
    cell_collection,
    check_scored,
    collection_of_cell,
    collection_places,
    current_cells,
    damaged_records,
    dataset_of,
    finished_cells,
    largest_k,
    named_place,
    newest_cells,
    of_systems,
    open_cell,
    run_files_of,
    scored_measures,
    shared_measures,
    unscored_notes,
)
from weir.experiment.stages import RECORD, record_of
from weir.files.formats import format_of
from weir.files.runs import read_qrels, read_run, read_run_against, run_name
from weir.files.score_files import is_baseline, read_baseline
from weir.files.text_files import refuse_pack
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, parse_measure, scores_of
from weir.measures.evaluate import (
    DEFAULT,
    Conventions,
    distinct_names,
    each_file,
    judgments_for,
    names_of_runs,
    parse_conventions,
)
from weir.measures.measure import direction, judged_by_default, must_stay_zero
from weir.stats.compare import (
    Comparison,
    ComparisonMethod,
    ScoreTable,
    across,
    compared,
    compared_across,
    compared_by_group,
    on_same_queries,
    table,
)
from weir.stats.query_differences import QueryDifferences, query_differences, with_documents, with_texts
from weir.stats.score_rows import deeper_notes, noted, scored, shallow_notes, system_notes

# ----------
# Systems of a results folder compared on each dataset and across datasets.


MOST_COMPARED = 500_000
"""Most differences (pairs of systems x queries) for which letters of a grid are computed by default, in seconds."""


def compare_cells(
    cells: Sequence[ResultCell] | Mapping[tuple[str, str], Scores],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Return a comparison of systems for each measure on each dataset and, if there are several, across
    datasets.

    cells: finished results, or their `scores_of_cells`.
    measures: by default all with a better direction.
    baseline: compare with this system only, by default all pairs.

    Leaves out datasets with one system or without the baseline, and systems without the measure. Across
    datasets, compares the systems that all have; a complete group counts as one.

    Raises BadValue if no dataset has two systems and two queries, UnknownName for an unknown measure or baseline.
    """
    grid = cells if isinstance(cells, Mapping) else scores_of_cells(cells)
    comparisons = compare_grid(grid, measures, baseline, method)
    if not comparisons:
        raise BadValue("no dataset has two queries with a value of two systems, which a comparison needs")
    return comparisons


def scores_of_cells(cells: Iterable[ResultCell]) -> dict[tuple[str, str], Scores]:
    """Return {(dataset, system's label): scores}; raises StoreError if a file changed."""
    scores, queries = dict[tuple[str, str], Scores](), dict[str, Ids]()
    for cell in cells:
        found = cell.values()
        shared = queries.setdefault(cell.dataset, found.queries)
        same = found.queries == shared
        scores[cell.dataset, cell.label or cell.system] = replace(found, queries=shared) if same else found
    return scores


def compare_grid(
    cells: Mapping[tuple[str, str], Scores],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> list[Comparison]:
    """Return the comparisons of `compare_cells` from {(dataset, system): scores}; [] if the only dataset has
    one query.

    Raises BadValue if no dataset has two systems, UnknownName for an unscored measure.
    """
    comparisons = []
    for tables in _tables_of_measures(cells, measures, baseline):
        each = [compared(t, baseline, method) for t in tables if t.comparable]
        comparisons += each
        units = units_across(tables)
        if len(units) > 1:
            comparisons.append(compared_across(units, _across_name(units), baseline, method, each))
    return comparisons


def compared_tables(
    cells: Mapping[tuple[str, str], Scores],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
) -> Iterator[ScoreTable]:
    """Yield the score table of each comparison by `compare_grid`, in its order, but for tables of one query.

    Raises the same errors when iterated.
    """
    for tables in _tables_of_measures(cells, measures, baseline):
        yield from (t for t in tables if t.comparable)
        units = units_across(tables)
        if len(units) > 1:
            yield across(units, _across_name(units))


def _across_name(units: Mapping[str, Sequence[ScoreTable]]) -> str:
    return f"{len(units)} datasets"


def _tables_of_measures(
    cells: Mapping[tuple[str, str], Scores], measures: Iterable[Measure | str], baseline: str | None
) -> Iterator[list[ScoreTable]]:
    scores: dict[str, dict[str, Scores]] = {}
    for (dataset, system), values in cells.items():
        scores.setdefault(dataset, {})[system] = values
    if not any(len(systems) > 1 for systems in scores.values()):
        first = "; ".join(
            f"{dataset} has {name}" for (dataset, name), _ in zip(cells, range(2), strict=False)
        )
        raise BadValue(f"no dataset has two systems, so there is nothing to compare: {first}")
    for measure in measures_wanted([m for of in cells.values() for m in of.measures], measures):
        having = {d: {n: s for n, s in of.items() if _has(s, measure)} for d, of in scores.items()}
        tables = [table(dataset, measure, of, least=1) for dataset, of in having.items() if len(of) > 1]
        if any(baseline in t.systems for t in tables):
            tables = [t for t in tables if baseline in t.systems]
        yield tables


def _has(scores: Scores, measure: str) -> bool:
    return measure in scores.measures and not np.isnan(scores.of(measure)).all()


def compare_cells_by_group(
    cells: Sequence[ResultCell],
    groups: Callable[[ResultCell, Ids], QueryGroups],
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: ComparisonMethod | None = None,
) -> tuple[list[Comparison], list[str]]:
    """Return (comparisons on all queries, on the macro mean over groups and on each group; sentences on
    omitted datasets).

    groups: returns the groups of a result's queries.
    method: by default BY_GROUP.

    Raises BadValue if no group has two queries, UnknownName for an unscored measure.
    """
    comparisons, ungrouped = list[Comparison](), dict[str, None]()
    for measure in _measures_among(cells, measures):
        for dataset, systems in _by_dataset(cells).items():
            having = {name: c for name, c in systems.items() if c.mean(measure) is not None}
            if len(having) < 2 or (baseline is not None and baseline not in having):
                continue
            whole = table(dataset, measure, {name: cell.values() for name, cell in having.items()}, least=1)
            assert whole.queries is not None
            by = groups(next(iter(having.values())), whole.queries)
            ungrouped |= {f"{dataset}: {said}": None for said in by.lacking(whole.queries)}
            if any(len(members) > 1 for members in by.rows(whole.queries).values()):
                comparisons += compared_by_group(whole, by, baseline, method)
            else:
                ungrouped[f"{dataset} is left out: no group has two of its queries"] = None
    if not comparisons:
        raise BadValue("; ".join(ungrouped) or "no dataset has two systems to compare")
    return comparisons, list(ungrouped)


def tie_groups(cells: Mapping[tuple[str, str], Scores]) -> list[Comparison]:
    """Return the comparisons that decide which systems share a letter in tables.

    [] without a dataset of two systems, or for more than MOST_COMPARED differences.
    """
    systems = [dataset for dataset, _ in cells]
    cost = sum((systems.count(dataset) - 1) * of.values.size / 2 for (dataset, _), of in cells.items())
    return compare_grid(cells) if len(set(systems)) < len(systems) and cost <= MOST_COMPARED else []


MOST_PARTLY = 3
"""Systems on some of the datasets alone that one sentence names."""


def lacking_notes(
    cells: Sequence[ResultCell], measures: Iterable[Measure | str] = (), baseline: str | None = None
) -> list[str]:
    """Return sentences on measures, datasets and systems that `compare_cells` omits; raises UnknownName for
    an unscored measure.
    """
    sentences, by_dataset = [], _by_dataset(cells)
    for measure in _measures_among(cells, measures):
        lacking = [f"{cell.called} on {cell.dataset}" for cell in cells if cell.mean(measure) is None]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            verb = "are" if more else "is"
            sentences.append(
                f"{lacking[0]}{more} {verb} left out of {measure}, not having been scored by it; "
                f"weir run with -m '{measure}' adds it, searching nothing anew"
            )
        sentences += [
            f"{cell.called} on {cell.dataset} is left out of {measure}, which has no value there"
            for cell in cells
            if (mean := cell.mean(measure)) is not None and math.isnan(mean)
        ]
    sentences += [
        f"{dataset} has one judged query: it counts across datasets, and there is no comparison on it alone"
        for dataset, systems in by_dataset.items()
        if len(systems) > 1 and max(cell.queries for cell in systems.values()) == 1
    ]
    alone = {name for name, of in by_dataset.items() if len(of) == 1}
    without = [
        d for d, systems in by_dataset.items() if baseline and baseline not in systems and d not in alone
    ]
    across = [of for d, of in by_dataset.items() if d not in alone and d not in without]
    asked = Counter(name for of in across for name in of)
    partly = {name: of[name].called for of in across for name in of if asked[name] < len(across)}
    if partly:
        names = [f"{called} (on {asked[name]} of {len(across)})" for name, called in partly.items()]
        more = f" and {len(names) - MOST_PARTLY} more" * (len(names) > MOST_PARTLY)
        sentences.append(
            f"left out across datasets, as they lack some: {', '.join(names[:MOST_PARTLY])}{more}"
        )
    return sentences + datasets_left_out(cells, measures, baseline)


def datasets_left_out(
    cells: Sequence[ResultCell], measures: Iterable[Measure | str] = (), baseline: str | None = None
) -> list[str]:
    """Return a sentence on each dataset that `compare_cells` omits for one system or no baseline; raises
    UnknownName for an unscored measure.
    """
    wanted, omitted = _measures_among(cells, measures), dict[str, dict[str, list[str]]]()
    called = next((cell.called for cell in cells if (cell.label or cell.system) == baseline), baseline)
    for measure in wanted:
        means = [(cell, cell.mean(measure)) for cell in cells]
        having = _by_dataset([cell for cell, mean in means if mean is not None and not math.isnan(mean)])
        compared_there = [of for of in having.values() if len(of) > 1]
        based = any(baseline in of for of in compared_there)
        for dataset, of in having.items():
            if len(of) == 1 and compared_there:
                reason = f"it has {next(iter(of.values())).called} alone"
            elif len(of) > 1 and based and baseline not in of:
                reason = f"it has no {called}, the baseline"
            else:
                continue
            omitted.setdefault(dataset, {}).setdefault(reason, []).append(measure)
    return [
        f"{dataset} is left out{f' of {listed}' * (len(of) < len(wanted))}: {reason}"
        for dataset, reasons in omitted.items()
        for reason, of in reasons.items()
        for listed in [", ".join(of)]
    ]


def comparison_cost(cells: Sequence[ResultCell], measures: Iterable[Measure | str] = ()) -> int:
    """Return the work of a comparison: measures x (pairs of systems x queries, summed over datasets).

    measures: by default all with a better direction.
    """
    pairs = [len(systems) * (len(systems) - 1) // 2 for systems in _by_dataset(cells).values()]
    queries = [max(cell.queries for cell in systems.values()) for systems in _by_dataset(cells).values()]
    return len(_measures_among(cells, measures)) * sum(p * q for p, q in zip(pairs, queries, strict=True))


def _by_dataset(cells: Sequence[ResultCell]) -> dict[str, dict[str, ResultCell]]:
    datasets: dict[str, dict[str, ResultCell]] = {}
    for cell in cells:
        datasets.setdefault(cell.dataset, {})[cell.label or cell.system] = cell
    return datasets


def measures_wanted(measured: Iterable[str], measures: Iterable[Measure | str]) -> list[str]:
    """Return the names of `measures`, by default of all `measured` with a better direction.

    Raises UnknownName for one that is not `measured`.
    """
    available = list(dict.fromkeys(measured))
    if not (chosen := tuple(measures)):
        return judged_by_default(available)
    names = [str(m) for m in measures_of(chosen)]
    for measure in names:
        if measure not in available:
            raise UnknownName("measure among these scores", measure, available)
    return names


def _measures_among(cells: Sequence[ResultCell], measures: Iterable[Measure | str]) -> list[str]:
    chosen, scored = tuple(measures), scored_measures(cells)
    check_scored(map(str, measures_of(chosen)) if chosen else (), scored)
    return measures_wanted(scored, chosen)


def units_across(tables: Sequence[ScoreTable]) -> dict[str, list[ScoreTable]]:
    """Return {unit: score tables of its datasets} of the systems that all have; {} for fewer than two
    systems.

    Units are as by `unit_names`, without `uncounted` tables.
    """
    tables = [t for t in tables if not t.uncounted]
    shared = [s for s in tables[0].systems if all(s in t.systems for t in tables)] if tables else []
    unit_of, units = unit_names({t.dataset: t.unit_of for t in tables}), dict[str, list[ScoreTable]]()
    for one in tables if len(shared) > 1 else ():
        part = one.ordered([one.systems.index(s) for s in shared])
        units.setdefault(unit_of[one.dataset], []).append(part)
    return units


def unit_names(datasets: Mapping[str, str]) -> dict[str, str]:
    """Return {dataset: the unit it counts for across datasets}: its complete group, if there are others, else
    its collection.

    datasets: {dataset: its collection, "" for the same name}.
    """
    units = {dataset: unit or dataset for dataset, unit in datasets.items()}
    there = set(units.values())
    whole = [g for g in catalogue.whole_groups(datasets) if there > set(g.members)]
    group_of = {member: group.name for group in reversed(whole) for member in group.members}
    return {dataset: group_of.get(unit, unit) for dataset, unit in units.items()}


# ----------
# Two runs or two cells, query by query.


def diff_files(
    qrels: Path, paths: tuple[Path, Path], measure: str, rules: ScoringRules = NO_COLLECTION, top: int = 10
) -> QueryDifferences:
    """Return the differences of two run files, query by query; raises BadValue for a run that answers no
    judged query.

    rules: conventions, and the collection whose texts are shown.
    top: number of largest gains, and of largest losses, to list.
    """
    first, second = paths
    names = _names((_shown_name(first), _shown_name(second)), paths)
    judgments = read_qrels(qrels)
    order = rules.conventions.order
    runs = [
        read_run(path, order) if rules.remove_documents else _run(path, rules.counted(judgments), ties=order)
        for path in paths
    ]
    return diff_runs(judgments, dict(zip(names, runs, strict=True)), measure, rules, top)


def diff_runs(
    qrels: Qrels, runs: Mapping[str, Run], measure: str, rules: ScoringRules = NO_COLLECTION, top: int = 10
) -> QueryDifferences:
    """Return the differences of two runs, {name: run}, query by query; else as `diff_files`."""
    parsed, judgments = parse_measure(measure), rules.counted(qrels)
    dangling = rules.dangling_notes(qrels)

    def scores_of_run(run: Run) -> Scores:
        judged = judged_run(run, judgments)
        scores = scores_of(judged, (parsed,), rules.conventions)
        return noted(scores, judged, judgments, (parsed,)).remarked(dangling)

    ranked = {name: rules.ranked(run) for name, run in runs.items()}
    one, other = (scores_of_run(run) for run in ranked.values())
    first, second = runs
    moves = query_differences(str(parsed), (first, second), one, other, top)
    moves = with_documents(moves, judgments, *ranked.values())
    dataset = rules.dataset
    if dataset is None:
        return moves
    there = dataset.layout
    return with_texts(
        moves,
        None if there.queries is None else dataset.all_queries,
        None if there.documents is None else dataset.corpus,
    )


def diff_cells(
    first: Path,
    second: Path,
    measure: str | None = None,
    collection: str | Path | Dataset | None = None,
    top: int = 10,
) -> QueryDifferences:
    """Return the differences of two results, query by query, from their folders.

    measure: by default the first that both have.
    collection: for texts, and judgments to score both again.
    top: see `diff_files`.

    Raises FormatError for an unfinished result, BadValue for different collections, no shared measure, or
    different judgments without `collection`.
    """
    cells = open_cell(first), open_cell(second)
    one, other = cells
    if (one.dataset, one.split) != (other.dataset, other.split):
        raise BadValue(
            f"{one.dataset} {one.split} and {other.dataset} {other.split} are scores of other queries"
        )
    (documents, queries), (others, other_queries) = answered_texts(one), answered_texts(other)
    if documents != others and (queries != other_queries or one.judgments != other.judgments):
        what = "queries" if queries != other_queries else "judgments"
        raise BadValue(
            f"{first} and {second} are of two collections of one name: other documents and other {what}"
        )
    names = _names((one.called, other.called), (first, second))
    dataset = dataset_of(one, collection)
    if dataset is None and one.judgments != other.judgments:
        raise BadValue(
            f"{first} and {second} were scored by different judgments; the same weir run scores both again, or pass "
            "`collection`"
        )
    if dataset is None:
        name = str(_stored(one, other, measure))
        scores = []
        for cell in cells:
            stored = cell.values()
            run = _run(cell.run, None, stored.queries)  # who was answered is in its rankings
            answered = np.diff(run.ptr)[run.queries.codes(stored.queries.strings)] > 0
            cut = tuple(shallow_notes(cell.depth, (name,)))
            scores.append(replace(stored, answered=answered, remarks=cut))  # the remark says how many are not
        return query_differences(name, names, scores[0], scores[1], top)
    parsed = parse_measure(measure) if measure else _stored(one, other, None)
    runs = _run(one.run, dataset.qrels), _run(other.run, dataset.qrels)
    dangling = ScoringRules(dataset=dataset).dangling_notes(dataset.all_qrels)
    scores = []
    for cell, run in zip(cells, runs, strict=True):
        judged = Judged.of(run, dataset.qrels)
        found = noted(scores_of(judged, (parsed,)), judged, dataset.qrels, (parsed,)).remarked(dangling)
        scores.append(
            replace(found, conventions=cell.conventions, origin=replace(cell.origin, judgments=dataset.qrels))
        )
    moves = query_differences(str(parsed), names, scores[0], scores[1], top)
    return with_texts(with_documents(moves, dataset.qrels, *runs), dataset.all_queries, dataset.corpus)


def _stored(first: ResultCell, second: ResultCell, measure: str | None) -> Measure:
    both = shared_measures(first, second)
    if measure is None and both:
        return parse_measure(both[0])
    if measure is None:
        raise BadValue(
            f"{first.folder} and {second.folder} have no measure in common; name one with `measure`"
        )
    if str(parse_measure(measure)) not in both:
        raise BadValue(
            f"{measure} is not in both folders, and {first.dataset} is not on this machine to compute it; "
            f"in both: {', '.join(both) or 'none'}; or pass `collection`"
        )
    return parse_measure(measure)


def _run(path: Path, qrels: Qrels | None, queries: Ids | None = None, ties: Ties = "trec") -> Run:
    if not format_of(path, "run").rows:
        return read_run(path, ties)
    docs = Ids.of([]) if qrels is None else qrels.docs
    judged_queries = qrels.queries if qrels is not None else queries
    if judged_queries is None:
        return read_run(path, ties)
    return read_run_against(path, judged_queries, docs, ties)[0]


def _shown_name(run: Path) -> str:
    """Return a result's system name, or `run_name` of other files."""
    record = record_of(run.parent) if run_name(run) == run.parent.name else None
    return run_name(run) if record is None else record.name


def _names(short: tuple[str, str], long: tuple[Path, Path]) -> tuple[str, str]:
    folders = [f"{path.parent.name}/{path.name}" for path in long]
    longer = folders if len(set(folders)) == len(folders) else [str(path) for path in long]
    one, other = distinct_names(short, longer)
    return one, other


# ----------
# What a gate compares: results folders, saved baselines, or judgments and runs.


GATED = "nDCG@10"
"""Measure of a gate if none is named and no baseline has others."""
GRAMMAR = "[QRELS] BASELINE CANDIDATE, judgments first where one of them is a run file"


GateCases: TypeAlias = list[tuple[str, ScoreTable]]
"""(group of queries or "", scores of "baseline" and "candidate") of each table that `weir gate` tests for a drop."""


def gate_inputs(
    paths: Sequence[Path],
    measures: Sequence[Measure] = (),
    conventions: Conventions | None = None,
    systems: Sequence[str] = (),
    collection: str | Path | Dataset | None = None,
    fetch: bool = False,
    judged: str = "",
) -> tuple[list[SystemScores], list[SystemScores], list[str]]:
    """Return (baseline systems, candidate systems, measures) from the paths of `weir gate`.

    measures: by default a saved baseline's, else nDCG@10.
    conventions: of run files, by default a saved baseline's or the folder's.
    systems: names in results folders, () for all.
    collection, judged: the run files' collection, and its name in tables.

    Raises BadValue for unclear paths, FormatError for a missing one, UnknownName for a measure that a
    baseline lacks.
    """
    qrels, sides = (paths[0], paths[1:]) if len(paths) == 3 else (None, paths)
    if len(sides) != 2:
        raise BadValue(f"found {counted(len(paths), 'path')}; expected {GRAMMAR}")
    saved: dict[Path, SystemScores] = {}
    for path in sides:
        try:
            if path.is_file() and is_baseline(path):
                saved[path] = read_baseline(path)
        except OSError as error:
            raise FormatError(path, error.strerror or str(error), "a file that can be read") from None
    first = next((one.scores for side in saved.values() for one in side.datasets.values()), None)
    names = [str(m) for m in measures] or judged_by_default(first.measures if first else (GATED,))
    files = {path: run_files_of(path, systems) for path in sides}
    saved_by = {m for one in saved.values() for side in one.datasets.values() for m in side.scores.measures}
    folders = {
        path: _systems_in(path, names, systems, fetch, bool(measures), saved_by if saved else None)
        for path in sides
        if path.is_dir() and not files[path]
    }
    if qrels is not None and all(path in saved or path in folders for path in sides):
        raise BadValue(f"{sides[0]} and {sides[1]} are no run files, so there is nothing to judge by {qrels}")
    names_there = [set(map(run_name, files[path])) for path in sides if files[path]]
    if len(names_there) == 2 and names_there[0].isdisjoint(names_there[1]):
        raise BadValue(
            f"{sides[0]} and {sides[1]} have no run file of one name; name the two files themselves"
        )
    first = first or next(
        (one.scores for side in folders.values() for one in side[0].datasets.values()), None
    )
    rules = ScoringRules.of(
        collection, conventions or (parse_conventions(first.conventions) if first else DEFAULT)
    )
    systems_of: list[list[SystemScores]] = []
    for path in sides:
        if path in saved:
            scored = next(iter(saved[path].datasets.values())).scores.measures
            for measure in names:
                if measure not in scored:
                    raise UnknownName(f"measure in {path}", measure, scored)
            systems_of.append([saved[path]])
        elif path in folders:
            systems_of.append(folders[path])
        elif not path.exists():
            raise FormatError(path, "no such file or folder", GRAMMAR)
        elif qrels is None:
            refuse_pack(path)
            raise BadValue(f"{path} is neither a results folder nor a saved baseline; expected {GRAMMAR}")
        else:
            runs = files[path] or [path]
            systems_of.append([_scored_run(qrels, run, names, rules, judged) for run in runs])
    return systems_of[0], systems_of[1], names


def system_of(
    paths: Sequence[Path],
    measures: Sequence[Measure] = (),
    conventions: Conventions = DEFAULT,
    systems: Sequence[str] = (),
    collection: str | Path | Dataset | None = None,
    fetch: bool = False,
    judged: str = "",
) -> SystemScores:
    """Return the scores of one system, to save as a baseline.

    paths: a results folder, or judgments and a run.
    measures: by default GATED.

    Other parameters as for `gate_inputs`. Raises BadValue for other paths, several systems, or judgments that
    are missing or changed.
    """
    names = [str(m) for m in measures] or [GATED]
    if len(paths) == 2:
        return _scored_run(paths[0], paths[1], names, ScoringRules.of(collection, conventions), judged)
    if len(paths) != 1 or not paths[0].is_dir():
        raise BadValue("a baseline is of judgments and a run, or of one results folder")
    scored = _systems_in(paths[0], names, systems, fetch, chosen=bool(measures))
    if len(scored) > 1:
        raise BadValue(f"{paths[0]} holds {len(scored)} systems ({_listed(scored)}); name one by `systems`")
    for name, one in scored[0].datasets.items():
        if not one.marks:
            raise BadValue(
                f"the judgments of {name} are not here, or not as it was measured; a baseline needs them"
            )
    return scored[0]


def scores_of_files(
    qrels: Path,
    runs: Sequence[Path],
    measures: Iterable[Measure | str] = (),
    rules: ScoringRules = NO_COLLECTION,
) -> tuple[dict[str, Scores], list[str]]:
    """Return ({run file's name: scores}, messages on files that cannot be scored).

    measures: by default nDCG@10, R@100 and Judged@10.

    Raises the first error if fewer than two can be scored.
    """
    wanted = measures_of(tuple(measures) or DEFAULT_MEASURES)
    every = judgments_for(qrels, wanted)
    judgments = rules.counted(every)
    scores, refused = each_file(
        runs, lambda run: scored(judgments, partial(rules.join_run, run), wanted, rules.conventions), 2
    )
    dangling = rules.dangling_notes(every)
    kept = [run for run in runs if run in scores]
    names = zip(names_of_runs(kept), kept, strict=True)
    return {name: scores[run].remarked(dangling) for name, run in names}, refused


def _scored_run(
    qrels: Path, run: Path, measures: Sequence[str], rules: ScoringRules = NO_COLLECTION, judged: str = ""
) -> SystemScores:
    parsed = measures_of(measures)
    every = judgments_for(qrels, parsed)
    judgments = rules.counted(every)
    scores = scored(judgments, partial(rules.join_run, run), parsed, rules.conventions)
    scores = scores.remarked(rules.dangling_notes(every))
    return SystemScores(
        run_name(run), {judged or qrels.name: JudgedScores(scores, judgment_marks(judgments))}
    )


def gate_cases(
    sides: tuple[Sequence[SystemScores], Sequence[SystemScores]],
    measures: Sequence[str],
    by: object = None,
    common: bool = False,
    collections: Mapping[str, Dataset] | None = None,
) -> tuple[GateCases, list[Note]]:
    """Return (score tables to gate, one for each measure, dataset and query group, then notes).

    sides: baseline and candidate systems, paired by name, or one of each.
    by: "prefix:_", "stem:-", a file of groups, a column of the collection, or {query: label}.
    common: compare only queries that both sides have with equal judgments.
    collections: {dataset: collection}, "" for any other; for columns and texts.

    Raises BadValue if the sides do not compare or no query has a group.
    """
    cases: GateCases = []
    own = version("weir-ir")
    versions = {one.version for side in sides for one in side if one.version and one.version != own}
    notes = [Note(f"scored by Weir {other}, this is {own}") for other in sorted(versions)]
    if all(one.version for one in sides[1]) and not any(one.version for one in sides[0]):
        notes.append(
            Note("the candidate is a saved baseline, the baseline is not", f"the order is {GRAMMAR}")
        )
    by_note: dict[str, list[str]] = {}  # how the rankings of both sides were made, once where it is the same
    for role, side in zip(("baseline", "candidate"), sides, strict=True):
        for text in dict.fromkeys(text for one in side for text in one.remarks):
            by_note.setdefault(text, []).append(role)
    notes += [Note(f"{' and '.join(roles)}: {text}") for text, roles in by_note.items()]
    scored_now = {  # without depths and texts, which meet below
        (role if len(side) == len(one.datasets) == 1 else f"{role} {one.system} on {name}"): replace(
            judged.scores, origin=replace(judged.scores.origin, depth=None, texts="")
        )
        for role, side in zip(("baseline", "candidate"), sides, strict=True)
        for one in side
        if not one.version
        for name, judged in one.datasets.items()
    }
    notes += system_notes(scored_now)  # as `weir eval` has them
    loaded = collections or {}
    pairs = _pairs(*sides, notes)
    for name, dataset, before, after in pairs:
        one, other, remarks = on_same_queries(dataset, before, after, common)
        notes += remarks
        pair = {"baseline": one, "candidate": other}
        deeper = deeper_notes(pair, measures)
        notes += (
            [note.about(name) for note in (*deeper, *_other_texts(pair))]
            if len(pairs) > 1
            else [*deeper, *_other_texts(pair)]
        )
        collection = loaded.get(dataset) or loaded.get("")
        groups = None if by is None else query_groups(by, one.queries, collection)
        lacking = [] if groups is None else map(Note, groups.lacking(one.queries))
        notes += [note.about(name) if len(pairs) > 1 else note for note in lacking]
        texts = {} if collection is None else _texts(collection, one.queries)
        for measure in measures:
            whole = replace(table(name, measure, pair, least=1), texts=texts)
            cases.append(("", whole))
            if groups is not None and whole.queries is not None:
                rows = groups.rows(whole.queries)
                cases += [(label, whole.take(columns)) for label, columns in rows.items()]
    return cases, notes


def _texts(collection: Dataset, queries: Ids) -> dict[str, str]:
    known = None if collection.layout.queries is None else collection.all_queries
    return {} if known is None else {q: text for q in queries.tolist() if (text := known.get(q))}


def gateable(cases: GateCases) -> tuple[GateCases, list[Note]]:
    """Return (tables that a gate can decide, notes on omitted datasets of one query); raises BadValue if none
    is left.

    Keeps groups, and measures that must not fail anywhere.
    """
    alone = {
        f"{of.dataset} has one query with a value of {of.measure} ({of.queries[0]}), which tells nothing of others": of
        for group, of in cases
        if not group and of.queries is not None and not of.comparable and not must_stay_zero(of.measure)
    }
    left = {(of.dataset, of.measure) for of in alone.values()}
    kept = [(group, of) for group, of in cases if (of.dataset, of.measure) not in left]
    if not kept:
        raise BadValue(f"{'; '.join(alone)}; a gate needs two queries, and weir diff shows what changed")
    return kept, [Note(f"not gated: {text}") for text in alone]


def _other_texts(pair: Mapping[str, Scores]) -> list[Note]:
    texts = {one.origin.texts for one in pair.values() if one.origin.texts}
    named = " and ".join(
        dict.fromkeys(one.origin.collection for one in pair.values() if one.origin.collection)
    )
    what = "ranked other documents, or other queries or candidates"
    return [Note(f"{' and '.join(pair)} {what}" + f", of {named}" * bool(named))] * (len(texts) > 1)


def collections_of(
    paths: Sequence[Path], collections: Sequence[str | Path | Dataset] = (), fetch: bool = False
) -> dict[str, Dataset]:
    """Return {name: collection} of results folders, without missing ones; a single one also under "".

    collections: where collections are now, as NAME=PATH or PATH.

    Raises UnknownName for a name without results, BadValue for an ambiguous path.
    """
    cells: list[ResultCell] = []
    for path in paths:
        if path.is_dir() and not run_files_of(path):
            cells += [open_cell(path)] if (path / RECORD).exists() else by_split(finished_cells(path))
    places = collection_places(cells, collections) if cells else {}
    by_name = {cell.dataset: cell for cell in cells}
    found = {name: collection_of_cell(cell, places, fetch) for name, cell in by_name.items()}
    loaded = {name: dataset for name, dataset in found.items() if dataset is not None}
    if len(by_name) == len(loaded) == 1:
        [loaded[""]] = loaded.values()  # a baseline may call it by another name
    elif len(collections) == 1 and not cells:
        place = named_place(collections[0])[1]
        loaded[""] = place if isinstance(place, Dataset) else load(place)
    return loaded


def _systems_in(
    folder: Path,
    measures: Sequence[str],
    names: Sequence[str],
    fetch: bool,
    chosen: bool,
    saved: Collection[str] | None = None,
) -> list[SystemScores]:
    # saved: measures of the baseline beside the folder, where it is a file
    single = (folder / RECORD).exists()
    for damaged in () if single else damaged_records(folder):  # else another system would take its place
        raise StoreError(f"{damaged.removeprefix('left out: ')}; the same weir run makes it again")
    newest, older = newest_cells([open_cell(folder)] if single else finished_cells(folder))
    found = newest if single else by_split(newest)
    counting, outdated = current_cells(found)
    cells, shallower = largest_k(counting)
    there, asked = {(cell.dataset, cell.system) for cell in cells}, of_systems(found, names)
    for stale, said in zip((cell for cell in found if cell.outdated), outdated, strict=True):
        if (stale.dataset, stale.system) in there:
            shallower.append(said)
        elif stale in asked:
            raise BadValue(
                f"{folder}: {said.replace(': left out;', ';')}, or name what is gated by `systems`"
            )
    systems: dict[str, dict[str, JudgedScores]] = {}
    ungated: dict[str, None] = {}
    for cell in of_systems(cells, names):
        name = cell.label or cell.system
        if cell.dataset in systems.setdefault(name, {}):
            raise BadValue(f"{folder}: {name} stands twice on {cell.dataset}; name the cell's own folder")
        scores = cell.values()
        for measure in measures:
            if measure not in scores.measures:
                known = f"its measures are {', '.join(scores.measures)}: name one by `measures`"
                raise BadValue(
                    f"{cell.folder}: not scored by {measure}{'' if chosen else ', the default'}; "
                    f"{known}, or weir run with -m '{measure}' adds it, searching nothing anew"
                )
        if not chosen:
            ungated |= dict.fromkeys(m for m in scores.measures if m not in measures and direction(m))
        rows = [scores.measures.index(m) for m in measures]
        scores = replace(scores, measures=tuple(measures), values=scores.values[rows])
        scores = scores.remarked(shallow_notes(cell.depth, measures))
        dataset = cell_collection(cell, fetch)
        marks = {} if dataset is None else judgment_marks(dataset.qrels)
        systems[name][cell.dataset] = JudgedScores(scores, marks, cell.judgments)
    called = {c.label or c.system: c.called for c in cells}
    lacking = [] if saved is None else [m for m in ungated if m not in saved]
    gateable = [m for m in ungated if m not in lacking]
    return [
        SystemScores(
            name,
            datasets,
            remarks=(
                *older,
                *(text for text in shallower if text.startswith(f"{called[name]} on ")),
                *unscored_notes([c for c in cells if (c.label or c.system) == name]),
                *[f"{', '.join(gateable)}: scored, too, and not gated; `measures` names more"]
                * bool(gateable),
                *[
                    f"{', '.join(lacking)}: scored, too, and not gated, as the baseline was saved without; weir gate "
                    "--save with -m names what is saved"
                ]
                * bool(lacking),
            ),
        )
        for name, datasets in systems.items()
    ]


def _pairs(
    baseline: Sequence[SystemScores], candidate: Sequence[SystemScores], notes: list[Note]
) -> list[tuple[str, str, JudgedScores, JudgedScores]]:
    titles = run_titles(list(dict.fromkeys(one.system for one in (*baseline, *candidate))))
    if len(baseline) == len(candidate) == 1:
        pairs = [(baseline[0], candidate[0])]
    else:
        by_name = {one.system: one for one in candidate}
        lost = [one for one in baseline if one.system not in by_name]
        if lost:
            raise BadValue(
                f"the candidate has no {_listed(lost)}; it has {_listed(candidate)}; name what is gated by `systems`"
            )
        pairs = [(one, by_name[one.system]) for one in baseline]
        old_names = {one.system for one in baseline}
        new = [one for one in candidate if one.system not in old_names]
        notes += [Note(f"{titles[one.system]} is new and not gated") for one in new]
    rows = []
    for one, other in pairs:
        if len(one.datasets) == len(other.datasets) == 1:
            [(name, before)], [after] = one.datasets.items(), other.datasets.values()
            datasets = [(name, before, after)]
        else:
            called = {name: _called_there(name, before, other) for name, before in one.datasets.items()}
            if missing := sorted(name for name, there in called.items() if there is None):
                raise BadValue(
                    f"the candidate has no results on {', '.join(missing)}; it has {', '.join(other.datasets)}; what "
                    "both have is gated by the folders of single results"
                )
            datasets = [
                (name, one.datasets[name], other.datasets[there]) for name, there in called.items() if there
            ]
            notes += [
                Note(f"{n} is new and not gated") for n in sorted(other.datasets.keys() - called.values())
            ]
        prefix = f"{titles[one.system]}, " if len(pairs) > 1 else ""
        rows += [(prefix + name, name, before, after) for name, before, after in datasets]
    return rows


def _called_there(name: str, before: JudgedScores, other: SystemScores) -> str | None:
    if name in other.datasets:
        return name
    alike = [
        there
        for there, after in other.datasets.items()
        if (before.marks and before.marks == after.marks)
        or (before.judgments and before.judgments == after.judgments)
    ]
    return alike[0] if len(alike) == 1 else None


def _listed(systems: Sequence[SystemScores]) -> str:
    return ", ".join(one.system for one in systems)
