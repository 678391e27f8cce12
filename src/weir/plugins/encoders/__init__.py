"""Heavier encoders: learned sparse weights, late interaction, T5, approximate indexes, PyTorch's engines.

Begin with `learned_sparse.py` (`splade`, `unicoil`, `sparta`) and `late_interaction.py` (`colbert`).
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
