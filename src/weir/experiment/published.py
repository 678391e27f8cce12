"""Published scores, and the systems that should reproduce them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Literal

import numpy as np

from weir.argument_types import checked
from weir.core.results import ResultKind
from weir.core.run import Run
from weir.core.short_names import short_names
from weir.core.strings import Float64, Int64
from weir.core.tables import Table, table_of
from weir.datasets import catalogue
from weir.datasets.load import load_here
from weir.datasets.names import catalogue_name, is_reference, named_split
from weir.errors import BadValue, UnknownName, nearest_names
from weir.experiment.results import ResultCell, not_as_published
from weir.files.paths import path_of
from weir.models.checkpoints import cards, find_card, split_variant
from weir.systems.expression import expression_tree

# ----------
# Scores as Anserini writes them: rounded, ties lowered step by step, in 32-bit floats.


_F = np.float32
_ROUNDED = _F(1e4)
"""Scores are rounded to multiples of its inverse."""
_CLOSE = _F(1e-4)
"""Largest difference of neighbours that count as tied."""
_STEP = _F(1e-6)
"""Subtracted for each further member of a tie; vanishes in a float from about 32."""
_DECIMALS = 6
"""Decimals of a score in the file."""


def lowered(ptr: Int64, score: Float64) -> Float64:
    """Return scores as trec_eval 9 reads them from Anserini's run files, float64[n] of 32-bit values.

    ptr: int64[queries + 1], row offsets; rows by descending score, ties by ascending identifier.

    A rounded score at most 0.0001 below the one before it, as lowered, is tied with it: ties lose 0.000001,
    0.000002, and so on.
    """
    # A score no more than 1e-4 below the one before it, which may have been lowered itself, is lowered by 1e-6 more
    # than that one was. If a float is too coarse for the step the scores stay tied, and trec_eval's descending
    # identifiers decide. Source: Anserini's ScoreTiesAdjusterReranker at 0ac088a4c0.
    with np.errstate(over="ignore"):
        steps = np.floor((score.astype(_F) * _ROUNDED).astype(np.float64) + 0.5)
        single = np.clip(steps, -(2.0**31), 2.0**31 - 1).astype(_F) / _ROUNDED
    # Only where rounded scores are this close can a chain of ties go on: it loses less than a step a row.
    longest = int(np.diff(ptr).max(initial=0))
    near = np.zeros(len(single) + 1, np.bool_)
    near[1:-1] = single[:-1].astype(np.float64) - single[1:] <= 2e-4 + 2e-6 * longest
    near[ptr] = False
    edges = np.flatnonzero(np.diff(near.astype(np.int8)))
    for before, last in edges.reshape(-1, 2).tolist():
        scores = single[before : last + 1]
        tied = 0
        for row in range(1, len(scores)):
            tied = 0 if scores[row - 1] - scores[row] > _CLOSE else tied + 1
            if tied:
                scores[row] -= _STEP * _F(tied)
    return np.round(single.astype(np.float64), _DECIMALS).astype(_F).astype(np.float64)


def close_queries(run: Run, ties: str, cutoff: int | None) -> int:
    """Return the number of queries with unequal scores, in the first `cutoff` ranks, that a tie rule of
    `Publisher` makes equal.
    """
    longest = int(np.diff(run.ptr).max(initial=0))
    within = {"anserini": 2e-4 + 2e-6 * longest, "trec9": 0.0}.get(ties, -1.0)  # as in `lowered`
    single, query = run.score.astype(_F).astype(np.float64), run.query_of_row()
    close = (single[:-1] - single[1:] <= within) & (run.score[:-1] > run.score[1:])
    close &= query[:-1] == query[1:]
    if cutoff is not None:
        close &= np.arange(len(close)) - run.ptr[query[:-1]] < cutoff
    return len(np.unique(query[:-1][close]))


# ----------
# Published scores, each with its source.


@dataclass(frozen=True)
class PublishedScore:
    """A score that a paper or leaderboard printed for a system on a dataset."""

    model: str
    """The system, with its publisher in brackets."""
    family: str
    """Kind of system, such as lexical or dense."""
    dataset: str
    """Weir's name of the collection if it has one."""
    split: str
    measure: str
    """Weir's name."""
    printed: str
    """The score as printed, converted to a share of 1."""
    source: str
    """Where it was published; a star replaces the file of each collection."""
    note: str
    """The source's remark."""

    @property
    def value(self) -> float:
        """The score as a number."""
        return float(self.printed)

    @property
    def decimals(self) -> int:
        """Number of decimals that the source printed."""
        return len(self.printed.partition(".")[2])

    def tolerance(self, decimals: int | None = None) -> float:
        """Return the largest difference that counts as equal: half a unit of the last printed decimal, or of
        `decimals` if fewer.
        """
        compared = self.decimals if decimals is None else min(decimals, self.decimals)
        return 0.5 * 10.0**-compared * (1 + 1e-9)  # the edge itself agrees, whatever the binary fraction

    def agrees(self, value: float, decimals: int | None = None) -> bool:
        """Return True if a value equals the score to the printed decimals, or to `decimals` if fewer."""
        return abs(value - self.value) <= self.tolerance(decimals)


