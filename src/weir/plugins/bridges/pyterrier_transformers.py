"""PyTerrier's transformers as systems, and systems as PyTerrier's transformers."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from weir.core.corpus import Corpus, Queries
from weir.datasets.load import Dataset
from weir.errors import BadValue, require
from weir.files.frames import run_from
from weir.plugins.bridges.candidates import candidate_ranking
from weir.systems.compose import as_reranker, as_system
from weir.systems.composite import indexed, rankings
from weir.systems.protocol import Reranker


@runtime_checkable
class FrameTransformer(Protocol):
    """An object of PyTerrier that maps one data frame to another."""

    def transform(self, inp: Any) -> Any:  # noqa: ANN401  a data frame to a data frame
        """Return rankings (qid, docno, score) for queries (qid, query), or for rankings."""


def from_pyterrier(
    transformer: object, reranks: bool = False, name: str | None = None, version: str | None = None
) -> Any:  # noqa: ANN401  a Retriever or a Reranker, as the transformer is
    """Return a transformer of PyTerrier as a system, or as a re-ranker.

    reranks: True for a re-ranker, for the right side of >>. Its transformer gets qid, query, docno and text.
    name: the printed name, by default the class's.
    version: a label that identifies stored results. Without it they are computed again in each process.

    Raises BadValue for another object.
    """
    if isinstance(transformer, type) or not isinstance(transformer, FrameTransformer):
        raise BadValue(
            f"found {transformer!r:.80}; expected a transformer of PyTerrier, with transform(frame)"
        )
    own = name or type(transformer).__name__

    def transformed(queries: dict[str, str], k: int) -> Any:  # noqa: ANN401  a data frame
        frame = _frame({"qid": list(queries), "query": list(queries.values())})
        return transformer.transform(frame)[["qid", "docno", "score"]]

    def scores(queries: list[str], documents: list[str]) -> Any:  # noqa: ANN401  numbers
        numbers = [str(number) for number in range(len(documents))]
        columns = {"qid": ["0"] * len(numbers), "query": queries, "docno": numbers, "text": documents}
        scored = transformer.transform(_frame({**columns, "score": 0.0, "rank": range(len(numbers))}))
        return scored.set_index("docno")["score"].reindex(numbers).to_numpy()

    return as_reranker(scores, name=own, version=version) if reranks else as_system(transformed, own, version)


def to_pyterrier(system: object, collection: Dataset | Corpus, k: int = 1000) -> Any:  # noqa: ANN401  a Transformer
    """Return a transformer of PyTerrier that searches a collection's documents by a system.

    system: a system, a re-ranker, or a function or object that `weir.system` takes.

    A frame of queries (qid, query) gives up to k documents each, with docno, score and rank from 0; a frame
    with documents is ordered by the system's scores, or its last re-ranker's. Other columns are kept. Raises
    BadValue for another object, MissingExtra without PyTerrier.
    """
    own = system if isinstance(system, Reranker) else as_system(system)
    corpus = collection if isinstance(collection, Corpus) else collection.corpus
    searcher = None if isinstance(own, Reranker) else indexed(own, corpus)
    library = require("pyterrier", "bridges")

    def transform(frame: Any) -> Any:  # noqa: ANN401  a data frame
        with library.validate.any(frame) as expected:
            expected.result_frame(extra_columns=["query", "score"])
            if searcher is not None:
                expected.query_frame(extra_columns=["query"])
        names = ["qid", "docno"] if "docno" in frame.columns else ["qid"]
        rows = frame.astype(dict.fromkeys(names, str))
        by_query = rows.drop_duplicates("qid")
        queries = Queries.of(dict(zip(by_query["qid"], by_query["query"], strict=True)))
        if "docno" in names:
            candidates = run_from(rows[["qid", "docno", "score"]])
            run = rankings(indexed(candidate_ranking(own, candidates), corpus), queries, len(corpus), own)
        else:
            assert searcher is not None  # a frame of queries alone was refused
            run = rankings(searcher, queries, k, own)
        columns = run.columns()
        ranked = {
            "qid": columns["query"],
            "docno": columns["doc"],
            "score": run.score,
            "rank": run.ranks() - 1,
        }
        others = rows.drop(columns=["score", "rank"], errors="ignore")
        return _frame(ranked).astype({"qid": str, "docno": str}).merge(others, on=names, how="left")

    return library.apply.generic(transform, label=str(own))


def _frame(columns: dict[str, Any]) -> Any:  # noqa: ANN401  a data frame
    return require("pandas", "bridges").DataFrame(columns)
