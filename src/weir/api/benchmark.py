"""Run systems on collections and score them, as `weir run` does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from weir.api.comparison_tables import COMPARISONS
from weir.api.progress import Progress, redraws
from weir.api.result_set import ResultSet
from weir.api.results_folder import run_grid
from weir.api.rows import row_tables
from weir.argument_types import checked, named_arguments, shortened, shown_value, with_converted
from weir.core import frames, results
from weir.core.scores import Note, Row, Scores
from weir.core.tables import Table
from weir.datasets.fetch import fetch_missing
from weir.datasets.load import Dataset, judged_or_not, load_group
from weir.errors import BadValue, UnknownName
from weir.experiment.comparing import compare_grid, tie_groups
from weir.experiment.experiment import Experiment
from weir.experiment.factors import factor_names, study_factors, twin_systems
from weir.files.atomic import temporary_folder
from weir.files.paths import path_of
from weir.measures import DEFAULT_MEASURES, Measure, measures_of
from weir.stats.compare import Comparison, ComparisonMethod, relabelled
from weir.stats.factors import FACTOR_STUDIES
from weir.systems import parse_system
from weir.systems.compose import as_system, is_encoder
from weir.systems.composite import parts_of
from weir.systems.protocol import Installed, Retriever

if TYPE_CHECKING:
    from weir.api.charts import Figure
    from weir.core.charts import Chart
    from weir.stats.factors import FactorStudy
    from weir.systems.compose import SystemLike
else:
    SystemLike = "object"  # `as_system` says what is none


Collection: TypeAlias = "str | Path | Dataset | tuple[Mapping[str, object], Mapping[str, str], object]"


@dataclass(frozen=True, repr=False)
class Benchmark:
    """Scores of systems on datasets; `table["scifact", "bm25"]` has a system's scores on a dataset, by query.

    With a folder it is accepted wherever a results folder is.
    """

    REMEDY: ClassVar[str] = (
        'benchmark(..., out="results/") keeps it as a folder; table[dataset, system] has the scores of one'
    )
    """Shown if a function does not take a benchmark."""
    rows: ResultSet[Row]
    """A mean with its interval for each dataset, system and measure, groups of datasets last."""
    scores: Mapping[tuple[str, str], Scores]
    """Scores by (dataset, system)."""
    folder: Path | None = None
    """The results folder; None if nothing was stored."""
    twins: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """Pairs of systems with the same rankings by construction, by dataset."""

    def __getitem__(self, cell: tuple[str | Dataset, object]) -> Scores:
        """Return the scores of a (dataset, system) pair, by name, title or value; raises UnknownName without
        scores.
        """
        dataset, system = cell
        name = dataset.name if isinstance(dataset, Dataset) else str(dataset)
        if isinstance(dataset, Dataset) and name not in self.datasets:
            name += f":{dataset.split}"  # of several splits
        titled = {title: one for one, title in self.titles.items()}
        scores = self.scores.get((name, titled.get(str(system), str(system))))
        if scores is None:
            cells = [" with ".join(reversed(one)) for one in self.scores]
            raise UnknownName("cell of this benchmark", f"{system} with {name}", cells)
        return scores

    def __len__(self) -> int:
        return len(self.scores)

    def __fspath__(self) -> str:
        if self.folder is None:
            raise BadValue(f"this benchmark kept no folder; {self.REMEDY}")
        return str(self.folder)

    __repr__ = results.result_text
    _repr_html_ = results.result_html

    def tables(self) -> tuple[Table, ...]:
        return self.rows.tables()

    def notes(self) -> tuple[Note, ...]:
        return self.rows.notes()

    @property
    def titles(self) -> dict[str, str]:
        """Return {system: name that tables show}, only for systems with another name there."""
        return {row.system: row.title for row in self.rows if row.title}

    @property
    def systems(self) -> tuple[str, ...]:
        """Return the names of the systems, in the order requested."""
        return tuple(dict.fromkeys(system for _, system in self.scores))

    @property
    def datasets(self) -> tuple[str, ...]:
        """Return the names of the datasets, in the order requested, with groups replaced by their members."""
        return tuple(dict.fromkeys(dataset for dataset, _ in self.scores))

    @checked
    def compare(
        self,
        baseline: object = None,
        measures: Measure | str | Iterable[Measure | str] = (),
        method: ComparisonMethod | str = "permutation",
    ) -> ResultSet[Comparison]:
        """Return comparisons of the systems on each dataset and across datasets, as `weir.compare`.

        baseline: a system or its name.

        Raises BadValue for fewer than two systems, UnknownName for an unknown baseline.
        """
        how = ComparisonMethod(method) if isinstance(method, str) else method
        requested = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
        titles = self.titles
        name = None if baseline is None else str(baseline)
        name = next((system for system, title in titles.items() if title == name), name)
        comparisons = compare_grid(self.scores, requested, name, how)
        return ResultSet(COMPARISONS, tuple(relabelled(comparisons, titles)), self.notes())

    @checked
    def factors(
        self,
        names: str | Iterable[str] = (),
        measures: Measure | str | Iterable[Measure | str] = (),
        method: ComparisonMethod | str = "permutation",
    ) -> ResultSet[FactorStudy]:
        """Return the effects of the settings in which the systems differ, as `weir.compare(..., factors=names)`.

        names: names of settings, by default all.

        Raises BadValue if the systems form no grid of settings, UnknownName for an unknown name.
        """
        how = ComparisonMethod(method) if isinstance(method, str) else method
        requested = (measures,) if isinstance(measures, (str, Measure)) else tuple(measures)
        studies = study_factors(self.scores, factor_names(names), requested, how, self.twins)
        return ResultSet(FACTOR_STUDIES, tuple(studies), self.notes())

    def charts(self) -> tuple[Chart, ...]:
        """Return the charts of the comparison; raises BadValue for fewer than two systems."""
        return self.compare().charts()

    def plot(self) -> Figure:
        """Return the charts as a figure; raises BadValue for fewer than two systems."""
        return self.compare().plot()

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        """Return {column: values}, with a row for each dataset, system and measure."""
        return self.rows.columns()

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return {measure: {dataset: {system: mean}}}."""
        means: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            means.setdefault(row.measure, {}).setdefault(row.dataset, {})[row.system] = row.mean
        return means

    @named_arguments
    def to_latex(self) -> str:
        """Return the tables as LaTeX for the booktabs package."""
        return self.rows.to_latex()

    @named_arguments
    def to_markdown(self) -> str:
        """Return the tables as Markdown."""
        return self.rows.to_markdown()

    @named_arguments
    def to_csv(self) -> str:
        """Return CSV with a line for each dataset, system and measure, at full precision."""
        return self.rows.to_csv()


