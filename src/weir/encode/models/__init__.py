"""Engines: tokens to hidden states by torch, transformers or OpenVINO."""
