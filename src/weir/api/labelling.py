"""Labels of people and models beside each other, and what they conclude."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.result_set import ResultSet
from weir.core.qrels import MODEL

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.run import Run
    from weir.datasets.load import Dataset
    from weir.labels.hole_study import HoleStudy
    from weir.measures.measure import Measure
    from weir.stats.label_agreement import Agreement, ManyRaters
    from weir.stats.order_agreement import OrderAgreement


def agree(first: object, *others: object, words: Sequence[str] = ()) -> ResultSet[Agreement]:
    """How well other labels agree with the first: `weir labels agree`.

    first, others: judgments as `weir.evaluate` takes them, folders of `weir judge`, or tables of other judges, such as
    "labels.csv" or "labels.csv#gpt" where several columns are labels; of one file alone, its raters, by their origin or
    column. words: what labels mean that are no numbers, such as "partly relevant=1". Each query stands in `by_query`.
    Raises BadValue where no pair is judged by both or there is one rater alone, and the WeirErrors of reading.
    """
    from weir.errors import BadValue
    from weir.stats.label_agreement import agreement

    (name, labels), *rest = labels_by_name((first, *others), words).items()
    if not rest:
        raise BadValue(f"{name} has the labels of one rater alone; name other labels of the same pairs")
    return ResultSet("agree", tuple(agreement(labels, other, (name, beside)) for beside, other in rest))


def rater_agreement(first: object, *others: object, words: Sequence[str] = ()) -> ResultSet[ManyRaters]:
    """Krippendorff's alpha of all raters together, of whom each may have left pairs out; arguments as `agree`.

    Raises BadValue for one rater and where no pair has two labels, and the WeirErrors of reading.
    """
    from weir.stats.label_agreement import many_raters

    return ResultSet("raters", (many_raters(labels_by_name((first, *others), words)),))


def rank_agreement(
    first: object,
    *others: object,
    runs: Mapping[str, object] | Sequence[object],
    measure: Measure | str = "nDCG@10",
    words: Sequence[str] = (),
) -> ResultSet[OrderAgreement]:
    """Whether other labels order systems as the first do: `weir labels agree --run`; labels as `agree` takes them.

    runs: rankings by name, or several, as `weir.evaluate` takes them. Raises BadValue for fewer than two systems or
    queries in common, and the WeirErrors of reading.
    """
    from weir.measures.measure import parse_measure
    from weir.stats.order_agreement import order_agreement

    systems = _systems(runs)
    (name, labels), *rest = labels_by_name((first, *others), words).items()
    parsed = parse_measure(str(measure))
    agreements = [
        replace(order_agreement(systems, labels, other, parsed, (name, beside)), alike=_alike(systems, other))
        for beside, other in rest
    ]
    return ResultSet("orders", tuple(agreements))


def holes(
    qrels: object,
    *runs: object,
    human: object,
    model: object = None,
    measure: Measure | str = "nDCG@10",
    rel: float = 1,
    collection: str | Path | Dataset | None = None,
) -> ResultSet[HoleStudy]:
    """What people and a model find among the unjudged documents of runs: `weir labels holes`.

    qrels, runs: as `weir.evaluate` takes them; human, model: labels as `agree` takes them, model None for people
    alone; rel: the grade from which a document is relevant; collection: of the runs, whose rules hold, such as that of
    self-matches. Raises BadValue where nothing is unjudged or no hole is judged by all of them, and for a measure
    without score bounds, and the WeirErrors of reading.
    """
    from weir.datasets.scoring_rules import ScoringRules
    from weir.files.frames import qrels_from
    from weir.files.label_files import labels_from
    from weir.labels.hole_study import hole_study
    from weir.measures.measure import parse_measure

    by_model = None if model is None else labels_from(model)
    scoring = ScoringRules.of(collection)
    systems = {name: scoring.ranked(run) for name, run in _systems(runs).items()}
    judgments = scoring.counted(qrels_from(qrels))
    study = hole_study(systems, judgments, labels_from(human), by_model, parse_measure(str(measure)), rel)
    return ResultSet("holes", (study,), scoring.notes)


def _systems(runs: Mapping[str, object] | Sequence[object]) -> dict[str, Run]:
    """Rankings by name: the given ones, or those of the runs, or their paths where these repeat."""
    from weir.files.frames import run_from
    from weir.measures.evaluate import distinct_names

    if isinstance(runs, Mapping):
        return {str(name): run_from(run) for name, run in runs.items()}
    rankings = [run_from(run) for run in runs]
    long = [
        str(run) if isinstance(run, (str, os.PathLike)) else f"system {n}" for n, run in enumerate(runs, 1)
    ]
    return dict(zip(distinct_names([run.name for run in rankings], long), rankings, strict=True))


def _alike(systems: Iterable[str], labels: Qrels) -> tuple[tuple[str, str], ...]:
    """Systems that are called like a model of the family that made labels, with that family."""
    from weir.labels.judge import families_of

    models = [] if labels.origin is None else [name for name in labels.origin.names if name.startswith(MODEL)]
    # model:prompt, of which the prompt may be missing
    model_names = [name.removeprefix(MODEL) for name in models]
    judges = frozenset[str]().union(*(families_of(name.rpartition(":")[0] or name) for name in model_names))
    return tuple((name, family) for name in systems for family in sorted(families_of(name) & judges))


def labels_by_name(sources: Sequence[object], words: Sequence[str] = ()) -> dict[str, Qrels]:
    """Labels by the name of their rater, of one file alone those of each of its raters; raises as `read_labels`."""
    from weir.files.label_files import labels_from, parse_words, rater_name, read_labels, read_raters
    from weir.measures.evaluate import distinct_names

    meaning = parse_words(words)
    paths = [one for one in sources if isinstance(one, (str, os.PathLike))]
    if len(sources) == len(paths) == 1:
        return read_raters(Path(paths[0]), meaning)
    short = [
        rater_name(Path(one)) if isinstance(one, (str, os.PathLike)) else f"labels {n}"
        for n, one in enumerate(sources, 1)
    ]
    long = [
        str(one) if isinstance(one, (str, os.PathLike)) else name
        for one, name in zip(sources, short, strict=True)
    ]
    labels = [
        read_labels(Path(one), meaning) if isinstance(one, (str, os.PathLike)) else labels_from(one)
        for one in sources
    ]
    return dict(zip(distinct_names(short, long), labels, strict=True))