SILENT_SECONDS = 10
"""Seconds without progress if standard error is neither a terminal nor a notebook."""


@checked
def benchmark(
    datasets: Collection | Iterable[Collection] | Mapping[str, Collection],
    systems: SystemLike | Iterable[SystemLike] | Mapping[str, SystemLike],
    measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES,
    out: str | os.PathLike[str] | None = None,
    k: int = 1000,
    drop_self: bool = False,
    on: str | None = None,
    fetch: bool = False,
) -> Benchmark:
    """Run systems on collections and return their scores: benchmark(["scifact"], [weir.BM25()], [nDCG @ 10]).

    datasets: names, groups, paths, Datasets, or (documents, queries, judgments) as `Dataset.of` takes them. {name:
        collection} gives names.
    systems: systems or their names. {name: system} names functions and objects, and other systems in tables.
    measures: by default nDCG@10, R@100 and Judged@10.
    out: a results folder, in which the same call continues after an interruption. None keeps nothing; collections
        then need judgments.
    k: most documents returned for each query.
    drop_self: leave out documents that are the query itself.
    on: a cluster to run on, such as "ray".
    fetch: download missing collections of the catalogue.

    Shows progress on standard error. Raises the WeirErrors of collections and systems.
    """
    grid = Experiment(
        tuple(map(_dataset, _several(datasets), range(1, 1_000_000))),
        _systems(systems),
        tuple(measures_of(measures)),
        k,
        drop_self=drop_self,
    )
    named = {str(name): one for name, one in systems.items()} if isinstance(systems, Mapping) else {}
    labels = _labels(named, grid) if named else {}
    if out is not None:
        return _run(grid, path_of(out), path_of(out), on, fetch, labels)
    if fetch:
        with Progress(after=0 if redraws() else SILENT_SECONDS) as progress:
            fetch_missing([one for one in grid.datasets if isinstance(one, str)], progress)
    for one in grid.datasets:
        for dataset in [one] if isinstance(one, Dataset) else load_group(one):
            if judged_or_not(dataset).unjudged:
                raise BadValue(f"{dataset.name} has no judgments, and its rankings need a folder (out=)")
    with temporary_folder("benchmark") as folder:
        return _run(grid, folder, None, on, labels=labels)


