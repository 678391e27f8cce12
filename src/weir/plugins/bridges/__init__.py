"""Objects of other tools in Weir, and Weir's in theirs. Importing this package imports none of these tools.

- `export.py` writes results for MTEB, the Hugging Face hub and ir_metadata; `command.py` is `weir data export`.
- `mteb_models.py` and `pyterrier_transformers.py` convert systems in both directions.
- `trainer_evaluator.py` is an evaluator for the trainers of sentence-transformers.
- `peer_objects.py` converts judgments, rankings and measures for ranx and ir-measures.
- `candidates.py` ranks given candidates and searches collections in memory, for the others.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
