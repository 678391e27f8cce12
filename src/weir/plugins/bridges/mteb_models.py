"""MTEB's models as systems, systems as models of MTEB, and its tasks as collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from weir.argument_types import shown_value
from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Ids, Strings
from weir.datasets.load import Dataset
from weir.errors import BadValue, require
from weir.experiment.published import task_collection
from weir.experiment.stages import slug
from weir.models.encoder import ObjectEncoder
from weir.plugins.bridges.candidates import candidate_ranking
from weir.plugins.bridges.export import system_revision
from weir.registry import Identity
from weir.systems.compose import (
    EncoderLike,
    FunctionReranker,
    FunctionSystem,
    PairPredictor,
    as_reranker,
    as_system,
)
from weir.systems.composite import indexed, rankings
from weir.systems.dense_search import DenseRetriever
from weir.systems.protocol import Reranker, Retriever, Searcher

SPLIT, SUBSET = "test", "default"
SIMILARITIES = {"cosine": "cosine", "dot": "dot"}


@runtime_checkable
class MtebEncoder(Protocol):
    """A model with the methods of MTEB's EncoderProtocol."""

    @property
    def mteb_model_meta(self) -> Any:  # noqa: ANN401  its ModelMeta
        """MTEB's ModelMeta of this model, with its name and revision."""

    encode: Callable[..., Any]
    similarity: Callable[..., Any]


@runtime_checkable
class MtebCrossEncoder(Protocol):
    """A model with the methods of MTEB's CrossEncoderProtocol."""

    @property
    def mteb_model_meta(self) -> Any:  # noqa: ANN401  its ModelMeta
        """MTEB's ModelMeta of this model, with its name and revision."""

    predict: Callable[..., Any]


@runtime_checkable
class MtebSearch(Protocol):
    """A model with the methods of MTEB's SearchProtocol."""

    @property
    def mteb_model_meta(self) -> Any:  # noqa: ANN401  its ModelMeta
        """MTEB's ModelMeta of this model, with its name and revision."""

    index: Callable[..., None]
    search: Callable[..., Mapping[str, Mapping[str, float]]]


@runtime_checkable
class MtebRetrievalTask(Protocol):
    """A task with the methods of MTEB's AbsTaskRetrieval."""

    metadata: Any
    data_loaded: bool
    ignore_identical_ids: bool
    skip_first_result: bool
    load_data: Callable[..., None]
    convert_v1_dataset_format_to_v2: Callable[..., None]


@runtime_checkable
class _Tensor(Protocol):
    def detach(self) -> Any:  # noqa: ANN401  a tensor
        ...


def from_mteb(
    model: object,
    task: object = None,
    batch_size: int = 32,
    name: str | None = None,
    version: str | None = None,
) -> Any:  # noqa: ANN401  a Retriever or a Reranker, as the model is
    """Return a model of MTEB as a system, a cross-encoder as a re-ranker for the right side of >>.

    model: an object of MTEB's encoder, cross-encoder or search protocol, such as `mteb.get_model(...)`.
    task: a task of MTEB, its metadata or name, by which models choose prompts, None for plain retrieval.
    name: the printed name, by default the model's.
    version: a label that identifies stored results. Without it they are computed again in each process.

    Vectors compared by cosine or dot product are searched by Weir, exactly; others by MTEB. Raises BadValue
    for another object, MissingExtra without mteb.
    """
    if isinstance(model, type) or not isinstance(model, (MtebEncoder, MtebCrossEncoder, MtebSearch)):
        itself = ""
        if isinstance(model, type):
            itself = f"; {model.__name__}(...) makes an object"
        elif isinstance(model, (Reranker, PairPredictor)):
            itself = "; the object itself is a re-ranker: weir.benchmark(collection, weir.BM25() >> model)"
        elif isinstance(model, (Retriever, EncoderLike)):
            itself = "; the object itself is a system: weir.benchmark(collection, systems=[model])"
        raise BadValue(
            f"found {_found(model)}; expected a model of MTEB, such as mteb.get_model('intfloat/e5-small'){itself}"
        )
    call = _Call(_metadata(task), batch_size)
    own = name or str(model.mteb_model_meta.name or type(model).__name__)
    identity = Identity.of(model, own, version)
    if isinstance(model, MtebSearch):
        return _of_model(as_system(_SearchObject(model, call), own, version), identity)
    if isinstance(model, MtebCrossEncoder):
        return _of_model(as_reranker(_PairScores(model, call), name=own, version=version), identity)
    similarity = str(model.mteb_model_meta.similarity_fn_name)
    if similarity not in SIMILARITIES:
        wrapper = require("mteb.models", "bridges").SearchEncoderWrapper
        return _of_model(as_system(_SearchObject(wrapper(model), call), own, version), identity)
    encode = _TextVectors(model, call)
    return DenseRetriever(ObjectEncoder(encode.queries, encode.documents, identity, SIMILARITIES[similarity]))


