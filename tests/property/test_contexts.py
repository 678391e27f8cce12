"""Measures of what a generator is given: plain loops, nuggetizer's scores, and nugget banks read from files."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir.cli import main
from weir.core.intents import IntentQrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError
from weir.files.intents import read_intents
from weir.measures import parse_measure, score_run

BANK = [
    {"qid": "q1", "nuggets": [{"text": "is a dam", "importance": "vital"}, {"text": "made of reeds", "importance": "okay"}]},
    {"qid": "q1", "docid": "d1", "nuggets": [{"text": "is a dam", "assignment": "partial_support"}]},
    {"qid": "q1", "docid": "d2", "nuggets": [
        {"text": "is a dam", "assignment": "support"}, {"text": "catches fish", "importance": "vital", "assignment": "not_support"}]},
    {"qid": "q2", "nuggets": [{"text": "of London", "importance": "okay", "documents": ["d3"]}]},
    {"qid": "q3", "nuggets": [{"text": "nobody looked", "importance": "vital"}]},
]  # fmt: skip
SETTINGS = [
    "",
    "importance='vital'",
    "importance='weighted'",
    "partial=0.5",
    "importance='vital', partial=0.5",
]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score(nuggets, importance, partial):
    """calculate_nugget_scores of nuggetizer 0.0.5, and its weighted mean, of (weight, best assignment) of each."""
    if importance != "weighted":
        nuggets = [(1.0, grade) for weight, grade in nuggets if importance == "all" or weight == 1]
    total = sum(weight for weight, _ in nuggets)
    full = sum(weight for weight, grade in nuggets if grade >= 1)
    part = sum(weight for weight, grade in nuggets if 0 < grade < 1)
    return (full + partial * part) / total if total else 0.0


GRADES = st.sampled_from([0, 0.5, 1])
NUGGET = st.tuples(st.sampled_from([0.5, 1.0]), st.dictionaries(st.sampled_from("abcde"), GRADES, max_size=4))


@given(
    st.dictionaries(
        st.sampled_from("xyz"), st.dictionaries(st.sampled_from("1234"), NUGGET, min_size=1), min_size=1
    ),
    st.permutations("abcdef"),
    st.integers(1, 6),
    st.sampled_from(["all", "vital", "weighted"]),
    st.sampled_from([0.0, 0.5]),
)
def test_nugget_recall_is_nuggetizers_score_of_the_first_documents(judged, ranking, k, importance, partial):
    judged = {q: bank for q, bank in judged.items() if any(docs for _, docs in bank.values())}
    rows = [
        (q, n, d, g) for q, bank in judged.items() for n, (_, docs) in bank.items() for d, g in docs.items()
    ]
    weights = {(q, n): weight for q, bank in judged.items() for n, (weight, _) in bank.items()}
    if not rows:
        return
    qrels = IntentQrels.from_rows(*map(list, zip(*rows, strict=True)), weights)
    measure = parse_measure(f"NuggetRecall(importance='{importance}', partial={partial})@{k}")
    scores = score_run(qrels, Run.of({key: list(ranking) for key in judged}), measure)
    for query, found in zip(scores.queries.tolist(), scores.values[0].tolist(), strict=True):
        best = [
            (weight, max((docs.get(d, 0) for d in ranking[:k]), default=0))
            for weight, docs in judged[query].values()
        ]
        assert found == pytest.approx(score(best, importance, partial), abs=1e-15)


@pytest.mark.parametrize("setting", SETTINGS)
def test_its_mean_over_ties_is_that_of_every_order(tmp_path, setting):
    qrels = read_intents(written(tmp_path / "nuggets.jsonl", BANK))
    measure = f"NuggetRecall({setting})@2"
    tied = score_run(
        qrels, Run.of({"q1": {"d1": 1.0, "d2": 1.0, "d3": 1.0}}), measure, parse("ties=expected")
    )
    every = [
        score_run(qrels, Run.of({"q1": list(order)}), measure).values[0, 0]
        for order in permutations(["d1", "d2", "d3"])
    ]
    assert tied.values[0, 0] == pytest.approx(sum(every) / len(every), abs=1e-15)


def parse(text):
    return weir.measures.parse_conventions(text)


def test_a_bank_of_nuggets_and_assignments_is_read_and_written(tmp_path):
    qrels = read_intents(written(tmp_path / "nuggets.jsonl", BANK))
    assert qrels.numbered.queries.tolist() == ["q1", "q2"]
    assert dict(zip(qrels.names, qrels.weight.tolist(), strict=True)) == {
        "is a dam": 1.0, "made of reeds": 0.5, "catches fish": 1.0, "of London": 0.5,
    }  # fmt: skip
    run = Run.of({"q1": ["d1", "d9", "d2"], "q2": ["d3"]})
    of = {
        "NuggetRecall@1": [0, 1],
        "NuggetRecall(partial=0.5)@1": [0.5 / 3, 1],
        "NuggetRecall@3": [1 / 3, 1],
        "NuggetRecall(importance='vital')@3": [1 / 2, 0],
        "NuggetRecall(importance='weighted')@3": [1 / 2.5, 1],
        "StRecall@3": [1, 1],
        "ContextPrecision": [1 / 3, 1],
        "ContextPrecision(rel=0.5)": [(1 + 2 / 3) / 2, 1],
    }
    scores = score_run(qrels, run, list(of))
    assert scores.values.tolist() == [pytest.approx(values) for values in of.values()]
    qrels.save(tmp_path / "again.jsonl")
    again = score_run(IntentQrels.load(tmp_path / "again.jsonl"), run, list(of))
    assert again.values.tolist() == scores.values.tolist()
    with pytest.raises(BadValue, match="jsonl"):
        qrels.save(tmp_path / "again.qrels")
    run.save(tmp_path / "run.trec")
    assert (
        main(
            ["eval", str(tmp_path / "nuggets.jsonl"), str(tmp_path / "run.trec"), "-m", "context_precision@3"]
        )
        == 0
    )
    assert weir.evaluate(tmp_path / "nuggets.jsonl", run, "context_recall@3").means() == {
        "NuggetRecall@3": pytest.approx(2 / 3)
    }


def test_columns_of_intents_are_nuggets_of_one_importance(tmp_path):
    (tmp_path / "qrels").write_text("q 1 a 1\nq 2 b 0\nq 3 a 2\n")
    scores = score_run(
        read_intents(tmp_path / "qrels"), Run.of({"q": ["a"]}), ["NuggetRecall@1", "StRecall@1"]
    )
    assert scores.values[:, 0].tolist() == [pytest.approx(2 / 3), 1.0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"nuggets": []}], "query without qid"),
        ([{"qid": "q", "nuggets": "all"}], "no list of nuggets"),
        ([{"qid": "q", "nuggets": [{"importance": "vital"}]}], "nugget without text"),
        ([{"qid": "q", "nuggets": [{"text": "t", "importance": "minor"}]}], "importance 'minor'"),
        ([{"qid": "q", "nuggets": [{"text": "t", "documents": [["d"]]}]}], "a document that is list"),
        ([{"qid": "q", "docid": {}, "nuggets": [{"text": "t", "assignment": "support"}]}], "document without docid"),
        ([{"qid": "q", "nuggets": [{"text": "t", "documents": "d"}]}], "documents that are str"),
        ([{"qid": "q", "nuggets": [{"text": "t", "documents": {"d": "x"}}]}], "no finite number|not a finite"),
        ([{"qid": "q", "docid": "d", "nuggets": [{"text": "t", "assignment": "maybe"}]}], "assignment 'maybe'"),
        ([{"qid": "q", "answer_text": "a", "nuggets": [{"text": "t", "assignment": "support"}]}], "assigned to an answer"),
        ([{"qid": "q", "nuggets": [{"text": "t"}]}], "no document for any nugget"),
        ([{"qid": "q", "nuggets": [{"text": "t", "documents": {"d": 1}}, {"text": "t", "documents": {"d": 2}}]}], "gives 1"),
        ([{"qid": "q", "nuggets": [{"text": "t", "importance": w, "documents": ["d"]} for w in ("vital", "okay")]}], "gives 1"),
    ],
)  # fmt: skip
def test_what_is_no_bank_is_refused_in_one_line(tmp_path, rows, said):
    with pytest.raises(FormatError, match=said):
        read_intents(written(tmp_path / "bank.jsonl", rows))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("context_precision@5", "ContextPrecision@5"),
        ("contextual_precision", "ContextPrecision"),
        ("context_recall@5", "NuggetRecall@5"),
        ("contextual_recall", "NuggetRecall"),
        ("id_based_context_precision", "SetP"),
        ("id_based_context_recall", "R"),
    ],
)
def test_names_of_ragas_and_deepeval_are_known(name, ours):
    assert str(parse_measure(name)) == ours


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([0, 0, 1, 1, 0], (1 / 3 + 2 / 4) / 2), ([1, 0, 1], (1 + 2 / 3) / 2), ([1, 0, 0], 1), ([0, 0], 0)],
)
def test_context_precision_is_the_formula_of_ragas(verdicts, expected):
    ranking = [f"d{i}" for i in range(len(verdicts))]
    grades = dict(zip(ranking, verdicts, strict=True)) | {"missed": 1}
    assert weir.evaluate({"q": grades}, {"q": ranking}, "ContextPrecision").means()[
        "ContextPrecision"
    ] == pytest.approx(expected)


@pytest.mark.real
def test_trec_rags_file_of_assignments_is_read(shared):
    folder = shared / "data" / "interop" / "trec-rag"
    qrels = read_intents(folder / "nuggetizer.assignments.retrieval.jsonl")
    assert qrels.weight.tolist() == [1.0, 0.5]
    scores = score_run(
        qrels, Run.of({"q1": ["d1"]}), ["NuggetRecall@1", "NuggetRecall(importance='weighted')@1"]
    )
    assert scores.values[:, 0].tolist() == [0.5, pytest.approx(2 / 3)]
    for name, said in (
        ("nuggetizer.nuggets", "no document"),
        ("nuggetizer.assignments.answers", "answer"),
        ("tira.nuggets.v3", "no document"),
    ):
        with pytest.raises(FormatError, match=said):
            read_intents(folder / f"{name}.jsonl")
