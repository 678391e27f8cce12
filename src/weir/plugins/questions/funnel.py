"""Follow relevant documents through a system's stages, to see where they are lost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weir.argument_types import named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.judged import Judged
from weir.core.pairs import pair_rows
from weir.core.qrels import Qrels
from weir.core.results import ResultKind
from weir.core.rounding import between, count, counted, figure, percent, score
from weir.core.run import Named, Run
from weir.core.strings import Float64, Int64
from weir.core.tables import Table, excerpt, sentences, table_of
from weir.errors import BadValue
from weir.experiment.why import defined_mean
from weir.measures.measure import Measure, direction, parse_measure
from weir.plugins.questions.document_rules import JoinedRules
from weir.registry import check_whole
from weir.stats.resampling import interval

Mask: TypeAlias = NDArray[np.bool_]

# ----------
# What is given: the ranking that leaves each stage.


StageKind: TypeAlias = Literal["documents", "filter", "chunker", "search", "fusion", "rerank", "cut"]
RANKING_KINDS = ("search", "fusion", "rerank")
"""Kinds of stages that order documents."""


@dataclass(frozen=True, eq=False)
class StageRanking:
    """The documents that one stage of a system passes on for each query."""

    name: str
    kind: StageKind
    run: Run
    """All documents that leave the stage, in its order; before the first search, only judged documents."""
    branches: tuple[tuple[StageRanking, ...], ...] = ()
    """The stages of each system that a fusion fuses."""


@named_arguments
@dataclass(frozen=True)
class FunnelRules:
    """Settings for following relevant documents through a system's stages.

    Raises BadValue for numbers below 1, a grade not above 0, a measure of intents, and a measure whose higher
    values are not better.
    """

    k: int = 10
    """Number of documents of a final answer."""
    measure: str = "nDCG@10"
    """Measure by which stages and perfect orders are scored."""
    rel: float = 1
    """Lowest relevant grade."""
    depth: int = 1000
    """Depth, in documents, to which each search is repeated to find what its cut loses."""

    def __post_init__(self) -> None:
        check_whole("k", self.k)
        check_whole("depth", self.depth)
        if not self.rel > 0:
            raise BadValue(f"rel is {self.rel}; expected a grade above 0")
        measure = parse_measure(self.measure)
        object.__setattr__(self, "measure", str(measure))
        if measure.by_intent or direction(self.measure) != 1:
            raise BadValue(f"{measure}: a perfect order needs a measure of documents of which more is better")


# ----------
# What is found: a line for each stage.

EXCERPT_CHARACTERS, QUERY_CHARACTERS = 100, 60


@dataclass(frozen=True)
class _LostDocument:
    """A relevant document that a stage loses."""

    query: str
    asked: str
    """Beginning of the query's text; "" if unknown."""
    document: str
    grade: float
    ranks: tuple[int, ...]
    """Its ranks in earlier rankings, first to last; () if none ranked it."""
    text: str
    """Beginning of its title and text; "" if unknown."""


@dataclass(frozen=True)
class LeakedDocument:
    """A forbidden document among the answers."""

    query: str
    asked: str
    """Beginning of the query's text; "" if unknown."""
    document: str
    rank: int
    through: tuple[str, ...]
    """Names of the searches that rank it."""
    text: str


@dataclass(frozen=True)
class FunnelStage:
    """The numbers of relevant documents that a stage passes on and loses."""

    branch: str
    """Number of the fused system, such as "2", or "2.1" within a fusion inside it; "" outside fusions."""
    name: str
    kind: StageKind
    left: int
    """Number of relevant documents left."""
    lost: int
    """Number of relevant documents left before, but neither in this stage's answers nor in later ones."""
    share: float
    """Mean over queries of the share of their relevant documents that is left, with its 95% interval."""
    low: float
    high: float
    only: int | None
    """Number of relevant documents that only this fused system has at its end; None elsewhere."""
    documents: float
    """Mean number of documents that leave the stage; NaN before the first search."""
    value: float
    """Mean of the measure for its order; documents lost by a chunker are not relevant. NaN without an order."""
    ceiling: float
    """Mean of the measure for a perfect order, cut at k, of the documents that leave the stage."""
    losses: tuple[_LostDocument, ...] = ()
    """Highest grade first, then best earlier rank."""
    forbidden: int | None = None
    """Number of forbidden documents that leave the stage; None without rules, and before the first search."""


