"""Stages: what a grid makes on disk, keyed by what it was declared from and recorded by what made it.

stage.py: keys, declarations and records; maker.py: code, packages, machine; stopwatch.py: time and memory of a stage
apart from the stages within it. Nothing here knows of retrieval.
"""
