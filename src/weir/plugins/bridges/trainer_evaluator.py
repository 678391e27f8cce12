"""An evaluator for the trainers of sentence-transformers."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from weir.api.evaluation import evaluate
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS
from weir.core.rounding import between
from weir.core.run import Run
from weir.core.scores import Row, Scores
from weir.datasets.load import Dataset, load
from weir.errors import BadValue, require
from weir.experiment.stages import slug
from weir.files.atomic import make_folder
from weir.measures import Measure, measures_of
from weir.models.encoder import as_encoder
from weir.models.protocols import DeclaredSimilarity, QueryDocumentEncoder
from weir.plugins.bridges.candidates import dense_run, sparse_run
from weir.stats.score_rows import result_rows
from weir.systems import BM25
from weir.systems.compose import PairPredictor, Pipeline, as_reranker, as_system
from weir.systems.protocol import Retriever

_BASE: Any = require("sentence_transformers.base.evaluation", "bridges").BaseEvaluator
_LOG = logging.getLogger(__name__)


@runtime_checkable
class SparseTextEncoder(Protocol):
    """A model that weighs terms, such as sentence-transformers' SparseEncoder."""

    def encode_query(self, texts: list[str]) -> object:
        """Return term weights of the queries as a sparse tensor [queries, terms]."""

    def encode_document(self, texts: list[str]) -> object:
        """Return term weights of the documents as a sparse tensor [documents, terms]."""

    def sparsity(self, embeddings: object) -> dict[str, float]:
        """Return statistics of term weights, such as the mean number of weighted terms of a text."""


@dataclass(frozen=True, eq=False)
class SentenceTransformersEvaluator(_BASE):  # type: ignore[misc]  # its trainers take instances of their own class alone
    """Evaluate a model while sentence-transformers trains it:
    evaluator=SentenceTransformersEvaluator("mine/").

    A SentenceTransformer or SparseEncoder ranks all documents exactly, a CrossEncoder re-ranks the first
    `depth` documents of `first`. A call returns <name>_<measure> and the ends of 95% intervals,
    <name>_<measure>_low and _high. With an output path it writes values by query (for `weir.Scores.load`) and
    means (for `weir.ResultSet.load`) to weir/<name>/. Raises the errors of `load` and `measures_of`.
    """

    dataset: Dataset | str | Path
    """A collection's name, folder or Dataset."""
    measures: Measure | str | Iterable[Measure | str] = ("nDCG@10", "R@100")
    """The first is the primary one."""
    name: str = ""
    """By default the collection's."""
    k: int = 1000
    """Documents that are ranked."""
    first: Retriever | None = None
    """The first stage of a CrossEncoder; None for BM25."""
    depth: int = 100
    """Documents that a CrossEncoder re-ranks."""
    batch_size: int = 32
    """Texts that the model encodes together."""
    dimensions: int | None = None
    """Dimensions that vectors are cut to; None for all."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "measures", measures_of(self.measures))
        object.__setattr__(self, "name", self.name or self.collection.name)

    @cached_property
    def collection(self) -> Dataset:
        """The collection, opened at the first use."""
        return self.dataset if isinstance(self.dataset, Dataset) else load(self.dataset)

    @property
    def greater_is_better(self) -> bool:
        """True: trainers keep the checkpoint with the highest value."""
        return True

    @property
    def primary_metric(self) -> str:
        """The key of the value by which a trainer chooses checkpoints: the first measure's."""
        return f"{self.name}_{measures_of(self.measures)[0]}"

    @property
    def description(self) -> str:
        """ "Information Retrieval", the evaluator's name on a model's card."""
        return "Information Retrieval"

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings shown on a model's card."""
        measured = [str(measure) for measure in measures_of(self.measures)]
        return {"collection": self.collection.fingerprint, "measures": measured, "k": self.k}

    def __call__(
        self,
        model: Any,  # noqa: ANN401  a model of sentence-transformers
        output_path: str | None = None,
        epoch: float = -1,
        steps: int = -1,
    ) -> dict[str, float]:
        """Return {<name>_<measure>: a model's mean}, with ends of intervals where defined; writes files to
        output_path.

        Raises BadValue for another kind of model.
        """
        scores = evaluate(self.collection.qrels, self._run(model), measures_of(self.measures))
        rows = result_rows(scores, self.name, type(model).__name__)
        metrics = {}
        for row in rows:
            metrics[f"{self.name}_{row.measure}"] = row.mean
            if not math.isnan(row.low):
                metrics[f"{self.name}_{row.measure}_low"] = row.low
                metrics[f"{self.name}_{row.measure}_high"] = row.high
            _LOG.info("%s: %s %.4f %s", self.name, row.measure, row.mean, between(row.low, row.high))
        if output_path is not None:
            _write(Path(output_path) / "weir" / slug(self.name), f"epoch{epoch:g}-step{steps}", scores, rows)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    def _run(self, model: object) -> Run:
        corpus, queries, drop = self.collection.corpus, self.collection.queries, self.collection.self_match
        k = self.k + (drop == "drop")
        options: dict[str, Any] = {"batch_size": self.batch_size, "show_progress_bar": False}
        if isinstance(model, PairPredictor):
            run = self._reranked(partial(model.predict, **options), type(model).__name__, k)
        elif isinstance(model, SparseTextEncoder):
            declared = model.similarity_fn_name if isinstance(model, DeclaredSimilarity) else None
            if declared not in (None, "dot"):
                raise BadValue(f"found a {type(model).__name__} whose similarity is {declared}; expected dot")
            query, document = (partial(f, **options) for f in (model.encode_query, model.encode_document))
            run = sparse_run(query, document, corpus, queries, k)
        elif isinstance(model, QueryDocumentEncoder):
            encoder, cut = as_encoder(model), {"truncate_dim": self.dimensions}
            query, document = (partial(f, **options, **cut) for f in (encoder.query, encoder.document))
            run = dense_run(replace(encoder, query=query, document=document), corpus, queries, k)
        else:
            name = type(model).__name__
            raise BadValue(f"found a {name}; expected a SentenceTransformer, SparseEncoder or CrossEncoder")
        return run.without_self().top(self.k) if drop == "drop" else run

    def _reranked(self, predict: Callable[[list[tuple[str, str]]], object], name: str, k: int) -> Run:
        def candidates(queries: dict[str, str], depth: int) -> Run:
            return self._candidates

        def score_pairs(queries: list[str], documents: list[str]) -> object:
            return predict(list(zip(queries, documents, strict=True)))

        system = Pipeline(as_system(candidates), as_reranker(score_pairs, self.depth, name))
        return system.index(self.collection.corpus).search(self.collection.queries, k)

    @cached_property
    def _candidates(self) -> Run:
        first = (self.first or BM25()).index(self.collection.corpus)
        return first.search(self.collection.queries, self.k + 1)


def _write(folder: Path, name: str, scores: Scores, rows: list[Row]) -> None:
    make_folder(folder)
    names = (name + (f"-{n}" if n > 1 else "") for n in count(1))
    free = next(one for one in names if not (folder / f"{one}.json").exists())
    scores.save(folder / f"{free}.scores.json")
    ResultSet(ROWS, tuple(rows)).save(folder / f"{free}.json")
