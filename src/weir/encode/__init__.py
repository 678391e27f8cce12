"""Encoders: texts to vectors, through one batching engine and whatever multiplies matrices fastest here."""

from __future__ import annotations

from weir.encode.encoder import Encoder, Loaded
from weir.encode.recipes.cards import ModelCard, card, cards
from weir.encode.stability import Stability, stability

__all__ = ["Encoder", "Loaded", "ModelCard", "Stability", "card", "cards", "stability"]
