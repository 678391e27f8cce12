"""Documents enlarged or reweighted before they are indexed: docT5query, DeepCT."""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries, check_view, joined
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64, StringColumn, Strings
from weir.errors import BadValue, FormatError, RankingWarning
from weir.files.json_files import read_records
from weir.files.text_files import check_regular, open_bytes
from weir.models.hardware import declared_device
from weir.models.sparse import TERM, LoadedSparse, SparseEncoder, special_tokens
from weir.models.t5 import QuestionWriter
from weir.registry import changed_settings, check_whole
from weir.settings import settings
from weir.systems.compose import shown, then
from weir.systems.composite import FolderShelf
from weir.systems.learned_sparse import VIEW, stored_terms
from weir.systems.lexical.bm25 import BM25, BM25Searcher, assembled, weighed
from weir.systems.lexical.inverted_index import save_index_of, tie_order
from weir.systems.lexical.rm3 import RM3, RM3Searcher
from weir.systems.lexical.terms import TermTable
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Costs, Progress, called
from weir.systems.rerank.reranking import Steps
from weir.systems.vectors.store import Block, EncodingBlocks, RaggedStore, TextSource, stored_ragged

# ----------
# Questions that documents answer: written by a model, or read from a file.


EXPANSION_VIEW = "title text"
ID_KEYS = ("_id", "id", "docid", "doc_id")
QUESTION_KEYS = ("predicted_queries", "queries", "querygen", "query")
"""Where a line of a file has its questions, a list or one text. BEIR's files have `query`, castorini's the first."""
BATCH_TEXTS = 1024
"""Texts handed to the model together; each window of it is kept as it comes."""
EXPECTED = "an object with a document's identifier (_id) and its questions (predicted_queries, or query) on each line"


@dataclass(frozen=True, eq=False)
class Expansions:
    """The questions of a corpus. lines: those of documents start..stop-1, a line for each question of a document;
    reused: documents whose questions were there before; without: documents that have none."""

    lines: Callable[[int, int], Strings]
    reused: int
    without: int = 0

    def block(self, start: int, stop: int) -> Strings:
        """The questions of documents start..stop-1, those of each joined by spaces."""
        lines = self.lines(start, stop)
        return Strings(np.where(lines.data == ord("\n"), np.uint8(ord(" ")), lines.data), lines.ptr)


def written_questions(writer: QuestionWriter, corpus: Corpus, progress: Progress | None) -> Expansions:
    """The questions of each document, written by a model; those of each text are kept in Weir's home.

    A killed process loses the few texts it was at. The model is loaded only where something is missing. Raises what
    the writer raises.
    """
    device, loaded, count = settings().device, None, 0
    store = RaggedStore.of(settings().home / "questions", writer.describe(device), 1)
    texts = TextSource(
        len(corpus), lambda start, stop: corpus.view(EXPANSION_VIEW, start, stop), corpus.ids.__getitem__
    )
    steps = Steps(progress, len(corpus))

    def questions(some: list[str]) -> Iterator[Block]:
        """The questions of texts as rows of bytes, a line for each question."""
        nonlocal loaded, count
        loaded = loaded or writer.load(device)
        for answers in loaded.questions(some, steps.within):
            lines = Strings.of("\n".join(q.replace("\n", " ") for q in each) for each in answers)
            count += len(lines)
            yield lines.ptr, lines.data[:, None]

    # On a processor a text is written about by itself, so that only what is missing has to be.
    cut = EncodingBlocks(BATCH_TEXTS, whole=declared_device(device) != "cpu")
    rows = stored_ragged(store, texts, questions, steps.batch, cut)

    def written(start: int, stop: int) -> Strings:
        ptr, data = rows.block(start, stop)
        return Strings(np.ascontiguousarray(data[:, 0]), ptr)

    return Expansions(written, max(len(corpus) - count, 0))


def read_questions(path: Path, corpus: Corpus, n: int) -> Expansions:
    """The first n questions of each document from a file of JSON lines, packed (.gz, .zst) or not.

    A line is an object with a document's identifier (`_id`, `id`, `docid`) and its questions, a list or a text, under
    `predicted_queries`, `queries`, `querygen` or `query`; a document may have several lines. Raises FormatError for
    another form, and where no line is of a document of the corpus.
    """
    codes, parts = list[Int32](), list[Strings]()
    try:
        with open_bytes(path) as stream:
            for records in read_records(stream, path):
                pairs = [_line(row, n, path, records.line(i)) for i, row in enumerate(records.rows)]
                code = corpus.ids.codes(Strings.of(name for name, _ in pairs))
                inside = np.flatnonzero(code >= 0)
                codes.append(code[inside])
                parts.append(Strings.of(text for _, text in pairs).take(inside))
    except FileNotFoundError:
        raise FormatError(path, "no such file", "a file of questions") from None
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(path, f"damage ({error})", "a file that can be read to its end") from None
    code = np.concatenate([np.empty(0, np.int32), *codes])
    if len(code) == 0:
        raise FormatError(path, "no line of a document of this collection", EXPECTED)
    order = np.argsort(code, kind="stable")
    ptr = np.searchsorted(code[order], np.arange(len(corpus) + 1))
    lines = Strings.concatenated(parts)

    def questions(start: int, stop: int) -> Strings:
        return Strings.of(
            "\n".join(lines.take(order[ptr[i] : min(ptr[i + 1], ptr[i] + n)]).tolist())
            for i in range(start, stop)
        )

    return Expansions(questions, len(corpus), int((np.diff(ptr) == 0).sum()))


