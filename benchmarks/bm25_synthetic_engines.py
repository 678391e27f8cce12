"""The engines that bm25_synthetic.py compares; text is split at blanks and nothing else.

    build(folder, at)     index folder/corpus.txt, a document a line, on disk at `at`
    open(at, folder)      open what build left
    prepare(texts)        what search takes
    search(prepared, k)   answers to all of them, as the engine gives them
    scores(found)         per query the scores, best first (not timed)
    one(text, k)          a single query from its text to its answer

k1=0.9, b=0.4, but for tantivy, whose 1.2 and 0.75 are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

KS = (10, 100, 1000)
K1, B = 0.9, 0.4


def documents(folder: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of every document."""
    with (folder / "corpus.txt").open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file):
            yield str(number), line.rstrip("\n")


class Weir:
    distributions = ("weir-ir", "numpy", "numba")

    def __init__(self) -> None:
        from weir.systems import parse_system

        self.system = parse_system(f'bm25(k1={K1}, b={B}, analyzer="whitespace", lengths="exact")')

    def build(self, folder: Path, at: Path) -> None:
        from weir.systems.protocol import Context

        self.searcher = self.system.index(self._corpus(folder), Context(at))

    def open(self, at: Path, folder: Path) -> None:
        from weir.systems.protocol import Context

        self.searcher = self.system.open(self._corpus(folder), Context(at))

    @staticmethod
    def _corpus(folder: Path) -> Any:
        """The file as it lies there, mapped; a line's end is white space, too."""
        import numpy as np

        from weir.core.corpus import Corpus
        from weir.core.strings import Ids, Strings

        data = np.asarray(np.memmap(folder / "corpus.txt", np.uint8, "r"))
        step = 1 << 22
        ends = [
            np.flatnonzero(data[at : at + step] == ord("\n")) + at + 1 for at in range(0, len(data), step)
        ]
        ptr = np.concatenate([np.zeros(1, np.int64), *ends])
        return Corpus(
            Ids(Strings.packed([b"%d" % number for number in range(len(ptr) - 1)])), Strings(data, ptr)
        )

    def prepare(self, texts: list[str]) -> Any:
        from weir.core.strings import Strings
        from weir.systems.lexical.bm25 import query_terms

        return query_terms(self.searcher.tables[0], Strings.of(texts))

    def search(self, prepared: Any, k: int) -> Any:
        from weir.systems.lexical.inverted_index import top_documents

        return top_documents(self.searcher.parts[0], *prepared, k)

    def scores(self, found: Any) -> list[list[float]]:
        cuts = found.ptr.tolist()
        return [found.score[a:b].tolist() for a, b in pairwise(cuts)]

    def one(self, text: str, k: int) -> Any:
        return self.search(self.prepare([text]), k)


class Bm25s:
    distributions = ("bm25s", "numpy", "numba")

    def __init__(self) -> None:
        import bm25s

        self.library = bm25s

    def _tokens(self, texts: list[str], return_ids: bool) -> Any:
        return self.library.tokenize(
            texts,
            stopwords=None,
            lower=False,
            token_pattern="[^ ]+",
            show_progress=False,
            return_ids=return_ids,
        )

    def build(self, folder: Path, at: Path) -> None:
        tokens = self._tokens([text for _, text in documents(folder)], True)
        index = self.library.BM25(method="lucene", k1=K1, b=B, backend="numba")
        index.activate_numba_csc()
        index.index(tokens, show_progress=False)
        index.save(at)

    def open(self, at: Path, folder: Path) -> None:
        self.index = self.library.BM25.load(at, show_progress=False)
        self.index.backend = "numba"
        self.index.activate_numba_scorer()

    def prepare(self, texts: list[str]) -> Any:
        known = self.index.vocab_dict
        return [[t for t in tokens if t in known] for tokens in self._tokens(texts, False)]

    def search(self, prepared: Any, k: int) -> Any:
        return self.index.retrieve(prepared, k=k, show_progress=False)

    def scores(self, found: Any) -> list[list[float]]:
        return [[float(s) for s in row if s > 0] for row in found.scores]

    def one(self, text: str, k: int) -> Any:
        return self.search(self.prepare([text]), k)


