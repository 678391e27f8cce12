"""Compiled exact search by dot product: packed vectors, byte bounds, doubles decide."""
