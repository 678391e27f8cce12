from __future__ import annotations

import atexit
import gc
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# How long one example takes says more about the machine than about the code: a kernel may compile within it. Nobody's
# change fails by the chance of a seed: examples are the same each time, and `make explore` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
settings.load_profile("explore" if EXPLORING else "same")
if (
    not EXPLORING
):  # else constants of the modules that are loaded so far take part: the order of tests would decide
    vars(providers)["is_local_module_file"] = lambda _: False

# A process imports the guard once, by one name: a worker of pytest-xdist has it already.
GUARD_FOLDER = str(Path(__file__).parent / "no_network")
sys.path.insert(0, GUARD_FOLDER)
no_network = importlib.import_module("network_guard")
os.environ["PYTHONPATH"] = os.pathsep.join([GUARD_FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.pop(
    "COLUMNS", None
)  # pytest-xdist sets it; tables are tested as a pipe gets them, unless a test sets a width

MEMORY = Path("/dev/shm")
"""Where there is room, folders of tests lie in memory: much of the time of those that write files was waiting for a disk."""
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= 8 << 30:
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)  # of failed tests, kept
    # Its name is short for the names of sockets in it; whatever tests leave there goes.
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="w-", dir=MEMORY)
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


def linked(source: Path, to: Path) -> Path:
    """A tree of folders of its own with a link to each file of another: what is made beside a file is made in it.

    Stores that somebody made in the source are left out. Without a source there is no tree.
    """
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if path.is_dir() and ".weir" not in name.as_posix():
            (to / name).mkdir(parents=True, exist_ok=True)
        elif ".weir" not in name.as_posix():
            (to / name).symlink_to(path)
    return to


