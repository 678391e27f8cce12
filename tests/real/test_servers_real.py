"""NFCorpus through a real PostgreSQL server, and its ranking as a stored run: one plumbing, the same numbers."""

from __future__ import annotations

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.unit.postgres_place import postgres_running

from weir.experiment.experiment import Experiment

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("postgres")]


def test_nfcorpus_through_postgres_and_as_a_stored_run(shared, tmp_path, monkeypatch):
    file = tmp_path / "shop.toml"
    file.write_text('dsn = "${PGURL}"\n[text]\nquery = "or"\n')
    folder, out = shared / "data" / "nfcorpus", tmp_path / "out"
    searched = f'postgres("{file.as_posix()}")'
    with postgres_running() as place:
        monkeypatch.setenv("PGURL", place.url)
        (row,) = Experiment((folder,), (searched,), ("nDCG@10",), k=100).execute(out)
    assert (row.queries, row.answered) == (323, 307)  # sixteen have no word that the documents have
    assert row.mean == pytest.approx(0.2995, abs=2e-3)
    (ranking,) = out.glob("nfcorpus/postgres*/run.trec")
    stored = f'run("{ranking.as_posix()}")'
    with pytest.warns(match="16 of 323 queries are not in the file"):
        again, fused = Experiment((folder,), (stored, f"rrf({stored}, bm25)"), ("nDCG@10",), k=100).execute(
            out
        )
    assert (again.mean, again.low, again.high) == (row.mean, row.low, row.high)
    assert fused.mean > again.mean
