"""Tables of a paper: datasets x systems with averages against a baseline, from own results or published scores."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from weir.core.rounding import figure, share, share_change, short_score
from weir.core.tables import Cell, Table, table_of
from weir.datasets.card import CollectionCard
from weir.datasets.catalogue import Entry, get, members
from weir.errors import BadValue, UnknownName
from weir.experiment.efficiency import Efficiency
from weir.experiment.published import PublishedScore, facts_table, published, publisher_of
from weir.measures.measure import direction
from weir.models.checkpoints import trained_on as model_trained_on
from weir.plugins.report.study import Study
from weir.systems.expression import expression_tree
from weir.systems.fusion.methods import METHODS

IN_DOMAIN = "‡"
"""Behind a score on data that the system was trained on."""


WITHOUT_MODEL = frozenset({"bm25", "bm25f", "rm3", "pool", "score", "chunked", "filtered", *METHODS})
"""Names of systems that hold no model but in their parts."""


@cache
def trained_on(system: str) -> frozenset[str] | None:
    """The collections on whose judgments the models of a system were trained, None where that is not known of a part.

    system: its name. A stored run, a server, a program and a function of one's own may hold any model.
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
    """A score as a paper prints it; in_domain: the system was trained on these data; verdict: against the baseline."""

    value: float
    in_domain: bool = False
    verdict: str = ""


Scores = Mapping[tuple[str, str], PaperScore]
"""The score of each dataset and system."""


def paper_table(
    scores: Scores, measure: str, baseline: str, caption: str = "", units: Mapping[str, str] | None = None
) -> Table:
    """Datasets in rows, systems in columns; the best of a row is bold, the second underlined.

    Below stand the average of each system over the datasets that the baseline and it have, that average against the
    baseline's in per cent, and on how many datasets it is above and below the baseline. Datasets on which most systems
    were trained stand in the table and in no average. units: what each dataset counts as in averages. Raises
    UnknownName for a baseline without a score.
    """
    datasets = list(dict.fromkeys(dataset for dataset, _ in scores))
    systems = list(dict.fromkeys(system for _, system in scores))
    if baseline not in systems:
        raise UnknownName("system to be the baseline", baseline, systems)
    rows = [tuple(_row(scores, dataset, systems, direction(measure))) for dataset in datasets]
    averaged = [d for d in datasets if not _trained_on(scores, d, systems)]
    averages, against, above = [Cell("average")], [Cell(f"against {baseline}")], [Cell("higher / lower")]
    for system in systems:
        common = [d for d in averaged if (d, system) in scores and (d, baseline) in scores]
        mean, base = (_mean(scores, one, common, units or {}) for one in (system, baseline))
        averages.append(Cell(short_score(mean), value=mean) if common else Cell("–"))
        compared = system != baseline and base > 0 and math.isfinite(mean)
        against.append(Cell(share_change(mean / base), value=mean / base - 1) if compared else Cell(""))
        gaps = [scores[d, system].value - scores[d, baseline].value for d in common]
        counts = f"{sum(gap > 0 for gap in gaps)} / {sum(gap < 0 for gap in gaps)}"
        above.append(Cell("" if system == baseline or not common else counts))
    notes = [f"{IN_DOMAIN} trained on these data"] if any(one.in_domain for one in scores.values()) else []
    outside = [d for d in datasets if d not in averaged]
    notes += [f"averages leave out {', '.join(outside)}"] if outside else []
    if len({len([d for d in averaged if (d, s) in scores]) for s in systems}) > 1:
        notes.append("averages and counts are over the datasets that a system shares with the baseline")
    if units and len(set(units.values())) < len(units):
        notes.append("in averages a whole group of datasets counts as one")
    lines = (*rows, tuple(averages), tuple(against), tuple(above))
    return Table(measure, ("dataset", *systems), lines, tuple(notes), above=(caption,) * bool(caption))


def _mean(scores: Scores, system: str, datasets: Sequence[str], units: Mapping[str, str]) -> float:
    """The mean over units of the means over their datasets; NaN for no dataset."""
    by_unit: dict[str, list[float]] = {}
    for dataset in datasets:
        by_unit.setdefault(units.get(dataset, dataset), []).append(scores[dataset, system].value)
    means = [math.fsum(values) / len(values) for values in by_unit.values()]
    return math.fsum(means) / len(means) if means else math.nan


