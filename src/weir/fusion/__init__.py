"""Fusion: several rankings to one, by methods that print and parse back, fitted with cross-validation."""

from weir.fusion.candidates import Candidates
from weir.fusion.fit import Fit, fit
from weir.fusion.fuse import fuse
from weir.fusion.grid import candidates
from weir.fusion.method import METHODS, Fusion, fusion, parse_fusion
from weir.fusion.norms import NORMS, ScoreLists
from weir.fusion.ranked import borda, condorcet, isr, logisr, rbc, rrf
from weir.fusion.scored import combanz, combmax, combmed, combmin, combmnz, combsum, wsum

__all__ = [
    "METHODS",
    "NORMS",
    "Candidates",
    "Fit",
    "Fusion",
    "ScoreLists",
    "borda",
    "candidates",
    "combanz",
    "combmax",
    "combmed",
    "combmin",
    "combmnz",
    "combsum",
    "condorcet",
    "fit",
    "fuse",
    "fusion",
    "isr",
    "logisr",
    "parse_fusion",
    "rbc",
    "rrf",
    "wsum",
]
