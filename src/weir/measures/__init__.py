"""Measures: values that print and parse back, and functions from a join to one number per query."""

from weir.measures.binary import AP, RR, P, R, R_cap, Success
from weir.measures.coverage import Hole, Judged_at
from weir.measures.evaluate import DEFAULT_MEASURES, evaluate, measures_of, scores_of
from weir.measures.gains import DCG, nDCG
from weir.measures.measure import MEASURES, Measure, measure, parse_measure

__all__ = [
    "AP",
    "DCG",
    "DEFAULT_MEASURES",
    "MEASURES",
    "RR",
    "Hole",
    "Judged_at",
    "Measure",
    "P",
    "R",
    "R_cap",
    "Success",
    "evaluate",
    "measure",
    "measures_of",
    "nDCG",
    "parse_measure",
    "scores_of",
]
