"""Several rankings to one, and the settings of a fusion fitted on judged queries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from weir.core.run import Run
from weir.files.frames import qrels_from, run_from

if TYPE_CHECKING:
    from weir.measures import Measure
    from weir.systems.fusion import Fusion
    from weir.systems.fusion.fit import Fit


def fuse(runs: Iterable[object], method: Fusion | str = "rrf", k: int | None = None) -> Run:
    """Fuse rankings into one, such as fuse([a, b], "rrf(k=10)"): every document that one of them returns.

    runs: two or more rankings, each as `evaluate` takes it; method: see docs/fusion.md; k: documents kept for each
    query. Raises BadValue for fewer than two rankings and for rankings that share no query, UnknownName for an unknown
    method or setting, and the WeirErrors of the parts.
    """
    from weir.systems.fusion import fuse as fuse_runs

    return fuse_runs([run_from(run) for run in runs], method, k)


def fit_fusion(
    qrels: object,
    runs: Iterable[object],
    method: Fusion | str,
    measure: Measure | str = "nDCG@10",
    folds: int = 5,
) -> Fit:
    """Choose the settings of a fusion that do best on judged queries, with cross-validation, as `weir fuse --fit`.

    qrels, runs: as `evaluate` takes them; method: settings that it gives stay as they are. `.chosen` is the fusion to
    use on other queries, `.held_out` what each judged query scores under settings that were not chosen on it. Raises
    BadValue where nothing is left to choose and for fewer judged queries than folds, and the WeirErrors of the parts.
    """
    from weir.systems.fusion.fit import fit

    return fit(method, [run_from(run) for run in runs], qrels_from(qrels), measure, folds)
