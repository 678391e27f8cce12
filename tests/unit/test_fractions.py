"""Grades with fractions and where judgments come from: kept by values and files, used or refused by each measure."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weir
from weir.cli.main import main
from weir.core.judged import Judged
from weir.core.qrels import Origins, Qrels, merge_qrels
from weir.core.run import Run
from weir.datasets.card import judgments_card, judgments_table
from weir.errors import BadValue
from weir.files.frames import qrels_from
from weir.files.intents import read_intents
from weir.files.runs import read_qrels
from weir.files.write import write_qrels
from weir.measures import MEASURES, parse_measure, score_run

JUDGED = {"q1": {"a": 0.5, "b": 1, "c": 0}, "q2": {"a": 2.25, "b": -1}}
RUN = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"b": 2.0, "a": 1.0}}
TABLES = [".csv", ".tsv", ".parquet", ".arrow"]


def labelled() -> Qrels:
    """Judgments with origins, in the order a, b, c of q1 and a, b of q2."""
    return merge_qrels(Qrels.of({"q1": JUDGED["q1"]}).labelled("human"), Qrels.of(JUDGED).labelled("llm:x"))


def test_whole_grades_take_two_bytes_and_fractions_eight():
    assert Qrels.of({"q": {"a": 1.0, "b": np.float32(2)}}).grade.dtype == np.int16
    fractional = Qrels.of(JUDGED)
    assert (fractional.grade.dtype, fractional.to_dict()) == (np.float64, JUDGED)
    assert [type(grade) for grade in fractional.to_dict()["q1"].values()] == [float, int, int]
    assert repr(fractional) == "<Qrels: 2 queries, 5 judgments, 3 of them above 0, with fractions>"
    assert fractional.rounded().to_dict() == {"q1": {"a": 1, "b": 1, "c": 0}, "q2": {"a": 2, "b": -1}}
    assert fractional.rounded().grade.dtype == np.int16
    joined = Judged.of(Run.of(RUN), fractional)
    assert (joined.grade.tolist(), joined.ideal.tolist()) == ([0.5, 1, 0, -1, 2.25], [1, 0.5, 0, 2.25, -1])


@pytest.mark.parametrize("text", ["0.5", "1e-3", ".25", "+0.1", "-0.5", "0.30000000000000004", "5E-1"])
@pytest.mark.parametrize("size", [1, 4000])
def test_a_text_is_the_double_that_python_reads(tmp_path, text, size):
    path = tmp_path / "qrels"
    path.write_text("".join(f"q{n} 0 d {text}\nq{n} 0 e 1\n" for n in range(size)))
    assert set(read_qrels(path).grade.tolist()) == {float(text), 1.0}


def test_whole_grades_are_written_as_ever_and_fractions_beside_them_too(tmp_path):
    for ending, lines in (
        (".trec", ["q1 0 a 0.5", "q1 0 b 1", "q1 0 c 0", "q2 0 a 2.25", "q2 0 b -1"]),
        (".csv", ["query_id,doc_id,relevance", "q1,a,0.5", "q1,b,1", "q1,c,0", "q2,a,2.25", "q2,b,-1"]),
        (".json", ['{"q1": {"a": 0.5, "b": 1, "c": 0}, "q2": {"a": 2.25, "b": -1}}']),
    ):
        write_qrels(Qrels.of(JUDGED), tmp_path / f"q{ending}")
        assert (tmp_path / f"q{ending}").read_text().splitlines() == lines


def test_every_measure_says_what_it_makes_of_fractions():
    qrels, run = Qrels.of(JUDGED), Run.of(RUN)
    for name in MEASURES.names():
        definition = MEASURES.get(name)
        assert definition.takes.endswith(".")
        if definition.of in ("intents", "rules", "whole grades"):
            continue
        measure = weir.parse_measure(f"{name}@3" if definition.cutoff == "required" else name)
        assert np.isfinite(score_run(qrels, run, measure).values).all(), name
    for grade in (0.5, 0.75):
        fractional = Qrels.of({"q1": {"a": grade, "b": 1}})
        expected = rf"RnDCG needs whole grades; query 'q1' has a grade of {grade}: round them first"
        with pytest.raises(BadValue, match=expected):
            score_run(fractional, run, "RnDCG")
    assert (
        score_run(qrels.rounded(), run, "RnDCG").values.tolist()
        == score_run(Qrels.of(qrels.rounded().to_dict()), run, "RnDCG").values.tolist()
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("AP(rel=0.5)", None),
        ("AP(rel=1.0)", "AP"),
        ("R(rel=2.0)@5", "R(rel=2)@5"),
        ("P(rel=1e-3)@5", "P(rel=0.001)@5"),
    ],
)
def test_a_level_may_be_a_fraction_and_prints_back(text, printed):
    measure = parse_measure(text)
    assert str(measure) == (printed or text)
    assert parse_measure(str(measure)) == measure


def test_a_cut_off_stays_a_whole_number_and_a_level_a_number():
    for wrong in ("AP(rel='x')", "AP(rel=nan)", "AP(rel=True)", "ERR(max_grade=1.5)@3", "AP(rel=99999.5)"):
        with pytest.raises(BadValue):
            parse_measure(wrong)


def test_a_scale_that_ends_below_a_fraction_is_refused_with_the_next_whole_number():
    with pytest.raises(BadValue, match=r"a grade of 2\.25 with max_grade=2; write max_grade=3"):
        score_run(Qrels.of(JUDGED), Run.of(RUN), "ERR(max_grade=2)@10")


def test_intents_may_have_fractions(tmp_path):
    path = tmp_path / "intents"
    path.write_text("q 1 a 0.5\nq 2 a 1\nq 2 b 0.25\n")
    intents = read_intents(path)
    assert intents.to_dict() == {"q": {"1": {"a": 0.5}, "2": {"a": 1, "b": 0.25}}}
    intents.save(tmp_path / "again")
    assert read_intents(tmp_path / "again").to_dict() == intents.to_dict()
    measures = ["StRecall", "StRecall(rel=0.5)", "nDCG"]
    assert score_run(intents, Run.of({"q": {"b": 2.0, "a": 1.0}}), measures).values[:2].tolist() == [
        [1.0],
        [1.0],
    ]


@pytest.mark.parametrize("ending", TABLES)
def test_origins_are_read_written_and_kept(tmp_path, ending):
    qrels = labelled()
    assert qrels.origin.tolist() == ["human"] * 3 + ["llm:x"] * 2
    assert repr(qrels).endswith("with fractions; 3 human, 2 llm:x>")
    assert qrels.only(np.array([1])).origin.counts() == {"llm:x": 2}
    path = tmp_path / f"q{ending}"
    qrels.save(path)
    again = read_qrels(path)
    assert again.columns() | {"grade": None} == qrels.columns() | {"grade": None}
    assert again.grade.tolist() == qrels.grade.tolist()


def test_what_has_no_place_for_origins_is_written_without_and_said(tmp_path, capsys):
    labelled().save(tmp_path / "q.csv")
    assert main(["data", "convert", str(tmp_path / "q.csv"), str(tmp_path / "q.trec")]) == 0
    assert "where they come from is left out, as trec has no place for it" in capsys.readouterr().out
    assert (tmp_path / "q.trec").read_text().startswith("q1 0 a 0.5\n")
    assert main(["data", "convert", str(tmp_path / "q.csv"), str(tmp_path / "q.tsv")]) == 0
    assert "left out" not in capsys.readouterr().out
    assert read_qrels(tmp_path / "q.tsv").origin.tolist() == labelled().origin.tolist()


def test_a_repeated_row_and_quoted_cells_keep_origins_in_step(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text('qid,docno,label,origin\nq,a,1,x\nq,a,1,y\n\nq,"b",0.5,"one, ""two"""\n')
    qrels = read_qrels(path)
    assert (qrels.docs.take(qrels.doc).tolist(), qrels.origin.tolist()) == (["a", "b"], ["x", 'one, "two"'])


