"""Show reproductions of published scores: commands, records, outcomes."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from weir.core.tables import Cell, Table, sentences, table_of
from weir.datasets import catalogue
from weir.experiment.experiment import DEPTH
from weir.experiment.reproduce import MEANINGS, OUTCOMES, PublishedCheck, check_cells
from weir.experiment.results import (
    UNKNOWN_PLACE,
    ResultCell,
    finished_cells,
    place_to_name,
    without_command,
)

TITLE = "Published scores, run again"


def reproduction_tables(
    root: Path, checks: Sequence[PublishedCheck], model: str | None = None, published_as: Sequence[str] = ()
) -> tuple[Table, ...]:
    """Return a table of the results that claim published scores, then one for each with commands and records.

    model, published_as: arguments of `reproduce`.
    """
    cells = {str(cell.folder): cell for cell in finished_cells(root)}
    results: dict[tuple[str, str, str], list[PublishedCheck]] = {}
    for check in checks:
        if check.published is not None:
            results.setdefault((check.folder, check.dataset, check.system), []).append(check)
    compare = [
        "weir",
        "study",
        "reproduce",
        "results/",
        *(["--published", model] if model is not None else []),
    ]
    compare += [word for text in published_as for word in ("--published-as", text)]
    there = {check.outcome for own in results.values() for check in own}
    outcomes = [one for one in OUTCOMES if one in there or one in ("reproduced", "off")]
    lines: list[list[str | Cell]] = [["collection", "system", "scores", *outcomes, "made", "weir"]]
    pages = []
    for (folder, dataset, system), own in results.items():
        of = [cells[folder]] if folder in cells else _members_of(cells, dataset, system)
        numbers = Counter(check.outcome for check in own)
        made = of[-1].ranked.made
        counts = [f"{numbers[one]}" for one in outcomes]
        lines.append([dataset, system, f"{len(own)}", *counts, when(made), str(made.get("weir"))])
        pages.append(_result_page(dataset, own, of, compare))
    if not results:
        return (replace(sentences("no result of this folder claims a published score"), title=TITLE),)
    unclaimed = len({(check.folder, check.measure) for check in checks if check.published is None})
    first = table_of(
        lines,
        right=1 + len(outcomes),
        keys=2,
        tail=2,
        title=TITLE,
        above=(
            "The first of its two commands made each result, unless no command here does, the second compared it; "
            "dates, versions and machines are those of its own records.",
        ),
        notes=(
            "; ".join(f"{one}: {MEANINGS[one]}" for one in outcomes if one in MEANINGS),
            *(
                [f"{unclaimed} measures of results have no published score that their system claims"]
                * bool(unclaimed)
            ),
        ),
    )
    return (first, *pages)


def _result_page(
    dataset: str, checks: Sequence[PublishedCheck], cells: Sequence[ResultCell], compare: Sequence[str]
) -> Table:
    lines: list[list[str | Cell]] = [["measure", "ours", "published", "difference", "verdict", "by"]]
    for check in checks:
        assert check.published is not None
        lines.append([check.measure, *check_cells(check), check.published.model])
    places = dict.fromkeys(
        f"{one.published.model}: {one.published.source}"
        + (f" ({one.published.note})" if one.published.note else "")
        for one in checks
        if one.published is not None
    )
    records = [
        f"made {when(cell.ranked.made)} by {_maker(cell.ranked.made)}; rankings {cell.folder.name} of "
        f"{cell.collection} {cell.split}, judgments {cell.judgments}"
        for cell in cells
    ]
    python = without_command(cells[0])
    made = [f"no command here makes it again: {python}"] * bool(python)
    words = [] if python else run_words(dataset, cells)
    lies = f"{UNKNOWN_PLACE}: the folder in which the collection lies on your machine"
    made += [lies] * any(word.startswith(f"{UNKNOWN_PLACE}/") for word in words)
    title, notes = f"{dataset}: {checks[0].system}", (*made, *records, *places)
    table = table_of(lines, right=3, tail=2, title=title, notes=notes)
    again = [shlex.join(words)] * bool(words)
    return replace(table, commands=(*again, shlex.join(compare)))


def run_words(dataset: str, cells: Sequence[ResultCell]) -> list[str]:
    """Return the words of the command that computes a result, or a group's, again, with download of its
    collection.
    """
    cell = cells[0]
    facts = cell.scored[-1][1].facts
    place = dataset if len(cells) > 1 else place_to_name(cell)
    whole = Path(place).is_absolute()
    place = f"{UNKNOWN_PLACE}/{Path(place).name}" if whole else place  # a reader has no such folder
    entry = catalogue.get(cell.collection) if cell.collection in catalogue.collection_names() else None
    if cell.split != ("test" if entry is None else entry.split):
        place += f":{cell.split}"
    words = [
        "weir",
        "run",
        *(["--fetch"] if entry is not None and not whole else []),
        "-d",
        place,
        "-s",
        cell.system,
    ]
    words += [word for row in cell.rows for word in ("-m", row.measure)]
    words += [] if cell.depth == DEPTH else ["-k", str(cell.depth)]
    dropped = facts.get("self_match") == "drop" and (entry is None or entry.self_match != "drop")
    return [*words, *(["--drop-self"] if dropped else []), "-o", "results/"]


def _members_of(cells: Mapping[str, ResultCell], group: str, system: str) -> list[ResultCell]:
    members = catalogue.group(group).members
    return [cell for cell in cells.values() if cell.dataset in members and cell.system == system]


def when(made: Mapping[str, object]) -> str:
    """Return the recorded time, such as "2025-01-31 12:00"; words that say so if none is recorded."""
    return str(made.get("when", "at a time that is not recorded"))[:16].replace("T", " ")


def _maker(made: Mapping[str, object]) -> str:
    packages = made.get("packages")
    versions = (
        [f"{name} {version}" for name, version in packages.items()] if isinstance(packages, dict) else []
    )
    about = [f"weir {made.get('weir')} (code {made.get('code')})", f"Python {made.get('python')}", *versions]
    machine = f"{made.get('system')}, {made.get('processor')}, {made.get('threads')} threads"
    return f"{', '.join(about)} on {machine}"
