"""A leaderboard of packs as a static site, with every number computed again from rankings.

index.html            verified results: ranges of ranks, for all collections and for each filter.
reported.html         published scores, not verified, in no order.
systems/, datasets/   a page for each.
api/                  the same numbers as JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from weir.api.charts import system_numbers
from weir.api.result_set import ResultSet
from weir.api.rows import ROWS
from weir.argument_types import checked
from weir.core import frames
from weir.core.origin import counted_once
from weir.core.results import result_html, result_text
from weir.core.rounding import counted, probability, score, typeset_change
from weir.core.scores import Note, Row, Scores
from weir.core.tables import Table, html_escaped, sentences
from weir.datasets import catalogue
from weir.datasets.catalogue import Entry
from weir.errors import BadValue, FormatError, UnknownName, WeirError
from weir.experiment.comparing import unit_names
from weir.experiment.published import published
from weir.experiment.results import (
    ResultCell,
    answered_texts,
    by_split,
    cell_notes,
    dataset_names,
    finished_cells,
    largest_k,
    newest_cells,
    not_as_published,
    with_repeats,
)
from weir.files.atomic import atomic_dir, check_replaceable, temporary_folder
from weir.files.integrity import Checksum
from weir.files.paths import path_of
from weir.measures.evaluate import distinct_names
from weir.measures.measure import direction, no_direction_note
from weir.plugins.report.page import digest, isolated_html, page_script, style_sheet
from weir.plugins.report.paper import trained_on
from weir.plugins.submissions.packs import RESULTS, may_be_pack, unpacked, verify_pack
from weir.stats.compare import Comparison, ScoreTable, Verdict, compared, table, verdicts_across

MEDIUM_DOCUMENTS, LARGE_DOCUMENTS = 100_000, 1_000_000
"""Sizes from which a collection is medium, and large."""
NO_ENTRY = "not in the catalogue"
ZERO_SHOT = "training: zero-shot"
"""The filter of cells whose models are known not to be trained on the collection."""


@dataclass(frozen=True)
class Place:
    """A system's range of ranks and its mean on a leaderboard."""

    system: str
    best: int
    """First rank of its range."""
    worst: int
    """Last rank of its range."""
    better: int
    """Number of (collection, other system) pairs in which it is better; `level` and `worse` likewise."""
    level: int
    worse: int
    mean: float | None
    """Mean over the filter's collections; None if the system lacks one that counts."""
    there: int
    """Number of the filter's collections that it has."""


@dataclass(frozen=True)
class _Board:
    """The systems, best first, on the datasets that pass a filter such as "task: Fact Checking"."""

    filter: str
    datasets: tuple[str, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True, repr=False)
class Site:
    """A leaderboard of packs, as written."""

    folder: str
    measure: str
    boards: tuple[_Board, ...]
    rows: tuple[Row, ...]
    refused: tuple[tuple[str, str], ...]
    """(pack, reason)."""
    remarks: tuple[Note, ...] = ()
    """Notes on the verified results, as `weir results` has them."""

    def tables(self) -> tuple[Table, ...]:
        systems = len({row.system for row in self.rows})
        collections = len({row.unit or row.dataset for row in self.rows})
        lines = [f"{counted(systems, 'system')} on {counted(collections, 'collection')} in {self.folder}"]
        return (sentences(*lines, *(f"refused: {name}: {reason}" for name, reason in self.refused)),)

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        return ResultSet(ROWS, self.rows).columns()

    def notes(self) -> tuple[Note, ...]:
        return self.remarks

    __repr__ = result_text
    _repr_html_ = result_html


_OWN_FILES = ("index.html", "reported.html", "systems", "datasets", "api")


