"""What faults are put into, and a process that puts them there: it may die, whoever started it sees how.

    python -m tests.fault_scenes SCENE,SCENE SEED COUNT FOLDER

A line of JSON is printed before each fault and one behind it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tests.faults import Fault
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.errors import StoreError, StoreWarning
from weir.files.corpus_store import open_store
from weir.files.layouts import CollectionPart
from weir.kernels.inverted import block_bounds as bounds
from weir.settings import settings
from weir.systems import BM25, RM3
from weir.systems.lexical.inverted_index import ImpactIndex, load_index, save_index, top_documents
from weir.systems.protocol import Context
from weir.systems.rerank.reranking import PairScorer

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "fish",
    "river",
    "weir",
    "water",
    "stone",
    "bridge",
    "flows",
    "over",
    "under",
    "red",
    "blue",
    "green",
    "one",
    "two",
    "three",
]
DOCUMENTS = 200


def texts(seed: int, longest: int) -> dict[str, dict[str, str]]:
    rng = np.random.default_rng(seed)
    drawn = (
        rng.choice([*WORDS, *(f"w{i}" for i in range(60))], rng.integers(1, longest))
        for _ in range(DOCUMENTS)
    )
    return {f"d{n}": {"title": WORDS[n % 19], "text": " ".join(words)} for n, words in enumerate(drawn)}


CORPUS = Corpus.of(texts(0, 60))
QUERIES = Queries.of({"q1": "red cat", "q2": "river under the bridge", "q3": "w1 w2 w3", "q4": "stone"})


def digest(run: Run) -> str:
    whole = hashlib.sha256()
    for part in (run.ptr.astype(np.int64), run.doc.astype(np.int64), run.score):
        whole.update(part.tobytes())
    return whole.hexdigest()


@dataclass(frozen=True)
class Scene:
    """A place that faults strike. struck: the folder below it; make: makes it; answer: uses what is there, and mends it.

    answer returns (a digest of the numbers, what was said of rebuilding).
    """

    struck: str
    make: Callable[[Path], object]
    answer: Callable[[Path], tuple[str, list[str]]]


def index_scene(system, struck: str = "index") -> Scene:
    """A system's index, opened, or built again as a results folder does it."""

    def answer(root: Path) -> tuple[str, list[str]]:
        said = []
        try:
            searcher = system().open(CORPUS, Context(root / "index"))
        except StoreError as error:
            said.append(str(error))
            searcher = system().index(CORPUS, Context(root / "index"))
        return digest(searcher.search(QUERIES, 10)), said

    return Scene(struck, lambda root: system().index(CORPUS, Context(root / "index")), answer)


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned sparse index with drawn weights, and columns for its frequent terms, small as it is."""

    found: ImpactIndex | None = None

    def index(self, corpus: Corpus, context: Context) -> Learned:
        from weir.kernels.inverted import byte_bounds as columns
        from weir.kernels.inverted.packed import packed
        from weir.kernels.inverted.search import Impacts
        from weir.systems.lexical.inverted_index import tie_order

        columns._LEAST_DOCUMENTS = 1
        rng = np.random.default_rng(2)
        sizes = rng.integers(0, len(corpus), 80)
        ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        doc = np.concatenate([np.sort(rng.permutation(len(corpus))[:n]) for n in sizes]).astype(np.int32)
        given = ptr, doc, rng.random(len(doc), np.float32), len(corpus)
        impacts = Impacts(len(corpus), ptr, packed(*given)).with_columns()
        save_index((ImpactIndex(impacts, (), tie_order(corpus)),), context.folder, {"documents": len(corpus)})
        return self.open(corpus, context)

    def open(self, corpus: Corpus, context: Context) -> Learned:
        (found,), _ = load_index(context.folder)
        return Learned(found)

    def search(self, queries: Queries, k: int) -> Run:
        rng = np.random.default_rng(3)
        ptr = 8 * np.arange(len(queries) + 1)
        term, weight = rng.integers(0, 80, ptr[-1]).astype(np.int32), rng.random(ptr[-1], np.float32)
        hits = top_documents(self.found, ptr, term, weight, k)
        return Run(queries.ids, CORPUS.ids, hits.ptr, hits.doc, hits.score, "learned")


def write_collection(root: Path) -> object:
    rows = ({"_id": name, **document, "metadata": {"n": 1}} for name, document in texts(0, 60).items())
    (root / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    os.utime(root / "corpus.jsonl", (1e9, 1e9))  # a copy is the same source
    return open_store(CollectionPart(root / "corpus.jsonl")).corpus


def answer_collection(root: Path) -> tuple[str, list[str]]:
    store = open_store(CollectionPart(root / "corpus.jsonl"))
    corpus = store.corpus
    assert corpus.ids.codes(["d7", "none", "d0"]).tolist() == [7, -1, 0]
    assert store.metadata[9] == '{"n": 1}'
    return digest(BM25().index(corpus).search(QUERIES, 10)) + corpus.fingerprint, []


def answer_documents(root: Path) -> tuple[str, list[str]]:
    """Only some documents are read, those of a re-ranker."""
    store = open_store(CollectionPart(root / "corpus.jsonl"))
    corpus, rows = store.corpus, np.array([5, 190, 7])
    columns = (
        store.metadata.take(rows),
        corpus.text.take(rows),
        corpus.title.take(rows),
        corpus.ids.take(rows),
        [corpus.text[3]],
    )
    return str([list(column) for column in columns]), []


class Hashed:
    """A model of pairs whose score both texts decide."""

    batch_independent, device = True, "cpu"

    def scores(self, pairs, done=None):
        def score(query: str, document: str) -> int:
            return int.from_bytes(
                hashlib.blake2b(f"{query} {document}".encode(), digest_size=3).digest(), "big"
            )

        yield np.array([score(*pair) for pair in pairs], np.float32)


def answer_pairs(root: Path) -> tuple[str, list[str]]:
    candidates = BM25().index(CORPUS).search(QUERIES, 150)
    scorer = PairScorer("hashed", Hashed(), {"model": "hashed"}, CORPUS)
    return hashlib.sha256(scorer.scores(QUERIES, candidates).tobytes()).hexdigest(), []


def dense(folder: Path):
    import torch
    import transformers

    from tests.neural.conftest import configs, sentence_transformer, write_tokenizer
    from weir.systems import parse_system

    if not folder.exists():
        torch.manual_seed(7)
        transformers.AutoModel.from_config(configs()["bert"]).eval().save_pretrained(folder)
        write_tokenizer(folder)
        sentence_transformer(folder)
    return parse_system(f'dense("{folder}")')


def late(folder: Path):
    from tests.neural.late_checkpoint import D, saved
    from weir.systems import parse_system

    if not folder.exists():
        saved(folder, "bert.")
        facts = {
            "query_maxlen": 12,
            "doc_maxlen": 40,
            "attend_to_mask_tokens": False,
            "mask_punctuation": True,
        }
        facts |= {
            "query_token_id": "[unused0]",
            "doc_token_id": "[unused1]",
            "dim": D,
            "similarity": "cosine",
        }
        (folder / "artifact.metadata").write_text(json.dumps(facts), encoding="utf-8")
    return parse_system(f'colbert("{folder}", bits=2, candidates=50)')


def scenes(folder: Path) -> dict[str, Scene]:
    """folder: where checkpoints are kept between them."""
    of_dense, of_late = partial(dense, folder / "dense"), partial(late, folder / "late")
    return {
        "bm25": index_scene(BM25),
        "multifield": index_scene(partial(BM25, "elastic")),
        "rm3": index_scene(RM3),
        "learned": index_scene(Learned),
        "collection": Scene("corpus.jsonl.weir", write_collection, answer_collection),
        "collection too": Scene("corpus.jsonl.weir", write_collection, answer_documents),
        "scores": Scene("home/scores", answer_pairs, answer_pairs),
        "dense index": index_scene(of_dense),
        "dense store": index_scene(of_dense, "home/vectors"),
        "late index": index_scene(of_late),
        "late store": index_scene(of_late, "home/vectors"),
    }


def at_home(root: Path) -> None:
    os.environ["WEIR_HOME"] = str(root / "home")
    settings.cache_clear()


def said_of(answer: Callable[[Path], tuple[str, list[str]]], root: Path) -> tuple[str, list[str]]:
    """The answer, and what was said of rebuilding, by errors and by warnings."""
    at_home(root)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", StoreWarning)
        found, said = answer(root)
    return found, said + [str(w.message) for w in given if issubclass(w.category, StoreWarning)]


def main(name: str, seed: int, count: int, folder: Path) -> None:
    scene = scenes(folder)[name]
    bounds.EXHAUSTIVE_DOCUMENTS = (
        DOCUMENTS if name == "bm25" else DOCUMENTS // 2
    )  # one is searched without bounds
    whole = folder / name / "whole"
    whole.mkdir(parents=True)
    at_home(whole)
    scene.make(whole)
    expected, said = said_of(scene.answer, whole)
    assert not said, said
    for number in range(count):
        root = shutil.copytree(whole, folder / name / str(number))
        fault = Fault.drawn(np.random.default_rng([seed, number]), root / scene.struck)
        print(json.dumps({"fault": f"{name} {number}: {fault}"}), flush=True)
        fault.strike(root / scene.struck)
        result: dict[str, object] = {}
        try:
            found, said = said_of(scene.answer, root)
            again, more = said_of(scene.answer, root)
            result |= {"same": found == expected, "said": said, "mended": again == expected and not more}
        except Exception:  # noqa: BLE001 - whatever it is, it is told
            result["traceback"] = traceback.format_exc()
        print(json.dumps(result), flush=True)
        shutil.rmtree(root)


if __name__ == "__main__":
    for one in sys.argv[1].split(","):
        main(one, int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