@dataclass(frozen=True)
class Funnel:
    """The relevant documents that a system loses, stage by stage.

    The losses of `whole` and the last stage's `left` add up to `relevant`.
    """

    dataset: str
    system: str
    k: int
    measure: str
    rel: float
    queries: int
    """Number of queries with a relevant document."""
    relevant: int
    """Number of relevant documents of these queries."""
    stages: tuple[FunnelStage, ...]
    """In order; stages of fused systems stand before their fusion."""
    notes: tuple[str, ...] = ()
    leaks: tuple[LeakedDocument, ...] = ()
    """Forbidden documents among the answers, by the rules beside the judgments."""

    @property
    def whole(self) -> tuple[FunnelStage, ...]:
        """The stages that every document passes, outside fused systems; if there are none, all stages."""
        return tuple(one for one in self.stages if not one.branch) or self.stages

    @property
    def worst(self) -> FunnelStage:
        """The stage of `whole` that loses most relevant documents, the first of equals."""
        return max(self.whole, key=lambda one: one.lost)


def funnel_of(
    stages: Sequence[StageRanking],
    qrels: Qrels,
    rules: FunnelRules | None = None,
    texts: tuple[Corpus | None, Queries | None] = (None, None),
) -> Funnel:
    """Return how many relevant documents are left after each stage, and which it loses; `system` is "".

    stages: first to last.
    texts: documents and queries, to show the first words of lost documents and their queries.

    A document is lost at the first stage after which no stage has it; a chunker's loss is final. Raises
    BadValue without stages or relevant documents.
    """
    rules = rules or FunnelRules()
    gold = qrels.grade >= rules.rel
    if not stages or not gold.any():
        raise BadValue(
            f"found {counted(len(stages), 'stage')} and {counted(int(gold.sum()), 'document')} of grade "
            f"{rules.rel:g} or better; expected one or more of both"
        )
    joined = _Joined(qrels, rules, parse_measure(rules.measure), gold, *texts)
    lines, _ = _followed(stages, gold, joined, "")
    queries = int(np.count_nonzero(joined.relevant))
    notes = []
    if lacking := len(qrels) - queries:
        notes.append(
            f"{counted(lacking, 'query', 'queries')} without a relevant document: in no share here, with their "
            f"value in {rules.measure}"
        )
    return Funnel(
        qrels.name,
        "",
        rules.k,
        rules.measure,
        rules.rel,
        queries,
        int(gold.sum()),
        tuple(lines),
        tuple(notes),
        tuple(_leaks(stages, joined)),
    )


@dataclass(frozen=True, eq=False)
class _Joined:
    qrels: Qrels
    rules: FunnelRules
    measure: Measure
    gold: Mask
    """bool[judgments]: the grade is relevant."""
    corpus: Corpus | None
    queries: Queries | None

    @cached_property
    def query(self) -> Int64:
        return self.qrels.query_of_row().astype(np.int64)

    @cached_property
    def relevant(self) -> Int64:
        return np.bincount(self.query[self.gold], minlength=len(self.qrels))

    def shares(self, left: Mask) -> Float64:
        some = self.relevant > 0
        shares: Float64 = np.bincount(self.query[left], minlength=len(self.qrels))[some] / self.relevant[some]
        return shares

    def mean(self, run: Run, left: Mask) -> float:
        joined, row = Judged.of(run, self.qrels), judged_rows(run, self.qrels)
        lost = np.flatnonzero((row >= 0) & self.gold & ~left)  # by a chunker, though ranked
        if len(lost):
            places = np.stack((joined.query, joined.rank), axis=1).tolist()
            of_lost = set(zip(self.query[lost].tolist(), run.ranks()[row[lost]].tolist(), strict=True))
            stays = np.array([tuple(place) not in of_lost for place in places])
            joined = replace(joined, grade=np.where(stays, joined.grade, 0))
        return defined_mean(self.measure.per_query(joined), self.measure)

    def forbidden(self, run: Run) -> dict[tuple[str, str], int] | None:
        beside = self.qrels.beside
        rules = None if beside is None else beside.join(run, self.qrels.queries)
        if not isinstance(rules, JoinedRules):
            return None
        rows = np.flatnonzero(rules.forbidden)
        names = self.qrels.queries.take(rules.query[rows]).tolist(), run.docs.take(rules.doc[rows]).tolist()
        return dict(zip(zip(*names, strict=True), rules.rank[rows].tolist(), strict=True))

    def query_text(self, query: str) -> str:
        text = None if self.queries is None else self.queries.get(query)
        return excerpt(" ".join((text or "").split()), QUERY_CHARACTERS)

    def document_texts(self, names: Sequence[str]) -> list[str]:
        texts = [""] * len(names)
        if self.corpus is not None:
            code = self.corpus.ids.codes(names)
            there = np.flatnonzero(code >= 0)
            found = self.corpus.view_of("title text", code[there], " | ")
            for at, text in zip(there.tolist(), found, strict=True):
                line = " ".join(text.removesuffix(" | ").split())
                texts[at] = excerpt(line, EXCERPT_CHARACTERS).replace(" |…", "…")
        return texts

    def perfect(self, run: Run, left: Mask) -> Run:
        row = judged_rows(run, self.qrels)
        found = row >= 0
        grade, stays = np.zeros(len(run.doc)), np.ones(len(run.doc), np.bool_)
        grade[row[found]] = self.qrels.grade[found]
        stays[row[found & self.gold & ~left]] = False
        columns = run.query_of_row()[stays], run.doc[stays], grade[stays]
        return Run.from_columns(run.queries, run.docs, *columns, Named("perfect")).top(self.rules.k)


