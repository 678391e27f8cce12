"""Text analysis: analyzers named by what they reproduce, and the table of terms they fill."""

from weir.text.analyzer import Analyzer, analyzers
from weir.text.terms import TermTable

__all__ = ["Analyzer", "TermTable", "analyzers"]
