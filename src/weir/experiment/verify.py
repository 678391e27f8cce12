"""Verify a results folder, also a foreign one: nothing is written."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import NO_DOCUMENTS
from weir.core.frames import json_value
from weir.core.results import ResultKind
from weir.core.scores import Row, Scores
from weir.core.tables import Table, sentences, table_of
from weir.datasets.load import Dataset, fingerprint_of_parts, load, load_here, without_documents
from weir.datasets.names import is_reference
from weir.errors import BadValue, FormatError, StoreError, WeirError
from weir.experiment.results import (
    ORDER,
    GridOrder,
    missing_results,
    no_folder,
    nothing_finished,
    order_damage,
    was_in_memory,
)
from weir.experiment.stage_store import INDEXES
from weir.experiment.stages import (
    RECORD,
    SCORES,
    Record,
    Stage,
    code_digest,
    first_word,
    measure_number,
    outcome,
    read_record,
    setting_changes,
    slug,
    stored_rows,
)
from weir.files.corpus_store import source_fingerprint
from weir.files.runs import join_run_file
from weir.files.score_files import read_scores
from weir.files.text_files import Watch
from weir.measures import Measure, parse_measure, scores_of
from weir.stats.score_rows import result_rows, uncalibrated
from weir.systems.expression import expression_tree, parse_system
from weir.systems.fusion.methods import METHODS
from weir.systems.protocol import RERANKERS, SYSTEMS

RUN_FILES = ("run.trec", "run.json")
OBJECT = "object"
"""Declared kind of a system that is a Python function or object."""
ROUNDING = 1e-12
"""Tolerance for numbers, as processors differ in the last bits of logarithms."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of verifying an index, rankings or a result."""

    folder: str
    kind: str
    """"cell" (rankings with scores), "run" (rankings for other systems), "index", or "order" (a damaged grid.json)."""
    name: str
    problems: tuple[str, ...] = ()
    """Mismatches."""
    unchecked: tuple[str, ...] = ()
    """Parts that could not be checked, with reasons."""

    @property
    def sound(self) -> bool:
        """True if everything checked agrees with its record."""
        return not self.problems

    @property
    def fully_checked(self) -> bool:
        """True if everything could be checked."""
        return not self.unchecked

    @property
    def status(self) -> str:
        """ "sound", or the mismatches and parts that could not be checked."""
        return "; ".join([*self.problems, *self.unchecked]) or "sound"


@dataclass
class _Finding:
    kind: str
    name: str = ""
    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Collection:
    dataset: Dataset
    documents: str
    """Fingerprint of its file's contents, computed again."""
    placed: bool = False
    """True if the caller gave its place, so that its folder may have another name."""

    @staticmethod
    def load_collection(where: str, split: str, fetch: bool) -> _Collection | str:
        try:
            dataset = without_documents(load(where, split)) if fetch else load_here(where, split)
            part = dataset.layout.documents
            documents = NO_DOCUMENTS.fingerprint if part is None else source_fingerprint(part)
            _ = dataset.queries_fingerprint, dataset.qrels_fingerprint  # reads them
        except (WeirError, OSError) as error:
            return str(error)
        return _Collection(dataset, documents)


def verified(
    root: Path | str,
    watch: Watch | None = None,
    fetch: bool = False,
    places: Mapping[str, str | Path] | None = None,
) -> list[Verdict]:
    """Return a verdict for each stage of a results folder, on its checksums, means, scores, names and data.

    fetch: allow downloads; otherwise nothing is written.
    places: {dataset: path}, by default as recorded, else the catalogue's.

    Raises FormatError without results.
    """
    root = Path(root)
    folders = sorted(
        folder
        for dataset in (path for path in root.glob("*") if path.is_dir())
        for folder in (*dataset.glob("*"), *(dataset / INDEXES).glob("*"))
        if folder.is_dir() and not folder.name.startswith(".") and folder.name != INDEXES
    )
    if not folders:
        if root.is_dir() and (missing := missing_results(root)):
            raise nothing_finished(root, missing)
        here = "no stage of weir run" if root.is_dir() else no_folder(root)
        raise FormatError(root, here, "a results folder of this version")

    @cache
    def opened_collection(where: str, split: str) -> _Collection | str:
        return _Collection.load_collection(where, split, fetch)

    def collection(where: str, split: str, dataset: str) -> _Collection | str:
        place = str((places or {}).get(dataset, where))
        there = opened_collection(place, split)
        if dataset in (places or {}) and not isinstance(there, str):
            return replace(there, placed=True)
        named = opened_collection(dataset, split) if isinstance(there, str) and dataset != place else there
        return there if isinstance(named, str) else named

    verdicts = []
    for number, folder in enumerate(folders):
        if watch is not None:
            watch(folder.name, number, len(folders))
        one = _checked(folder, collection)
        name = folder.relative_to(root).as_posix()
        problems, unchecked = (tuple(dict.fromkeys(texts)) for texts in (one.problems, one.unchecked))
        verdicts.append(Verdict(name, one.kind, one.name, problems, unchecked))
    if damage := order_damage(root):
        verdicts.append(Verdict(ORDER, "order", ORDER, (damage,)))
    return verdicts


