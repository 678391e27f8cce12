from weir.core.query_metadata import QueryGroups as QueryGroups
from weir.core.scores import GroupedScores as GroupedScores
from weir.core.scores import MeasureScores as MeasureScores
from weir.core.scores import Row as Row
from weir.stats.compare import ComparisonMethod as ComparisonMethod
from weir.stats.score_rows import result_rows as result_rows
