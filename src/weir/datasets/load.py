"""Load collections by name, path or reference, reading each part on first use."""

from __future__ import annotations

import hashlib
import math
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from weir.argument_types import checked, named_arguments
from weir.core.corpus import NO_DOCUMENTS, Corpus, Queries
from weir.core.dangling import never_asked
from weir.core.filters import DocumentLists, DocumentMasks, filter_fields
from weir.core.input_shapes import Labelled
from weir.core.origin import query_marks
from weir.core.qrels import Qrels
from weir.core.query_metadata import RULES, QueryGroups, QueryMetadata
from weir.core.scores import SCORES_BY, GroupedScores, Scores
from weir.core.strings import Ids, Strings
from weir.core.tables import table_of
from weir.datasets import catalogue
from weir.datasets.card import CollectionCard, card_of, metadata_card
from weir.datasets.catalogue import Entry
from weir.datasets.names import catalogue_name, is_reference, named_split
from weir.datasets.references import Materialized, materialize
from weir.errors import BadValue, DownloadError, LossWarning, NameNote, UnknownName, give_warning
from weir.files.corpus_store import CorpusStore, open_store
from weir.files.frames import qrels_from
from weir.files.layouts import CollectionLayout, find_layout, left_out
from weir.files.paths import path_of, refuse_empty, subset_of
from weir.files.query_files import read_groups
from weir.files.records import OwnFolder, read_judgments, read_queries, write_collection
from weir.files.text_files import Watch, unwatched

# ----------
# The metadata of queries as it holds in one split.


def settled(queries: Queries, judged: Qrels, candidates: str, instruction: str) -> Queries:
    """Return a split's queries with candidates and instructions, and without "unanswerable" marks on answered ones.

    judged: judgments of the split.
    candidates: "judged" if only the documents judged for a query may be ranked, "all" if every document may.
    instruction: the collection's, used for queries without their own if some query has its own.
    """
    metadata = queries.metadata
    if candidates == "judged":
        # By descending identifier: the order of judgments may give grades away.
        place = judged.docs.tie_ranks[judged.doc] if len(judged.doc) else judged.doc
        order = np.lexsort((place, judged.query_of_row()))
        lists = DocumentLists(judged.docs, judged.ptr, judged.doc[order])
        lists = lists.take(judged.queries.codes(queries.ids.strings))
        metadata = replace(metadata or QueryMetadata(), candidates=lists)
    if metadata is None:
        return queries
    if candidates == "all":
        metadata = replace(metadata, candidates=None)
    if metadata.instruction is not None and instruction:
        own = metadata.instruction.tolist()
        metadata = replace(metadata, instruction=Strings.of(one or instruction for one in own))
    # A query with a relevant document is answerable, even if flagged otherwise.
    if metadata.unanswerable is not None:
        row = judged.query_of_row()[judged.grade > 0]
        relevant = np.isin(judged.queries.codes(queries.ids.strings), row)
        flagged = metadata.unanswerable & ~relevant
        metadata = replace(metadata, unanswerable=flagged if flagged.any() else None)
    return replace(queries, metadata=metadata)


def filtered(queries: Queries, corpus: Corpus) -> Queries:
    """Return the queries with the documents that pass each query's filter (`permitted`); unchanged without filters.

    Raises UnknownName for a field that no document has, BadValue for a value of another type than the field.
    """
    metadata = queries.metadata
    if metadata is None or metadata.filter is None:
        return queries
    permitted = DocumentMasks.of(metadata.filter.tolist(), corpus)
    return replace(queries, metadata=replace(metadata, permitted=permitted))


def counting(judged: Qrels, queries: Queries) -> Qrels:
    """Return the judgments of the queries that count: neither marked unanswerable nor named by `never_asked`."""
    return asked_of(answerable(judged, queries), queries)


def asked_of(judged: Qrels, queries: Queries) -> Qrels:
    """Return the judgments without the queries that `never_asked` names."""
    unasked = never_asked(judged.queries, queries.ids)
    return judged.only(np.flatnonzero(~unasked)) if unasked.any() else judged


def answerable(judged: Qrels, queries: Queries) -> Qrels:
    """Return the judgments of all queries except those marked unanswerable."""
    metadata = queries.metadata
    if metadata is None or metadata.unanswerable is None:
        return judged
    code = queries.ids.codes(judged.queries.strings)
    silent = (code >= 0) & metadata.unanswerable[code]
    return judged.only(np.flatnonzero(~silent)) if silent.any() else judged


