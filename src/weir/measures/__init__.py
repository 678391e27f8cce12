"""Measures, and the functions that compute them from runs and judgments."""

from typing import TYPE_CHECKING

from weir.core.judged import Judged as Judged
from weir.measures import library
from weir.measures.evaluate import DEFAULT_MEASURES as DEFAULT_MEASURES
from weir.measures.evaluate import Conventions as Conventions
from weir.measures.evaluate import measures_of as measures_of
from weir.measures.evaluate import parse_conventions as parse_conventions
from weir.measures.evaluate import score_run as score_run
from weir.measures.evaluate import scores_of as scores_of
from weir.measures.library import *  # noqa: F403 - every measure; each is named in its own file alone
from weir.measures.measure import MEASURES as MEASURES
from weir.measures.measure import Measure as Measure
from weir.measures.measure import condensed as condensed
from weir.measures.measure import measure as measure
from weir.measures.measure import parse_measure as parse_measure

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = [  # noqa: PLE0604 - texts: ruff does not know those of another module
        *library.__all__,
        *("Conventions", "Judged", "Measure", "condensed", "measure", "parse_conventions", "parse_measure"),
    ]
