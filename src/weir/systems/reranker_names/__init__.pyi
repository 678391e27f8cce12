from weir.systems.rerank.llm_methods import llm as llm
from weir.systems.rerank.scorers import Score
from weir.systems.rerank.scorers import cross as cross
from weir.systems.rerank.scorers import monot5 as monot5
from weir.systems.rerank.service_reranker import rerank as rerank

score = Score