_Collections: TypeAlias = Callable[[str, str, str], _Collection | str]
"""Returns the collection at (place, split, dataset), or an error message."""


def _checked(folder: Path, collection: _Collections) -> _Finding:
    scores = sorted(folder.glob(SCORES))
    kind = "index" if folder.parent.name == INDEXES else "cell" if scores else "run"
    finding = _Finding(kind, folder.name)
    record = _read(folder / RECORD, finding)
    if record is None:
        return finding
    finding.name = record.name
    if kind != "cell" and record.files and not any((folder / name).exists() for name in record.files):
        finding.unchecked.append("its files are not here, as where they stand in a store that machines share")
        return finding
    try:
        sound = _files_sound(folder, record, finding) and (kind == "index" or len(record.files) == 1)
        finding.problems += _stage_problems(folder, record, kind)
        files = {RECORD, *record.files}
        scored_by = [(path, one) for path in scores if (one := _read(path, finding)) is not None]
        judgments = {str(one.declared.get("qrels")) for _, one in scored_by}
        order = GridOrder.read(folder.parent.parent)
        for path, scored in scored_by:
            files |= {path.name, *scored.files}
            dataset, split = str(scored.facts.get("dataset")), str(scored.facts.get("split"))
            counting = order.counting(dataset, split, record.declared.get("corpus"))
            counts = counting not in judgments or scored.declared.get("qrels") == counting
            _check_scores(folder, path, record, scored, finding, collection if sound and counts else None)
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if not path.is_dir() and name not in files and not path.name.startswith("."):
                finding.problems.append(f"{name}: no record speaks of it")
    except (
        WeirError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        finding.problems.append(f"no record as weir run writes it ({type(error).__name__}: {error})"[:200])
    return finding


def _read(path: Path, finding: _Finding) -> Record | None:
    try:
        return read_record(path)
    except StoreError as error:
        missing = f"{path.name} is missing: it was not finished"
        finding.problems.append(_within(error, path.parent) if path.exists() else missing)
        return None


def _files_sound(folder: Path, record: Record, finding: _Finding) -> bool:
    try:
        record.verify(folder)
    except StoreError as error:
        finding.problems.append(_within(error, folder))
        return False
    return True


def _within(error: Exception, folder: Path) -> str:
    return str(error).replace(f"{folder}/", "")


def _stage_problems(folder: Path, record: Record, kind: str) -> Iterator[str]:
    if record.kind != ("index" if kind == "index" else "run"):
        yield f"{RECORD} is of {'an index' if record.kind == 'index' else record.kind}"
        return
    if kind != "index" and (len(record.files) != 1 or not record.files.keys() <= set(RUN_FILES)):
        yield f"{RECORD} speaks of {', '.join(record.files) or 'no file'}; expected {' or '.join(RUN_FILES)}"
    if kind == "index" and not record.files and set(_kinds(record.declared)) <= {*CLOSED, *METHODS.names()}:
        yield f"{RECORD} speaks of no file"
    if folder.name != record.stage.folder_name:
        yield f"its folder is that of another stage; {RECORD} is of {record.stage.folder_name}"
    yield from _misnamed(record.name, record)


def _check_scores(
    folder: Path, path: Path, ran: Record, scored: Record, finding: _Finding, collection: _Collections | None
) -> None:
    problems = list(_record_problems(path, ran, scored, folder.parent.name))
    finding.problems += problems
    if problems or not _files_sound(folder, scored, finding):
        return
    values: Scores | None = None
    for name in scored.files:  # none where nobody has judged
        try:
            values = read_scores(folder / name)
        except (FormatError, ValueError) as error:
            finding.problems.append(_within(error, folder))
            return
        finding.problems += _row_problems(scored, values, finding)
    if collection is None:
        return
    where = str(scored.facts["collection"]), str(scored.facts["split"])
    there = collection(*where, str(scored.facts["dataset"]))
    if isinstance(there, str):
        lost = "the collection was in memory" if was_in_memory(scored.facts) else there
        finding.unchecked.append(f"not scored again: {lost}")
        return
    problems = list(_collection_problems(ran, scored, there, where[0]))
    finding.problems += problems
    if problems or values is None:
        return
    todays = []
    for name, number in scored.declared["measures"].items():
        try:
            one = parse_measure(name)
        except WeirError as error:
            finding.unchecked.append(f"not scored again: {error}")
            continue
        if number == measure_number(one):
            todays.append(one)
        else:
            reason = f"{name} was made by algorithm {number}, this version has {measure_number(one)}"
            finding.unchecked.append(reason)
    finding.problems += _score_problems(folder, ran, scored, there.dataset, values, tuple(todays))


def _record_problems(path: Path, ran: Record, scored: Record, collection: str) -> Iterator[str]:
    if scored.declared["run"] != ran.stage.key:
        yield "its scores are of other rankings"
    if scored.kind != "scores" or path.stem != f"scores-{scored.stage.key}":
        yield f"{path.name} is not the record that it is called"
    expected_files = [f"{path.stem}.jsonl"] if scored.declared["measures"] else []
    if [*scored.files] != expected_files:
        expected = " and ".join(expected_files) or "none"
        yield f"{path.name} speaks of {', '.join(scored.files) or 'no file'}; expected {expected}"
    facts = scored.facts
    for what, value, declared in (
        ("k", facts["k"], ran.declared["k"]),
        ("self_match", facts["self_match"], ran.declared.get("self_match", "keep")),
    ):
        if value != declared:
            yield f"{path.name} says {what} = {value}; the rankings were made with {declared}"
    if (
        slug(str(facts["dataset"])).casefold() != collection.casefold()
    ):  # one folder where case does not count
        yield f"{path.name} is of the collection {facts['dataset']}, and stands among those of {collection}"
    yield from _misnamed(scored.name, ran)
    for row in facts["rows"]:
        for what, expected, value in (
            ("system", scored.name, row["system"]),
            ("collection", facts["dataset"], row["dataset"]),
        ):
            if value != expected:
                yield f"a row of {path.name} calls the {what} {value}, which is {expected}"


def _row_problems(scored: Record, values: Scores, finding: _Finding) -> Iterator[str]:
    rows = stored_rows(scored)
    for measure in dict.fromkeys(
        [*scored.declared["measures"], *(row.measure for row in rows), *values.measures]
    ):
        times = sum(row.measure == measure for row in rows)
        if measure not in scored.declared["measures"]:
            yield f"{measure} was not declared"
        elif measure not in values.measures:
            yield f"the row of {measure} has no values" if times else f"{measure} has neither row nor values"
        elif times != 1:
            yield f"{measure} has {times} rows"
    same = scored.declared["interval"].get("algorithm") == algorithm("bootstrap interval")
    if not same:
        finding.unchecked.append("its intervals were made by another algorithm than this version's")
    fields = ("mean", "low", "high", "queries") if same else ("mean", "queries")
    means = {row.measure: row for row in result_rows(values, "", "")}
    for row in rows:
        if row.measure in means and not _same(row, means[row.measure], fields):
            yield f"the row of {row.measure} is not what its scores give"


def _collection_problems(ran: Record, scored: Record, there: _Collection, where: str) -> Iterator[str]:
    dataset, declared = there.dataset, ran.declared
    if not scored.declared["measures"]:  # nobody had judged, so all queries were asked
        dataset = replace(dataset, unjudged=True)
    parts = (there.documents, dataset.queries_fingerprint, dataset.qrels_fingerprint)
    if parts[2] != scored.declared["qrels"]:
        yield f"the judgments of {where} are not those it was scored with"
    if parts[0] != declared["corpus"]:
        yield f"the documents of {where} are not those that were searched"
        return
    if parts[1] != declared["queries"]:
        yield f"the queries of {where} are not those that were asked"
    elif fingerprint_of_parts(*parts) != scored.facts["fingerprint"] and parts[2] == scored.declared["qrels"]:
        yield f"its fingerprint is not that of {where}"
    for name, digest in declared.get("metadata", {}).items():
        if dataset.corpus.metadata_digests([name]) != {name: digest}:
            yield f"{name} of the documents of {where} is not what was searched"
    # A collection of the hub goes by its name without the revision that it was looked up as.
    names = (dataset.name, str(scored.facts["dataset"]))
    now, then = (re.sub(r"@[^#]+", "", name) if is_reference(name) else name for name in names)
    if now != then and not there.placed:
        yield f"the collection that it calls {names[1]} is {names[0]}"


def _score_problems(
    folder: Path, ran: Record, scored: Record, dataset: Dataset, stored: Scores, measures: tuple[Measure, ...]
) -> Iterator[str]:
    if not measures:
        return
    try:
        judged = join_run_file(folder / next(iter(ran.files)), dataset.qrels)
    except WeirError as error:
        yield _within(error, folder)
        return
    again = replace(scores_of(judged, measures), labels=uncalibrated(dataset.qrels))
    for what, number in outcome(again).items():
        if not _close(scored.facts.get(what), number):
            yield f"it says {what} = {scored.facts.get(what)}; the rankings give {number}"
    rows = {row.measure: row for row in stored_rows(scored)}
    at = stored.queries.codes(again.queries.strings)
    means = {row.measure: row for row in result_rows(again, str(scored.facts["dataset"]), scored.name)}
    for measure in again.measures:
        values = stored.of(measure)[at]
        same = np.isclose(values, again.of(measure), ROUNDING, ROUNDING, equal_nan=True).all()
        if (at < 0).any() or not same:
            yield f"{measure} of its queries is not what the rankings score"
        elif measure in rows and not _same(rows[measure], means[measure], Row.__dataclass_fields__):
            yield f"the row of {measure} is not what its scores give"


def _same(one: Row, other: Row, fields: Iterable[str]) -> bool:
    return all(_close(getattr(one, name), getattr(other, name)) for name in fields)


def _close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        undefined = math.isnan(one) and math.isnan(other)
        return undefined or math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return one == other


# Names


def _misnamed(name: str, record: Record) -> Iterator[str]:
    described = record.declared["system"]
    if described.get("system") == OBJECT:
        if described.get("name", name) != name:
            yield f"it is called {name}, and was declared as {described['name']}"
        return
    declared, kinds = str(described["system"]), Counter(_kinds(described))
    if first_word(name) != first_word(declared):
        yield f"it is called {name}, and was declared as {declared}"
        return
    try:
        tree = expression_tree(name)
    except BadValue:
        return  # an object's own name stands in it
    registered = {*SYSTEMS.names(), *RERANKERS.names()}
    called = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    if Counter(one for one in called if one in registered) - kinds or (
        isinstance(tree, ast.BinOp) != ("reranker" in described)
    ):
        yield f"it is called {name}, and was declared as {declared}"
    elif record.made.get("code") == code_digest() and set(called) <= {*CLOSED, *METHODS.names()}:
        now = Stage("", "", parse_system(name).describe())
        for setting, was, called_so in setting_changes(Stage("", "", described), now):
            if "analysis" not in setting.split("."):  # which the packages of a machine decide
                yield f"it is called {name}, with {setting} = {called_so or 'none'}, and was made with {was or 'none'}"
                return


CLOSED = ("bm25", "bm25f", "rm3", "score", "pool")
"""Systems described by their settings alone, without a file, model or server."""


def _kinds(described: object) -> Iterator[str]:
    if isinstance(described, Mapping):
        for key, value in described.items():
            if key in ("system", "reranker") and isinstance(value, str):
                yield first_word(value)
            yield from _kinds(value)
    elif isinstance(described, (list, tuple)):
        for value in described:
            yield from _kinds(value)


def _page(verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    shown = [one for one in verdicts if one.kind == "cell" or not one.sound]
    cells = sum(one.kind == "cell" for one in verdicts)
    bad, partial = sum(not one.sound for one in verdicts), sum(bool(one.unchecked) for one in verdicts)
    summary = f"{len(verdicts)} stages, {cells} of them cells: {len(verdicts) - bad} sound, {bad} not"
    summary += f"; {partial} could not be checked whole" if partial else ""
    return (
        table_of(
            [["folder", "status"], *([one.folder, one.status] for one in shown)], keys=2, notes=[summary]
        ),
    )


def _verify_tables(verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    [page] = _page(verdicts)
    return (sentences(*(f"{folder.text}: {status.text}" for folder, status in page.rows), *page.notes),)


VERDICTS = ResultKind(
    "verify",
    Verdict,
    _verify_tables,
    outcome=lambda one: "fail" if not one.sound else "pass" if one.fully_checked else "undecided",
    records=lambda one: [json_value(one) | {"sound": one.sound, "whole": one.fully_checked}],
    page=_page,
    csv=lambda one: [{"folder": one.folder, "kind": one.kind, "name": one.name, "status": one.status}],
)
