"""Scores of a query and a document read together: cross-encoders and monoT5."""
