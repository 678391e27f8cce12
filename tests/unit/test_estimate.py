"""weir estimate: the corrected score is that of people where the model is one of them, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import parse_measure
from weir.stats.corrected_scores import ESTIMABLE, corrected_score

RNG = np.random.default_rng(2)
NAMES = [f"q{i}" for i in range(200)]
TRUTH = {
    n: {f"d{j}": int(RNG.random() < 0.2 + 0.5 * (i % 2)) for j in range(10)} for i, n in enumerate(NAMES)
}
LENIENT = {n: {d: max(g, int(RNG.random() < 0.3)) for d, g in of.items()} for n, of in TRUTH.items()}
RUN = Run.of({n: [f"d{j}" for j in range(10)] for n in NAMES})
FEW = Qrels.of({n: TRUTH[n] for n in NAMES[:50]})


@pytest.mark.parametrize("name", ESTIMABLE)
def test_a_lenient_model_is_corrected_towards_people(name):
    measure = parse_measure(f"{name}@10")
    found = corrected_score("one", RUN, FEW, Qrels.of(LENIENT), measure)
    truth = weir.evaluate(TRUTH, RUN, [measure]).means()[str(measure)]
    assert found.human.value == pytest.approx(
        weir.evaluate(FEW, RUN, [measure]).means()[str(measure)], abs=1e-12
    )
    assert found.model == pytest.approx(
        weir.evaluate(LENIENT, RUN, [measure]).means()[str(measure)], abs=1e-12
    )
    assert found.corrected.low <= truth <= found.corrected.high < found.model or name in ("RR", "Success")
    assert found.corrected.high - found.corrected.low <= 1.05 * (found.human.high - found.human.low)
    assert (found.human_queries, found.model_queries, found.judged) == (50, 200, 1)


def test_a_model_that_is_people_gives_their_mean_over_all():
    measure = parse_measure("P@10")
    found = corrected_score("one", RUN, FEW, Qrels.of(TRUTH), measure)
    truth = weir.evaluate(TRUTH, RUN, [measure]).means()["P@10"]
    assert found.corrected.low <= truth <= found.corrected.high
    assert found.corrected.weight == pytest.approx(1 / (1 + 50 / 150), abs=0.15)


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "R@10", "RR", "condensed(P@10)"])
def test_measures_whose_ideal_depends_on_the_labels_are_refused(name):
    with pytest.raises(BadValue, match="cannot be estimated"):
        corrected_score("one", RUN, FEW, Qrels.of(LENIENT), parse_measure(name))


def test_the_command_and_its_equal_say_the_same(tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("people.tsv", "model.tsv", "one.trec")]
    for value, path in zip((FEW, Qrels.of(LENIENT), RUN), paths, strict=True):
        value.save(path)
    assert main(["estimate", *paths]) == 0
    assert capsys.readouterr().out.strip() == repr(weir.estimate(*paths))
    assert main(["estimate", *paths, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["system"] == "one"
    assert main(["estimate", *paths, "-m", "nDCG@10"]) == 2
    assert "its ideal ranking is another" in capsys.readouterr().err
