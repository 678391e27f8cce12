"""Bridges: objects of other tools here, and Weir's there. Importing this package imports none of them.

`trainer_evaluator` is an evaluator for the trainers of sentence-transformers, by `model_search`; `mteb_models` are
MTEB's models as systems and systems as MTEB's, `mteb_results` its files of results; `pyterrier_transformers` goes both
ways; `peer_objects` are the judgments, rankings and measures of ranx and ir-measures; `hub_results` are the results
that a model's page on the Hugging Face hub shows; `ir_metadata` the header that says what made a run file.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weir.plugins.bridges.hub_results import write_hub_results
    from weir.plugins.bridges.ir_metadata import read_ir_metadata, write_annotated_run, write_annotated_runs
    from weir.plugins.bridges.mteb_models import from_mteb, to_mteb
    from weir.plugins.bridges.mteb_results import write_mteb_results
    from weir.plugins.bridges.peer_objects import to_ir_measures, to_ranx
    from weir.plugins.bridges.pyterrier_transformers import from_pyterrier, to_pyterrier
    from weir.plugins.bridges.trainer_evaluator import SentenceTransformersEvaluator

__all__ = [
    "SentenceTransformersEvaluator",
    "from_mteb",
    "from_pyterrier",
    "read_ir_metadata",
    "to_ir_measures",
    "to_mteb",
    "to_pyterrier",
    "to_ranx",
    "write_annotated_run",
    "write_annotated_runs",
    "write_hub_results",
    "write_mteb_results",
]

_MODULES = {
    "hub_results": "write_hub_results",
    "ir_metadata": "read_ir_metadata write_annotated_run write_annotated_runs",
    "mteb_models": "from_mteb to_mteb",
    "mteb_results": "write_mteb_results",
    "peer_objects": "to_ir_measures to_ranx",
    "pyterrier_transformers": "from_pyterrier to_pyterrier",
    "trainer_evaluator": "SentenceTransformersEvaluator",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'weir.plugins.bridges' has no attribute '{name}'")
    return getattr(importlib.import_module(f"weir.plugins.bridges.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
