"""Share results as packs, and rank packs on a leaderboard.

Begin with `packs.py`, which writes a pack and verifies one by computing every score again; `site.py` ranks
packs on a static site; `command.py` is `weir submit pack|verify|leaderboard`.
"""