def _row(scores: Scores, dataset: str, systems: Sequence[str], way: int) -> Iterable[Cell]:
    """The cells of a dataset; way: as `direction`, so that the best of a measure without one is not marked."""
    there = sorted({-way * round(scores[dataset, s].value, 6) for s in systems if (dataset, s) in scores})
    yield Cell(dataset)
    for system in systems:
        one = scores.get((dataset, system))
        if one is None:
            yield Cell("–")
            continue
        place = there.index(-way * round(one.value, 6))
        text = short_score(one.value) + (IN_DOMAIN if one.in_domain else "")
        best = place == 0 and len(there) > 1
        yield Cell(text, best=best, second=place == 1, verdict=one.verdict, value=one.value)


def _trained_on(scores: Scores, dataset: str, systems: Sequence[str]) -> bool:
    there = [scores[dataset, s] for s in systems if (dataset, s) in scores]
    return 2 * sum(one.in_domain for one in there) > len(there)


def crossed(
    corner: str, cells: Mapping[tuple[str, str], str], title: str = "", notes: Sequence[str] = ()
) -> Table:
    """A table of cells by row and column, each in the order of their first mention; "–" where there is none."""
    rows, columns = (list(dict.fromkeys(key[n] for key in cells)) for n in (0, 1))
    lines = [[corner, *columns], *([row, *(cells.get((row, c), "–") for c in columns)] for row in rows)]
    return replace(table_of(lines, right=None), title=title, notes=tuple(notes))


def judged_table(rates: Mapping[tuple[str, str], float]) -> Table:
    """Which share of the first ten documents is judged: datasets x systems, as Elastic's table 2."""
    table = crossed("dataset", {key: share(rate) for key, rate in rates.items()})
    rows = ((Cell(one.text, value=rates.get((row[0].text, name))) for name, one in zip(table.header, row, strict=True))
            for row in table.rows)  # fmt: skip
    return replace(table, rows=tuple(map(tuple, rows)))


def cost_table(costs: Iterable[Efficiency]) -> Table:
    """What a system costs on one collection: time of a query, size of the index; as BEIR's table 3."""
    cells = {}
    for one in costs:
        ms, gigabytes = one.mean_ms if one.p50_ms is None else one.p50_ms, one.bytes_per_million
        device = "GPU" if "cuda" in one.hardware.lower() or "gpu" in one.hardware.lower() else "CPU"
        cells[one.quality.system, f"{device}, ms"] = figure(ms)
        cells[one.quality.system, "index of 1M docs, GB"] = figure(
            None if gigabytes is None else gigabytes / 1e9
        )
    return crossed("system", cells)


