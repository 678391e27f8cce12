"""transformers without its own notes, bars and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["quiet"]


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:  # noqa: ANN401 - the module
    """Without transformers' own notes and bars, and without its warnings to its own developers."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
