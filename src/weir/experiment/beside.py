"""Set published scores beside a results folder's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weir.core.results import ResultKind
from weir.core.rounding import score
from weir.core.scores import Row
from weir.core.short_names import short_legend, short_names
from weir.core.tables import Cell, Table, table_of
from weir.datasets import catalogue
from weir.errors import BadValue, UnknownName
from weir.experiment.mteb_files import MTEB_MEASURES, mteb_scores
from weir.experiment.published import (
    PublishedNames,
    PublishedScore,
    Reported,
    claimant,
    claimed,
    is_of_file,
    known_as,
    places_of,
    published,
    publisher_of,
    unknown_name,
    words_of,
)
from weir.experiment.results import ResultCell
from weir.measures.measure import direction


@dataclass(frozen=True)
class BesideScore:
    """A mean of the user's system, or a published score, on one collection, split and measure."""

    dataset: str
    """Its name in the results folder."""
    measure: str
    system: str
    """The name of one's own system, or of the published model."""
    value: float
    printed: str
    """The value as text; of a published score as its source printed it."""
    source: str = ""
    """The source of a published score; "" for one's own."""
    note: str = ""
    """The source's remark on a published score."""
    claimed_by: tuple[str, ...] = ()
    """One's own systems that claim to be the published model."""
    runs_as: str = ""
    """The system of Weir that claims to be the published model; "" if none does."""
    reported_as: str = ""
    """The collection's name where the score is published; "" for one's own."""
    declared: bool = False
    """True if the user says that `reported_as` is the collection."""
    other_data: str = ""
    """How the documents, queries or judgments of one's own mean differ from the published ones; "" if they do not."""
    reported_split: str = ""
    """Split of `reported_as` that the user names; "" if none."""


def beside(
    rows: Sequence[Row], cells: Sequence[ResultCell], name: str | Path, published_as: Sequence[str] = ()
) -> list[BesideScore]:
    """Return, for each collection and measure, the user's means, then the published scores, best first.

    name: a publisher, such as "MTEB", words of published models' names, or the path of MTEB's results.
    published_as: OWN=PUBLISHED for systems, collections and models of MTEB's results; adds these models'
        published scores.

    Raises UnknownName for an unknown publisher, BadValue if nothing published fits, and the errors of
    `mteb_scores`.
    """
    text = str(name)
    is_path = isinstance(name, Path) or (("/" in text or text.endswith(".json")) and Path(text).exists())
    given = mteb_scores(Path(name)) if is_path else ()
    if is_path and not given:
        raise BadValue(
            f"{text}: found no mean of {', '.join(f'{one}@k' for one in MTEB_MEASURES)}; nothing to lay beside"
        )
    words, every = words_of(text), given or published()
    models = {one.model for one in every if given or (words and words <= words_of(one.model))}
    if not models:
        here = f"./{text}" if Path(text).exists() else None
        raise UnknownName("publisher", text, {publisher_of(one.model).name for one in every}, here)
    own_as = PublishedNames.of(published_as, cells, given)
    said = {model for of in own_as.models.values() for model in of}
    models |= said
    known = places_of(cells, own_as)
    own_places = {
        cell.dataset: (
            own_as.collections.get(cell.dataset, cell.collection),
            own_as.splits.get(cell.dataset, cell.split),
        )
        for cell in cells
    }  # a task may be named as one wishes
    beside_rows, others = list[BesideScore](), set[str]()
    for dataset, measure in dict.fromkeys((row.dataset, row.measure) for row in rows):
        own = [row for row in rows if (row.dataset, row.measure) == (dataset, measure)]
        at, differs = known[dataset]
        beside_rows += [
            BesideScore(
                dataset, measure, row.title or row.system, row.mean, score(row.mean), other_data=differs
            )
            for row in own
        ]
        listed = (one for one in published(at.dataset, measure=measure) if not given or one.model in said)
        published_at = _scores_at(at, own_places.get(dataset, ("", "")), given, listed)
        there = [one for one in published_at if one.measure == measure]
        others |= {publisher_of(one.model).name for one in there}
        for one in sorted(there, key=lambda one: -direction(measure) * one.value):
            if one.model in models:
                claims = [row.system for row in own if one.model in own_as.claimed(row.system, at.dataset)]
                claims += [their.model for their in there if one.model in own_as.models.get(their.model, ())]
                runs_as = claimant(one.model) or ""
                runs_as *= one.model in claimed(runs_as, at.dataset)
                beside_rows.append(
                    BesideScore(
                        *(dataset, measure, one.model, one.value, one.printed, one.source, one.note),
                        claimed_by=tuple(claims),
                        runs_as=runs_as,
                        reported_as=one.dataset,
                        declared=dataset in own_as.collections,
                        reported_split=own_as.splits.get(dataset, ""),
                    )
                )
    files = {one.source for one in given}
    if not any(one.source and (not given or one.source in files) for one in beside_rows):
        raise _nothing_published(text, rows, cells, known, given, others)
    return beside_rows


