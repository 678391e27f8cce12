"""Scores that others have published, each with its source."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import PurePath, PurePosixPath
from typing import Any, Literal

import numpy as np

from weir.argument_types import checked
from weir.core.results import result
from weir.core.strings import Float64, Int64
from weir.core.tables import Table, table_of
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName
from weir.models.checkpoints import cards, find_card, split_variant
from weir.systems.expression import expression_tree

# ----------
# Scores as Anserini writes them: rounded, ties lowered step by step, in 32-bit floats.


_F = np.float32
_ROUNDED = _F(1e4)
"""Scores are rounded to one part in this."""
_CLOSE = _F(1e-4)
"""Neighbours that differ by no more count as tied."""
_STEP = _F(1e-6)
"""What each further one of a tie loses; it vanishes in a float from about 32."""
_DECIMALS = 6
"""Of a score in the file."""


def lowered(ptr: Int64, score: Float64) -> Float64:
    """The scores as they stand in Anserini's run files, float64[n], read back as floats as trec_eval 9 does.

    Rows of query q stand from ptr[q] to ptr[q + 1], ties by ascending identifier as in Lucene. A score no more than
    1e-4 below the one before it, which may have been lowered itself, is lowered by 1e-6 more than that one was. Where
    a float is too coarse for such a step the scores stay tied, and trec_eval's descending identifiers decide.
    Source: Anserini's ScoreTiesAdjusterReranker at 0ac088a4c0.
    """
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


# ----------
# Published scores, each with its source.


@dataclass(frozen=True)
class PublishedScore:
    """One number that somebody printed.

    model: what was measured and, in brackets, who says so; family: lexical, dense, ...; dataset: Weir's name of the
    collection where it has one; measure: Weir's name; printed: the number as printed, as a share of 1; source: where
    (a star stands for the file of each collection); note: what the source says beside it.
    """

    model: str
    family: str
    dataset: str
    split: str
    measure: str
    printed: str
    source: str
    note: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.printed)

    @property
    def decimals(self) -> int:
        """How many decimals were printed."""
        return len(self.printed.partition(".")[2])

    def within(self, decimals: int | None = None) -> float:
        """How far a value may be away and still agree: half a unit of the last decimal that is compared."""
        compared = self.decimals if decimals is None else min(decimals, self.decimals)
        return 0.5 * 10.0**-compared * (1 + 1e-9)  # the edge itself agrees, whatever the binary fraction

    def agrees(self, value: float, decimals: int | None = None) -> bool:
        """Whether a value is this one to the printed decimals, or to fewer."""
        return abs(value - self.value) <= self.within(decimals)


PUBLISHED_SHOWN = 6
"""Published scores that print at once."""


def _published_pages(scores: Sequence[PublishedScore]) -> tuple[Table, ...]:
    """A line for each score, with its source."""
    lines = [["dataset", "split", "measure", "published", "model", "source"]]
    lines += [[s.dataset, s.split, s.measure, s.printed, s.model, s.source] for s in scores]
    return (table_of(lines, right=3, keys=3, tail=2),)


def published_tables(scores: Sequence[PublishedScore]) -> tuple[Table, ...]:
    """The first scores, and how many more there are."""
    [table] = _published_pages(scores[:PUBLISHED_SHOWN])
    more = len(scores) - len(table.rows)
    note = f"and {more:,} more: to_frame(), to_csv() and to_markdown() have them all"
    return (replace(table, notes=(note,) if more else ()),)


result("published", PublishedScore, page=_published_pages, html=published_tables)(published_tables)


@dataclass(frozen=True)
class Publisher:
    """By which rules somebody scores, as far as that is documented; None or "" where it is not.

    ties, self_match, missing: as in `why.Scoring`; k: documents returned for each query; source: where it says so.
    """

    name: str
    ties: Literal["trec", "trec9", "ascending", "anserini"] | None = None
    self_match: Literal["keep", "drop"] | None = None
    missing: Literal["zero", "answered-only"] | None = None
    k: str = ""
    source: str = ""


@checked
def published(
    dataset: str | None = None, model: str | None = None, measure: str | None = None
) -> tuple[PublishedScore, ...]:
    """The published scores of a collection, a model, a measure, or all of them.

    model: the whole name or enough of its words. Nothing is returned where nothing is published; raises UnknownName for
    a model that is not there, BadValue for words that fit several.
    """
    name = None if model is None else model_named(model)
    return tuple(
        s
        for s in _scores()
        if dataset in (None, s.dataset) and name in (None, s.model) and measure in (None, s.measure)
    )


def model_named(text: str, dataset: str | None = None) -> str:
    """The published model that a text names: its whole name, or words that only one has, such as "anserini bm25-flat".

    Where several models have all the words, the one with no others is meant. dataset: only models with scores on it.
    Raises UnknownName, or BadValue for words that fit several models.
    """
    models = sorted({s.model for s in _scores() if dataset in (None, s.dataset)})
    if text in models:
        return text
    words = words_of(text)
    fits = [name for name in models if words and words <= words_of(name)]
    exact = [name for name in fits if words == words_of(name)]
    if len(exact or fits) == 1:
        return (exact or fits)[0]
    if fits:
        more = f", and {len(fits) - 6} more" if len(fits) > 6 else ""
        raise BadValue(f"'{text}' fits several published models: {'; '.join(fits[:6])}{more}")
    raise UnknownName("published model", text, models)


def claimed(system: str, dataset: str) -> tuple[str, ...]:
    """The published models that a system of Weir claims to be on a collection, if any.

    A stored ranking called as a rank file of BIRCO's authors claims what is published of that file; anything else what
    its model's card names, or claims.toml.
    """
    not_on, models = _toml("claims.toml")["not_on"], _claims().get(_claiming(system), ())
    return tuple(one for one in models if dataset not in not_on.get(one, ())) + _of_rank_file(system, dataset)


def claimant(model: str) -> str | None:
    """The system of Weir that claims to be a published model, None where none does."""
    return next((system for system, models in _claims().items() if model in models), None)


def comparable() -> dict[PublishedScore, str]:
    """The published scores that a system claims on a collection that Weir can name, each with that system."""
    there = {*catalogue.names(), *catalogue.groups(), *_toml("collections.toml")}
    files = {(dataset, model): f'run("{file}")' for (dataset, file), model in _rank_files().items()}
    systems = {model: system for system, models in _claims().items() for model in models}
    found = {
        score: files.get((score.dataset, score.model), systems.get(score.model, ""))
        for score in _scores()
        if score.dataset in there
    }
    return {score: system for score, system in found.items() if score.model in claimed(system, score.dataset)}


IDLE = ("engine", "batch_tokens")
"""Settings of models that are no other system: where and how fast the same numbers are computed."""


def _claiming(system: str) -> str:
    """A system's name as claims have it: models by their cards, and settings that decide no number left out."""
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
    """For each system that claims something, its published models."""
    claims = {_claiming(claim["system"]): tuple(claim["models"]) for claim in _toml("claims.toml")["claim"]}
    of_cards = [card for card in cards() if card.published]
    return claims | {_claiming(f'{card.system}("{card.name}")'): card.published for card in of_cards}


