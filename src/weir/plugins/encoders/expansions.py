"""Documents expanded, or with other term weights, before indexing: `doc2query`, `deepct`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import checked, named_arguments
from weir.core.corpus import Corpus, Queries, check_view, joined
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64, StringColumn, Strings
from weir.errors import BadValue, FormatError, warn_of_ranking
from weir.files.json_files import read_records
from weir.files.text_files import DAMAGE, check_regular, damaged, open_bytes
from weir.models.batching import Ragged
from weir.models.hardware import declared_device
from weir.plugins.encoders.learned_sparse import VIEW, term_encoding
from weir.plugins.encoders.sparse import TERM, LoadedSparse, SparseEncoder, special_tokens
from weir.plugins.encoders.t5 import QuestionWriter
from weir.registry import changed_settings, check_whole
from weir.settings import settings
from weir.systems.compose import system_text, then
from weir.systems.composite import FolderShelf
from weir.systems.encoded import encoded_documents, texts_of
from weir.systems.lexical.bm25 import BM25, BM25Searcher, assembled, weighed
from weir.systems.lexical.inverted_index import save_index_of, tie_order
from weir.systems.lexical.rm3 import RM3, RM3Searcher
from weir.systems.lexical.terms import TermTable
from weir.systems.protocol import ANSWERS, IN_MEMORY, SYSTEMS, Context, Costs, Progress, called, index_repr
from weir.systems.rerank.reranking import Steps
from weir.systems.restricted import permitted_only
from weir.systems.vectors.store import RAW, EncodingBlocks, RowStore, encoded_rows

# ----------
# Questions that documents answer: written by a model, or read from a file.


EXPANSION_VIEW = "title text"
ID_KEYS = ("_id", "id", "docid", "doc_id")
QUESTION_KEYS = ("predicted_queries", "queries", "querygen", "query")
"""Keys of a line's questions, a list or one text; BEIR's files have `query`, castorini's the first."""
BATCH_TEXTS = 1024
"""Texts handed to the model at once; smaller windows are stored as they come."""
EXPECTED = "an object with a document's identifier (_id) and its questions (predicted_queries, or query) on each line"


@dataclass(frozen=True, eq=False)
class Expansions:
    """Questions about each document, to be indexed with its text."""

    lines: Callable[[int, int], Strings]
    """(start, stop) -> the questions of each document, one on a line."""
    reused: int
    """Documents whose questions were stored before."""
    without: int = 0
    """Documents without questions."""

    def block(self, start: int, stop: int) -> Strings:
        """Return the questions of documents start..stop-1, one text for each document, joined by blanks."""
        lines = self.lines(start, stop)
        return Strings(np.where(lines.data == ord("\n"), np.uint8(ord(" ")), lines.data), lines.ptr)


def written_questions(writer: QuestionWriter, corpus: Corpus, progress: Progress | None) -> Expansions:
    """Return a model's questions about each document, kept in Weir's home by the document's text."""
    device, loaded, count = settings().device, None, 0
    store = RowStore.of(settings().home / "questions", writer.describe(device), RAW, 1)
    steps = Steps(progress, len(corpus))

    def encoded_questions(some: list[str]) -> Iterator[Ragged]:
        nonlocal loaded, count
        loaded = loaded or writer.load(device)
        for answers in loaded.questions(some, steps.within):
            lines = Strings.of("\n".join(q.replace("\n", " ") for q in each) for each in answers)
            count += len(lines)
            yield Ragged(lines.ptr, lines.data[:, None])

    # On a processor a text is written about by itself, so that only what is missing has to be.
    blocks = EncodingBlocks(BATCH_TEXTS, whole=declared_device(device) != "cpu")
    rows = encoded_rows(store, texts_of(corpus, EXPANSION_VIEW), encoded_questions, steps.batch, blocks)

    def question_block(start: int, stop: int) -> Strings:
        block = rows.rows(start, stop)
        return Strings(np.ascontiguousarray(block.values[:, 0]), block.ptr)

    return Expansions(question_block, max(len(corpus) - count, 0))


