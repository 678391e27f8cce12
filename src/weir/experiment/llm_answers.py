"""What the language models of a results folder answered: counts from its records, and prompts one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weir.core.run import Run
from weir.datasets.load import Dataset
from weir.errors import BadValue, FormatError, UnknownName
from weir.experiment.costs import stages_of
from weir.experiment.finished import Finished, cell_collection
from weir.experiment.stage_store import StageShelf
from weir.stages.stage import RECORD, Stage, changes
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, parts_of
from weir.systems.expression import parse_system
from weir.systems.rerank.llm_reranker import LLMReranker
from weir.systems.rerank.llm_trace import Exchange, traced
from weir.systems.rerank.reranking import first_rows, rows_of_run

__all__ = ["ModelUse", "QueryTrace", "model_uses", "query_traces"]


@dataclass(frozen=True)
class ModelUse:
    """What a model was asked in making a system's rankings, as their record has it.

    model: as the system names it; named: as it names itself; answers: that were read, of which `stored` were kept
    before; verdicts: answers by what became of them; cut: those without a verdict that were cut; tokens, of which
    answer_tokens are the answers'; dollars: None without a price; retried: attempts that were followed by another;
    faults: attempts that failed, by how; flagged: documents that speak to the model.
    """

    dataset: str
    system: str
    model: str
    named: str
    answers: int
    stored: int
    verdicts: dict[str, int]
    cut: int
    tokens: int
    answer_tokens: int
    dollars: float | None
    retried: int
    faults: dict[str, int]
    flagged: int


@dataclass(frozen=True)
class QueryTrace:
    """What a model was asked about one query for a system; model: as the system names it; text: of the query.

    exchanges: every prompt in the order asked; whole: whether they are all, False where others followed from an answer
    that is not kept.
    """

    dataset: str
    system: str
    query: str
    text: str
    model: str
    exchanges: tuple[Exchange, ...]
    whole: bool


def model_uses(cells: Sequence[Finished]) -> list[ModelUse]:
    """What every model behind some cells was asked; raises FormatError for a record of another layout."""
    return [use for cell in cells for use in _uses(cell)]


def _uses(cell: Finished) -> Iterator[ModelUse]:
    name = cell.label or cell.system
    for folder, record in stages_of(cell):
        try:
            for use in record.facts.get("services", []):
                if "verdicts" in use:
                    yield _use(cell.dataset, name, use)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise FormatError(folder / RECORD, "another layout", "a record of weir run") from None


def _use(dataset: str, system: str, use: dict[str, Any]) -> ModelUse:
    return ModelUse(
        dataset,
        system,
        str(use["service"]),
        str(use.get("versions", {}).get("model", "")),
        int(use["stored"]) + int(use["answered"]),
        int(use["stored"]),
        {str(kind): int(count) for kind, count in use["verdicts"].items()},
        int(use.get("cut", 0)),
        int(use.get("tokens", 0)),
        int(use.get("answer_tokens", 0)),
        use.get("dollars"),
        int(use["retried"]),
        {str(kind): int(count) for kind, count in use["faults"].items()},
        int(use.get("flagged", 0)),
    )


def query_traces(cells: Sequence[Finished], query: str) -> list[QueryTrace]:
    """What every model behind some cells was asked about a query, from kept answers; nobody is asked.

    Raises BadValue where no cell has a language model, where a collection is not here as it was, where settings or
    prompts are others now, and where the first stage's rankings are gone; UnknownName for a query that no collection
    has.
    """
    found: list[QueryTrace] = []
    known: set[str] = set()
    prompted = [cell for cell in cells if _prompts(parse_system(cell.system))]
    if not prompted:
        raise BadValue("none of these systems asks a language model: nothing to trace")
    for cell in prompted:
        dataset = _collection(cell)
        known.update(dataset.queries.ids)
        if query in known:
            found += _cell_traces(cell, dataset, query)
    if not found:
        raise UnknownName("query among these results", query, known)
    return found


def _prompts(system: object) -> list[Pipeline]:
    """The parts of a system in which a language model re-ranks, each behind those whose rankings it is given."""
    parts = (part for part in parts_of(system) if isinstance(part, Pipeline))
    found = [part for part in parts if isinstance(part.reranker, LLMReranker)]
    return sorted(found, key=lambda part: len(list(parts_of(part))))


def _collection(cell: Finished) -> Dataset:
    found = cell_collection(cell)
    if found is None:
        where = cell.scored[-1][1].facts.get("collection")
        raise BadValue(
            f"{cell.dataset}: the collection is not at {where} as it was measured; put it back there"
        )
    return found


def _cell_traces(cell: Finished, dataset: Dataset, query: str) -> Iterator[QueryTrace]:
    system = adapted_to(parse_system(cell.system), dataset.name, dataset.instruction)
    made = Stage("run", "", {"system": cell.ranked.declared["system"]})
    if changed := changes(made, Stage("run", "", {"system": system.describe()})):
        name, before, now = changed[0]
        raise BadValue(
            f"{cell.system}: {name} was {before or 'not there'} when it was made and is {now or 'not there'} now"
        )
    at = dataset.queries.ids.codes([query])
    if at[0] < 0:
        return
    one = dataset.queries.take(at)
    for part in _prompts(system):
        candidates = _candidates(cell, dataset, part, int(at[0]))
        assert isinstance(part.reranker, LLMReranker)
        exchanges, whole = traced(part.reranker, dataset.corpus, one, candidates)
        said = (
            cell.dataset,
            cell.label or cell.system,
            query,
            one.text.tolist()[0],
            part.reranker.chat.model,
        )
        yield QueryTrace(*said, exchanges, whole)


def _candidates(cell: Finished, dataset: Dataset, part: Pipeline, query: int) -> Run:
    """What the first stage of a pipeline found for a query and its re-ranker was shown."""
    wanted = Stage("run", "", {"system": part.first.describe()}).decisive
    for folder, record in stages_of(cell):
        if (
            record.kind == "run"
            and Stage("run", "", {"system": record.declared["system"]}).decisive == wanted
        ):
            root = cell.folder.parent
            run = StageShelf(root, root, dataset, lambda *_: None).read(folder)
            own = dataset.corpus.ids.codes(run.queries.strings)
            chosen = first_rows(run, own, part.reranker.depth)
            return _of_query(rows_of_run(run, chosen), dataset, query)
    raise BadValue(
        f"{cell.system}: the rankings of {part.first}, which were re-ranked, are not in this folder"
    )


def _of_query(run: Run, dataset: Dataset, query: int) -> Run:
    """The ranking of one query, numbered 0."""
    rows = slice(int(run.ptr[query]), int(run.ptr[query + 1]))
    doc, score = run.doc[rows], run.score[rows]
    ptr = np.array([0, len(doc)], np.int64)
    return Run(run.queries.take(np.array([query])), dataset.corpus.ids, ptr, doc, score)
