"""Grids on the machines of a cluster: `weir run --on ray`, and stages in a store such as S3.

Begin with `on_ray.py`, which runs a grid's cells as tasks of Ray. `shared_stages.py` fetches stages from a store that
machines share and publishes them, through the objects of `object_store.py`.
"""