def read_questions(path: Path, corpus: Corpus, n: int) -> Expansions:
    """Return the first n questions of each document in a file of JSON lines, plain, .gz or .zst.

    Raises FormatError for a missing, damaged or other file, or one about no document of the corpus.
    """
    codes, parts = list[Int32](), list[Strings]()
    try:
        with open_bytes(path) as stream:
            for records in read_records(stream, path):
                pairs = [_line(row, n, path, records.line_number(i)) for i, row in enumerate(records.rows)]
                code = corpus.ids.codes(Strings.of(name for name, _ in pairs))
                inside = np.flatnonzero(code >= 0)
                codes.append(code[inside])
                parts.append(Strings.of(text for _, text in pairs).take(inside))
    except FileNotFoundError:
        raise FormatError(path, "no such file", "a file of questions") from None
    except DAMAGE as error:
        raise damaged(path, error) from None
    code = np.concatenate([np.empty(0, np.int32), *codes])
    if len(code) == 0:
        raise FormatError(path, "no line of a document of this collection", EXPECTED)
    order = np.argsort(code, kind="stable")
    ptr = np.searchsorted(code[order], np.arange(len(corpus) + 1))
    lines = Strings.concatenated(parts)

    def joined_questions(start: int, stop: int) -> Strings:
        return Strings.of(
            "\n".join(lines.take(order[ptr[i] : min(ptr[i + 1], ptr[i] + n)]).tolist())
            for i in range(start, stop)
        )

    return Expansions(joined_questions, len(corpus), int((np.diff(ptr) == 0).sum()))


