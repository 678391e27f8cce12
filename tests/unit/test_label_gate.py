"""The gate before a model's labels: what passes, what does not, and what stands beside the scores."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import write_collection
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, UnknownName
from weir.stats.calibration import calibration, gated, parse_least
from weir.stats.score_rows import uncalibrated

QUERIES = [f"q{n}" for n in range(8)]
DOCS = [f"d{n}" for n in range(12)]
PEOPLE = {q: {d: (i + j) % 3 for j, d in enumerate(DOCS[:6])} for i, q in enumerate(QUERIES)}
GOOD = {q: {d: (i + j) % 3 for j, d in enumerate(DOCS)} for i, q in enumerate([*QUERIES, "alone"])}
BAD = {q: {d: (i * 7 + j * 5) % 4 // 2 for j, d in enumerate(DOCS)} for i, q in enumerate(QUERIES)}
RUN = {q: [DOCS[(i + 3 * j) % 12] for j in range(4)] for i, q in enumerate(QUERIES)}


@pytest.mark.parametrize(
    "text", ["binary kappa 0.4", "binary kappa from 2 0.5", "quadratic kappa -0.1", "AC1 1"]
)
def test_a_threshold_prints_as_it_is_written(text):
    assert str(parse_least(text)) == text
    assert parse_least(str(parse_least(text))) == parse_least(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [("kappa", BadValue), ("0.5", BadValue), ("kappa 1.5", BadValue), ("kappa 0.4.2", BadValue), ("bias 0.1", UnknownName),
     ("kappa from 2 0.5", BadValue), ("luck 0.5", UnknownName)],
)  # fmt: skip
def test_another_threshold_is_refused_in_one_line(text, error):
    with pytest.raises(error) as raised:
        parse_least(text)
    assert "\n" not in str(raised.value)


def test_the_lower_end_of_the_interval_decides_and_few_pairs_do_not():
    people, good = Qrels.of(PEOPLE), Qrels.of(GOOD)
    found = calibration(people, good, parse_least("binary kappa 1"))
    assert (found.pairs, found.queries, found.value, found.passed) == (48, 8, 1, True)
    assert math.isnan(found.low)  # no resample differs: such a value passes by itself
    rng = np.random.default_rng(3)
    noisy = Qrels.of(
        {q: {d: g if rng.random() < 0.8 else 2 - g for d, g in ds.items()} for q, ds in PEOPLE.items()}
    )
    found = calibration(people, noisy, parse_least("kappa 0"))
    assert found.low < found.value < found.high
    between = (found.low + found.value) / 2
    assert calibration(people, noisy, parse_least(f"kappa {found.low - 1e-3:.6f}")).passed
    assert not calibration(people, noisy, parse_least(f"kappa {between:.6f}")).passed
    few = Qrels.of({q: PEOPLE[q] for q in QUERIES[:5]})  # 30 pairs, and a query too few for an interval
    refused = calibration(few, good, parse_least("kappa 0.1"))
    assert not refused.passed
    assert "30 pairs of 6 queries are needed" in refused.sentence()
    assert (
        "no pair is judged"
        in calibration(people, Qrels.of({"x": {"y": 1}}), parse_least("kappa 0")).sentence()
    )
    constant = Qrels.of({q: dict.fromkeys(DOCS, 1) for q in QUERIES})
    assert not calibration(
        constant, constant, parse_least("binary kappa -1")
    ).passed  # undefined is not enough


@settings(max_examples=4)
@given(st.integers(0, 10_000))
def test_scores_behind_the_gate_are_of_layers_or_of_people_alone(tmp_path_factory, seed):
    """By loops over the first ten places: whose label each has."""
    folder = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(seed)
    run = {q: rng.permutation(DOCS).tolist() for q in QUERIES}
    scores = weir.evaluate(PEOPLE, run, ["P@10", "nDCG@10"], labels=GOOD)
    both = {q: GOOD[q] | PEOPLE[q] for q in QUERIES}
    expected, alone = (weir.evaluate(judged, run, ["P@10", "nDCG@10"]) for judged in (both, PEOPLE))
    assert scores.labels.calibrated
    assert scores.means() == expected.means()  # the query that the model alone judged does not count
    assert np.array_equal(scores.labels.people, alone.values)
    of_people = sum(d in PEOPLE[q] for q in QUERIES for d in run[q][:10])
    places = sum(d in both[q] for q in QUERIES for d in run[q][:10])
    assert scores.labels.share == pytest.approx(1 - of_people / places, abs=1e-12)
    scores.save(folder / "scores.json")
    kept = weir.Scores.load(folder / "scores.json")
    assert (kept.labels.sentence, kept.labels.share) == (scores.labels.sentence, scores.labels.share)
    assert np.array_equal(kept.people_means(), scores.people_means())
    refused = weir.evaluate(PEOPLE, run, ["P@10", "nDCG@10"], labels=BAD)
    assert refused.means() == alone.means()
    assert not refused.labels.calibrated
    assert "by people's labels alone" in refused.labels.sentence


def test_judgments_of_a_model_among_peoples_are_not_peoples():
    mixed = {"query_id": [], "doc_id": [], "relevance": [], "origin": []}
    for query, judged in PEOPLE.items():
        for n, (doc, grade) in enumerate(judged.items()):
            for name, value in zip(
                mixed, (query, doc, grade, "human" if n < 5 else "llm:small"), strict=True
            ):
                mixed[name].append(value)
    qrels = weir.evaluate(mixed, RUN, ["P@3"])
    assert "16.7% of the judgments" in qrels.labels.sentence
    assert "labels: 16.7% of the judgments" in repr(qrels)
    behind = weir.evaluate(mixed, RUN, ["P@3"], labels=GOOD)
    people = {q: {d: g for d, g in judged.items() if d in DOCS[:5]} for q, judged in PEOPLE.items()}
    assert behind.labels.people.mean() == pytest.approx(weir.evaluate(people, RUN, ["P@3"])["P@3"].mean)
    assert "8 judgments of QRELS are a model's by their origin" in behind.labels.sentence
    assert uncalibrated(Qrels.of(PEOPLE).labelled("human")) is None
    with pytest.raises(BadValue, match="none of the judgments is of people"):
        gated(Qrels.of(PEOPLE).labelled("llm:x"), Qrels.of(GOOD), parse_least("kappa 0"))


def test_the_command_says_it_in_every_form(tmp_path, capsys):
    Qrels.of(PEOPLE).save(tmp_path / "people.tsv")
    Qrels.of(GOOD).labelled("llm:good").save(tmp_path / "good.tsv")
    Qrels.of(BAD).save(tmp_path / "bad.tsv")
    Run.of(RUN).save(tmp_path / "one.trec")
    people, good, bad, run = (str(tmp_path / n) for n in ("people.tsv", "good.tsv", "bad.tsv", "one.trec"))

    def call(*options):
        code = main(["eval", people, run, "-m", "P@3", *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    code, out, _ = call("--model-labels", good)
    assert code == 0
    assert "P@3 by people" in out
    assert "labels: good judges what people left open: binary kappa 1.0000" in out
    [row] = [json.loads(line) for line in call("--model-labels", good, "--json")[1].splitlines()]
    scores = weir.evaluate(people, run, ["P@3"], labels=good)
    assert (row["mean"], row["people"]) == (scores["P@3"].mean, float(scores.people_means()[0]))
    assert (row["model_share"], row["labels"]) == (scores.labels.share, scores.labels.sentence)
    for form in ("--markdown", "--latex", "--html", "--csv"):
        assert "judges what people left open" in call("--model-labels", good, form)[1]
    code, out, _ = call("--model-labels", bad)
    assert (code, "not calibrated" in out, "by people\n" in out) == (0, True, False)
    assert "note: labels: bad: not calibrated" in call("--model-labels", bad, "--per-query")[2]
    code, _, err = call("--model-labels", good, "--p-mrr", "a:b")
    assert (code, "--p-mrr takes the judgments as they are" in err) == (2, True)
    code, _, err = call("--model-labels", str(tmp_path / "none.tsv"))
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.real
def test_published_judges_of_dl19_fall_on_both_sides_of_the_default(shared):
    labels = shared / "data" / "llm-judgments" / "methods.dl19.tsv.gz"
    people = shared / "data" / "trec-dl" / "qrels" / "qrels.dl19-passage.txt"
    run = shared / "data" / "trec-dl" / "runs" / "dl19" / "BM25.trec.gz"
    found = {name: weir.evaluate(people, run, ["nDCG@10"], labels=f"{labels}#{name}").labels
             for name in ("umbrela_gpt4o", "umbrela_llama3.2")}  # fmt: skip
    assert [use.calibrated for use in found.values()] == [True, False]
    assert (
        "binary kappa 0.5203 [0.4320, 0.6011] on 9,260 pairs of 43 queries" in found["umbrela_gpt4o"].sentence
    )


def test_a_folder_of_results_says_that_a_model_judged(tmp_path, capsys):
    folder = write_collection(tmp_path / "mine")
    path = folder / "qrels" / "test.tsv"
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    marked = [f"{row}\t{'llm:small' if n == 0 else 'human'}" for n, row in enumerate(rows)]
    path.write_text("\n".join([f"{head}\torigin", *marked]) + "\n", encoding="utf-8")
    out = str(tmp_path / "results")
    assert main(["run", "-d", str(folder), "-s", "bm25", "-m", "nDCG@10", "-o", out, "--quiet"]) == 0
    said = f"labels: {100 / len(rows):.1f}% of the judgments"
    assert said in capsys.readouterr().out
    assert main(["results", out]) == 0
    assert said in capsys.readouterr().out
    assert weir.results(out)[0].labels
