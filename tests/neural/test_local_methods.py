"""Sorting methods and their trace with a causal model in this process; what it would take, planned."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.neural.causal_small import write_chain, write_published
from weir.experiment.experiment import Experiment
from weir.experiment.plan import planned
from weir.plugins.llm.local_chat import LocalChat

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.fixture
def second(tmp_path, monkeypatch):
    """A model that always answers 2."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WEIR_DEVICE", "cpu")
    monkeypatch.setenv("WEIR_THREADS", "1")
    monkeypatch.setenv("WEIR_API_PRICE", "1")
    weir.settings.settings.cache_clear()
    yield write_chain(tmp_path / "second", {"\n": "2", "2": "<|im_end|>"}, sharpness=9.0)
    weir.settings.settings.cache_clear()


def test_sorts_run_are_kept_and_traced_without_loading_the_model(second, tmp_path, monkeypatch):
    documents = {f"d{n}": f"river weir {n}" for n in range(6)}
    house = weir.Dataset.of(documents, {"q1": "river", "q2": "weir"}, {"q1": ["d1"], "q2": ["d2"]}, "house")
    how = ['"setwise", sort="tournament", top=2', '"setwise", window=3', '"pairwise", sort="heapsort", top=2']
    own = write_published(tmp_path / "own.toml")
    names = [f'bm25 >> llm({one}, model="transformers:{second}", prompt="{own}")' for one in how]
    weir.benchmark(house, names, "RR", out=tmp_path / "out")

    def refuse(self):
        raise AssertionError("the model is loaded")

    monkeypatch.setattr(LocalChat, "loaded_chat", refuse)
    for name, use in zip(names, weir.llm_use(tmp_path / "out"), strict=True):
        traces = weir.llm_trace(tmp_path / "out", system=name)
        exchanges = [exchange for one in traces for exchange in one.exchanges]
        assert Counter(one.verdict for one in exchanges) == use.verdicts == {"unsigned": len(exchanges)}
        assert {one.value for one in exchanges} == {"2"}
        assert use.dollars is None
    plan = planned(Experiment(("brook-news",), (names[0],)), lambda *_: None)[0]
    assert plan.dollars is None
    assert plan.tokens > 0
