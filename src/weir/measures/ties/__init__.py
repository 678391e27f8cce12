"""Tied documents: the mean, the worst and the best value of a measure over all orders of equal scores.

tie_groups.py: registry and groups; over_orders.py: which formula serves which measure; additive.py, curve.py,
documents_above.py, diversity_ties.py, inferred.py: exact formulas; permutations.py: every order, where no formula is.
"""