PUBLISHED_SHOWN = 6
"""Rows of the printed table."""


def _published_pages(scores: Sequence[PublishedScore]) -> tuple[Table, ...]:
    lines = [["dataset", "split", "measure", "published", "model", "source"]]
    lines += [[s.dataset, s.split, s.measure, s.printed, s.model, s.source] for s in scores]
    return (table_of(lines, right=3, keys=3, tail=2),)


def published_tables(scores: Sequence[PublishedScore]) -> tuple[Table, ...]:
    """Return a table of the first six scores, with a note on how many more there are."""
    [table] = _published_pages(scores[:PUBLISHED_SHOWN])
    more = len(scores) - len(table.rows)
    note = f"and {more:,} more: to_frame(), to_csv() and to_markdown() have them all"
    return (replace(table, notes=(note,) if more else ()),)


PUBLISHED_SCORES = ResultKind(
    "published", PublishedScore, published_tables, page=_published_pages, html=published_tables
)


@dataclass(frozen=True)
class Publisher:
    """A publisher's documented rules of scoring, None or "" where undocumented."""

    name: str
    ties: Literal["trec", "trec9", "ascending", "anserini"] | None = None
    """`ties`, `self_match` and `missing` are as in `why.Scoring`."""
    self_match: Literal["keep", "drop"] | None = None
    missing: Literal["zero", "answered-only"] | None = None
    k: str = ""
    """Documents returned for each query."""
    source: str = ""
    """Where the rules are documented."""


@checked
def published(
    dataset: str | Path | None = None, model: str | None = None, measure: str | None = None
) -> tuple[PublishedScore, ...]:
    """Return the published scores of a collection, model and measure, None for any; () if there are none.

    dataset: a name, a reference, or a path, whose collection is recognised by its judgments.
    model: a whole name, or words that only one model has.

    Raises UnknownName for an unknown model, BadValue for words that fit several, FormatError for a path
    without a collection.
    """
    name = None if model is None else model_named(model)
    place, split = (None, None) if dataset is None else _published_place(dataset)
    return tuple(
        s
        for s in (_scores() if place is None else _of_collections().get(place, ()))
        if split in (None, s.split) and name in (None, s.model) and measure in (None, s.measure)
    )


@cache
def _of_collections() -> dict[str, list[PublishedScore]]:
    found: dict[str, list[PublishedScore]] = {}
    for one in _scores():
        found.setdefault(one.dataset, []).append(one)
    return found


def _published_place(dataset: str | Path) -> tuple[str, str | None]:
    if isinstance(dataset, str) and dataset in _of_collections():
        return dataset, None
    name, split = named_split(dataset) if isinstance(dataset, str) else (dataset, None)
    if not (is_reference(str(name)) or catalogue_name(name)) and path_of(name).exists():
        here = load_here(dataset)
        documents = None if here.undocumented else len(here.corpus)
        at = _reported_by_counts(here.name, here.split, here.qrels.grade_counts(), documents)
        return at.dataset, at.split
    at = reported(str(name), split or "test")
    return at.dataset, split and at.split


