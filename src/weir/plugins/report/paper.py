"""Tables of a paper: datasets x systems with averages, of own or published scores."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from weir.core.rounding import counted, figure, percent, share_change, short_score
from weir.core.tables import Cell, Table, table_of
from weir.datasets.card import CollectionCard
from weir.datasets.catalogue import Entry, get, members
from weir.errors import BadValue, UnknownName
from weir.experiment.beside import (
    MOST_SOURCES,
    OTHER_DATA,
    BesideScore,
    beside,
    beside_notes,
    foremost,
    own_notes,
    rules_notes,
)
from weir.experiment.efficiency import Efficiency, timed_singly
from weir.experiment.published import (
    PublishedNames,
    PublishedScore,
    facts_table,
    places_of,
    published,
)
from weir.experiment.results import unequal_depths
from weir.measures.measure import direction, is_best
from weir.models.checkpoints import trained_on as model_trained_on
from weir.plugins.report.study import Study
from weir.stats.score_rows import BEST
from weir.systems.expression import expression_tree
from weir.systems.fusion.methods import METHODS

IN_DOMAIN = "‡"
"""Mark after a score on data that the system was trained on."""


WITHOUT_MODEL = frozenset({"bm25", "bm25f", "rm3", "pool", "score", "chunked", "filtered", *METHODS})
"""Names of systems that hold no model, except in their parts."""


@cache
def trained_on(system: str) -> frozenset[str] | None:
    """Return the collections whose judgments trained a system's models, empty without models; None if unknown
    for some part.

    system: its name. Stored runs, servers, programs, functions and models without a card are unknown.
    """
    try:
        tree = expression_tree(system)
    except BadValue:
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = [node.func for node in calls]
    bare = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in called]
    if not WITHOUT_MODEL.issuperset(bare):
        return None
    collections: set[str] = set()
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id in WITHOUT_MODEL:
            continue
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        texts = [one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        own = [known for known in map(model_trained_on, texts) if known]
        if not own:
            return None
        collections.update(*own)
    return frozenset(collections)


@dataclass(frozen=True)
class PaperScore:
    """A score in a paper's table, own or published."""

    value: float
    in_domain: bool = False
    """True if the system was trained on these data."""
    verdict: str = ""
    """Verdict against the baseline, such as "better"; "" without one."""
    published: PublishedScore | None = None
    """The published score that it is; None for one's own."""
    other_data: bool = False
    """True if its collection is not as published: it is shown, and neither the best nor in an average."""

    def above(self, other: PaperScore) -> float:
        """Return this score minus another; 0 if one is published and the other rounds to its printed digits."""
        pairs = ((self.published, other.value), (other.published, self.value))
        agreed = any(printed is not None and printed.agrees(value) for printed, value in pairs)
        return 0.0 if agreed else self.value - other.value


Scores = Mapping[tuple[str, str], PaperScore]
"""The score of each dataset and system."""


