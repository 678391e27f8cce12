"""Runs of experiments on a cluster (`weir run --on ray`), and results in a store such as S3.

Begin with `on_ray.py`. `shared_stages.py` fetches indexes and rankings from a store that machines share, and
publishes them, through the objects of `object_store.py`.
"""