def judged_rows(run: Run, qrels: Qrels) -> Int64:
    """Return each judgment's position in the run's rows, int64[judgments]; -1 if the document is not
    returned."""
    return pair_rows(run, qrels.queries, qrels.docs, qrels.query_of_row(), qrels.doc)


def _followed(
    stages: Sequence[StageRanking], alive: Mask, joined: _Joined, path: str
) -> tuple[list[FunnelStage], Mask]:
    rows = [judged_rows(stage.run, joined.qrels) for stage in stages]
    passed = [row >= 0 for row in rows]
    beside: list[list[FunnelStage]] = []
    for n, stage in enumerate(stages):
        of_branches, ends = _branches(stage, np.logical_and.reduce([alive, *passed[:n]]), joined, path)
        beside.append(of_branches)
        if ends:
            passed[n] = np.logical_or.reduce(ends)
        if stage.kind == "chunker":  # a document in which nothing whole is left stays lost, wherever it ranks
            passed[n:] = [one & passed[n] for one in passed[n:]]
    for n in range(len(stages) - 2, -1, -1):
        passed[n] |= passed[n + 1]
    lines, ranks = list[FunnelStage](), list[Int64]()
    for stage, row, of_branches, stays in zip(stages, rows, beside, passed, strict=True):
        left = alive & stays
        lines += [*of_branches, _line(stage, alive, left, ranks, joined, path)]
        if stage.kind in RANKING_KINDS:
            ranks.append(np.where(row >= 0, np.append(stage.run.ranks(), 0)[row], 0))
        alive = left
    return lines, alive


def _branches(
    stage: StageRanking, entering: Mask, joined: _Joined, path: str
) -> tuple[list[FunnelStage], list[Mask]]:
    followed = [
        _followed(branch, entering, joined, f"{path}.{number}".lstrip("."))
        for number, branch in enumerate(stage.branches, 1)
    ]
    ends = [end for _, end in followed]
    times = np.sum(ends, axis=0)
    lines = list[FunnelStage]()
    for own, end in followed:
        lines += [*own[:-1], replace(own[-1], only=int(np.count_nonzero(end & (times == 1))))]
    return lines, ends


def _line(
    stage: StageRanking, before: Mask, left: Mask, ranks: Sequence[Int64], joined: _Joined, path: str
) -> FunnelStage:
    shares, run = joined.shares(left), stage.run
    ordered = stage.kind in (*RANKING_KINDS, "cut")
    return FunnelStage(
        path,
        stage.name,
        stage.kind,
        int(np.count_nonzero(left)),
        int(np.count_nonzero(before & ~left)),
        math.fsum(shares.tolist()) / len(shares),
        *interval(shares, unit=True),
        None,
        len(run.doc) / max(len(run), 1) if ordered else math.nan,
        joined.mean(run.top(joined.rules.k), left) if ordered else math.nan,
        joined.mean(joined.perfect(run, left), left),
        tuple(_losses(np.flatnonzero(before & ~left), ranks, joined)),
        None if not ordered or (found := joined.forbidden(run)) is None else len(found),
    )


def _losses(rows: Int64, ranks: Sequence[Int64], joined: _Joined) -> Iterator[_LostDocument]:
    qrels = joined.qrels
    last = ranks[-1][rows] if ranks else np.zeros(len(rows), np.int64)
    rows = rows[np.lexsort((rows, np.where(last > 0, last, np.iinfo(np.int64).max), -qrels.grade[rows]))]
    names = qrels.docs.take(qrels.doc[rows]).tolist()
    asked = qrels.queries.take(joined.query[rows]).tolist()
    query_texts = {query: joined.query_text(query) for query in dict.fromkeys(asked)}
    for row, query, name, text in zip(rows.tolist(), asked, names, joined.document_texts(names), strict=True):
        places = tuple(int(one[row]) for one in ranks if one[row] > 0)
        grade = float(qrels.grade[row])
        yield _LostDocument(query, query_texts[query], name, grade, places, text)