def paper_table(
    scores: Scores, measure: str, baseline: str, caption: str = "", units: Mapping[str, str] | None = None
) -> Table:
    """Return a table of datasets x systems: in each row the best score bold, the second underlined.

    Averages leave out datasets that some system lacks or most were trained on, and scores on other data than
    the published. Below are differences of averages to the baseline in per cent, and counts of datasets above
    and below it.

    units: {dataset: its unit in averages, such as its group}; averages leave out datasets that are not in it.

    Raises UnknownName for a baseline without a score.
    """
    datasets = list(dict.fromkeys(dataset for dataset, _ in scores))
    systems = list(dict.fromkeys(system for _, system in scores))
    if baseline not in systems:
        raise UnknownName("system to be the baseline", baseline, systems)
    rows = [tuple(_row(scores, dataset, systems, direction(measure))) for dataset in datasets]
    scores = {key: one for key, one in scores.items() if not one.other_data}
    averaged = [d for d in datasets if (units is None or d in units) and not _trained_on(scores, d, systems)]
    beside = {s for s in systems for d in averaged if (d, s) in scores and (d, baseline) in scores}
    shared = [d for d in averaged if all((d, system) in scores for system in beside)]
    mean_of = {s: _mean(scores, s, shared, units or {}) for s in systems if s in beside}
    way = direction(measure)
    ordered = sorted(mean_of.values(), key=lambda value: -way * value) if way else []
    places = list(dict.fromkeys(map(short_score, ordered)))
    own = len({(units or {}).get(one, one) for one in shared})
    averages, against = [Cell(f"average of {own}")], [Cell(f"against {baseline}")]
    above, below = [Cell("datasets higher")], [Cell("datasets lower")]
    differ = len({len([d for d in averaged if (d, s) in scores]) for s in systems}) > 1
    for system in systems:
        common = [d for d in averaged if (d, system) in scores and (d, baseline) in scores]
        rests_on = f"({len(common)})" * differ
        mean, base = (_mean(scores, one, common, units or {}) for one in (system, baseline))
        average = mean_of.get(system)
        best = average is not None and is_best(measure, average, [*mean_of.values()], short_score)
        second = average is not None and short_score(average) in places[1:2]
        averages.append(
            Cell("–") if average is None else Cell(short_score(average), best, second=second, value=average)
        )
        compared = system != baseline and base > 0 and math.isfinite(mean)
        ratio = (
            Cell(share_change(mean / base), more=rests_on, value=mean / base - 1) if compared else Cell("")
        )
        against.append(ratio)
        gaps = [scores[d, system].above(scores[d, baseline]) for d in common]
        counted = system != baseline and bool(common)
        above.append(Cell(str(sum(gap > 0 for gap in gaps)) if counted else ""))
        below.append(Cell(str(sum(gap < 0 for gap in gaps)) if counted else ""))
    notes = [BEST] if any(cell.best for row in [*rows, averages] for cell in row) else []
    notes += [f"{IN_DOMAIN} trained on these data"] if any(one.in_domain for one in scores.values()) else []
    outside = [d for d in datasets if d not in averaged]
    notes += [f"averages leave out {', '.join(outside)}"] if outside else []
    if len(systems) > 1 and len(datasets) > 1:
        shared_with = f"against {baseline}: ratio of the averages over the datasets that both systems have"
        notes.append(shared_with + ", their number in brackets" * differ)
    if len(shared) < len(averaged):
        over = (
            f"are over the {len(shared)}"
            if len(shared) > 1
            else f"need two datasets, and there is {len(shared)}"
        )
        notes.append(f"averages {over} of {len(averaged)} that all systems have")
    if units and len(set(units.values())) < len(units):
        notes.append("in averages splits of a collection, and a whole group, count as one dataset")
    several = len(datasets) > 1
    lines = (
        *rows,
        *[tuple(averages)] * (own > 1),
        tuple(against),
        *[tuple(above), tuple(below)] * several,
    )
    return Table(measure, ("dataset", *systems), lines, tuple(notes), above=(caption,) * bool(caption))


def _mean(scores: Scores, system: str, datasets: Sequence[str], units: Mapping[str, str]) -> float:
    by_unit: dict[str, list[float]] = {}
    for dataset in datasets:
        by_unit.setdefault(units.get(dataset, dataset), []).append(scores[dataset, system].value)
    means = [math.fsum(values) / len(values) for values in by_unit.values()]
    return math.fsum(means) / len(means) if means else math.nan


def _row(scores: Scores, dataset: str, systems: Sequence[str], way: int) -> Iterable[Cell]:
    found = [one for s in systems if (one := scores.get((dataset, s))) is not None]
    values = sorted((one.value for one in found if not one.other_data), key=lambda value: -way * value)
    there = list(dict.fromkeys(map(short_score, values))) if way else []
    yield Cell(dataset)
    for system in systems:
        one = scores.get((dataset, system))
        if one is None:
            yield Cell("–")
            continue
        shown = short_score(one.value)
        text = shown + (IN_DOMAIN if one.in_domain else "")
        if one.other_data:
            yield Cell(text, more=OTHER_DATA, value=one.value)
            continue
        best, second = shown in there[:1] and len(there) > 1, shown in there[1:2]
        yield Cell(text, best=best, second=second, verdict=one.verdict, value=one.value)


def _trained_on(scores: Scores, dataset: str, systems: Sequence[str]) -> bool:
    there = [scores[dataset, s] for s in systems if (dataset, s) in scores]
    return 2 * sum(one.in_domain for one in there) > len(there)


def _crossed(corner: str, cells: Mapping[tuple[str, str], str], title: str = "") -> Table:
    rows, columns = (list(dict.fromkeys(key[n] for key in cells)) for n in (0, 1))
    lines = [[corner, *columns], *([row, *(cells.get((row, c), "–") for c in columns)] for row in rows)]
    return replace(table_of(lines, right=None), title=title)


