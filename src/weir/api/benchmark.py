"""Systems on collections, scored: `weir run` in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core import frames, results
from weir.core.scores import Note, Row, Scores
from weir.core.tables import Table, written
from weir.datasets.load import Dataset, judged_or_not, load_group
from weir.errors import BadValue, UnknownName
from weir.files.atomic import temporary_folder
from weir.files.paths import path_of
from weir.measures import DEFAULT_MEASURES, Measure, measures_of

if TYPE_CHECKING:
    from weir.stats.compare import Comparison, ComparisonMethod
    from weir.stats.factors import FactorStudy
    from weir.systems.compose import SystemLike


Collection: TypeAlias = "str | Path | Dataset | tuple[Mapping[str, object], Mapping[str, str], object]"


@dataclass(frozen=True, repr=False)
class Benchmark:
    """The results of systems on datasets; it prints as tables of datasets x systems, one for each measure, in which
    systems that share a letter cannot be told apart.

    `table["scifact", "bm25"]` are the scores of a cell, by query. rows: a mean with its interval for each dataset,
    system and measure, those of whole groups last; scores: of each (dataset, system); folder: where the results are
    kept, None where they are not; twins: by dataset, pairs of systems that ask and read exactly the same.
    """

    rows: ResultSet[Row]
    scores: Mapping[tuple[str, str], Scores]
    folder: Path | None = None
    twins: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)

    def __getitem__(self, cell: tuple[str | Dataset, object]) -> Scores:
        """The scores of a dataset and a system, by name or by themselves; raises UnknownName."""
        dataset, system = cell
        name = dataset.name if isinstance(dataset, Dataset) else str(dataset)
        scores = self.scores.get((name, str(system)))
        if scores is None:
            cells = [" with ".join(reversed(one)) for one in self.scores]
            raise UnknownName("cell of this benchmark", f"{system} with {name}", cells)
        return scores

    def __len__(self) -> int:
        return len(self.scores)

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        """A table of datasets x systems for each measure; systems that share a letter cannot be told apart."""
        return self._tables

    def notes(self) -> tuple[Note, ...]:
        """What has to be said beside the scores, as `weir run` says it."""
        return self.rows.notes()

    @cached_property
    def _tables(self) -> tuple[Table, ...]:
        from weir.api.rows import grid_tables, grids_marked
        from weir.experiment.comparing import tie_groups

        return grids_marked(grid_tables(self.rows, tie_groups(self.scores)))

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems, in the order given."""
        return tuple(dict.fromkeys(system for _, system in self.scores))

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, in the order given, members of groups apart."""
        return tuple(dict.fromkeys(dataset for dataset, _ in self.scores))

    def compare(
        self,
        baseline: object = None,
        measures: Measure | str | Iterable[Measure | str] = (),
        method: ComparisonMethod | str = "permutation",
    ) -> ResultSet[Comparison]:
        """Which system is better on each dataset and across them; arguments as `weir.compare`.

        baseline: a system or its name. Raises BadValue for fewer than two systems, UnknownName for another baseline.
        """
        from weir.experiment.comparing import compare_grid
        from weir.stats.compare import ComparisonMethod

        how = ComparisonMethod(method) if isinstance(method, str) else method
        requested = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
        name = None if baseline is None else str(baseline)
        return ResultSet("compare", tuple(compare_grid(self.scores, requested, name, how)))

    def factors(
        self,
        names: str | Iterable[str] = (),
        measures: Measure | str | Iterable[Measure | str] = (),
        method: ComparisonMethod | str = "permutation",
    ) -> ResultSet[FactorStudy]:
        """The effects of the settings in which the systems differ, as `weir.compare(..., factors=names)`.

        names: of settings, by default all. Raises BadValue where the systems are no grid, UnknownName for a name that
        is not there.
        """
        from weir.experiment.factors import factor_names, study_factors
        from weir.stats.compare import ComparisonMethod

        how = ComparisonMethod(method) if isinstance(method, str) else method
        requested = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
        return ResultSet(
            "factors", tuple(study_factors(self.scores, factor_names(names), requested, how, self.twins))
        )

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """The columns of the rows."""
        return self.rows.columns()

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """{measure: {dataset: {system: mean}}}."""
        means: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            means.setdefault(row.measure, {}).setdefault(row.dataset, {})[row.system] = row.mean
        return means

    def to_latex(self) -> str:
        """LaTeX tables of datasets x systems for the booktabs package, the best in bold."""
        return written(self.tables(), "latex")

    def to_markdown(self) -> str:
        """Markdown tables of datasets x systems, the best in bold."""
        return written(self.tables(), "markdown")

    def to_csv(self) -> str:
        """A line for each row at full precision."""
        return self.rows.to_csv()


@checked
def benchmark(
    datasets: Collection | Iterable[Collection],
    systems: SystemLike | Iterable[SystemLike],
    measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES,
    out: str | os.PathLike[str] | None = None,
    k: int = 1000,
    drop_self: bool = False,
    on: str | None = None,
) -> Benchmark:
    """Run systems on collections and score them: benchmark(["scifact"], [weir.BM25()], [nDCG @ 10]).

    datasets: names, groups, paths, Datasets, or (documents, queries, judgments) as `Dataset.of` takes them; systems:
    themselves or their names; out: a results folder, where everything is kept and the same call continues what was
    interrupted, None for a folder that goes afterwards, where all collections have judgments; k: how many documents
    each query is answered with at most; drop_self: leave out documents that are the query itself; on: a cluster, such
    as "ray". Progress is shown where standard error is a terminal, notes always. Raises the WeirErrors of the parts,
    before anything starts where it can be known.
    """
    from weir.experiment.experiment import Experiment

    grid = Experiment(
        tuple(map(_dataset, _several(datasets), range(1, 1_000_000))),
        tuple(systems) if isinstance(systems, Sequence) and not isinstance(systems, str) else (systems,),
        tuple(measures_of(measures)),
        k,
        drop_self=drop_self,
    )
    if out is not None:
        return _run(grid, path_of(out), path_of(out), on)
    for one in grid.datasets:
        for dataset in [one] if isinstance(one, Dataset) else load_group(one):
            if judged_or_not(dataset).unjudged:
                raise BadValue(f"{dataset.name} has no judgments, and its rankings need a folder (out=)")
    with temporary_folder("benchmark") as folder:
        return _run(grid, folder, None, on)


def _run(grid: Any, at: Path, folder: Path | None, on: str | None) -> Benchmark:  # noqa: ANN401  an Experiment, imported when used
    from weir.api.progress import Progress, redraws
    from weir.api.results_folder import run_shown
    from weir.experiment.factors import twin_systems

    with Progress(quiet=not redraws()) as progress:
        shown = run_shown(grid, at, progress, on=on)
    scores = {(cell.dataset, cell.system): cell.values() for cell in shown.cells}
    return Benchmark(shown.rows, scores, folder, twin_systems(shown.cells))


def _several(datasets: Any) -> list[Any]:  # noqa: ANN401  one collection or several
    alone = isinstance(datasets, (str, Path, Dataset)) or (
        isinstance(datasets, tuple) and _in_memory(datasets)
    )
    return [datasets] if alone else list(datasets)


def _in_memory(collection: object) -> bool:
    return isinstance(collection, tuple) and len(collection) == 3 and isinstance(collection[0], Mapping)


def _dataset(collection: Any, number: int) -> str | Path | Dataset:  # noqa: ANN401  any collection
    if isinstance(collection, (str, Path, Dataset)):
        return collection
    if _in_memory(collection):
        documents, queries, judgments = collection
        return Dataset.of(documents, queries, judgments, f"dataset-{number}")
    raise BadValue(
        f"found {type(collection).__name__} as a dataset; "
        "expected a name, a path, a Dataset, or (documents, queries, judgments)"
    )
