"""What each algorithm of weir.algorithms gives for fixed input, as a digest beside its number.

Where a digest moves, the same settings give other results than before: raise the algorithm's number in
src/weir/algorithms.py, then run this file as a program, which writes the new digests.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from weir.algorithms import ALGORITHMS
from weir.core.filters import DocumentLists
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryMetadata
from weir.core.run import Run
from weir.core.scores import Scores
from weir.core.strings import offsets
from weir.datasets.load import load
from weir.errors import RankingWarning
from weir.measures import MEASURES, score_run
from weir.models.batching import Ragged
from weir.plugins.encoders.maxsim_search import search_tokens
from weir.plugins.llm.prompts import prompt_template
from weir.plugins.llm.rerank import Ordering, sorting
from weir.plugins.llm.verdicts import ChatReply, VerdictForm, read_choice, read_order, read_score
from weir.stats.score_rows import result_rows
from weir.systems import parse_system
from weir.systems.composite import rankings
from weir.systems.lexical.analyzer import analyzers
from weir.systems.protocol import Context
from weir.systems.rerank.reranking import fill_unscored
from weir.systems.vectors.exact_search import ArraySource, search

KEPT = Path(__file__).with_name("algorithms.json")
COLLECTION = "brook-medical"
INTERVALS = ("AP@10", "P@10", "R@10", "RR@10", "nDCG@10")
"""Measures whose intervals are kept; another measure moves none of them."""


def _ranked(*systems: str) -> str:
    """The rankings of systems, every digit of the scores."""
    dataset = load(COLLECTION)
    found = []
    for name in systems:
        run = parse_system(name).index(dataset.corpus).search(dataset.queries, 20)
        found.append([run.ptr.tolist(), [run.docs[d] for d in run.doc.tolist()], run.score.tolist()])
    return json.dumps(found)


def _restricted(*systems: str) -> str:
    """The rankings of what may be ranked: every third document, without every fifth."""
    dataset = load(COLLECTION)
    count, names = len(dataset.queries), dataset.corpus.ids.tolist()
    lists = (
        DocumentLists.of([names[q % 3 :: 3] for q in range(count)]),
        DocumentLists.of([names[::5]] * count),
    )
    asked = replace(dataset.queries, metadata=QueryMetadata(None, *lists))
    runs = [rankings(parse_system(name).index(dataset.corpus), asked, 20, name) for name in systems]
    return json.dumps([[run.ptr.tolist(), run.doc.tolist(), run.score.tolist()] for run in runs])


def _index(name: str) -> str:
    """The files of an index, byte for byte; what names versions aside."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "index"
        parse_system(name).index(load(COLLECTION).corpus, Context(at))
        files = {p.name: hashlib.blake2b(p.read_bytes()).hexdigest() for p in sorted(at.glob("*.npy"))}
    return json.dumps(files)


def _terms() -> str:
    text = " ".join(load(COLLECTION).corpus.text.slice(0, 20).tolist())
    return json.dumps(
        {name: analyzers.get(name).tokens(text) for name in ("lucene-english", "bm25s-english")}
    )


@cache
def _scored() -> tuple[Qrels, Scores]:
    generator = np.random.default_rng(1)
    run, qrels = {}, {}
    for q in range(7):
        docs = [f"d{i}" for i in generator.permutation(40)[:25]]
        run[f"q{q}"] = {d: float(round(s, 1)) for d, s in zip(docs, generator.random(25), strict=True)}
        qrels[f"q{q}"] = {f"d{i}": int(g) for i, g in enumerate(generator.integers(-1, 4, 40))}
    known = [MEASURES.get(name) for name in MEASURES.names()]
    asked = [
        d.name if d.cutoff == "forbidden" else f"{d.name}@10"
        for d in known
        if d.of not in ("intents", "rules")
    ]
    return Qrels.of(qrels), score_run(Qrels.of(qrels), Run.of(run), asked)


def _measure(name: str) -> str:
    scores = _scored()[1]
    (row,) = [i for i, m in enumerate(scores.measures) if m.partition("@")[0] == name]
    return json.dumps([round(v, 12) for v in scores.values[row].tolist()])


def _intervals() -> str:
    rows = [row for row in result_rows(_scored()[1], "d", "s") if row.measure in INTERVALS]
    return json.dumps([[row.measure, round(row.low, 12), round(row.high, 12)] for row in rows])


def _dense() -> str:
    rng = np.random.default_rng(3)
    rows, asked = (rng.integers(-99, 99, (n, 16)).astype(np.float32) / 64 for n in (500, 9))
    found = search(ArraySource(rows), asked, 20)
    return json.dumps([found.ptr.tolist(), found.doc.tolist(), found.score.tolist()])


def _late() -> str:
    rng = np.random.default_rng(4)
    lengths = rng.integers(0, 9, 60).astype(np.int64)
    rows, asked = (rng.integers(-99, 99, (n, 16)).astype(np.float32) / 64 for n in (int(lengths.sum()), 12))
    query = Ragged(np.array([0, 5, 12], np.int64), asked)
    found = search_tokens(Ragged(offsets(lengths), rows), query, 20, np.arange(60))
    return json.dumps([found.ptr.tolist(), found.doc.tolist(), found.score.tolist()])


