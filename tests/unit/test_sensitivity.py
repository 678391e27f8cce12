"""What re-ranking by a language model depends on: stand-ins whose faults are known are found out, and blind ones not."""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import write_collection
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import chat_serving, status, verdict
from weir.cli import main
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.datasets.load import Dataset
from weir.errors import BadValue, ServiceError
from weir.files.records import write_collection as write_files
from weir.plugins.llm.rerank import METHODS
from weir.plugins.llm.studies import (
    HeardAnswer,
    StudyRules,
    _even_p,
    order_flips,
    prompt_places,
    same_verdicts,
)
from weir.plugins.llm.study_tables import SENSITIVITIES
from weir.services.requests import Limits
from weir.stats.resampling import share_bounds

TEXTS = {
    f"d{n:02}": f"river weir {'abcdefghijklmnopqrstuvwxyz'[n % 26]}{n} worth {n * 37 % 60}" for n in range(60)
}
WORTH = re.compile(r"worth (\d+)")
QUERIES = {f"q{n:02}": f"river weir {chr(97 + n)}{n}" for n in range(12)}
GRADES = {q: {d: int(WORTH.search(text)[1]) // 20 for d, text in TEXTS.items()} for q in QUERIES}
LISTWISE = 'bm25 >> llm("listwise", model="{url}/v1#m", depth=12, window={window})'


def blind(system, user):
    """A judge that reads: by what a passage is worth, which no two share."""
    worth = [int(found) for found in WORTH.findall(user)]
    order = sorted(range(len(worth)), key=lambda i: -worth[i])
    if "in order" in user:
        return " > ".join(f"[{i + 1}]" for i in order)
    return str(order[0] + 1) if len(worth) > 1 else str(worth[0] // 6)


def first_always(system, user):
    """A judge that does not read, and likes what it sees first."""
    count = len(WORTH.findall(user))
    return " > ".join(f"[{i + 1}]" for i in range(count)) if "in order" in user else "1"


@pytest.fixture
def server(monkeypatch, home):
    monkeypatch.setattr(Limits, "of", staticmethod(lambda _: Limits(attempts=2, pause=0.001, timeout=20)))
    forget_spending()
    with chat_serving() as (url, manners):
        manners.say = blind
        yield url, manners
    forget_spending()


@pytest.fixture(scope="module")
def dataset():
    return Dataset.of(TEXTS, QUERIES, GRADES)


def studied(dataset, system, **rules):
    [found] = weir.sensitivity_of(
        dataset, system, rules=StudyRules(**{"orders": 0, "samples": 0, "depths": ()} | rules)
    )
    return found


def test_a_judge_that_reads_gives_one_order_whatever_the_candidates_order(server, dataset):
    url, manners = server
    found = studied(dataset, LISTWISE.format(url=url, window=12), orders=4).orders
    spread = found.spread
    assert (spread.tau, spread.deviation, found.lead) == (1, 0, 0)
    assert spread.rbo == pytest.approx(1)
    assert set(spread.means) == {found.own} == {spread.mean}
    [places] = found.places
    assert (places.size, places.shown, places.prompts, places.even) == (12, 48, 48, 1 / 12)
    assert sum(one.times for one in places.places) == 48
    assert min(one.p for one in places.places) > 0.05
    assert found.totals.prompts == len(manners.asked) == 12 * 5
    assert found.totals.tokens == 13 * 60


def test_self_matches_leave_where_the_collection_drops_them(server, tmp_path):
    url, _ = server
    asked = list(TEXTS)[:12]
    for name in ("dropping", "keeping"):
        (tmp_path / name).mkdir()
        queries = Queries.of(dict(zip(asked, QUERIES.values(), strict=True)))
        write_files(
            tmp_path / name,
            Corpus.of(TEXTS),
            queries,
            Qrels.of(grades := dict.fromkeys(asked, GRADES["q00"])),
        )
        (tmp_path / name / "collection.toml").write_text(f'self_match = "{name[:4]}"\n')
    system = LISTWISE.format(url=url, window=12)
    dropped, kept = (
        studied(tmp_path / name, system, orders=2).orders.own for name in ("dropping", "keeping")
    )
    dataset = weir.load(tmp_path / "keeping")
    whole = weir.parse_system(system).index(dataset.corpus).search(dataset.queries, 1000).to_dict()
    by_hand = {q: {d: score for d, score in ranked.items() if d != q} for q, ranked in whole.items()}
    assert kept == pytest.approx(weir.evaluate(grades, whole, "nDCG@10").means()["nDCG@10"], abs=1e-12)
    assert dropped == pytest.approx(weir.evaluate(grades, by_hand, "nDCG@10").means()["nDCG@10"], abs=1e-12)
    assert kept != pytest.approx(dropped, abs=1e-3)


def test_a_judge_that_likes_the_first_place_is_found(server, dataset):
    url, manners = server
    manners.say = first_always
    found = studied(dataset, LISTWISE.format(url=url, window=6), orders=4).orders
    [places] = found.places
    assert places.places[0].times == places.prompts == 48
    assert places.places[0].p < 1e-10
    assert all(one.times == 0 and one.p < 0.05 for one in places.places[1:])
    assert found.spread.tau < 0.3  # the orders are those of the candidates
    assert found.spread.deviation > 0
    plain = [
        weir.evaluate(GRADES, run, weir.nDCG @ 10).means()["nDCG@10"]
        for run in (
            weir.parse_system(f'bm25 >> llm("listwise", model="{url}/v1#m", depth=12, window=6, order="shuffled", '
                              f"seed={seed})").index(dataset.corpus).search(dataset.queries, 1000)
            for seed in (1, 2, 3, 4)
        )
    ]  # fmt: skip
    assert list(found.spread.means) == pytest.approx(plain)


def test_the_two_kinds_of_chance_are_kept_apart(server, dataset):
    url, manners = server
    manners.say = first_always
    spread = studied(dataset, LISTWISE.format(url=url, window=12), orders=6).orders.spread
    runs = [
        weir.parse_system(f'bm25 >> llm("listwise", model="{url}/v1#m", depth=12, window=12, order="shuffled", '
                          f"seed={seed})").index(dataset.corpus).search(dataset.queries, 1000)
        for seed in range(1, 7)
    ]  # fmt: skip
    values = np.array([weir.evaluate(GRADES, run, weir.nDCG @ 10).in_id_order("nDCG@10") for run in runs])
    by_hand = [np.var(values[:, q], ddof=1) for q in range(12)]
    assert spread.deviation == pytest.approx(math.sqrt(sum(by_hand)) / 12)
    assert spread.error == pytest.approx(values.mean(axis=0).std(ddof=1) / math.sqrt(12))
    assert spread.mean == pytest.approx(values.mean())


def test_asking_again_finds_what_chance_does(server, dataset):
    url, manners = server
    system = f'bm25 >> llm("score", model="{url}/v1#m", depth=6, expected=False)'
    same = studied(dataset, system, samples=3).samples
    assert (same.verdicts.equal, same.verdicts.deviation, same.verdicts.prompts, same.verdicts.others) == (
        1,
        0,
        72,
        0,
    )
    assert same.spread.deviation == 0
    turn, seen, said = threading.Lock(), Counter(), {}

    def moody(_, user):
        with turn:
            seen[user] += 1
            again = seen[user]
        answer = "I'm sorry, I can't." if "worth 0" in user else str(len(user) * (again + 1) // 2 % 7)
        said.setdefault(user, []).append(answer)
        return answer

    manners.say = moody
    found = studied(dataset, system.replace("#m", "#moody"), samples=3).samples
    assert {len(answers) for answers in said.values()} == {3}
    pairs = [a == b for answers in said.values() for a, b in combinations(answers, 2)]
    assert found.verdicts.equal == pytest.approx(np.mean(pairs))
    assert found.verdicts.low <= found.verdicts.equal <= found.verdicts.high
    spreads = [
        np.std([float(a) for a in answers], ddof=1) for answers in said.values() if answers[0].isdecimal()
    ]
    assert found.verdicts.deviation == pytest.approx(np.mean(spreads))
    assert found.totals.prompts == 3 * 72
    assert found.spread.tau < 1


def test_pairs_in_both_orders(server, dataset):
    url, manners = server
    system = f'bm25 >> llm("pairwise", model="{url}/v1#m", depth=4)'
    fair = studied(dataset, system, samples=2, orders=2)
    assert (fair.samples.flips.pairs, fair.samples.flips.flipped, fair.samples.flips.compared) == (72, 0, 72)
    assert fair.orders is None
    assert fair.notes == ('"pairwise" shows every two documents in both orders: the order of candidates decides nothing '
                          "but what no answer decides",)  # fmt: skip
    manners.say = first_always
    flips = studied(dataset, system.replace("#m", "#n"), samples=2).samples.flips
    assert (flips.flipped, flips.first, flips.high) == (1, 1, 1)
    assert flips.low == share_bounds(72, 72)[0]  # by Wilson, as no resample is otherwise


@pytest.mark.parametrize(("judge", "found_out"), [(blind, False), (first_always, True)])
def test_places_of_set_wise_prompts(server, dataset, judge, found_out):
    url, manners = server
    manners.say = judge
    system = f'bm25 >> llm("setwise", model="{url}/v1#m", depth=8, window=4, top=3)'
    orders = studied(dataset, system, orders=4).orders
    [places] = orders.places
    assert (places.size, places.prompts) == (4, 48)
    assert (places.places[0].p < 1e-10) == found_out
    assert found_out or min(one.p for one in places.places) > 0.05
    assert (orders.spread.deviation > 0) == found_out


def test_every_method_may_be_studied(server, dataset):
    url, manners = server
    manners.say = verdict
    for method in METHODS:
        name = f'bm25 >> llm("{method}", model="{url}/v1#m", depth=3)'
        found = studied(dataset, name, samples=2, orders=2, depths=(2, 3), queries=3)
        assert found.samples.verdicts.equal == 1
        assert found.samples.totals.unclear == 0
        assert (found.orders is None) == ("order" not in METHODS[method].takes) == bool(found.notes)
        assert found.depths[0].totals.prompts < found.depths[1].totals.prompts or method in (
            "listwise",
            "setwise",
        )
        assert weir.ResultSet(SENSITIVITIES, (found,)).to_frame() is not None


def test_depth_costs_and_brings(server, dataset):
    url, manners = server
    found = studied(dataset, LISTWISE.format(url=url, window=4), depths=(8, 2, 4, 8))
    assert [one.depth for one in found.depths] == [2, 4, 8]
    windows = [1, 1, 3]
    assert [one.totals.prompts for one in found.depths] == [12 * n for n in windows]
    assert [one.totals.tokens for one in found.depths] == [13 * 12 * n for n in windows]
    means = [one.mean for one in found.depths]
    assert means == sorted(means)
    # As many prompts, a better mean: the first is beaten, the others are worth what they cost.
    assert [one.efficient for one in found.depths] == [False, True, True]
    assert len(manners.asked) == 12 * sum(windows)
    assert all(one.totals.seconds > 0 and math.isnan(one.totals.dollars) for one in found.depths)


def test_interrupted_it_asks_for_nothing_twice_and_records_are_read(server, tmp_path, capsys):
    url, manners = server
    folder = write_collection(tmp_path / "mine")
    manners.say = lambda _, user: " > ".join(f"[{i}]" for i in range(user.count("\n<passage>\n"), 0, -1))
    name = f'bm25 >> llm("listwise", model="{url}/v1#m", depth=4, window=3, concurrency=1)'
    command = [
        "study",
        "sensitivity",
        "-d",
        str(folder),
        "-s",
        name,
        "-o",
        str(tmp_path / "out"),
        "--orders",
        "2",
        "-q",
    ]
    command += ["--samples", "2", "--depths", "2,4"]
    manners.faults = [None, None, status(401)]
    assert main(command) == 2
    assert "401" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    manners.faults = []
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    asked = len(manners.asked)
    own = said["samples"]["totals"]["prompts"] // 2
    assert asked == len(set(manners.prompts())) + own + 1  # the second sample, and what was refused
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "depths.json",
        "orders.json",
        "samples.json",
    ]
    [found] = weir.sensitivity_of(folder, name, rules=StudyRules(2, 2, (2, 4)), out=tmp_path / "out")
    assert len(manners.asked) == asked
    assert said == json.loads(json.dumps(weir.ResultSet(SENSITIVITIES, (found,)).to_dict()["results"][0]))
    weir.ResultSet(SENSITIVITIES, (found,)).save(tmp_path / "kept.json")
    assert str(weir.ResultSet.load(tmp_path / "kept.json")[0].orders.spread) == str(found.orders.spread)
    (tmp_path / "out" / "orders.json").write_text("{}")
    assert main(command) == 0
    text = capsys.readouterr().out
    assert len(manners.asked) == asked  # made again of kept answers
    for part in ("order of candidates:", "asked again:", "places in prompts of 3 documents", "efficient:"):
        assert part in text
    manners.faults = [status(401)]
    assert main([*command[:-2], "--depths", "3"]) == 2  # another depth is another study
    assert "401" in capsys.readouterr().err


def test_what_cannot_be_studied_is_one_line(dataset):
    with pytest.raises(BadValue, match="ends in no language model"):
        studied(dataset, "bm25", orders=2)
    for wrong in ({"orders": 1}, {"samples": -1}, {"depths": (0,)}, {"queries": 0}):
        with pytest.raises(BadValue, match=next(iter(wrong))):
            StudyRules(**wrong)
    assert main(["study", "sensitivity", "-d", "x", "-s", "bm25", "--depths", "5,all"]) == 2


def test_a_sample_of_queries_is_the_same_each_time(server, dataset):
    url, manners = server
    system = LISTWISE.format(url=url, window=12)
    for _ in range(2):
        found = studied(dataset, system, queries=5, orders=2)
        assert found.orders.spread.queries == 5
        assert len(manners.asked) == 15


@settings(max_examples=40)
@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.05, 0.25, 0.5]))
def test_tails_are_those_of_the_binomial_distribution(successes, more, chance):
    trials = successes + more
    tails = binom.sf(successes - 1, trials, chance), binom.cdf(successes, trials, chance)
    assert _even_p(successes, trials, chance) == pytest.approx(min(1, 2 * min(tails)), rel=1e-9, abs=1e-300)


