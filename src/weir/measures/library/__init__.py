"""The measures, each a function from a run matched with judgments to a value for each query."""

# ruff: noqa: F403 - each file says in its `__all__` which measures it has

from typing import TYPE_CHECKING

from weir.measures.library.agreement import *
from weir.measures.library.binary import *
from weir.measures.library.cascade import *
from weir.measures.library.contexts import *
from weir.measures.library.cwl import *
from weir.measures.library.diversity import *
from weir.measures.library.experimental import *
from weir.measures.library.gains import *
from weir.measures.library.geometric import *
from weir.measures.library.incomplete import *
from weir.measures.library.persistence import *
from weir.measures.library.sets import *
from weir.measures.measure import Measure

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = [name for name, value in globals().items() if isinstance(value, Measure)]
