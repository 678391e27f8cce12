"""Tests read what lies beside the checkout, write nothing there, and find no store of anybody there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from tests.conftest import SHARED, SOURCE, linked
from tests.unit.brooklet import write_collection
from weir.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (
            path.stat().st_size,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


def of_another_version(collection: Path) -> None:
    """A store beside a collection, such as another version of Weir leaves there."""
    weir.load(collection).corpus.text.tolist()
    record = collection / "corpus.jsonl.weir" / "store.json"
    record.write_text(record.read_text().replace('"format": 3', '"format": 99'))


def test_what_is_made_of_a_linked_collection_is_made_beside_the_link(tmp_path, recwarn):
    of_another_version(write_collection(tmp_path / "shared" / "data" / "set"))
    before = tree(tmp_path / "shared")
    folder = linked(tmp_path / "shared", tmp_path / "view") / "data" / "set"
    for command in (["data", "stats"], ["audit"], ["run", "-s", "bm25", "-o", str(tmp_path / "out"), "-d"]):
        assert main([*command, str(folder)]) == 0
    assert tree(tmp_path / "shared") == before
    assert (folder / "corpus.jsonl.weir" / "store.json").is_file()
    assert not [one for one in recwarn if issubclass(one.category, weir.errors.StoreWarning)]


@pytest.mark.real
def test_tests_of_real_data_neither_write_nor_trip_over_what_lies_beside_it(shared, tmp_path):
    """Those of a collection beside which another version has left its store, in a folder that may be written."""
    if not (SOURCE / "data" / "scifact" / "corpus.jsonl").is_file():
        pytest.skip("../shared/data/scifact is not there: real collections are not part of the project")
    shutil.copytree(shared / "data" / "scifact", tmp_path / "data" / "scifact", copy_function=shutil.copyfile)
    shutil.copytree(shared / "facts", tmp_path / "facts", copy_function=shutil.copyfile)
    of_another_version(tmp_path / "data" / "scifact")
    before = tree(tmp_path)
    test = "tests/real/test_collections.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"{test}::test_scifact", f"{test}::test_every_byte_arrives[scifact]"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "WEIR_SHARED": str(tmp_path), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert tree(tmp_path) == before


def test_every_test_reads_it_through_the_links():
    """No file of tests finds its own way there, and the links lead there."""
    place = ROOT / "tests"
    sources = {
        path.relative_to(place).as_posix(): path.read_text(encoding="utf-8") for path in place.rglob("*.py")
    }
    finding = {
        name for name, text in sources.items() if 'parents[2] / "shared"' in text or "WEIR_SHARED" in text
    }
    assert finding == {
        "conftest.py",
        "conformance/conftest.py",
        "conformance/test_examples.py",
        "unit/test_shared_data.py",
    }
    assert "from tests.conftest import SHARED" in sources["conformance/test_examples.py"]
    assert SHARED != SOURCE
    assert all(path.is_symlink() or path.is_dir() for path in SHARED.rglob("*") if ".weir" not in str(path))