answers = st.builds(
    HeardAnswer,
    st.sampled_from(["q1", "q2", "q3"]),
    st.sampled_from([b"a", b"b", b"c", b"d"]),
    st.permutations([b"x", b"y"]).map(tuple),
    st.sampled_from(["ok", "repaired", "missing", "out of range"]),
    st.sampled_from([1, 2, None]),
)


@settings(max_examples=40)
@given(st.lists(st.lists(answers, max_size=8, unique_by=lambda a: a.prompt), min_size=2, max_size=3))
def test_counts_are_those_of_plain_loops(samples):
    found = same_verdicts(samples)
    by_prompt = [{a.prompt: a for a in one} for one in samples]
    common = set(by_prompt[0]).intersection(*by_prompt[1:])
    said = [[one[p].value if one[p].clear else None for one in by_prompt] for p in sorted(common)]
    equal = [a == b for row in said for i, a in enumerate(row) for b in row[i + 1 :]]
    assert found.prompts == len(common)
    assert found.equal == pytest.approx(np.mean(equal)) if equal else math.isnan(found.equal)
    places = prompt_places(samples)
    firsts = [next((a for a in one if a.query == q), None) for one in samples for q in ("q1", "q2", "q3")]
    clear = [
        a.value for a in firsts if a is not None and a.kind in ("ok", "repaired") and a.value is not None
    ]
    assert [p.times for one in places for p in one.places] == (
        [clear.count(1), clear.count(2)] if any(firsts) else []
    )
    flips = order_flips(samples[0])
    kept = {(a.query, a.shown): a for a in samples[0]}
    both = [(kept[q, s], kept[q, s[::-1]]) for q, s in kept if s == (b"x", b"y") and (q, s[::-1]) in kept]
    whole = [(a, b) for a, b in both if a.first and b.first]
    if flips is None:
        assert not both
    else:
        assert (flips.compared, flips.pairs) == (len(both), len(whole))
        assert not whole or flips.flipped == pytest.approx(np.mean([a.first == b.first for a, b in whole]))


