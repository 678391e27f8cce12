"""weir labels people: agreement, people's own second grades, the human ceiling of a measure, preferences."""

from __future__ import annotations

import itertools
import json
import math

import pytest

import weir
from weir.cli import main
from weir.core.qrels import Qrels
from weir.errors import BadValue
from weir.measures import parse_measure
from weir.plugins.app.judging.journal import Event, Journal
from weir.plugins.labels.people import human_ceilings

ANN = {f"q{n}": {"a": 2, "b": n % 2, "c": 0, "d": (n + 1) % 2} for n in range(8)}
BEN = {f"q{n}": {"a": 2 - n % 3 % 2, "b": 1, "c": 0, "e": 1} for n in range(8)}


def ndcg(order, grades):
    ideal = sorted(grades.values(), reverse=True)
    gain, best = (
        sum(grade / math.log2(rank + 1) for rank, grade in enumerate(found, 1))
        for found in ([grades[d] for d in order], ideal)
    )
    return gain / best if best else 0.0


def mean_over_orders(mine, theirs):
    both = sorted(mine.keys() & theirs.keys())
    orders = [
        o for o in itertools.permutations(both) if all(mine[x] >= mine[y] for x, y in itertools.pairwise(o))
    ]
    return sum(ndcg(order, {d: theirs[d] for d in both}) for order in orders) / len(orders)


def test_the_ceiling_is_the_mean_over_all_orders_that_a_persons_grades_allow():
    first, *rest = human_ceilings({"ann": Qrels.of(ANN), "ben": Qrels.of(BEN)}, parse_measure("nDCG@10"))
    for one, (mine, theirs) in zip(rest, ((ANN, BEN), (BEN, ANN)), strict=True):
        expected = [mean_over_orders(mine[q], theirs[q]) for q in mine]
        assert one.mean == pytest.approx(sum(expected) / len(expected), abs=1e-12)
        assert (one.pairs, one.queries) == (24, 8)
    assert first.mean == pytest.approx((rest[0].mean + rest[1].mean) / 2, abs=1e-12)
    assert first.low < first.mean < first.high
    assert human_ceilings({"ann": Qrels.of(ANN), "too": Qrels.of(ANN)}, parse_measure("nDCG@10"))[0].mean == 1
    with pytest.raises(BadValue, match="graded a pair in common"):
        human_ceilings({"ann": Qrels.of(ANN), "other": Qrels.of({"q": {"z": 1}})}, parse_measure("nDCG@10"))


def test_the_command_reads_the_journal_of_the_page(tmp_path, capsys):
    path = tmp_path / "judgments.sqlite"
    journal = Journal.open(path)
    for judge, labels in (("ann", ANN), ("ben", BEN)):
        journal.append(
            *(Event(judge, "graded", q, d, grade=g) for q, of in labels.items() for d, g in of.items())
        )
    journal.append(
        *(Event("ann", "graded", q, "a", "again", grade=2 - (q == "q3")) for q in ANN),
        *(
            Event("ann", "preferred", q, "bm25", "rankings", 1 if q != "q1" else -1, other="dense")
            for q in ANN
        ),
    )
    journal.close()
    assert main(["labels", "people", str(path)]) == 0
    text = capsys.readouterr().out
    assert "ann, ben" in text
    assert "the human ceiling" in text
    assert "Bradley" in text
    [found] = weir.labels.people(path)
    assert [(k.first, k.second, k.pairs, k.same) for k in found.again] == [("ann", "ann", 8, 7 / 8)]
    assert found.preferences.rates[0].wins == 7
    agreed = {name: value for name, value, *_ in weir.labels.agree(path)[0].values}
    assert found.kappas[0].kappa == agreed["kappa"]
    assert found.kappas[0].weighted == agreed["quadratic kappa"]
    assert main(["labels", "people", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == 64


def test_one_person_alone_has_nobody_to_agree_with(tmp_path, capsys):
    path = tmp_path / "ann.tsv"
    Qrels.of(ANN).save(path)
    assert main(["labels", "people", str(path)]) == 0
    assert "32 grades; no pair" in capsys.readouterr().out
