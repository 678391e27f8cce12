"""Systems: from a corpus and queries to a run. Importing this package registers them."""

from weir.systems.bm25 import BM25
from weir.systems.recipe import PRESETS, Recipe
from weir.systems.rm3 import RM3
from weir.systems.system import SYSTEMS, Retriever, Searcher, parse_system, usage

__all__ = ["BM25", "PRESETS", "RM3", "SYSTEMS", "Recipe", "Retriever", "Searcher", "parse_system", "usage"]
