"""A collection by name or by path: documents, queries and judgments, each read when it is first used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weir.core.corpus import Corpus, Queries
from weir.core.doors import opened
from weir.core.qrels import Qrels
from weir.core.strings import Strings
from weir.datasets import catalogue
from weir.datasets.card import CollectionCard, card_of
from weir.datasets.catalogue import Entry
from weir.errors import BadValue, DownloadError, UnknownName
from weir.io.collections.corpus_store import CorpusStore, open_store
from weir.io.collections.judgments import read_judgments
from weir.io.collections.layout import CollectionLayout, find_layout
from weir.io.collections.records import read_queries
from weir.io.collections.write_collection import OwnFolder, write_collection
from weir.io.runs.frames import qrels_from
from weir.settings import settings

if TYPE_CHECKING:
    from weir.io.net.download import Progress

__all__ = ["Dataset", "fetch", "load", "load_group"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A test collection: documents, the judged queries of one split, and their judgments.

    name: the catalogue's, or that of the folder; split: whose judgments these are; self_match: "drop" where a
    document with the query's own id is no answer (ArguAna, Quora), else "keep", as the catalogue or the TOML file says;
    entry: the catalogue's facts, None for a collection of one's own; folder: where one from memory stands, which goes
    with it. Everything else is read on first use and may
    raise FormatError.
    """

    name: str
    split: str
    layout: CollectionLayout
    entry: Entry | None = None
    folder: OwnFolder | None = None

    @staticmethod
    def of(
        corpus: Corpus | Mapping[str, object],
        queries: Queries | Mapping[str, str],
        qrels: object,
        name: str = "dataset",
    ) -> Dataset:
        """A collection from memory: documents {id: text} or {id: {"title": ..., "text": ...}}, queries {id: text}.

        qrels: judgments as `weir.evaluate` takes them. Its files stand in a temporary folder that goes with it. Raises
        BadValue for what is no document or judgment, and for no document or no judged query.
        """
        documents = corpus if isinstance(corpus, Corpus) else Corpus.of(corpus)
        asked = queries if isinstance(queries, Queries) else Queries.of(queries)
        judgments = qrels_from(qrels)
        if not len(documents) or not (asked.ids.codes(judgments.queries.strings) >= 0).any():
            raise BadValue(f"{name}: {len(documents)} documents and no judged query among {len(asked)}")
        folder = OwnFolder()
        write_collection(folder.path, documents, asked, judgments)
        return Dataset(name, "test", find_layout(folder.path), folder=folder)

    def __repr__(self) -> str:
        known = (
            "store" in self.__dict__ or self.entry is None
        )  # a catalogued one says it without being opened
        documents = len(self.corpus) if known else self.entry.documents if self.entry else 0
        return (
            f"<Dataset {self.name} {self.split}: {documents:,} documents, {len(self.qrels):,} judged queries, "
            f"{len(self.qrels.doc):,} judgments>"
        )

    def _repr_html_(self) -> str:
        """Sizes and judgments, as notebooks show them."""
        each = len(self.qrels.doc) / max(1, len(self.qrels))
        relevant = int(np.count_nonzero(self.qrels.grade > 0)) / max(1, len(self.qrels))
        lines = [["", ""], ["documents", f"{len(self.corpus):,}"], ["judged queries", f"{len(self.qrels):,}"]]
        lines += [
            ["judged documents per query", f"{each:,.1f}"],
            ["relevant documents per query", f"{relevant:,.1f}"],
        ]
        html: str = opened("cells html")(f"{self.name} {self.split}", lines, 1)
        return html

    @property
    def self_match(self) -> str:
        """What to do with a document that has the query's own id: "drop" or "keep"."""
        return self.layout.self_match or (self.entry.self_match if self.entry else "keep")

    @property
    def instruction(self) -> str:
        """What embedding models that follow instructions are told to look for; "" where nothing says so."""
        return self.entry.instruction if self.entry else self.layout.instruction

    @property
    def splits(self) -> list[str]:
        """The splits that have judgments."""
        return list(self.layout.qrels)

    @cached_property
    def store(self) -> CorpusStore:
        """The documents' store, built on first use."""
        return open_store(self.layout.need_documents(), beside=not (self.entry and self.entry.embedded))

    @property
    def corpus(self) -> Corpus:
        """All documents, memory-mapped."""
        return self.store.corpus

    @cached_property
    def all_queries(self) -> Queries:
        """The queries of every split, judged or not, in file order."""
        return read_queries(self.layout.need_queries())

    @cached_property
    def queries(self) -> Queries:
        """The queries with at least one judgment in this split, in file order."""
        known = self.all_queries
        judged = self.qrels.queries.codes(known.ids.strings) >= 0
        return known.take(np.flatnonzero(judged))

    @cached_property
    def qrels(self) -> Qrels:
        """The judgments of this split, also of documents and queries that are not in the collection."""
        return read_judgments(self.layout.need_qrels(self.split))

    @cached_property
    def queries_fingerprint(self) -> str:
        """A hash of the judged queries, identifiers and texts."""
        whole = hashlib.sha256()
        for column in (self.queries.ids.strings, self.queries.text):
            _feed(whole.update, column)
        return whole.hexdigest()[:32]

    @cached_property
    def qrels_fingerprint(self) -> str:
        """A hash of the judgments."""
        whole = hashlib.sha256()
        for column in (self.qrels.queries.strings, self.qrels.docs.strings):
            _feed(whole.update, column)
        for values in (self.qrels.ptr, self.qrels.doc, self.qrels.grade):
            whole.update(values.tobytes())
        return whole.hexdigest()[:32]

    @property
    def fingerprint(self) -> str:
        """A hash of all that is measured here: documents, judged queries and judgments."""
        parts = (self.corpus.fingerprint, self.queries_fingerprint, self.qrels_fingerprint)
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]

    @cached_property
    def card(self) -> CollectionCard:
        """What `weir stats` shows (reads every document)."""
        qrels = {
            split: read_judgments(part) for split, part in self.layout.qrels.items() if split != self.split
        }
        qrels[self.split] = self.qrels
        return card_of(self.name, self.entry, self.store, self.all_queries, qrels, self.split)


