"""Models: texts to vectors, to weighted terms, pairs to scores, prompts to answers."""

from __future__ import annotations

from weir.models.checkpoints import ModelCard, card, cards
from weir.models.encoder import Encoder, Loaded, Stability, stability

__all__ = ["Encoder", "Loaded", "ModelCard", "Stability", "card", "cards", "stability"]
