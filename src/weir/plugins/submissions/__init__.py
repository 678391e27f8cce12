"""Share results as packs, and rank packs on a leaderboard; begin with `packs.py`."""
