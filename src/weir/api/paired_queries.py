"""Queries that belong together: what a measure does within groups, and p-MRR of two instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weir.api.result_set import ResultSet
from weir.core.scores import GroupedScores, Scores
from weir.datasets.load import query_groups
from weir.files.frames import qrels_from, refuse_mismatched, run_from

if TYPE_CHECKING:
    from weir.stats.paired_sets import WithinGroups


def within_groups(scores: Scores, by: object) -> ResultSet[WithinGroups]:
    """Mean, worst, best and spread of each measure within groups of queries, averaged over the groups.

    by: as `Scores.by` takes it, such as "stem:-" for paraphrases q7-a, q7-b. The worst by nDCG@10 is InstructIR's
    robustness@10. Intervals resample groups. Raises BadValue where no query has a group.
    """
    from weir.stats.paired_sets import within_groups as within

    return ResultSet("within", tuple(within(GroupedScores.of(scores, query_groups(by, scores.queries)))))


def p_mrr(
    qrels: object, run: object, changed: object = None, signs: tuple[str, str] = ("-og", "-changed")
) -> Scores:
    """p-MRR: how far documents fall that a changed instruction makes irrelevant, from -1 to 1, for each pair.

    qrels, run: as `evaluate` takes them, of queries under the original and the changed instruction, whose identifiers
    end in the two signs; changed: the rankings under the changed instruction where they are another run. Raises
    BadValue where no pair has a document that becomes irrelevant. Source: Weller et al. 2024 (FollowIR).
    """
    from weir.stats.paired_sets import p_mrr as falls

    refuse_mismatched(qrels, run)
    later = None if changed is None else run_from(changed)
    return falls(qrels_from(qrels), run_from(run), later, signs)
