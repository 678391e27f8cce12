"""Lexical search: BM25, RM3, expansions, and the inverted index that serves every sparse system."""