def judged_table(rates: Mapping[tuple[str, str], float]) -> Table:
    """Return a table of datasets x systems: per cent of the first ten documents that are judged, – if
    unknown.

    rates: {(dataset, system): share}.
    """
    table = _crossed("dataset", {key: percent(rate) for key, rate in rates.items()})
    rows = ((Cell(one.text, value=rates.get((row[0].text, name))) for name, one in zip(table.header, row, strict=True))
            for row in table.rows)  # fmt: skip
    return replace(table, rows=tuple(map(tuple, rows)))


def cost_table(costs: Iterable[Efficiency]) -> Table:
    """Return a table by system: milliseconds of a query by device (median if `timed_singly`, else mean), gigabytes of
    an index of 1M documents.

    costs: of one collection.
    """
    cells, costs = {}, list(costs)
    single = timed_singly(costs)
    for one in costs:
        ms, gigabytes = one.p50_ms if single else one.mean_ms, one.bytes_per_million
        device = "GPU" if "cuda" in one.hardware.lower() or "gpu" in one.hardware.lower() else "CPU"
        time = "median ms of a single query" if single else "ms of a query, all asked together"
        cells[one.quality.system, f"{time}, on a {device}"] = figure(ms)
        cells[one.quality.system, "index of 1M docs, GB"] = figure(
            None if gigabytes is None else gigabytes / 1e9
        )
    return _crossed("system", cells)


@dataclass(frozen=True)
class CollectionFacts:
    """A collection's row in a table of collections."""

    name: str
    task: str
    domain: str
    relevance: str
    documents: int
    queries: int
    positive: int
    """Number of judgments of a grade above 0; `zero` of grade 0."""
    zero: int
    words_per_query: float | None
    words_per_document: float | None
    copies: int | None
    """Documents that share title and text with another, as Elastic counts; None if unknown."""
    beyond: int | None = None
    """Copies without the first of each, as Weir counts; None if unknown."""

    @staticmethod
    def of_card(card: CollectionCard) -> CollectionFacts:
        """Return the row of a collection on this machine."""
        words = card.words_per_query, card.words_per_document
        counts = card.documents, card.queries.get(card.split, 0), card.positive, card.zero
        return CollectionFacts(
            card.name,
            card.task,
            card.domain,
            card.relevance,
            *counts,
            *words,
            card.having_copies,
            card.copies,
        )

    @staticmethod
    def published(name: str, parts: Sequence[Entry]) -> CollectionFacts:
        """Return the row of a published collection from the catalogue, summed over its parts.

        Words and copies are None for several parts.
        """
        first = parts[0]
        positive, zero = (
            sum(
                n for part in parts for grade, n in part.grades.items() if (grade > 0) is above and grade >= 0
            )
            for above in (True, False)
        )
        one = len(parts) == 1
        return CollectionFacts(
            *(name, first.task, first.domain, first.relevance),
            *(sum(part.documents for part in parts), sum(part.queries for part in parts), positive, zero),
            *(
                (first.words_per_query, first.words_per_document, first.duplicates)
                if one
                else (None, None, None)
            ),
        )


def collection_table(facts: Iterable[CollectionFacts], title: str = "", notes: Sequence[str] = ()) -> Table:
    """Return a table with sizes, words, judgments and copies of collections, a row for each."""
    lines: list[list[str | Cell]] = [
        ["dataset", "task", "domain", "relevance", "documents", "queries", "relevant a query", "words a query",
         "words a document", "positive", "zero", "copies"]
    ]  # fmt: skip
    for one in facts:
        known = one.positive + one.zero > 0
        each = one.positive / one.queries if known else None
        means = (each, one.words_per_query, one.words_per_document)
        copies = (
            "–" if one.copies is None else f"{one.copies:,}" + (f" ({one.beyond:,})" if one.beyond else "")
        )
        lines.append(
            [one.name, one.task, one.domain, one.relevance]
            + [Cell(f"{n:,}", value=n) for n in (one.documents, one.queries)]
            + [Cell("–" if mean is None else f"{mean:.2f}", value=mean) for mean in means]
            + [Cell(f"{n:,}", value=n) if known else "–" for n in (one.positive, one.zero)]
            + [Cell(copies, value=one.copies)]
        )
    return replace(table_of(lines, right=8, keys=4), title=title, notes=(*notes, COPIES))


