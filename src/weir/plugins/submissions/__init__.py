"""Share results as packs, and rank packs on a leaderboard.

Begin with `packs.py`.
"""
