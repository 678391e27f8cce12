"""Frozen arrays as values, without any input or output."""