def load(name: str | Path, split: str | None = None) -> Dataset:
    """Open a collection by its catalogue name, or by the path of a folder, a zip or a TOML file.

    split: whose judgments; by default the catalogue's, `test`, or the only one. Nothing is downloaded.
    Raises UnknownName for neither a name nor a path, DownloadError for a known collection that is not on this
    machine (how to get it is said), FormatError for a path without a collection, BadValue for a group.
    """
    text = str(name)
    if isinstance(name, str) and catalogue.is_group(text):
        raise BadValue(
            f"'{text}' is a group of {len(catalogue.group(text).members)} datasets; take one, or load_group"
        )
    if isinstance(name, str) and text in catalogue.names():
        return _known(catalogue.get(text), split)
    path = Path(name)
    if isinstance(name, str) and not path.exists() and not set("/\\.") & set(text):
        raise UnknownName("dataset (or folder)", text, [*catalogue.names(), *catalogue.groups()])
    layout = find_layout(path)
    return _dataset(layout.name or _stem(path), layout, split or layout.default_split())


def load_group(name: str | Path, split: str | None = None) -> list[Dataset]:
    """The members of a group, or the one collection of that name or path; raises what `load` raises."""
    if isinstance(name, str) and catalogue.is_group(name):
        return [load(member, split) for member in catalogue.group(name).members]
    return [load(name, split)]


def fetch(name: str, progress: Progress | None = None) -> list[Dataset]:
    """Download, verify and unpack a collection (or every member of a group), and build its store.

    What is here already is not fetched again. progress: called with (bytes so far, bytes in all or None).
    Raises UnknownName, or DownloadError; for a collection under licence that error says how to obtain it.
    """
    members = catalogue.group(name).members if catalogue.is_group(name) else (name,)
    for entry in map(catalogue.get, members):
        if not entry.here:
            _fetch(entry, progress)
    fetched = load_group(name)
    for dataset in fetched:
        dataset.corpus  # noqa: B018  (the first use builds the store)
    return fetched


def _fetch(entry: Entry, progress: Progress | None) -> None:
    if entry.obtain:
        raise DownloadError(_how_to_obtain(entry))
    # The network's modules take long to import, and few commands need them.
    from weir.io.net.archive import extract
    from weir.io.net.download import download

    top = settings().home / "datasets" / entry.folder.partition("/")[0]
    archive = top.with_name(entry.archive)
    mirror = settings().mirror
    first = [f"{mirror.rstrip('/')}/{entry.archive}"] if mirror else []
    download([*first, *entry.urls], archive, f"md5:{entry.md5}", entry.bytes, progress)
    try:
        extract(archive, top)
    finally:
        archive.unlink(missing_ok=True)
    if not entry.here:
        raise DownloadError(f"{entry.archive} holds no folder {entry.folder}")


def _known(entry: Entry, split: str | None) -> Dataset:
    if not entry.here:
        raise DownloadError(_how_to_obtain(entry))
    return _dataset(entry.name, find_layout(entry.path), split or entry.split, entry)


def _dataset(name: str, layout: CollectionLayout, split: str, entry: Entry | None = None) -> Dataset:
    if layout.qrels:
        layout.need_qrels(split)  # a wrong split is an error at once, no judgments at all when used
    return Dataset(name, split, layout, entry)


def _how_to_obtain(entry: Entry) -> str:
    if entry.obtain:
        steps = " ".join(entry.obtain.replace("{folder}", str(entry.path)).split())
        return f"{entry.name} cannot be downloaded: {steps}"
    size = f"{entry.bytes / 1e6:,.1f} MB"
    beside = f"; the folder of that name here is ./{entry.name}" if Path(entry.name).is_dir() else ""
    return f"{entry.name} is not on this machine; get it with: weir fetch {entry.name} ({size}){beside}"


def _stem(path: Path) -> str:
    resolved = path.resolve()
    return resolved.name if resolved.is_dir() else resolved.stem


def _feed(update: Callable[[bytes], object], column: Strings) -> None:
    column = column if column.ptr[0] == 0 else column.take(np.arange(len(column)))
    update(column.ptr.tobytes())
    update(column.data[: column.ptr[-1]].tobytes())
