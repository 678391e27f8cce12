"""Measures of diversity against ndeval, on judgments drawn at random: scripts/make_golden_diversity.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weir.core.intents import IntentQrels
from weir.core.run import Run
from weir.measures import MEASURES, parse_measure, score_run

GOLDEN = json.loads((Path(__file__).parent / "diversity.json").read_text(encoding="utf-8"))
QRELS = IntentQrels.from_rows(*map(list, zip(*GOLDEN["judgments"], strict=True)))
RUN = Run.of({q: {d: -float(i) for i, d in enumerate(row)} for q, row in GOLDEN["run"].items()})


@pytest.mark.parametrize("measure", GOLDEN["values"])
def test_every_query_has_ndevals_value(measure):
    scores = score_run(QRELS, RUN, measure)
    ours = dict(zip(scores.queries.tolist(), scores.values[0].tolist(), strict=True))
    assert ours == pytest.approx(GOLDEN["values"][measure], rel=0, abs=1e-14)


def test_all_of_them_are_here_and_say_something():
    of_intents = {name for name in MEASURES.names() if MEASURES.get(name).of == "intents"} - {"NuggetRecall"}
    assert {parse_measure(measure).name for measure in GOLDEN["values"]} == of_intents
    for measure, values in GOLDEN["values"].items():
        assert len(set(values.values())) > 2, measure
