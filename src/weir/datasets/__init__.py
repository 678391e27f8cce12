"""Test collections: the catalogue, loading and fetching, and what they hold."""
