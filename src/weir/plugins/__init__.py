"""The outer ring: what few people need. The house imports nothing of it and finds it by its entry points alone."""
