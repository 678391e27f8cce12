"""Which collections look like mine: weights and means are those of plain arithmetic, and bad input is one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.datasets import catalogue
from weir.experiment.alignment import OTHER_TASK, aligned

BENCHMARKS = ["brook-facts", "brook-medical", "brook-news"]


def test_systems_are_ordered_by_weighted_means_with_intervals_over_collections():
    weights = np.array([0.8, 0.1, 0.1])
    scores = {("a", False): np.array([0.9, 0.1, 0.1]), ("b", True): np.array([0.5, 0.5, 0.5])}
    first, second = aligned(scores, weights)
    assert (first.system, first.rank, first.aligned_rank, first.own) == ("a", 2, 1, False)
    assert (first.mean, first.aligned) == pytest.approx((1.1 / 3, 0.74))
    assert second.aligned == pytest.approx(0.5)
    assert np.isnan([second.low, second.high]).all()  # alike everywhere: nothing tells of chance
    assert first.low == pytest.approx(0.1)  # 8 of 27 resamples lack the first collection
    assert first.high == pytest.approx(0.9)


def test_collections_that_are_read_weigh_by_words_lengths_and_task(tmp_path, capsys):
    results = tmp_path / "results"
    weir.benchmark(BENCHMARKS, ["bm25", "bm25(b=0.0)"], ["nDCG@10"], results)
    [found] = weir.align("brook-citations", *BENCHMARKS, task="Fact Checking", results=results)
    assert {one.collection for one in found.likenesses} == set(BENCHMARKS)
    plain = [
        min(found.query_words / one.query_words, one.query_words / found.query_words)
        * min(found.document_words / one.document_words, one.document_words / found.document_words)
        * one.overlap
        * (1 if one.collection == "brook-facts" else OTHER_TASK)
        for one in found.likenesses
    ]
    assert [one.weight for one in found.likenesses] == pytest.approx([p / sum(plain) for p in plain])
    assert plain == sorted(plain, reverse=True)
    means = {(r.system, r.dataset): r.mean for r in weir.results(results)}
    for system in found.systems:
        assert system.own
        assert system.aligned == pytest.approx(
            sum(one.weight * means[system.system, one.collection] for one in found.likenesses)
        )
    assert main(["data", "align", "brook-citations", *BENCHMARKS, "--results", str(results), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {one["system"] for one in said["systems"]} == {"bm25", "bm25(b=0.0)"}


def test_without_others_the_catalogue_s_lengths_are_compared(capsys):
    [found] = weir.align("brook-news")
    assert len(found.likenesses) >= 10
    assert np.isclose(sum(one.weight for one in found.likenesses), 1)
    assert all(
        one.document_words == catalogue.get(one.collection).words_per_document for one in found.likenesses
    )
    assert 1 <= found.effective <= len(found.likenesses)
    assert sorted(s.aligned_rank for s in found.systems)[0] == 1
    assert main(["data", "align", "brook-news"]) == 0
    assert "Kendall's tau" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["brook-news", "brook-facts"], "1 collection to compare brook-news with; name 3 or more"),
        (["brook-news", "--task", "cooking"], "task 'cooking': expected one of Argument Retrieval"),
        (["brook-citations", *BENCHMARKS], "no system has nDCG@10 on each of brook-facts"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(given, said, capsys):
    assert main(["data", "align", *given]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
