"""Compute scores from a run and judgments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from weir.argument_types import checked, named_arguments
from weir.core.intents import IntentQrels
from weir.core.judged import Judged, joined, with_intents
from weir.core.order import Ties
from weir.core.origin import Origin
from weir.core.qrels import Qrels
from weir.core.roles import MANY_QUERIES, refuse_exchanged_columns, refuse_exchanged_files
from weir.core.run import Named, Run
from weir.core.scores import Scores, known_mean
from weir.errors import (
    BadRanking,
    BadValue,
    FormatError,
    UnknownName,
    WeirError,
    held_warnings,
    warn_of_ranking,
)
from weir.files.formats import head_of, holds_nuggets
from weir.files.frames import qrels_from
from weir.files.intents import intents_from, read_intents
from weir.files.runs import join_run_file, read_qrels_counted, read_run, run_name
from weir.measures.measure import Measure, all_within_unit, parse_measure
from weir.registry import changed_settings

if TYPE_CHECKING:
    from weir.core.corpus import Queries

# What counts as relevant and what unjudged documents do is no convention but said by each measure: `AP(rel=2)`,
# `condensed(AP)`.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "ties": {
        "trec": "scores compare as doubles, equal ones stand by document identifier, descending (trec_eval 10)",
        "trec9": "the same with scores compared as floats (trec_eval 9, pytrec_eval)",
        "expected": "the exact mean over all orders of documents with equal scores",
        "bounds": "as trec, with the values of the worst and the best order",
    },
    "missing": {
        "zero": "a judged query that the run does not answer scores 0",
        "answered-only": "queries that the run does not answer leave the mean",
    },
    "empty": {
        "zero": "a query without a document of grade 1 or better scores 0",
        "left-out": "queries without a document of grade 1 or better leave the mean",
    },
    "self_matches": {
        "keep": "a document with the identifier of its query counts like any other",
        "drop": "a document with the identifier of its query leaves the ranking first (ArguAna, Quora)",
    },
}


@named_arguments
@dataclass(frozen=True)
class Conventions:
    """Rules for ties, missing and empty queries, and self-matches; raises UnknownName for an unknown value.

    Prints as `parse_conventions` reads it: `ties=expected, missing=answered-only`, or `default`.
    """

    ties: Literal["trec", "trec9", "expected", "bounds"] = "trec"
    """"trec" orders documents of equal score by descending identifier; "trec9" does so too, with scores
    compared as 32-bit floats. "expected" takes the mean over all orders; "bounds" is "trec" with the values
    of the worst and best order."""
    missing: Literal["zero", "answered-only"] = "zero"
    """Judged queries that a run does not answer score 0, or leave the mean."""
    empty: Literal["zero", "left-out"] = "zero"
    """Queries without a document of grade 1 or better score 0, or leave the mean."""
    self_matches: Literal["keep", "drop"] = "keep"
    """Documents with the identifier of their query stay, or leave the ranking (ArguAna, Quora)."""

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            if getattr(self, name) not in words:
                raise UnknownName(f"convention for {name}", str(getattr(self, name)), words)

    def __str__(self) -> str:
        if self == DEFAULT:
            return "default"
        return ", ".join(f"{name}={word}" for name, word in self._changed())

    @property
    def order(self) -> Ties:
        """Rule by which runs order ties: "trec" or "trec9"."""
        return "trec9" if self.ties == "trec9" else "trec"

    def sentences(self) -> list[str]:
        """Return a sentence for each convention that differs from its default."""
        return [f"{name}={word}: {CHOICES[name][word]}" for name, word in self._changed()]

    def _changed(self) -> list[tuple[str, str]]:
        return [(name, str(word)) for name, word in changed_settings(self).items()]


DEFAULT = Conventions()


@checked
def parse_conventions(text: str) -> Conventions:
    """Return the conventions in a text such as "ties=expected, missing=answered-only"; "default" is all
    defaults.

    Raises UnknownName for an unknown convention or value, BadValue for malformed text.
    """
    words: dict[str, Any] = {}
    for part in [] if text.strip() == "default" else text.split(","):
        name, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals or name in words:
            raise BadValue(
                f"'{text[:80]}' names no conventions; expected such as ties=expected, missing=answered-only"
            )
        if name not in CHOICES:
            raise UnknownName("convention", name, CHOICES)
        words[name] = word
    return Conventions(**words)


DEFAULT_MEASURES = ("nDCG@10", "R@100", "Judged@10")
_JUDGED_AT_10 = Measure("Judged", cutoff=10)


@checked
def measures_of(measures: Measure | str | Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Return distinct measures from values, names or another library's measures.

    Raises UnknownName for an unknown measure, BadValue for an empty list or an invalid setting.
    """
    return tuple(dict.fromkeys(named_measures(measures).values()))


