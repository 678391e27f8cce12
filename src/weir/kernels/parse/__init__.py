"""Compiled parsers: blocks of bytes to columns of a run, of documents, of words."""
