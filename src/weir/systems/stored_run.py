"""Systems that search nothing: a stored ranking, and the candidates that a collection names."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from weir.algorithms import algorithm
from weir.argument_types import checked
from weir.core.corpus import Corpus, Queries
from weir.core.order import cut_in_ties, tie_groups, tied_at_end
from weir.core.run import Named, Run
from weir.core.strings import Ids, Int32
from weir.errors import BadRanking, BadValue, FormatError, RankingWarning
from weir.files.runs import read_run
from weir.files.text_files import check_regular, unquoted
from weir.systems.compose import shown, then
from weir.systems.composite import check_unknown, known_rows
from weir.systems.protocol import (
    IN_MEMORY,
    SYSTEMS,
    Component,
    Context,
    Costs,
    called,
    only_time,
)
from weir.systems.restricted import candidate_rows, note_lacking

# ----------
# A file of rankings as a system.


COLLECTION = "{dataset}"


@SYSTEMS.register("run")
@dataclass(frozen=True)
class StoredRun:
    """The rankings of a file, in any format that Weir reads, as a system; its key is the content of the file.

    path: the file; {dataset} in it stands for the name of the collection, so that one name serves several. unknown:
    what happens to documents that the collection does not have: "refuse" them, or "drop" them, saying how many. A query
    that the file does not answer has no ranking, which is said. Raises BadValue for other settings.
    """

    path: str
    unknown: str = "refuse"

    __repr__ = shown
    __rshift__ = then

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not self.path:
            raise BadValue(f"run: path is {self.path!r}; expected that of a file of rankings")
        check_unknown("run", self.unknown)

    def __str__(self) -> str:
        return called("run", [self.path], {} if self.unknown == "refuse" else {"unknown": self.unknown})

    @property
    def service(self) -> str:
        """The file that is read."""
        return f"the file {self.path}"

    def describe(self) -> dict[str, object]:
        """The hash of the file and what happens to unknown documents; raises FormatError where it cannot be read."""
        return {"system": "run", "sha256": self._content(), "unknown": self.unknown}

    def adapted_to(self, collection: str, instruction: str) -> StoredRun:
        """The file of a collection, where {dataset} stands for its name."""
        return replace(self, path=self.path.replace(COLLECTION, collection))

    def pool_depth(self, k: int, documents: int) -> int:
        """The whole rankings of the file."""
        return max(k, documents)

    def is_drawn(self) -> bool:
        """Its order is that of the file."""
        return False

    def components(self) -> tuple[Component, ...]:
        """None: nothing is kept but the file."""
        return ()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> StoredRunSearcher:
        """Read the file; raises FormatError and BadRanking as `read_run`, and for documents that are unknown."""
        self._content()
        with unquoted(Path(self.path), Path()):  # an experiment of somebody else's may name it
            run = read_run(self.path)
        doc = corpus.ids.codes(run.docs.strings).astype(np.int32)[run.doc]

        def document(row: int) -> str:
            return run.docs[int(run.doc[row])]

        _, note = known_rows(run.query_of_row(), doc, document, run.queries, self.unknown)
        return StoredRunSearcher(self, run, corpus.ids, doc, note)

    def open(self, corpus: Corpus, context: Context) -> StoredRunSearcher:
        """As `index`: nothing is kept."""
        return self.index(corpus, context)

    def _content(self) -> str:
        """The SHA-256 of the file, read again where its size, times or place on the disk changed."""
        if COLLECTION in self.path:
            raise BadValue(f"{self}: {COLLECTION} stands for the name of a collection, and none was given")
        try:
            check_regular(Path(self.path))
            stat = Path(self.path).stat()
            return _sha256(self.path, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise FormatError(self.path, reason, "a file of rankings, such as TREC's") from None


@lru_cache(maxsize=64)
def _sha256(path: str, state: tuple[int, ...]) -> str:
    """The SHA-256 of a file; state: what it was when it was read."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, eq=False)
