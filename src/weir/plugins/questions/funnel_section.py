"""The section of a report on where systems lose relevant documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weir.api.result_set import ResultSet
from weir.core.corpus import Queries
from weir.core.run import Run
from weir.core.short_names import short_names
from weir.core.tables import Table
from weir.datasets.load import Dataset
from weir.errors import BadValue, WeirError
from weir.experiment.results import ResultCell
from weir.experiment.stage_store import StageCache, run_file
from weir.experiment.stages import record_of
from weir.measures.measure import direction, parse_measure
from weir.plugins.questions.funnel import FUNNELS, Funnel, FunnelRules, funnel_of, stages_table, verdict
from weir.plugins.questions.system_stages import COMPOSED, stages_on
from weir.plugins.report.sections import MOST_QUERIES, Section, chosen_clause
from weir.plugins.report.study import RUN_BYTES, Study
from weir.systems.composite import adapted_to
from weir.systems.expression import parse_system
from weir.systems.protocol import Retriever

MOST_FUNNELS = 6
"""Largest number of systems with a funnel in a report."""
TELLING = ("stage", "relevant left", "lost here", "at best")
"""Columns of a table of stages that say where documents are lost."""
ANSWER_DEPTH = 10
"""Number of documents of an answer if the first measure has no cut-off."""


def funnel_section(study: Study) -> Section | None:
    """Return the report's section on where composed systems lose relevant documents of the collection with
    most queries.

    None without such a system, its stored rankings, or a collection on this machine.
    """
    here = [name for name in study.datasets if name in study.collections]
    if not here:
        return None
    dataset = max(here, key=study.query_count)
    cells = [cell for cell in study.cells if cell.dataset == dataset]
    found, failed = collection_funnels(cells, study.collections[dataset], study.measures[0], study.short_name)
    if not found:
        return None
    lead = (
        f"On {dataset}{chosen_clause(study, MOST_QUERIES)}: how many relevant documents are left after each "
        "stage of a system. Share: on average over queries, with its "
        "interval. Lost here: by this stage. At best: the score of a perfect re-ranker of what leaves the stage. Lines "
        "1:, 2: ... are the systems that are fused, and only here is what none of the others finds."
    )
    shown = tuple(map(_with_short_stages, found))
    notes = (*(f"{one.system}: {verdict(one)}." for one in shown), *failed, *study.without_results(dataset))
    records = (ResultSet(FUNNELS, tuple(found)),)
    return Section(
        "funnel",
        "Where relevant documents are lost",
        lead,
        (),
        tuple(_telling_first(stages_table(one)) for one in shown),
        notes,
        records=records,
    )


def _telling_first(table: Table) -> Table:
    names = list(table.header)
    first = [names.index(name) for name in TELLING if name in names]
    order = [*first, *(n for n in range(len(names)) if n not in first)]
    rows = tuple(tuple(row[n] for n in order) for row in table.rows)
    return replace(table, header=tuple(names[n] for n in order), rows=rows, narrow=())


def collection_funnels(
    cells: Sequence[ResultCell], dataset: Dataset, measure: str, called: Callable[[str], str]
) -> tuple[list[Funnel], list[str]]:
    """Return (composed systems' losses by stage, MOST_FUNNELS at most; sentences on systems left out).

    measure: "" for the default of FunnelRules.
    called: returns a system's short name for its label.
    """
    size = sum(path.stat().st_size for path in cells[0].folder.parent.glob("*/run.*"))
    if size > RUN_BYTES:
        return [], [f"Rankings of {size / 1e9:.1f} GB are not read here; weir study funnel follows them."]
    found, failed = list[Funnel](), list[str]()
    for cell in cells:
        name = called(cell.label)
        try:
            one = _kept_funnel(cell, dataset, _rules(measure))
        except WeirError as error:  # a part is not known here, or its rankings are not kept
            failed.append(f"{name} is not followed: {error}.")
            continue
        if one is not None:
            found.append(replace(one, system=name, dataset=cell.dataset))
    found, more = found[:MOST_FUNNELS], found[MOST_FUNNELS:]
    if more:
        failed.append(f"Not shown: {', '.join(one.system for one in more)}; weir study funnel shows each.")
    return found, failed


def _with_short_stages(funnel: Funnel) -> Funnel:
    names = tuple(dict.fromkeys(stage.name for stage in funnel.stages))
    short = dict(zip(names, short_names(names), strict=True))
    return replace(funnel, stages=tuple(replace(stage, name=short[stage.name]) for stage in funnel.stages))


def _rules(measure: str) -> FunnelRules:
    if not measure:
        return FunnelRules()
    parsed = parse_measure(measure)
    usable = direction(measure) == 1 and not parsed.by_intent
    k = parsed.cutoff or ANSWER_DEPTH
    return FunnelRules(k=k, measure=measure) if usable else FunnelRules()


def _kept_funnel(cell: ResultCell, dataset: Dataset, rules: FunnelRules) -> Funnel | None:
    system = parse_system(cell.system)
    if not isinstance(system, COMPOSED):
        return None
    root = cell.folder.parent
    stages = StageCache(root, root, dataset, lambda *_: None)
    records = [record for folder in root.iterdir() if (record := record_of(folder)) is not None]
    depths = sorted({int(one.declared["k"]) for one in records if one.kind == "run"})
    runs = dict[tuple[str, int], Run]()

    def kept(part: Retriever, depth: int) -> Run | None:
        stage = stages.run_stage(part, depth)
        found = stage.found(root)
        if found is None or not run_file(found[0]).exists():
            return None
        if (stage.key, depth) not in runs:
            runs[stage.key, depth] = stages.read(found[0])
        return runs[stage.key, depth]

    def look(part: Retriever, queries: Queries, k: int) -> Run:
        enough = [depth for depth in reversed(depths) if depth >= k] if queries is dataset.queries else []
        run = next((run for depth in enough if (run := kept(part, depth)) is not None), None)
        if run is None:
            raise BadValue(f"the first {k:,} documents of {part} are not kept")
        return run

    def ask(part: Retriever, queries: Queries, k: int) -> Run:
        return look(part, queries, k).top(k)

    adapted = adapted_to(system, dataset.name, dataset.instruction)
    found = stages_on(dataset, adapted, rules.k, ask, look)
    return funnel_of(found, dataset.qrels, rules, (dataset.corpus, dataset.queries))
