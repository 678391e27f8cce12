"""What tests of PostgreSQL share, a server and systems that a file of settings names; those of judges; and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.unit.embedding_place import forget_spending
from tests.unit.judge_place import judging, write_place
from tests.unit.model_servers import ChatManners, chat_serving
from tests.unit.postgres_place import PostgresPlace, postgres_running
from weir.services.requests import Limits


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


@pytest.fixture
def judge_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ChatManners]]:
    """(model, manners) of a judge; nobody waits between attempts, and nothing was spent before."""
    monkeypatch.setattr(Limits, "of", staticmethod(lambda _: Limits(attempts=3, pause=0.001, timeout=20)))
    forget_spending()
    with chat_serving() as (url, manners):
        manners.say = judging
        yield f"{url}/v1#small", manners
    forget_spending()


@pytest.fixture(scope="module")
def judged_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection, judgments and a run; see write_place."""
    return write_place(tmp_path_factory.mktemp("judge"))


@pytest.fixture
def judge_pool(judged_place: Path, tmp_path: Path) -> Path:
    """The sheet of what the run finds and nobody judged."""
    files = [judged_place / "people.tsv", judged_place / "ranker.trec"]
    weir.labels.judging_pool(*files, out=tmp_path / "pool", collection=judged_place / "mine")
    return tmp_path / "pool"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a page; the test is skipped where it is not installed."""
    # Of a module: while playwright runs its loop, no test that runs a loop of its own could run beside it.
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's chromium")
    with playwright.sync_playwright() as started:
        one = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield one
        one.close()