def unanswerable_queries(queries: Queries) -> list[str]:
    """Return the ids of queries marked unanswerable."""
    metadata = queries.metadata
    if metadata is None or metadata.unanswerable is None:
        return []
    return queries.ids.take(np.flatnonzero(metadata.unanswerable)).tolist()


# ----------
# Collections, each part read on first use.


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A test collection: documents, judged queries of one split, and their judgments.

    Each part is read on first use, which raises FormatError for a missing or malformed file.
    """

    name: str
    """Name in the catalogue, or of the folder."""
    split: str
    layout: CollectionLayout
    entry: Entry | None = None
    """Facts of the catalogue; None for a collection outside it."""
    folder: OwnFolder | None = None
    """Temporary folder of a collection made from memory; deleted with it."""
    source: str = ""
    """Reference of a downloaded collection, with its exact commit."""
    read_only: bool = False
    """True if no document store is written; documents without a store are held in memory."""
    unjudged: bool = False
    """True if the collection is read without judgments, which would otherwise raise FormatError."""
    undocumented: bool = False
    """True if the collection is read without documents (`without_documents`)."""

    @staticmethod
    @named_arguments
    def load(name: str | Path, split: str | None = None, watch: Watch = unwatched) -> Dataset:
        """Return a collection; takes the arguments and raises the errors of `weir.load`."""
        return load(name, split, watch)

    @staticmethod
    @named_arguments
    def of(
        corpus: object,
        queries: object,
        qrels: object,
        name: str = "dataset",
        candidates: Mapping[str, Sequence[str]] | None = None,
        excluded: Mapping[str, Sequence[str]] | None = None,
    ) -> Dataset:
        """Return a collection made from values in memory.

        corpus: a Corpus, {id: text}, {id: {"title": ..., "text": ...}}, or a frame or list of dicts with such
            columns.
        queries: Queries, {id: text}, {id: {"text": ..., "instruction": ..., "lang": ...}}, see docs/collections.md,
            or a frame or list of dicts with such columns.
        qrels: judgments as `weir.evaluate` takes them.
        candidates: {query: the only documents that may be ranked}.
        excluded: {query: documents that may not be ranked}.

        Its temporary files are deleted with it. Raises BadValue for malformed documents, queries or judgments,
        without a document or judged query, and for lists of an unknown query.
        """
        documents = corpus if isinstance(corpus, Corpus) else Corpus.of(corpus)
        query_set = queries if isinstance(queries, Queries) else Queries.of(queries)
        metadata = query_set.metadata or QueryMetadata()
        if candidates is not None:
            metadata = replace(metadata, candidates=_lists("candidates", candidates, query_set))
        if excluded is not None:
            metadata = replace(metadata, excluded=_lists("excluded", excluded, query_set))
        if candidates is not None or excluded is not None:
            query_set = replace(query_set, metadata=metadata)
        judgments = qrels_from(qrels)
        if not len(documents) or not (query_set.ids.codes(judgments.queries.strings) >= 0).any():
            names = judgments.queries.strings
            exchanged = (documents.ids.codes(names) >= 0).any() if len(names) else False
            order = "; judged queries stand among the documents: corpus comes before queries" * bool(
                exchanged
            )
            raise BadValue(
                f"{name}: {len(documents)} documents and no judged query among {len(query_set)}{order}"
            )
        folder = OwnFolder()
        write_collection(folder.path, documents, query_set, judgments)
        return Dataset(name, "test", find_layout(folder.path), folder=folder)

    def __repr__(self) -> str:
        catalogued = None if "store" in self.__dict__ else self.entry  # says it without being opened
        documents = len(self.corpus) if catalogued is None else catalogued.documents
        return (
            f"<Dataset {self.name} {self.split}: {documents:,} documents, {len(self.qrels):,} judged queries, "
            f"{len(self.qrels.doc):,} judgments>"
        )

    def _repr_html_(self) -> str:
        each = len(self.qrels.doc) / max(1, len(self.qrels))
        relevant = int(np.count_nonzero(self.qrels.grade > 0)) / max(1, len(self.qrels))
        lines = [
            ["", ""],
            ["documents", f"{len(self.corpus):,}"],
            ["judged queries", f"{len(self.qrels):,}"],
            ["judged documents per query", f"{each:,.1f}"],
            ["relevant documents per query", f"{relevant:,.1f}"],
        ]
        return table_of(lines, right=None, title=f"{self.name} {self.split}").html()

    @property
    def self_match(self) -> str:
        """ "drop" if a document with the query's own id is removed from rankings, else "keep"."""
        return self.layout.self_match or (self.entry.self_match if self.entry else "keep")

    @property
    def instruction(self) -> str:
        """Instruction for embedding models; "" if there is none, "{task}" if queries have their own."""
        metadata = None if self.layout.queries is None else self.all_queries.metadata
        own = metadata is not None and metadata.instruction is not None
        return "{task}" if own else self._general_instruction

    @property
    def _general_instruction(self) -> str:
        return self.entry.instruction if self.entry else self.layout.instruction

    @property
    def splits(self) -> list[str]:
        """Names of the splits with judgments, such as "test"."""
        return list(self.layout.qrels)

    @cached_property
    def store(self) -> CorpusStore:
        """Store of the documents, built on first use; raises FormatError for malformed documents."""
        documents, root = self.layout.need_documents(), self.layout.root
        own = (
            root if root.is_dir() else root.parent
        )  # a TOML file may name documents that are somebody else's
        place, around = map(
            os.path.abspath, (documents.path, own)
        )  # not resolved: a link counts as where it stands
        beside = Path(place).is_relative_to(around)
        return open_store(documents, beside and not (self.entry and self.entry.embedded), self.read_only)

    @property
    def corpus(self) -> Corpus:
        """All documents, memory-mapped; empty if `undocumented`."""
        return NO_DOCUMENTS if self.undocumented else self.store.corpus

    @cached_property
    def all_queries(self) -> Queries:
        """Queries of every split, judged or not, in file order; without files of documents and queries, judged ids
        with empty texts.
        """
        if self.undocumented and self.layout.queries is None:
            return Queries.of(dict.fromkeys(self._judgments.queries.tolist(), ""))
        return read_queries(self.layout.need_queries())

    @cached_property
    def queries(self) -> Queries:
        """Judged and unanswerable queries of this split, in file order; all queries if `unjudged`."""
        queries = self.settled_queries
        if self.unjudged:
            return queries
        counted = self.qrels.queries.codes(queries.ids.strings) >= 0
        if queries.metadata is not None and queries.metadata.unanswerable is not None:
            counted = counted | queries.metadata.unanswerable
        return queries.take(np.flatnonzero(counted))

    @cached_property
    def settled_queries(self) -> Queries:
        """Queries of every split, with the candidates, instructions and filters that apply to this split."""
        queries = settled(self.all_queries, self._judgments, self._candidates, self._general_instruction)
        restricted = queries.metadata is not None and queries.metadata.filter is not None
        return filtered(queries, self.corpus) if restricted and self.layout.documents is not None else queries

    @cached_property
    def _candidates(self) -> str:
        return "judged" if self.pools_of else self.layout.candidates

    @cached_property
    def pools_of(self) -> str:
        """Published collection whose counts this one has, so that judged documents are candidates; "" if declared."""
        # Copies on the hub are exempt: there the sets are published for retrieval from all documents, too.
        metadata = self.all_queries.metadata
        own = metadata is not None and metadata.candidates is not None
        if self.layout.candidates or self.entry or self.source or own or self.layout.documents is None:
            return ""
        judged = (len(self._judgments), len(self._judgments.doc))
        alike = {
            counts[0]: name for counts, name in catalogue.published_pools().items() if counts[1:] == judged
        }
        return alike.get(len(self.corpus), "") if alike else ""

    @cached_property
    def _judgments(self) -> Qrels:
        if self.unjudged:
            return Qrels.of({})
        return replace(read_judgments(self.layout.need_qrels(self.split)), name=self.name)

    @property
    def judgments_given(self) -> Path | Qrels:
        """File of this split's judgments, or Qrels if they are in an archive."""
        part = self.layout.need_qrels(self.split)
        return part.path if part.member is None else read_judgments(part)

    @property
    def groups(self) -> dict[str, Strings]:
        """{column: label of each of `queries`, "" for none}, for columns that group queries."""
        metadata = self.queries.metadata
        return {} if metadata is None else dict(metadata.groups)

    @cached_property
    def qrels(self) -> Qrels:
        """Judgments of this split, also of documents that the collection lacks; without queries that it lacks, which no
        system can be asked, and without those marked unanswerable that have no relevant document.
        """
        return (
            self.all_qrels if self.layout.queries is None else asked_of(self.all_qrels, self.settled_queries)
        )

    @cached_property
    def all_qrels(self) -> Qrels:
        """`qrels`, with the judgments of queries that the collection lacks."""
        if self.layout.queries is None:
            return self._judgments
        return answerable(self._judgments, self.settled_queries)

    @cached_property
    def queries_fingerprint(self) -> str:
        """Hash of the queries' ids, texts, and metadata that decides rankings, and of documents' fields in filters."""
        whole = hashlib.sha256()
        for column in (self.queries.ids.strings, self.queries.text):
            column.feed(whole.update)
        metadata = self.queries.metadata
        if metadata is not None and metadata.instruction is not None:
            whole.update(b"instruction")
            metadata.instruction.feed(whole.update)
        if metadata is not None and metadata.filter is not None:
            digests = self.corpus.metadata_digests(filter_fields(metadata.filter))
            whole.update(b"filter" + repr(digests).encode())
            metadata.filter.feed(whole.update)
        for name, lists in () if metadata is None else metadata.lists():
            whole.update(name.encode() + lists.ptr.tobytes())
            lists.docs.strings.take(lists.doc).feed(whole.update)
        return whole.hexdigest()[:32]

    @property
    def qrels_fingerprint(self) -> str:
        """Hash of this split's judgments."""
        return self.qrels.fingerprint

    @cached_property
    def query_marks(self) -> list[str]:
        """Hashes of judged queries, as `core.origin.query_marks` returns them; [] without query texts."""
        if self.layout.queries is None:
            return []
        texts, judged = self.all_queries, self.qrels.to_dict()
        return query_marks((texts[query], grades) for query, grades in judged.items() if query in texts)

    @property
    def fingerprint(self) -> str:
        """Hash of documents, queries and judgments."""
        return fingerprint_of_parts(self.corpus.fingerprint, self.queries_fingerprint, self.qrels_fingerprint)

    @cached_property
    def card(self) -> CollectionCard:
        """Counts of the parts that are present; reads every document."""
        layout = self.layout
        qrels = {split: read_judgments(part) for split, part in layout.qrels.items() if split != self.split}
        if layout.qrels:
            qrels[self.split] = self.all_qrels
        store = None if layout.documents is None else self.store
        queries = None if layout.queries is None else self.all_queries
        card = card_of(self.name, self.entry, store, queries, qrels, self.split)
        if queries is None:
            return card
        judged = self.queries if layout.qrels else queries
        return replace(card, metadata=metadata_card(judged, None if store is None else store.corpus))


