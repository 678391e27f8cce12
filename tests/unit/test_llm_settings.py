"""The settings of llm(...): they print, parse back, are part of the key, and what means nothing is refused."""

from __future__ import annotations

import pytest

from weir.errors import BadValue, UnknownName
from weir.systems import parse_system
from weir.systems.rerank.llm_methods import METHODS


def takers(setting):
    """The methods that take a setting, as messages list them."""
    return ", ".join(f'"{name}"' for name, method in METHODS.items() if setting in method.takes)


def test_a_name_prints_and_parses_back_and_bad_settings_are_one_line():
    name = (
        'bm25 >> llm("listwise", model="http://localhost:8000/v1#m", depth=50, window=10, step=5, objective=False, '
        'temperature=None, max_length=200, key="WEIR_KEY_A", version="2", concurrency=4)'
    )
    assert str(parse_system(name)) == name
    wrong = {
        'llm("best", model="openai:m")': f"method is 'best'; expected {', '.join(METHODS)}",
        'llm("score", model="gpt")': "model is 'gpt'; expected address#name",
        'llm("score", model="openai:m", window=30)': f'window belongs to {takers("window")}; "score" does not',
        'llm("listwise", model="openai:m", window=1)': "a window has 2 documents or more",
        'llm("listwise", model="openai:m", order="random")': "expected first stage, reversed, shuffled",
        'llm("listwise", model="openai:m", seed=3)': 'seed is that of order="shuffled"',
        'llm("setwise", model="openai:m", sort="all")': "heapsort, bubblesort or tournament",
        'llm("setwise", model="openai:m", sort="quick")': "sort is 'quick'; expected all, heapsort",
        'llm("setwise", model="openai:m", top=0)': "top is 0",
        'llm("setwise", model="openai:m", order="shuffled", seed=-1)': "seed is -1",
        'llm("pairwise", model="openai:m", top=5)': "has a top where it sorts",
        'llm("pairwise", model="openai:m", window=4)': '"pairwise" does not take it',
        'llm("score", model="openai:m", scale=0)': "scale is 0; expected a whole number from 1 to 100",
        'llm("listwise", model="openai:m", window=5, step=6)': "a step is no longer than it",
        'llm("listwise", model="openai:m", passes=0)': "passes is 0",
        'llm("score", model="http://example.org/v1#m")': "plain http reaches this machine only",
        'llm("score", model="openai:m", temperature=3)': "temperature is 3",
        'llm("score", model="openai:m", max_tokens=0)': "max_tokens is 0",
        'llm("score", model="openai:m", concurrency=0)': "concurrency is 0",
        'llm("score", model="openai:m", key="OPENAI")': "key: 'OPENAI' is not sent anywhere",
    }
    for text, message in wrong.items():
        with pytest.raises(BadValue) as caught:
            parse_system(f"bm25 >> {text}")
        assert message in str(caught.value)
    with pytest.raises(UnknownName, match="anthropic"):
        parse_system('bm25 >> llm("score", model="antropic:m")')


def test_the_methods_of_birco_can_be_written():
    """Those of the facts about it: scoring, reasoning and sub-tasks with and without objective, windows of ten by five."""
    methods = ['"score"', '"reason"', '"subtask", scale=5', '"listwise", window=10']
    names = [f'pool >> llm({m}, model="openai:m"{o})' for m in methods for o in ("", ", objective=False")]
    found = [parse_system(name).reranker.describe() for name in names]
    assert len({repr(one) for one in found}) == 8
    assert (found[6]["window"], found[6]["step"], found[4]["scale"]) == (10, 5, 5)


def test_every_setting_that_changes_a_prompt_or_an_order_is_part_of_the_key():
    several = [
        'llm("listwise", model="openai:m")',
        'llm("listwise", model="openai:m", order="reversed")',
        'llm("listwise", model="openai:m", order="shuffled")',
        'llm("listwise", model="openai:m", order="shuffled", seed=1)',
        'llm("setwise", model="openai:m")',
        'llm("setwise", model="openai:m", sort="bubblesort")',
        'llm("setwise", model="openai:m", sort="tournament")',
        'llm("setwise", model="openai:m", top=5)',
        'llm("setwise", model="openai:m", window=5)',
        'llm("setwise", model="openai:m", expected=False)',
        'llm("pairwise", model="openai:m")',
        'llm("pairwise", model="openai:m", sort="heapsort")',
        'llm("pairwise", model="openai:m", sort="heapsort", top=5)',
        'llm("subtask", model="openai:m")',
        'llm("subtask", model="openai:m", scale=5)',
    ]
    keys = [repr(parse_system(f"bm25 >> {name}").reranker.describe()) for name in several]
    assert len(set(keys)) == len(several)
    assert all(str(parse_system(f"bm25 >> {name}").reranker) == name for name in several)
    same = parse_system('bm25 >> llm("setwise", model="openai:m", window=4, sort="heapsort", top=10)')
    assert repr(same.reranker.describe()) == keys[4]
