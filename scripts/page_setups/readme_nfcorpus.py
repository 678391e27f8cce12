"""A results folder of NFCorpus."""

from weir.cli import main

main(["run", "-q", "-d", "nfcorpus", "-s", "bm25", "-m", "nDCG@10"])
