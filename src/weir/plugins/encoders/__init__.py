"""Heavier encoders: learned sparse weights, late interaction, T5, approximate indexes, PyTorch's engines.

Begin with `learned_sparse.py` (`splade`, `unicoil`, `sparta`), whose encoders are in `sparse.py`; what it shares with
dense retrieval is `systems/encoded.py`. `late_interaction.py` is `colbert`, with encoders in `late.py`, search in
`maxsim_search.py` and compiled loops in `maxsim.py`. `expansions.py` is `doc2query` and `deepct`. `t5.py` holds T5:
`monot5` and the writer of questions. `ann.py` builds the indexes of `dense(index=...)`. `torch_engine.py` and
`transformers_engine.py` are the engines "torch" and "transformers".
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
