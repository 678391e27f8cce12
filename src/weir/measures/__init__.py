"""Measures: values that print and parse back, and functions from a join to one number per query."""

from weir.measures.agreement import Accuracy, Compat
from weir.measures.binary import AP, RR, P, R, R_cap, Success
from weir.measures.cascade import ERR, nERR
from weir.measures.coverage import Hole, Judged_at
from weir.measures.cumulative import NCG, Q
from weir.measures.diversity import (
    AP_IA,
    ERR_IA,
    NRBP,
    P_IA,
    StRecall,
    alpha_DCG,
    alpha_nDCG,
    nERR_IA,
    nNRBP,
)
from weir.measures.evaluate import DEFAULT_MEASURES, evaluate, measures_of, scores_of
from weir.measures.experimental import G, RnDCG, binG, nDCG_rel
from weir.measures.gains import DCG, IDCG, SDCG, nDCG
from weir.measures.geometric import gmAP, gmbpref
from weir.measures.incomplete import bpref, infAP
from weir.measures.measure import MEASURES, Measure, condensed, measure, parse_measure
from weir.measures.persistence import RBP, RBP_residual
from weir.measures.precision_recall import IAP, IPrec, Rprec
from weir.measures.readers import BPM, INSQ, INST, NERR8, NERR9, NERR10, NERR11
from weir.measures.sets import (
    F,
    NumNonrelRet,
    NumRel,
    NumRelRet,
    NumRet,
    SetAP,
    SetF,
    SetP,
    SetR,
    SetR_cap,
    Utility,
)

__all__ = [
    "AP",
    "AP_IA",
    "BPM",
    "DCG",
    "DEFAULT_MEASURES",
    "ERR",
    "ERR_IA",
    "IAP",
    "IDCG",
    "INSQ",
    "INST",
    "MEASURES",
    "NCG",
    "NERR8",
    "NERR9",
    "NERR10",
    "NERR11",
    "NRBP",
    "P_IA",
    "RBP",
    "RR",
    "SDCG",
    "Accuracy",
    "Compat",
    "F",
    "G",
    "Hole",
    "IPrec",
    "Judged_at",
    "Measure",
    "NumNonrelRet",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Q",
    "R",
    "RBP_residual",
    "R_cap",
    "RnDCG",
    "Rprec",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetR_cap",
    "StRecall",
    "Success",
    "Utility",
    "alpha_DCG",
    "alpha_nDCG",
    "binG",
    "bpref",
    "condensed",
    "evaluate",
    "gmAP",
    "gmbpref",
    "infAP",
    "measure",
    "measures_of",
    "nDCG",
    "nDCG_rel",
    "nERR",
    "nERR_IA",
    "nNRBP",
    "parse_measure",
    "scores_of",
]