@checked
def load(name: str | Path | Dataset, split: str | None = None, watch: Watch = unwatched) -> Dataset:
    """Return a collection by its catalogue name, path or reference; never downloads collections of the catalogue.

    name: a catalogue name such as `scifact`, the path of a folder, zip, TOML file or golden set, or a reference such
        as `hf:mteb/nfcorpus` or `irds:beir/scifact/test`, downloaded on first use. A collection itself is returned as
        it is.
    split: the split whose judgments are read. By default the one in the name, as in `scifact:train`, else the
        catalogue's, `test`, or the only one.
    watch: receives the progress of downloads.

    Warns (LossWarning) of rows left out by an import. Raises UnknownName for neither a name nor a path, DownloadError
    for a missing collection, FormatError for a path without a collection, BadValue for a group.
    """
    if isinstance(name, Dataset):
        if split not in (None, name.split):
            raise BadValue(f"{name.name} has the split {name.split}; expected this one, found '{split}'")
        return name
    return _opened(name, split, watch)


def load_here(name: str | Path, split: str | None = None) -> Dataset:
    """Return a collection as `load`, without network or writing; it may lack judgments or documents.

    Raises DownloadError if a download would be needed, and the other errors of `load`.
    """
    # The name may come from somebody else, as in the record of a result.
    if str(name).startswith(("//", "\\\\")):
        raise DownloadError(f"{name} is a path on another machine; nothing was requested from it")
    dataset = judged_or_not(replace(_opened(name, split, unwatched, here=True), read_only=True))
    return without_documents(dataset)


