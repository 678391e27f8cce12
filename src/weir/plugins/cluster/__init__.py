"""Grids on the machines of a cluster."""
