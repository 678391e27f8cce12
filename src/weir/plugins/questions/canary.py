"""A canary file: a system's answers to a few queries, which tell later if the model of that name has changed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import weir
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.results import Outcome, ResultKind
from weir.core.rounding import count, counted, figure
from weir.core.tables import Table, sentences, table_of
from weir.datasets.load import Dataset, judged_or_not, load
from weir.errors import FormatError
from weir.files.atomic import temporary_folder, write_text
from weir.files.json_record import parse_json
from weir.files.paths import path_of
from weir.files.text_files import read_bytes
from weir.registry import check_whole
from weir.systems import parse_system
from weir.systems.composite import indexed
from weir.systems.expression import system as system_of
from weir.systems.protocol import Context, Retriever

SEED = 23
"""Seed of the random draw of documents and queries."""
SHOWN_QUERIES, SHOWN_DOCUMENTS = 10, 3
CANARY_FILE = "a canary file, as weir study canary -s SYSTEM -d COLLECTION -o FILE writes"


@dataclass(frozen=True)
class _ChangedAnswer:
    """A query whose answer differs from the stored one."""

    query: str
    text: str
    before: tuple[str, ...]
    """Documents in rank order; `now` likewise."""
    now: tuple[str, ...]
    moved: float
    """Largest change of a document's score; NaN if no document is in both answers."""


@dataclass(frozen=True)
class CanaryCheck:
    """The differences between a system's answers and those in a canary file."""

    system: str
    made_with: str
    """Version of Weir that made the canary."""
    queries: int
    reordered: int
    """Number of queries with other documents, or with the same in an order that ties do not explain."""
    moved: float
    """Largest change of a score."""
    allowed: float
    changed: tuple[_ChangedAnswer, ...]
    """Queries with another order, or with a score that moved by more than allowed."""

    @property
    def outcome(self) -> Outcome:
        """ "fail" if any answer changed, else "pass"."""
        return "fail" if self.changed else "pass"


def _canary_tables(checks: Sequence[CanaryCheck]) -> tuple[Table, ...]:
    tables = []
    for one in checks:
        asked = counted(one.queries, "query", "queries")
        moved = f"scores move by {figure(one.moved)} at most"
        if not one.changed:
            tables.append(sentences(f"pass: {one.system} answers {asked} as before; {moved}"))
            continue
        others = len(one.changed) - one.reordered
        rescored = f", {count(others)} in the same order with other scores" if others else ""
        lines = [["query", "before", "now", "score moved", "text"]]
        for each in one.changed[:SHOWN_QUERIES]:
            answers = (" ".join(names[:SHOWN_DOCUMENTS]) for names in (each.before, each.now))
            lines.append([each.query, *answers, figure(each.moved), each.text])
        tables += [
            sentences(
                f"fail: {one.system} has changed: {count(one.reordered)} of {asked} are answered otherwise{rescored}; "
                f"{moved} (allowed {one.allowed:g})"
            ),
            table_of(lines, tail=1),
        ]
    return tuple(tables)


CANARIES = ResultKind(
    "canary", CanaryCheck, _canary_tables, parts="changed", outcome=lambda check: check.outcome
)


@checked
def make_canary(
    system: object,
    dataset: str | Path | Dataset,
    out: str | os.PathLike[str],
    documents: int = 200,
    queries: int = 20,
    k: int = 10,
) -> Path:
    """Write a system's answers to random queries on random documents, with all texts, to a file; return its
    path.

    system: a system or its name.
    dataset: a catalogue name, a folder, hf:... or irds:...
    out: the file to write, as JSON.
    documents: number of documents drawn at random, all of a smaller collection.
    queries: number of queries drawn at random, all if there are fewer.
    k: number of documents of each answer.

    The draw is always the same, and stored answers and vectors are not used. Raises BadValue for numbers below 1.
    """
    for name, value in (("documents", documents), ("queries", queries), ("k", k)):
        check_whole(name, value)
    one = parse_system(system) if isinstance(system, str) else system_of(system)
    collection = dataset if isinstance(dataset, Dataset) else judged_or_not(load(dataset))
    generator, corpus, asked = np.random.default_rng(SEED), collection.corpus, collection.queries
    some = np.sort(generator.permutation(len(corpus))[:documents])
    few = np.sort(generator.permutation(len(asked))[:queries]).tolist()
    texts: dict[str, Any] = {
        "documents": {name: dict(corpus[name]) for name in corpus.ids.take(some).tolist()},
        "queries": {asked.ids[at]: asked.text[at] for at in few},
    }
    answers = _asked(one, texts, k)
    record = {"weir": weir.__version__, "system": str(one), "k": k, **texts, "answers": answers}
    path = path_of(out)
    write_text(path, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return path


@checked
def check_canary(canary: str | os.PathLike[str], allowed: float = 1e-3) -> ResultSet[CanaryCheck]:
    """Ask a system the queries of a canary file again; return how its answers differ (`weir study canary`).

    canary: a file that `make_canary` wrote.
    allowed: largest change of a score that counts as no change.

    The result is false if an answer changed. Raises FormatError for a missing or other file.
    """
    record = _read(path_of(canary))
    before, now = record["answers"], _asked(parse_system(record["system"]), record, record["k"])
    changed, most, reordered = list[_ChangedAnswer](), 0.0, 0
    for query, old in before.items():
        new = now.get(query, {})
        moved = max((abs(new[doc] - old[doc]) for doc in old if doc in new), default=math.nan)
        most = max(most, 0.0 if math.isnan(moved) else moved)
        other_order = list(old) != list(new) and not _tied(old, new, allowed)
        reordered += other_order
        if other_order or moved > allowed:
            changed.append(_ChangedAnswer(query, record["queries"][query], tuple(old), tuple(new), moved))
    check = CanaryCheck(
        record["system"], record["weir"], len(before), reordered, most, allowed, tuple(changed)
    )
    return ResultSet(CANARIES, (check,))


def _tied(old: Mapping[str, float], new: Mapping[str, float], allowed: float) -> bool:
    pairs = zip(old.values(), new.values(), strict=False)
    return old.keys() == new.keys() and all(abs(a - b) <= allowed for a, b in pairs)


def _asked(system: Retriever, texts: Mapping[str, Any], k: int) -> dict[str, dict[str, float]]:
    corpus, queries = Corpus.of(texts["documents"]), Queries.of(texts["queries"])
    with temporary_folder("canary") as folder:
        context = Context(folder / "index", reuse=False)
        return indexed(system, corpus, context).search(queries, k, context).to_dict()


def _read(path: Path) -> dict[str, Any]:
    record = parse_json(read_bytes(path), path, CANARY_FILE)
    wanted = {"system": str, "k": int, "documents": dict, "queries": dict, "answers": dict, "weir": str}
    if not isinstance(record, dict) or any(
        not isinstance(record.get(name), kind) for name, kind in wanted.items()
    ):
        raise FormatError(path, "no canary", CANARY_FILE)
    scores = [
        answer.values() if isinstance(answer, dict) else [None] for answer in record["answers"].values()
    ]
    if not all(isinstance(score, (int, float)) for answer in scores for score in answer):
        raise FormatError(path, "answers without scores", "{query: {document: score}}")
    if not record["answers"] or record["answers"].keys() - record["queries"].keys():
        raise FormatError(path, "answers to other queries, or to none", "an answer to each of its queries")
    return record
