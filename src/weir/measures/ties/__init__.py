"""Tied documents: mean, worst and best value of a measure over all orders of equal scores."""