def contents(path: Path) -> str:
    """A hash of a file; raises FormatError where it cannot be read."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    except OSError as error:
        raise FormatError(path, error.strerror or str(error), "a file of questions") from None


def _line(row: Mapping[str, object], n: int, path: Path, line: int) -> tuple[str, str]:
    """(document, its questions, a line for each) of a line of a file."""
    name = next((row[key] for key in ID_KEYS if key in row), None)
    value = next((row[key] for key in QUESTION_KEYS if key in row), None)
    name = str(name) if type(name) is int else name
    questions = [value] if isinstance(value, str) else value
    texts = isinstance(questions, list) and all(isinstance(q, str) for q in questions)
    if not isinstance(name, str) or not isinstance(questions, list) or not texts:
        raise FormatError(path, f"the keys {', '.join(row) or 'none'}", EXPECTED, line)
    return name, "\n".join(" ".join(q.splitlines()) for q in questions[:n])


# ----------
# docT5query: documents with the questions that they answer.


BLOCK_DOCUMENTS = 4096
"""Documents enlarged together."""
WRITING = tuple(f.name for f in fields(QuestionWriter))


@SYSTEMS.register("doc2query")
@dataclass(frozen=True)
class Doc2Query:
    """A lexical system over documents to which the questions they answer are added.

    system: bm25 or rm3, with any settings; model: a T5 that writes questions, a name of `weir list models`, a name on
    the Hugging Face hub, or a folder; n: questions for each document; expansions: a file that holds them already, JSON
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
                    f"doc2query: {idle[0]} does not apply with expansions, which are written already"
                )
        _ = self.writer

    __repr__ = shown
    __rshift__ = then

    @cached_property
    def writer(self) -> QuestionWriter:
        """What writes the questions."""
        return QuestionWriter(**{name: getattr(self, name) for name in WRITING})

    @property
    def _given(self) -> dict[str, object]:
        """The settings that are not by default."""
        return changed_settings(self, leave_out=("system",))

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

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ExpandedSearcher:
        """Write or read the questions that are missing, and index the enlarged documents.

        Warns (RankingWarning) where a file has no questions for some documents.
        """
        if self.expansions is None:
            expansions = written_questions(self.writer, corpus, context.for_part(0, 2).progress)
        else:
            expansions = read_questions(Path(self.expansions).expanduser(), corpus, self.n)
        if expansions.without:
            text = f"{self}: no questions for {expansions.without} of {len(corpus)} documents"
            warnings.warn(RankingWarning(text), stacklevel=2)
        texts = []
        for start in range(0, len(corpus), BLOCK_DOCUMENTS):
            stop = min(start + BLOCK_DOCUMENTS, len(corpus))
            texts.append(joined(corpus.text.slice(start, stop), expansions.block(start, stop)))
        enlarged = self._named(corpus, Strings.concatenated(texts))
        inner = FolderShelf(context.folder).index(self.system, enlarged, context.for_part(1, 2))
        assert isinstance(inner, (BM25Searcher, RM3Searcher))
        return ExpandedSearcher(self, inner, Costs(reused_documents=expansions.reused, repeatable=True))

    def open(self, corpus: Corpus, context: Context) -> ExpandedSearcher:
        """Open what `index` wrote for the same corpus; raises StoreError where it is not complete."""
        # The index of words needs no texts any more: neither the questions nor the model.
        inner = FolderShelf(context.folder, build=False).index(self.system, self._named(corpus, corpus.text))
        assert isinstance(inner, (BM25Searcher, RM3Searcher))
        return ExpandedSearcher(self, inner)

    def _named(self, corpus: Corpus, text: StringColumn) -> Corpus:
        """The corpus with another text, named by what made it."""
        if not corpus.fingerprint:
            return replace(corpus, text=text)
        source = {name: value for name, value in self._source().items() if name != "engine"}
        shape = json.dumps([corpus.fingerprint, source], sort_keys=True, default=str)
        key = hashlib.blake2b(shape.encode("utf-8"), digest_size=16).hexdigest()
        return replace(corpus, text=text, fingerprint=key)


