"""Citations of results: BibTeX of their collections, systems, measures and tests."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from weir.argument_types import checked
from weir.core import frames
from weir.core.scores import Note
from weir.core.tables import Table, notebook_html, table_of
from weir.datasets.catalogue import groups, members
from weir.errors import printable
from weir.experiment.published import known_as, reported_of
from weir.experiment.results import ResultCell, chosen_cells, finished_cells, given_objects, not_as_published
from weir.files.paths import path_of
from weir.measures import measures_of
from weir.models.checkpoints import cards
from weir.plugins.llm.rerank import METHODS
from weir.stats.compare import ComparisonMethod
from weir.stats.resampling import interval_methods
from weir.systems.protocol import RERANKERS, SYSTEMS


@dataclass(frozen=True)
class _Citation:
    """A work to cite: a BibTeX entry, and the reasons for citing it."""

    key: str
    kind: str
    """Kind of the BibTeX entry, such as article."""
    fields: tuple[tuple[str, str], ...]
    cited_for: tuple[str, ...]
    """Reasons, such as "measure nDCG" or "dataset brook"."""

    def field(self, name: str) -> str:
        return dict(self.fields).get(name, "")

    def bibtex(self) -> str:
        lines = [f"  {name} = {{{text}}}," for name, text in self.fields]
        head = [f"% {printable(', '.join(self.cited_for))}", f"@{self.kind}{{{self.key},"]
        return "\n".join([*head, *lines, "}"])


@dataclass(frozen=True, repr=False)
class Citations:
    """The works to cite for a results folder."""

    works: tuple[_Citation, ...]
    uncited: tuple[str, ...]
    """Subjects that took part and have no entry."""
    others: tuple[str, ...] = ()
    """Sentences on collections that are cited by another name, and on those that differ from the published ones."""

    def bibtex(self) -> str:
        """Return all entries as BibTeX, with comments on subjects without an entry."""
        missing = [f"% No entry: {printable(', '.join(self.uncited))}"] if self.uncited else []
        missing += [f"% {printable(one)}" for one in self.others]
        return "\n\n".join([work.bibtex() for work in self.works] + missing)

    def tables(self) -> tuple[Table, ...]:
        lines = [["key", "cited for", "title", "year"]]
        lines += [[w.key, ", ".join(w.cited_for), w.field("title"), w.field("year")] for w in self.works]
        return (table_of(lines, keys=4),)

    def notes(self) -> tuple[Note, ...]:
        """Return notes on datasets, models, measures and objects without a known citation, and the other
        notes."""
        missing = [f"no citation is known for {', '.join(self.uncited)}"] if self.uncited else []
        return tuple(map(Note, [*missing, *self.others]))

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        lines = [{"key": w.key, "cited_for": "; ".join(w.cited_for)} | dict(w.fields) for w in self.works]
        return frames.columns_of(lines)

    def __repr__(self) -> str:
        return self.bibtex()

    def _repr_html_(self) -> str:
        return notebook_html(self.tables(), self.notes())


@checked
def cite(
    folder: str | os.PathLike[str],
    *,
    measures: Iterable[str] = (),
    datasets: Sequence[str] = (),
    systems: Sequence[str] = (),
) -> Citations:
    """Return the works to cite for the results in a folder and the default tests of `compare`, Weir's own
    first.

    measures: only these measures, by default all.
    datasets: only these datasets, by default all. A group means its members.
    systems: only these systems, by default all.

    Raises FormatError for a folder without results, UnknownName for an absent dataset or system, StoreError
    for changed scores.
    """
    cells = chosen_cells(finished_cells(path_of(folder)), datasets, systems)
    subjects = list(dict.fromkeys(_subjects(cells, tuple(measures))))
    works = [_weir(subjects)]
    for key, facts in _entries().items():
        cited_for = tuple(one for one in subjects if one in facts["for"])
        if cited_for:
            fields = tuple((name, text) for name, text in facts.items() if name not in ("kind", "for"))
            fields += (("archiveprefix", "arXiv"),) * ("eprint" in facts)
            works.append(_Citation(key, facts["kind"], fields, cited_for))
    cited = {one for work in works for one in work.cited_for}
    cited |= {f"dataset {name}" for one in groups() if f"dataset {one}" in cited for name in members(one)}
    cited |= {f"dataset {name}" for name in groups()}  # a group is cited by its members
    uncited = (
        one
        for one in subjects
        if one not in cited and one.split()[0] in ("dataset", "model", "measure", "object")
    )
    named = (known_as(cell.collection, reported_of(cell).dataset) for cell in cells)
    others = dict.fromkeys(said for said in (*named, *map(not_as_published, cells)) if said)
    return Citations(tuple(works), tuple(uncited), tuple(others))


def _weir(subjects: Sequence[str]) -> _Citation:
    number = version("weir-ir")
    title = "Weir: how well retrieval systems find what people need"
    fields = (
        ("title", title),
        ("author", "{The Weir developers}"),
        ("version", number),
        ("note", f"weir-ir {number}"),
    )
    return _Citation(
        "weir", "misc", fields, ("all numbers", *(one for one in subjects if one == "dataset brook"))
    )


def _subjects(cells: Sequence[ResultCell], measures: tuple[str, ...]) -> Iterable[str]:
    group_names = {name: members(name) for name in groups()}
    kinds = {name: "system" for name in (*SYSTEMS, *RERANKERS)}
    kinds |= {name: "method" for name in METHODS} | {card.name: "model" for card in cards()}
    for cell in cells:
        yield f"dataset {reported_of(cell).dataset}"
        known = {cell.collection, reported_of(cell).dataset}
        yield from (f"dataset {name}" for name, those in group_names.items() if not known.isdisjoint(those))
        words = re.findall(r"[\w.-]+", cell.system)
        yield from (f"{kinds[word]} {word}" for word in words if word in kinds)
        for one in given_objects(cell):
            names = one.name, one.checkpoint
            card = next((card.name for card in cards() if any(map(card.has_checkpoint, names))), "")
            yield f"model {card}" if card else f"object {one}"
    named = measures_of(measures or tuple(dict.fromkeys(row.measure for c in cells for row in c.rows)))
    for measure in named:
        yield f"measure {measure.name}"
        if measure.condensed:
            yield "measure condensed"
    for cell in cells:
        shown = {row.measure for row in cell.rows if row.low == row.low} & set(map(str, named))
        scores = cell.values()
        methods = zip(scores.measures, interval_methods(scores), strict=True)
        yield from (f"interval {method}" for measure, method in methods if measure in shown)
    method = ComparisonMethod()
    yield from (f"test {method.test}", f"correction {method.correction}")
    yield from ("effect Hedges' g", "minimum detectable effect", "measure Judged")  # stand in every table


@cache
def _entries() -> dict[str, dict[str, str]]:
    text = (files("weir.plugins.report") / "citations.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
