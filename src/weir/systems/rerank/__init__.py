"""Re-ranking: pipelines and what scores their candidates."""
