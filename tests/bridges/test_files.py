"""What other packages read of Weir's files, and the page that shows the bridges."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weir
from tests.bridges.conftest import foreign
from weir.plugins import bridges

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("default")  # what these packages deprecate is theirs to mend


def test_the_head_of_a_run_is_what_repro_eval_reads(tmp_path):
    handler = foreign("repro_eval.metadata").MetadataHandler
    weir.benchmark("brook-facts", [weir.BM25(), weir.RM3()], "nDCG@10", tmp_path / "results")
    for path in bridges.write_annotated_runs(tmp_path / "results", tmp_path / "runs"):
        assert handler.read_metadata(str(path)) == bridges.read_ir_metadata(path)
        assert dict(handler.strip_metadata(str(path))) == weir.Run.load(path).to_dict()


def test_the_hub_reads_its_entries(tmp_path):
    hub, yaml = foreign("huggingface_hub"), foreign("yaml")
    weir.benchmark("brook-facts", weir.BM25(), "nDCG@10", tmp_path / "results")
    (path,) = bridges.write_hub_results(tmp_path / "results", tmp_path / "hub", "me/brook:facts")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert (entry.dataset_id, entry.task_id) == ("me/brook", "facts")
    assert entry.value == pytest.approx(100 * weir.results(tmp_path / "results")[0].mean, abs=1e-5)
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == hub.eval_result_entries_to_yaml([entry])


@pytest.mark.real
def test_the_page_shows_what_is_printed(shared):
    """Every example runs here, none is skipped."""
    for package in ("sentence_transformers", "accelerate", "mteb", "pyterrier", "ranx", "ir_measures"):
        foreign(package)
    page = [sys.executable, str(ROOT / "scripts" / "examples.py"), str(ROOT / "docs" / "bridges.md")]
    done = subprocess.run(page, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 skipped" in done.stdout