COPIES = "copies: documents whose title and text another has too, as Elastic counts; in brackets but the first of each"
BEIR = "BEIR paper (arXiv:2104.08663v4)"
PRINTED = {
    "BEIR table 3": ("system", f"{BEIR}, table 3: one query against a million documents of DBpedia, 2021"),
    "BEIR table 4": ("system", f"{BEIR}, table 4: TREC-COVID before and after its holes were judged"),
    "Elastic table 2": (
        "dataset",
        "Elastic, Evaluating search relevance, part 1, table 2: judged of the first ten, %",
    ),
}
"""Tables that are printed as they are, with what stands in their rows, and their source."""
TABLES_OF_COLLECTIONS = ("BEIR table 1", "Elastic table 1")
PUBLISHED = (*TABLES_OF_COLLECTIONS, "BEIR table 2", *PRINTED, "BEIR table 9")
"""Tables of two studies. Their tables of collections are one here, counted in the catalogue."""


def published_tables(
    publisher: str,
    folder: Path | None = None,
    measures: Sequence[str] = (),
    baseline: str | None = None,
    datasets: Sequence[str] = (),
    systems: Sequence[str] = (),
    labels: Sequence[str] = (),
    published_as: Sequence[str] = (),
) -> list[Table]:
    """Return a table of published numbers for each measure, by default nDCG@10.

    publisher: one of PUBLISHED, or a publisher such as "BEIR paper".
    folder: a results folder whose scores are shown beside the published ones.
    baseline, datasets, systems: see `published_table`.
    labels: names to show for the folder's systems, such as "tuned=bm25(k1=1.2)".
    published_as: see `PublishedNames.of`.

    Raises BadValue if nothing is published, and for names without a folder, UnknownName for an absent dataset,
    system or baseline.
    """
    if labels and folder is None:
        raise BadValue("`labels` names systems of results, and no results folder is given")
    study = None if folder is None else Study.of(folder, None, (), labels=labels)
    return [
        published_table(publisher, measure, baseline, datasets, systems, study, published_as)
        for measure in measures or ("nDCG@10",)
    ]


def published_table(
    name: str,
    measure: str = "nDCG@10",
    baseline: str | None = None,
    datasets: Sequence[str] = (),
    systems: Sequence[str] = (),
    study: Study | None = None,
    published_as: Sequence[str] = (),
) -> Table:
    """Return a table of published numbers.

    name, study, published_as: see `publisher`, `folder` and `published_as` of `published_tables`.
    baseline: baseline of the averages, by default the publisher's BM25, else its first system.
    datasets: only these datasets, or the members of these groups.
    systems: only systems whose name is one of these, else contains all words of one.

    Raises BadValue if nothing is published, and for a selection from a table shown as printed; UnknownName
    for an absent dataset, system or baseline.
    """
    if (name in PRINTED and datasets) or (name in (*PRINTED, *TABLES_OF_COLLECTIONS) and (systems or study)):
        raise BadValue(f"{name} is printed as it is; leave out `datasets`, `systems` and the folder")
    if published_as and study is None:
        raise BadValue("`published_as` names results, and no results folder is given")
    if name in TABLES_OF_COLLECTIONS:
        return _published_collections(name, datasets)
    if name in PRINTED:
        return _as_printed(name)
    publisher = "BEIR paper" if name in ("BEIR table 2", "BEIR table 9") else name
    measure = {"BEIR table 2": "nDCG@10", "BEIR table 9": "R@100"}.get(name, measure)
    own = [one for one in published(measure=measure) if one.model.endswith(f"[{publisher}]")]
    if not own:
        raise _not_published(name, measure)
    source = own[0].source
    own = _chosen(own, datasets, systems)
    splits: dict[str, set[str]] = {}
    for one in own:
        splits.setdefault(one.dataset, set()).add(one.split)
    place_of = {(d, split): f"{d}:{split}" if len(of) > 1 else d for d, of in splits.items() for split in of}
    scores = {
        (place_of[one.dataset, one.split], one.model.rpartition(" [")[0]): PaperScore(
            one.value, (one.dataset, one.model) in _in_domain(), published=one
        )
        for one in own
    }
    models = list(dict.fromkeys(model for _, model in scores))
    usual = min(
        models, key=lambda model: (model != "BM25", not model.startswith("BM25"), models.index(model))
    )
    notes = rules_notes([own[0].model])
    if study is not None:
        results = [replace(cell, title=study.short_name(cell.label)) for cell in study.cells]
        own_as = PublishedNames.of(published_as, results)
        places = places_of(results, own_as)
        named = {d: place_of.get((at.dataset, at.split)) for d, (at, _) in places.items()}
        mine = {
            (place, f"{study.short_name(row.system)} {HERE}"): PaperScore(
                row.mean, other_data=bool(places[row.dataset][1])
            )
            for row in study.rows
            if row.measure == measure and (place := named[row.dataset]) is not None
        }
        here = {place for place, _ in mine}
        if mine and not datasets:  # as beside_tables
            scores = {at: one for at, one in scores.items() if at[0] in here}
            left = counted(len(place_of) - len(here), "collection")
            notes += [
                f"{left} of {publisher} not in {study.folder} left out; `datasets` names which to show"
            ] * (len(place_of) > len(here))
        scores |= mine
        lacking = f"{study.folder} has no {measure} on these collections and splits"
        differing = (places[d][1] for d, place in named.items() if place)
        notes += own_notes(differing, HERE) if mine else [lacking]
        said = {one.title: own_as.models[one.system] for one in results if one.system in own_as.models}
        notes += [f"{name} {HERE} claims to be {', '.join(models)}" for name, models in said.items()]
    units = {place: dataset for (dataset, _), place in place_of.items()}
    table = paper_table(scores, measure, baseline or usual, f"{publisher}: {source}", units)
    return replace(table, notes=(*table.notes, *notes))


