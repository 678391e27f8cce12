"""Language models as re-rankers and as judges, and studies of how far to trust both. Begin with `chat.py`.

`chat.py` asks a provider, or a model of this machine (`local_chat.py`), and stores the answers. `prompts.py` fills a
prompt (`prompts/`), and `verdicts.py` reads its answer. `rerank.py` is `llm(...)`, and `answers_report.py` shows its
prompts (`weir study llm`). `judge.py` labels pairs through the judges of `panel.py`, and `judge_report.py` reports
their agreement (`weir judge`). `studies.py` and `reordering.py` measure re-rankings (`weir study sensitivity`, `weir
study reranking`). `api.py` and `rerankings.py` hold the Python functions.
"""

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
