"""Systems that do not search: stored rankings, and a collection's candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked, named_arguments
from weir.core.corpus import NO_DOCUMENTS, Corpus, Queries
from weir.core.judged import barred_said
from weir.core.order import cut_in_ties, tie_groups, tied_at_end
from weir.core.roles import ranks_as_documents
from weir.core.run import Named, Run
from weir.core.strings import Ids, Int32
from weir.errors import BadRanking, BadValue, FormatError, warn_of_ranking
from weir.files.integrity import content_hash_of
from weir.files.runs import read_run
from weir.files.text_files import check_regular, unquoted
from weir.systems.compose import system_text, then
from weir.systems.composite import check_unknown, known_rows, open_anew
from weir.systems.protocol import (
    ANSWERS,
    IN_MEMORY,
    SYSTEMS,
    Context,
    Costs,
    called,
    index_repr,
    no_parts,
    only_time,
)
from weir.systems.restricted import candidate_rows, note_lacking, permitted_only, unrestricted

# ----------
# A file of rankings as a system.


COLLECTION = "{dataset}"


@SYSTEMS.register("run")
@named_arguments
@dataclass(frozen=True)
class StoredRun:
    """Rank by a file of rankings in any known format, identified by its content.

    A query that is not in the file has no results, with a warning. Raises BadValue for bad settings.
    """

    path: str
    """The file; {dataset} in it is replaced by the collection's name."""
    unknown: str = "refuse"
    """"refuse" documents outside the collection, or "drop" them with a warning."""

    __repr__ = system_text
    __rshift__ = then

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not self.path:
            raise BadValue(f"run: path is {self.path!r}; expected that of a file of rankings")
        check_unknown("run", self.unknown)

    def __str__(self) -> str:
        return called("run", [self.path], {} if self.unknown == "refuse" else {"unknown": self.unknown})

    @property
    def service(self) -> str:
        return f"the file {self.path}"

    def describe(self) -> dict[str, object]:
        return {"system": "run", "sha256": self._content(), "unknown": self.unknown}

    def adapted_to(self, collection: str, instruction: str) -> StoredRun:
        return replace(self, path=self.path.replace(COLLECTION, collection))

    def pool_depth(self, k: int, documents: int) -> int:
        return max(k, documents)

    def is_drawn(self) -> bool:
        return False

    def keeps_documents(self) -> bool:
        return True

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> StoredRunSearcher:
        """Return a searcher of the file's rankings; with NO_DOCUMENTS as the corpus every document is known.

        Raises FormatError for a missing file or invalid line; BadRanking for repeated documents, and for
        documents outside the corpus unless dropped.
        """
        self._content()
        with unquoted(Path(self.path), Path()):  # an experiment of somebody else's may name it
            run = read_run(self.path)
        if corpus is NO_DOCUMENTS:
            return StoredRunSearcher(self, run, run.docs, run.doc)
        doc = corpus.ids.codes(run.docs.strings).astype(np.int32)[run.doc]

        def document(row: int) -> str:
            return run.docs[int(run.doc[row])]

        if len(doc) and (doc < 0).all():
            _refuse_exchanged_columns(run, corpus.ids)
        _, note = known_rows(run.query_of_row(), doc, document, run.queries, self.unknown)
        return StoredRunSearcher(self, run, corpus.ids, doc, note)

    components = no_parts
    open = open_anew

    def _content(self) -> str:
        if COLLECTION in self.path:
            raise BadValue(f"{self}: {COLLECTION} stands for the name of a collection, and none was given")
        try:
            check_regular(Path(self.path))
            stat = Path(self.path).stat()
            state = stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino
            return content_hash_of(Path(self.path), state)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise FormatError(self.path, reason, "a file of rankings, such as TREC's") from None


def _refuse_exchanged_columns(run: Run, docs: Ids) -> None:
    found = np.flatnonzero(docs.codes(run.queries.strings) >= 0)
    if len(found):
        raise BadRanking(
            f"its queries, such as '{run.queries[int(found[0])]}', are documents of the collection, and its documents, "
            f"such as '{run.docs[0]}', are not: the columns of queries and documents are exchanged"
        )
    if ranks := ranks_as_documents(run):
        raise BadRanking(
            f"{ranks}, and none is in the collection: the columns of documents and ranks are exchanged"
        )