def named_measures(measures: Measure | str | Iterable[Measure | str]) -> dict[str, Measure]:
    """Return {name as given: measure}; "nDCG@{1,3,10}" gives three.

    Raises UnknownName for an unknown measure, BadValue for an empty list or an invalid setting.
    """
    alone = isinstance(measures, (str, Measure)) or not isinstance(
        measures, Iterable
    )  # such as one of ir-measures
    each: Iterable[Measure | str] = [measures] if alone else measures  # type: ignore[list-item, assignment]  # told apart by `alone`
    by_name = {}
    for one in each:
        match = _CUTOFFS.fullmatch(str(one))
        for name in (
            [match[1] + cut.strip() + match[3] for cut in match[2].split(",")] if match else [str(one)]
        ):
            by_name[name] = one if isinstance(one, Measure) else parse_measure(name)
    if not by_name:
        raise BadValue("no measure was named; try nDCG@10")
    return by_name


_CUTOFFS = re.compile(r"(.*@ *)\{([^{}]*)\}(.*)", re.DOTALL)


@checked
def score_run(
    qrels: Qrels | IntentQrels,
    run: Run,
    measures: Measure | str | Iterable[Measure | str] = DEFAULT_MEASURES,
    conventions: Conventions = DEFAULT,
) -> Scores:
    """Return the scores of a run for each measure and judged query; by default an unanswered query scores 0.

    run: queries without judgments are ignored; with ties="trec9" its order stays.

    Raises BadValue for empty judgments and if the conventions leave no query, UnknownName for an unknown
    measure.
    """
    if run.ties == "trec9" and conventions.ties == "trec":
        conventions = replace(conventions, ties="trec9")
    return scores_of(joined(ranked_by(run, conventions), qrels), measures_of(measures), conventions)


def ranked_by(run: Run, conventions: Conventions) -> Run:
    """Return the run in the tie order of the conventions, without self-matches if they are dropped.

    Raises BadValue if document identifiers are needed and were not read.
    """
    if conventions.self_matches == "drop":
        run = run.without_self()
    if conventions.order == "trec9" and run.ties != "trec9":
        run.refuse_nameless()
        columns = (run.query_of_row(), run.doc, run.score)
        again = Run.from_columns(run.queries, run.docs, *columns, Named(run.name, "trec9"))
        return replace(again, barred=run.barred, doubts=run.doubts)
    return run


