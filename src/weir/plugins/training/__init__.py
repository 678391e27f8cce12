"""Encoders trained further on a collection: `weir study adapt`, `weir.adapt`.

Begin with `training.py`, which trains by sentence-transformers and writes a checkpoint with its record. `pairs.py`
makes the training pairs: sources (`Crops`, `WrittenQuestions`, `GivenPairs`), negatives, margins. `command.py` is the
command.
"""
