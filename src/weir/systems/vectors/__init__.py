"""Vectors: the stores they are kept in, exact search over them on processor and GPU, and approximate indexes."""
