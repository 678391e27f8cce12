"""Encoders behind an embedding API: OpenAI and what speaks its language, Cohere, Voyage."""

from __future__ import annotations

from weir.encode.api.hosted import Hosted, LoadedHosted, is_hosted
from weir.encode.api.limits import Clock, Limits, Spent
from weir.encode.api.providers import PROVIDERS, Provider

__all__ = ["PROVIDERS", "Clock", "Hosted", "Limits", "LoadedHosted", "Provider", "Spent", "is_hosted"]
