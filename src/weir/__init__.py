"""Weir measures how well retrieval systems find what people need."""
