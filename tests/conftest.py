from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.pop(
    "COLUMNS", None
)  # pytest-xdist sets it; tables are tested as a pipe gets them, unless a test sets a width
SHARED = Path(os.environ.get("WEIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real collections and runs beside the checkout."""
    if not (SHARED / "data").is_dir():
        pytest.skip("../shared/data is not there: real collections and runs are not part of the project")
    return SHARED


SLOW = ("test_portability.py", "test_warm.py", "test_doc2query.py", "test_dense_kills.py", "test_faults.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: item.path.name not in SLOW)


@pytest.fixture(scope="session", autouse=True)
def session_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What fixtures of a module or the session make stands in a WEIR_HOME of its own, too."""
    from weir.settings import settings

    os.environ["WEIR_HOME"] = str(tmp_path_factory.mktemp("session-home"))
    settings.cache_clear()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own WEIR_HOME: nothing of the user's is read or written."""
    from weir.settings import settings

    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("WEIR_HOME", str(folder))
    settings.cache_clear()
    yield folder
    settings.cache_clear()
