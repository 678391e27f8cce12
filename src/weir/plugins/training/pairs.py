"""Training pairs of an encoder: a query, a text that answers it, and documents that do not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weir.argument_types import checked_fields, named_arguments
from weir.audit.leakage import leaks
from weir.core.corpus import Corpus, Queries
from weir.core.rounding import counted
from weir.core.strings import Int32
from weir.core.subject import Training
from weir.datasets.load import Dataset
from weir.errors import BadValue, FormatError
from weir.files.json_files import json_rows
from weir.files.text_files import Watch
from weir.models.cross_encoder import CrossEncoder
from weir.plugins.encoders.expansions import contents, read_questions, written_questions
from weir.plugins.encoders.t5 import QuestionWriter
from weir.plugins.llm.chat import ChatModel, cached_chat, default_model
from weir.plugins.llm.prompts import ChatPrompt, prompt_template
from weir.plugins.llm.verdicts import ChatReply, VerdictForm, VerdictKind, read_verdict
from weir.services.answers import ServiceUsage
from weir.settings import settings
from weir.systems.lexical.bm25 import BM25

VIEW = "title text"
"""The field of a document that is read."""
CONCURRENCY = 8
"""Concurrent requests to a language model."""


@dataclass(frozen=True, eq=False)
class TrainingPairs:
    """Training examples: queries, each with a relevant text and negative documents."""

    queries: tuple[str, ...]
    positives: tuple[str, ...]
    document: Int32
    """int32[pairs], the position of the positive document; -1 for a text outside the collection."""
    negatives: Int32
    """int32[pairs, negatives], positions of documents."""
    margins: np.ndarray[Any, np.dtype[np.float64]] | None = None
    """float64[pairs, negatives], a cross-encoder's score of the positive minus that of the negative."""

    def __len__(self) -> int:
        return len(self.queries)

    def take(self, rows: Sequence[int]) -> TrainingPairs:
        some = list(rows)
        return TrainingPairs(
            tuple(self.queries[i] for i in some),
            tuple(self.positives[i] for i in some),
            self.document[some],
            self.negatives[some],
            None if self.margins is None else self.margins[some],
        )

    def content_hash(self) -> str:
        """Return a hash of all texts, documents and margins, as 32 hex digits."""
        whole = hashlib.blake2b(digest_size=16)
        for text in (*self.queries, *self.positives):
            whole.update(text.encode("utf-8", "surrogatepass") + b"\0")
        for array in (self.document, self.negatives, self.margins):
            whole.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
        return whole.hexdigest()


def pairs_of(rows: Sequence[tuple[str, str, int]]) -> TrainingPairs:
    """Return pairs without negatives from rows (query, relevant text, position of its document)."""
    document = np.array([row[2] for row in rows], np.int32)
    none = np.zeros((len(rows), 0), np.int32)
    return TrainingPairs(tuple(r[0] for r in rows), tuple(r[1] for r in rows), document, none)


class PairSource(Protocol):
    """A source of training pairs (query, relevant text) from a collection."""

    def describe(self) -> dict[str, object]:
        """Return {name: value} of the settings that determine the pairs, besides collection and seed."""

    def pairs(self, dataset: Dataset, seed: int, progress: Watch) -> TrainingPairs:
        """Return (query, relevant text) pairs of a collection, without negatives.

        seed: decides all draws.
        progress: called with (step, done, total).
        """


# ----------
# Sources of pairs.


