from pathlib import Path

from weir.cli import main

main(["run", "-q", "-d", "brook-news", "-s", "bm25", "-s", "rm3", "-m", "nDCG@10", "-o", "theirs/"])
