"""What a value shows, saves and turns into, and that it does so wherever it comes from."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import weir
from weir import nDCG
from weir.core.frames import FRAMES
from weir.core.hooks import Hook
from weir.errors import BadValue, FormatError, UnknownName, WeirError

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"b": 2, "c": 1}, "q3": {"a": 1}}
RUN = {"q1": ["a", "b"], "q2": ["c", "x", "b"]}


@pytest.fixture
def scores():
    return weir.evaluate(QRELS, RUN, [nDCG @ 10, "recip_rank", "gm_map"])


ENTRANCES = [
    "weir.Run.of(RUN)",
    "weir.Run.load(at / 'run.trec')",
    "weir.fuse([RUN, RUN])",
    "weir.BM25().index(weir.Corpus.of({'a': 'red wine'})).search(weir.Queries.of({'q': 'wine'}), k=5)",
    "weir.Qrels.of(QRELS)",
    "weir.Qrels.load(at / 'qrels')",
    "weir.load('brook-facts').qrels",
    "weir.labels.IntentQrels.of({'q1': {'red': {'a': 1}, 'blue': {'b': 1}}})",
    "weir.evaluate(QRELS, RUN, 'nDCG@10')",
    "weir.Scores.load(at / 'scores.json')",
    "weir.evaluate(QRELS, RUN, 'nDCG@10').by('prefix:1')",
    "pickle.loads((at / 'run.pickle').read_bytes())",
    "pickle.loads((at / 'scores.pickle').read_bytes())",
]
FRESH = f"""
import os, pickle, sys
from pathlib import Path
import numpy
import weir
QRELS, RUN, at = {QRELS}, {RUN}, Path(sys.argv[1])
for entrance in {ENTRANCES}:
    sys.stdout.flush()
    if os.fork() == 0:  # a process that has imported nothing of weir yet
        assert not any(name.startswith(("weir.files", "weir.stats")) for name in sys.modules)
        value = eval(entrance)
        shown = repr(value)
        assert shown.startswith("<") or "nDCG@10" in shown, shown
        if "Scores" in type(value).__name__:
            assert value.tables() and isinstance(value.notes(), tuple)
            assert "<table" in value._repr_html_()
        if "Grouped" not in type(value).__name__:
            value.save(at / "saved.json")
            assert type(value).load(at / "saved.json").to_dict() == value.to_dict()
        os._exit(0)
    assert os.wait()[1] == 0, entrance
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each value is made in a process of its own")
def test_a_value_reads_writes_and_shows_itself_wherever_it_comes_from(tmp_path, scores):
    weir.Run.of(RUN).save(tmp_path / "run.trec")
    weir.Qrels.of(QRELS).save(tmp_path / "qrels")
    scores.save(tmp_path / "scores.json")
    for name, value in (("run", weir.Run.of(RUN)), ("scores", scores)):
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(value))
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_hook_that_no_module_fills_says_so():
    with pytest.raises(WeirError, match="no module is imported that is for dreaming; import weir"):
        Hook[[], None]("dreaming")()


def test_scores_show_a_table(scores):
    assert repr(scores).split("\n")[0].split() == ["measure", "mean", "95%", "interval", "queries"]
    assert re.search(r"nDCG@10 +0\.\d{4} +- +3", repr(scores))
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
    for name, expected in (
        ("other.json", "scores as Scores.save writes them"),
        ("absent.json", "an existing file"),
    ):
        with pytest.raises(FormatError, match=f"expected .*{expected}"):
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
        weir.Run.of(RUN).to_frame("panda")


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
