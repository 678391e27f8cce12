"""What asking a language model would take, before anything is asked: against what is then asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import chat_serving
from weir.cli import main
from weir.experiment.experiment import Experiment
from weir.experiment.plan import (
    plan_notes,
    planned,
    planned_total,
    shown_candidates,
)
from weir.plugins.llm.prompt_plan import plan_of_words, prompt_plan
from weir.services.requests import estimated
from weir.systems import parse_system

METHODS = [
    '"score"',
    '"reason", objective=False',
    '"listwise", window=6, step=2, passes=2',
    '"setwise", top=5',
    '"setwise", sort="bubblesort", window=3',
    '"setwise", sort="tournament"',
    '"pairwise"',
    '"pairwise", sort="heapsort", top=3',
    '"subtask"',
    '"score", max_length=8',
    '"score", depth=5',
]


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    weir.settings.settings.cache_clear()
    forget_spending()
    documents = {f"d{n:02}": f"river weir {n} " + "dam " * (n % 9) for n in range(14)}
    queries = {"q1": {"text": "river", "instruction": "Find rivers that have a weir."}, "q2": "weir dam"}
    yield weir.Dataset.of(documents, queries, {"q1": ["d01"], "q2": ["d02"]}, name="rivers")
    forget_spending()
    weir.settings.settings.cache_clear()


@pytest.mark.parametrize("method", METHODS)
def test_no_more_is_asked_than_was_planned(house, method):
    with chat_serving() as (url, manners):
        system = parse_system(f'bm25 >> llm({method}, model="{url}/v1#m")')
        found = prompt_plan(system.reranker, house, shown_candidates(system, house, 14)[1])
        assert manners.asked == []
        system.index(house.corpus).search(house.queries, 14)
        bodies = [body for _, _, body in manners.asked]
    tokens = sum(estimated(json.dumps(b, ensure_ascii=False)) + b["max_tokens"] for b in bodies)
    answers = sum(b["max_tokens"] for b in bodies)
    assert len(bodies) <= found.prompts
    assert tokens <= found.longest
    assert found.tokens <= found.longest
    if any(word in method for word in ("score", "reason", "listwise", '"pairwise"')) and "sort" not in method:
        assert len(bodies) == found.prompts  # what they ask does not depend on answers
        assert answers == found.answer_tokens
        assert tokens == pytest.approx(found.tokens, rel=0.08)


def test_a_query_is_asked_about_its_candidates_alone(house):
    documents = dict(zip(house.corpus.ids, house.corpus.text, strict=True))
    queries = {"q1": {"text": "river", "candidates": ["d01", "d02", "d03"]}, "q2": "weir"}
    pool = weir.Dataset.of(documents, queries, {"q1": ["d01"], "q2": ["d02"]}, name="pools")
    for first, shown in (("pool", [3, 0]), ("bm25", [3, 14])):
        system = parse_system(f'{first} >> llm("score", model="openai:m")')
        assert shown_candidates(system, pool, 1000)[1].tolist() == shown
        assert prompt_plan(system.reranker, pool, np.array(shown)).prompts == sum(shown)


def test_what_is_not_here_is_planned_from_published_lengths():
    reranker = parse_system('bm25 >> llm("score", model="openai:m", depth=10)').reranker
    found = plan_of_words(reranker, 1000, 50, 600.0, 60.0)
    assert (found.prompts, found.longest) == (500, None)
    assert found.answer_tokens == 500 * 32
    more = plan_of_words(reranker, 1000, 50, 900.0, 60.0)
    assert more.tokens - found.tokens == pytest.approx(500 * 300 / 3, abs=2)


def test_a_plan_says_prompts_tokens_and_dollars_and_asks_nothing(house, monkeypatch, capsys):
    monkeypatch.setenv("WEIR_API_PRICE", "1 in, 2 out")
    weir.settings.settings.cache_clear()
    with chat_serving() as (url, manners):
        name = f'bm25 >> llm("score", model="{url}/v1#m", depth=3)'
        here, gone = planned(Experiment(("brook-news", "nq"), (name,)), lambda *_: None)
        main(["plan", "-d", "brook-news", "-s", name, "-q"])
        assert manners.asked == []
    answers = here.queries * 3 * 32
    assert here.dollars == pytest.approx((here.tokens + answers) / 1e6)
    assert here.prompts == 3 * here.queries
    assert here.longest_tokens > here.tokens
    left, note = here.notes
    assert "candidates unscored" in left
    assert "answers that are kept already cost nothing" in note
    assert gone.notes[0] == "not on this machine: lengths are those published"
    assert gone.tokens > 1e6
    assert any(f"{here.longest_tokens:,} tokens at most" in str(line) for line in plan_notes([here]))
    told = capsys.readouterr()
    assert note in told.err
    row = f"{here.prompts} {int(here.tokens):,} {here.dollars:.2f}"
    assert " ".join(told.out.splitlines()[-1].split()).endswith(row)


def test_what_several_systems_ask_alike_counts_once(house, tmp_path):
    """Against what is then asked: an objective that nothing has, and lower depths of what asks about each document."""
    with chat_serving() as (url, manners):
        grid = [f'bm25 >> llm("score", model="{url}/v1#m", depth={depth}, objective={objective})'
                for depth in (3, 6) for objective in (True, False)]  # fmt: skip
        grid += [f'bm25 >> llm("listwise", model="{url}/v1#m", depth={depth})' for depth in (4, 6)]
        found = planned(Experiment(("brook-news",), tuple(grid)), lambda *_: None)
        queries = found[0].queries
        assert [one.prompts for one in found] == [3 * queries] * 2 + [6 * queries] * 2 + [queries] * 2
        assert planned_total(found)[0] == 6 * queries + 2 * queries
        weir.benchmark("brook-news", grid, "RR", out=tmp_path / "out")
        assert len(manners.asked) == len(set(manners.prompts())) <= planned_total(found)[0]
