"""Imported by each Python process that a test starts, before anything else."""

import network_guard  # noqa: F401  sets its hook