def judged_or_not(dataset: Dataset) -> Dataset:
    """Return the dataset, with `unjudged` set if it has no judgments and no file named qrel*.

    Raises FormatError for judgments that cannot be read.
    """
    layout = dataset.layout
    if layout.candidates == "judged" or (layout.qrels and len(dataset._judgments)):
        return dataset
    # A file named like judgments was not recognised: asking for them then tells what is wrong.
    alike = layout.root.glob("qrel*") if layout.root.is_dir() and not layout.qrels else ()
    if any(path.is_file() or any(path.iterdir()) for path in alike):
        return dataset
    return replace(dataset, unjudged=True)


def without_documents(dataset: Dataset) -> Dataset:
    """Return the dataset, with `undocumented` set if it has no file of documents."""
    return replace(dataset, undocumented=True) if dataset.layout.documents is None else dataset


def _opened(name: str | Path, split: str | None, watch: Watch, here: bool = False) -> Dataset:
    dataset = _found(name, split, watch, here)
    for sentence in left_out(dataset.layout):
        warnings.warn(LossWarning(sentence), stacklevel=1)  # one place: each is said once
    return dataset


def _found(name: str | Path, split: str | None, watch: Watch, here: bool) -> Dataset:
    if not isinstance(cast("object", name), (str, os.PathLike)):
        kind = type(name).__name__
        raise BadValue(
            f"found {kind}; a collection is a name or a path, and weir.Dataset.of(...) makes one of values"
        )
    refuse_empty(name)
    if isinstance(name, str) and split is None:
        name, split = named_split(name)
    text = str(name)
    if isinstance(name, str) and catalogue.is_group(text):
        size = len(catalogue.group(text).members)
        beside = f"; the folder of that name here is ./{text}" if Path(text).is_dir() else ""
        raise BadValue(f"'{text}' is a group of {size} datasets; take one, or load_group{beside}")
    official = catalogue_name(name)
    if official:
        if official == text and not here and Path(text).exists():
            give_warning(NameNote(text))
        entry = catalogue.get(official)
        if not entry.here:
            raise DownloadError(how_to_obtain(entry))
        layout = find_layout(entry.path)
        layout = replace(layout, candidates=layout.candidates or entry.candidates)
        return _dataset(entry.name, layout, split or entry.split, entry)
    reference = isinstance(name, str) and is_reference(name)
    path = Path(name) if reference else path_of(name)
    bare = isinstance(name, str) and not set("/\\.:") & set(text)
    if bare and not path.exists() and not subset_of(path)[1]:
        raise UnknownName("dataset (or folder)", text, [*catalogue.collection_names(), *catalogue.groups()])
    collection = materialize(name if reference else path, watch, fetch=not here)
    if collection is not None:
        return of_reference(collection, split)
    layout, place = find_layout(path), path.resolve()
    stem = place.name if place.is_dir() else place.stem
    return _dataset(layout.name or stem, layout, split or layout.default_split())