@dataclass(frozen=True, eq=False)
class StoredRunSearcher:
    """Searches the rankings of a file, with the collection's document numbers."""

    system: StoredRun
    run: Run
    docs: Ids
    doc: Int32
    """Number of each row's document in `docs`, -1 for an unknown one."""
    note: str = ""
    """Sentence on dropped rows; "" for none."""

    __repr__ = index_repr

    @checked
    @permitted_only
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        """Return the first k results of each query; warns (RankingWarning) of queries without a ranking and
        dropped rows.

        Raises BadRanking if none of several queries has a ranking, BadValue for k below 1.
        """
        query = queries.ids.codes(self.run.by_identifier(queries).queries.strings)[self.run.query_of_row()]
        count, missing = len(queries), np.setdiff1d(np.arange(len(queries)), query)
        if count > 1 and len(missing) == count:
            first = f"such as '{self.run.queries[0]}'" if len(self.run) else "none at all"
            raise BadRanking(
                f"{self.system.path}: it answers none of {count:,} queries, the first '{queries.ids[0]}'; "
                f"its own are {first}"
            )
        notes = [self.note] if self.note else []
        if len(missing):
            first = f"the first '{queries.ids[int(missing[0])]}'; they have no answer"
            notes = [f"{len(missing):,} of {count:,} queries are not in the file, {first}", *notes]
        for note in notes:
            warn_of_ranking(f"{self.system.path}: {note}")
        rows = np.flatnonzero((query >= 0) & (self.doc >= 0))
        columns = query[rows], self.doc[rows], self.run.score[rows]
        return Run.from_columns(queries.ids, self.docs, *columns, Named(str(self.system))).top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        longest = int(np.diff(self.run.ptr).max(initial=1))
        whole = self.search(unrestricted(queries), max(k, longest), context)
        kept = whole.allowed(queries)
        lost = np.diff(whole.ptr) - np.diff(kept.ptr)
        listed = queries.metadata is not None and queries.metadata.candidates is not None
        if listed and lost.any():  # a filter is often the user's own
            said = barred_said(int(lost.sum()), int(np.count_nonzero(lost)))
            warn_of_ranking(f"{self.system.path}: {said}")
        run = kept.top(k)
        note_lacking(run, queries, k - context.beyond, f"the file has {longest:,} at most for a query")
        return run

    def nested(self, queries: Queries, k: int) -> bool:
        """Return True if a deeper search would keep the first k results."""
        ptr, length = self.run.ptr, np.diff(self.run.ptr)
        tied_end = tied_at_end(ptr, tie_groups(ptr, self.run.score))
        return int(length.max(initial=0)) > k or not cut_in_ties(length, tied_end)[1]

    def costs(self) -> Costs:
        return Costs(repeatable=True, measured=False)


# ----------
# The candidates that a collection names for its queries, in a drawn order.


@SYSTEMS.register("pool")
@named_arguments
@dataclass(frozen=True)
class CandidatePool:
    """Rank each query's listed candidates in random order with a fixed seed; needs no index and no text.

    Scores fall by 1. A query without candidates has no results; a search in which no query lists any raises
    BadValue.
    """

    __repr__ = system_text
    __rshift__ = then

    def __str__(self) -> str:
        return "pool"

    def describe(self) -> dict[str, object]:
        return {"system": "pool", "algorithm": algorithm("candidates")}

    def pool_depth(self, k: int, documents: int) -> int:
        return max(k, documents)

    def is_drawn(self) -> bool:
        return True

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> CandidatePoolSearcher:
        return CandidatePoolSearcher(corpus)

    components = no_parts
    open = open_anew


@dataclass(frozen=True, eq=False)
class CandidatePoolSearcher:
    """Ranks the candidates that each query lists."""

    corpus: Corpus

    __repr__ = index_repr

    @checked
    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        """Return the first k permitted candidates of each query; warns (RankingWarning) if there are more.

        Raises BadValue if the queries list none.
        """
        if queries.metadata is None or queries.metadata.candidates is None:
            raise BadValue(
                "pool: the collection names no candidates; where the judged documents of a query are its candidates, "
                'write into collection.toml in its folder the line: candidates = "judged"; others stand in the lines '
                'of queries.jsonl: {"_id": "q1", "text": "...", "metadata": {"candidates": ["d1", "d2"]}}'
            )
        whole = candidate_rows(queries, self.corpus, "pool").allowed(queries)
        sizes = np.diff(whole.ptr)
        if cut := int((sizes > k).sum()):
            most = int(sizes.max())
            lost = f"{cut:,} of {len(queries):,} queries have more than {k:,} candidates, up to {most:,}"
            warn_of_ranking(f"pool: {lost}; `k={most}` keeps all")
        return whole.top(k)

    search_restricted = search
    costs = only_time
