"""Compiled late interaction (MaxSim): exact sums, byte bounds, the residual codec."""
