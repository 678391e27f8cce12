"""docT5query: documents enlarged by the questions they answer, then searched by their words."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

from weir.core.corpus import Corpus, Queries, joined
from weir.core.run import Run
from weir.core.strings import Float64, StringColumn, Strings
from weir.encode.question_writer import QuestionWriter
from weir.encode.recipes.model_settings import given_settings
from weir.errors import BadValue, RankingWarning
from weir.settings import settings
from weir.systems.compose import shown, then
from weir.systems.composite import FolderShelf
from weir.systems.lexical.bm25 import BM25, BM25Searcher
from weir.systems.lexical.expansions import Expansions, contents, read_questions, written_questions
from weir.systems.lexical.rm3 import RM3, RM3Searcher
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Costs, called

__all__ = ["Doc2Query", "Doc2QuerySearcher"]

BLOCK_DOCUMENTS = 4096
"""Documents enlarged together."""
WRITING = tuple(f.name for f in fields(QuestionWriter))


@SYSTEMS.register("doc2query")
@dataclass(frozen=True)
class Doc2Query:
    """A lexical system over documents to which the questions they answer are added.

    system: bm25 or rm3, with any settings; model: a T5 that writes questions, a name of `weir models`, a name on the
    Hugging Face hub, or a folder; n: questions for each document; expansions: a file that holds them already, JSON
    lines of a document's `_id` and its `predicted_queries` (or one `query` a line, as BEIR publishes them), packed or
    not; then no model is needed. top_k: the likeliest words among which each is drawn; seed: of the draws, which
    belong to the document's text; max_length, max_words: tokens of a document read, of a question written, at most;
    dtype: fp32 or bf16; batch_tokens: 0 takes what suits the device. The questions stand behind the text, in the same
    field. They are kept in Weir's home: none is written twice. Source: Nogueira and Lin 2019 (docTTTTTquery), top-k
    sampling with k = 10, 40 questions as in the BEIR paper. Raises BadValue for settings out of range.
    """

    system: BM25 | RM3 = BM25()  # noqa: RUF009 - a frozen value
    model: str = "doc2query"
    n: int = 40
    expansions: str | None = None
    top_k: int = 10
    seed: int = 0
    max_length: int = 512
    max_words: int = 64
    dtype: str = "fp32"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.system, (BM25, RM3)):
            raise BadValue(f"doc2query enlarges documents for bm25 or rm3, not for {self.system}")
        if self.expansions is not None:
            if not isinstance(self.expansions, str) or not self.expansions.strip():
                raise BadValue(f"doc2query: expansions is {self.expansions!r}; expected a file")
            idle = [name for name in self._given if name in WRITING and name != "n"]
            if idle:
                raise BadValue(
                    f"doc2query: {idle[0]} means nothing beside expansions, which are written already"
                )
        _ = self.writer

    __repr__ = shown
    __rshift__ = then

    @cached_property
    def writer(self) -> QuestionWriter:
        """What writes the questions."""
        return QuestionWriter(
            self.model,
            self.n,
            self.top_k,
            self.seed,
            self.max_length,
            self.max_words,
            self.dtype,
            self.batch_tokens,
        )

    @property
    def _given(self) -> dict[str, object]:
        """The settings that are not by default."""
        return given_settings(self, leave_out=("system",))

    def __str__(self) -> str:
        first: list[object] = [] if self.system == BM25() else [self.system]
        return called("doc2query", first, self._given)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
        return {"system": "doc2query", "questions": self._source(), "of": self.system.describe()}

    def fetch(self) -> None:
        """Download the model that writes questions where one is needed and not here."""
        if self.expansions is None:
            self.writer.fetch()

    def _source(self) -> dict[str, object]:
        """Where the questions come from."""
        if self.expansions is None:
            return self.writer.describe(settings().device)
        return {"contents": contents(Path(self.expansions).expanduser()), "n": self.n}

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> Doc2QuerySearcher:
        """Write or read the questions that are missing, and index the enlarged documents.

        Warns (RankingWarning) where a file has no questions for some documents.
        """
        if self.expansions is None:
            found = written_questions(self.writer, corpus, context.for_part(0, 2).progress)
        else:
            found = read_questions(Path(self.expansions).expanduser(), corpus, self.n)
        if found.without:
            text = f"{self}: no questions for {found.without} of {len(corpus)} documents"
            warnings.warn(RankingWarning(text), stacklevel=2)
        enlarged = self._named(corpus, _enlarged(corpus, found))
        inner = FolderShelf(context.folder).index(self.system, enlarged, context.for_part(1, 2))
        assert isinstance(inner, (BM25Searcher, RM3Searcher))
        return Doc2QuerySearcher(self, inner, found.kept)

    def open(self, corpus: Corpus, context: Context) -> Doc2QuerySearcher:
        """Open what `index` wrote for the same corpus; raises StoreError where it is not complete."""
        # The index of words needs no texts any more: neither the questions nor the model.
        inner = FolderShelf(context.folder, build=False).index(self.system, self._named(corpus, corpus.text))
        assert isinstance(inner, (BM25Searcher, RM3Searcher))
        return Doc2QuerySearcher(self, inner)

    def _named(self, corpus: Corpus, text: StringColumn) -> Corpus:
        """The corpus with another text, named by what made it."""
        if not corpus.fingerprint:
            return replace(corpus, text=text)
        source = {name: value for name, value in self._source().items() if name != "engine"}
        shape = json.dumps([corpus.fingerprint, source], sort_keys=True, default=str)
        key = hashlib.blake2b(shape.encode("utf-8"), digest_size=16).hexdigest()
        return replace(corpus, text=text, fingerprint=key)


@dataclass(frozen=True, eq=False)
class Doc2QuerySearcher:
    """An index of enlarged documents; kept: documents whose questions were written before."""

    system: Doc2Query
    inner: BM25Searcher | RM3Searcher
    kept: int = 0

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; raises BadValue for k below 1."""
        return replace(self.inner.search(queries, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The scores of given documents, as `search` scores them."""
        return self.inner.scores(queries, candidates)

    def costs(self) -> Costs:
        """How many documents had their questions before; nothing is kept of a search."""
        return Costs(reused_documents=self.kept, repeatable=True)


def _enlarged(corpus: Corpus, questions: Expansions) -> Strings:
    """The texts with their questions behind them."""
    starts = range(0, len(corpus), BLOCK_DOCUMENTS)
    return Strings.concatenated(
        [
            joined(
                corpus.text.slice(s, s + BLOCK_DOCUMENTS),
                questions.block(s, min(s + BLOCK_DOCUMENTS, len(corpus))),
            )
            for s in starts
        ]
    )