class Tantivy:
    distributions = ("tantivy",)

    def __init__(self) -> None:
        import tantivy

        self.library = tantivy

    def _ready(self, index: Any) -> None:
        builder = self.library.TextAnalyzerBuilder(self.library.Tokenizer.whitespace())
        index.register_tokenizer("blank", builder.build())

    def build(self, folder: Path, at: Path) -> None:
        schema = self.library.SchemaBuilder()
        schema.add_text_field("body", stored=False, tokenizer_name="blank", index_option="freq")
        schema.add_unsigned_field("number", stored=False, indexed=False, fast=True)
        at.mkdir(parents=True, exist_ok=True)
        index = self.library.Index(schema.build(), path=str(at))
        self._ready(index)
        writer = index.writer(heap_size=1_000_000_000, num_threads=1)
        for number, (_, text) in enumerate(documents(folder)):
            document = self.library.Document()
            document.add_text("body", text)
            document.add_unsigned("number", number)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()

    def open(self, at: Path, folder: Path) -> None:
        self.index = self.library.Index.open(str(at))
        self._ready(self.index)
        self.searcher = self.index.searcher()

    def prepare(self, texts: list[str]) -> Any:
        return [self.index.parse_query(text, ["body"]) for text in texts]

    def search(self, prepared: Any, k: int) -> Any:
        found = []
        for query in prepared:
            hits = self.searcher.search(query, k, count=False).hits
            found.append((self.searcher.fast_field_values("number", [place for _, place in hits]), hits))
        return found

    def scores(self, found: Any) -> list[list[float]]:
        return [[score for score, _ in hits] for _, hits in found]

    def one(self, text: str, k: int) -> Any:
        return self.search(self.prepare([text]), k)


class Pisa:
    """The C++ call alone, without data frames."""

    distributions = ("pyterrier-pisa", "python-terrier")

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm

    def _opened(self, at: Path) -> Any:
        from pyterrier_pisa import PisaIndex

        return PisaIndex(str(at), text_field="text", stemmer="none", stops="none", threads=1)

    def build(self, folder: Path, at: Path) -> None:
        self._opened(at).index({"docno": name, "text": text} for name, text in documents(folder))
        self.open(at, folder)  # the first query compresses the postings: part of making it searchable
        self.one("searchable", 10)

    def open(self, at: Path, folder: Path) -> None:
        index = self._opened(at)
        self.retrievers = {
            k: index.bm25(k1=K1, b=B, num_results=k, query_algorithm=self.algorithm, threads=1) for k in KS
        }

    def prepare(self, texts: list[str]) -> Any:
        return list(enumerate(texts))

    def search(self, prepared: Any, k: int) -> Any:
        import numpy as np
        from pyterrier_pisa import _pisathon

        retriever, room = self.retrievers[k], len(prepared) * k
        found = {
            "result_qidxs": np.empty(room, np.int32),
            "result_docnos": np.empty(room, object),
            "result_ranks": np.empty(room, np.int32),
            "result_scores": np.empty(room, np.float32),
        }
        settings: dict[str, Any] = {"threads": 1, "query_weighted": 0, "pretokenised": False}
        algorithm = retriever.query_algorithm.value
        filled = _pisathon.retrieve(retriever._ctxt, algorithm, prepared, k=k, **settings, **found)
        return len(prepared), found["result_qidxs"][:filled], found["result_scores"][:filled]

    def scores(self, found: Any) -> list[list[float]]:
        out: list[list[float]] = [[] for _ in range(found[0])]
        for query, score in zip(found[1].tolist(), found[2].tolist(), strict=True):
            out[query].append(score)
        return out

    def one(self, text: str, k: int) -> Any:
        return self.search(self.prepare([text]), k)


ENGINES: dict[str, tuple[str, Any, tuple[Any, ...], int]] = {
    # name: (virtual environment, "" for Weir's own; class; its arguments; largest collection)
    "weir": ("", Weir, (), 10**9),
    "bm25s numba": ("bm25s", Bm25s, (), 10**9),
    "tantivy": ("tantivy", Tantivy, (), 10**9),
    "PISA MaxScore": ("pisa", Pisa, ("maxscore",), 200_000),  # its wheel never ends indexing a million
    "PISA BlockMax-MaxScore": ("pisa", Pisa, ("block_max_maxscore",), 200_000),
    "PISA BlockMax-WAND": ("pisa", Pisa, ("block_max_wand",), 200_000),
}