@checked
def scores_of(judged: Judged, measures: tuple[Measure, ...], conventions: Conventions = DEFAULT) -> Scores:
    """Return the scores of a run matched with judgments, with their range over the orders of tied documents.

    Raises BadValue if no query counts, or a mean or range over orders is required and cannot be computed.
    """
    if len(judged) == 0:
        raise BadValue("the judgments hold no query, so there is nothing to score")
    values = np.empty((len(measures), len(judged)))
    geometric = []
    for number, one in enumerate(measures):
        values[number] = one.computed(judged)
        if one.geometric:
            geometric.append(str(one))
    if not all_within_unit(values):
        for one, of_queries in zip(measures, values, strict=True):
            one.asserted(of_queries)
    at_10 = (
        values[measures.index(_JUDGED_AT_10)] if _JUDGED_AT_10 in measures else _JUDGED_AT_10.computed(judged)
    )
    low = high = values
    shared = int(judged.tied.sum())
    if shared:
        from weir.measures.ties.over_orders import Tied, expected_values, extreme_values

        tied = Tied.of(judged)
        values, low, high = values.copy(), values.copy(), values.copy()
        for row, one in enumerate(measures if tied.parts else ()):
            low[row], high[row] = extreme_values(one, tied, values[row], strict=conventions.ties == "bounds")
            if conventions.ties == "expected":
                values[row] = expected_values(one, tied, values[row])
    if conventions.missing != "zero" or conventions.empty != "zero":
        counts = np.ones(len(judged), np.bool_)
        if conventions.missing == "answered-only":
            counts &= judged.answered
        if conventions.empty == "left-out":
            counts &= judged.relevant() > 0
        if not counts.any():
            raise BadValue(f"no query counts: none of {len(judged)} is left by {conventions}")
        at_10 = np.where(counts, at_10, np.nan)
        values, low, high = (np.where(counts, of_all, np.nan) for of_all in (values, low, high))
    return Scores(
        tuple(map(str, measures)),
        judged.queries,
        values,
        judged.answered,
        shared / int(judged.retrieved.sum()) if shared else 0.0,
        judged.ignored,
        geometric=tuple(geometric),
        conventions=str(conventions),
        low=low,
        high=high,
        judged_at_10=known_mean(at_10),
        judged=at_10,
        origin=Origin(judged.judgments, depth=int(judged.retrieved.max()), whole=_all_found(judged)),
    )


def _all_found(judged: Judged) -> bool:
    if judged.intents is not None:  # whose grades identify documents
        return False
    return int(np.count_nonzero(judged.grade > 0)) == int(np.count_nonzero(judged.ideal > 0))


def check_shared_queries(
    judged: Judged, run: Callable[[], Run], qrels: Callable[[], object], path: Path | None = None
) -> None:
    """Raise BadValue if the run has no query, if none of its queries is judged, or if columns, or run and judgments,
    are exchanged; FormatError for a file without a document.

    run, qrels: return the run and its judgments if needed.
    path: the run's file, for the message.

    Issues a RankingWarning if no query has a relevant document, or if all scores equal the grades.
    """
    where = "" if path is None else f"{path}: "
    answered = int(np.count_nonzero(judged.answered))
    if len(judged) and not (answered or judged.ignored):
        expected = "at least one document for one query"
        if path is not None:
            raise FormatError(path, "no ranking", expected)
        if not len(run()):  # a query that a system answered with nothing scores 0
            raise BadValue(f"the run holds no ranking; expected {expected}")
    # Runs of many queries, few of them judged, are common: their judged documents tell that nothing is exchanged.
    strangers = 0 < judged.ignored >= answered >= len(judged.rank)
    judgments = qrels() if len(judged) and (strangers or not len(judged.rank)) else None
    if isinstance(judgments, Qrels):
        refuse_exchanged_columns(judgments, run(), where)
    if judged.intents is None and answered:
        refuse_exchanged_files(judged, run, where)
    if not np.count_nonzero(judged.grade > 0):
        warn_without_relevant(judged)
    if not answered and judged.ignored and len(judged):
        raise BadValue(
            f"{where}the run and the judgments have no query in common: of {judged.ignored} in the run one is "
            f"'{judged.stranger}', of {len(judged)} judged ones '{judged.queries[0]}'{_texts_said(judged)}"
        )


def _texts_said(judged: Judged) -> str:
    ends_in_hash = re.compile(r".+-[0-9a-f]{12}").fullmatch  # as an import writes for a text alone
    if not any(len(one.split()) > 1 or ends_in_hash(one) for one in (judged.stranger, judged.queries[0])):
        return ""
    return "; where one is the text of a query, `collection` names the folder that knows its identifier"


def warn_without_relevant(judged: Judged) -> None:
    """Issue a RankingWarning if none of MANY_QUERIES or more judged queries has a grade above 0."""
    if len(judged) >= MANY_QUERIES and not (judged.ideal > 0).any():
        said = (
            f"none of {len(judged):,} judged queries has a relevant document, and measures say nothing: "
            "do the grades stand in another column of the judgments?"
        )
        warn_of_ranking(said)


