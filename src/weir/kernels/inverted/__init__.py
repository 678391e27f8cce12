"""Compiled search of an inverted index: postings, bounds, MaxScore, top-k."""