def model_named(text: str, datasets: Collection[str] = ()) -> str:
    """Return the full name of the published model that a text names, with or without publisher, or by some
    words.

    datasets: prefer models with scores on these published collections.

    Raises UnknownName if none fits, BadValue if several do.
    """
    every = sorted({s.model for s in _scores()})
    if text in every:
        return text
    here = sorted({s.model for s in _scores() if s.dataset in datasets})
    words = words_of(text)
    for models, on in ((here, f" of {', '.join(sorted(datasets))}"), (every, "")):
        fits = [name for name in models if words and words <= words_of(name)]
        spelled = [name for name in fits if name.rpartition(" [")[0] == text]
        exact = [name for name in fits if words == words_of(name)]
        for several in (spelled, exact, fits):
            if len(several) == 1:
                return several[0]
        if fits:
            fits = spelled or exact or fits
            more = f", and {len(fits) - 6} more" if len(fits) > 6 else ""
            raise BadValue(f"'{text}' fits several published models{on}: {'; '.join(fits[:6])}{more}")
    bare = {name.rpartition(" [")[0].rpartition("/")[2]: name for name in every}
    near = [bare[name] for name in nearest_names(text.rpartition("/")[2], bare)]
    raise UnknownName("published model", text, every, " or ".join(near) or None)


def claimed(system: str, dataset: str) -> tuple[str, ...]:
    """Return the published models whose scores a system should reproduce on a collection; () without any."""
    # A stored ranking named as a rank file of BIRCO's authors claims that file's scores.
    not_on, models = toml_facts("claims.toml")["not_on"], _claims().get(_claiming(system), ())
    return tuple(one for one in models if dataset not in not_on.get(one, ())) + _of_rank_file(system, dataset)


@dataclass(frozen=True)
class PublishedNames:
    """The published names of a user's systems, models and collections."""

    models: Mapping[str, tuple[str, ...]]
    """{system, or model of MTEB's results: published models}."""
    collections: Mapping[str, str]
    """{dataset of results: collection of published scores}."""
    splits: Mapping[str, str]
    """{dataset of results: split of published scores}, where PUBLISHED has a split."""

    @staticmethod
    def of(
        texts: Sequence[str], cells: Sequence[ResultCell], given: Sequence[PublishedScore] = ()
    ) -> PublishedNames:
        """Return the names in texts OWN=PUBLISHED, such as "mine=minilm-l6 v2".

        given: scores of MTEB's results, whose models and tasks may be named too.

        A system or model of Weir as PUBLISHED means all models that it should reproduce; a collection may end
        in a split, as in TASK#de:dev. Raises UnknownName for an unknown or unpublished name, BadValue for
        ambiguous words or a text without "=".
        """
        systems = {name: {cell.label or cell.system, cell.system} for cell in cells
                   for name in (cell.system, cell.label, cell.title) if name}  # fmt: skip
        own_names = list(dict.fromkeys(cell.system for cell in cells))
        for name, short in zip(own_names, short_names(own_names), strict=True):
            systems.setdefault(short, systems[name])
        systems |= {one.model: {one.model} for one in given}
        datasets = dict[str, dict[str, None]]()
        for cell in cells:
            for name in {cell.collection, cell.dataset, f"{cell.collection}:{cell.split}"}:
                datasets.setdefault(name, {})[cell.dataset] = None
        models, collections = dict[str, tuple[str, ...]](), dict[str, str]()
        split_of = dict[str, str]()
        for text in texts:
            parts = text.split("=")  # names of systems may hold a "=", too
            splits = [
                ("=".join(parts[:n]).strip(), "=".join(parts[n:]).strip()) for n in range(1, len(parts))
            ]
            own, published_name = next((s for s in splits if s[0] in (*systems, *datasets)), ("", ""))
            if not splits or (own and not published_name):
                raise BadValue(f"'{text}' is no pair of names; expected one such as 'mine=all-MiniLM-L6-v2'")
            if not own:
                if revisions := [one for one in systems if one.startswith(f"{splits[0][0]}@")]:
                    many = f"{len(revisions)} revisions: {', '.join(revisions)}"
                    raise BadValue(
                        f"'{splits[0][0]}' is in these results in {many}; name the one that is meant"
                    )
                names = {*systems, *datasets}
                raise UnknownName("system, collection or model among these results", splits[0][0], names)
            if own in systems:
                card = find_card(published_name)
                of = _claims().get(_claiming(published_name), ()) if card is None else card.published
                of = of or (model_named(published_name, {reported_of(cell).dataset for cell in cells}),)
                models |= dict.fromkeys(systems[own], of)
            else:
                scored = {one.dataset for one in given} | _of_collections().keys()
                with_splits = {f"{one.dataset}:{one.split}" for one in (*given, *_scores())}
                name, colon, split = published_name.rpartition(":")
                places = [(published_name, ""), *[(name, split)] * bool(colon)]
                called = [(at, split) for one, split in places for at in (one, reported(one, "test").dataset)]
                place, split = next(
                    (
                        (at, of)
                        for at, of in called
                        if at in scored and (not of or f"{at}:{of}" in with_splits)
                    ),
                    ("", ""),
                )
                if not place:
                    known = {*scored, *with_splits} if colon else scored
                    raise UnknownName("collection with published scores", published_name, known)
                collections |= dict.fromkeys(datasets[own], place)
                split_of |= dict.fromkeys(datasets[own] if split else (), split)
        return PublishedNames(models, collections, split_of)

    def place_of(self, cell: ResultCell) -> tuple[Reported, str]:
        """Return (published name and split of a result's dataset, how its data differ, "" if they do not)."""
        name = self.collections.get(cell.dataset, "")
        if not name and cell.collection in _tasks():
            name = _tasks()[cell.collection]
        known = reported_of(cell, name)
        known = replace(known, split=self.splits.get(cell.dataset, known.split))
        return known, not_as_published(cell, name)

    def claimed(self, system: str, dataset: str) -> tuple[str, ...]:
        """Return the published models that the user names for a system, else those that it should reproduce."""
        return self.models[system] if system in self.models else claimed(system, dataset)


