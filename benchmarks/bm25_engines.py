"""The engines that bm25_real_bench.py compares, behind one small interface.

    build(source, folder)   index a corpus.jsonl, on disk where a folder is given, and be ready to answer
    open(folder, source)    open what build left in the folder
    prepare(texts)          what search takes: the queries, analysed where the engine allows that apart
    search(prepared, k)     answers to all of them, as the engine gives them
    whole(texts, k)         both in one, where the engine has a call for it
    answers(found, k)       for each query the document ids, best first (not timed)
    one(text, k)            a single query from its text to its answer

Settings are each tool's best for English at k1=0.9, b=0.4 where they can be set, single thread.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

K1, B = 0.9, 0.4


def read_jsonl(path: Path) -> Iterator[tuple[str, str]]:
    """(id, title and text) of every document, as a user of the peers would read them."""
    try:
        from orjson import loads
    except ImportError:
        from json import loads
    with path.open("rb") as file:
        for line in file:
            document = loads(line)
            yield document["_id"], f"{document.get('title') or ''} {document['text']}".strip()


class Weir:
    """Weir's `bm25`: keep="store" builds its Arrow store on the way, as `weir run` does; "memory" keeps nothing."""

    distributions = ("weir-ir", "numpy", "numba", "PyStemmer", "orjson")

    def __init__(self, keep: str = "store") -> None:
        from weir.systems import parse_system

        self.keep = keep
        self.system = parse_system("bm25")

    def build(self, source: Path, folder: Path | None) -> None:
        from weir.files.corpus_store import open_store

        corpus = self._in_memory(source) if self.keep == "memory" else open_store(self._part(source)).corpus
        from weir.systems.protocol import Context

        self.searcher = self.system.index(corpus, Context(folder))

    def open(self, folder: Path, source: Path) -> None:
        from weir.files.corpus_store import open_store
        from weir.systems.protocol import Context

        self.searcher = self.system.open(open_store(self._part(source)).corpus, Context(folder))

    @staticmethod
    def _part(source: Path) -> Any:
        from weir.files.layouts import CollectionPart

        return CollectionPart(source)

    def _in_memory(self, source: Path) -> Any:
        from weir.core.corpus import Corpus
        from weir.core.strings import Ids, Strings
        from weir.files.records import read_documents

        batches = list(read_documents(self._part(source)))
        ids, titles, texts = (
            Strings.concatenated([getattr(batch, name) for batch in batches])
            for name in ("ids", "titles", "texts")
        )
        return Corpus(Ids(ids), texts, titles)

    def texts(self, texts: list[str]) -> Any:
        from weir.core.corpus import Queries

        return Queries.of({str(number): text for number, text in enumerate(texts)})

    def prepare(self, texts: list[str]) -> Any:
        from weir.systems.lexical.bm25 import query_terms

        return query_terms(self.searcher.tables[0], self.texts(texts).text)

    def search(self, prepared: Any, k: int) -> Any:
        from weir.systems.lexical.inverted_index import top_documents

        return top_documents(self.searcher.parts[0], *prepared, k)

    def whole(self, texts: list[str], k: int) -> Any:
        return self.searcher.search(self.texts(texts), k)

    def answers(self, found: Any, k: int) -> list[list[str]]:
        names = self.searcher.corpus.ids.strings.take(found.doc).tolist()
        cuts = found.ptr.tolist()
        return [names[a:b] for a, b in itertools.pairwise(cuts)]

    def one(self, text: str, k: int) -> Any:
        return self.searcher.search(self.texts([text]), k)


class Bm25s:
    """bm25s with PyStemmer's English stemmer and its stopwords."""

    distributions = ("bm25s", "numpy", "numba", "PyStemmer", "orjson")

    def __init__(self, backend: str) -> None:
        import bm25s
        import Stemmer

        self.library = bm25s
        self.backend = backend
        self.stemmer = Stemmer.Stemmer("english")

    def _tokens(self, texts: list[str], return_ids: bool) -> Any:
        return self.library.tokenize(
            texts, stopwords="en", stemmer=self.stemmer, show_progress=False, return_ids=return_ids
        )

    def build(self, source: Path, folder: Path | None) -> None:
        ids, texts = [], []
        for name, text in read_jsonl(source):
            ids.append(name)
            texts.append(text)
        tokens = self._tokens(texts, True)
        del texts
        self.index = self.library.BM25(method="lucene", k1=K1, b=B, backend=self.backend)
        self.index.index(tokens, show_progress=False)
        self.ids = ids
        if folder is not None:
            self.index.save(folder)
            (folder / "ids.txt").write_text("\n".join(ids), encoding="utf-8")

    def open(self, folder: Path, source: Path) -> None:
        self.index = self.library.BM25.load(folder, show_progress=False)
        self.index.backend = self.backend
        if self.backend == "numba":
            self.index.activate_numba_scorer()
        self.ids = (folder / "ids.txt").read_text(encoding="utf-8").split("\n")

    def prepare(self, texts: list[str]) -> Any:
        known = self.index.vocab_dict
        found = [[t for t in tokens if t in known] for tokens in self._tokens(texts, False)]
        self.asked = [bool(tokens) for tokens in found]  # the library raises on a query without a known term
        return [tokens for tokens in found if tokens]

    def search(self, prepared: Any, k: int) -> Any:
        return self.index.retrieve(prepared, k=min(k, len(self.ids)), show_progress=False)

    def answers(self, found: Any, k: int) -> list[list[str]]:
        rows = iter(zip(found.documents, found.scores, strict=True))
        out: list[list[str]] = []
        for asked in self.asked:
            docs, scores = next(rows) if asked else ((), ())
            out.append([self.ids[int(d)] for d, s in zip(docs, scores, strict=True) if s > 0])
        return out

    def one(self, text: str, k: int) -> Any:
        prepared = self.prepare([text])
        return [self.ids[d] for d in self.search(prepared, k).documents[0]] if prepared else []