@dataclass(frozen=True, eq=False)
class ExpandedSearcher:
    """An index of enlarged or reweighted documents. stored: what its making took, such as weights in a store."""

    system: Doc2Query | DeepCT
    inner: BM25Searcher | RM3Searcher
    stored: Costs = Costs(repeatable=True)  # noqa: RUF009 - a frozen value

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; raises BadValue for k below 1."""
        return replace(self.inner.search(queries, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The scores of given documents, as `search` scores them."""
        return self.inner.scores(queries, candidates)

    def costs(self) -> Costs:
        """What its making took; nothing is kept of a search."""
        return self.stored


# ----------
# DeepCT: documents in which a word occurs as often as a model weighs it.


SMOOTHINGS = ("none", "sqrt")
BLOCK_TOKENS = 1 << 18
"""Tokens whose weights are read from the store at once."""


@SYSTEMS.register("deepct")
@dataclass(frozen=True)
class DeepCT:
    """BM25 in which a word occurs in a document as often as a model of its context says that it should.

    model: a model that gives each token one number (BertForTokenClassification with one label), a name on the Hugging
    Face hub or a folder; system: bm25 over one field, with any settings. A word's weight w, that of its first piece
    and 0 if negative, becomes round(m * w) occurrences, or with smoothing "sqrt" round(m * sqrt(w)); of equal words the
    largest counts; keep: a word occurs once at least. view: what of a document is read; max_length: its tokens at
    most; dtype, engine, batch_tokens: see weir.models.Encoder. Defaults are those of BEIR's evaluate_deepct.py; Dai and
    Callan 2020 smooth nothing and keep no word of weight 0. Raises UnknownName or BadValue.
    """

    model: str
    system: BM25 = BM25(k1=18.0, b=0.7)  # noqa: RUF009 - a frozen value
    m: int = 100
    smoothing: str = "sqrt"
    keep: bool = True
    view: str = VIEW
    max_length: int = 350
    dtype: str = "fp32"
    engine: str = "auto"
    batch_tokens: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.system, BM25) or len(self.system.recipe.fields) > 1:
            raise BadValue(f"deepct counts words for bm25 over one field, not for {self.system}")
        if self.system.fields is not None:
            raise BadValue(f"deepct reads its own view, not that of {self.system}: deepct(..., view=...)")
        check_whole("deepct: m", self.m)
        if self.smoothing not in SMOOTHINGS:
            raise BadValue(f"deepct: smoothing is {self.smoothing!r}; expected {', '.join(SMOOTHINGS)}")
        if not isinstance(self.keep, bool):
            raise BadValue(f"deepct: keep is {self.keep!r}; expected True or False")
        check_view(self.view)
        _ = self.encoder

    __repr__ = shown
    __rshift__ = then

    @property
    def encoder(self) -> SparseEncoder:
        """What weighs the tokens."""
        reading = ("max_length", "dtype", "engine", "batch_tokens")
        return SparseEncoder("deepct", self.model, **{name: getattr(self, name) for name in reading})

    def __str__(self) -> str:
        arguments = changed_settings(self)
        first = [arguments.pop(name) for name in ("model", "system") if name in arguments]
        return called("deepct", first, arguments)

    def describe(self) -> dict[str, object]:
        """Everything that decides the rankings; raises DownloadError where the checkpoint is not here."""
        own = {"m": self.m, "smoothing": self.smoothing, "keep": self.keep, "view": self.view}
        about = self.encoder.describe(settings().device)
        return {"system": "deepct", "words": own, "encoder": about, "of": self.system.describe()}

    def fields_read(self) -> tuple[str, ...]:
        """The fields of a document that are encoded."""
        return (self.view,)

    def fetch(self) -> None:
        """Download the checkpoint where it is not here; raises DownloadError where that fails."""
        self.encoder.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ExpandedSearcher:
        """Weigh the tokens of all documents that the store does not hold, and index the words."""
        loaded = self.encoder.load(settings().device)
        weights, costs = stored_terms(loaded, corpus, self.view, context)
        words = Words.of(loaded)
        recipe = self.system.recipe
        table, order = TermTable(recipe.analysis), tie_order(corpus)

        def batches() -> Iterator[tuple[Int64, Int32]]:
            for _, _, (ptr, rows) in weights.blocks(BLOCK_TOKENS):
                tokens = np.ascontiguousarray(rows).reshape(-1).view(TERM)
                cuts, spelled, weight, word = words.of_tokens(ptr, tokens["term"], tokens["weight"])
                smooth = np.maximum(weight.astype(np.float64), 0.0)
                smooth = np.sqrt(smooth) if self.smoothing == "sqrt" else smooth
                times: Int64 = np.maximum(np.rint(self.m * smooth), 1 if self.keep else 0).astype(np.int64)
                yield _repeated(table, cuts, spelled, times, word)

        index = assembled([weighed(table, batches(), recipe, order)], order)
        if context.folder is None:
            return ExpandedSearcher(self, BM25Searcher(self.system, corpus, (index,)), costs)
        save_index_of(self, corpus, self.fields_read(), context.folder, (index,))
        return replace(self.open(corpus, context), stored=costs)

    def open(self, corpus: Corpus, context: Context) -> ExpandedSearcher:
        """Open an index that `index` wrote for the same corpus; the model is not needed any more."""
        return ExpandedSearcher(self, self.system.open(corpus, context))


