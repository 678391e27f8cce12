"""Scores of several run files against one file of judgments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from weir.core.scores import Scores
from weir.errors import BadValue
from weir.io.trec import judge_file, read_qrels, run_name
from weir.measures.evaluate import DEFAULT_MEASURES, measures_of, scores_of
from weir.measures.measure import Measure

__all__ = ["distinct_names", "scores_of_files"]


def scores_of_files(
    qrels: Path, runs: Sequence[Path], measures: Iterable[Measure | str] = ()
) -> dict[str, Scores]:
    """The scores of run files by name, which is the file's, or its path where two files are called the same.

    measures: by default nDCG@10, R@100 and Judged@10. Raises the WeirErrors of reading and measuring.
    """
    wanted = measures_of(tuple(measures) or DEFAULT_MEASURES)
    names = distinct_names([run_name(run) for run in runs], [str(run) for run in runs])
    judgments = read_qrels(qrels)
    return {
        name: scores_of(judge_file(run, judgments), wanted) for name, run in zip(names, runs, strict=True)
    }


def distinct_names(short: Sequence[str], long: Sequence[str]) -> list[str]:
    """The short names, or the long ones where short ones repeat; raises BadValue where those repeat too."""
    names = list(short) if len(set(short)) == len(short) else list(long)
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise BadValue(f"two of the systems are named '{twice}'; a comparison needs different ones")
    return names
