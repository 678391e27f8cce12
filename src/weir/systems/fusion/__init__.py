"""Fuse rankings by methods that print, parse back and are fitted by cross-validation."""

from weir.systems.fusion.fit import Fit as Fit
from weir.systems.fusion.fit import candidates as candidates
from weir.systems.fusion.fit import fit as fit
from weir.systems.fusion.fuse import fuse as fuse
from weir.systems.fusion.methods import METHODS as METHODS
from weir.systems.fusion.methods import NORMS as NORMS
from weir.systems.fusion.methods import Candidates as Candidates
from weir.systems.fusion.methods import Fusion as Fusion
from weir.systems.fusion.methods import ScoreLists as ScoreLists
from weir.systems.fusion.methods import fusion as fusion
from weir.systems.fusion.methods import parse_fusion as parse_fusion
