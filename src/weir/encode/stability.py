"""Does a text's vector depend on what stands beside it in a batch? Measured rather than hoped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.encode.encoder import Loaded

__all__ = ["TOLERANCE", "Stability", "stability"]

TOLERANCE = {"fp32": 1e-5, "fp16": 5e-3, "bf16": 3e-2, "int8": 1e-2}
"""Largest difference in a coordinate of unit vectors that may come from the company of a text.

Products over more rows may be summed in another order; in half precision that shows at its last bit, which
grows through the layers. int8 sums whole numbers, but what is near the middle of two steps may fall either way.
"""


@dataclass(frozen=True)
class Stability:
    """How far vectors move: difference, the largest in any coordinate of the unit vectors, between a text
    alone and in a batch with others; cosine, the smallest between the two; tolerance, what is promised.
    """

    texts: int
    difference: float
    cosine: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.difference <= self.tolerance

    def __str__(self) -> str:
        verdict = "within" if self.holds else "BEYOND"
        return (
            f"{self.texts} texts alone and in batches: vectors differ by {self.difference:.1e} at most, "
            f"{verdict} {self.tolerance:.0e}; cosine {self.cosine:.7f} at least"
        )


def stability(loaded: Loaded, texts: Sequence[str]) -> Stability:
    """Encode texts alone and together, and compare."""
    together = loaded.encode(texts)
    alone = np.concatenate([loaded.encode([text]) for text in texts])
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (together, alone))
    return Stability(
        len(texts), float(np.abs(a - b).max()), float((a * b).sum(1).min()), TOLERANCE[loaded.place.dtype]
    )
