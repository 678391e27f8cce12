"""Datasets x systems x measures, resumable by content."""

from weir.experiment.experiment import Experiment
from weir.experiment.results import read_results

__all__ = ["Experiment", "read_results"]
