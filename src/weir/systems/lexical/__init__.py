"""Lexical search: BM25, RM3, and the inverted index of every sparse system."""