# Run files joined with judgments, and their names.

T = TypeVar("T")


def each_file(
    runs: Sequence[Path], score: Callable[[Path], T], least: int = 1
) -> tuple[dict[Path, T], list[str]]:
    """Return ({file: result of `score`}, messages of files that it refuses).

    Raises the first refusal if fewer than `least` files are scored.
    """
    scored: dict[Path, T] = {}
    refused: list[WeirError] = []
    for run in runs:
        try:
            scored[run] = score(run)
        except (BadRanking, BadValue, FormatError) as error:
            refused.append(error)
    if refused and len(scored) < least:
        raise refused[0]
    return scored, list(map(str, refused))


def names_of_runs(runs: Sequence[Path]) -> list[str]:
    """Return the names of run files without endings, in order, or full paths if names are equal; raises
    BadValue for a repeated path."""
    return distinct_names(list(map(run_name, runs)), list(map(str, runs)))


def judgments_for(qrels: object, measures: Iterable[Measure]) -> Qrels | IntentQrels:
    """Return the judgments in a file or object: IntentQrels if a measure needs intents or the file is a
    nugget bank, else Qrels.

    Raises FormatError for a missing or invalid file, BadValue for Qrels where intents are needed.
    """
    if not isinstance(qrels, Path):
        return intents_from(qrels) if any(m.by_intent for m in measures) else qrels_from(qrels)
    if any(m.by_intent for m in measures):
        return read_intents(qrels)
    head = head_of(qrels)
    return read_intents(qrels) if holds_nuggets(qrels, head) else read_qrels_counted(qrels, head)[0]


def join_run(
    run: Path,
    qrels: Qrels | IntentQrels,
    conventions: Conventions = DEFAULT,
    queries: Queries | None = None,
) -> Judged:
    """Return a run file matched with judgments.

    queries: the collection's; their candidates, exclusions and filters apply, and a run may name them by
        text.

    Raises FormatError for a missing or invalid file, BadRanking for a repeated document, BadValue if no
    judged query is answered.
    """
    with held_warnings():
        return _joined_file(run, qrels, conventions, queries)


def _joined_file(
    run: Path, qrels: Qrels | IntentQrels, conventions: Conventions, queries: Queries | None
) -> Judged:
    metadata = None if queries is None else queries.metadata
    restricted = metadata is not None and (metadata.lists() or metadata.filter is not None)
    judged = None
    if not restricted and conventions.self_matches != "drop":
        flat = qrels.numbered if isinstance(qrels, IntentQrels) else qrels
        judged = join_run_file(run, flat, conventions.order)
        if isinstance(qrels, IntentQrels):
            judged = with_intents(judged, qrels)
    unknown = judged is not None and judged.ignored and not judged.answered.any()
    if judged is None or (unknown and queries is not None):
        ranked = read_run(run, conventions.order)
        if queries is not None:
            ranked = ranked.by_identifier(queries)
            ranked = permitted(ranked, queries)
        judged = joined(ranked_by(ranked, conventions), qrels)
    check_shared_queries(judged, lambda: read_run(run), lambda: qrels, run)
    return judged


def permitted(run: Run, queries: Queries) -> Run:
    """Return the run with only the documents that `queries` allow; removed ones are counted in `barred`."""
    kept = run.allowed(queries)
    lost = np.diff(run.ptr) - np.diff(kept.ptr)
    return replace(kept, barred=(int(lost.sum()), int(np.count_nonzero(lost)))) if lost.any() else kept


def distinct_names(short: Sequence[str], long: Sequence[str]) -> list[str]:
    """Return each system's short name, or its long name if the short one is not unique.

    Raises BadValue if long names are equal too.
    """
    times = Counter(short)
    names = [one if times[one] == 1 else whole for one, whole in zip(short, long, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadValue(f"two of the systems are named '{twice}'; a comparison needs different ones")
    return names
