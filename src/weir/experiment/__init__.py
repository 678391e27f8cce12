"""Datasets x systems x measures, resumable by content."""

from weir.experiment.experiment import Experiment
from weir.experiment.results import group_rows, read_results

__all__ = ["Experiment", "group_rows", "read_results"]
