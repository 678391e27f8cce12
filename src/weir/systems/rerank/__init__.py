"""Re-ranking pipelines and their scorers."""