class Tantivy:
    """tantivy with its English stemmer, and its English stopwords where stop is set."""

    distributions = ("tantivy", "numpy", "orjson")

    def __init__(self, stop: bool) -> None:
        import tantivy

        self.library = tantivy
        self.name = "en_stop" if stop else "en_stem"
        kinds = tantivy.Filter
        chain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        chain = chain.filter(kinds.remove_long(40)).filter(kinds.lowercase())
        if stop:
            chain = chain.filter(kinds.stopword("english"))
        self.analyzer = chain.filter(kinds.stemmer("english")).build()

    def _ready(self) -> None:
        if self.name != "en_stem":
            self.index.register_tokenizer(self.name, self.analyzer)

    def build(self, source: Path, folder: Path | None) -> None:
        schema = self.library.SchemaBuilder()
        schema.add_text_field("body", stored=False, tokenizer_name=self.name, index_option="freq")
        schema.add_unsigned_field("number", stored=False, indexed=False, fast=True)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.index = self.library.Index(schema.build(), path=None if folder is None else str(folder))
        self._ready()
        writer = self.index.writer(heap_size=1_000_000_000, num_threads=1)
        ids = []
        for number, (name, text) in enumerate(read_jsonl(source)):
            document = self.library.Document()
            document.add_text("body", text)
            document.add_unsigned("number", number)
            writer.add_document(document)
            ids.append(name)
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher, self.ids = self.index.searcher(), ids
        if folder is not None:
            (folder / "ids.txt").write_text("\n".join(ids), encoding="utf-8")

    def open(self, folder: Path, source: Path) -> None:
        self.index = self.library.Index.open(str(folder))
        self._ready()
        self.searcher = self.index.searcher()
        self.ids = (folder / "ids.txt").read_text(encoding="utf-8").split("\n")

    def _query(self, text: str) -> Any:
        try:
            return self.index.parse_query(" ".join(re.findall(r"[^\W_]+", text.lower())), ["body"])
        except ValueError:  # a word that its own tokenizer cuts again would become a phrase
            query = self.library.Query
            terms = [
                query.term_query(self.index.schema, "body", word, index_option="freq")
                for word in self.analyzer.analyze(text)
            ]
            return query.boolean_query([(self.library.Occur.Should, term) for term in terms])

    def prepare(self, texts: list[str]) -> Any:
        return [self._query(text) for text in texts]

    def search(self, prepared: Any, k: int) -> Any:
        found = []
        for query in prepared:
            hits = self.searcher.search(query, k, count=False).hits
            found.append((self.searcher.fast_field_values("number", [place for _, place in hits]), hits))
        return found

    def answers(self, found: Any, k: int) -> list[list[str]]:
        return [[self.ids[int(n)] for n in numbers] for numbers, _ in found]

    def one(self, text: str, k: int) -> Any:
        return self.answers(self.search([self._query(text)], k), k)


