"""Bridges: objects of other tools here, and Weir's there. Importing this package imports none of them.

`trainer_evaluator` is an evaluator for the trainers of sentence-transformers, by `model_search`; `mteb_models` are
MTEB's models as systems and systems as MTEB's, `mteb_results` its files of results; `pyterrier_transformers` goes both
ways; `peer_objects` are the judgments, rankings and measures of ranx and ir-measures; `hub_results` are the results
that a model's page on the Hugging Face hub shows; `ir_metadata` the header that says what made a run file.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