@checked
def leaderboard(
    submissions: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    measure: str = "nDCG@10",
    places: Mapping[str, str | Path] | None = None,
    fetch: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Site:
    """Verify the packs of a folder, write a leaderboard of them and return it.

    submissions: the folder of packs.
    measure: the measure to rank by.
    places: {dataset: path of its collection}.
    fetch: download the collections that records of results name, by default the network is not used, and a
        pack with other collections is left out.
    progress: called with (text, number verified, total).

    `out` appears whole or not at all, in place of an older leaderboard. Packs that are refused, not
    completely verified, or of other judgments than an earlier one are left out, with the reason. Raises
    FormatError for a folder without packs, BadValue if none has the measure, for a measure without a better
    direction, and if `out` holds anything else.
    """
    older = check_replaceable(path_of(out), "api/index.json", _OWN_FILES, "weir submit leaderboard")
    if problem := no_direction_note([measure]):
        raise BadValue(f"{problem[0]}; rank by another measure")
    folder = path_of(submissions)
    packs = sorted(filter(may_be_pack, folder.iterdir())) if folder.is_dir() else []
    if not packs:
        missing = "no pack" if folder.is_dir() else "no such folder"
        raise FormatError(folder, missing, "packs of weir submit pack")
    stems = [file.name.removesuffix(".zip").removesuffix(".weir") for file in packs]
    names = dict(zip(packs, distinct_names(stems, [file.name for file in packs]), strict=True))
    holding, refused, unshown = _cells_with_measure(packs, folder, measure, places, fetch, progress)
    systems = _named_systems(holding, names)
    grid = dict[tuple[str, str], Scores]()
    shown = list[ResultCell]()
    provenance, trained = dict[str, dict[str, str]](), dict[str, frozenset[str] | None]()
    for held, dataset, collection, title in systems:
        if (dataset, title) in grid:
            continue
        grid[dataset, title] = replace(held.values, origin=replace(held.values.origin, collection=collection))
        trained[title] = trained_on(held.cell.system)
        provenance.setdefault(title, _claims(held))
        unit = "" if collection == dataset else collection
        own = [replace(row, dataset=dataset, unit=unit, system=title, title="") for row in held.cell.rows]
        shown.append(
            replace(held.cell, dataset=dataset, unit=collection, label=title, title="", rows=tuple(own))
        )
    shown = with_repeats(shown)
    rows = [row for cell in shown for row in cell.rows if row.measure == measure]
    if not rows:
        why = f"; {refused[0][0]}: {refused[0][1]}" if refused else ""
        raise BadValue(f"no pack holds verified scores by {measure}{why}")
    comparisons = [compared(one) for one in _tables(grid, measure) if one.comparable]
    boards, notes = _boards(rows, comparisons, trained, grid), cell_notes(shown, [measure])
    replaced = [Note(f"the older leaderboard in {out} was replaced")] * older
    remarks = (*map(Note, unshown), *notes)
    site = Site(str(out), measure, boards, tuple(rows), tuple(refused), remarks)
    with atomic_dir(path_of(out)) as temporary_site:
        _write(site, comparisons, provenance, temporary_site)
    return replace(site, remarks=(*remarks, *replaced))


def _cells_with_measure(
    packs: Sequence[Path],
    folder: Path,
    measure: str,
    places: Mapping[str, str | Path] | None,
    fetch: bool,
    progress: Callable[[str, int, int], None] | None,
) -> tuple[list[_Found], list[tuple[str, str]], list[str]]:
    """Return (verified results with the measure, (pack, reason) of refused packs, sentences on results not
    shown)."""
    unshown = list[str]()
    found, judgments = list[_Found](), dict[tuple[object, ...], tuple[str, str]]()
    refused = list[tuple[str, str]]()
    for number, file in enumerate(packs):
        if progress is not None:
            progress(f"verifying {file.name}", number, len(packs))
        try:
            verification = verify_pack(file, places=places, fetch=fetch)
        except WeirError as error:
            refused.append((file.name, str(error).replace(f"{folder}/", "")))
            continue
        if not verification:
            refused.append((file.name, (*verification.problems, *verification.unchecked)[0]))
            continue
        with temporary_folder("site") as temporary:
            newest, older = newest_cells(finished_cells(unpacked(file, temporary) / RESULTS))
            cells = by_split(newest)
            if reason := _other_judgments(cells, judgments):
                refused.append((file.name, reason))
                continue
            for one in cells:
                judgments.setdefault(_judged(one), (one.judgments, file.name))
            cells, left_out = largest_k(cells)
            left_out += older
            left_out += [
                f"{one.called} on {one.dataset} is left out, not having been scored by {measure}"
                for one in cells
                if one.mean(measure) is None
            ]
            unshown += [f"{file.name}: {one}" for one in left_out]
            found += [
                _Found(file, verification.digest, one, one.values(), one.ranked.files[one.run.name])
                for one in cells
                if one.mean(measure) is not None
            ]
    return found, refused, unshown


def _other_judgments(
    cells: Sequence[ResultCell], before: Mapping[tuple[object, ...], tuple[str, str]]
) -> str:
    mine = {_judged(one): one for one in cells}
    for of, one in mine.items():
        if before.get(of, (one.judgments,))[0] != one.judgments:
            return f"the judgments of {one.dataset} are not those of {before[of][1]}"
    apart = next((one for one in cells if mine[_judged(one)].judgments != one.judgments), None)
    return "" if apart is None else f"{apart.dataset} was scored by two kinds of judgments"


def _named_systems(found: Sequence[_Found], names: Mapping[Path, str]) -> list[tuple[_Found, str, str, str]]:
    systems = dict[tuple[Path, str], list[tuple[_Found, str, str]]]()
    others = [" (not as published)" if not_as_published(held.cell) else "" for held in found]
    names_of = zip(dataset_names([held.cell for held in found]), others, strict=True)
    called = [(dataset + other, collection + other) for (dataset, collection), other in names_of]
    for held, (dataset, collection) in zip(found, called, strict=True):
        systems.setdefault((held.pack, held.cell.label), []).append((held, dataset, collection))
    contents, packs_of = dict[str, dict[str, Checksum]](), dict[str, dict[str, list[str]]]()
    name_of = dict[tuple[Path, str], str]()
    for (file, label), its in systems.items():
        own = {dataset: held.content for held, dataset, _ in its}
        name = name_of[file, label] = _equal_system(contents, own) or f"{label} ({names[file]})"
        of = packs_of.setdefault(name, {}).setdefault(label, [])
        of += [names[file]] * (names[file] not in of)
        contents[name] = contents.get(name, {}) | own
    titles = {
        name: " = ".join(f"{label} ({', '.join(of)})" for label, of in packs.items())
        for name, packs in packs_of.items()
    }
    return [
        (held, dataset, collection, titles[name_of[held.pack, held.cell.label]])
        for held, (dataset, collection) in zip(found, called, strict=True)
    ]


def _claims(held: _Found) -> dict[str, str]:
    made = held.cell.ranked.made
    return {
        "pack": held.pack.name,
        "content": held.digest,
        "made (claimed)": str(made.get("when"))[:19],
        "weir (claimed)": str(made.get("weir")),
        "processor (claimed)": f"{made.get('processor')}, {made.get('cores')} cores",
    }


@dataclass(frozen=True)
class _Found:
    pack: Path
    digest: str
    """Hash of the pack's content."""
    cell: ResultCell
    values: Scores
    content: Checksum
    """Checksum of the cell's rankings."""


def _judged(cell: ResultCell) -> tuple[object, ...]:
    return cell.collection, cell.split, answered_texts(cell)[0]


def _equal_system(contents: Mapping[str, Mapping[str, Checksum]], own: Mapping[str, Checksum]) -> str:
    for name, others in contents.items():
        both = own.keys() & others.keys()
        if both and all(own[dataset] == others[dataset] for dataset in both):
            return name
    return ""


def _tables(grid: Mapping[tuple[str, str], Scores], measure: str) -> list[ScoreTable]:
    by_dataset = dict[str, dict[str, Scores]]()
    for (dataset, system), values in grid.items():
        by_dataset.setdefault(dataset, {})[system] = values
    return [table(dataset, measure, of, least=1) for dataset, of in by_dataset.items() if len(of) > 1]


# ----------
# Ranks under filters.


def _entry(dataset: str) -> Entry | None:
    try:
        return catalogue.get(dataset)
    except UnknownName:
        return None


def filters(datasets: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return {filter: datasets}: all collections, then by their task, domain, size and licence.

    datasets: {dataset: name of its collection}.
    """
    chosen = {"all collections": tuple(datasets)}
    for dataset, collection in datasets.items():
        entry = _entry(collection)
        size = NO_ENTRY
        if entry is not None:
            size = "small" if entry.documents < MEDIUM_DOCUMENTS else "medium"
            size = "large" if entry.documents >= LARGE_DOCUMENTS else size
        for kind, value in (
            ("task", entry.task if entry else NO_ENTRY),
            ("domain", entry.domain if entry else NO_ENTRY),
            ("size", size),
            ("licence", entry.licence if entry else NO_ENTRY),
        ):
            name = f"{kind}: {value}"
            chosen[name] = (*chosen.get(name, ()), dataset)
    return {name: chosen[name] for name in sorted(chosen, key=lambda n: (n != "all collections", n))}


def _boards(
    rows: Sequence[Row],
    comparisons: Sequence[Comparison],
    trained: Mapping[str, frozenset[str] | None],
    grid: Mapping[tuple[str, str], Scores],
) -> tuple[_Board, ...]:
    collections = {row.dataset: row.unit or row.dataset for row in rows}
    datasets = list(collections)

    def verdicts(
        of: Sequence[str], cells: Mapping[tuple[str, str], Scores]
    ) -> dict[tuple[str, str], Verdict]:
        units = dict[str, list[ScoreTable]]()
        tables = _tables({key: values for key, values in cells.items() if key[0] in of}, rows[0].measure)
        first = counted_once((row.dataset, *row.marks) for row in rows if row.dataset in of)
        counted = [one for one in tables if first[one.dataset] == one.dataset]
        unit_of = unit_names({one.dataset: one.unit_of for one in counted})
        for one in counted:
            units.setdefault(unit_of[one.dataset], []).append(one)
        if not tables or (len(units) == 1 and len(tables) < len(of)):  # no order across collections
            return {}
        return verdicts_across(units)

    boards = [
        _Board(
            name, of, rank_ranges(of, rows, [c for c in comparisons if c.dataset in of], verdicts(of, grid))
        )
        for name, of in filters(collections).items()
    ]

    def unseen(system: str, dataset: str) -> bool:
        known = trained[system]
        return known is not None and collections[dataset] not in known

    zero_shot = [row for row in rows if unseen(row.system, row.dataset)]
    if len(zero_shot) < len(rows):
        between = [
            replace(
                c,
                pairs=tuple(p for p in c.pairs if unseen(p.first, c.dataset) and unseen(p.second, c.dataset)),
            )
            for c in comparisons
        ]
        cells = {(d, s): values for (d, s), values in grid.items() if unseen(s, d)}
        there = rank_ranges(datasets, zero_shot, between, verdicts(datasets, cells))
        boards.append(_Board(ZERO_SHOT, tuple(datasets), there))
    return tuple(boards)


def rank_ranges(
    datasets: Sequence[str],
    rows: Sequence[Row],
    comparisons: Sequence[Comparison],
    verdicts: Mapping[tuple[str, str], Verdict],
) -> tuple[Place, ...]:
    """Return the range of ranks that pairwise verdicts leave to each system, with its mean and its verdicts on each
    dataset, best first.

    rows: scores, which give the systems and means; None without a score on each dataset that counts.
    comparisons: on each dataset, which give the numbers of verdicts.
    verdicts: {(system, other): verdict across the collections that both have}. A missing one leaves both orders open.
    """
    means = {(row.dataset, row.system): row.mean for row in rows if row.dataset in datasets}
    first = counted_once((row.dataset, *row.marks) for row in rows if row.dataset in datasets)
    unit_of = unit_names({row.dataset: row.unit for row in rows if first.get(row.dataset) == row.dataset})
    systems = list(dict.fromkeys(system for _, system in means))
    needed = {d for d in datasets if first.get(d, d) == d}
    on_each: dict[str, list[str]] = {system: [] for system in systems}
    for pair in (pair for one in comparisons if one.dataset in unit_of for pair in one.pairs):
        on_each[pair.second].append(pair.verdict)
        on_each[pair.first].append(pair.reversed.verdict)
    ranked = []
    for system in systems:
        against = [verdicts.get((system, other), "") for other in systems if other != system]
        above, below, every = against.count("worse"), against.count("better"), on_each[system]
        own = [d for d in datasets if (d, system) in means]
        parts = dict[str, list[float]]()
        for d in filter(unit_of.__contains__, own):
            parts.setdefault(unit_of[d], []).append(means[d, system])
        mean = sum(sum(of) / len(of) for of in parts.values()) / len(parts) if needed.issubset(own) else None
        better, worse = every.count("better"), every.count("worse")
        counts = better, len(every) - better - worse, worse
        ranked.append(Place(system, 1 + above, len(systems) - below, *counts, mean, len(own)))
    return tuple(sorted(ranked, key=lambda one: (one.best, one.worst, one.system)))


# ----------
# Pages and files.


def _slug(name: str) -> str:
    plain = re.sub(r"[^a-zA-Z0-9]+", "-", name).strip("-")[:60]
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _write(
    site: Site, comparisons: Sequence[Comparison], provenance: Mapping[str, dict[str, str]], folder: Path
) -> None:
    for name in ("systems", "datasets", "api/systems", "api/datasets"):
        (folder / name).mkdir(parents=True)
    systems = list(dict.fromkeys(row.system for row in site.rows))
    datasets = list(dict.fromkeys(row.dataset for row in site.rows))
    labels = system_numbers(systems)
    _put(folder / "index.html", "Verified results", _index(site, provenance), "")
    _put(folder / "reported.html", "Reported, not verified", _reported(site.measure), "")
    _json(folder / "api" / "index.json", {"measure": site.measure, "boards": [
        {"filter": b.filter, "datasets": b.datasets, "systems": [vars(p) for p in b.places]} for b in site.boards],
        "refused": [{"pack": name, "reason": reason} for name, reason in site.refused],
        "notes": [note.text for note in site.remarks]})  # fmt: skip
    for system in systems:
        own = [row for row in site.rows if row.system == system]
        facts = {"system": system, "provenance": provenance[system], "rows": [row.to_dict() for row in own]}
        _json(folder / "api" / "systems" / f"{_slug(system)}.json", facts)
        body = _facts(provenance[system]) + _rows(
            own, "collection", lambda r: (r.dataset, f"../datasets/{_slug(r.dataset)}.html")
        )
        _put(
            folder / "systems" / f"{_slug(system)}.html",
            labels.label(system),
            body,
            "../",
            f"api/systems/{_slug(system)}.json",
        )
    for dataset in datasets:
        own = sorted(
            (row for row in site.rows if row.dataset == dataset),
            key=lambda row: (-direction(site.measure) * row.mean, row.system),
        )
        comparison = next((c for c in comparisons if c.dataset == dataset), None)
        facts = {"dataset": dataset, "rows": [row.to_dict() for row in own]}
        _json(folder / "api" / "datasets" / f"{_slug(dataset)}.json", facts)
        body = _about(own[0].unit or dataset) + _rows(
            own, "system", lambda r: (r.system, f"../systems/{_slug(r.system)}.html"), comparison
        )
        _put(
            folder / "datasets" / f"{_slug(dataset)}.html",
            dataset,
            body,
            "../",
            f"api/datasets/{_slug(dataset)}.json",
        )


def _json(path: Path, values: object) -> None:
    path.write_text(json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")


def _put(path: Path, title: str, body: str, up: str, api: str = "") -> None:
    style, script = style_sheet(), page_script()
    hashes = f"style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'"
    policy = f"default-src 'none'; {hashes}; font-src data:; base-uri 'none'; form-action 'none'"
    links = f'<a href="{up}index.html">Verified</a><a href="{up}reported.html">Reported</a>'
    data = f'<p class="weir-soft"><a href="{up}{api}">The same numbers as JSON</a></p>' if api else ""
    parts = [
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html_escaped(title[:80])} – Weir leaderboard</title>",
        f"<style>{style}</style>\n<body>",
        f'<header class="weir-top"><div><strong>Weir</strong><nav aria-label="Site">{links}</nav></div></header>',
        f'<main id="main"><h1>{isolated_html(title, 120)}</h1>{body}{data}</main>',
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    path.write_text("\n".join(parts), encoding="utf-8", newline="\n")


def _cell(inside: str, number: bool = False, value: float | None = None) -> str:
    kind = ' class="weir-number"' if number else ""
    return f"<td{kind}>{inside}</td>" if value is None else f'<td{kind} data-value="{value!r}">{inside}</td>'


def _name(inside: str, link: str) -> str:
    return f'<th scope="row"><a href="{link}">{isolated_html(inside, 120)}</a></th>'


def _table(
    label: str, head: Sequence[str], rows: Sequence[str], kind: str = "weir-grid", caption: str = ""
) -> str:
    columns = "".join(f'<th scope="col">{html_escaped(name)}</th>' for name in head)
    above = f"<caption>{isolated_html(caption, 240)}</caption>" if caption else ""
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="weir-frame" tabindex="0" role="region" aria-label="{html_escaped(label)}">'
        f'<table class="{kind} weir-sortable">{above}<thead><tr>{columns}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _range(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}–{worst}"


def _index(site: Site, provenance: Mapping[str, dict[str, str]]) -> str:
    lead = (
        f"Every score by {site.measure} was computed again from rankings. A rank is a range: a system is above another "
        "one if it is better across the collections of the filter that both have, two at least, or on the only one "
        "(permutation tests, Holm over all pairs), as weir compare says. Better, not separable and worse count single "
        "collections, whose verdicts are corrected within each alone. A mean stands only where a system has every "
        "collection of the filter. Equal rankings are one system, whatever it is called."
    )
    if any(board.filter == ZERO_SHOT for board in site.boards):
        lead += (
            " Zero-shot leaves out systems where their models were trained on a collection, or nobody knows."
        )
    boards = "".join(
        f'<div class="weir-board" data-measure="{html_escaped(b.filter)}">{_board(b, provenance)}</div>'
        for b in site.boards
    )
    refused = "".join(
        f"<li>{isolated_html(name)}: {isolated_html(reason)}</li>" for name, reason in site.refused
    )
    more = f'<h2>Refused</h2><ul class="weir-soft">{refused}</ul>' if refused else ""
    notes = "".join(f"<li>{isolated_html(note.text)}</li>" for note in site.remarks)
    more += f'<h2>Notes</h2><ul class="weir-soft">{notes}</ul>' if notes else ""
    chosen = f'<section aria-label="Boards"><div class="weir-boards weir-chosen">{boards}</div></section>'
    data = '<p class="weir-soft"><a href="api/index.json">The same numbers as JSON</a></p>'
    return f'<p class="weir-lead">{html_escaped(lead)}</p>{chosen}{more}{data}'


def _board(board: _Board, provenance: Mapping[str, dict[str, str]]) -> str:
    rows = [
        _cell(_range(one.best, one.worst), value=one.best)
        + _name(one.system, f"systems/{_slug(one.system)}.html")
        + _cell("–" if one.mean is None else score(one.mean), True, one.mean)
        + "".join(_cell(str(count), True) for count in (one.better, one.level, one.worse))
        + _cell(f"{one.there} of {len(board.datasets)}", True)
        + _cell(f"<code>{provenance[one.system]['content'][:12]}</code>")
        for one in board.places
    ]
    head = (
        "rank",
        "system",
        "mean",
        "better",
        "not separable",
        "worse",
        "collections",
        "content of the pack",
    )
    return _table(
        board.filter, head, rows, "weir-grid weir-ranks", f"{board.filter}: {', '.join(board.datasets)}"
    )


def _rows(
    rows: Sequence[Row],
    what: str,
    name_of: Callable[[Row], tuple[str, str]],
    comparison: Comparison | None = None,
) -> str:
    standing = {one.system: one for one in comparison.standings} if comparison else {}
    lines = []
    for row in rows:
        one = standing.get(row.system)
        rank = _cell("")
        if one is not None and one.best is not None and one.worst is not None:
            rank = _cell(_range(one.best, one.worst), value=one.best)
        ends = "–" if math.isnan(row.low) else f"{score(row.low)}–{score(row.high)}"
        cells = (
            _cell(score(row.mean), True, row.mean),
            _cell(ends, True),
            _cell(f"{row.queries:,}", True),
        )
        lines.append(_name(*name_of(row)) + rank + "".join(cells))
    table = _table("Scores", (what, "rank", rows[0].measure, "95% interval", "queries"), lines)
    pairs = "" if comparison is None else _pairs(comparison)
    return f'<section aria-label="Scores">{table}</section>{pairs}'


def _pairs(comparison: Comparison) -> str:
    rows = [
        _cell(isolated_html(pair.second, 80))
        + _cell(pair.verdict)
        + _cell(isolated_html(pair.first, 80))
        + _cell(typeset_change(pair.difference), True, pair.difference)
        + _cell(probability(pair.adjusted), True, pair.adjusted)
        for pair in comparison.pairs
    ]
    head = ("system", "verdict", "against", "difference", "adjusted p")
    return f"<details><summary>Every pair</summary>{_table('Pairs', head, rows, 'weir-table')}</details>"


def _facts(facts: Mapping[str, str]) -> str:
    lines = "".join(
        f"<dt>{html_escaped(name)}</dt><dd><code>{isolated_html(value)}</code></dd>"
        for name, value in facts.items()
    )
    return f'<details open><summary>Provenance</summary><dl class="weir-soft">{lines}</dl></details>'


def _about(dataset: str) -> str:
    entry = _entry(dataset)
    if entry is None:
        return f'<p class="weir-lead">{NO_ENTRY}</p>'
    counts = f"{entry.documents:,} documents, {entry.queries:,} queries"
    about = f"{entry.title}: {entry.task}, {entry.domain}; {counts}; licence: {entry.licence or 'not stated'}"
    return f'<p class="weir-lead">{isolated_html(about)}</p>'


def _reported(measure: str) -> str:
    own = sorted(published(measure=measure), key=lambda one: (one.dataset, one.model))
    lead = (
        "Scores that somebody printed. Nobody here has computed them again, so they are in no order and stand beside "
        f"no verified one. {len(own):,} scores, by collection."
    )
    parts = []
    for dataset, group in groupby(own, key=lambda one: one.dataset):
        rows = [
            _cell(isolated_html(one.model, 80))
            + _cell(one.printed, True, one.value)
            + _cell(isolated_html(f"{one.source} {one.note}".strip(), 160))
            for one in group
        ]
        table = _table(f"Reported scores of {dataset}", ("system", measure, "source"), rows, "weir-table")
        parts.append(f"<details><summary>{isolated_html(dataset)}, {len(rows):,}</summary>{table}</details>")
    return f'<p class="weir-lead">{lead}</p><section aria-label="Reported">{"".join(parts)}</section>'
