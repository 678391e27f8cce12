"""Comparisons of what is on disk: run files with judgments, and the systems of a results folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weir.core.scores import Scores
from weir.datasets import catalogue
from weir.errors import BadValue
from weir.experiment.results import read_scores_of
from weir.io.trec import judge_file, read_qrels, run_name
from weir.measures import DEFAULT_MEASURES, Measure, measures_of, scores_of
from weir.stats.compare import Comparison, Method, Table, across, compared, table

__all__ = ["compare_results", "compare_scores", "distinct_names", "scores_of_files"]


def scores_of_files(
    qrels: Path, runs: Sequence[Path], measures: Iterable[Measure | str] = ()
) -> dict[str, Scores]:
    """The scores of run files by name, which is the file's, or its path where two files are called the same.

    measures: by default nDCG@10, R@100 and Judged@10. Raises the WeirErrors of reading and measuring.
    """
    wanted = measures_of(tuple(measures) or DEFAULT_MEASURES)
    names = distinct_names([run_name(run) for run in runs], [str(run) for run in runs])
    judgments = read_qrels(qrels)
    return {
        name: scores_of(judge_file(run, judgments), wanted) for name, run in zip(names, runs, strict=True)
    }


def distinct_names(short: Sequence[str], long: Sequence[str]) -> list[str]:
    """The short names, or the long ones where short ones repeat; raises BadValue where those repeat too."""
    names = list(short) if len(set(short)) == len(short) else list(long)
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise BadValue(f"two of the systems are named '{twice}'; a comparison needs different ones")
    return names


def compare_scores(
    scores: Mapping[str, Scores], dataset: str, baseline: str | None = None, method: Method | None = None
) -> list[Comparison]:
    """One comparison for each measure that all systems have; errors as stats.compare."""
    if len(scores) < 2:
        raise BadValue(f"a comparison needs at least two systems; found {len(scores)}")
    return [compared(table(dataset, m, scores), baseline, method) for m in _shared(scores.values())]


def compare_results(
    root: Path,
    measures: Iterable[Measure | str] = (),
    baseline: str | None = None,
    method: Method | None = None,
) -> list[Comparison]:
    """Compare the systems of a results folder, on each dataset and, where there are several, across them.

    measures: by default all that are in the folder. Datasets with one system are left out, and so are, across
    datasets, systems that some dataset lacks. A group whose members are all there, such as cqadupstack, counts as
    one dataset if there are others. Raises BadValue where no dataset has two systems, UnknownName for a measure
    that was not computed.
    """
    by_dataset: dict[str, dict[str, Scores]] = {}
    for (dataset, system), scores in read_scores_of(root).items():
        by_dataset.setdefault(dataset, {})[system] = scores
    several = {d: systems for d, systems in by_dataset.items() if len(systems) > 1}
    if not several:
        raise BadValue(f"{root}: no dataset has two systems, so there is nothing to compare")
    known = _shared(s for systems in several.values() for s in systems.values())
    wanted = [str(m) for m in measures_of(tuple(measures))] if measures else known
    found = []
    for measure in wanted:
        tables = [table(dataset, measure, systems) for dataset, systems in several.items()]
        found += [compared(t, baseline, method) for t in tables]
        joined = _across(tables)
        if joined is not None:
            found.append(compared(joined, baseline, method))
    return found


def _across(tables: Sequence[Table]) -> Table | None:
    """The means on all datasets of the systems that each dataset has; None where there is nothing to join."""
    shared = [s for s in tables[0].systems if all(s in t.systems for t in tables)]
    units: dict[str, list[Table]] = {}
    for one in tables:
        rows = [one.systems.index(s) for s in shared]
        part = replace(one, systems=tuple(shared), values=one.values[rows])
        units.setdefault(_unit(one.dataset, {t.dataset for t in tables}), []).append(part)
    if len(units) < 2 or len(shared) < 2:
        return None
    return across(units, f"{len(units)} datasets")


def _unit(dataset: str, datasets: set[str]) -> str:
    """The group that a dataset counts in, if it is there as a whole beside others; else the dataset."""
    for group in map(catalogue.group, catalogue.groups()):
        if dataset in group.members and datasets > set(group.members):
            return group.name
    return dataset


def _shared(scores: Iterable[Scores]) -> list[str]:
    """The measures that all have, in the order of the first."""
    first, *others = [s.measures for s in scores]
    found = [m for m in first if all(m in o for o in others)]
    if not found:
        raise BadValue("the systems have no measure in common; score them with the same ones")
    return found