def contents(path: Path) -> str:
    """Return 16 hex digits, a hash of a file's bytes; raises FormatError if it cannot be read."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    except OSError as error:
        raise FormatError(path, error.strerror or str(error), "a file of questions") from None


def _line(row: Mapping[str, object], n: int, path: Path, line: int) -> tuple[str, str]:
    name = next((row[key] for key in ID_KEYS if key in row), None)
    value = next((row[key] for key in QUESTION_KEYS if key in row), None)
    name = str(name) if type(name) is int else name
    questions = [value] if isinstance(value, str) else value
    texts = isinstance(questions, list) and all(isinstance(q, str) for q in questions)
    if not isinstance(name, str) or not isinstance(questions, list) or not texts:
        raise FormatError(path, f"the keys {', '.join(row) or 'none'}", EXPECTED, line)
    return name, "\n".join(" ".join(q.splitlines()) for q in questions[:n])


# ----------
# docT5query: documents with questions that they answer.


BLOCK_DOCUMENTS = 4096
"""Documents expanded at once."""
WRITING = tuple(f.name for f in fields(QuestionWriter))


@SYSTEMS.register("doc2query")
@named_arguments
@dataclass(frozen=True)
class Doc2Query:
    """Search by BM25 or RM3 over documents extended by questions that they answer.

    Questions are kept in Weir's home. Raises BadValue for settings out of range. Source: Nogueira and Lin 2019
    (docTTTTTquery).
    """

    system: BM25 | RM3 = BM25()  # noqa: RUF009 - a frozen value
    """bm25 or rm3, with any settings."""
    model: str = "doc2query"
    """T5 that writes questions: a name of `weir list models`, a name on the Hugging Face hub, or a folder."""
    n: int = 40
    """Questions for each document."""
    expansions: str | None = None
    """File of questions to use instead of a model: JSON lines of a document's `_id` and its `predicted_queries` (or
    one `query` a line, as BEIR publishes them), plain, .gz or .zst.
    """
    top_k: int = 10
    """Each word is drawn from the k likeliest."""
    seed: int = 0
    """Seed of the draws, which depend on the document's text alone."""
    max_length: int = 512
    """Tokens of a document that are read."""
    max_words: int = 64
    """Tokens of a question."""
    dtype: str = "fp32"
    """fp32 or bf16."""
    batch_tokens: int = 0
    """Tokens of a batch. 0 takes the device's default."""

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

    __repr__ = system_text
    __rshift__ = then

    @cached_property
    def writer(self) -> QuestionWriter:
        """The model that writes questions."""
        return QuestionWriter(**{name: getattr(self, name) for name in WRITING})

    @property
    def _given(self) -> dict[str, object]:
        return changed_settings(self, leave_out=("system",))

    def __str__(self) -> str:
        first: list[object] = [] if self.system == BM25() else [self.system]
        return called("doc2query", first, self._given)

    def describe(self) -> dict[str, object]:
        return {"system": "doc2query", "questions": self._source(), "of": self.system.describe()}

    def fetch(self) -> None:
        if self.expansions is None:
            self.writer.fetch()

    def _source(self) -> dict[str, object]:
        if self.expansions is None:
            return self.writer.describe(settings().device)
        return {"contents": contents(Path(self.expansions).expanduser()), "n": self.n}

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ExpandedSearcher:
        """Index the documents with their questions, from the file or else the model, and return the searcher.

        Warns (RankingWarning) if the file lacks questions for some documents; raises FormatError as
        `read_questions` does.
        """
        if self.expansions is None:
            expansions = written_questions(self.writer, corpus, context.for_part(0, 2).progress)
        else:
            expansions = read_questions(Path(self.expansions).expanduser(), corpus, self.n)
        if expansions.without:
            text = f"{self}: no questions for {expansions.without} of {len(corpus)} documents"
            warn_of_ranking(text)
        texts = []
        for start in range(0, len(corpus), BLOCK_DOCUMENTS):
            stop = min(start + BLOCK_DOCUMENTS, len(corpus))
            texts.append(joined(corpus.text.slice(start, stop), expansions.block(start, stop)))
        enlarged = self._named(corpus, Strings.concatenated(texts))
        inner = FolderShelf(context.folder).index(self.system, enlarged, context.for_part(1, 2))
        assert isinstance(inner, (BM25Searcher, RM3Searcher))
        return ExpandedSearcher(self, inner, Costs(reused_documents=expansions.reused, repeatable=True))

    def open(self, corpus: Corpus, context: Context) -> ExpandedSearcher:
        # The index of words needs no texts any more: neither the questions nor the model.
        inner = FolderShelf(context.folder, build=False).index(self.system, self._named(corpus, corpus.text))
        assert isinstance(inner, (BM25Searcher, RM3Searcher))
        return ExpandedSearcher(self, inner)

    def _named(self, corpus: Corpus, text: StringColumn) -> Corpus:
        if not corpus.fingerprint:
            return replace(corpus, text=text)
        source = {name: value for name, value in self._source().items() if name != "engine"}
        shape = json.dumps([corpus.fingerprint, source], sort_keys=True, default=str)
        key = hashlib.blake2b(shape.encode("utf-8"), digest_size=16).hexdigest()
        return replace(corpus, text=text, fingerprint=key)