def claimant(model: str) -> str | None:
    """Return a system that should reproduce a published model's scores; None without any."""
    return next((system for system, models in _claims().items() if model in models), None)


def comparable() -> dict[PublishedScore, str]:
    """Return {published score: system that should reproduce it} on Weir's collections."""
    there = {*catalogue.collection_names(), *catalogue.groups(), *toml_facts("collections.toml")}
    files = {(dataset, model): f'run("{file}")' for (dataset, file), model in _rank_files().items()}
    systems = {model: system for system, models in _claims().items() for model in models}
    found = {
        score: files.get((score.dataset, score.model), systems.get(score.model, ""))
        for score in _scores()
        if score.dataset in there
    }
    return {score: system for score, system in found.items() if score.model in claimed(system, score.dataset)}


IDLE = ("engine", "batch_tokens")
"""Settings of models that change only where and how fast numbers are computed."""


def _claiming(system: str) -> str:
    try:
        tree = expression_tree(system)
    except BadValue:
        return system  # a system of one's own, which claims nothing
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            model, variant = split_variant(node.value)
            card = find_card(model) if variant in ("", "fp32") else None
            node.value = node.value if card is None else card.name
        if isinstance(node, ast.Call):
            node.keywords = [one for one in node.keywords if one.arg not in IDLE]
    return ast.unparse(tree).replace("'", '"')


@cache
def _claims() -> dict[str, tuple[str, ...]]:
    claims = {
        _claiming(claim["system"]): tuple(claim["models"]) for claim in toml_facts("claims.toml")["claim"]
    }
    of_cards = [card for card in cards() if card.published]
    return claims | {_claiming(f'{card.system}("{card.name}")'): card.published for card in of_cards}


@cache
def _rank_files() -> dict[tuple[str, str], str]:
    return {
        (score.dataset, PurePosixPath(score.source).stem): score.model
        for score in _scores()
        if score.model.endswith("[BIRCO]")
    }


def _of_rank_file(system: str, dataset: str) -> tuple[str, ...]:
    match = re.fullmatch(r"""run\((['"])(?P<path>.+)\1\)""", system)
    model = _rank_files().get((dataset, PurePath(match["path"]).stem)) if match else None
    return () if model is None else (model,)


@dataclass(frozen=True)
class Reported:
    """A dataset and split as published scores name them."""

    dataset: str
    split: str
    queries: int | None
    """Number of judged queries; None if unknown."""


def task_collection(task: str, subset: str = "default") -> str:
    """Return the name of a subset of a task of MTEB: TASK, or TASK#de."""
    return task if subset == "default" else f"{task}#{subset}"


@cache
def _tasks() -> dict[str, str]:
    """Return {task of MTEB: Weir's name of the collection}."""
    return {facts["task"]: name for name, facts in toml_facts("benchmark_tasks.toml").items()}


def reported(dataset: str, split: str) -> Reported:
    """Return a dataset and split by their published names, such as scifact for hf:mteb/scifact."""
    dataset = _tasks().get(dataset, dataset)
    called = {catalogue.without_revision(dataset), f"{dataset}:{split}"}
    for name, facts in toml_facts("collections.toml").items():
        if called & {name, *facts["names"]}:
            return Reported(name, facts["split"], facts["queries"])
    name = catalogue.original(dataset)
    entry = catalogue.get(name) if name in catalogue.collection_names() else None
    return Reported(name, split, entry.queries if entry is not None and entry.split == split else None)


