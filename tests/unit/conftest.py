"""What tests of PostgreSQL share: a server for all of them, and systems that a file of settings names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.postgres_place import PostgresPlace, postgres_running


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresPlace]:
    """A server of this process."""
    with postgres_running() as place:
        yield place


@pytest.fixture
def shop(postgres_server: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresPlace]:
    """The server, with nothing of Weir's or a test's on it afterwards."""
    monkeypatch.setenv("PGURL", postgres_server.url)
    yield postgres_server
    postgres_server.ask("DROP SCHEMA IF EXISTS weir CASCADE")
    postgres_server.ask("DROP SCHEMA IF EXISTS shop CASCADE")


@pytest.fixture
def shop_system(tmp_path: Path) -> Callable[..., object]:
    """A function: write a file of settings; the system that it names, with settings beside it."""
    from weir.systems import parse_system

    def write(settings: str = '[text]\nquery = "or"\n', beside: str = "", dsn: str = "${PGURL}") -> object:
        file = tmp_path / "shop.toml"
        file.write_text(f'dsn = "{dsn}"\n{settings}', encoding="utf-8")
        return parse_system(f'postgres("{file.as_posix()}"{beside})')

    return write
