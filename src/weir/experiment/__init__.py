"""Datasets x systems x measures, resumable by content."""
