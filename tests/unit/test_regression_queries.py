"""Regression queries stand for all and are a group of the gate; leakage by meaning finds what was planted."""

from __future__ import annotations

import numpy as np
import pytest

import weir
from weir.audit import Subject, audited
from weir.audit.leakage import nearest_training
from weir.audit.subsets import GROUP, regression_queries, write_regression_queries
from weir.cli import main
from weir.core.corpus import Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.subject import Training
from weir.errors import BadValue

NAMES = [f"q{i:03}" for i in range(120)]
TEXTS = {n: ("river depth", "bread oven", "tram stop")[i % 3] + f" {i}" for i, n in enumerate(NAMES)}
QRELS = Qrels.of({n: {"a": 1} for n in NAMES})
RUN = Run.of({n: [*"bcdefghij"[: i % 9], "a"] for i, n in enumerate(NAMES)})
SUBJECT = Subject("mine", queries=Queries.of(TEXTS), qrels=QRELS, runs={"one": RUN})


@pytest.mark.parametrize("count", [1, 7, 30, 120, 500])
def test_so_many_are_chosen_over_topics_and_from_easy_to_hard(count):
    chosen = regression_queries(SUBJECT, count)
    assert len(chosen) == len(set(chosen)) == min(count, len(NAMES))
    assert chosen == regression_queries(SUBJECT, count)
    if count == 30:
        values = weir.evaluate(QRELS, RUN, ["nDCG@10"])["nDCG@10"]
        mean = np.mean([values[q] for q in chosen])
        assert mean == pytest.approx(np.mean(list(values.values())), abs=0.05)
        assert {TEXTS[q].split()[0] for q in chosen} == {"river", "bread", "tram"}


def test_they_are_a_group_that_the_gate_looks_at(tmp_path, capsys):
    QRELS.save(tmp_path / "qrels.tsv")
    RUN.save(tmp_path / "one.trec")
    files = [str(tmp_path / name) for name in ("qrels.tsv", "one.trec")]
    out = tmp_path / "regression.tsv"
    assert main(["audit", *files, "--regression-queries", str(out)]) == 0
    assert out.read_text().count(GROUP) == 30
    capsys.readouterr()
    assert main(["gate", *files, files[1], "--by", str(out)]) == 0
    assert GROUP in capsys.readouterr().out
    write_regression_queries(["q1"], out)
    assert out.read_text() == f"q1\t{GROUP}\n"
    with pytest.raises(BadValue, match="one of each at least"):
        regression_queries(Subject("mine", qrels=QRELS), 3)


def test_a_paraphrase_of_a_training_query_is_found_by_its_vector():
    vectors = {
        "river dam": (1, 0, 0),
        "dam of a river": (0.99, 0.05, 0),
        "dough": (0, 1, 0),
        "tram": (0, 0, 1),
        "": (0, 0, 0),
    }

    def encode(queries):
        return np.array([vectors[text] for text in queries.text.tolist()], np.float32)

    training = Training("train", Queries.of({"t": "river dam", "u": "tram"}))
    cosine, at = nearest_training(
        Queries.of({"q": "dam of a river", "r": "dough", "e": ""}), training, encode
    )
    assert cosine == pytest.approx([0.99 / np.hypot(0.99, 0.05), 0, 0], abs=1e-6)
    assert at[0] == 0
    queries, qrels = (
        Queries.of({"q": "dam of a river", "r": "dough"}),
        Qrels.of({"q": {"d": 1}, "r": {"d": 1}}),
    )
    subject = Subject("mine", queries=queries, qrels=qrels, training=(training,), encoder=encode)
    [found] = audited(subject, ["leakage by meaning"]).findings
    assert found.examples == ("q ~ t",)
    nobody = Training("none", Queries.of({}))
    assert nearest_training(queries, nobody, lambda q: np.zeros((len(q), 3), np.float32))[0].tolist() == [
        -1,
        -1,
    ]
