"""Conversion between Weir's objects and those of other tools. Importing this package imports none of these
tools.

`export.py` writes results for MTEB, the Hugging Face hub and ir_metadata (`weir data export`).
`mteb_models.py` and `pyterrier_transformers.py` convert systems, `peer_objects.py` judgments, rankings and
measures for ranx and ir-measures. `trainer_evaluator.py` serves the trainers of sentence-transformers.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