class Fts5:
    """SQLite's full-text search with its Porter stemmer; k1 and b are fixed in it at 1.2 and 0.75."""

    distributions = ()

    def build(self, source: Path, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(":memory:" if folder is None else folder / "fts5.db")
        self.db.execute("pragma journal_mode=off")
        self.db.execute("pragma synchronous=off")
        self.db.execute("create virtual table t using fts5(body, content='', tokenize='porter unicode61')")
        self.ids = []

        def rows() -> Iterator[tuple[int, str]]:
            for number, (name, text) in enumerate(read_jsonl(source)):
                self.ids.append(name)
                yield number, text

        self.db.executemany("insert into t(rowid, body) values (?, ?)", rows())
        self.db.execute("insert into t(t) values('optimize')")
        self.db.commit()
        if folder is not None:
            (folder / "ids.txt").write_text("\n".join(self.ids), encoding="utf-8")

    def open(self, folder: Path, source: Path) -> None:
        self.db = sqlite3.connect(folder / "fts5.db")
        self.ids = (folder / "ids.txt").read_text(encoding="utf-8").split("\n")

    def prepare(self, texts: list[str]) -> Any:
        return [" OR ".join(f'"{word}"' for word in re.findall(r"\w+", text.lower())) for text in texts]

    def search(self, prepared: Any, k: int) -> Any:
        select = "select rowid, bm25(t) from t where t match ? order by rank limit ?"
        return [self.db.execute(select, (query, k)).fetchall() for query in prepared]

    def answers(self, found: Any, k: int) -> list[list[str]]:
        return [[self.ids[number] for number, _ in rows] for rows in found]

    def one(self, text: str, k: int) -> Any:
        return self.answers(self.search(self.prepare([text]), k), k)


class Pisa:
    """PISA through pyterrier-pisa: Porter2, Lucene's stopwords; the C++ call alone, without data frames."""

    distributions = ("pyterrier-pisa", "python-terrier", "numpy", "orjson")

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm

    def _opened(self, folder: Path) -> Any:
        from pyterrier_pisa import PisaIndex

        return PisaIndex(str(folder), text_field="text", stemmer="porter2", stops="lucene", threads=1)

    def build(self, source: Path, folder: Path | None) -> None:
        assert folder is not None, "PISA has no index in memory"
        self._opened(folder).index({"docno": name, "text": text} for name, text in read_jsonl(source))
        self.open(folder, source)  # the first query compresses the postings: part of making it searchable
        self.one("searchable", 10)

    def open(self, folder: Path, source: Path) -> None:
        self.index = self._opened(folder)
        self.retrievers = {
            k: self.index.bm25(k1=K1, b=B, num_results=k, query_algorithm=self.algorithm, threads=1)
            for k in (10, 100, 1000)
        }

    def prepare(self, texts: list[str]) -> Any:
        return list(enumerate(texts))  # analysis happens inside the call that searches

    def search(self, prepared: Any, k: int) -> Any:
        import numpy as np
        from pyterrier_pisa import _pisathon

        retriever, room = self.retrievers[k], len(prepared) * k
        query, name = np.empty(room, np.int32), np.empty(room, object)
        rank, score = np.empty(room, np.int32), np.empty(room, np.float32)
        filled = _pisathon.retrieve(
            retriever._ctxt,
            retriever.query_algorithm.value,
            prepared,
            k=k,
            threads=1,
            query_weighted=0,
            pretokenised=False,
            result_qidxs=query,
            result_docnos=name,
            result_ranks=rank,
            result_scores=score,
        )
        return len(prepared), query[:filled], name[:filled]

    def answers(self, found: Any, k: int) -> list[list[str]]:
        out: list[list[str]] = [[] for _ in range(found[0])]
        for query, name in zip(found[1].tolist(), found[2].tolist(), strict=True):
            out[query].append(name)
        return out

    def one(self, text: str, k: int) -> Any:
        return self.search(self.prepare([text]), k)


@dataclass(frozen=True)
class Entry:
    """An engine: the virtual environment it lives in, how it is made, and what it can do.

    in_memory, on_disk: where it can keep its index; indexes_as: the engine whose index is the same.
    """

    venv: str
    kind: Any
    settings: dict[str, Any] = field(default_factory=dict)
    in_memory: bool = True
    on_disk: bool = True
    indexes_as: str = ""


ENGINES = {
    "weir": Entry("weir", Weir),
    "weir without store": Entry("weir", Weir, {"keep": "memory"}, on_disk=False),
    "bm25s numpy": Entry("bm25s", Bm25s, {"backend": "numpy"}),
    "bm25s numba": Entry("bm25s", Bm25s, {"backend": "numba"}),
    "tantivy en_stem": Entry("tantivy", Tantivy, {"stop": False}),
    "tantivy stopwords": Entry("tantivy", Tantivy, {"stop": True}),
    "SQLite FTS5": Entry("weir", Fts5),
    "PISA MaxScore": Entry("pisa", Pisa, {"algorithm": "maxscore"}, in_memory=False),
    "PISA BlockMax-MaxScore": Entry(
        "pisa", Pisa, {"algorithm": "block_max_maxscore"}, in_memory=False, indexes_as="PISA MaxScore"
    ),
    "PISA BlockMax-WAND": Entry(
        "pisa", Pisa, {"algorithm": "block_max_wand"}, in_memory=False, indexes_as="PISA MaxScore"
    ),
}


def make(name: str) -> Any:
    """The engine of this name."""
    entry = ENGINES[name]
    return entry.kind(**entry.settings)
