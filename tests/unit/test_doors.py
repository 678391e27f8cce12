"""The values' faces: every door opens, and what a value shows, saves and turns into."""

from __future__ import annotations

import copy
import math
import re
from pathlib import Path

import numpy as np
import pytest

import weir
from weir import nDCG
from weir.core.doors import DOORS, opened
from weir.core.frames import FRAMES, frame_of
from weir.errors import BadValue, FormatError, UnknownName

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"b": 2, "c": 1}, "q3": {"a": 1}}
RUN = {"q1": ["a", "b"], "q2": ["c", "x", "b"]}
CORE = Path(weir.__file__).parent / "core"


@pytest.fixture
def scores():
    return weir.evaluate(QRELS, RUN, [nDCG @ 10, "recip_rank", "gm_map"])


@pytest.mark.parametrize("door", DOORS)
def test_every_door_opens(door):
    assert callable(opened(door))


def test_every_door_is_used_and_is_the_only_way_up():
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (CORE.parent / "core").glob("*.py")
        if path.name != "doors.py"
    )
    assert set(re.findall(r'opened\(\s*"([^"]+)"', text)) == set(DOORS)


def test_scores_show_a_table(scores):
    assert repr(scores).split("\n")[0].split() == ["measure", "mean", "95%", "interval", "queries"]
    assert re.search(r"nDCG@10 +0\.\d{4} +0\.\d{4} to 1\.0000 +3", repr(scores))
    assert "note: 1 of 3 judged queries are not answered and score 0" in repr(scores)
    html = scores._repr_html_()
    assert "nDCG@10" in html
    assert "95% interval" in html


def test_values_of_a_measure_are_a_mapping(scores):
    values = scores[nDCG @ 10]
    assert (values.measure, list(values), len(values)) == ("nDCG@10", ["q1", "q2", "q3"], 3)
    assert values["q1"] == 1.0
    assert "q9" not in values
    assert dict(values) == values.to_dict() == scores.to_dict()["nDCG@10"]
    assert values.to_numpy().tolist() == np.asarray(values).tolist() == list(values.values())
    assert values.mean == scores.means()["nDCG@10"] == scores.mean_values()[0]
    assert repr(values) == f"<nDCG@10: mean {values.mean:.4f} over 3 queries>"
    with pytest.raises(KeyError):
        values["q9"]


def test_scores_are_found_by_any_name_of_the_measure(scores):
    assert list(scores) == ["nDCG@10", "RR", "gmAP"]
    for name in ("nDCG@10", "ndcg_cut_10", nDCG @ 10):
        assert scores[name].measure == "nDCG@10"
    assert "recip_rank" in scores
    assert scores["MRR"].mean == scores["RR"].mean
    assert set(dict(scores)) == set(scores.means())
    assert (
        scores["gmAP"].mean
        == scores.means()["gmAP"]
        == math.exp(np.log(np.maximum(weir.evaluate(QRELS, RUN, "AP").of("AP"), 1e-5)).mean())
    )
    for name in ("P@3", "nothing"):
        with pytest.raises(UnknownName, match=f"no measure among these scores named '{name}'"):
            scores[name]


def test_scores_survive_a_file_bit_for_bit(scores, tmp_path):
    undefined = weir.evaluate(QRELS, RUN, ["AP", "nDCG(gain='exp')@2"], "missing=answered-only")
    for one in (scores, undefined):
        one.save(tmp_path / "scores.json")
        again = weir.Scores.load(tmp_path / "scores.json")
        assert again.values.tobytes() == one.values.tobytes()
        assert (again.low.tobytes(), again.high.tobytes()) == (one.low.tobytes(), one.high.tobytes())
        assert repr(again) == repr(one)
        assert (again.measures, again.queries, again.answered.tolist(), again.asked) == (
            one.measures, one.queries, one.answered.tolist(), one.asked)  # fmt: skip
    (tmp_path / "other.json").write_text('{"measures": []}')
    for name in ("other.json", "absent.json"):
        with pytest.raises(FormatError, match=r"expected scores as Scores\.save writes them"):
            weir.Scores.load(tmp_path / name)


@pytest.mark.parametrize("library", FRAMES)
def test_frames_hold_the_values(library, scores):
    frame = scores.to_frame(library)
    columns = {
        name: list(column)
        for name, column in (
            frame.to_pydict()
            if library == "arrow"
            else frame.to_dict("list")
            if library == "pandas"
            else frame.to_dict(as_series=False)
        ).items()
    }
    assert columns == {"query": ["q1", "q2", "q3"], **{m: list(scores[m].to_dict().values()) for m in scores}}
    assert len(scores["RR"].to_frame(library)) == 3
    assert weir.Run.of(weir.Run.of(RUN).to_dict()).to_frame(library).shape == (5, 4)
    assert weir.Qrels.of(QRELS).to_frame(library).shape == (5, 3)


def test_a_frame_of_another_library_is_refused():
    with pytest.raises(UnknownName, match="no library of frames named 'panda'; did you mean pandas"):
        frame_of({}, "panda")


def test_runs_and_judgments_say_what_they_are_and_survive_files(tmp_path):
    run, qrels = weir.Run.of(RUN, "mine"), weir.Qrels.of(QRELS)
    assert repr(run) == "<Run mine: 2 queries, 5 documents returned>"
    assert repr(qrels) == "<Qrels: 3 queries, 5 judgments, 4 of them relevant>"
    for value in (run, qrels):
        assert "<caption>" in value._repr_html_()
        assert "class=" in value._repr_html_()
        assert ">a<" in value._repr_html_()
    for ending in (".trec", ".json", ".csv", ".tsv", ".parquet"):
        run.save(tmp_path / f"run{ending}")
        qrels.save(tmp_path / f"qrels{ending}")
        assert weir.Run.load(tmp_path / f"run{ending}").to_dict() == run.to_dict()
        assert weir.Qrels.load(tmp_path / f"qrels{ending}").to_dict() == qrels.to_dict()
    assert "Run run: 0 queries" in weir.Run.of({})._repr_html_()


def test_judgments_of_intents_keep_the_names_of_intents(tmp_path):
    given = {"q1": {"red": {"a": 1, "b": 0}, "blue": {"a": 2}}, "q2": {"red": {"c": 1}}}
    qrels = weir.labels.IntentQrels.of(given)
    assert qrels.to_dict() == given
    assert repr(qrels) == "<IntentQrels: 2 queries, 3 intents, 4 judgments>"
    assert qrels.to_frame().columns.tolist() == ["query", "intent", "doc", "grade"]
    qrels.save(tmp_path / "qrels")
    assert weir.labels.IntentQrels.load(tmp_path / "qrels").to_dict() == given
    with pytest.raises(BadValue, match="cannot hold white space"):
        weir.labels.IntentQrels.of({"q 1": {"i": {"a": 1}}}).save(tmp_path / "other")


def test_documents_and_queries_say_how_many_they_are():
    ds = weir.load("brook-facts")
    assert re.fullmatch(r"<Corpus: \d+ documents, with titles>", repr(ds.corpus))
    assert re.fullmatch(r"<Queries: \d+>", repr(ds.queries))
    assert len(ds.queries.to_dict()) == len(ds.queries)
    assert "judged queries" in repr(weir.measures.Judged.of(weir.Run.of(RUN), weir.Qrels.of(QRELS)))


def test_identifiers_are_escaped_in_html():
    run = weir.Run.of({"<script>": ["<b>x</b>"]})
    assert "<script>" not in copy.copy(run)._repr_html_()
