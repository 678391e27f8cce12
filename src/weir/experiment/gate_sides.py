"""The two sides of a gate: results folders, committed baselines, or judgments and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.core.notes import Note
from weir.core.system_scores import JudgedScores, SystemScores, judgment_marks
from weir.datasets.load import Dataset, load
from weir.datasets.query_grouping import query_groups
from weir.datasets.scoring_rules import NO_COLLECTION, ScoringRules
from weir.errors import BadValue, FormatError, UnknownName
from weir.experiment.costs import unscored_notes
from weir.experiment.finished import Finished, cell_collection, deepest, finished_cells, of_systems, open_cell
from weir.experiment.run_files import score_file
from weir.io.runs.baseline_file import is_baseline, read_baseline
from weir.io.runs.read import run_name
from weir.measures import Measure, measures_of
from weir.measures.conventions import DEFAULT, Conventions, parse_conventions
from weir.measures.files import judgments_for
from weir.stages.stage import RECORD
from weir.stats.common_queries import on_same_queries
from weir.stats.compare import table
from weir.stats.comparison import ScoreTable
from weir.stats.score_notes import system_notes

__all__ = [
    "GateCases",
    "cell_collection",
    "collections_of",
    "gate_cases",
    "scored_run",
    "sides_of",
    "system_of",
]

GRAMMAR = "[QRELS] BASELINE CANDIDATE, judgments first where one of them is a run file"


@dataclass(frozen=True, eq=False)
class GateCases:
    """What a gate tests, as (group, table of baseline and candidate), and what has to be said beside it."""

    cases: tuple[tuple[str, ScoreTable], ...]
    notes: tuple[Note, ...]


def sides_of(
    paths: Sequence[Path],
    measures: Sequence[Measure] = (),
    conventions: Conventions | None = None,
    systems: Sequence[str] = (),
    collection: str | Path | Dataset | None = None,
    fetch: bool = False,
) -> tuple[list[SystemScores], list[SystemScores], list[str]]:
    """(systems of the baseline, those of the candidate, the measures gated) from paths as `weir gate` takes them.

    measures: by default those of a baseline that was saved, else nDCG@10; conventions: of a run file, by default those
    of a baseline that was saved, or of the folder's cells; systems: of results folders, these alone; collection: of
    run files, whose rules hold; fetch: as `cell_collection` takes it. Raises BadValue for paths that cannot be told
    apart, and the WeirErrors of reading.
    """
    qrels, given = (paths[0], paths[1:]) if len(paths) == 3 else (None, paths)
    if len(given) != 2:
        raise BadValue(f"found {len(paths)} paths; expected {GRAMMAR}")
    saved = {path: read_baseline(path) for path in given if _is_saved(path)}
    if qrels is not None and all(path in saved or path.is_dir() for path in given):
        raise BadValue(f"{given[0]} and {given[1]} are no run files, so there is nothing to judge by {qrels}")
    first = next((one.scores for side in saved.values() for one in side.datasets.values()), None)
    names = [str(m) for m in measures] or list(first.measures if first else ("nDCG@10",))
    folders = {path: _systems_in(path, names, systems, fetch) for path in given if path.is_dir()}
    first = first or next(
        (one.scores for side in folders.values() for one in side[0].datasets.values()), None
    )
    rules = conventions or (parse_conventions(first.conventions) if first else DEFAULT)
    read = _Sides(qrels, saved, folders, names, ScoringRules.of(collection, rules))
    return read.side(given[0]), read.side(given[1]), names


@dataclass(frozen=True, eq=False)
class _Sides:
    """What both sides of a gate are read by."""

    qrels: Path | None
    saved: Mapping[Path, SystemScores]
    folders: Mapping[Path, list[SystemScores]]
    measures: Sequence[str]
    rules: ScoringRules

    def side(self, path: Path) -> list[SystemScores]:
        """The systems of a saved baseline, a results folder or a run file."""
        if path in self.saved:
            return [_with(self.saved[path], path, self.measures)]
        if path in self.folders:
            return self.folders[path]
        if not path.exists():
            raise FormatError(path, "no such file or folder", GRAMMAR)
        if self.qrels is None:
            raise BadValue(f"{path} is neither a results folder nor a saved baseline; expected {GRAMMAR}")
        return [scored_run(self.qrels, path, self.measures, self.rules)]


def system_of(
    paths: Sequence[Path],
    measures: Sequence[Measure] = (),
    conventions: Conventions = DEFAULT,
    systems: Sequence[str] = (),
    collection: str | Path | Dataset | None = None,
    fetch: bool = False,
) -> SystemScores:
    """The one system of a results folder, or of judgments and a run, as `weir gate --save` writes it.

    measures: by default nDCG@10; conventions, collection: of a run; fetch: as `cell_collection` takes it. Raises
    BadValue for several systems and for
    judgments that are not here.
    """
    names = [str(m) for m in measures] or ["nDCG@10"]
    if len(paths) == 2:
        return scored_run(paths[0], paths[1], names, ScoringRules.of(collection, conventions))
    if len(paths) != 1 or not paths[0].is_dir():
        raise BadValue("--save takes judgments and a run, or one results folder")
    found = _systems_in(paths[0], names, systems, fetch)
    if len(found) > 1:
        raise BadValue(f"{paths[0]} holds {len(found)} systems ({_listed(found)}); name one by -s")
    for name, one in found[0].datasets.items():
        if not one.marks:
            raise BadValue(
                f"the judgments of {name} are not here, or not as it was measured; a baseline needs them"
            )
    return found[0]


def scored_run(
    qrels: Path, run: Path, measures: Sequence[str], rules: ScoringRules = NO_COLLECTION
) -> SystemScores:
    """The scores of a run file by judgments, under the name of the judgments; raises as `judge`."""
    wanted = measures_of(measures)
    judgments = rules.counted(judgments_for(qrels, wanted))
    scores = score_file(run, judgments, wanted, rules)
    return SystemScores(run_name(run), {qrels.name: JudgedScores(scores, judgment_marks(judgments))})


def gate_cases(
    sides: tuple[Sequence[SystemScores], Sequence[SystemScores]],
    measures: Sequence[str],
    by: object = None,
    common: bool = False,
    collections: Mapping[str, Dataset] | None = None,
) -> GateCases:
    """The tables of a gate: each measure of each dataset, and of each group of its queries.

    Systems are paired where each side has one, else by name. by: groups as `query_groups` takes them; common: compare
    on the queries that both have with the same judgments; collections: whose columns `by` may name, as
    `collections_of`. Raises BadValue where the sides are not comparable, and as `query_groups` and `table`.
    """
    cases: list[tuple[str, ScoreTable]] = []
    notes = [*_version_notes(sides), *_ranking_notes(sides), *_score_notes(sides)]
    grounds = collections or {}
    for name, dataset, before, after in _pairs(*sides, notes):
        one, other, said = on_same_queries(dataset, before, after, common)
        notes += said
        pair = {"baseline": one, "candidate": other}
        groups = (
            None if by is None else query_groups(by, one.queries, grounds.get(dataset) or grounds.get(""))
        )
        for measure in measures:
            whole = table(name, measure, pair)
            cases.append(("", whole))
            if groups is not None and whole.queries is not None:
                rows = groups.rows(whole.queries)
                cases += [(label, whole.take(columns)) for label, columns in rows.items()]
    return GateCases(tuple(cases), tuple(notes))


def collections_of(
    paths: Sequence[Path], given: str | Path | Dataset | None = None, fetch: bool = False
) -> dict[str, Dataset]:
    """The collections of results folders by name, where they are here, and the given one as ""; raises as `load`.

    fetch: as `cell_collection` takes it.
    """
    found = {} if given is None else {"": given if isinstance(given, Dataset) else load(given)}
    for path in paths:
        if path.is_dir():
            cells = [open_cell(path)] if (path / RECORD).exists() else finished_cells(path)
            known = {cell.dataset: cell_collection(cell, fetch) for cell in cells}
            found |= {name: dataset for name, dataset in known.items() if dataset is not None}
    return found


def _is_saved(path: Path) -> bool:
    try:
        return path.is_file() and is_baseline(path)
    except OSError as error:
        raise FormatError(path, error.strerror or str(error), "a file that can be read") from None


def _with(saved: SystemScores, path: Path, measures: Sequence[str]) -> SystemScores:
    """The baseline, found to have the measures."""
    known = next(iter(saved.datasets.values())).scores.measures
    for measure in measures:
        if measure not in known:
            raise UnknownName(f"measure in {path}", measure, known)
    return saved


def _systems_in(
    folder: Path, measures: Sequence[str], wanted: Sequence[str], fetch: bool
) -> list[SystemScores]:
    """The systems of a results folder, or the one of a cell, with these measures."""
    cells = [open_cell(folder)] if (folder / RECORD).exists() else deepest(finished_cells(folder))[0]
    found: dict[str, dict[str, JudgedScores]] = {}
    for cell in of_systems(cells, wanted):
        name = cell.label or cell.system
        if cell.dataset in found.setdefault(name, {}):
            raise BadValue(f"{folder}: {name} stands twice on {cell.dataset}; name the cell's own folder")
        found[name][cell.dataset] = _cell_scores(cell, measures, fetch)
    said = {
        name: tuple(unscored_notes([c for c in cells if (c.label or c.system) == name])) for name in found
    }
    return [SystemScores(name, datasets, notes=said[name]) for name, datasets in found.items()]


def _cell_scores(cell: Finished, measures: Sequence[str], fetch: bool) -> JudgedScores:
    scores = cell.values()
    for measure in measures:
        if measure not in scores.measures:
            raise BadValue(
                f"{cell.folder}: not scored by {measure}; weir run with -m '{measure}' adds it, searching nothing anew"
            )
    rows = [scores.measures.index(m) for m in measures]
    rules = Conventions(self_matches=dict(cell.settings).get("self_match", "keep"))
    scores = replace(scores, measures=tuple(measures), values=scores.values[rows], conventions=str(rules))
    judgments = str(cell.scored[-1][1].declared["qrels"])
    dataset = cell_collection(cell, fetch)
    if dataset is None:
        return JudgedScores(scores, judgments=judgments)
    return JudgedScores(scores, judgment_marks(dataset.qrels), judgments)


def _pairs(
    baseline: Sequence[SystemScores], candidate: Sequence[SystemScores], notes: list[Note]
) -> list[tuple[str, str, JudgedScores, JudgedScores]]:
    """(what a table calls it, dataset, before, after) of each system and dataset; notes gets what is new."""
    if len(baseline) == len(candidate) == 1:
        pairs = [(baseline[0], candidate[0])]
    else:
        by_name = {one.system: one for one in candidate}
        lost = [one for one in baseline if one.system not in by_name]
        if lost:
            raise BadValue(
                f"the candidate has no {_listed(lost)}; it has {_listed(candidate)}; name what is gated by -s"
            )
        pairs = [(one, by_name[one.system]) for one in baseline]
        known = {one.system for one in baseline}
        new = [one for one in candidate if one.system not in known]
        notes += [Note(f"{one.system} is new and not gated") for one in new]
    found = []
    for one, other in pairs:
        if len(one.datasets) == len(other.datasets) == 1:
            [(name, before)], [after] = one.datasets.items(), other.datasets.values()
            datasets = [(name, before, after)]
        else:
            missing = sorted(one.datasets.keys() - other.datasets.keys())
            if missing:
                raise BadValue(f"the candidate has no results on {', '.join(missing)}")
            datasets = [(name, before, other.datasets[name]) for name, before in one.datasets.items()]
            notes += [
                Note(f"{n} is new and not gated") for n in sorted(other.datasets.keys() - one.datasets.keys())
            ]
        told = f"{one.system}, " if len(pairs) > 1 else ""
        found += [(told + name, name, before, after) for name, before, after in datasets]
    return found


def _version_notes(sides: tuple[Sequence[SystemScores], Sequence[SystemScores]]) -> list[Note]:
    """A note where one of the sides was scored by another version of Weir."""
    from importlib.metadata import version

    own = version("weir-ir")
    made = {one.version for side in sides for one in side if one.version and one.version != own}
    return [Note(f"scored by Weir {other}, this is {own}") for other in sorted(made)]


def _score_notes(sides: tuple[Sequence[SystemScores], Sequence[SystemScores]]) -> list[Note]:
    """What `weir eval` says beside the scores of what was scored now."""
    scores = {
        (role if len(side) == len(one.datasets) == 1 else f"{role} {one.system} on {name}"): judged.scores
        for role, side in zip(("baseline", "candidate"), sides, strict=True)
        for one in side
        if not one.version
        for name, judged in one.datasets.items()
    }
    return system_notes(scores)


def _ranking_notes(sides: tuple[Sequence[SystemScores], Sequence[SystemScores]]) -> list[Note]:
    """What is said of how the rankings of both sides were made, once where it is said of both."""
    found: dict[str, list[str]] = {}
    for role, side in zip(("baseline", "candidate"), sides, strict=True):
        for note in dict.fromkeys(note for one in side for note in one.notes):
            found.setdefault(note, []).append(role)
    return [Note(f"{' and '.join(roles)}: {note}") for note, roles in found.items()]


def _listed(systems: Sequence[SystemScores]) -> str:
    return ", ".join(one.system for one in systems)
