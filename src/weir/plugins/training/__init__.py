"""Train encoders further on a collection: `weir study adapt`, `weir.adapt`. Begin with `training.py`."""
