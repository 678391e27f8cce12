"""The compiled inner loops: arrays in, arrays out, no objects, no files.

Each module here imports numba on import, so callers import it where they use it
(`from weir.kernels import search` inside a function); the base install never does.
Each kernel has a slow reference in the tests.
"""
