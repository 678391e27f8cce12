"""A matrix applied to rows, so that on a processor a row's result does not depend on how many others there are."""

from __future__ import annotations

from weir.encode.models.bert_weights import Tensor
from weir.errors import require

__all__ = ["ROWS", "filled_up", "linear"]

ROWS = 16
"""Products on a processor get a multiple of so many rows. Those of one or two rows go another way through the
libraries, which sums in another order; from four on a row had the same bits in every test (fp32 and bf16, MKL and
oneDNN, AVX2 and AVX-512, one to eight threads)."""


def filled_up(x: Tensor) -> Tensor:
    """Rows [n, d] with rows of zeros behind them up to a multiple of ROWS; as they are on a GPU."""
    more = -x.shape[0] % ROWS
    if more == 0 or x.device.type != "cpu":
        return x
    return require("torch", extra="neural").nn.functional.pad(x, (0, 0, 0, more))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [n, d] times a matrix [m, d], plus a bias [m]: [n, m]."""
    return require("torch", extra="neural").nn.functional.linear(filled_up(x), weight, bias)[: x.shape[0]]