@dataclass(frozen=True)
class CollectionFacts:
    """What a table of collections says about one.

    copies: documents whose title and text another has too, as Elastic counts them; beyond: those but for the first of
    each, as Weir does, None where that is not known.
    """

    name: str
    task: str
    domain: str
    relevance: str
    documents: int
    queries: int
    positive: int
    zero: int
    words_per_query: float | None
    words_per_document: float | None
    copies: int | None
    beyond: int | None = None

    @staticmethod
    def counted(card: CollectionCard) -> CollectionFacts:
        """Of a collection that is here, counted from its files."""
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
        """Of the catalogue; several collections that are reported as one are added up."""
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
    """What the collections hold: BEIR's table 1 and the judgments and duplicates of Elastic's."""
    lines = [["dataset", "task", "domain", "relevance", "documents", "queries", "relevant a query", "words a query",
              "words a document", "positive", "zero", "copies"]]  # fmt: skip
    for one in facts:
        known = one.positive + one.zero > 0
        lines.append(
            [one.name, one.task, one.domain, one.relevance, f"{one.documents:,}", f"{one.queries:,}"]
            + [f"{one.positive / one.queries:.2f}" if known else "–"]
            + ["–" if w is None else f"{w:.2f}" for w in (one.words_per_query, one.words_per_document)]
            + [f"{n:,}" if known else "–" for n in (one.positive, one.zero)]
            + [
                "–"
                if one.copies is None
                else f"{one.copies:,}" + (f" ({one.beyond:,})" if one.beyond else "")
            ]
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


def published_table(
    name: str,
    measure: str = "nDCG@10",
    baseline: str | None = None,
    datasets: Sequence[str] = (),
    systems: Sequence[str] = (),
    study: Study | None = None,
) -> Table:
    """A table of published numbers.

    name: one of PUBLISHED, or a publisher such as "BEIR paper", whose scores by the measure are shown; baseline: of
    averages, by default the publisher's BM25 or its first system; datasets: these, or the members of these groups,
    alone; systems: those alone that have all words of one of these; study: one's own results, which stand beside them
    on the splits that both have. Raises BadValue where nothing is published, and for parts of a table that is printed
    as it is, UnknownName for a dataset, system or baseline that is not there.
    """
    if (name in PRINTED and datasets) or (name in (*PRINTED, *TABLES_OF_COLLECTIONS) and (systems or study)):
        raise BadValue(f"{name} is printed as it is; leave out -d, -s and the folder")
    if name in TABLES_OF_COLLECTIONS:
        own = [one for one in published(measure="nDCG@10") if one.model.endswith("[BEIR paper]")]
        of_paper = [one.dataset for one in _chosen(own, datasets, ())]
        facts = (
            CollectionFacts.published(one, [get(m) for m in members(one)]) for one in dict.fromkeys(of_paper)
        )
        return collection_table(
            facts, name, ("Counts of the judgments themselves, which papers print with slips.",)
        )
    if name in PRINTED:
        corner, source = PRINTED[name]
        cells = {
            (row, column): value
            for table, row, column, value in facts_table("printed-tables.tsv")
            if table == name
        }
        return replace(crossed(corner, cells, name), above=(source,))
    publisher = "BEIR paper" if name in ("BEIR table 2", "BEIR table 9") else name
    measure = {"BEIR table 2": "nDCG@10", "BEIR table 9": "R@100"}.get(name, measure)
    own = [one for one in published(measure=measure) if one.model.endswith(f"[{publisher}]")]
    if not own:
        names = sorted({one.model.rpartition("[")[2].rstrip("]") for one in published(measure=measure)})
        there = f"tables: {', '.join(sorted(PUBLISHED))}; scores by {measure}: {', '.join(names)}"
        raise BadValue(f"'{name}' is not published here; there are {there}")
    source = own[0].source
    own = _chosen(own, datasets, systems)
    # A paper says it beside one of its tables, and it holds for all.
    in_domain = {(one.dataset, one.model) for one in published() if "in-domain" in one.note}
    splits: dict[str, set[str]] = {}
    for one in own:
        splits.setdefault(one.dataset, set()).add(one.split)
    place_of = {(d, split): f"{d}:{split}" if len(of) > 1 else d for d, of in splits.items() for split in of}
    scores = {
        (place_of[one.dataset, one.split], one.model.rpartition(" [")[0]): PaperScore(
            one.value, (one.dataset, one.model) in in_domain
        )
        for one in own
    }
    models = list(dict.fromkeys(model for _, model in scores))
    usual = min(
        models, key=lambda model: (model != "BM25", not model.startswith("BM25"), models.index(model))
    )
    notes = [f"{publisher} scores by: {rules}"] if (rules := publisher_of(own[0].model).source) else []
    if study is not None:
        mine = _beside(study, measure, place_of)
        scores |= mine
        how = "every judged query counts, and ties stand by descending identifier"
        lacking = f"{study.folder} has no {measure} on these collections and splits"
        notes.append(f"(here): scored by Weir: {how}" if mine else lacking)
    units = {place: dataset for (dataset, _), place in place_of.items()}
    table = paper_table(scores, measure, baseline or usual, f"{publisher}: {source}", units)
    return replace(table, notes=(*table.notes, *notes))


def _chosen(
    scores: Sequence[PublishedScore], datasets: Sequence[str], systems: Sequence[str]
) -> list[PublishedScore]:
    """The scores of these datasets and systems; raises UnknownName for one that none is of."""
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


def _beside(
    study: Study, measure: str, place_of: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], PaperScore]:
    """The means of one's own systems on the collections and splits of a table, under their names and "(here)"."""
    return {
        (place_of[cell.collection, cell.split], f"{study.label(cell.label)} (here)"): PaperScore(mean)
        for cell in study.cells
        if (cell.collection, cell.split) in place_of and (mean := cell.mean(measure)) is not None
    }


def study_tables(study: Study) -> tuple[Table, ...]:
    """The same table of one's own results, for each measure, with the verdicts against the baseline."""
    tables = []
    for measure in study.measures:
        verdicts = {
            (c.dataset, s): pair.verdict
            for c in study.on(measure)
            for s in study.systems
            if s != study.baseline and (pair := study.against(c, s)) is not None
        }
        scores = {
            (dataset, study.label(system)): PaperScore(
                row.mean, dataset in (trained_on(system) or ()), verdicts.get((dataset, system), "")
            )
            for (dataset, system, name), row in study.mean_of.items()
            if name == measure and dataset in study.datasets
        }
        name = study.label(study.baseline)
        how = f"{study.family}; triangles: better or worse than {name}" if study.comparisons else ""
        tables.append(paper_table(scores, measure, name, how, study.unit_of))
    return tuple(tables)
