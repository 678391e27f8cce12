from weir.core.query_groups import QueryGroups as QueryGroups
from weir.core.result_row import Row as Row
from weir.core.scores import GroupedScores as GroupedScores
from weir.core.scores import MeasureScores as MeasureScores
from weir.stats.comparison import ComparisonMethod as ComparisonMethod
from weir.stats.score_rows import result_rows as result_rows
