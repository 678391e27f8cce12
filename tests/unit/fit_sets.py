"""Sets of queries, judgments and rankings that are fit to show a change of 0.05, and their single defects."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import weir

DOCS, QUERIES, GOLD, DEPTH = 1500, 700, 2, 100
SYSTEMS = ("alpha", "beta", "gamma")
CHANGE = 0.05


@dataclass
class FitSet:
    """A set as dicts, which a defect changes before it is written."""

    documents: dict[str, str]
    queries: dict[str, dict[str, str]]
    gold: dict[str, list[str]]
    runs: dict[str, dict[str, list[str]]]
    ranks: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def write(self, folder: Path) -> list[Path]:
        """Write a collection mine/ and a file for each ranking; return judgments and rankings."""
        (folder / "mine" / "qrels").mkdir(parents=True, exist_ok=True)
        rows = [{"_id": name, "text": text} for name, text in self.documents.items()]
        (folder / "mine" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        rows = [{"_id": name, **more} for name, more in self.queries.items()]
        (folder / "mine" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        judged = {q: dict.fromkeys(docs, 1) or {"none": 0} for q, docs in self.gold.items()}
        weir.Qrels.of(judged).save(folder / "mine" / "qrels" / "test.tsv")
        paths = [folder / "mine" / "qrels" / "test.tsv"]
        for name, run in self.runs.items():
            weir.Run.of(run).save(folder / f"{name}.trec")
            paths.append(folder / f"{name}.trec")
        return paths

    def rank(self, system: str, query: str, places: dict[str, int], draw: np.random.Generator) -> None:
        """Let a system rank documents at places from 0, and others by lot."""
        others = [f"d{n:04}" for n in draw.permutation(DOCS)[: DEPTH + GOLD].tolist()]
        docs = [doc for doc in others if doc not in self.gold[query]]
        for doc, place in sorted(places.items(), key=lambda one: one[1]):
            if place < DEPTH:
                docs.insert(place, doc)
        self.runs.setdefault(system, {})[query] = docs[:DEPTH]


def fit_set(seed: int = 0) -> FitSet:
    """Queries of every difficulty, three systems that agree on it by and large, and classes that are what they say."""
    draw = np.random.default_rng(seed)
    words = [f"w{n}" for n in range(400)]
    documents = {f"d{n:04}": " ".join(draw.choice(words, 40)) for n in range(DOCS)}
    made = FitSet(documents, {}, {}, {})
    for n in range(QUERIES):
        query, hard = f"q{n:03}", draw.random()
        made.gold[query] = [f"d{m:04}" for m in draw.choice(DOCS, GOLD, replace=False).tolist()]
        own = documents[made.gold[query][0]].split()
        made.queries[query] = {"text": " ".join(draw.choice(own, 4 if n % 2 else 9)), "size": "short" if n % 2 else "long",
                               "difficulty": "hard" if hard > 0.5 else "easy", "kind": "multi-doc"}  # fmt: skip
        for system in SYSTEMS:
            places = np.floor(np.exp(7 * hard + draw.normal(-1, 0.5, GOLD))).astype(int).tolist()
            made.rank(system, query, dict(zip(made.gold[query], places, strict=True)), draw)
    return made


def few(made: FitSet) -> None:
    """Twenty-five queries."""
    for name in list(made.queries)[25:]:
        del made.queries[name], made.gold[name]
        for run in made.runs.values():
            del run[name]


def at_the_ceiling(made: FitSet) -> None:
    """All systems find everything at once, but for a query in a hundred."""
    draw = np.random.default_rng(1)
    for system in SYSTEMS:
        for query, docs in made.gold.items():
            places = [0, 1] if draw.random() < 0.99 else [4, 30]
            made.rank(system, query, dict(zip(docs, places, strict=True)), draw)
    for more in made.queries.values():
        del more["difficulty"]


def gold_of_a_system(made: FitSet, depth: int = 5) -> None:
    """What the first system has on top is relevant, but for 3 of 100."""
    draw = np.random.default_rng(2)
    for query in made.gold:
        top = made.runs["alpha"][query][:depth]
        made.gold[query] = [doc if draw.random() < 0.97 else f"d{draw.integers(DOCS):04}" for doc in top]
    for more in made.queries.values():
        del more["difficulty"]
        del more["kind"]


def first_of_a_system(made: FitSet) -> None:
    """What the first system has at the first place is relevant."""
    gold_of_a_system(made, 1)


def part_of_a_systems_first(made: FitSet) -> None:
    """A half of what the first system has among its first ten is relevant, as if a model had looked at nothing else."""
    draw = np.random.default_rng(3)
    for query in made.gold:
        top = made.runs["alpha"][query][:10]
        made.gold[query] = [doc for doc in top if draw.random() < 0.5] or top[:1]
    for more in made.queries.values():
        del more["difficulty"]
        del more["kind"]


def gold_not_there(made: FitSet) -> None:
    """Three relevant documents are missing from the collection, and from the rankings."""
    lost = {made.gold[query][0] for query in ("q001", "q002", "q003")}
    for name in lost:
        del made.documents[name]
    for run in made.runs.values():
        for query, docs in run.items():
            run[query] = [doc for doc in docs if doc not in lost]


def other_identifiers(made: FitSet) -> None:
    """The second ranking has documents of another collection among its first."""
    for query, docs in made.runs["beta"].items():
        made.runs["beta"][query] = [f"x{doc}" if n % 7 == 3 else doc for n, doc in enumerate(docs)]


def older_documents(made: FitSet) -> None:
    """The second ranking was made before forty documents that are nobody's answer were there."""
    gold = {doc for docs in made.gold.values() for doc in docs}
    new = set([name for name in made.documents if name not in gold][:40])
    for query, docs in made.runs["beta"].items():
        made.runs["beta"][query] = [doc for doc in docs if doc not in new]


def easy_ones_are_hard(made: FitSet) -> None:
    """The classes of difficulty are exchanged."""
    for more in made.queries.values():
        more["difficulty"] = {"easy": "hard", "hard": "easy"}[more["difficulty"]]


def one_document_is_two(made: FitSet) -> None:
    """A class of single documents has two each."""
    for more in made.queries.values():
        more["kind"] = "single-doc"


def short_ones_are_long(made: FitSet) -> None:
    """The classes of length are exchanged."""
    for more in made.queries.values():
        more["size"] = {"short": "long", "long": "short"}[more["size"]]


def no_answer_has_one(made: FitSet) -> None:
    """A few queries are said to have no answer."""
    for query in ("q004", "q005"):
        made.queries[query]["kind"] = "no_answer"


DEFECTS = {
    few: "few queries",
    at_the_ceiling: "saturated",
    gold_of_a_system: "chosen by a system",
    first_of_a_system: "chosen by a system",
    part_of_a_systems_first: "chosen by a system",
    gold_not_there: "not in the index",
    other_identifiers: "other documents",
    older_documents: "other documents",
    easy_ones_are_hard: "contradicted classes",
    one_document_is_two: "contradicted classes",
    short_ones_are_long: "contradicted classes",
    no_answer_has_one: "contradicted classes",
}
"""Each defect, and what it is called."""