def _leaks(stages: Sequence[StageRanking], joined: _Joined) -> Iterator[LeakedDocument]:
    answered = joined.forbidden(stages[-1].run) or {}
    if not answered:
        return
    searches = {name: joined.forbidden(one.run) or {} for name, one in _searches(stages, "")}
    texts = joined.document_texts([document for _, document in answered])
    for ((query, document), rank), text in zip(answered.items(), texts, strict=True):
        through = tuple(name for name, found in searches.items() if (query, document) in found)
        yield LeakedDocument(query, joined.query_text(query), document, rank, through, text)


def _searches(stages: Sequence[StageRanking], path: str) -> Iterator[tuple[str, StageRanking]]:
    for stage in stages:
        for number, branch in enumerate(stage.branches, 1):
            yield from _searches(branch, f"{path}.{number}".lstrip("."))
        if stage.kind == "search":
            yield (f"{path}: {stage.name}" if path else stage.name), stage


# ----------
# Tables.

SHOWN_LOSSES = 5
"""Number of lost documents shown for each stage."""


def _funnel_tables(funnels: Sequence[Funnel], show: int = SHOWN_LOSSES) -> tuple[Table, ...]:
    tables = []
    for one in funnels:
        tables += [stages_table(one), sentences(verdict(one))]
        lines = [
            [stage.name, f"{lost.query} {lost.asked}".strip(), lost.document, f"{lost.grade:g}",
             " > ".join(map(str, lost.ranks)) or "-", lost.text]
            for stage in one.whole for lost in stage.losses[:show]
        ]  # fmt: skip
        if lines:
            head = ["lost at", "query", "document", "grade", "ranks before", "text"]
            tables.append(table_of([head, *lines], right=2, tail=1, keys=3))
        if one.leaks:
            lines = [
                [
                    f"{leak.query} {leak.asked}".strip(),
                    leak.document,
                    str(leak.rank),
                    ", ".join(leak.through),
                    leak.text,
                ]
                for leak in one.leaks[: max(show, 1)]
            ]
            head = ["query", "forbidden document", "rank", "let through by", "text"]
            tables.append(table_of([head, *lines], right=1, tail=2, keys=2, title=_leak_sentence(one)))
        tables += [sentences(*(f"note: {note}" for note in one.notes))] if one.notes else []
    return tuple(tables)


def stages_table(funnel: Funnel) -> Table:
    """Return a table with a row for each stage; a fused system's stages begin with its number."""
    fused = any(stage.branch for stage in funnel.stages)
    ruled = any(stage.forbidden is not None for stage in funnel.stages)
    head = ["stage", "relevant left", "share", "95% interval", "lost here", *["only here"] * fused]
    head += ["forbidden"] * ruled
    lines = [[*head, "documents", f"{funnel.measure} as ranked", "at best"]]
    for stage in funnel.stages:
        lines.append(
            [
                f"{stage.branch}: {stage.name}" if stage.branch else stage.name,
                count(stage.left),
                score(stage.share),
                between(stage.low, stage.high),
                count(stage.lost),
                *["" if stage.only is None else count(stage.only)] * fused,
                *["" if stage.forbidden is None else count(stage.forbidden)] * ruled,
                figure(stage.documents),
                score(stage.value),
                score(stage.ceiling),
            ]
        )
    where = " on ".join(filter(None, (funnel.system, funnel.dataset)))
    relevant = (
        f"{counted(funnel.relevant, 'relevant document')} of {counted(funnel.queries, 'query', 'queries')}"
    )
    return table_of(lines, right=None, title=f"{where}: {relevant}".removeprefix(": "))


def _leak_sentence(funnel: Funnel) -> str:
    queries = len({leak.query for leak in funnel.leaks})
    documents = counted(len(funnel.leaks), "forbidden document")
    return f"{documents} in the answers to {counted(queries, 'query', 'queries')}"


def verdict(funnel: Funnel) -> str:
    """Return a sentence: how many relevant documents are left, and the stage that loses most or that none loses any.

    A later stage than the first has the score of a perfect re-ranker of the documents that reach it, and the system's.
    """
    last, worst = funnel.whole[-1], funnel.worst
    rest = f"{count(last.left)} of {count(funnel.relevant)} relevant documents are left"
    if not worst.lost:
        return f"{rest}: no stage loses one"
    before = funnel.whole[: funnel.whole.index(worst)]
    part = f"{count(worst.lost)} ({percent(worst.lost / funnel.relevant)})"
    tail = (
        f"; a perfect re-ranker of what reaches it would have {funnel.measure} {score(before[-1].ceiling)}, the "
        f"system has {score(last.value)}"
        if before
        else ""
    )
    return f"{rest}; the largest loss is at {worst.name}: {part}{tail}"


FUNNELS = ResultKind("funnel", Funnel, _funnel_tables, parts="stages")