@pytest.mark.parametrize("rows", [3, 30_000])  # many rows of a frame are read through Arrow
def test_frames_have_origins(rows):
    pa = pytest.importorskip("pyarrow")
    columns = {"qid": [f"q{n}" for n in range(rows)], "docno": ["d"] * rows, "rel": [0.5] * rows}
    table = pa.table(columns | {"origin": ["human", None, "llm"] * (rows // 3)})
    assert qrels_from(table).origin.counts() == {name: rows // 3 for name in ("human", "", "llm")}


def test_layers_fill_what_is_open_and_the_first_wins():
    base, other = Qrels.of({"q1": {"a": 0}}), Qrels.of({"q1": {"a": 3, "b": 0.5}, "q0": {"a": 1}})
    assert merge_qrels(base, other).to_dict() == {"q1": {"a": 0, "b": 0.5}, "q0": {"a": 1}}
    assert merge_qrels(other, base).to_dict() == other.to_dict()
    assert merge_qrels(base, other).origin is None
    assert merge_qrels(base, other.labelled("llm")).origin.counts() == {"llm": 2, "": 1}
    assert Origins.of(["a", "b"]).then(Origins.of(["b", "c"])).tolist() == ["a", "b", "b", "c"]


def test_cards_count_grades_and_bands_where_these_are_many():
    assert (
        "2 of grade 0.5"
        in judgments_table(judgments_card("q", Qrels.of({"q": {"a": 0.5, "b": 0.5, "c": 0}}))).text()
    )
    many = judgments_card("q", Qrels.of({"q": {f"d{n}": n / 10 for n in range(25)}}))
    assert (many.relevance, many.pairs[0.1], many.pairs[1]) == ("with fractions, up to 2.4", 1, 1)
    assert (
        "4 between 2 and 3, 1 of grade 2, 9 between 1 and 2, 1 of grade 1, 9 between 0 and 1, 1 of grade 0"
        in judgments_table(many).text()
    )


def test_eval_says_what_counts_as_relevant_and_where_labels_come_from(tmp_path, capsys):
    labelled().save(tmp_path / "q.tsv")
    Run.of(RUN).save(tmp_path / "r.trec")
    assert (
        main(["eval", str(tmp_path / "q.tsv"), str(tmp_path / "r.trec"), "-m", "nDCG@10", "-m", "R@5"]) == 0
    )
    said = capsys.readouterr().err
    assert (
        "1 of 5 judgments have a grade above 0 and below 1, which R@5 does not take for relevant; R(rel=0.5)@5"
        in said
    )
    assert "note: judgments by origin: 3 human, 2 llm:x; above 0: 2 human, 1 llm:x" in said
    assert main(["data", "stats", str(tmp_path / "q.tsv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == {"-1": 1, "0": 1, "0.5": 1, "1": 1, "2.25": 1}


def test_scores_in_the_place_of_judgments_are_noticed(tmp_path, capsys):
    scores = {f"q{n}": {f"d{k}": 12.5 - k - n / 8 for k in range(6)} for n in range(3)}
    (tmp_path / "run.json").write_text(json.dumps(scores))
    (tmp_path / "qrels.json").write_text(json.dumps({q: {"d1": 1} for q in scores}))
    exchanged = ["run.json", "qrels.json"]
    assert main(["eval", *(str(tmp_path / name) for name in exchanged), "-m", "nDCG@10"]) == 2
    error = capsys.readouterr().err
    assert "its scores are grades such as 1, and all grades of each query differ in the judgments" in error
    with pytest.raises(
        BadValue, match="then runs; if these do stand in that order, multiply the scores by 1,000"
    ):
        weir.evaluate(*(tmp_path / name for name in exchanged), "nDCG@10")
    assert main(["eval", str(tmp_path / "run.json"), str(tmp_path / "run.json"), "-m", "nDCG@10"]) == 0
    assert "all grades of each query differ, as scores do; judgments come first" in capsys.readouterr().err
