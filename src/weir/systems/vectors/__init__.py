"""Vectors: stores, exact search on processor and GPU, and approximate indexes."""
