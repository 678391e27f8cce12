"""The BEIR authors' study done over: half of NIST's judgments hidden, three judges fill the holes on the page."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest

pytest.importorskip("starlette", reason="needs the `app` extra")

from starlette.testclient import TestClient
from tests.reference import hole, ndcg

from weir.core.qrels import Qrels
from weir.files.runs import read_qrels, read_run
from weir.files.write import write_qrels
from weir.plugins.app.folder import Folder
from weir.plugins.app.judging import pages
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.app.server import Access, application, csrf_of
from weir.plugins.labels.api import judging_pool
from weir.stats.resampling import share_bounds

RUNS = ("BM25", "D_BERT_KD_TASB", "SPLADE_P_P_ENSEMBLE_DISTIL", "REP_LLAMA")
ACCURACY = {"ann": 0.95, "ben": 0.8, "cyd": 0.7}


def planted(judge, query, document, truth):
    """NIST's grade with the judge's probability, else another one, always the same."""
    rng = random.Random(hashlib.blake2b(f"{judge} {query} {document}".encode()).digest())
    return truth if rng.random() < ACCURACY[judge] else rng.choice([g for g in range(4) if g != truth])


def means(runs, judged):
    """Means of both over the judged queries, by system."""
    found = {}
    for name, run in runs.items():
        ranked = [(list(run.get(query, {})), grades) for query, grades in judged.items()]
        found[name] = tuple(float(sum(of(*one, 10) for one in ranked)) / len(ranked) for of in (ndcg, hole))
    return found


def test_three_judges_fill_half_of_nists_judgments_and_the_page_says_what_the_arithmetic_says(
    shared, tmp_path
):
    data = shared / "data" / "trec-dl"
    nist = read_qrels(data / "qrels" / "qrels.dl19-passage.txt").to_dict()
    rng = random.Random(5)
    half = {q: {d: g for d, g in sorted(of.items()) if rng.random() < 0.5} for q, of in nist.items()}
    write_qrels(Qrels.of(half), tmp_path / "half.tsv")
    runs = {name: read_run(data / "runs" / "dl19" / f"{name}.trec.gz").to_dict() for name in RUNS}
    targets = [tmp_path / "half.tsv", *(data / "runs" / "dl19" / f"{name}.trec.gz" for name in RUNS)]
    judging_pool(*targets, out=tmp_path / "pool", k=10, collection=data / "judged-pool" / "dl19")
    rooms = Rooms.of_pools(tmp_path / "pool")
    tokens = {"o" * 32: "", **{name[0] * 32: name for name in ACCURACY}}
    app = application(Folder(tmp_path), pages.PAGES, Access(tokens), rooms=rooms)
    people = {
        name: TestClient(app, base_url="http://localhost:1", follow_redirects=False, cookies={"weir": token})
        for token, name in tokens.items()
    }
    owner = people.pop("")
    assert owner.post("/judge/pool/plan", data={"csrf": csrf_of("o" * 32), "each": "3"}).status_code == 303

    given = {name: {} for name in people}
    unable = Counter()
    waiting = set(people)
    while waiting:
        for name in sorted(waiting):
            page = people[name].get("/judge/pool.json").json()
            if page["pair"] is None:
                waiting.discard(name)
                continue
            pair = page["pair"]["query"], page["pair"]["document"]
            fields = {
                "csrf": csrf_of(name[0] * 32),
                "number": page["pair"]["number"],
                "key": page["pair"]["key"],
            }
            truth = nist[pair[0]].get(pair[1])
            if truth is None:  # nobody at NIST judged it, and the collection has no text of it
                fields |= {"kind": "unable", "reason": "no text"}
                unable[pair] += 1
            else:
                given[name][pair] = planted(name, *pair, truth)
                fields["grade"] = given[name][pair]
            assert people[name].post("/judge/pool/answer", data=fields).status_code == 303

    hidden = {
        (query, doc)
        for name in RUNS
        for query, ranked in runs[name].items()
        for doc in list(ranked)[:10]
        if query in half and doc in nist[query] and doc not in half[query]
    }
    assert {pair for of in given.values() for pair in of} == hidden
    assert all(of.keys() == hidden for of in given.values())
    assert set(unable.values()) <= {3}
    for name, accuracy in ACCURACY.items():  # what was planted is what was given
        right = sum(grade == nist[q][d] for (q, d), grade in given[name].items())
        low, high = share_bounds(right, len(hidden), 0.999)
        assert low <= accuracy <= high

    after = {query: dict(of) for query, of in half.items()}
    for query, doc in hidden:  # the most frequent grade, of several such the lowest
        votes = Counter(given[name][query, doc] for name in given)
        after[query][doc] = min(votes, key=lambda grade: (-votes[grade], grade))
    before_means, after_means = means(runs, half), means(runs, after)
    rows = owner.get("/judge/pool/changed.json").json()["changes"]["rows"]
    assert len(rows) == len(RUNS)
    for row in rows:
        [name] = [name for name in RUNS if row["system"] in (name, f"{name}.trec")]
        shown = (row["before"], row["hole_before"], row["after"], row["hole_after"])
        assert shown == pytest.approx((*before_means[name], *after_means[name]), abs=1e-12)
        assert row["hole_after"] < row["hole_before"]
    true_means = means(
        runs, {q: {d: g for d, g in of.items() if d in half[q] or (q, d) in hidden} for q, of in nist.items()}
    )
    for (
        name
    ) in RUNS:  # judges of 70 to 95% bring each system nearer to what NIST's own labels say of the same holes
        assert abs(after_means[name][0] - true_means[name][0]) < abs(
            before_means[name][0] - true_means[name][0]
        )
    stands = owner.get("/judge/pool/progress.json").json()["stands"]
    assert len(stands["kappas"]) == 3
    best, worst = (
        next(k["same"] for k in stands["kappas"] if {k["first"], k["second"]} == set(pair))
        for pair in (("ann", "ben"), ("ben", "cyd"))
    )
    assert best > worst
    rooms.close()
