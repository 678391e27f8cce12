"""Load the targets of `weir audit`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from weir.core.corpus import Queries
from weir.core.roles import judged_run, refuse_exchanged_columns
from weir.core.run import Run
from weir.core.short_names import run_titles
from weir.core.subject import Subject, TextEncoder, TokenLimit, Training
from weir.datasets.load import Dataset, judged_or_not, load, load_group
from weir.datasets.names import catalogue_name, names_collection
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue, FormatError, WeirError, warn_of_ranking
from weir.experiment.results import (
    ResultCell,
    answered_texts,
    by_split,
    collection_places,
    dataset_of,
    elsewhere,
    finished_cells,
    named_place,
    refuse_collections_apart,
    run_files_of,
    runs_in,
    scored_measures,
    unequal_depths,
    unscored_candidates,
)
from weir.experiment.stage_store import silent
from weir.experiment.stages import RECORD
from weir.files.frames import qrels_from
from weir.files.layouts import find_layout
from weir.files.paths import path_of
from weir.files.runs import judgments_name, read_run
from weir.measures.evaluate import names_of_runs
from weir.models.encoder import Loaded
from weir.settings import settings
from weir.systems.dense_search import encoder_of, query_vectors
from weir.systems.fusion.methods import METHODS

OWN_INSTRUCTIONS = "{task}"
"""Value of `Dataset.instruction` if each query has its own."""
TRAINING_SPLITS = ("train", "dev", "validation", "valid")


def subjects_of(
    targets: Sequence[str | os.PathLike[str] | Dataset],
    collections: Sequence[str | Path] = (),
    training: Sequence[str | Path] = (),
    encoder: str | None = None,
) -> list[Subject]:
    """Return the subjects of `weir audit`: a results folder's collections, judgments with run files, or
    collections.

    collections: of run files, or where a results folder's are now, as NAME=PATH or PATH; a missing one is
        left out with a RankingWarning.
    training: collections that systems may have been trained on.
    encoder: a model, to embed queries and find where documents are truncated.

    Raises BadValue for no or invalid targets, or several collections of run files.
    """
    if not targets:
        raise BadValue("nothing to audit; name a collection, a results folder, or judgments and run files")
    trained = [_training(one) for name in training for one in load_group(name)]
    encode: TextEncoder | None = None
    limit: TokenLimit | None = None
    if encoder is not None:
        model = encoder_of(encoder)
        loaded = model.load(settings().device)
        encode = lambda queries: query_vectors(model, loaded, queries)  # noqa: E731  named for its type
        if isinstance(loaded, Loaded):  # how a service or an object of one's own cuts is not known
            limit = TokenLimit(encoder, loaded.document.tokenizer.limit, loaded.extents)
    if others := [one for one in targets if not isinstance(one, (str, os.PathLike, Dataset))]:
        kind = type(others[0]).__name__
        raise BadValue(
            f"found {kind}; expected collections, or paths of results, judgments and runs (Run.save writes one)"
        )
    held = [one for one in targets if isinstance(one, Dataset)]
    paths = [one if isinstance(one, str) else path_of(one) for one in targets if not isinstance(one, Dataset)]
    first, *rest = paths or [""]
    in_catalogue = bool(catalogue_name(first))
    if held:
        subjects = [_of_dataset(one, {}) for one in (*held, *(d for name in paths for d in load_group(name)))]
    elif len(targets) == 1 and not in_catalogue and any(path_of(first).glob("*/*/stage.json")):
        subjects = _of_results(path_of(first), collections)
    elif _are_judgments_and_runs(first, rest, bool(collections)):
        if len(collections) > 1:
            raise BadValue(f"found {len(collections)} collections; run files are about one")
        place = named_place(collections[0])[1] if collections else None
        subjects = [_of_files(first, rest, place)]
    else:
        subjects = [_of_dataset(one, {}) for target in paths for one in load_group(target)]
    return [
        replace(one, training=_once([*one.training, *trained]), encoder=encode, limit=limit)
        for one in subjects
    ]


def _training(dataset: Dataset) -> Training:
    return Training(f"{dataset.name} {dataset.split}", dataset.queries, dataset.qrels)


def _once(training: Sequence[Training]) -> tuple[Training, ...]:
    kept: list[Training] = []
    for one in training:
        alike = (other for other in kept if other.name == one.name)
        if not any(_content(one) == _content(other) for other in alike):
            kept.append(one)
    return tuple(kept)


def _content(training: Training) -> tuple[dict[str, str], dict[str, dict[str, float]] | None]:
    return training.queries.to_dict(), None if training.qrels is None else training.qrels.to_dict()


def titled(subject: Subject) -> Subject:
    """Return the subject with short names of systems, such as bm25 for `run("runs/bm25.trec")`."""
    titles = run_titles(list(subject.runs))
    runs = {titles[name]: run for name, run in subject.runs.items()}
    unscored = {titles[name]: counts for name, counts in subject.unscored.items()}
    by_ranks = frozenset(titles[name] for name in subject.fused_by_ranks)
    return replace(subject, runs=runs, unscored=unscored, fused_by_ranks=by_ranks)


def _are_judgments_and_runs(first: str | Path, rest: Sequence[str | Path], placed: bool) -> bool:
    if not rest:
        return placed and path_of(first).is_file()
    judged = path_of(first).is_file() or names_collection(first)
    return judged and not any(map(catalogue_name, rest)) and all(map(_are_rankings, map(path_of, rest)))


def _are_rankings(path: Path) -> bool:
    if path.is_dir():
        if any(True for depth in ("", "*/", "*/*/") for _ in path.glob(f"{depth}{RECORD}")):
            return True
        with suppress(FormatError):  # of a folder that is no collection
            find_layout(path)
            return False
        return bool(run_files_of(path))
    return path.is_file() and not names_collection(path)


def _of_results(folder: Path, collections: Sequence[str | Path]) -> list[Subject]:
    # Rankings scored by outdated judgments go with those of the current ones.
    groups: dict[tuple[str, ...], list[ResultCell]] = {}
    counting: dict[tuple[object, ...], str] = {}
    for cell in sorted(by_split(finished_cells(folder, unjudged=True)), key=lambda cell: cell.outdated):
        searched = tuple(map(str, answered_texts(cell)))
        judgments = counting.setdefault((cell.dataset, cell.split, *searched), cell.judgments)
        judgments = judgments if cell.outdated else cell.judgments
        groups.setdefault((cell.dataset, cell.split, judgments, *searched), []).append(cell)
    places = collection_places([cells[0] for cells in groups.values()], collections)
    subjects, lacking, opened = [], list[str](), list[tuple[str, ...]]()
    for group, cells in groups.items():
        name = group[0]
        try:
            first, place = cells[0], places.get(cells[0].collection)
            dataset = dataset_of(first, place)
            if dataset is None:
                raise BadValue(elsewhere(first))
            if dataset.corpus.fingerprint != first.ranked.declared["corpus"]:
                raise BadValue(f"the documents of {place} are not those that were searched")
        except WeirError as error:
            lacking.append(f"{name}: {error}")
            continue
        subjects.append(subject_of_cells(dataset, cells))
        opened.append(group)
    of_split = {group: (cells[0].collection, group[1]) for group, cells in groups.items()}
    subjects = [
        replace(
            one,
            name=_title(group, opened),
            versions=tuple(
                _title(other, list(groups))
                for other in groups
                if of_split[other] == of_split[group] and other != group
            ),
        )
        for one, group in zip(subjects, opened, strict=True)
    ]
    lacking = list(dict.fromkeys(lacking))
    if not subjects:
        raise BadValue("; ".join(lacking))
    for one in lacking:
        warn_of_ranking(f"left out: {one}")
    return subjects


def _fused_by_ranks(cell: ResultCell) -> bool:
    system = cell.ranked.declared.get("system")
    method = dict(system.get("fusion") or {}).get("method") if isinstance(system, Mapping) else None
    return method in METHODS.names() and not METHODS.get(method).scored


def subject_of_cells(dataset: Dataset, cells: Sequence[ResultCell]) -> Subject:
    """Return a collection with the rankings of one or more results, by system, for an audit."""
    subject = _of_dataset(dataset, {cell.called: read_run(cell.run) for cell in cells})
    dropped = all(dict(cell.settings)["self_match"] == "drop" for cell in cells)
    unscored = {cell.called: unscored_candidates(cell) for cell in cells}
    by_ranks = frozenset(cell.called for cell in cells if _fused_by_ranks(cell))
    notes = unequal_depths(cells, scored_measures(cells))
    return replace(
        subject,
        fused_by_ranks=by_ranks,
        self_match="drop" if dropped else "keep",
        unscored=unscored,
        uneven_depths=tuple(note.text.removeprefix(f"{cells[0].dataset}: ") for note in notes),
    )


def _title(group: tuple[str, ...], groups: Sequence[tuple[str, ...]]) -> str:
    name, split, judgments, *_ = group
    alone = sum(one[0] == name for one in groups) == 1
    return name if alone else f"{name} {split} {judgments[:6]}"


def _of_files(
    judged: str | Path, given: Sequence[str | Path], collection: str | Path | Dataset | None
) -> Subject:
    name = judgments_name(judged)
    whole = judged_or_not(load(judged)) if names_collection(judged) else None
    unjudged = whole is not None and whole.unjudged
    judgments: object
    if whole is not None and unjudged:
        judgments, collection = whole.all_qrels, collection or whole
    else:
        judgments, collection = judged_by(judged, collection)
    qrels = qrels_from(judgments)
    runs = [run for path in map(path_of, given) for run in (runs_in(path) if path.is_dir() else [path])]
    rules = ScoringRules.of(collection)
    refuse_collections_apart(runs, rules.dataset)
    with silent():  # what is odd about rankings becomes findings
        rankings = {name: read_run(path) for name, path in zip(names_of_runs(runs), runs, strict=True)}
    dataset = rules.dataset
    for path, run in zip(runs, rankings.values(), strict=True):
        refuse_exchanged_columns(qrels, run, f"{path}: ")
        judged_run(run, qrels, f"{path}: ")
    if dataset is None:
        return Subject(name, qrels=qrels, runs=rankings)
    counted, every = rules.counted(qrels), None if dataset.layout.queries is None else dataset.all_queries
    rankings = {name: rules.ranked(run) for name, run in rankings.items()}
    if every is not None and not unjudged:
        names = [counted.queries.strings, *(run.queries.strings for run in rankings.values())]
        codes = np.unique(np.concatenate([every.ids.codes(of) for of in names]))
        every = every.take(codes[codes >= 0])
    return Subject(
        name,
        None if dataset.layout.documents is None else dataset.corpus,
        every,
        counted,
        rankings,
        instruction=_instruction(dataset),
        self_match=dataset.self_match,
        asked=_restricted_queries(dataset),
        all_qrels=qrels,
    )


def _of_dataset(dataset: Dataset, runs: dict[str, Run]) -> Subject:
    layout = dataset.layout
    return Subject(
        dataset.name,
        None if layout.documents is None else dataset.corpus,
        None if layout.queries is None else dataset.all_queries,
        dataset.qrels if layout.qrels or dataset.unjudged else None,
        runs,
        tuple(_other_splits(dataset)),
        instruction=_instruction(dataset),
        self_match=dataset.self_match,
        asked=_restricted_queries(dataset),
        all_qrels=dataset.all_qrels if layout.qrels else None,
    )


def _restricted_queries(dataset: Dataset) -> Queries | None:
    complete = dataset.layout.queries is not None and dataset.layout.qrels
    return dataset.queries if complete else None


def _instruction(dataset: Dataset) -> str:
    return "" if dataset.instruction == OWN_INSTRUCTIONS else dataset.instruction


def _other_splits(dataset: Dataset) -> list[Training]:
    if dataset.layout.queries is None or not dataset.layout.qrels:
        return []
    # A split that judges the same queries is another layer of judgments, unless its name is that of a training split.
    mine = set(dataset.qrels.queries.tolist())
    others = [replace(dataset, split=split) for split in dataset.splits if split != dataset.split]
    return [
        _training(one)
        for one in others
        if one.split in TRAINING_SPLITS or set(one.qrels.queries.tolist()) != mine
    ]
