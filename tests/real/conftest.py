"""Search servers that tests of real engines share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.real.search_engine import SearchEngine, engine_running


@pytest.fixture(scope="session")
def started(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], SearchEngine]]:
    """A function: the server of a name without any index, started when it is first asked for; of the group `engines`."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(name: str) -> SearchEngine:
            folder = tmp_path_factory.mktemp("engine") / name
            return stack.enter_context(engine_running(name, shared, folder))

        def without_indexes(name: str) -> SearchEngine:
            engine = start(name)
            if name != "solr":
                for index in engine.ask("GET", "/*"):
                    engine.ask("DELETE", f"/{index}")
            return engine

        yield without_indexes