def _not_published(name: str, measure: str) -> BadValue:
    names = sorted({one.model.rpartition("[")[2].rstrip("]") for one in published(measure=measure)})
    there = f"tables: {', '.join(sorted(PUBLISHED))}; scores by {measure}: {', '.join(names)}"
    if Path(name).exists():
        page = "results of MTEB's stand beside one's own in a page, which `out` names"
        return BadValue(f"{name} is no table: {page}; {there}")
    return BadValue(f"'{name}' is not published here; there are {there}")


def _published_collections(name: str, datasets: Sequence[str]) -> Table:
    own = [one for one in published(measure="nDCG@10") if one.model.endswith("[BEIR paper]")]
    of_paper = [one.dataset for one in _chosen(own, datasets, ())]
    facts = (
        CollectionFacts.published(one, [get(m) for m in members(one)]) for one in dict.fromkeys(of_paper)
    )
    return collection_table(
        facts, name, ("Counts of the judgments themselves, which papers print with slips.",)
    )


def _as_printed(name: str) -> Table:
    corner, source = PRINTED[name]
    cells = {
        (row, column): value
        for table, row, column, value in facts_table("printed-tables.tsv")
        if table == name
    }
    return replace(_crossed(corner, cells, name), above=(source,))


def _chosen(
    scores: Sequence[PublishedScore], datasets: Sequence[str], systems: Sequence[str]
) -> list[PublishedScore]:
    for name in datasets:
        if not any(one.dataset in members(name) or one.dataset == name for one in scores):
            raise UnknownName("dataset among these scores", name, {one.dataset for one in scores})
    kept = {member for name in datasets for member in (name, *members(name))}
    chosen = [one for one in scores if not datasets or one.dataset in kept]
    words = {text: set(text.lower().split()) for text in systems}
    own_words = {one.model: set(one.model.rpartition(" [")[0].lower().split()) for one in chosen}
    exact = {text for text in systems if any(words[text] == of for of in own_words.values())}
    fits = {
        model
        for model, of in own_words.items()
        for text in systems
        if (words[text] == of if text in exact else words[text] <= of)
    }
    for text in systems:
        if not any(words[text] <= of for of in own_words.values()):
            names = [model.rpartition(" [")[0] for model in own_words]
            raise UnknownName("system among these scores", text, names)
    return [one for one in chosen if not systems or one.model in fits]


@cache
def _in_domain() -> frozenset[tuple[str, str]]:
    # A paper says it beside one of its tables, and it holds for all.
    return frozenset((one.dataset, one.model) for one in published() if "in-domain" in one.note)


HERE = "(here)"
"""Marks one's own systems in tables of published scores."""