def _labels(named: Mapping[str, SystemLike], grid: Experiment) -> dict[str, str]:
    systems = grid.parsed_systems()
    if len(systems) != len(named):
        raise BadValue(
            f"found {len(named)} names of {len(systems)} different systems; expected a name for each"
        )
    pairs = zip(map(str, named), map(str, systems), strict=True)
    return {name: system for name, system in pairs if name != system}


def _run(
    grid: Experiment,
    at: Path,
    folder: Path | None,
    on: str | None,
    fetch: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Benchmark:
    with Progress(after=0 if redraws() else SILENT_SECONDS) as progress:
        cells, rows = run_grid(grid, at, progress, on=on, fetch=fetch, labels=labels)
    scores = {(cell.dataset, cell.system): cell.values() for cell in cells}
    tables = partial(row_tables, rows.items, partial(tie_groups, scores))  # the folder may go
    rows = replace(rows, maker=tables)
    return Benchmark(rows, scores, folder, twin_systems(cells))


def _several(datasets: Any) -> list[Any]:  # noqa: ANN401  one collection or several
    datasets = with_converted(datasets)
    if isinstance(datasets, Mapping):
        return [_named_dataset(name, one) for name, one in datasets.items()]
    alone = isinstance(datasets, (str, Path, Dataset)) or (
        isinstance(datasets, tuple) and _in_memory(datasets)
    )
    return [datasets] if alone else list(datasets)


def _systems(systems: Any) -> tuple[Any, ...]:  # noqa: ANN401  one system or several
    if isinstance(systems, Mapping):
        parsed = {name: parse_system(one) if isinstance(one, str) else one for name, one in systems.items()}
        return tuple(
            as_system(one) if isinstance(one, Retriever) or is_encoder(one) else as_system(one, name)
            for name, one in parsed.items()
        )
    return tuple(systems) if isinstance(systems, Sequence) and not isinstance(systems, str) else (systems,)


def _in_memory(collection: object) -> bool:
    return (
        isinstance(collection, tuple)
        and len(collection) == 3
        and not isinstance(collection[0], (str, tuple, Path, Dataset, Retriever))
    )


def _refuse_incomplete(collection: object) -> None:
    if isinstance(collection, tuple) and len(collection) == 2 and isinstance(collection[0], Mapping):
        raise BadValue(
            "found documents and queries without judgments; expected (documents, queries, judgments), with judgments "
            "such as {query: {document: grade}}"
        )


def _named_dataset(name: object, collection: Any) -> Any:  # noqa: ANN401  as `_dataset`
    if _in_memory(collection):
        documents, queries, judgments = collection
        return Dataset.of(documents, queries, judgments, str(name))
    if not isinstance(collection, (str, Path, Dataset)):
        return _dataset(collection, 1)
    own = collection.name if isinstance(collection, Dataset) else str(collection)
    if own != name:
        raise BadValue(
            f"{shortened(own)} has a name and is not called '{name}'; {{name: ...}} names "
            "(documents, queries, judgments)"
        )
    return collection


def _dataset(collection: Any, number: int) -> str | Path | Dataset:  # noqa: ANN401  any collection
    if isinstance(collection, (str, Path, Dataset)):
        return collection
    if _in_memory(collection):
        documents, queries, judgments = collection
        return Dataset.of(documents, queries, judgments, f"dataset-{number}")
    _refuse_incomplete(collection)
    order = (
        "; datasets come before systems"
        if isinstance(collection, Retriever) or is_encoder(collection)
        else ""
    )
    raise BadValue(
        f"found {shown_value(collection).replace('of type', 'a value of type', 1)} as a dataset; "
        f"expected a name, a path, a Dataset, or (documents, queries, judgments){order}"
    )


def uninstall(system: str) -> Iterator[str]:
    """Remove the tables and indexes that a system made on a server, when iterated; yield their names.

    Raises BadValue for a system that makes none, UnknownName for an unknown system.
    """
    installed = [part for part in parts_of(parse_system(system)) if isinstance(part, Installed)]
    if not installed:
        raise BadValue(f"{system} makes nothing on a server")
    for part in installed:
        yield from part.uninstall()