def _reported_by_counts(
    dataset: str, split: str, grades: Mapping[float, int], documents: int | None = None
) -> Reported:
    known = reported(dataset, split)
    if not grades or any(known.dataset == one.dataset for one in _scores()):
        return known
    places = [
        (Reported(name, facts["split"], facts["queries"]), facts["documents"], facts["grades"])
        for name, facts in toml_facts("collections.toml").items()
        if "grades" in facts
    ]
    places += [
        (Reported(entry.name, entry.split, entry.queries), entry.documents, entry.grades)
        for entry in catalogue.entries()
        if entry.grades
    ]
    alike = [
        place
        for place, size, there in places
        if documents in (None, size) and dict(grades) == {float(grade): n for grade, n in there.items()}
    ]
    return alike[0] if len(alike) == 1 else known


def reported_of(cell: ResultCell, name: str = "") -> Reported:
    """Return a result's dataset and split by their published names; raises FormatError for damaged records.

    name: of its collection, by default its own.

    An unpublished collection gets the name of the only one with equal numbers of documents and of judgments
    by grade, if any.
    """
    return _reported_by_counts(name or cell.collection, cell.split, cell.grades, cell.documents)


def places_of(cells: Sequence[ResultCell], names: PublishedNames) -> dict[str, tuple[Reported, str]]:
    """Return {dataset or complete group: (its published name, how its data differ, "" if equal)}."""
    places: dict[str, tuple[Reported, str]] = {}
    for cell in cells:
        _, before = places.get(cell.dataset, (None, ""))
        known, other = names.place_of(cell)
        places[cell.dataset] = known, before or other
    for name in catalogue.groups():
        members = [places[one] for one in catalogue.members(name) if one in places]
        if len(members) == len(catalogue.members(name)):
            other = next((other for _, other in members if other), "")
            places[name] = Reported(name, members[0][0].split, None), other
    return places


def known_as(name: str, published_name: str, declared: bool = False) -> str:
    """Return a sentence that a collection is published under another name; "" if equal, except for a split.

    declared: the user says so.
    """
    by = "as `published_as` says" if declared else "by its name or its judgments"
    return f"{name} is {published_name}, {by}" if published_name not in (name, named_split(name)[0]) else ""


def unknown_name(known: Reported) -> str:
    """Return a sentence that nothing is published on a collection; "" if some score is."""
    if any(known.dataset == one.dataset for one in _scores()):
        return ""
    return (
        f"no score is published under the name {known.dataset}, and its documents and judgments are of no collection "
        "with published scores; weir.published() lists them by name"
    )


def is_of_file(model: str) -> bool:
    """Return True if a model's scores come from a file of MTEB's results, by its name."""
    return not model.endswith("]")


def publisher_of(model: str) -> Publisher:
    """Return the publisher of a model's scores, with its documented rules, if known.

    model: ends in "[publisher]", except models of MTEB's files.
    """
    name = "MTEB" if is_of_file(model) else model.rpartition("[")[2].removesuffix("]")
    return Publisher(name, **toml_facts("publishers.toml").get(name, {}))


@cache
def _scores() -> tuple[PublishedScore, ...]:
    families = dict(facts_table("models.tsv"))
    origins = {number: (source, note) for number, source, note in facts_table("origins.tsv")}
    return tuple(
        PublishedScore(model, families[model], dataset, split, measure, value, *origins[origin])
        for model, dataset, split, origin, scores in facts_table("scores.tsv")
        for measure, _, value in (one.rpartition("=") for one in scores.split(" "))
    )


def facts_table(name: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a packaged TSV file, without its header."""
    text = (files("weir.experiment") / "facts" / name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.rstrip("\n").split("\n")[1:])


@cache
def toml_facts(name: str) -> dict[str, Any]:
    """Return the content of a packaged TOML file."""
    return tomllib.loads((files("weir.experiment") / "facts" / name).read_text(encoding="utf-8"))


def words_of(text: str) -> frozenset[str]:
    """Return the words and version numbers in a name, in lower case."""
    return frozenset(re.findall(r"[a-z0-9.+]+", text.lower()))
