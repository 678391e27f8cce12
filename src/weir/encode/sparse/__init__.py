"""Learned sparse encoders: texts to weighted terms (SPLADE, SPARTA, uniCOIL, DeepCT)."""
