from __future__ import annotations

import json
from pathlib import Path

import pytest

from weir.datasets.load import load
from weir.systems import parse_system

GOLDEN = json.loads((Path(__file__).parent / "bm25s" / "brook-medical.json").read_text(encoding="utf-8"))[
    "scores"
]


def test_the_preset_gives_the_librarys_own_scores():
    dataset = load("brook-medical")
    run = parse_system('bm25("bm25s")').index(dataset.corpus).search(dataset.queries, 1000).to_dict()
    assert set(run) == set(GOLDEN)
    assert sum(map(len, GOLDEN.values())) > 400
    for query, scores in GOLDEN.items():
        assert set(run[query]) == set(scores), query
        for document, score in scores.items():
            assert run[query][document] == pytest.approx(score, rel=1e-5), (query, document)
