"""A newcomer's path on a published collection: fetch from a server, verify, run, read the results."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from weir.cli import main
from weir.experiment.results import finished_cells
from weir.settings import settings

pytestmark = pytest.mark.real


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror(shared, monkeypatch):
    """The folder of NFCorpus, with BEIR's own zip, as the mirror that is asked first."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(shared / "data" / "nfcorpus"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("WEIR_MIRROR", f"http://127.0.0.1:{server.server_port}")
    settings.cache_clear()
    yield
    server.shutdown()
    server.server_close()


def test_fetch_stats_run_results(mirror, tmp_path, capsys):
    assert main(["data", "stats", "nfcorpus"]) == 2
    assert "weir data fetch nfcorpus" in capsys.readouterr().err
    assert main(["data", "fetch", "nfcorpus"]) == 0
    assert capsys.readouterr().out == "nfcorpus: 3,633 documents, 323 queries\n"
    assert main(["data", "stats", "nfcorpus", "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert (card["documents"], card["positive"], card["task"]) == (3633, 12334, "Bio-Medical IR")
    arguments = [
        "run",
        "-d",
        "nfcorpus",
        "-s",
        "bm25",
        "-m",
        "nDCG@10",
        "-m",
        "R@100",
        "-o",
        str(tmp_path / "results"),
    ]
    assert main([*arguments, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["mean"] for r in rows] == pytest.approx([0.3218, 0.2457], abs=0.002)
    assert (rows[0]["queries"], rows[0]["answered"]) == (323, 308)
    cell = finished_cells(tmp_path / "results")[0]
    assert cell.ranked.declared["system"]["k1"] == 0.9
    assert dict(cell.settings)["fingerprint"]
    assert cell.ranked.facts["single_query_ms"]["p50"] > 0
    run = next((tmp_path / "results").rglob("run.trec"))
    qrels = settings().home / "datasets" / "nfcorpus" / "qrels" / "test.tsv"
    assert main(["eval", str(qrels), str(run), "-m", "nDCG@10", "-m", "R@100", "--json"]) == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["mean"], r["low"], r["high"]) for r in again] == [
        (r["mean"], r["low"], r["high"]) for r in rows
    ]