@cache
def _rank_files() -> dict[tuple[str, str], str]:
    """{(collection, file without its ending): model} of the rank files that BIRCO's authors publish."""
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
    """What published scores call a collection's split, and how many judged queries it has there."""

    dataset: str
    split: str
    queries: int | None


def reported(dataset: str, split: str) -> Reported:
    """As what published scores know a collection: itself, or what it is a copy or a split of.

    hf:mteb/scifact is scifact, msmarco:test is trec-dl-2019. queries: None where that is not known.
    """
    called = {_without_revision(dataset), f"{dataset}:{split}"}
    for name, facts in _toml("collections.toml").items():
        if called & {name, *facts["names"]}:
            return Reported(name, facts["split"], facts["queries"])
    name = _copies().get(_without_revision(dataset), dataset)
    entry = catalogue.get(name) if name in catalogue.names() else None
    return Reported(name, split, entry.queries if entry is not None and entry.split == split else None)


def _without_revision(dataset: str) -> str:
    return re.sub(r"^(hf:[^@#]+)@[^#]+", r"\1", dataset)


@cache
def _copies() -> dict[str, str]:
    """{reference without its revision: collection of the catalogue that it is a copy of, candidates and all}."""
    entries = [entry for entry in map(catalogue.get, catalogue.names()) if not entry.candidates]
    return {_without_revision(copy): entry.name for entry in entries for copy in entry.copies}


def publisher_of(model: str) -> Publisher:
    """Who published the scores of a model, and by which rules."""
    name = model.rpartition("[")[2].removesuffix("]")
    return Publisher(name, **_toml("publishers.toml").get(name, {}))


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
    """The lines of a table of facts, without its header."""
    text = (files("weir.experiment") / "facts" / name).read_text(encoding="utf-8")
    return (line.split("\t") for line in text.rstrip("\n").split("\n")[1:])


@cache
def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((files("weir.experiment") / "facts" / name).read_text(encoding="utf-8"))


def words_of(text: str) -> frozenset[str]:
    """The words of a name of a model or publisher, in small letters, version numbers among them."""
    return frozenset(re.findall(r"[a-z0-9.+]+", text.lower()))
