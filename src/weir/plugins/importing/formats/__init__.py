"""Readers of other tools' formats: each yields the items of a file."""
