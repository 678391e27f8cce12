"""Show comparisons as tables: means with marks, and pairs with verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weir.api.rows import GridCell, GridTable, grids_marked, marks_key, too_few_notes
from weir.core.results import ResultKind
from weir.core.short_names import short_names
from weir.core.tables import Table, sentences
from weir.stats.compare import (
    SEVERAL,
    Comparison,
    briefly_named,
    compare_tables,
    families,
    marked_best,
    method_notes,
    pair_records,
    pair_tables,
    relabelled,
    standings_table,
    tally,
)


def _comparison_grids(comparisons: Sequence[Comparison]) -> tuple[GridTable, ...]:
    systems = _in_given_order(comparisons)
    names = dict(zip(systems, short_names(systems), strict=True))
    grids = []
    for measure in dict.fromkeys(c.measure for c in comparisons):
        own = [c for c in comparisons if c.measure == measure]
        columns = [_means_column(c, systems) for c in own]
        heads = [f"mean of {c.dataset}" if c.unit == "datasets" else c.dataset for c in own]
        alone = len({c.dataset for c in own if c.unit == "queries"}) == 1  # its groups need no other name
        heads = [
            (c.group if alone else f"{head}, {c.group}") if c.group else head
            for head, c in zip(heads, own, strict=True)
        ]
        cells = tuple(zip(*columns, strict=True))
        there = [cell for column in columns for cell in column if cell is not None]
        notes = (*marks_key(there, own, names), *too_few_notes([c for c in own if c.unit == "queries"]))
        labels = tuple(names.values())
        averaged = own[-1].unit == "datasets"
        grids.append(
            GridTable(measure, tuple(heads), systems, labels, cells, notes, own[0].baseline, averaged)
        )
    return tuple(grids)


def _in_given_order(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    ordered = dict[str, None]()
    for c in comparisons:
        later = [pair.second for pair in c.pairs]
        ordered |= dict.fromkeys(sorted((s.system for s in c.standings), key=later.count))
    return tuple(ordered)


def _means_column(c: Comparison, systems: Sequence[str]) -> list[GridCell | None]:
    verdicts = {p.second: p.verdict for p in c.pairs} if c.baseline is not None else {}
    cells = {
        s.system: GridCell(
            s.mean,
            marked_best(s, c),
            s.letters,
            verdicts.get(s.system, ""),
        )
        for s in c.standings
    }
    return [cells.get(system) for system in systems]


def _comparison_page(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    means, pairs = pair_tables(comparisons, every=False)
    if len({(c.dataset, c.group) for c in comparisons}) > 1:
        return (*grids_marked(_comparison_grids(comparisons)), pairs)
    title = comparisons[0].dataset if comparisons else ""
    if len(measures := {c.measure for c in comparisons}) == 1:
        pairs = replace(pairs.without(1), title=measures.pop())
    return replace(means.without(0), title=title), pairs.without(0)


def _comparison_html(comparisons: Sequence[Comparison]) -> tuple[Table, ...]:
    pairs = pair_tables(comparisons)[1]
    grids = _comparison_grids(comparisons)
    tables = grids_marked(grids)
    shown = tables[len(grids) - 1].notes if tables else ()
    if len({(c.dataset, c.group) for c in comparisons}) > 1:
        pairs = replace(pairs, folded=f"{len(pairs.rows)} pairs, each with its verdict")
    elif tables:
        pairs = pairs.without(0)  # the dataset, which titles name
        if any(len(c.standings) > SEVERAL for c in comparisons):
            pairs = replace(pairs, folded=f"{len(pairs.rows)} pairs, each with its verdict")
        of_each = [standings_table(c, marked=True) for c in briefly_named(comparisons)[0]]
        tables = (*of_each[:-1], replace(of_each[-1], notes=shown), *tables[len(grids) :])
    tallies = [f"{c.measure}: {tally(one)}" for c in comparisons for one in c.tallies]
    how = [*families(comparisons), *method_notes(comparisons, explain=True, ranked=False)]
    notes = [note for note in (*tallies, *how) if note not in shown]
    return (*tables, replace(pairs, notes=()), replace(sentences(*notes), folded="how the numbers were made"))


def _comparison_tables(
    comparisons: Sequence[Comparison], long: bool = False, explain: bool = False
) -> tuple[Table, ...]:
    across = [c for c in comparisons if c.unit == "datasets"]
    if long or not across:
        return compare_tables(comparisons, long, explain)
    systems = _in_given_order(comparisons)
    names = dict(zip(systems, short_names(systems), strict=True))
    grids = grids_marked(_comparison_grids(comparisons))
    few = dict.fromkeys(c.count for c in across if not c.reach.possible)
    undecided = [
        sentences(
            f"no test over {' or '.join(map(str, few))} datasets can decide here; the long form lists the tests on "
            "each dataset"
        )
    ] * bool(few)
    return (*grids, *undecided, *compare_tables(relabelled(across, names), long, explain))


COMPARISONS = ResultKind(
    "compare",
    Comparison,
    _comparison_tables,
    page=_comparison_page,
    html=_comparison_html,
    parts="pairs",
    csv=pair_records,
)