def _found(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return shown_value(value).replace("of type", "a value of type", 1)


def collections_from_mteb(task: object) -> list[Dataset]:
    """Return the collections of a retrieval task of MTEB, one for each subset and split, loaded if necessary.

    task: an object of MTEB's AbsTaskRetrieval, such as `mteb.get_task("SciFact")`.

    A collection has the task's name, followed by #subset unless that is the default. As in MTEB, instructions
    are appended to queries, only candidates are ranked, and a document that is the query is left out. Raises
    BadValue for another object, for conversations, and for a task that skips first results.
    """
    if isinstance(task, type) or not isinstance(task, MtebRetrievalTask):
        raise BadValue(
            f"found {_found(task)}; expected a retrieval task of MTEB, such as mteb.get_task('SciFact')"
        )
    name = str(task.metadata.name)
    if task.skip_first_result:
        raise BadValue(f"{name} leaves out the first document of each ranking, which Weir does not")
    if not task.data_loaded:
        task.load_data()
    task.convert_v1_dataset_format_to_v2(num_proc=None)
    found = []
    subsets: Mapping[str, Mapping[str, Any]] = vars(task)["dataset"]
    for subset, splits in subsets.items():
        for split, data in splits.items():
            own = task_collection(name, subset)
            parts = _documents(data["corpus"]), _queries(data["queries"]), data["relevant_docs"]
            one = Dataset.of(*parts, own, candidates=data["top_ranked"])
            [judgments] = one.layout.qrels.values()
            self_match = "drop" if task.ignore_identical_ids else "keep"
            layout = replace(one.layout, qrels={str(split): judgments}, self_match=self_match)
            found.append(replace(one, layout=layout, split=str(split)))
    return found


def to_mteb(system: object, name: str | None = None, revision: str | None = None) -> MtebSearchModel:
    """Return a system as a model of MTEB's search protocol: `mteb.evaluate(to_mteb(weir.BM25()), tasks)`.

    system: a system, a re-ranker, or a function or object that `weir.system` takes.
    name: the name in MTEB's results, by default weir/<system>.
    revision: by default a hash of everything that decides the rankings.

    The system's scores, or its last re-ranker, order given candidates. Raises BadValue for another object,
    MissingExtra without mteb.
    """
    own = system if isinstance(system, Reranker) else as_system(system)
    meta = require("mteb.models.model_meta", "bridges").ModelMeta
    about = {
        "name": name or f"weir/{slug(str(own))}",
        "revision": revision or system_revision(str(own), own.describe()),
    }
    return MtebSearchModel(own, meta.create_empty(about))


@dataclass(eq=False)
class MtebSearchModel:
    """A system of Weir with the methods of MTEB's SearchProtocol."""

    system: Retriever | Reranker
    mteb_model_meta: Any
    indexed: tuple[Corpus, Searcher | None] | None = None
    """The task's corpus and its searcher, which is None for a re-ranker."""

    def index(self, corpus: Any, **about: object) -> None:  # noqa: ANN401  a Dataset of the package datasets
        """Index the documents of a task (columns id, text, perhaps title), in place of earlier ones."""
        documents = _documents(corpus)
        searcher = None if isinstance(self.system, Reranker) else indexed(self.system, documents)
        self.indexed = documents, searcher

    def search(
        self,
        queries: Any,  # noqa: ANN401  a Dataset of the package datasets
        *,
        top_k: int,
        top_ranked: Mapping[str, list[str]] | None = None,
        **about: object,
    ) -> dict[str, dict[str, float]]:
        """Return {query: {document: score}} with up to `top_k` documents for each query.

        top_ranked: {query: the only documents to rank}.

        A column "instruction" is appended to the query's text, as in MTEB. Raises BadValue before `index`,
        for conversations, and for a re-ranker without top_ranked.
        """
        if self.indexed is None:
            raise BadValue(f"{self.system} has no corpus yet; call index first")
        documents, searcher = self.indexed
        own_queries = _queries(queries)
        if top_ranked is not None:
            searcher = indexed(candidate_ranking(self.system, Run.of(top_ranked)), documents)
        if searcher is None:
            raise BadValue(
                f"{self.system} only re-ranks the results of a system; give such as weir.BM25() >> {self.system}"
            )
        return rankings(searcher, own_queries, top_k, self.system).to_dict()


def _documents(corpus: Any) -> Corpus:  # noqa: ANN401  a Dataset of the package datasets
    titles = corpus["title"] if "title" in corpus.column_names else None
    return Corpus(
        Ids.of(map(str, corpus["id"])),
        Strings.of(text or "" for text in corpus["text"]),
        None if titles is None else Strings.of(title or "" for title in titles),
    )


def _queries(queries: Any) -> Queries:  # noqa: ANN401  a Dataset of the package datasets
    texts = list(queries["text"])
    if texts and not isinstance(texts[0], str):
        raise BadValue("the queries of this task are conversations; expected texts")
    if "instruction" in queries.column_names:
        pairs = zip(texts, queries["instruction"], strict=True)
        texts = [f"{text} {one}" if one is not None else text for text, one in pairs]
    return Queries.of(dict(zip(map(str, queries["id"]), texts, strict=True)))


def _of_model(part: Retriever | Reranker, identity: Identity) -> Retriever | Reranker:
    assert isinstance(part, (FunctionSystem, FunctionReranker))  # as what is no system of Weir's is adapted
    return replace(part, identity=identity)


@dataclass(frozen=True)
class _Call:
    metadata: Any
    batch_size: int

    def loader(self, texts: list[str], kind: str) -> Any:  # noqa: ANN401  a DataLoader of torch
        rows = require("datasets", "bridges").Dataset.from_dict({"text": texts, kind: texts})
        return require("torch.utils.data", "bridges").DataLoader(rows, batch_size=self.batch_size)

    def about(self) -> dict[str, Any]:
        encoding = {"batch_size": self.batch_size, "show_progress_bar": False}
        return {"task_metadata": self.metadata, "hf_split": SPLIT, "hf_subset": SUBSET} | encoding


@dataclass(frozen=True)
class _TextVectors:
    model: MtebEncoder
    call: _Call

    def queries(self, texts: list[str]) -> Any:  # noqa: ANN401  an array
        return self._encode(texts, "query", "query")

    def documents(self, texts: list[str]) -> Any:  # noqa: ANN401  an array
        return self._encode(texts, "body", "document")

    def _encode(self, texts: list[str], column: str, kind: str) -> Any:  # noqa: ANN401  an array
        prompt = require("mteb.types", "bridges").PromptType(kind)
        loader = self.call.loader(texts, column)
        return _array(self.model.encode(loader, prompt_type=prompt, **self.call.about()))


@dataclass(frozen=True)
class _PairScores:
    model: MtebCrossEncoder
    call: _Call

    def __call__(self, queries: list[str], documents: list[str]) -> Any:  # noqa: ANN401  an array
        loaders = self.call.loader(queries, "query"), self.call.loader(documents, "body")
        return _array(self.model.predict(*loaders, **self.call.about())).reshape(len(queries))


@dataclass(frozen=True)
class _SearchObject:
    model: MtebSearch
    call: _Call

    def about(self) -> dict[str, Any]:
        about = self.call.about()
        encoding = {name: about.pop(name) for name in ("batch_size", "show_progress_bar")}
        return {**about, "encode_kwargs": encoding, "num_proc": None}

    def index(self, documents: dict[str, str]) -> None:
        columns = {"id": list(documents), "text": list(documents.values()), "title": [""] * len(documents)}
        self.model.index(require("datasets", "bridges").Dataset.from_dict(columns), **self.about())

    def search(self, queries: dict[str, str], k: int) -> Mapping[str, Mapping[str, float]]:
        columns = {"id": list(queries), "text": list(queries.values())}
        rows = require("datasets", "bridges").Dataset.from_dict(columns)
        return self.model.search(rows, top_k=k, top_ranked=None, **self.about())


def _array(values: object) -> Any:  # noqa: ANN401  an array
    return values.detach().cpu().float().numpy() if isinstance(values, _Tensor) else np.asarray(values)


def _metadata(task: object) -> Any:  # noqa: ANN401  MTEB's TaskMetadata
    metadata = require("mteb.abstasks.task_metadata", "bridges").TaskMetadata
    if task is None:
        return metadata(
            name="Retrieval",
            description="A collection of one's own.",
            type="Retrieval",
            category="t2t",
            main_score="ndcg_at_10",
            eval_langs=["eng-Latn"],
            eval_splits=[SPLIT],
            dataset={"path": "weir/collection", "revision": "1"},
        )
    of_name: Any = require("mteb", "bridges").get_task(task) if isinstance(task, str) else task
    return of_name if isinstance(of_name, metadata) else of_name.metadata
