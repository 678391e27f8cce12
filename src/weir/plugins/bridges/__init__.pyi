from weir.plugins.bridges.export import read_ir_metadata as read_ir_metadata
from weir.plugins.bridges.export import write_annotated_run as write_annotated_run
from weir.plugins.bridges.export import write_annotated_runs as write_annotated_runs
from weir.plugins.bridges.export import write_hub_results as write_hub_results
from weir.plugins.bridges.export import write_mteb_results as write_mteb_results
from weir.plugins.bridges.mteb_models import collections_from_mteb as collections_from_mteb
from weir.plugins.bridges.mteb_models import from_mteb as from_mteb
from weir.plugins.bridges.mteb_models import to_mteb as to_mteb
from weir.plugins.bridges.peer_objects import to_ir_measures as to_ir_measures
from weir.plugins.bridges.peer_objects import to_ranx as to_ranx
from weir.plugins.bridges.pyterrier_transformers import from_pyterrier as from_pyterrier
from weir.plugins.bridges.pyterrier_transformers import to_pyterrier as to_pyterrier
from weir.plugins.bridges.trainer_evaluator import (
    SentenceTransformersEvaluator as SentenceTransformersEvaluator,
)
