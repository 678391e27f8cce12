"""Readers of the formats of other tools."""