@dataclass(frozen=True, eq=False)
class Words:
    """From pieces of words back to words. pieces: every token's text; goes_on: it is a later piece; special: it is
    none, such as [SEP]."""

    pieces: list[str]
    goes_on: NDArray[np.bool_]
    special: NDArray[np.bool_]

    @staticmethod
    def of(loaded: LoadedSparse) -> Words:
        """Those of an encoder's tokenizer; raises BadValue where no piece begins with ##, as BERT's do."""
        tokenizer = loaded.document.tokenizer
        names = {number: text for text, number in tokenizer.inner.get_vocab(with_added_tokens=True).items()}
        pieces = [names.get(n, "") for n in range(max(names) + 1)]
        if not any(p.startswith("##") for p in pieces):
            folder = loaded.recipe.layout.document.checkpoint.folder
            raise BadValue(f"{folder}: deepct puts words together from pieces that begin with ##; none does")
        special = np.zeros(len(pieces), np.bool_)
        special[special_tokens(tokenizer)] = True
        special |= np.array([p in ("[CLS]", "[SEP]", "[PAD]") for p in pieces])
        return Words(pieces, np.array([p.startswith("##") for p in pieces]), special)

    def of_tokens(
        self, ptr: Int64, token: Int32, weight: NDArray[np.float32]
    ) -> tuple[Int64, Strings, NDArray[np.float32], Int64]:
        """The distinct words of each text: (ptr int64[n + 1], texts of words, the largest weight of each in its text,
        the number of each one's text)."""
        use = ~self.special[token]
        text = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))[use]
        token, weight = token[use], weight[use]
        begins = ~self.goes_on[token]
        begins[1:] |= text[1:] != text[:-1]
        begins[:1] = True
        start = np.flatnonzero(begins)
        ends = np.append(start[1:], len(token)) - start
        number, spelled = self._numbered(token, start, ends)
        order = np.lexsort((-weight[start], number, text[start]))
        owner, number = text[start][order], number[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = (owner[1:] != owner[:-1]) | (number[1:] != number[:-1])
        owner, number, heaviest = owner[first], number[first], weight[start][order][first]
        cuts = np.searchsorted(owner, np.arange(len(ptr))).astype(np.int64)
        return cuts, Strings.of(spelled), heaviest, number

    def _numbered(self, token: Int32, start: Int64, length: Int64) -> tuple[Int64, list[str]]:
        """(the number of each word, the words): a word of one piece is known by that, others are put together."""
        numbers: dict[str, int] = {}
        spelled: list[str] = []
        single, number = np.full(len(self.pieces), -1, np.int64), np.empty(len(start), np.int64)

        def numbered(word: str) -> int:
            if word not in numbers:
                numbers[word] = len(spelled)
                spelled.append(word)
            return numbers[word]

        alone = length == 1
        for piece in np.unique(token[start[alone]]).tolist():
            single[piece] = numbered(self.pieces[piece])
        number[alone] = single[token[start[alone]]]
        for i in np.flatnonzero(~alone).tolist():
            at = int(start[i])
            parts = token[at : at + int(length[i])].tolist()
            rest = (self.pieces[p].removeprefix("##") for p in parts[1:])
            number[i] = numbered(self.pieces[parts[0]] + "".join(rest))
        return number, spelled


def _repeated(
    table: TermTable, ptr: Int64, spelled: Strings, times: Int64, number: Int64
) -> tuple[Int64, Int32]:
    """The terms of each text, those of a word as often as it occurs: (ptr int64[n + 1], term int32)."""
    starts, terms = table.add(spelled)
    size = np.diff(starts)[number]
    cuts = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size * times, out=cuts[1:])
    at = np.arange(cuts[-1]) - np.repeat(cuts[:-1], size * times)
    where = np.repeat(starts[:-1][number], size * times) + at % np.maximum(np.repeat(size, size * times), 1)
    return cuts[ptr], terms[where]
