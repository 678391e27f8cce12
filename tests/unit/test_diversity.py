"""Judgments of intents: reading, refusing, and the measures worked out by hand."""

from __future__ import annotations

import math

import pytest

import weir
from weir.cli import main
from weir.core.intents import IntentQrels
from weir.core.judged import joined
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError
from weir.experiment.comparing import scores_of_files
from weir.files.intents import intents_from, read_intents
from weir.measures import score_run
from weir.measures.evaluate import join_run, judgments_for
from weir.measures.measure import parse_measure

# Two intents: a serves both, b the first, c the second; d and e serve none.
QRELS = {"q": {"1": {"a": 1, "b": 1, "d": 0}, "2": {"a": 1, "c": 2, "e": 0}}}
BOTH = 2 / math.log2(2)


def value(measure, ranking, qrels=QRELS):
    run = {"q": {document: -float(rank) for rank, document in enumerate(ranking)}}
    return score_run(IntentQrels.of(qrels), Run.of(run), measure).values[0, 0]


@pytest.mark.parametrize(
    ("measure", "ranking", "expected"),
    [
        ("StRecall@1", "ba", 1 / 2),
        ("StRecall@2", "ba", 1.0),
        ("StRecall", "xde", 0.0),
        ("P_IA@2", "ab", (2 / 2 + 1 / 2) / 2),
        ("P_IA(rel=2)@2", "ac", 1 / 2),  # one intent is left
        ("AP_IA", "axb", ((1 + 2 / 3) / 2 + 1 / 2) / 2),
        ("alpha_nDCG@1", "b", 1 / 2),
        ("alpha_nDCG@2", "ba", (1 + 1.5 / math.log2(3)) / (2 + 0.5 / math.log2(3))),
        ("alpha_nDCG(alpha=0.0)", "abc", 1.0),
        ("alpha_DCG@1", "a", 1.0),
        ("alpha_DCG@2", "ab", (2 + 0.5 / math.log2(3)) / (2 + 1 / math.log2(3))),
        ("ERR_IA@2", "xa", (2 / 2) / (2 + 1 / 2)),
        ("nERR_IA@2", "xa", (2 / 2) / (2 + 0.5 / 2)),
        ("NRBP", "a", (1 - 0.25) * 2 / 2),
        ("NRBP(alpha=0.0, beta=0.25)", "xb", (1 - 0.25) * 0.25 / 2),
        ("nNRBP@1", "b", 1 / 2),
    ],
)
def test_worked_by_hand(measure, ranking, expected):
    assert value(measure, ranking) == pytest.approx(expected, rel=1e-14)


def test_of_documents_that_add_as_much_the_larger_identifier_is_ideal_first():
    qrels = {"q": {"1": {"a": 1, "b": 1}, "2": {"b": 1, "c": 1}, "3": {"a": 1, "c": 1}}}
    # Each document serves two intents. After c (intents 2, 3) both others add 1.5: b comes, then a.
    _, ranks = joined(Run.of({}), IntentQrels.of(qrels)).intents.ideal(None, 1, 0.5)
    assert ranks.tolist() == [2, 3, 1, 2, 1, 3]


def test_intents_without_a_relevant_document_do_not_count():
    more = {"q": QRELS["q"] | {"3": {"a": 0, "x": -1}}}
    for measure in ("StRecall", "P_IA@2", "ERR_IA@2", "alpha_nDCG@2", "NRBP", "AP_IA"):
        assert value(measure, "xab", more) == value(measure, "xab")
        assert value(measure, "ab", {"q": {"1": {"a": 0}}}) == 0.0


FILE = "# topic intent document grade\nq1 1 a 1\nq1 2 a 0\nq1\t2\tb 2\n\nq1 1 a 1\nq2 1 c +1\nq2 0 d -1\n"


