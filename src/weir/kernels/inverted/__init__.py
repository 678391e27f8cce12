"""Search an inverted index by compiled code."""
