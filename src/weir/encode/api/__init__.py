"""Encoders behind an embedding API: OpenAI and what speaks its language, Cohere, Voyage."""

from __future__ import annotations

from weir.encode.api.hosted import Hosted, LoadedHosted, is_hosted
from weir.encode.api.providers import PROVIDERS, Provider

__all__ = ["PROVIDERS", "Hosted", "LoadedHosted", "Provider", "is_hosted"]