SOURCE = Path(os.environ.get("WEIR_SHARED", Path(__file__).resolve().parents[2] / "shared"))
"""What lies beside the checkout. Tests read it through SHARED alone, so that they neither write nor find stores there."""
SHARED = linked(SOURCE.resolve(), Path(tempfile.mkdtemp(prefix="weir-shared-")))
atexit.register(shutil.rmtree, SHARED, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _shared_stays_as_it_is() -> Iterator[None]:
    """Whatever a test does, what lies beside the checkout is as it was."""
    before = {path: path.lstat().st_mtime_ns for path in SOURCE.rglob("*")}
    yield
    assert {path: path.lstat().st_mtime_ns for path in SOURCE.rglob("*")} == before, (
        "tests wrote into ../shared"
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real collections and runs beside the checkout."""
    if not (SHARED / "data").is_dir():
        pytest.skip("../shared/data is not there: real collections and runs are not part of the project")
    return SHARED


SLOW = frozenset(
    [
        "test_benchmarks",
        "test_portability",
        "test_walkthroughs",
        "test_examples",
        "test_coming_from",
        "test_report_page",
        "test_app_browser",
        "test_doc2query",
        "test_dense_kills",
        "test_judging_kills",
        "test_judging_browser",
        "test_postgres",
        "test_postgres_kills",
        "test_notebook",
        "test_faults",
        "test_fuzz",
        "test_stage_faults",
        "test_local_chat",
        "test_several",
        "test_hostile_servers",
        "test_drawn_means",
        "test_detectable_effects",
        "test_prediction_powered",
        "test_calibration::test_a_gate_just_beyond_the_allowed_drop_asks_for_enough_queries",
        "test_calibration::test_a_small_measurement_has_every_figure",
        "test_calibration::test_pilots_of_eight_with_heavy_tails_ask_for_enough_queries",
        "test_charts::test_a_figure_is_saved_as_pixels_and_as_pages",
        "test_command_system::test_a_killed_run_goes_on_where_it_was",
        "test_elasticsearch::test_killed_in_the_middle_it_goes_on",
        "test_experiment::test_killed_at_any_change_it_continues_and_ends_the_same",
        "test_gate::test_gates_of_several_measures_and_groups_fail_where_nothing_dropped_at_most_one_time_in_twenty",
        "test_gates::test_the_tree_keeps_every_gate",
        "test_import::test_a_kill_leaves_the_folder_whole_or_as_it_was",
        "test_import_batches::test_memory_does_not_grow_with_the_corpus",
        "test_judge_stops::test_killed_in_the_middle_it_asks_only_for_what_is_missing",
        "test_kept_scores::test_killed_again_and_again_it_ends_as_if_undisturbed",
        "test_llm_reranker::test_killed_in_the_middle_it_asks_only_for_what_is_missing",
        "test_memory_budget::test_exact_search_takes_memory_for_blocks_and_not_for_the_vectors",
        "test_other_systems::test_a_grid_is_run_explained_and_reported_with_the_same_bytes",
        "test_rerank_services::test_killed_in_the_middle_it_asks_only_for_what_is_missing",
        "test_stages::test_killed_before_any_record_it_continues_and_writes_no_finished_file_again",
        "test_subset::test_killed_at_any_moment_it_leaves_no_part_of_a_collection",
        "test_vectors_store::test_killed_at_any_change_it_continues_and_ends_the_same",
    ]
)
"""What `make test-slow` runs beside tests/real: benchmarks, kernels for other processors, a copy of the checkout, examples
of pages, a browser, a notebook's kernel, a database, kills and faults, fuzzers, peak memory over large files, a language model,
simulations; modules, or single tests of one."""
USED_SETTINGS = "_hypothesis_internal_use_settings"  # where Hypothesis keeps the settings of a test, as its own plugin reads
FEWEST_EXAMPLES = 10
"""Of a property a third of the examples are tried, but not fewer than these; `make explore` tries all of them."""
REAL = Path(__file__).parent / "real"
LONG = frozenset(
    ["test_declared", "test_files", "test_measures_against_reference", "test_conform", "test_plan"]
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module without a test that is asked for: it takes longer than most tests."""
    stem, asked = collection_path.stem, config.option.markexpr
    if stem in SLOW or REAL in (collection_path, collection_path.parent):
        return True if asked == "not slow" else None
    if asked != "slow" or not collection_path.match("test_*.py"):
        return None
    some = any(name.startswith(f"{stem}::") for name in SLOW) or "mark.slow" in collection_path.read_text()
    return None if some else True


LONGEST_ID = 200


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its beginning: workers tell each other the names of all tests, and one had 16 million letters."""
    if not isinstance(val, (str, bytes)) or len(val) <= LONGEST_ID:
        return None
    return f"{val[:LONGEST_ID]!r} and more"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage: a million objects that stay, the tests, took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, and shorten properties; the longest tests come first, so that no worker is left with one of them at the end."""
    for item in items:
        stem, test = item.path.stem, getattr(item, "originalname", item.name)
        if stem in SLOW or f"{stem}::{test}" in SLOW or item.path.parent == REAL:
            item.add_marker(pytest.mark.slow)
    properties = {item.function for item in items if hasattr(getattr(item, "function", None), USED_SETTINGS)}
    for test in () if EXPLORING else properties:
        chosen = getattr(test, USED_SETTINGS)
        fewer = max(min(chosen.max_examples, FEWEST_EXAMPLES), chosen.max_examples // 3)
        setattr(test, USED_SETTINGS, settings(chosen, max_examples=fewer))
    items.sort(key=lambda item: item.path.stem not in SLOW | LONG)


@pytest.fixture(scope="session", autouse=True)
def session_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What fixtures of a module or the session make stands in a WEIR_HOME of its own, too."""
    from weir.settings import settings

    folder = tmp_path_factory.mktemp("session-home")
    os.environ["WEIR_HOME"] = str(folder)
    settings.cache_clear()
    return folder


@pytest.fixture(autouse=True)
def _no_network() -> Iterator[None]:
    """A test that reached for another machine fails, also where what it tried went on without."""
    no_network.attempts.clear()
    if (requests := sys.modules.get("weir.services.requests")) is not None:
        requests._present.cache_clear()  # ports of servers that are gone are given again
    yield
    assert not no_network.attempts, f"tests stay on this machine; this one reached for {no_network.attempts}"


@pytest.fixture(autouse=True)
def home(session_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own WEIR_HOME: nothing of the user's is read or written."""
    from weir.settings import settings

    folder = Path(
        tempfile.mkdtemp(dir=session_home)
    )  # mktemp of pytest lists thousands of folders for a number
    monkeypatch.setenv("WEIR_HOME", str(folder))
    settings.cache_clear()
    yield folder
    settings.cache_clear()
    shutil.rmtree(folder, ignore_errors=True)