def beside_tables(study: Study, publisher: str | Path, published_as: Sequence[str] = ()) -> tuple[Table, ...]:
    """Return for each measure a table of systems x collections with published scores beside the study's.

    publisher, published_as: as in `published_tables`; raises the errors of `beside`.

    The study's systems come first, then the published ones, with most collections and the best mean first.
    """
    cells = [replace(cell, title=study.short_name(cell.label)) for cell in study.cells]
    named_rows = [replace(row, title=study.short_name(row.system)) for row in study.rows]
    rows, tables = beside(named_rows, cells, publisher, published_as), []
    own_of = {study.short_name(system): system for system in study.systems}
    for measure in dict.fromkeys(one.measure for one in rows if one.source):
        there = dict.fromkeys(one.dataset for one in rows if one.source and one.measure == measure)
        of: dict[str, list[BesideScore]] = {}
        for one in rows:
            if one.measure == measure and one.dataset in there:
                of.setdefault(one.system if one.source else f"{one.system} {HERE}", []).append(one)
        here = [f"{name} {HERE}" for name in own_of if f"{name} {HERE}" in of]
        means = {name: math.fsum(one.value for one in of[name]) / len(of[name]) for name in of}
        others = sorted(of.keys() - set(here), key=lambda s: (-len(of[s]), -direction(measure) * means[s], s))
        scores = {
            (one.dataset, name): _score_beside(one, own_of) for name in (*here, *others) for one in of[name]
        }
        baseline = f"{study.short_name(study.baseline)} {HERE}"
        repeated = set(study.datasets) - study.unit_of.keys()
        units = {dataset: study.unit_of.get(dataset, dataset) for dataset in there if dataset not in repeated}
        whole = paper_table(scores, measure, baseline if baseline in here else here[0], units=units)
        lines = [line for line in whole.rows if any(cell.text for cell in line[1:])]
        sources = dict.fromkeys(one.source for name in others for one in of[name])
        if len(sources) > MOST_SOURCES:
            sources = dict.fromkeys(source.partition(":")[0] for source in sources)
        turned = tuple(
            (Cell(name), *(line[n] for line in lines)) for n, name in enumerate(whole.header[1:], 1)
        )
        notes = *whole.notes, f"source: {'; '.join(sources)}"
        head = "system", *(line[0].text for line in lines)
        shown = {*here, *foremost(others, {one.system for one in rows if one.claimed_by})}
        rest = tuple(line for line in turned if line[0].text not in shown)
        tables.append(Table(measure, head, tuple(line for line in turned if line not in rest), notes))
        if rest:
            tables.append(Table("", head, rest, folded=f"{len(rest)} more published systems by {measure}"))
    first = replace(tables[0], notes=(*tables[0].notes, *beside_notes(rows, HERE)))
    return first, *tables[1:]


def _score_beside(one: BesideScore, own_of: Mapping[str, str]) -> PaperScore:
    if not one.source:
        trained = one.dataset in (trained_on(own_of[one.system]) or ())
        return PaperScore(one.value, trained, other_data=bool(one.other_data))
    as_printed = PublishedScore(
        one.system, "", one.reported_as, "", one.measure, one.printed, one.source, one.note
    )
    return PaperScore(one.value, (one.reported_as, one.system) in _in_domain(), published=as_printed)


def study_tables(study: Study) -> tuple[Table, ...]:
    """Return a table of datasets x systems for each measure, with verdicts against the baseline."""
    tables = []
    for measure in study.measures:
        verdicts = {
            (c.dataset, s): pair.verdict
            for c in study.on(measure)
            for s in study.systems
            if s != study.baseline and (pair := study.against(c, s)) is not None
        }
        scores = {
            (dataset, study.short_name(system)): PaperScore(
                row.mean, dataset in (trained_on(system) or ()), verdicts.get((dataset, system), "")
            )
            for (dataset, system, name), row in study.mean_of.items()
            if name == measure and dataset in study.datasets
        }
        name = study.short_name(study.baseline)
        how = f"{study.family}; triangles: better or worse than {name}" if study.comparisons else ""
        table = paper_table(scores, measure, name, how, study.unit_of)
        deep = (note.text for note in unequal_depths(study.named_cells, [measure]))
        removed = (f"{name} on {dataset}: {said}" for (dataset, name), said in study.removed.items())
        tables.append(replace(table, notes=(*table.notes, *deep, *removed)))
    return tuple(tables)