@dataclass(frozen=True, eq=False)
class ExpandedSearcher:
    """A searcher of a BM25 or RM3 index over expanded or re-weighted documents."""

    system: Doc2Query | DeepCT
    inner: BM25Searcher | RM3Searcher
    stored: Costs = Costs(repeatable=True)  # noqa: RUF009 - a frozen value
    """Costs of making the searcher."""

    __repr__ = index_repr

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        return replace(self.inner.search(queries, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        return self.inner.scores(queries, candidates)

    def costs(self) -> Costs:
        return self.stored


# ----------
# DeepCT: documents in which a word occurs as often as a model weighs it.


SMOOTHINGS = ("none", "sqrt")
BLOCK_TOKENS = 1 << 18
"""Tokens whose weights are read from the store at once."""


@SYSTEMS.register("deepct")
@named_arguments
@dataclass(frozen=True)
class DeepCT:
    """Search by BM25 with word frequencies that a model predicts from each word's context.

    A word's weight is that of its first piece, at least 0, and the largest of equal words. Defaults are BEIR's.
    Raises UnknownName or BadValue for settings out of range.
    """

    # Dai and Callan 2020 use no smoothing and drop words of weight 0.

    model: str
    """Model that gives each token one number (BertForTokenClassification with one label): a name on the Hugging Face
    hub, or a folder.
    """
    system: BM25 = BM25(k1=18.0, b=0.7)  # noqa: RUF009 - a frozen value
    """bm25 over one field, with any settings."""
    m: int = 100
    """A word occurs round(m * w) times."""
    smoothing: str = "sqrt"
    """"sqrt" for round(m * sqrt(w)), or "none"."""
    keep: bool = True
    """A word occurs once at least."""
    view: str = VIEW
    """The field of a document that is read."""
    max_length: int = 350
    """Tokens of a document that are read."""
    dtype: str = "fp32"
    """See `dense`, also for engine and batch_tokens."""
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

    __repr__ = system_text
    __rshift__ = then

    @property
    def encoder(self) -> SparseEncoder:
        """The encoder of the tokens' weights."""
        reading = ("max_length", "dtype", "engine", "batch_tokens")
        return SparseEncoder("deepct", self.model, **{name: getattr(self, name) for name in reading})

    def __str__(self) -> str:
        arguments = changed_settings(self)
        first = [arguments.pop(name) for name in ("model", "system") if name in arguments]
        return called("deepct", first, arguments)

    def describe(self) -> dict[str, object]:
        own = {"m": self.m, "smoothing": self.smoothing, "keep": self.keep, "view": self.view}
        about = self.encoder.describe(settings().device)
        return {"system": "deepct", "words": own, "encoder": about, "of": self.system.describe()}

    def fields_read(self) -> tuple[str, ...]:
        return (self.view,)

    def fetch(self) -> None:
        self.encoder.fetch()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> ExpandedSearcher:
        loaded = self.encoder.load(settings().device)
        texts = texts_of(corpus, self.view)
        weights, reused = encoded_documents(term_encoding(loaded), texts, context)
        costs = Costs(int(weights.lengths.sum()) * TERM.itemsize, reused, repeatable=True)
        words = Words.of(loaded)
        recipe = self.system.recipe
        table, order = TermTable(recipe.analysis), tie_order(corpus)

        def batches() -> Iterator[tuple[Int64, Int32]]:
            for _, _, rows in weights.blocks(BLOCK_TOKENS):
                tokens = np.ascontiguousarray(rows.values).reshape(-1).view(TERM)
                cuts, spelled, weight, word = words._of_tokens(rows.ptr, tokens["term"], tokens["weight"])
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
        return ExpandedSearcher(self, self.system.open(corpus, context))


@dataclass(frozen=True, eq=False)
class Words:
    """A table from a tokenizer's word pieces to whole words."""

    pieces: list[str]
    """Text of every token."""
    goes_on: NDArray[np.bool_]
    """The token is a later piece of a word."""
    special: NDArray[np.bool_]
    """The token is no piece, such as [SEP]."""

    @staticmethod
    def of(loaded: LoadedSparse) -> Words:
        """Return the table of an encoder's tokenizer; raises BadValue unless later pieces begin with ##, as
        BERT's.
        """
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

    def _of_tokens(
        self, ptr: Int64, token: Int32, weight: NDArray[np.float32]
    ) -> tuple[Int64, Strings, NDArray[np.float32], Int64]:
        """Return the words of texts, each once by number with its largest weight, without special tokens: (ptr
        int64[texts + 1], distinct words, weights, word numbers).

        ptr, token, weight: tokens of text t are ptr[t]:ptr[t + 1].
        """
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
    starts, terms = table.add(spelled)
    size = np.diff(starts)[number]
    cuts = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size * times, out=cuts[1:])
    at = np.arange(cuts[-1]) - np.repeat(cuts[:-1], size * times)
    where = np.repeat(starts[:-1][number], size * times) + at % np.maximum(np.repeat(size, size * times), 1)
    return cuts[ptr], terms[where]