@checked_fields
@dataclass(frozen=True)
class Crops:
    """Pairs of two random spans of a document, without queries; raises BadValue for shares out of range."""

    least: float = 0.05
    """Shortest span, as a share of the document's words."""
    most: float = 0.5
    """Longest span, as a share of the document's words."""
    words: int = 5
    """Shortest span in words; shorter documents give no pair."""
    deleted: float = 0.1
    """Share of a span's words that are left out at random."""
    each: int = 1
    """Pairs of a document."""

    def __post_init__(self) -> None:
        if not (0 < self.least <= self.most <= 1 and 0 <= self.deleted < 1):
            raise BadValue(
                f"crops: least is {self.least}, most {self.most}, deleted {self.deleted}; expected "
                "0 < least <= most <= 1 and 0 <= deleted < 1"
            )
        if self.words < 1 or self.each < 1:
            raise BadValue("crops: words and each are whole numbers from 1")

    def describe(self) -> dict[str, object]:
        return {
            "pairs": "crops", "least": self.least, "most": self.most, "words": self.words, "deleted": self.deleted,
            "each": self.each,
        }  # fmt: skip

    def pairs(self, dataset: Dataset, seed: int, progress: Watch) -> TrainingPairs:
        """Return pairs of random spans of each document; documents that are too short give none.

        Draws depend on the document's identifier and the seed alone.
        """
        corpus = dataset.corpus
        rows = []
        for number, text in enumerate(_texts(corpus)):
            words = text.split()
            if len(words) < self.words:
                continue
            name = hashlib.blake2b(corpus.ids[number].encode("utf-8"), digest_size=8).digest()
            random = np.random.default_rng([seed, int.from_bytes(name, "little")])
            for _ in range(self.each):
                rows.append((self._span(words, random), self._span(words, random), number))
        return pairs_of(rows)

    def _span(self, words: list[str], random: np.random.Generator) -> str:
        size = round(len(words) * random.uniform(self.least, self.most))
        size = min(max(size, self.words), len(words))
        start = int(random.integers(len(words) - size + 1))
        kept = random.random(size) >= self.deleted
        if not kept.any():
            kept[:] = True
        return " ".join(word for word, keep in zip(words[start : start + size], kept, strict=True) if keep)


@named_arguments
@dataclass(frozen=True)
class GivenPairs:
    """Pairs that people judged, or that a file has; raises FormatError for a missing or malformed file, and
    the errors of `weir.load`."""

    split: str = "train"
    """The split whose judgments are learned: its queries with documents of a grade above 0."""
    file: str | None = None
    """JSON lines with the texts query and positive, used instead of the split."""

    def describe(self) -> dict[str, object]:
        if self.file is None:
            return {"pairs": "judged", "split": self.split}
        return {"pairs": "file", "contents": contents(Path(self.file).expanduser())}

    def pairs(self, dataset: Dataset, seed: int, progress: Watch) -> TrainingPairs:
        if self.file is not None:
            by_text = {text: number for number, text in enumerate(_texts(dataset.corpus))}
            read = _read_pairs(Path(self.file).expanduser())
            return pairs_of([(query, text, by_text.get(text, -1)) for query, text in read])
        if self.split not in dataset.splits:
            raise BadValue(
                f"{dataset.name} has no judgments of the split '{self.split}' (found {', '.join(dataset.splits)})"
            )
        training = replace(dataset, split=self.split)
        corpus, texts = dataset.corpus, training.queries.to_dict()
        numbers = {name: i for i, name in enumerate(corpus.ids.tolist())}
        rows = [
            (texts[query], _text(corpus, numbers[document]), numbers[document])
            for query, judged in training.qrels.to_dict().items()
            for document, grade in judged.items()
            if grade > 0 and query in texts and document in numbers
        ]
        return pairs_of(rows)


