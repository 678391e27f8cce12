"""Fuzzers: nearly valid inputs of every kind, given to the code that reads them (`python -m fuzz.run --help`)."""
