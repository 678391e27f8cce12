"""`weir.reranking` and `weir.sensitivity_of`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.given import all_rankings, one_ranking
from weir.api.result_set import ResultSet
from weir.argument_types import checked
from weir.datasets.load import Dataset, load
from weir.datasets.scoring_rules import ScoringRules, judged_by
from weir.errors import BadValue
from weir.experiment.results import cell_collection, finished_cells, largest_k
from weir.files.frames import qrels_from, refuse_mismatched, run_from
from weir.files.paths import path_of
from weir.files.runs import read_repeating_run
from weir.measures.evaluate import distinct_names
from weir.measures.measure import parse_measure
from weir.plugins.llm.reordering import reorderings
from weir.plugins.llm.rerank import LLMReranker
from weir.plugins.llm.studies import StudyRules
from weir.plugins.llm.studies import sensitivity as studied
from weir.plugins.llm.study_tables import REORDERINGS, SENSITIVITIES
from weir.systems import parse_system
from weir.systems.compose import Pipeline
from weir.systems.expression import system as system_of

if TYPE_CHECKING:
    from weir.measures.measure import Measure
    from weir.plugins.llm.reordering import Reordering, ReorderRules
    from weir.plugins.llm.studies import Sensitivity
    from weir.systems.protocol import Retriever


@checked
def reranking(
    first: object,
    *reranked: object,
    qrels: object = None,
    measure: Measure | str = "nDCG@10",
    rules: ReorderRules | None = None,
    collection: str | Path | Dataset | None = None,
) -> ResultSet[Reordering]:
    """Return how each re-ranking changed the order and scores of its first stage (`weir study reranking`).

    first: the first stage's rankings, as `weir.evaluate` takes a run.
    reranked: re-rankings of it.
    qrels: judgments, for scores and position bias.
    measure: the measure to compare.
    rules: weir.ReorderRules.
    collection: the rankings' collection, by name or path. Its rules hold (self-matches, candidates, queries without
        an answer).

    Raises BadValue for re-rankings or judgments of other queries.
    """
    qrels, collection = judged_by(qrels, collection)
    first, reranked = one_ranking(first, collection), tuple(all_rankings(reranked, collection))
    if qrels is not None:
        refuse_mismatched(qrels, first)
    scoring = ScoringRules.of(collection)
    runs, repeated_rows, long_names = [], [], []
    for n, one in enumerate(reranked, 1):
        run, rows = read_repeating_run(one) if isinstance(one, (str, Path)) else (run_from(one), 0)
        runs.append(scoring.ranked(run))
        repeated_rows.append(rows)
        long_names.append(str(one) if isinstance(one, (str, Path)) else f"re-ranking {n}")
    names = distinct_names([run.name for run in runs], long_names)
    results = reorderings(
        scoring.ranked(run_from(first)),
        dict(zip(names, runs, strict=True)),
        None if qrels is None else scoring.counted(qrels_from(qrels)),
        parse_measure(str(measure)),
        rules,
        dict(zip(names, repeated_rows, strict=True)),
    )
    return ResultSet(REORDERINGS, tuple(results), scoring.notes)


@checked
def sensitivity_of(
    dataset: str | Path | Dataset | None = None,
    system: object = None,
    measure: Measure | str = "nDCG@10",
    rules: StudyRules | None = None,
    out: str | Path | None = None,
    results: str | Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[Sensitivity]:
    """Return how re-ranking by a language model depends on order, chance and depth (`weir study sensitivity`).

    dataset: a catalogue name, a folder, a golden set, hf:... or irds:...
    system: such as 'bm25 >> llm("listwise", model=...)'.
    measure: the measure to compare.
    rules: weir.StudyRules.
    out: folder for the records, by default none.
    results: a results folder. Its systems that end in a language model are studied on their collections, and
        `dataset` and `system` select among them by name.
    progress: called with (study, prompts done, prompts in all).

    Asks the model about every order, sample and depth. Raises BadValue unless a language model is the last re-ranker,
    ServiceError if the budget ends or a prompt gets no answer (the same call continues).
    """
    if results is not None:
        pairs = _reranked_in(path_of(results), dataset, system)
    elif dataset is None or system is None:
        raise BadValue("name a results folder, or a collection and a system")
    else:
        collection = dataset if isinstance(dataset, Dataset) else load(dataset)
        pairs = [(collection, parse_system(system) if isinstance(system, str) else system_of(system), "")]
    watch = progress or (lambda what, done, total: None)
    studies = []
    for collection, one, folder in pairs:
        records = None if out is None else path_of(out) / folder if len(pairs) > 1 else path_of(out)
        own_measure = parse_measure(str(measure))
        studies.append(studied(collection, one, own_measure, rules or StudyRules(), records, watch))
    return ResultSet(SENSITIVITIES, tuple(studies))


def _reranked_in(results: Path, dataset: object, system: object) -> list[tuple[Dataset, Retriever, str]]:
    rerankings: list[tuple[Dataset, Retriever, str]] = []
    for cell in largest_k(finished_cells(results))[0]:
        if dataset not in (None, cell.dataset) or (
            system is not None and str(system) not in (cell.system, cell.label)
        ):
            continue
        one = parse_system(cell.system)
        if isinstance(one, Pipeline) and isinstance(one.reranker, LLMReranker):
            collection = cell_collection(cell)
            if collection is None:
                raise BadValue(
                    f"{cell.system}: the judgments of {cell.dataset} that it was scored by are not here"
                )
            rerankings.append((collection, one, f"{cell.dataset}-{cell.folder.name}"))
    if not rerankings:
        raise BadValue(f"{results}: no chosen system has a language model at its end")
    return rerankings