def fingerprint_of_parts(corpus: str, queries: str, qrels: str) -> str:
    """Return a collection's hash from the hashes of documents, judged queries and judgments."""
    return hashlib.sha256(f"{corpus} {queries} {qrels}".encode()).hexdigest()[:32]


def of_reference(collection: Materialized, split: str | None) -> Dataset:
    """Return the dataset of an imported collection, by default of its usual split; raises FormatError for an unknown
    split.
    """
    layout = collection.layout
    called = replace(layout, root=Path(collection.source))  # in messages, instead of the place of the import
    split = split or called.default_split()
    if layout.qrels:
        called.need_qrels(split)
    return replace(_dataset(collection.name, layout, split), source=collection.source)


@checked
def load_group(name: str | Path, split: str | None = None, watch: Watch = unwatched) -> list[Dataset]:
    """Return a list of the collections of a group, or of the one collection with that name.

    Takes the arguments and raises the errors of `load`.
    """
    if isinstance(name, str) and split is None:
        name, split = named_split(name)
    if isinstance(name, str) and catalogue.is_group(name):
        return [load(member, split, watch) for member in catalogue.members(name)]
    return [load(name, split, watch)]


def _dataset(name: str, layout: CollectionLayout, split: str, entry: Entry | None = None) -> Dataset:
    if layout.qrels:
        layout.need_qrels(split)  # a wrong split is an error at once, no judgments at all when used
    return Dataset(name, split, layout, entry)


