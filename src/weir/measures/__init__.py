"""Measures: values that print and parse back, and functions from a join to one number per query."""

from weir.measures.evaluate import DEFAULT_MEASURES, evaluate, measures_of, scores_of
from weir.measures.library.agreement import Accuracy, Compat
from weir.measures.library.binary import AP, IAP, RR, IPrec, P, R, R_cap, Rprec, Success
from weir.measures.library.cascade import ERR, nERR
from weir.measures.library.contexts import ContextPrecision, NuggetRecall
from weir.measures.library.coverage import Hole, Judged_at
from weir.measures.library.cwl import BPM, INSQ, INST, NERR8, NERR9, NERR10, NERR11
from weir.measures.library.diversity import (
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
from weir.measures.library.experimental import G, RnDCG, binG, nDCG_rel
from weir.measures.library.gains import DCG, IDCG, NCG, SDCG, Q, nDCG
from weir.measures.library.geometric import gmAP, gmbpref
from weir.measures.library.incomplete import bpref, infAP
from weir.measures.library.persistence import RBP, RBP_residual
from weir.measures.library.sets import (
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
from weir.measures.measure import MEASURES, Measure, condensed, measure, parse_measure

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
    "ContextPrecision",
    "F",
    "G",
    "Hole",
    "IPrec",
    "Judged_at",
    "Measure",
    "NuggetRecall",
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