class StoredRunSearcher:
    """The rankings of a file, ready to answer.

    docs: the collection's documents; doc: their number in each row of the run, -1 for one it does not have; note: what
    was left out of the file, "" where nothing was.
    """

    system: StoredRun
    run: Run
    docs: Ids
    doc: Int32
    note: str = ""

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The first k of each query's ranking; warns (RankingWarning) of queries without one and of what was left out.

        Raises BadRanking where the file answers none of the queries, BadValue for k below 1.
        """
        query = queries.ids.codes(self.run.queries.strings)[self.run.query_of_row()]
        count, missing = len(queries), np.setdiff1d(np.arange(len(queries)), query)
        if count > 1 and len(missing) == count:
            first = f"such as '{self.run.queries[0]}'" if len(self.run) else "none at all"
            raise BadRanking(
                f"{self.system}: it answers none of {count:,} queries, the first '{queries.ids[0]}'; "
                f"its own are {first}"
            )
        notes = [self.note] if self.note else []
        if len(missing):
            first = f"the first '{queries.ids[int(missing[0])]}'; they have no answer"
            notes = [f"{len(missing):,} of {count:,} queries are not in the file, {first}", *notes]
        for note in notes:
            warnings.warn(RankingWarning(f"{self.system}: {note}"), stacklevel=2)
        rows = np.flatnonzero((query >= 0) & (self.doc >= 0))
        columns = query[rows], self.doc[rows], self.run.score[rows]
        return Run.from_columns(queries.ids, self.docs, *columns, Named(str(self.system))).top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """What may be ranked of the whole rankings."""
        longest = int(np.diff(self.run.ptr).max(initial=1))
        run = self.search(queries, max(k, longest), context).allowed(queries).top(k)
        note_lacking(run, queries, k - context.beyond, f"the file has {longest:,} at most for a query")
        return run

    def nested(self, queries: Queries, k: int) -> bool:
        """Whether the file shows what follows k: its rankings go on, or end without a tie."""
        ptr, length = self.run.ptr, np.diff(self.run.ptr)
        tied_end = tied_at_end(ptr, tie_groups(ptr, self.run.score))
        return int(length.max(initial=0)) > k or not cut_in_ties(length, tied_end)[1]

    def costs(self) -> Costs:
        """None that anybody measured: it may be asked again, and reads a file."""
        return Costs(repeatable=True, measured=False)


# ----------
# The candidates that a collection names for its queries, in a drawn order.


@SYSTEMS.register("pool")
@dataclass(frozen=True)
class CandidatePool:
    """A query's candidates in a drawn order, which ranks nothing; needs no index, and no text.

    The order is that of hashes of a fixed seed, the query's and the document's identifier, so that neither the order of
    a file nor identifiers decide anything. A query without candidates has no answer. Scores fall by 1 from one to the
    next.
    """

    __repr__ = shown
    __rshift__ = then

    def __str__(self) -> str:
        return "pool"

    def describe(self) -> dict[str, object]:
        """Its algorithm: the candidates are the queries'."""
        return {"system": "pool", "algorithm": algorithm("candidates")}

    def pool_depth(self, k: int, documents: int) -> int:
        """All candidates."""
        return max(k, documents)

    def is_drawn(self) -> bool:
        """It ranks nothing."""
        return True

    def components(self) -> tuple[Component, ...]:
        """None: it keeps nothing."""
        return ()

    @checked
    def index(self, corpus: Corpus, context: Context = IN_MEMORY) -> CandidatePoolSearcher:
        """Nothing is indexed."""
        return CandidatePoolSearcher(corpus)

    def open(self, corpus: Corpus, context: Context) -> CandidatePoolSearcher:
        """As `index`: nothing is kept."""
        return CandidatePoolSearcher(corpus)


@dataclass(frozen=True, eq=False)
class CandidatePoolSearcher:
    """The documents among which candidates are looked up."""

    corpus: Corpus

    @checked
    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The first k candidates of each query that are documents and not excluded; warns (RankingWarning) of more.

        Raises BadValue where no query has any, and for k below 1.
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
            warnings.warn(RankingWarning(f"pool: {lost}; -k {most} keeps all"), stacklevel=2)
        return whole.top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """As `search`."""
        return self.search(queries, k, context)

    costs = only_time