def test_a_file_has_the_intent_in_its_second_column(tmp_path):
    path = tmp_path / "qrels"
    path.write_text(FILE)
    qrels = read_intents(path)
    assert qrels.numbered.queries.tolist() == ["q1", "q2"]
    assert qrels.query.tolist() == [0, 0, 1, 1]
    assert qrels.several()
    best = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1, "d": -1}}
    rows = zip(qrels.numbered.query_of_row(), qrels.numbered.doc, qrels.best(), strict=True)
    assert {(qrels.numbered.queries[q], qrels.numbered.docs[d]): g for q, d, g in rows} == {
        (q, d): g for q, row in best.items() for d, g in row.items()
    }
    nested = {"q1": {"1": {"a": 1}, "2": {"a": 0, "b": 2}}, "q2": {"1": {"c": 1}, "0": {"d": -1}}}
    run = Run.of({"q1": {"b": 2.0, "a": 1.0}, "q2": {"d": 2.0, "c": 1.0}})
    for given in (nested, str(path), qrels):
        scores = weir.evaluate(given, run, ["alpha_nDCG@5", "nDCG@5"])
        assert (
            scores.values.tolist()
            == score_run(intents_from(nested), run, ["alpha_nDCG@5", "nDCG@5"]).values.tolist()
        )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("q1 1 a", r"qrels, line 2: found 'q1 1 a'; expected 4 columns \(query intent document grade\)"),
        ("q1 1 a 1 x", "4 columns"),
        ("q1 1 a inf", "line 2: found the grade 'inf'; expected a number within ±16384"),
        ("q1 1 a 99999", "number within"),
        ("q1 1 a -", "a number"),
        ("q1 1 a ²", "a number"),
        ("q9 9 z 1", r"line 2: found grade 1 for a document that line 1 gives grade 0 for the same intent"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "qrels"
    path.write_text(f"q9 9 z 0\n{line}\n", encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_intents(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "qrels"
    path.write_bytes(b"q1 1 a\xff 1\n")
    with pytest.raises(FormatError, match="UTF-8"):
        read_intents(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"q": {"a": 1}},
            r"query 'q', intent 'a': found int; expected \{document: grade\}, or relevant documents",
        ),
        ({"q": 1}, "query 'q': found int"),
        ({"q": {"1": {"a": "x"}}}, "query 'q', intent '1', document 'a': grade 'x' is not a finite number"),
        (3, "judgments of intents are int"),
    ],
)
def test_other_judgments_are_refused(given, message):
    with pytest.raises(BadValue, match=message):
        intents_from(given)


def test_aligned_rows_are_checked():
    with pytest.raises(BadValue, match="query 'q', intent '1' judges document 'a' twice"):
        IntentQrels.from_rows(["q", "q"], ["1", "1"], ["a", "a"], [1, 1])
    with pytest.raises(BadValue, match="grades run from -20000 to 1"):
        IntentQrels.from_rows(["q", "q"], ["1", "1"], ["a", "b"], [1, -20000])
    many = [f"d{i}" for i in range(2**15)]
    with pytest.raises(BadValue, match="query 'q' has more than 32,767 judged documents"):
        IntentQrels.from_rows(["q"] * len(many), ["1"] * len(many), many, [1] * len(many))
    assert len(IntentQrels.from_rows([], [], [], [])) == 0


@pytest.mark.parametrize(
    "measure", ["alpha_nDCG@2", "StRecall@1", "ERR_IA@2", "P_IA@1", "NuggetRecall@1", "nDCG@2"]
)
def test_a_document_below_zero_for_every_intent_leaves_condensed_lists(measure):
    """A grade below 0 is a document of the pool that nobody judged; 0 for one intent is a judgment."""
    qrels = {"q": {"1": {"n": -1, "a": 1, "m": -1}, "2": {"n": -2, "c": 1, "m": 0}}}
    assert value(f"condensed({measure})", "xna", qrels) == value(measure, "a", qrels) > 0
    assert value(f"condensed({measure})", "mna", qrels) == value(measure, "ma", qrels)


def test_judgments_of_documents_have_no_intents():
    judged = joined(Run.of({"q": {"a": 1.0}}), Qrels.of({"q": {"a": 1}}))
    for measure in ("alpha_nDCG@10", "StRecall@10", "condensed(NRBP)"):
        with pytest.raises(BadValue, match="of documents, not of intents"):
            parse_measure(measure).per_query(judged)
    assert judged.intents is None


def test_the_command_line_reads_the_second_column_when_a_measure_needs_it(tmp_path, capsys):
    (tmp_path / "qrels").write_text(FILE)
    (tmp_path / "run").write_text("q1 Q0 b 1 2 x\nq1 Q0 a 2 1 x\nq2 Q0 c 1 1 x\n")
    (tmp_path / "other").write_text("q1 Q0 a 1 2 x\nq2 Q0 d 1 1 x\n")
    files = [str(tmp_path / name) for name in ("qrels", "run")]
    assert main(["eval", *files, "-m", "StRecall@1", "-m", "P@1", "--per-query"]) == 0
    shown = capsys.readouterr().out.split("\n")
    assert shown[:4] == ["StRecall@1\tq1\t0.5", "StRecall@1\tq2\t1.0", "P@1\tq1\t1.0", "P@1\tq2\t1.0"]
    wanted = (parse_measure("StRecall@1"),)
    assert join_run(tmp_path / "run", judgments_for(tmp_path / "qrels", wanted)).intents is not None
    scores, _ = scores_of_files(
        tmp_path / "qrels", [tmp_path / "run", tmp_path / "other"], ["StRecall@1", "AP"]
    )
    assert {name: one.of("StRecall@1").tolist() for name, one in scores.items()} == {
        "run": [0.5, 1],
        "other": [0.5, 0],
    }
    # Without such a measure the document a has two grades.
    assert main(["eval", *files, "-m", "P@1"]) == 2
    assert "line 2" in capsys.readouterr().err