def _scores_at(
    known: Reported,
    own_place: tuple[str, str],
    given: Iterable[PublishedScore],
    listed: Iterable[PublishedScore],
) -> list[PublishedScore]:
    # Splits may be judged alike: where files have a collection by its own name, its own split counts.
    alike = {(name, known.split) for name in (known.dataset, known.dataset.removeprefix("hf:mteb/"))}
    of_given = {own_place} if any(one.dataset == own_place[0] for one in given) else alike
    places = (given, of_given), (listed, alike)
    return [one for scores, at in places for one in scores if (one.dataset, one.split) in at]


def _nothing_published(
    text: str,
    rows: Sequence[Row],
    cells: Sequence[ResultCell],
    known: Mapping[str, tuple[Reported, str]],
    given: Sequence[PublishedScore],
    others: set[str],
) -> BadValue:
    split = {dataset: one.split for dataset, (one, _) in known.items() if f":{one.split}" not in dataset}
    called = {row.dataset: f"{row.dataset}:{split.get(row.dataset, '')}".rstrip(":") for row in rows}
    places = _some(f"{row.measure} on {called[row.dataset]}" for row in rows)
    held = _some(f"{one.dataset}:{one.split}" for one in given) or _some(sorted(others))
    there_is = f"; there is {held}" if held else ""
    mine = [cell.dataset for cell in cells if cell.collection not in catalogue.collection_names()]
    if given and mine and {one.dataset for one in given}.isdisjoint(one.dataset for one, _ in known.values()):
        tasks = {one.dataset for one in given}
        name = min(tasks) if len(tasks) == 1 else "TASK"
        pair = f"{mine[0]}={name}"
        there_is += (
            f"; a collection is matched with a task by its name: if {_some(mine)} is one of these, say so, as by "
            f"`published_as={[pair]!r}`"
        )
    unknown = [one for one, _ in known.values() if not given and unknown_name(one)]
    names = _some(one.dataset for one in unknown)
    why = f"; {unknown_name(replace(unknown[0], dataset=names))}" if unknown else ""
    return BadValue(f"nothing of '{text}' is published for {places}{there_is}{why}")


def _some(names: Iterable[str]) -> str:
    whole = list(dict.fromkeys(names))
    more = f" and {len(whole) - _SHOWN} more" if len(whole) > _SHOWN else ""
    return ", ".join(whole[:_SHOWN]) + more


_SHOWN = 3  # names in a message


MOST_SOURCES = 8
"""Number of sources up to which they are numbered in the notes; of more, only the files are named."""
NO_TEST = "published scores are means alone: no interval, and no test of a difference from them"
OTHER_DATA = "other data"
"""Mark of a score on other documents, queries or judgments than the published ones."""


def own_notes(others: Iterable[str], own: str = "own systems") -> list[str]:
    """Return sentences on how Weir's own scores, called `own`, are made.

    others: how collections differ from the published ones, "" if they do not.
    """
    how = "every judged query counts, and ties stand by descending identifier"
    return [
        f"{own}: scored by Weir: {how}",
        *(f"{OTHER_DATA}: {one}" for one in dict.fromkeys(others) if one),
    ]


def rules_notes(models: Iterable[str]) -> list[str]:
    """Return a sentence on the documented rules of each publisher of these models' scores."""
    publishers = dict.fromkeys(map(publisher_of, models))
    return [f"{one.name} scores by: {one.source}" for one in publishers if one.source]


