from weir.systems.rerank.scorers import Score
from weir.systems.rerank.scorers import cross as cross

score = Score
