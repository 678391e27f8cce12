"""Judges answer through the page's addresses while its server is killed: nothing that was answered is lost or doubled."""

import pytest

pytest.importorskip("starlette", reason="needs the `app` extra")

from scripts.simulate_judging import simulate


def test_fifty_kills_lose_no_answer_and_store_none_twice(tmp_path):
    found = simulate(tmp_path, judgments=1500, kills=50, judges=5)
    assert (found.answered, found.kills) == (1500, 50)
    assert (found.lost, found.twice, found.wrong) == (0, 0, 0)
