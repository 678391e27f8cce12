"""DeepCT: a model says how much each word of a document matters, and BM25 takes that for how often it occurs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from weir.core.corpus import Corpus, Queries, check_view
from weir.core.run import Run
from weir.core.strings import Float64, Int32, Int64, Strings
from weir.encode.recipes.model_settings import given_settings
from weir.encode.sparse.sparse_encoder import LoadedSparse, SparseEncoder
from weir.encode.sparse.sparse_heads import TERM
from weir.encode.sparse.sparse_models import special_tokens
from weir.errors import BadValue
from weir.settings import settings
from weir.systems.compose import shown, then
from weir.systems.learned_sparse import VIEW, stored_terms
from weir.systems.lexical.bm25 import BM25, BM25Searcher
from weir.systems.lexical.inverted_index import ImpactIndex, save_index
from weir.systems.lexical.term_weights import assembled, tie_order, weighed
from weir.systems.protocol import IN_MEMORY, SYSTEMS, Context, Costs, called
from weir.text import analyzers
from weir.text.terms import TermTable
from weir.vectors.ragged_store import GatheredRagged

__all__ = ["DeepCT", "DeepCTSearcher", "Words"]

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
    most; dtype, engine, batch_tokens: see weir.encode.Encoder. Defaults are those of BEIR's evaluate_deepct.py; Dai and
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
        if type(self.m) is not int or self.m < 1:
            raise BadValue(f"deepct: m is {self.m!r}; expected a whole number from 1")
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
        return SparseEncoder(
            "deepct",
            self.model,
            max_length=self.max_length,
            dtype=self.dtype,
            engine=self.engine,
            batch_tokens=self.batch_tokens,
        )

    def __str__(self) -> str:
        given = given_settings(self, leave_out=())
        first = [given.pop(name) for name in ("model", "system") if name in given]
        return called("deepct", first, given)

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

    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> DeepCTSearcher:
        """Weigh the tokens of all documents that the store does not hold, and index the words."""
        loaded = self.encoder.load(settings().device)
        weights, kept = stored_terms(loaded, corpus, self.view, context.progress)
        index = self._counted(weights, Words.of(loaded), corpus)
        if context.folder is None:
            return DeepCTSearcher(self, BM25Searcher(self.system, corpus, (index,)), kept)
        facts = {
            "system": str(self),
            "corpus": corpus.fingerprint_with(self.fields_read()),
            "documents": len(corpus),
        }
        save_index((index,), context.folder, facts)
        return replace(self.open(corpus, context), stored=kept)

    def open(self, corpus: Corpus, context: Context) -> DeepCTSearcher:
        """Open an index that `index` wrote for the same corpus; the model is not needed any more."""
        return DeepCTSearcher(self, self.system.open(corpus, context))

    def _counted(self, weights: GatheredRagged, words: Words, corpus: Corpus) -> ImpactIndex:
        recipe = self.system.recipe
        table, order = TermTable(analyzers.get(recipe.analyzer)), tie_order(corpus)

        def batches() -> Iterator[tuple[Int64, Int32]]:
            for _, _, (ptr, rows) in weights.blocks(BLOCK_TOKENS):
                tokens = np.ascontiguousarray(rows).reshape(-1).view(TERM)
                found = words.of_tokens(ptr, tokens["term"], tokens["weight"])
                yield _repeated(table, *found[:2], self._times(found[2]), found[3])

        return assembled([weighed(table, batches(), recipe, order)], order)

    def _times(self, weight: NDArray[np.float32]) -> Int64:
        """How often a word of this weight occurs."""
        least = np.maximum(weight.astype(np.float64), 0.0)
        smooth = np.sqrt(least) if self.smoothing == "sqrt" else least
        times: Int64 = np.maximum(np.rint(self.m * smooth), 1 if self.keep else 0).astype(np.int64)
        return times


@dataclass(frozen=True, eq=False)
class DeepCTSearcher:
    """An index of words as often as they matter."""

    system: DeepCT
    inner: BM25Searcher
    stored: Costs = Costs(repeatable=True)  # noqa: RUF009 - a frozen value

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The k best documents for each query; raises BadValue for k below 1."""
        return replace(self.inner.search(queries, k, context), name=str(self.system))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """The scores of given documents, as `search` scores them."""
        return self.inner.scores(queries, candidates)

    def costs(self) -> Costs:
        """The weights in the store from which the index was made, and how many texts were there before."""
        return self.stored


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
        known: dict[str, int] = {}
        spelled: list[str] = []
        single, number = np.full(len(self.pieces), -1, np.int64), np.empty(len(start), np.int64)

        def numbered(word: str) -> int:
            if word not in known:
                known[word] = len(spelled)
                spelled.append(word)
            return known[word]

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