def beside_notes(scores: Sequence[BesideScore], own: str = "own systems") -> list[str]:
    """Return sentences on scoring, measures without a published score, renamed collections, and systems that
    claim to be a published model.

    own: name of the user's systems in tables.
    """
    claims = dict.fromkeys(f"{mine} claims to be {one.system}" for one in scores for mine in one.claimed_by)
    others = dict.fromkeys(
        (one.dataset, f"{one.reported_as}:{one.reported_split}".rstrip(":"), one.declared)
        for one in scores
        if one.reported_as
    )
    known = (said for place in others if (said := known_as(*place)))
    of = {one.measure for one in scores if one.source}
    lacking = [measure for measure in dict.fromkeys(one.measure for one in scores) if measure not in of]
    none = [f"none of these is published by {', '.join(lacking)}"] * bool(lacking)
    theirs = {
        one.system for one in scores if one.source
    }  # also models of files, of which there are means alone
    compared = any(mine not in theirs for one in scores for mine in one.claimed_by)
    made = own_notes((one.other_data for one in scores), own)
    rules = rules_notes(one.system for one in scores if one.source)
    return [
        *made,
        *rules,
        *[UNCHECKED] * any(is_of_file(one) for one in theirs),
        *none,
        *known,
        *claims,
        *["weir study reproduce compares what is claimed"] * compared,
    ]


UNCHECKED = (
    "MTEB's result files hold neither documents nor judgments: nothing checks that they scored these data"
)

FOREMOST = 10
"""Number of published systems, beside those that one's own claim to be, that are shown at once."""


def foremost(others: Sequence[str], claimed: Collection[str]) -> list[str]:
    """Return the published systems to show: the first FOREMOST and all in `claimed`; all if that omits only a
    few.
    """
    first = [name for number, name in enumerate(others) if number < FOREMOST or name in claimed]
    return first if len(others) - len(first) > _SHOWN else list(others)


_DECIMALS = 4
"""Decimals shown of a published score that has more, as of one's own; `long=True` and JSON have all of them."""
_LONGEST = len("0.") + _DECIMALS


def _beside_pages(scores: Sequence[BesideScore]) -> tuple[Table, ...]:
    own = list(dict.fromkeys(one.system for one in scores if not one.source))
    short = dict(zip(own, short_names(own), strict=True))
    named = (
        replace(
            one,
            system=one.system if one.source else short[one.system],
            claimed_by=tuple(short.get(name, name) for name in one.claimed_by),
        )
        for one in scores
    )
    [table] = _beside_tables([*named], long=True)
    return (replace(table, notes=(*table.notes, *short_legend(short))),)


def _beside_tables(scores: Sequence[BesideScore], long: bool = False) -> tuple[Table, ...]:
    places = list(dict.fromkeys((one.dataset, one.measure) for one in scores))
    datasets, measures = ({place[n] for place in places} for n in (0, 1))
    sources = list(dict.fromkeys((one.source, one.note) for one in scores if one.source))
    shown: dict[str, dict[tuple[str, str], Cell]] = {}
    for one in scores:
        numbered = one.source and len(sources) <= MOST_SOURCES
        more = f"[{sources.index((one.source, one.note)) + 1}]" if numbered else ""
        more = OTHER_DATA if one.other_data else more
        text = one.printed if long or len(one.printed) <= _LONGEST else f"{one.value:.{_DECIMALS}f}"
        shown.setdefault(one.system, {})[one.dataset, one.measure] = Cell(text, more=more, value=one.value)
    names = [measure if len(datasets) == 1 else dataset if len(measures) == 1 else f"{dataset} {measure}"
             for dataset, measure in places]  # fmt: skip
    lines: list[list[str | Cell]] = [["system", *names]]
    theirs, claimed = (
        {one.system for one in scores if one.source},
        {one.system for one in scores if one.claimed_by},
    )
    others = [system for system in shown if system in theirs]
    left_out = set[str]() if long else set(others) - set(foremost(others, claimed))
    lines += [
        [system, *(cells.get(place, "-") for place in places)]
        for system, cells in shown.items()
        if system not in left_out
    ]
    best = f"none above the first {FOREMOST} in the first column"
    more = f"{len(left_out)} more published systems, {best}; `long=True` shows all"
    notes = [*[more] * bool(left_out), NO_TEST, *beside_notes(scores)]
    if len(sources) <= MOST_SOURCES:
        notes += [f"[{n}] {of}{f' ({note})' if note else ''}" for n, (of, note) in enumerate(sources, 1)]
    else:
        named = ", ".join(dict.fromkeys(of.partition(":")[0] for of, _ in sources))
        notes.append(f"{len(sources)} sources in {named}; JSON names each")
    title = next(iter(datasets if len(datasets) == 1 else measures if len(measures) == 1 else [""]))
    return (table_of(lines, right=None, title=title, notes=notes),)


BESIDE_SCORES = ResultKind("beside", BesideScore, _beside_tables, page=_beside_pages, html=_beside_tables)
