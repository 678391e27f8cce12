"""weir labels holes: what is found among unjudged documents is what plain counting finds, hidden labels come back."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.measures import parse_measure
from weir.plugins.labels.hole_study import hole_study

QUERIES = [f"q{n}" for n in range(4)]
DOCS = [f"d{n}" for n in range(8)]
GRADES = st.lists(st.sampled_from([None, 0, 1, 2]), min_size=32, max_size=32)


def labels(column):
    found = {}
    for (query, doc), grade in zip(itertools.product(QUERIES, DOCS), column, strict=True):
        if grade is not None:
            found.setdefault(query, {})[doc] = grade
    return found


def runs_of(seed, count=3):
    rng = np.random.default_rng(seed)
    return {f"s{n}": {q: rng.permutation(DOCS).tolist() for q in QUERIES} for n in range(count)}


def counted(pairs, people, model, rel):
    """(relevant by people, of; relevant by the model, of; same verdict, of) by a loop over pairs."""
    by_people = [people[q][d] for q, d in pairs if d in people.get(q, {})]
    by_model = [model[q][d] for q, d in pairs if d in model.get(q, {})]
    both = [(people[q][d], model[q][d]) for q, d in pairs if d in people.get(q, {}) and d in model.get(q, {})]
    same = [(a >= rel) == (b >= rel) for a, b in both]
    return [(sum(g >= rel for g in by_people), len(by_people)), (sum(g >= rel for g in by_model), len(by_model)),
            (sum(same), len(same))]  # fmt: skip


@settings(max_examples=6)
@given(GRADES, GRADES, GRADES, st.integers(0, 99), st.sampled_from([1, 2]))
def test_everything_found_is_what_loops_find(judged, first, second, seed, rel):
    qrels = {q: {"other": 2, **ds} for q, ds in ({q: {} for q in QUERIES} | labels(judged)).items()}
    people, model, runs = labels(first), labels(second), runs_of(seed)
    tops = {name: {(q, d) for q, ranked in run.items() for d in ranked[:3] if d not in qrels[q]}
            for name, run in runs.items()}  # fmt: skip
    every = set().union(*tops.values())
    if not any(d in people.get(q, {}) and d in model.get(q, {}) for q, d in every):
        return
    given_ = {name: Run.of(run) for name, run in runs.items()}
    found = hole_study(given_, Qrels.of(qrels), Qrels.of(people), Qrels.of(model), parse_measure("P@3"), rel)
    for one in found.found:
        pairs = tops.get(one.system, every)
        assert one.holes == len(pairs)
        ratios = [one.missed_by_people, one.missed_by_model, one.agreement]
        assert [(r.count, r.of) for r in ratios] == counted(pairs, people, model, rel)
    for one in found.found[1:]:
        assert one.before == pytest.approx(weir.evaluate(qrels, runs[one.system], ["P@3"])["P@3"].mean)
        for side, given_labels in zip(one.filled, (people, model), strict=True):
            new = {q: {d: g for d, g in ds.items() if (q, d) in every} for q, ds in given_labels.items()}
            filled = {q: qrels[q] | new.get(q, {}) for q in QUERIES}
            mean = weir.evaluate(filled, runs[one.system], ["P@3"])["P@3"].mean
            assert side.mean == pytest.approx(mean)
            assert side.change == pytest.approx(mean - one.before)
            assert math.isnan(side.low) or side.low - 1e-9 <= side.change <= side.high + 1e-9
            assert one.least - 1e-9 <= side.mean <= one.most + 1e-9
    sides = {"people": (Qrels.of(people), None), "model": (None, Qrels.of(model))}
    for place, (by, (by_people, by_model)) in enumerate(sides.items()):
        alone = hole_study(given_, Qrels.of(qrels), by_people, by_model, parse_measure("P@3"), rel)
        for one, both in zip(alone.found, found.found, strict=True):
            assert str(getattr(one, f"missed_by_{by}")) == str(getattr(both, f"missed_by_{by}"))
            assert one.holes == both.holes
            assert repr(one.before) == repr(both.before)  # NaN of all systems together
            assert str(one.filled) == str(both.filled[place : place + 1])  # NaN is not NaN
            assert 0 in (one.missed_by_people.of, one.missed_by_model.of)
            assert one.agreement.of == 0
        assert [repr(one) for one in alone.orders] == [repr(found.orders[place])]
    for order, place in zip(found.orders, (0, 1), strict=True):
        now = {one.system: one.before for one in found.found[1:]}
        then = {one.system: one.filled[place].mean for one in found.found[1:]}
        expected = {
            (a, b) if now[a] > now[b] else (b, a)
            for a, b in itertools.combinations(now, 2)
            if abs(now[a] - now[b]) > 1e-9 < abs(then[a] - then[b])
            and (now[a] > now[b]) != (then[a] > then[b])
        }
        assert set(order.turned) == expected


@pytest.mark.parametrize("name", ["DCG@3", "SDCG@3", "ERR@3", "P(rel=2)@3", "nDCG(gain='exp')@3"])
@pytest.mark.parametrize("high", [3, 2.5])
def test_labels_above_every_judgment_stay_within_what_may_be(name, high):
    qrels, run = {"q": {"a": 1, "z": 1}, "r": {"x": 1}}, Run.of({"q": ["b", "a", "c"]})
    found = hole_study(
        {"one": run}, Qrels.of(qrels), model=Qrels.of({"q": {"b": high}}), measure=parse_measure(name)
    )
    one = found.found[1]
    assert one.least <= one.before < one.filled[0].mean <= one.most
    if "nDCG" not in name:  # for which fewer relevant ones are better
        best = qrels | {"q": {"a": 1, "z": 1, "b": high, "c": high}}
        assert one.most == pytest.approx(weir.evaluate(best, run, [name])[name].mean)


def test_what_cannot_be_studied_is_refused(tmp_path, capsys):
    run, qrels = Run.of({"q": ["a", "b"]}), Qrels.of({"q": {"a": 1}})
    people, measure = Qrels.of({"q": {"b": 1}}), parse_measure("P@2")
    with pytest.raises(BadValue, match="nothing is left to study"):
        hole_study({"one": run}, Qrels.of({"q": {"a": 1, "b": 0}}), people, people, measure)
    with pytest.raises(
        BadValue, match="none of the 1 unjudged documents is judged by people and by the model"
    ):
        hole_study({"one": run}, qrels, people, Qrels.of({"q": {"a": 1}}), measure)
    with pytest.raises(
        BadValue, match="is judged by people; write a sheet with weir labels pool, and have it judged"
    ):
        hole_study({"one": run}, qrels, Qrels.of({"q": {"a": 1}}), measure=measure)
    with pytest.raises(BadValue, match="is judged by the model; write a sheet"):
        hole_study({"one": run}, qrels, model=Qrels.of({"q": {"a": 1}}), measure=measure)
    with pytest.raises(BadValue, match="labels of people, of a model, or of both; none are given"):
        hole_study({"one": run}, qrels, measure=measure)
    with pytest.raises(BadValue, match="has no score bounds"):
        hole_study({"one": run}, qrels, people, people, parse_measure("condensed(nDCG@10)"))
    with pytest.raises(BadValue, match="no ranking"):
        hole_study({}, qrels, people, people, measure)


def test_the_command_takes_a_sheet_and_says_what_python_says(tmp_path, capsys):
    Qrels.of({"q": {"a": 1}, "r": {"a": 0}}).save(tmp_path / "qrels.tsv")
    for name, ranked in (("one", "abc"), ("two", "cab")):
        Run.of({"q": list(ranked), "r": list(ranked)}).save(tmp_path / f"{name}.trec")
    targets = [str(tmp_path / name) for name in ("qrels.tsv", "one.trec", "two.trec")]
    assert main(["labels", "pool", *targets, "-o", str(tmp_path / "pool")]) == 0
    assert "identifiers and no texts" in capsys.readouterr().err
    sheet = tmp_path / "pool" / "to_judge.tsv"
    lines = sheet.read_text(encoding="utf-8").splitlines()
    filled = [lines[0], *(line.replace("\t\t", f"\t{int(n % 2 == 0)}\t", 1) for n, line in enumerate(lines[1:-1])),
              lines[-1]]  # fmt: skip
    sheet.write_text("\n".join(filled) + "\n", encoding="utf-8")
    model = tmp_path / "labels"
    model.mkdir()
    Qrels.of({q: {"b": 1, "c": 0} for q in "qr"}).labelled("llm:m").save(model / "labels.tsv")
    capsys.readouterr()
    options = ["--human-labels", str(sheet), "--model-labels", str(model)]
    assert main(["labels", "holes", *targets, "--model-labels", str(model)]) == 0
    out, err = capsys.readouterr()
    assert "relevant by the model" in out
    assert "people" not in out
    assert "note: a model alone labelled the unjudged documents" in err
    assert main(["labels", "holes", *targets, *options]) == 0
    text = capsys.readouterr().out
    result = weir.labels.holes(*targets, human=sheet, model=model)
    assert text.strip() == repr(result).strip()
    assert result[0].found[0].missed_by_people.of == 3  # the last line of the sheet is not filled in
    assert main(["labels", "holes", *targets, *options[:2]]) == 0
    text = capsys.readouterr().out
    assert text.strip() == repr(weir.labels.holes(*targets, human=sheet)).strip()
    assert "by people" in text
    assert "model" not in text
    assert main(["labels", "holes", *targets, *options, "--json"]) == 0
    [one] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (one["measure"], one["k"], len(one["found"])) == ("nDCG@10", 10, 3)


@pytest.mark.real
def test_labels_hidden_from_dl19_come_back_as_they_were(shared):
    """Half of NIST's judgments stand for what nobody judged, and for what people then say of it."""
    runs = {
        name: shared / "data/trec-dl/runs/dl19" / f"{name}.trec.gz"
        for name in ("BM25", "BM25_RM3", "REP_LLAMA")
    }
    truth = weir.Qrels.load(shared / "data/trec-dl/qrels/qrels.dl19-passage.txt").to_dict()
    draw = random.Random(5)
    held = {q: {d: g for d, g in ds.items() if draw.random() < 0.5} for q, ds in truth.items()}
    path = shared / "data/llm-judgments/methods.dl19.tsv.gz"
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode()), delimiter="\t"))
    model: dict[str, dict[str, float]] = {}
    for row in rows:
        model.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["umbrela_gpt4o"])
    [study] = weir.labels.holes(held, *runs.values(), human=truth, model=f"{path}#umbrela_gpt4o")
    tops = {name: weir.Run.load(path).top(10).to_dict() for name, path in runs.items()}
    pairs = {
        name: {(q, d) for q in truth for d in top.get(q, {}) if d not in held[q]}
        for name, top in tops.items()
    }
    for one in study.found:
        mine = pairs.get(one.system, set().union(*pairs.values()))
        ratios = [one.missed_by_people, one.missed_by_model, one.agreement]
        assert (one.holes, [(r.count, r.of) for r in ratios]) == (len(mine), counted(mine, truth, model, 1))
        assert all(r.low <= r.value <= r.high for r in ratios)
    every = set().union(*pairs.values())
    for one in study.found[1:]:
        filled = {q: held[q] | {d: g for d, g in truth[q].items() if (q, d) in every} for q in truth}
        mean = weir.evaluate(filled, runs[one.system], ["nDCG@10"])["nDCG@10"].mean
        assert one.filled[0].mean == pytest.approx(mean, abs=1e-12)
        assert one.least < one.before < one.filled[0].mean < one.most
