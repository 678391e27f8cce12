"""Encoders trained further on a collection: `weir study adapt`."""
