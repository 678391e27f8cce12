"""Stored answers of language models: counts by model, and single prompts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import get_args

import numpy as np

from weir.core.results import ResultKind
from weir.core.rounding import count
from weir.core.run import Run
from weir.core.tables import Table, sentences, table_of
from weir.datasets.load import Dataset
from weir.errors import BadValue, UnknownName
from weir.experiment.results import ResultCell, as_weir_writes_it, cell_collection
from weir.experiment.stage_store import StageCache
from weir.experiment.stages import Stage, setting_changes
from weir.plugins.llm.chat import recorded_chat
from weir.plugins.llm.rerank import NOT_KEPT, Exchange, LLMReranker, traced
from weir.plugins.llm.verdicts import VerdictKind
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, parts_of
from weir.systems.expression import parse_system
from weir.systems.rerank.reranking import reranked_rows, rows_of_run

VERDICTS = (*get_args(VerdictKind), NOT_KEPT)
"""Every kind of verdict that a trace can show."""


@dataclass(frozen=True)
class ModelUse:
    """Counts of a language model's answers for a system and dataset."""

    dataset: str
    system: str
    model: str
    """The model's name in the system."""
    named: str
    """The model name that the service reports."""
    answers: int
    stored: int
    """Answers of earlier runs, included in `answers`."""
    verdicts: dict[str, int]
    """{verdict: number of answers}."""
    cut: int
    """Answers without a verdict, cut at max_tokens."""
    tokens: int
    """Tokens of prompts and answers, also of stored ones."""
    answer_tokens: int
    dollars: float | None
    """Cost of `tokens`; None without a price."""
    retried: int
    """Failed attempts that were repeated."""
    faults: dict[str, int]
    """Failed attempts by kind."""
    flagged: int
    """Documents with a possible prompt injection."""


@dataclass(frozen=True)
class QueryTrace:
    """A system's prompts about a query, with the stored answers."""

    dataset: str
    system: str
    query: str
    text: str
    model: str
    exchanges: tuple[Exchange, ...]
    """In the order asked, after filtering."""
    asked: int
    """Number of prompts before filtering."""
    whole: bool
    """False if more prompts would follow from a missing answer."""
    flagged: tuple[str, ...] = ()
    """Re-ranked documents with a possible prompt injection."""


def model_uses(cells: Sequence[ResultCell]) -> list[ModelUse]:
    """Return each result's counts of language models' answers, one ModelUse for each stage and model that it asked.

    Raises FormatError for a record of another layout.
    """
    uses = []
    for cell in cells:
        for _, record in cell.stages:
            with as_weir_writes_it(cell.folder):
                for use in record.facts.get("services", []):
                    if "verdicts" not in use:
                        continue
                    verdicts = {str(kind): int(count) for kind, count in use["verdicts"].items()}
                    uses.append(
                        ModelUse(
                            cell.dataset,
                            cell.label or cell.system,
                            str(use["service"]),
                            str(use.get("versions", {}).get("model", "")),
                            sum(verdicts.values()),
                            int(use["stored"]),
                            verdicts,
                            int(use.get("cut", 0)),
                            int(use.get("tokens", 0)),
                            int(use.get("answer_tokens", 0)),
                            use.get("dollars"),
                            int(use["retried"]),
                            {str(kind): int(count) for kind, count in use["faults"].items()},
                            int(use.get("flagged", 0)),
                        )
                    )
    return uses


def query_traces(
    cells: Sequence[ResultCell], query: str | None = None, verdicts: Collection[str] = ()
) -> list[QueryTrace]:
    """Return a trace of each query for each system that asks a language model, in the order of `cells`: its prompts,
    with the stored answers; no request is sent.

    query: a query's identifier; None for all.
    verdicts: keep only prompts with these verdicts (VERDICTS), and traces that have some.

    Raises UnknownName for an unknown query or verdict; BadValue if no system asks a language model, after changes of
    collection, settings or prompts, or without the first stage's rankings.
    """
    for kind in verdicts:
        if kind not in VERDICTS:
            raise UnknownName("verdict", kind, VERDICTS)
    prompted = [cell for cell in cells if _prompts(parse_system(cell.system))]
    if not prompted:
        raise BadValue("none of these systems asks a language model: nothing to trace")
    datasets: list[Dataset] = []
    for cell in prompted:
        dataset = cell_collection(cell)
        if dataset is None:
            where = cell.scored[-1][1].facts.get("collection")
            raise BadValue(
                f"{cell.dataset}: the collection is not at {where} as it was measured; put it back there"
            )
        datasets.append(dataset)
    every_query = {name for dataset in datasets for name in dataset.queries.ids}
    if query is not None and query not in every_query:
        raise UnknownName("query among these results", query, every_query)
    traces = [
        trace
        for cell, dataset in zip(prompted, datasets, strict=True)
        for trace in _cell_traces(cell, dataset, query)
    ]
    if not verdicts:
        return traces
    chosen = [
        replace(one, exchanges=tuple(e for e in one.exchanges if e.verdict in verdicts)) for one in traces
    ]
    return [one for one in chosen if one.exchanges]


def _prompts(system: object) -> list[Pipeline]:
    parts = (part for part in parts_of(system) if isinstance(part, Pipeline))
    prompted = [part for part in parts if isinstance(part.reranker, LLMReranker)]
    return sorted(prompted, key=lambda part: len(list(parts_of(part))))


