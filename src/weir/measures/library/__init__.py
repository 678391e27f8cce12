"""The measures, each a decorated function from the join of a run with judgments to one number a query."""
