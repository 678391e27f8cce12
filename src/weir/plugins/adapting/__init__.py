"""Encoders trained further on a collection: `weir adapt`."""