def _cell_traces(cell: ResultCell, dataset: Dataset, query: str | None) -> Iterator[QueryTrace]:
    system = adapted_to(parse_system(cell.system), dataset.name, dataset.instruction)
    recorded = Stage("run", "", {"system": cell.ranked.declared["system"]})
    if changed := setting_changes(recorded, Stage("run", "", {"system": system.describe()})):
        name, before, now = changed[0]
        raise BadValue(
            f"{cell.system}: {name} was {before or 'not there'} when it was made and is {now or 'not there'} now"
        )
    ids = dataset.queries.ids
    rows_wanted = np.arange(len(ids)) if query is None else ids.codes([query])
    for part in _prompts(system):
        reranker = part.reranker
        assert isinstance(reranker, LLMReranker)
        candidates = _candidates(cell, dataset, part)
        with recorded_chat(reranker.chat) as talk:
            for at in rows_wanted[rows_wanted >= 0]:
                one = dataset.queries.take(np.array([at]))
                rows = slice(int(candidates.ptr[at]), int(candidates.ptr[at + 1]))
                ptr = np.array([0, rows.stop - rows.start], np.int64)  # of one query, numbered 0
                one_ranking = replace(
                    candidates,
                    queries=candidates.queries.take(np.array([at])),
                    ptr=ptr,
                    doc=candidates.doc[rows],
                    score=candidates.score[rows],
                )
                exchanges, whole, flagged = traced(reranker, talk.anew(), dataset.corpus, one, one_ranking)
                about = (cell.dataset, cell.label or cell.system, ids[int(at)], one.text.tolist()[0])
                yield QueryTrace(*about, reranker.chat.model, exchanges, len(exchanges), whole, flagged)


def _candidates(cell: ResultCell, dataset: Dataset, part: Pipeline) -> Run:
    declaration = Stage("run", "", {"system": part.first.describe()}).decisive
    for folder, record in cell.stages:
        if (
            record.kind == "run"
            and Stage("run", "", {"system": record.declared["system"]}).decisive == declaration
        ):
            root = cell.folder.parent
            run = StageCache(root, root, dataset, lambda *_: None).read(folder)
            return rows_of_run(run, reranked_rows(part, run, dataset.queries, dataset.corpus))
    raise BadValue(
        f"{cell.system}: the rankings of {part.first}, which were re-ranked, are not in this folder"
    )


# ----------
# Tables.

INDENT_COLUMNS = 8
"""Columns before the text of a prompt or an answer."""


def use_tables(uses: Sequence[ModelUse]) -> tuple[Table, ...]:
    """Return [a table] with a row for each use, and a column for each verdict that occurs."""
    kinds = dict.fromkeys(["ok", *sorted({kind for one in uses for kind in one.verdicts})])
    head = ["dataset", "system", "model", "answers", *kinds, "cut", "flagged", "faults", "tokens", "dollars"]
    lines = [
        [
            one.dataset,
            one.system,
            one.named or one.model,
            f"{one.answers:,}",
            *(f"{one.verdicts.get(kind, 0):,}" for kind in kinds),
            f"{one.cut:,}",
            f"{one.flagged:,}",
            f"{sum(one.faults.values()):,}",
            f"{one.tokens:,}",
            "-" if one.dollars is None else f"{one.dollars:,.4f}",
        ]
        for one in uses
    ]
    return (table_of([head, *lines], right=len(head) - 3, keys=2),)


USES = ResultKind("llm_use", ModelUse, use_tables)


def _trace_tables(traces: Sequence[QueryTrace]) -> tuple[Table, ...]:
    tables = []
    for one in traces:
        parts = [sentences(f"query {one.query} of {one.dataset}, {one.system}")]
        system_text = ""
        for exchange in one.exchanges:
            lines = []
            if exchange.system_text != system_text:
                system_text = exchange.system_text
                lines += _block("system", system_text)
            lines += _block("about", ", ".join(exchange.documents)) if exchange.documents else []
            lines += _block("asked", exchange.user_text)
            lines += [] if exchange.answer is None else _block("said", exchange.answer)
            costs = []
            if exchange.verdict != NOT_KEPT:
                if exchange.tokens_in is not None:
                    costs.append(
                        f"{count(exchange.tokens_in)} tokens and {count(exchange.tokens_out or 0)} of the answer"
                    )
                if exchange.milliseconds is not None:
                    costs.append(f"{exchange.milliseconds:,.0f} ms")
                costs += [part for part in (exchange.time, exchange.named) if part]
                costs += [] if exchange.finish == "stop" else [f"ended by {exchange.finish}"]
            read = f"{exchange.number} of {one.asked}: " + f"{exchange.verdict} {exchange.value}".strip()
            head = sentences(read + (f" ({', '.join(costs)})" if costs else ""))
            parts += [head, replace(sentences(*lines), hang=INDENT_COLUMNS, follows=True)]
        if not one.asked:
            parts.append(sentences("the model was asked nothing: there was nothing to order"))
        if not one.whole:
            parts.append(sentences("what was asked next follows from answers that are not kept here"))
        if one.flagged:
            parts.append(sentences(f"the model is spoken to by: {', '.join(one.flagged)}"))
        tables += parts
    return tuple(tables)


TRACES = ResultKind(
    "llm_trace",
    QueryTrace,
    _trace_tables,
    parts="exchanges",
    records=lambda one: [
        {"dataset": one.dataset, "system": one.system, "query": one.query, "model": one.model}
        | asdict(exchange)
        for exchange in one.exchanges
    ],
)


def _block(name: str, text: str) -> list[str]:
    first, *others = (text or "(empty)").split("\n")
    return [name.ljust(INDENT_COLUMNS) + first, *(" " * INDENT_COLUMNS + line for line in others)]
