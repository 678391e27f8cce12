"""What a collection holds, whatever the order and the white space of the copy it was read from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from weir.datasets.load import Dataset

__all__ = ["content_of"]

VERSION = 1
_BATCH_DOCUMENTS = 4096


def content_of(dataset: Dataset) -> str:
    """A hash of the documents, the judged queries and the judgments of a split; reads every document.

    Copies of a collection that were sorted otherwise, or whose white space was tidied, have the same; metadata and
    unjudged queries do not count.
    """
    parts = (_documents(dataset), _queries(dataset), _judgments(dataset))
    whole = hashlib.sha256(f"weir content {VERSION}".encode())
    for count, total in map(_summed, parts):
        whole.update(f" {count} {total:x}".encode())
    return whole.hexdigest()[:32]


def _summed(records: Iterable[tuple[str, ...]]) -> tuple[int, int]:
    """How many records there are, and the sum of their hashes, which no order changes."""
    count, total = 0, 0
    for record in records:
        tidy = "\0".join(" ".join(text.split()) for text in record)
        total += int.from_bytes(
            hashlib.blake2b(tidy.encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big"
        )
        count += 1
    return count, total % (1 << 128)


def _documents(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    corpus = dataset.corpus
    for start in range(0, len(corpus), _BATCH_DOCUMENTS):
        stop = min(start + _BATCH_DOCUMENTS, len(corpus))
        ids, texts = (column.slice(start, stop).tolist() for column in (corpus.ids.column, corpus.text))
        titles = [""] * len(ids) if corpus.title is None else corpus.title.slice(start, stop).tolist()
        yield from zip(ids, titles, texts, strict=True)


def _queries(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    yield from dataset.queries.to_dict().items()


def _judgments(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    for query, row in dataset.qrels.to_dict().items():
        yield from ((query, document, _written(grade)) for document, grade in row.items())


def _written(grade: float) -> str:
    return str(int(grade)) if float(grade).is_integer() else repr(float(grade))
