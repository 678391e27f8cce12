"""Methods of language models before a judge who has one order in mind, one who says nothing, and one who is unsure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.model_servers import signed

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.plugins.llm.chat import ChatModel
from weir.plugins.llm.rerank import (
    METHODS,
    SORTS,
    LLMReranker,
    Ordering,
    PromptSettings,
    RerankTask,
    most_groups,
    sorting,
)
from weir.plugins.llm.verdicts import ChatReply
from weir.systems.rerank.reranking import fill_unscored

CHAT = ChatModel("http://localhost:1/v1#m")
SORTING = [sort for sort in SORTS if sort != "all"]
sizes = st.tuples(
    st.sampled_from(SORTING), st.integers(1, 40), st.integers(2, 7), st.integers(1, 45), st.randoms()
)


def judged(sort, count, width, top, best):
    """(the top, every group that was judged) of a sorting whose judge picks by `best`."""
    seen, steps, answer = [], sorting(sort, count, width, top), None
    while True:
        try:
            groups = steps.send(answer)
        except StopIteration as done:
            return done.value, seen
        seen += groups
        answer = [best(group) for group in groups]


@settings(max_examples=300)
@given(sizes)
def test_a_sorting_ends_in_the_judges_order_and_asks_no_more_than_is_said(case):
    sort, count, width, top, chance = case
    worth = list(range(count))
    chance.shuffle(worth)
    found, seen = judged(sort, count, width, top, lambda group: max(group, key=lambda place: worth[place]))
    assert found == sorted(range(count), key=lambda place: -worth[place])[:top]
    assert all(2 <= len(group) == len(set(group)) <= width for group in seen)
    assert len(seen) <= most_groups(sort, count, width, top)
    if sort == "bubblesort":
        assert len(seen) == most_groups(sort, count, width, top)


@given(sizes)
def test_who_always_picks_the_first_leaves_the_order_as_it_was(case):
    sort, count, width, top, _ = case
    assert judged(sort, count, width, top, min)[0] == list(range(min(top, count)))


@given(sizes)
def test_a_judge_who_contradicts_himself_still_gives_every_document_one_place(case):
    sort, count, width, top, chance = case
    found, _ = judged(sort, count, width, top, chance.choice)
    assert len(set(found)) == len(found) == min(top, count)
    assert set(found) <= set(range(count))


def test_what_a_sort_costs_by_plain_counting():
    assert most_groups("all", 20, 2, 10) == 190
    assert most_groups("bubblesort", 7, 3, 2) == 3 + 3  # pairs of steps: 6 / 2, then 5 / 2 rounded up
    assert most_groups("tournament", 9, 3, 1) == 3 + 1
    assert most_groups("tournament", 9, 3, 3) == 3 + 1 + 2 * 2
    assert most_groups("heapsort", 7, 3, 1) == 2 + 2  # two families of leaves, and the root's way of two
    assert most_groups("heapsort", 7, 3, 3) == 2 + 2 + 2 + 2
    assert most_groups("heapsort", 7, 2, 1) == 2 * (2 + 2)  # by twos a family takes two
    assert most_groups("heapsort", 100, 2, 10) < 310
    assert [most_groups(sort, 1, 4, 10) for sort in SORTS] == [0] * 4
    assert most_groups("heapsort", 100, 4, 10) < most_groups("bubblesort", 100, 4, 10) < 9900


@dataclass
class Judge:
    """Answers from what a passage says of itself; asked: how many times."""

    answer: object
    asked: list = field(default_factory=list)

    def replies(self, count, prompt_of, progress=None):
        for number in range(count):
            prompt = prompt_of(number)
            self.asked.append(prompt)
            worth = [int(n) for n in re.findall(r"<passage>\nworth (\d+)", prompt.user)]
            said = self.answer(prompt, worth)
            yield said if isinstance(said, ChatReply) else ChatReply(signed(said, prompt.user))


def told(prompt, value, odds):
    """An answer in the form that is asked for, with the odds of its value."""
    front = f"{prompt.token}: "
    return ChatReply(front + value, choices=((front, {}), (value, odds)))


def oracle(prompt, worth):
    if "requirements" in prompt.user:
        return '{"requirements": ["It is worth something."]}'
    if "in order" in prompt.user:
        return " > ".join(f"[{i + 1}]" for i in np.argsort(-np.array(worth), kind="stable"))
    if "best" in prompt.user or "better" in prompt.user:
        return str(1 + int(np.argmax(worth)))
    return f"Score: {worth[0]}"


def places(method, worths, judge, ordering, prompts=None):
    """The documents of each query, as the method orders them: numbers of their first places."""
    flat = [(q, i, w) for q, own in enumerate(worths) for i, w in enumerate(own)]
    corpus = Corpus.of({f"{q}-{i}": f"worth {w}" for q, i, w in flat} | {"none": "nothing"})
    queries = Queries.of({f"q{q}": "what?" for q in range(len(worths))})
    codes = corpus.ids.codes([f"{q}-{i}" for q, i, _ in flat]) if flat else np.empty(0, np.int32)
    ptr = np.concatenate([[0], np.cumsum([len(own) for own in worths])]).astype(np.int64)
    run = Run(queries.ids, corpus.ids, ptr, codes.astype(np.int32), -np.arange(len(flat), dtype=float))
    scorer = LLMReranker(method, CHAT, 100, ordering, prompts or PromptSettings()).ready(corpus)
    asked = RerankTask(scorer, judge, queries, run, None)
    score = fill_unscored(asked.candidate_values(), ptr)
    ranked = [np.argsort(-score[a:b], kind="stable").tolist() for a, b in zip(ptr, ptr[1:], strict=False)]
    return ranked, asked


@st.composite
def cases(draw):
    """A method, its settings, and what the documents of some queries are worth, no two of a query the same."""
    method = draw(st.sampled_from(["listwise", "setwise", "pairwise", "score", "reason", "subtask"]))
    worths = draw(st.lists(st.integers(0, 9).map(lambda n: list(range(1, n + 1))), min_size=1, max_size=3))
    worths = [draw(st.permutations(own)) for own in worths]
    how = {}
    if method in ("listwise", "setwise"):
        how |= {"window": draw(st.integers(2, 5)), "order": draw(st.sampled_from(["reversed", "shuffled"]))}
        how |= {"seed": draw(st.integers(0, 5))} if how["order"] == "shuffled" else {}
    if method == "listwise":
        how |= {"step": draw(st.integers(1, how["window"] - 1)), "passes": 9}
    if method in ("setwise", "pairwise"):
        how["sort"] = draw(st.sampled_from(SORTING))
        how["top"] = draw(st.integers(1, 12))
    if method == "pairwise" and draw(st.booleans()):
        how = {"sort": "all"}
    return method, worths, how


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_every_method_ends_in_the_order_that_the_judge_has_in_mind(case):
    method, worths, how = case
    judge = Judge(oracle)
    found, asked = places(method, worths, judge, Ordering(**how))
    top = how.get("top", 99)
    for own, ranked in zip(worths, found, strict=True):
        best = sorted(range(len(own)), key=lambda i: -own[i])[:top]
        assert ranked == best + [i for i in range(len(own)) if i not in best]
    assert set(asked.verdicts) <= {"ok", "repaired"}
    assert asked.verdicts.total() == len(judge.asked)
    if method in ("setwise", "listwise") and len(worths) == 1:  # the same documents are asked about once
        assert method == "listwise" or len({p.user for p in judge.asked}) == len(judge.asked)
    if how.get("sort") == "all":
        assert len(judge.asked) == sum(len(own) * (len(own) - 1) for own in worths)
    elif how.get("sort"):
        width, times = how.get("window", 2), 2 if method == "pairwise" else 1
        most = sum(most_groups(how["sort"], len(own), width, how["top"]) for own in worths)
        assert len(judge.asked) <= times * most


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), st.sampled_from(["", "I'm sorry, I can't.", "[77]", "neither nor", "<think>1"]))
def test_a_judge_who_says_nothing_leaves_the_first_stages_order(case, said):
    method, worths, how = case
    found, asked = places(method, worths, Judge(lambda *_: said), Ordering(**how))
    assert found == [list(range(len(own))) for own in worths]
    assert not set(asked.verdicts) & {"ok", "repaired"} or method in ("reason", "subtask", "score")


def test_a_window_without_a_verdict_keeps_the_first_stages_places_of_what_no_other_window_orders():
    worth = [3, 1, 4, 2, 6, 5]
    silent = lambda prompt, worth: "" if 3 in worth else oracle(prompt, worth)  # noqa: E731 - one of two judges
    found, asked = places("listwise", [worth], Judge(silent), Ordering(2, 2, order="reversed"))
    assert asked.verdicts == {"missing": 1, "ok": 2}
    assert found[0][:2] == [0, 1]  # never ordered: where the first stage had them
    assert [worth[i] for i in found[0][2:]] == [6, 5, 4, 2]


def test_a_pair_whose_verdict_follows_the_order_is_a_draw():
    first = Judge(lambda *_: "1")
    found, _ = places("pairwise", [[1, 2, 3]], first, Ordering(sort="heapsort"))
    assert found == [[0, 1, 2]]
    assert (
        len(first.asked) == 2 * 2
    )  # two children, the better with the parent; the two that are left were asked about


def test_the_likeliest_choice_counts_where_log_probabilities_are_told():
    talk = Judge(lambda prompt, _: told(prompt, "1", {"1": np.log(0.3), "2": np.log(0.6), "x": np.log(0.1)}))
    assert places("setwise", [[5, 6]], talk, Ordering())[0] == [[1, 0]]
    assert places("setwise", [[5, 6]], talk, Ordering(), PromptSettings(expected=False))[0] == [[0, 1]]
    # both orders of a pair lean to the second place by the same: a draw
    assert places("pairwise", [[5, 6]], talk, Ordering(sort="heapsort"))[0] == [[0, 1]]


@pytest.mark.parametrize("method", METHODS)
def test_a_shuffled_order_is_of_the_seed_and_the_query_alone(method):
    if "order" not in METHODS[method].takes:
        return
    shuffled = Ordering(order="shuffled", seed=7)
    assert shuffled.initial(9, "q1") == shuffled.initial(9, "q1") != shuffled.initial(9, "q2")
    assert sorted(shuffled.initial(9, "q1")) == list(range(9))
    assert Ordering(order="shuffled", seed=8).initial(9, "q1") != shuffled.initial(9, "q1")
    assert Ordering(order="reversed").initial(3, "q") == [2, 1, 0]
    first = Counter(Ordering(order="shuffled", seed=seed).initial(4, "q")[0] for seed in range(2000))
    assert all(abs(count - 500) < 100 for count in first.values())  # five standard deviations


@pytest.mark.parametrize("method", ["score", "reason", "subtask"])
def test_the_scale_of_scores_is_a_setting(method):
    judge = Judge(oracle)
    found, asked = places(method, [[2, 5, 6, 4]], judge, Ordering(), PromptSettings(scale=5))
    assert asked.verdicts["out of range"] == 1  # the six
    assert found == [[1, 3, 2, 0]]
    users = [prompt.user for prompt in judge.asked if "requirements" not in prompt.user]
    assert all(" to 5 (" in user for user in users)
    assert "{" not in "".join(users)


def test_a_scale_of_five_has_its_own_expected_score():
    logs = {"5": np.log(0.5), "3": np.log(0.25), "9": np.log(0.25)}
    talk = Judge(lambda prompt, _: told(prompt, "5", logs))
    for scale, mean in ((5, (5 * 0.5 + 3 * 0.25) / 0.75), (10, 5 * 0.5 + 3 * 0.25 + 9 * 0.25), (50, 5.0)):
        _, asked = places("score", [[1]], talk, Ordering(), PromptSettings(scale=scale))
        assert asked.candidate_values() == pytest.approx([mean])


@pytest.mark.parametrize("sort", SORTING)
def test_queries_are_asked_side_by_side(sort):
    """Rounds of several queries are shared, however many they are."""
    rng = np.random.default_rng(11)
    worths = [rng.permutation(size).tolist() for size in (20, 9, 20, 3, 20, 20)]

    def rounds(some):
        judge, calls = Judge(oracle), []
        counting = SimpleNamespace(replies=lambda *asked: calls.append(1) or judge.replies(*asked))
        places("setwise", some, counting, Ordering(sort=sort))
        return len(calls)

    assert rounds(worths) < sum(rounds([own]) for own in worths) / 2
