"""Encoders: texts to vectors, through one batching engine and whatever multiplies matrices fastest here."""

from __future__ import annotations

from weir.encode.cards import Card, card, cards
from weir.encode.encoder import Encoder, Loaded
from weir.encode.stability import Stability, stability

__all__ = ["Card", "Encoder", "Loaded", "Stability", "card", "cards", "stability"]
