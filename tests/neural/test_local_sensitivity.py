"""Studies of causal models in this process: one that always answers 1, and one whose weights are random."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.neural.causal_small import write_causal, write_chain, write_published
from weir.datasets.load import Dataset
from weir.plugins.llm.study_tables import SENSITIVITIES
from weir.settings import settings as settings_of_home

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.fixture(autouse=True)
def one_thread(home, monkeypatch):
    monkeypatch.setenv("WEIR_DEVICE", "cpu")
    monkeypatch.setenv("WEIR_THREADS", "1")
    settings_of_home.cache_clear()
    yield
    settings_of_home.cache_clear()


@pytest.fixture(scope="module")
def dataset():
    documents = {f"d{n}": f"weir river {n} " + "dam " * (n % 4) for n in range(6)}
    queries = {f"q{n}": f"weir river {n}" for n in range(3)}
    return Dataset.of(documents, queries, {q: {"d1": 1, "d4": 2} for q in queries})


def test_a_model_that_always_answers_1_judges_places(dataset, tmp_path):
    folder = write_chain(tmp_path / "ones", {"\n": "1", "1": "<|im_end|>"})
    own = write_published(tmp_path / "own.toml")
    name = f'bm25 >> llm("pairwise", model="transformers:{folder}", depth=3, expected=False, prompt="{own}")'
    [found] = weir.sensitivity_of(dataset, name, rules=weir.StudyRules(0, 2, ()))
    flips = found.samples.flips
    assert (flips.compared, flips.pairs, flips.flipped, flips.first) == (9, 9, 1, 1)
    assert (found.samples.verdicts.equal, found.samples.totals.unclear) == (1, 0)
    assert found.samples.totals.tokens > 0


def test_of_random_weights_nothing_is_read_and_the_first_stage_stays(dataset, tmp_path):
    name = f'bm25 >> llm("listwise", model="transformers:{write_causal(tmp_path / "llama", "llama")}", max_tokens=8)'
    [found] = weir.sensitivity_of(dataset, name, rules=weir.StudyRules(2, 0, ()))
    orders = found.orders
    assert orders.totals.prompts == orders.totals.unclear == 9
    assert (orders.spread.tau, orders.spread.deviation, orders.lead) == (1, 0, 0)
    assert orders.places[0].prompts == 0
    assert math.isnan(orders.places[0].places[0].share)
    assert "none of 6 answers is whole" in repr(weir.ResultSet(SENSITIVITIES, (found,)))
