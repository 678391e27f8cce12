"""Run files and judgments joined, and what several run files are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from weir.core.corpus import Queries
from weir.core.intents import IntentQrels, joined, with_intents
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.errors import BadRanking, BadValue, FormatError, WeirError
from weir.io.runs.intent_file import read_intents
from weir.io.runs.nugget_file import holds_nuggets
from weir.io.runs.read import judge_file, read_qrels, read_run, run_name
from weir.measures.conventions import DEFAULT, Conventions
from weir.measures.evaluate import ranked_by, refuse_strangers
from weir.measures.measure import Measure

__all__ = ["distinct_names", "each_file", "judge", "judgments_for", "names_of_runs"]

T = TypeVar("T")


def each_file(
    runs: Sequence[Path], score: Callable[[Path], T], least: int = 1
) -> tuple[dict[Path, T], list[str]]:
    """(what is made of each run file, a sentence on each that is no ranking of these judgments).

    Raises what `score` raises where fewer than `least` files are left.
    """
    found: dict[Path, T] = {}
    refused: list[WeirError] = []
    for run in runs:
        try:
            found[run] = score(run)
        except (BadRanking, BadValue, FormatError) as error:
            refused.append(error)
    if refused and len(found) < least:
        raise refused[0]
    return found, [str(error) for error in refused]


def names_of_runs(runs: Sequence[Path]) -> list[str]:
    """What run files are called: as `run_name` says, or by their paths where two files are called the same."""
    return distinct_names([run_name(run) for run in runs], [str(run) for run in runs])


def judgments_for(qrels: Path, measures: Iterable[Measure]) -> Qrels | IntentQrels:
    """The judgments in a file, of intents where a measure needs them or it is a nugget bank.

    In columns the second one names the intent then. Raises FormatError as `read_qrels` and `read_intents`.
    """
    by_intent = any(m.by_intent for m in measures) or holds_nuggets(qrels)
    return read_intents(qrels) if by_intent else read_qrels(qrels)


def judge(
    run: Path,
    qrels: Qrels | IntentQrels,
    conventions: Conventions = DEFAULT,
    asked: Queries | None = None,
) -> Judged:
    """Join a run file with judgments of either kind; a file is held whole only where documents have to leave it.

    asked: the queries of the collection, where it says what may be ranked for them; self-matches leave by convention.
    Raises FormatError and BadRanking as `judge_file`, FormatError for a file without any ranking, and BadValue for one
    that answers none of the judged queries.
    """
    metadata = None if asked is None else asked.metadata
    if asked is not None and metadata is not None and (metadata.lists() or metadata.filter is not None):
        whole = read_run(run, conventions.order).allowed(asked)
        found = joined(ranked_by(whole, conventions), qrels)
    else:
        found = _joined(run, qrels, conventions)
    if not (found.ignored or found.answered.any()):
        raise FormatError(run, "no ranking", "at least one document for one query")
    refuse_strangers(found)
    return found


def _joined(run: Path, qrels: Qrels | IntentQrels, conventions: Conventions) -> Judged:
    if conventions.self_matches == "drop":
        return joined(ranked_by(read_run(run, conventions.order), conventions), qrels)
    if isinstance(qrels, IntentQrels):
        return with_intents(judge_file(run, qrels.numbered, conventions.order), qrels)
    return judge_file(run, qrels, conventions.order)


def distinct_names(short: Sequence[str], long: Sequence[str]) -> list[str]:
    """The short names, or the long ones where short ones repeat; raises BadValue where those repeat too."""
    names = list(short) if len(set(short)) == len(short) else list(long)
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise BadValue(f"two of the systems are named '{twice}'; a comparison needs different ones")
    return names
