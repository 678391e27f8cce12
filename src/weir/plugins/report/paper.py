"""Tables of a paper: datasets x systems with averages against a baseline, from own results or published scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir.core.rounding import share_change, short_score
from weir.core.tables import Cell, Table
from weir.errors import BadValue, UnknownName
from weir.experiment.published import published
from weir.plugins.report.study import Study

IN_DOMAIN = "‡"
"""Behind a score on data that the system was trained on."""


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
    rows = [tuple(_row(scores, dataset, systems)) for dataset in datasets]
    averaged = [d for d in datasets if not _trained_on(scores, d, systems)]
    averages, against, above = [Cell("average")], [Cell(f"against {baseline}")], [Cell("higher / lower")]
    for system in systems:
        common = [d for d in averaged if (d, system) in scores and (d, baseline) in scores]
        mean, base = (_mean(scores, one, common, units or {}) for one in (system, baseline))
        averages.append(Cell(short_score(mean)))
        compared = system != baseline and base > 0 and math.isfinite(mean)
        against.append(Cell(share_change(mean / base) if compared else ""))
        gaps = [scores[d, system].value - scores[d, baseline].value for d in common]
        counts = f"{sum(gap > 0 for gap in gaps)} / {sum(gap < 0 for gap in gaps)}"
        above.append(Cell("" if system == baseline else counts))
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


def _row(scores: Scores, dataset: str, systems: Sequence[str]) -> Iterable[Cell]:
    there = sorted(
        {round(scores[dataset, s].value, 6) for s in systems if (dataset, s) in scores}, reverse=True
    )
    yield Cell(dataset)
    for system in systems:
        one = scores.get((dataset, system))
        if one is None:
            yield Cell("–")
            continue
        place = there.index(round(one.value, 6))
        text = short_score(one.value) + (IN_DOMAIN if one.in_domain else "")
        yield Cell(text, best=place == 0 and len(there) > 1, second=place == 1, verdict=one.verdict)


def _trained_on(scores: Scores, dataset: str, systems: Sequence[str]) -> bool:
    there = [scores[dataset, s] for s in systems if (dataset, s) in scores]
    return 2 * sum(one.in_domain for one in there) > len(there)


def published_table(publisher: str, measure: str = "nDCG@10", baseline: str = "BM25") -> Table:
    """The table of a publisher's scores by a measure, such as "BEIR paper" by nDCG@10 (its table 2) or R@100 (table 9).

    Raises BadValue where nothing is published, UnknownName for a baseline that is not there.
    """
    own = [one for one in published(measure=measure) if one.model.endswith(f"[{publisher}]")]
    if not own:
        names = sorted({one.model.rpartition("[")[2].rstrip("]") for one in published(measure=measure)})
        raise BadValue(f"'{publisher}' published no {measure}; there are {', '.join(names)}")
    scores = {
        (one.dataset, one.model.rpartition(" [")[0]): PaperScore(one.value, "in-domain" in one.note)
        for one in own
    }
    return paper_table(scores, measure, baseline, f"{publisher}: {own[0].source}")


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
            (dataset, study.label(system)): PaperScore(row.mean, verdict=verdicts.get((dataset, system), ""))
            for (dataset, system, name), row in study.mean_of.items()
            if name == measure and dataset in study.datasets
        }
        name = study.label(study.baseline)
        how = f"{study.family}; triangles: better or worse than {name}" if study.comparisons else ""
        tables.append(paper_table(scores, measure, name, how, study.unit_of))
    return tuple(tables)