def test_a_pool_of_candidates_is_studied_as_it_is(server):
    url, _ = server
    pools = {q: [f"d{d:02}" for d in range(n, n + 5)] for n, q in enumerate(QUERIES)}
    pooled = Dataset.of(TEXTS, QUERIES, GRADES, candidates=pools)
    found = studied(pooled, f'pool >> llm("listwise", model="{url}/v1#m")', orders=2, depths=(3,))
    assert (found.orders.places[0].size, found.orders.spread.tau) == (5, 1)
    runs = weir.parse_system(f'pool >> llm("listwise", model="{url}/v1#m")').index(pooled.corpus)
    plain = weir.evaluate(GRADES, runs.search(pooled.queries, 1000), weir.nDCG @ 10).means()["nDCG@10"]
    assert found.orders.own == pytest.approx(plain)


def test_errors_pass_through(server, dataset):
    url, manners = server
    manners.faults = [status(404)] * 40
    with pytest.raises(ServiceError, match="404"):
        studied(dataset, LISTWISE.format(url=url, window=12), orders=2)


def test_a_results_folder_names_what_is_studied(server, tmp_path, capsys):
    url, manners = server
    manners.say = verdict
    mine = write_collection(tmp_path / "mine")
    names = [f'bm25 >> llm("{method}", model="{url}/v1#m", depth=4)' for method in ("score", "listwise")]
    weir.benchmark(str(mine), [*names, "bm25"], "nDCG@10", out=tmp_path / "out")
    rules = ["--orders", "2", "--samples", "0", "--depths", "", "-q", "--json"]
    assert main(["study", "sensitivity", str(tmp_path / "out"), *rules, "-o", str(tmp_path / "kept")]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["dataset"], one["system"]) for one in found] == [("mine", name) for name in names]
    assert len(list((tmp_path / "kept").iterdir())) == 1  # of pointwise scores orders are not studied
    asked = len(manners.asked)
    [one] = weir.sensitivity_of(results=tmp_path / "out", system=names[1], rules=StudyRules(2, 0, ()))
    assert one.system == names[1]
    assert len(manners.asked) == asked
    for arguments, said in (
        ([str(tmp_path / "out"), "-s", "bm25"], "no chosen system has a language model"),
        (["-d", str(mine)], "give a results folder, or a collection with -d and a system with -s"),
    ):
        assert main(["study", "sensitivity", *arguments]) == 2
        assert said in capsys.readouterr().err


def test_a_budget_is_an_option_of_whatever_asks(home, tmp_path, capsys):
    forget_spending()
    mine = write_collection(tmp_path / "mine")
    with chat_serving() as (url, manners):
        name = f'bm25 >> llm("score", model="{url}/v1#m", depth=4)'
        for command in (
            ["run", "-m", "AP", "-o", str(tmp_path / "out")],
            ["study", "sensitivity", "--samples", "2"],
        ):
            forget_spending()
            before = len(manners.asked)
            asked = [*command, "-d", str(mine), "-s", name, "-q", "--budget", "2 requests"]
            assert main(asked) == 2
            assert "the budget of 2 requests ends here" in capsys.readouterr().err
            assert len(manners.asked) == before + 2
        assert main(["plan", "-d", str(mine), "-s", name, "-q", "--price", "1000"]) == 0
        assert capsys.readouterr().out.split()[-1] != "-"
    forget_spending()
