"""Scores of a query and a document read together: cross-encoders, monoT5 and re-ranking services."""
