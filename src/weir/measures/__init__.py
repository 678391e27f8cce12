"""Measures: values that print and parse back, and functions from a join to one number per query."""

from weir.measures.binary import AP, RR, P, R, R_cap, Success
from weir.measures.cascade import ERR, nERR
from weir.measures.coverage import Hole, Judged_at
from weir.measures.cumulative import NCG, Q
from weir.measures.evaluate import DEFAULT_MEASURES, evaluate, measures_of, scores_of
from weir.measures.gains import DCG, nDCG
from weir.measures.incomplete import bpref, infAP
from weir.measures.measure import MEASURES, Measure, condensed, measure, parse_measure
from weir.measures.persistence import RBP, RBP_residual
from weir.measures.precision_recall import IAP, IPrec, Rprec
from weir.measures.sets import F, NumRel, NumRelRet, NumRet, SetAP, SetF, SetP, SetR

__all__ = [
    "AP",
    "DCG",
    "DEFAULT_MEASURES",
    "ERR",
    "IAP",
    "MEASURES",
    "NCG",
    "RBP",
    "RR",
    "F",
    "Hole",
    "IPrec",
    "Judged_at",
    "Measure",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Q",
    "R",
    "RBP_residual",
    "R_cap",
    "Rprec",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "Success",
    "bpref",
    "condensed",
    "evaluate",
    "infAP",
    "measure",
    "measures_of",
    "nDCG",
    "nERR",
    "parse_measure",
    "scores_of",
]