def how_to_obtain(entry: Entry) -> str:
    """Return a sentence on how to get a catalogue collection that is not on this machine."""
    if entry.obtain:
        steps = " ".join(entry.obtain.replace("{folder}", str(entry.path)).split())
        return f"{entry.name} cannot be downloaded: {steps}"
    size = f" ({entry.bytes / 1e6:,.1f} MB)" if entry.bytes else ""
    beside = f"; the folder of that name here is ./{entry.name}" if Path(entry.name).is_dir() else ""
    get = f"weir data fetch {entry.name}{size}, or weir run --fetch; in Python weir.fetch({entry.name!r})"
    return f"{entry.name} is not on this machine; get it with: {get}{beside}"


def _lists(name: str, lists: Mapping[str, Sequence[str]], queries: Queries) -> DocumentLists:
    by_query, ids = {str(query): documents for query, documents in lists.items()}, set(queries.ids.tolist())
    if strange := [query for query in by_query if query not in ids]:
        raise BadValue(f"{name} of query '{strange[0]}', which is not among the queries")
    return DocumentLists.of(by_query.get(query, ()) for query in queries.ids)


# ----------
# Groups of queries, as `by` names them.


def query_groups(by: object, queries: Ids, dataset: Dataset | None = None) -> QueryGroups:
    """Return the groups of queries that `by` describes.

    by: "prefix:_" (the id up to the first _), "stem:-" (up to the last -), the path of a file of queries and groups,
        a column of the collection, {query: label} or such a pandas Series, or QueryGroups.
    queries: ids to group.
    dataset: the collection whose columns may be named.

    A query without a label (None, NaN) is in no group. Raises BadValue if no query has a group, FormatError for an
    invalid file, UnknownName for an unknown column.
    """
    if isinstance(by, QueryGroups):
        return by
    if isinstance(by, (Mapping, Labelled)) and not hasattr(by, "columns"):
        labels_of = {str(query): label for query, label in by.items()}
        missing = [
            query for query, label in labels_of.items() if isinstance(label, float) and math.isnan(label)
        ]
        return QueryGroups.of(labels_of | dict.fromkeys(missing))
    if not isinstance(by, (str, os.PathLike)):
        raise BadValue(
            f"by is of type {type(by).__name__}; expected {{query: label}}, a Series, a rule, a path or a column"
        )
    text = os.fspath(by) if isinstance(by, os.PathLike) else str(by)
    if text.startswith(RULES):
        return QueryGroups.by_identifier(queries, text)
    if Path(text).is_file():
        return read_groups(Path(text))
    if dataset is None:
        raise BadValue(
            f"`by={text!r}`: no such file, and no collection with such a column; name a rule such as prefix:_, a "
            "file of queries and groups, or a column together with `collection`"
        )
    if text not in dataset.groups:
        raise UnknownName("column of the queries", text, dataset.groups)
    labels = zip(dataset.queries.ids.tolist(), dataset.groups[text], strict=True)
    return QueryGroups.of(dict(labels), text)


def is_column(by: object) -> bool:
    """Return True if `by` can only name a column: a text that is neither a rule, such as "prefix:_", nor a file."""
    return isinstance(by, str) and not by.startswith(RULES) and not Path(by).is_file()


def _grouped_scores(scores: Scores, by: object) -> GroupedScores:
    return GroupedScores.of(scores, query_groups(by, scores.queries))


SCORES_BY.register(_grouped_scores)


# ----------
# The share of queries that are documents, by identifier and text.


SELF_MATCHES = 0.1
"""Share of self-matches from which queries count as documents of the collection."""

_WORD = re.compile(r"\w+")


def self_matches(dataset: Dataset) -> float:
    """Return the share of judged queries, 0 to 1, that are also documents; 0.0 without queries.

    Such a document has the query's identifier, contains its words without gaps, and is not judged relevant.
    """
    queries = dataset.queries
    if not len(queries):
        return 0.0
    # Ids alone prove nothing: in Cranfield or CISI both count from 1.
    at = dataset.corpus.ids.codes(queries.ids.strings)
    relevant = dataset.qrels.grade > 0
    answers = dataset.qrels.of_rows(relevant).to_dict() if relevant.any() else {}
    shared = [
        q for q in np.flatnonzero(at >= 0).tolist() if queries.ids[q] not in answers.get(queries.ids[q], {})
    ]
    matches = 0
    for query, document in zip(shared, at[shared].tolist(), strict=True):
        words, text = (
            _words(queries.text[query]),
            dataset.corpus.view("title text", document, document + 1)[0],
        )
        matches += words != "  " and words in _words(text)
    return matches / len(queries)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "
