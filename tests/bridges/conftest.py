"""Bridges are tested against the real packages, where these are installed: `make test` has an environment for them."""

from __future__ import annotations

import importlib
import warnings

import pytest

import weir
from tests.neural.conftest import checkpoint_of  # noqa: F401 - a fixture


def foreign(module):
    """Another package, whose warnings are its own; the tests are skipped where it is not installed."""
    pytest.importorskip("numba", reason="needs the `run` extra (numba)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name}", allow_module_level=True)


@pytest.fixture(scope="session")
def brook():
    """A small collection whose documents, queries and judgments come with Weir."""
    return weir.load("brook-facts")
