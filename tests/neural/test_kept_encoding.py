"""What MiniLM's real weights give for two texts: where it moves, raise the number of "encoding" in weir/algorithms.py."""

from __future__ import annotations

import numpy as np
import pytest

from weir.algorithms import ALGORITHMS
from weir.models import Encoder

pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")

TEXTS = ["A weir is a low dam across a river.", "Knead the dough and let it rise."]
FIRST, SECOND = (
    [4.5e-05, 0.024199, 0.017913, 0.068953, 0.017805],
    [-0.044157, -0.029656, 0.034442, -0.012011, -0.140956],
)
COSINE, NUMBER = 0.050518, 1
TOLERANCE = 2e-5
"""Products are summed in another order on another machine; the engines here differ by less than a tenth of it."""


@pytest.mark.parametrize("engine", ["transformers", "torch"])
def test_an_encoding_moves_only_with_its_number(engine):
    assert ALGORITHMS["encoding"] == NUMBER, "keep the new output beside the new number"
    found = Encoder("minilm", engine=engine).load("cpu").encode(TEXTS, "document")
    np.testing.assert_allclose(found[0, :5], FIRST, atol=TOLERANCE)
    np.testing.assert_allclose(found[1, :5], SECOND, atol=TOLERANCE)
    assert float(found[0] @ found[1]) == pytest.approx(COSINE, abs=TOLERANCE)
