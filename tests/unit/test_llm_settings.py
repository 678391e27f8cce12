"""The settings of llm(...) are part of its key."""

from __future__ import annotations

from weir.systems import parse_system


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
