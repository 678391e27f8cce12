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
from weir.systems.protocol import Reranker, Retriever


@runtime_checkable
class FrameTransformer(Protocol):
    """A transformer of PyTerrier."""

    def transform(self, inp: Any) -> Any:  # noqa: ANN401  a data frame to a data frame
        """Queries (qid, query) to rankings (qid, docno, score), or rankings to rankings."""


def from_pyterrier(
    transformer: object, reranks: bool = False, name: str | None = None, version: str | None = None
) -> Retriever | Reranker:
    """A transformer of PyTerrier as a system, which is given queries (qid, query) and answers with qid, docno, score.

    reranks: whether it orders what another system finds instead; it is then a re-ranker, to stand behind >>, and is
    given qid, query, docno and text. name: how it prints, by default that of the class; version: what stands for it in
    keys; what one without a version makes is made again in each process. Raises BadValue for what is no transformer.
    """
    if isinstance(transformer, type) or not isinstance(transformer, FrameTransformer):
        raise BadValue(
            f"found {transformer!r:.80}; expected a transformer of PyTerrier, with transform(frame)"
        )
    own = name or type(transformer).__name__

    def answers(queries: dict[str, str], k: int) -> Any:  # noqa: ANN401  a data frame
        given = _frame({"qid": list(queries), "query": list(queries.values())})
        return transformer.transform(given)[["qid", "docno", "score"]]

    def scores(queries: list[str], documents: list[str]) -> Any:  # noqa: ANN401  numbers
        numbers = [str(number) for number in range(len(documents))]
        columns = {"qid": ["0"] * len(numbers), "query": queries, "docno": numbers, "text": documents}
        found = transformer.transform(_frame({**columns, "score": 0.0, "rank": range(len(numbers))}))
        return found.set_index("docno")["score"].reindex(numbers).to_numpy()

    return as_reranker(scores, name=own, version=version) if reranks else as_system(answers, own, version)


def to_pyterrier(system: object, collection: Dataset | Corpus, k: int = 1000) -> Any:  # noqa: ANN401  a Transformer
    """A system over the documents of a collection as a transformer of PyTerrier, for its pipelines and experiments.

    Frames of queries (qid, query) are answered with up to k documents each (docno, score, rank from 0), other columns
    of a query stay; frames that have documents are put in the order of the system's scores for them, or of its last
    re-ranker's. system: any, or a function or object that `weir.system` takes, or a re-ranker alone. Raises BadValue
    for what is none, MissingExtra without PyTerrier.
    """
    given = system if isinstance(system, Reranker) else as_system(system)
    corpus = collection if isinstance(collection, Corpus) else collection.corpus
    searcher = None if isinstance(given, Reranker) else indexed(given, corpus)
    library = require("pyterrier", "pyterrier")

    def transform(frame: Any) -> Any:  # noqa: ANN401  a data frame
        with library.validate.any(frame) as expected:
            expected.result_frame(extra_columns=["query", "score"])
            if searcher is not None:
                expected.query_frame(extra_columns=["query"])
        names = ["qid", "docno"] if "docno" in frame.columns else ["qid"]
        given_rows = frame.astype(dict.fromkeys(names, str))
        asked = given_rows.drop_duplicates("qid")
        queries = Queries.of(dict(zip(asked["qid"], asked["query"], strict=True)))
        if "docno" in names:
            candidates = run_from(given_rows[["qid", "docno", "score"]])
            run = rankings(indexed(candidate_ranking(given, candidates), corpus), queries, len(corpus), given)
        else:
            assert searcher is not None  # a frame of queries alone was refused
            run = rankings(searcher, queries, k, given)
        columns = run.columns()
        found = {
            "qid": columns["query"],
            "docno": columns["doc"],
            "score": run.score,
            "rank": run.ranks() - 1,
        }
        kept = given_rows.drop(columns=["score", "rank"], errors="ignore")
        return _frame(found).astype({"qid": str, "docno": str}).merge(kept, on=names, how="left")

    return library.apply.generic(transform, label=str(given))


def _frame(columns: dict[str, Any]) -> Any:  # noqa: ANN401  a data frame
    return require("pandas", "pyterrier").DataFrame(columns)
