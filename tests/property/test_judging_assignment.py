"""Whatever the judges, the pool and their order of coming: each pair gets its judgments, and nobody a pair twice."""

import random
from collections import Counter
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from weir.plugins.app.judging.assignment import (
    CLAIM_SECONDS,
    Plan,
    Table,
    contested,
    next_decision,
    next_turn,
    progress,
)
from weir.plugins.app.judging.journal import GRADED, Event, Standing
from weir.plugins.app.judging.tasks import JudgingPair, Tasks


def tasks_of(sizes):
    named = [(f"q{q}", f"d{d}") for q, size in enumerate(sizes) for d in range(size)]
    pairs = tuple(JudgingPair(n, q, d, "", "text", "hash") for n, (q, d) in enumerate(named))
    return Tasks("shop", {q: q for q, _ in named}, pairs)


def judge_all(tasks, plan, judges, rng, answer, most=10_000):
    """Let judges come in any order until nobody is asked anything; returns the events and the last table."""
    standing, claims, events, idle = Standing(), {}, [], set()
    while idle != set(judges):
        judge, now = rng.choice(judges), 1e9 + len(events)
        turn = next_turn(Table(tasks, plan, standing, dict.fromkeys(claims, now), now), judge)
        if turn is None:
            idle.add(judge)
            continue
        idle.clear()
        if rng.random() < 0.5:
            claims[turn.item(judge)] = True  # looks at it, and answers another time
            continue
        (kind, grade), (query, document) = answer(judge, turn), turn.pair.pair
        events.append(
            Event(
                judge, kind, query, document, turn.task, grade, seconds=2.0, time=now, number=len(events) + 1
            )
        )
        standing.apply(events[-1])
        claims.pop(turn.item(judge), None)
        assert len(events) < most, "judges are asked for ever"
    return events, Table(tasks, plan, standing, {}, now + CLAIM_SECONDS)


shares = st.sampled_from((0.0, 0.5, 1.0))


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6),
    st.integers(1, 4),
    st.builds(Plan, each=st.integers(1, 3), overlap=shares, twice=shares, seed=st.integers(0, 9)),
    st.integers(0, 999),
)
def test_each_pair_gets_its_judgments_and_nobody_a_pair_twice(sizes, number, plan, seed):
    judges, rng = [f"j{n}" for n in range(number)], random.Random(seed)

    def answer(judge, turn):
        kind = rng.choices(("graded", "unable", "later"), (8, 1, 1))[0]
        return kind, rng.choice((0.0, 1.0, 3.0)) if kind == "graded" else None

    tasks = tasks_of(sizes)
    events, table = judge_all(tasks, plan, judges, rng, answer)
    assert all(progress(table, name).later == 0 for name in judges)
    answers = Counter((e.judge, e.task, e.query, e.document) for e in events if e.answers)
    assert set(answers.values()) == {1}
    unable = {(e.query, e.document, e.judge) for e in events if e.kind == "unable" and e.task == "judge"}
    for pair in tasks.pairs:
        graded = {
            e.judge for e in events
            if e.kind in GRADED and e.task == "judge" and (e.query, e.document) == pair.pair
        }  # fmt: skip
        cannot = {name for query, document, name in unable if (query, document) == pair.pair}
        assert len(graded) == min(plan.judges_of(pair.query), len(judges) - len(cannot))
    first = {(e.judge, e.query, e.document) for e in events if e.kind in GRADED and e.task == "judge"}
    again = {(e.judge, e.query, e.document) for e in events if e.task == "again" and e.kind != "later"}
    assert again == {(j, q, d) for j, q, d in first if plan.seen_again(j, (q, d))}
    for name in judges:
        turn = next_decision(table, name)
        assert turn is None or (name, *turn.pair.pair) not in first
    assert (next_decision(table, "other") is not None) == bool(contested(table))


def test_overlap_is_spread_over_all_pairs_of_judges():
    rng = random.Random(3)
    judges = ["ann", "ben", "cyd", "dan"]
    for each, queries in ((2, 60), (3, 40)):
        plan = Plan(each=each)
        events, _ = judge_all(tasks_of([5] * queries), plan, judges, rng, lambda *_: ("graded", 1.0))
        crews = {}
        for event in events:
            crews.setdefault(event.query, set()).add(event.judge)
        sizes = [len(crews[f"q{n}"]) for n in range(queries)]
        assert set(sizes[: -len(judges)]) == {
            each
        }  # a query stays with its judges, until others help at the end
        together = Counter(pair for crew in crews.values() for pair in combinations(sorted(crew), 2))
        share = queries * each * (each - 1) / 2 / 6
        assert len(together) == 6
        assert all(0.4 * share <= count <= 1.6 * share for count in together.values()), together


def test_a_judge_who_goes_home_leaves_the_pair_to_others():
    tasks, plan, now = tasks_of([1]), Plan(), 1e9
    claims = {("ann", "judge", "q0", "d0", ""): now}
    assert next_turn(Table(tasks, plan, Standing(), claims, now + 5), "ben") is None
    assert next_turn(Table(tasks, plan, Standing(), claims, now + CLAIM_SECONDS), "ben").pair.document == "d0"