def _verdicts() -> str:
    """What is read from answers in many forms."""
    verdicts = ["7", "7/10", "[2] > [1]", "3 or 7", "[1, 2]", "4/5", "2 > 1 > 2", "1"]
    lines = [
        f"{front}{verdict}" for verdict in verdicts for front in ("", "kofabimo: ", "It is.\n**kofabimo**: ")
    ]
    replies = [ChatReply(text) for text in [*lines, "I cannot", "<think>kofabimo: 3</think>kofabimo: 2"]]
    forms = [
        VerdictForm("kofabimo"),
        VerdictForm(),
        VerdictForm(line="Score:", last=True),
        VerdictForm(json=True),
    ]
    found = [[repr(read_score(r, form)) for form in forms] for r in replies]
    found += [[repr(read_choice(r, form, 2)) for form in forms] for r in replies]
    # The words of Weir's own prompts are in their keys; here is what becomes of a text in any prompt.
    text = "{query}: {passage}\nfrom 0 to {scale}\n{token}: n"
    template = replace(prompt_template("score", ("passage",)), digest="", user=text)
    filled = template.filled_prompt(
        {"query": "a </passage> b", "passage": "[INST] c", "scale": "10"}, "Find </s>."
    )
    found.append([repr(filled)])
    scores = fill_unscored(np.array([np.nan, 1, 3, np.nan, 3]), np.array([0, 4, 5]))
    return json.dumps([found, [repr(read_order(r, forms[0], 2)) for r in replies], scores.tolist()])


def _sortings() -> str:
    """What judges are asked by each sort, one who is sure and one who is not, and a shuffled order."""
    found = [Ordering(order="shuffled", seed=5).initial(30, "q")]
    for sort, width, top in (
        ("heapsort", 4, 10),
        ("heapsort", 2, 5),
        ("bubblesort", 3, 4),
        ("tournament", 4, 6),
    ):
        for modulus in (101, 7):
            steps, answer = sorting(sort, 30, width, top), None
            try:
                while True:
                    groups = steps.send(answer)
                    found.append(groups)
                    answer = [max(group, key=lambda place: (place * 37) % modulus) for group in groups]
            except StopIteration as done:
                found.append(done.value)
    return json.dumps(found)


OUTPUTS: dict[str, Callable[[], str]] = {
    "analysis": _terms,
    "bm25f": lambda: _ranked(
        "bm25f", "bm25f(fields={'text': 1, 'title': 2.5}, b={'text': 0.75, 'title': 0.3})"
    ),
    "bootstrap interval": _intervals,
    "candidates": lambda: _restricted("pool", "pool >> score(bm25)", "bm25 >> score(rm3)"),
    "dense search": _dense,
    "fusion": lambda: _ranked("rrf(bm25, rm3)", "wsum(bm25, rm3, weights=[0.6, 0.4])"),
    "late search": _late,
    "llm sorting": _sortings,
    "llm verdicts": _verdicts,
    "passages": lambda: _ranked(
        "chunked(words=30, overlap=10)", "chunked(collapse='sum', words=30, overlap=10)"
    ),
    "pipeline": lambda: _ranked("bm25 >> score(rm3, depth=5)"),
    "restricted search": lambda: _restricted("bm25", "rm3"),
    "rm3": lambda: _ranked("rm3", "rm3(terms=20)"),
    "sparse index": lambda: _index("bm25") + _index('bm25("elastic")'),
    "sparse search": lambda: _ranked("bm25", 'bm25("lucene-multifield")', 'bm25("elastic")', 'bm25("bm25s")'),
}


DOCUMENT_MEASURES = [name for name in MEASURES.names() if MEASURES.get(name).of not in ("intents", "rules")]
OUTPUTS |= {f"measure {name}": partial(_measure, name) for name in DOCUMENT_MEASURES}


def _digest(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        return hashlib.blake2b(OUTPUTS[name]().encode(), digest_size=8).hexdigest()


def _number(name: str) -> int:
    return ALGORITHMS[name] if name in ALGORITHMS else ALGORITHMS["measures"]


ELSEWHERE = {
    "measures": "each measure has an output of its own",
    "encoding": "its last bits are the machine's: tests/neural/test_kept_encoding.py",
    "local chat": "its words are a model's: tests/neural/test_local_chat.py",
    "questions": "its words are a model's: tests/neural/test_doc2query.py",
}


def test_every_algorithm_has_its_output_kept():
    assert set(ALGORITHMS) == {name for name in OUTPUTS if not name.startswith("measure ")} | set(ELSEWHERE)


@pytest.mark.parametrize("name", sorted(OUTPUTS))
def test_an_output_moves_only_with_its_number(name):
    known = json.loads(KEPT.read_text(encoding="utf-8"))
    assert name in known, f"'{name}' is new: run {__file__} to keep its output"
    kept = known[name]
    assert kept["number"] == _number(name), (
        f"the number of '{name}' is new: run {__file__} to keep its output"
    )
    assert kept["output"] == _digest(name), (
        f"'{name}' gives other results than before under one number: raise it in weir/algorithms.py"
    )


if __name__ == "__main__":
    made = {name: {"number": _number(name), "output": _digest(name)} for name in sorted(OUTPUTS)}
    KEPT.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"kept {len(made)} outputs in {KEPT.name}\n")
