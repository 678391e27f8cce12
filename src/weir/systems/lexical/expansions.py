"""Questions that documents answer: written by a model and kept, or read from a file that others wrote."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus
from weir.core.strings import Int32, Int64, Strings
from weir.encode.models.hardware import declared_device
from weir.encode.question_writer import LoadedWriter, QuestionWriter
from weir.errors import FormatError
from weir.io.collections.json_lines import read_records
from weir.io.storage.text_files import open_packed
from weir.settings import settings
from weir.systems.protocol import Progress
from weir.systems.rerank.score_cache import Steps
from weir.vectors.encode_missing import EncodingBlocks, TextSource
from weir.vectors.ragged_store import Block, RaggedStore, stored_ragged

__all__ = ["Expansions", "contents", "read_questions", "written_questions"]

VIEW = "title text"
ID_KEYS = ("_id", "id", "docid", "doc_id")
QUESTION_KEYS = ("predicted_queries", "queries", "querygen", "query")
"""Where a line of a file has its questions, a list or one text. BEIR's files have `query`, castorini's the first."""
BATCH_TEXTS = 1024
"""Texts handed to the model together; each window of it is kept as it comes."""
PIECE_BYTES = 1 << 22
EXPECTED = "an object with a document's identifier (_id) and its questions (predicted_queries, or query) on each line"


@dataclass(frozen=True, eq=False)
class Expansions:
    """The questions of a corpus. block: those of documents start..stop-1, the questions of each joined by spaces;
    kept: documents whose questions were there before; without: documents that have none."""

    block: Callable[[int, int], Strings]
    kept: int
    without: int = 0


def written_questions(writer: QuestionWriter, corpus: Corpus, progress: Progress | None) -> Expansions:
    """The questions of each document, written by a model; those of each text are kept in Weir's home.

    A killed process loses the few texts it was at. The model is loaded only where something is missing. Raises what
    the writer raises.
    """
    device = settings().device
    store = RaggedStore.of(settings().home / "questions", writer.describe(device), 1)
    texts = TextSource(
        len(corpus), lambda start, stop: corpus.view(VIEW, start, stop), corpus.ids.__getitem__
    )
    writing = _Writing(writer, device, Steps(progress, len(corpus)))
    # On a processor a text is written about by itself, so that only what is missing has to be.
    cut = EncodingBlocks(BATCH_TEXTS, whole=declared_device(device) != "cpu")
    rows = stored_ragged(store, texts, writing, writing.steps.batch, cut)

    def block(start: int, stop: int) -> Strings:
        ptr, data = rows.block(start, stop)
        flat = np.ascontiguousarray(data[:, 0])
        return Strings(np.where(flat == ord("\n"), np.uint8(ord(" ")), flat), ptr)

    return Expansions(block, max(len(corpus) - writing.count, 0))


@dataclass
class _Writing:
    """A writer at work, loaded once there is something to write; count: texts written."""

    writer: QuestionWriter
    device: str
    steps: Steps
    loaded: LoadedWriter | None = None
    count: int = 0

    def __call__(self, texts: list[str]) -> Iterator[Block]:
        """The questions of texts as rows of bytes, a line for each question."""
        self.loaded = self.loaded or self.writer.load(self.device)
        for found in self.loaded.questions(texts, self.steps.within):
            lines = Strings.of("\n".join(q.replace("\n", " ") for q in questions) for questions in found)
            self.count += len(lines)
            yield lines.ptr, lines.data[:, None]


def read_questions(path: Path, corpus: Corpus, n: int) -> Expansions:
    """The first n questions of each document from a file of JSON lines, packed (.gz, .zst) or not.

    A line is an object with a document's identifier (`_id`, `id`, `docid`) and its questions, a list or a text, under
    `predicted_queries`, `queries`, `querygen` or `query`; a document may have several lines. Raises FormatError for
    another form, and where no line is of a document of the corpus.
    """
    codes, parts = list[Int32](), list[Strings]()
    try:
        with open_packed(path) as stream:
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

    def block(start: int, stop: int) -> Strings:
        return Strings.of(
            _joined(lines, order[ptr[i] : min(ptr[i + 1], ptr[i] + n)]) for i in range(start, stop)
        )

    return Expansions(block, len(corpus), int((np.diff(ptr) == 0).sum()))


def contents(path: Path) -> str:
    """A hash of a file; raises FormatError where it cannot be read."""
    digest = hashlib.blake2b(digest_size=8)
    try:
        with path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
    except OSError as error:
        raise FormatError(path, error.strerror or str(error), "a file of questions") from None
    return digest.hexdigest()


def _joined(lines: Strings, numbers: Int64) -> str:
    return " ".join(lines.take(numbers).tolist())


def _line(row: Mapping[str, object], n: int, path: Path, line: int) -> tuple[str, str]:
    """(document, its questions joined by spaces) of a line."""
    name = next((row[key] for key in ID_KEYS if key in row), None)
    found = next((row[key] for key in QUESTION_KEYS if key in row), None)
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    questions = [found] if isinstance(found, str) else found
    if (
        not isinstance(name, str)
        or not isinstance(questions, list)
        or not all(isinstance(q, str) for q in questions)
    ):
        raise FormatError(path, f"the keys {', '.join(row) or 'none'}", EXPECTED, line)
    return name, " ".join(questions[:n])