@named_arguments
@dataclass(frozen=True)
class WrittenQuestions:
    """Questions that a model writes for documents (GenQ), or that a file has.

    Answers are stored and never asked for twice. Raises BadValue for contradicting settings.
    """

    model: str | None = None
    """A T5 that writes questions; by default doc2query."""
    llm: str | None = None
    """A language model that writes them, such as http://localhost:8000/v1#llama3; "" takes WEIR_LLM."""
    file: str | None = None
    """JSON lines of documents and their questions, in doc2query's form."""
    n: int = 3
    """Questions for a document."""
    documents: int | None = None
    """Documents that get questions, drawn; by default all."""

    def __post_init__(self) -> None:
        given = [name for name in ("model", "llm", "file") if getattr(self, name) is not None]
        if len(given) > 1:
            raise BadValue(f"{given[0]} and {given[1]} do not go together: one of them writes the questions")
        if self.n < 1 or (self.documents is not None and self.documents < 1):
            raise BadValue("n and documents are whole numbers from 1")

    def describe(self) -> dict[str, object]:
        shared: dict[str, object] = {"pairs": "questions", "n": self.n, "documents": self.documents}
        if self.file is not None:
            return shared | {"contents": contents(Path(self.file).expanduser())}
        if self.llm is not None:
            prompt = prompt_template("question", ("passage",)).describe()
            return shared | {"llm": self._chat.describe(), "prompt": prompt}
        return shared | {"writer": self._writer.describe(settings().device)}

    @property
    def _chat(self) -> ChatModel:
        return ChatModel(self.llm or default_model())

    @property
    def _writer(self) -> QuestionWriter:
        return QuestionWriter(self.model or "doc2query", n=self.n)

    def pairs(self, dataset: Dataset, seed: int, progress: Watch) -> TrainingPairs:
        """Return (question, document) pairs, one for each different question of a document.

        seed: decides which documents get questions, if `documents` limits them.
        """
        corpus = dataset.corpus
        chosen = np.arange(len(corpus))
        if self.documents is not None and self.documents < len(corpus):
            chosen = np.sort(np.random.default_rng(seed).choice(len(corpus), self.documents, replace=False))
        texts = _texts(corpus)
        some = Corpus.of({corpus.ids[i]: texts[i] for i in chosen.tolist()})
        if self.llm is not None:
            lines: Iterator[str] = self._asked(some, progress)
        elif self.file is not None:
            lines = iter(
                read_questions(Path(self.file).expanduser(), some, self.n).lines(0, len(some)).tolist()
            )
        else:
            writing = written_questions(
                self._writer, some, lambda done, total: progress("questions", done, total)
            )
            lines = iter(writing.lines(0, len(some)).tolist())
        rows = [
            (question, texts[number], number)
            for number, written in zip(chosen.tolist(), lines, strict=True)
            for question in dict.fromkeys(line.strip() for line in written.split("\n"))
            if question
        ]
        return pairs_of(rows)

    def _asked(self, corpus: Corpus, progress: Watch) -> Iterator[str]:
        template, total = prompt_template("question", ("passage",)), len(corpus) * self.n
        texts = _texts(corpus)
        tokens: list[str] = []

        def document_prompt(number: int) -> ChatPrompt:
            text = template.filled_prompt({"passage": texts[number // self.n]}, "")
            tokens.append(text.token)
            # The first is the likeliest question, the others are drawn.
            sample = number % self.n
            return ChatPrompt(
                text.system,
                text.user,
                template.max_tokens,
                1.0 if sample else 0.0,
                sample=sample,
                token=text.token,
            )

        usage = ServiceUsage(self._chat.model)
        with cached_chat(self._chat, CONCURRENCY, usage) as client:
            replies = list(
                client.replies(total, document_prompt, lambda done: progress("questions", done, total))
            )
        written = [_question(reply, token) for reply, token in zip(replies, tokens, strict=True)]
        return ("\n".join(written[i : i + self.n]) for i in range(0, total, self.n))


def _question(reply: ChatReply, token: str) -> str:
    def parse_question(text: str) -> tuple[str | None, VerdictKind]:
        return (text, "ok") if text else (None, "missing")

    return read_verdict(reply, VerdictForm(token), parse_question)[0] or ""


def _read_pairs(path: Path) -> Iterator[tuple[str, str]]:
    for line, row in json_rows(path):
        query, positive = row.get("query"), row.get("positive")
        if not (isinstance(query, str) and isinstance(positive, str)):
            expected = "an object with the texts query and positive"
            raise FormatError(path, f"the keys {', '.join(row) or 'none'}", expected, line)
        yield query, positive


def _texts(corpus: Corpus) -> list[str]:
    return corpus.view(VIEW, 0, len(corpus)).tolist()


def _text(corpus: Corpus, number: int) -> str:
    return corpus.view(VIEW, number, number + 1).tolist()[0]


# ----------
# Steps after the source: drop evaluated queries, add negatives, add margins.


def known_pairs(pairs: TrainingPairs, dataset: Dataset) -> tuple[tuple[int, ...], int]:
    """Return (positions of pairs whose query is evaluated in the collection, number of evaluated queries
    concerned).

    Two queries match if they are equal after normalising, or share 13 words in a row.
    """
    if not len(pairs):
        return (), 0
    trained = Queries.of({str(i): text for i, text in enumerate(pairs.queries)})
    judged = set(dataset.qrels.queries.strings.tolist())
    evaluated = Queries.of({n: text for n, text in dataset.queries.to_dict().items() if n in judged})
    found = leaks(trained, Training(dataset.name, evaluated), {}).any
    rows = tuple(np.flatnonzero(found).tolist())
    back = leaks(evaluated, Training("pairs", trained), {}).any
    return rows, int(back.sum())


def answers_of(pairs: TrainingPairs) -> dict[str, set[int]]:
    """Return {query: positions of its relevant documents}."""
    answers: dict[str, set[int]] = {}
    for query, document in zip(pairs.queries, pairs.document.tolist(), strict=True):
        answers.setdefault(query, set()).add(document)
    return answers


def with_negatives(
    pairs: TrainingPairs,
    answers: Mapping[str, set[int]],
    dataset: Dataset,
    count: int,
    depth: int,
    seed: int,
    progress: Watch,
) -> TrainingPairs:
    """Return the pairs, each with `count` negatives drawn from BM25's first `depth` documents, filled up at
    random.

    answers: documents of a query that are never its negatives.

    Raises BadValue for a collection with too few documents.
    """
    if not count or not len(pairs):
        return pairs
    corpus = dataset.corpus
    positives = {query: answers[query] for query in dict.fromkeys(pairs.queries)}
    most = max(map(len, positives.values()))
    if len(corpus) < count + most:
        raise BadValue(
            f"{dataset.name}: {counted(len(corpus), 'document')} do not give {count} negatives a pair"
        )
    queries = Queries.of({str(i): text for i, text in enumerate(positives)})
    progress("negatives", 0, len(queries))
    run = BM25().index(corpus).search(queries, depth + most)
    places = {text: i for i, text in enumerate(positives)}
    codes = queries.ids.codes(run.queries.strings).tolist()
    row_of = {code: row for row, code in enumerate(codes)}
    negatives = np.zeros((len(pairs), count), np.int32)
    for number, query in enumerate(pairs.queries):
        random = np.random.default_rng([seed, number])
        row = row_of.get(places[query])
        hits = [] if row is None else run.doc[run.ptr[row] : run.ptr[row + 1]].tolist()
        pool = [document for document in hits if document not in positives[query]][:depth]
        chosen = random.permutation(pool)[:count].tolist() if pool else []
        taken = positives[query] | set(chosen)
        while len(chosen) < count:
            other = int(random.integers(len(corpus)))
            if other not in taken:
                chosen.append(other)
                taken.add(other)
        negatives[number] = chosen
    progress("negatives", len(queries), len(queries))
    return replace(pairs, negatives=negatives)


def with_margins(pairs: TrainingPairs, corpus: Corpus, model: str, progress: Watch) -> TrainingPairs:
    """Return the pairs with margins: a cross-encoder's score of the relevant text minus each negative's."""
    loaded = CrossEncoder(model).load(settings().device)
    width = pairs.negatives.shape[1]
    total = len(pairs) * (width + 1)

    def texts() -> Iterator[tuple[str, str]]:
        for query, positive, negatives in zip(
            pairs.queries, pairs.positives, pairs.negatives.tolist(), strict=True
        ):
            yield query, positive
            for document in negatives:
                yield query, _text(corpus, document)

    scores = np.zeros(total)
    done = 0
    for block in loaded.scores(texts()):
        scores[done : done + len(block)] = block
        done += len(block)
        progress("margins", done, total)
    table = scores.reshape(len(pairs), width + 1)
    return replace(pairs, margins=table[:, :1] - table[:, 1:])
