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
from weir.core.corpus import Corpus
from weir.core.frames import FRAMES
from weir.core.hooks import Hook
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.core.strings import Ids
from weir.errors import BadValue, FormatError, UnknownName, WeirError
from weir.measures import score_run
from weir.stats.score_rows import result_rows

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
        assert repr(value)[1:-1] in value._repr_html_()
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
    assert repr(ds.corpus).startswith("Corpus: 97 documents, with titles\ndoc ")
    assert repr(ds.queries).startswith("Queries: 21\nquery ")
    assert repr(ds.corpus).endswith("\n\nand 87 more")
    assert ds.queries._repr_html_().count("<tr>") == 11
    assert ">and 11 more<" in ds.queries._repr_html_()
    assert len(ds.queries.to_dict()) == len(ds.queries)
    assert "judged queries" in repr(weir.measures.Judged.of(weir.Run.of(RUN), weir.Qrels.of(QRELS)))


def test_one_query_is_reached_by_its_identifier():
    news = weir.load("brook-news")
    run = weir.BM25().index(news.corpus).search(news.queries, k=20)
    for values, whole in (
        (run, run.to_dict()),
        (news.qrels, news.qrels.to_dict()),
        (news.queries, news.queries.to_dict()),
    ):
        assert {name: values[name] for name in values} == whole
        assert (dict(values), dict(values.items())) == (whole, whole)
        assert list(values.keys()) == list(whole)
        assert list(values.values()) == list(whole.values())
        assert list(whole["nq-101"]) == list(values["nq-101"])
        assert len(values) == len(list(values)) == 16
        assert "nq-101" in values
        assert "nq-1" not in values
        assert 101 not in values
        assert (values.get("nq-101"), values.get("nq-1")) == (whole["nq-101"], None)
        with pytest.raises(UnknownName, match="named 'nq-1'; did you mean nq-1"):
            values["nq-1"]
    assert news.corpus["n-2031-10"]["title"] == "Tornholt bridge shut after inspectors find cracks"
    assert list(news.corpus)[:1] == ["n-2031-01"]
    assert news.corpus.get("n-1") is None
    assert next(iter(news.corpus.items())) == ("n-2031-01", news.corpus["n-2031-01"])
    assert "n-2031-10" in news.corpus
    assert Corpus.of({"d": "text"})["d"] == {"title": "", "text": "text"}
    assert news.corpus.to_frame("pandas").columns.tolist() == ["doc", "title", "text"]
    assert news.queries.to_frame("arrow").to_pydict()["text"] == news.queries.text.tolist()


def test_an_unknown_identifier_among_many_names_a_few():
    run = weir.Run.of({f"query-{n}": {"d": 1.0} for n in range(200)})
    with pytest.raises(UnknownName) as refusal:
        run["zzz"]
    assert len(str(refusal.value)) < 200


def test_identifiers_are_escaped_in_html():
    run = weir.Run.of({"<script>": ["<b>x</b>"]})
    assert "<script>" not in copy.copy(run)._repr_html_()


MEASURED = [
    "nDCG@10",
    "nDCG@3",
    "AP",
    "RR",
    "R@3",
    "P@3",
    "Success@1",
    "Judged@5",
    "Hole@5",
    "R_cap@2",
    "DCG@4",
]


def example(seed: int = 3) -> tuple[dict, dict]:
    """A run with ties and judgments of 20 queries."""
    rng = np.random.default_rng(seed)
    run = {
        f"q{i}": {
            f"d{d}": float(s) for d, s in zip(rng.permutation(40)[:25], rng.integers(0, 9, 25), strict=True)
        }
        for i in range(20)
    }
    qrels = {
        f"q{i}": {f"d{d}": int(rng.integers(-1, 4)) for d in rng.permutation(40)[:12]} for i in range(20)
    }
    return run, qrels


def shuffled(table: dict, seed: int) -> dict:
    rng = np.random.default_rng(seed)
    return {
        q: {list(table[q])[i]: list(table[q].values())[i] for i in rng.permutation(len(table[q]))}
        for q in rng.permutation(list(table)).tolist()
    }


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_rows_give_the_same_bits(seed):
    """Means and intervals too."""
    run, qrels = example()
    first = score_run(Qrels.of(qrels), Run.of(run), MEASURED)
    again = score_run(Qrels.of(shuffled(qrels, seed + 50)), Run.of(shuffled(run, seed)), MEASURED)
    assert again.queries.tolist() != first.queries.tolist()
    order = first.queries.codes(again.queries.strings)
    assert again.values.tolist() == first.values[:, order].tolist()
    assert result_rows(again, "d", "s") == result_rows(first, "d", "s")


def test_a_constant_scorer_has_one_ranking_and_says_that_all_is_tied():
    documents = [f"d{i}" for i in range(1, 10)]
    run = {"q": dict.fromkeys(documents, 0.5)}
    for relevant in documents:
        place = sorted(documents, reverse=True).index(relevant) + 1
        found = score_run(Qrels.of({"q": {relevant: 1}}), Run.of(run), ["RR", "AP", "nDCG", *cut_recalls(9)])
        values = dict(zip(found.measures, found.values[:, 0].tolist(), strict=True))
        assert values["RR"] == values["AP"] == 1 / place
        assert values["nDCG"] == pytest.approx(1 / np.log2(place + 1), abs=1e-15)
        assert [values[m] for m in cut_recalls(9)] == [float(k >= place) for k in range(1, 10)]
        assert found.tied == 1.0
    distinct = {"q": {d: float(i) for i, d in enumerate(documents)}}
    assert score_run(Qrels.of({"q": {"d1": 1}}), Run.of(distinct), ["RR"]).tied == 0.0


def cut_recalls(k: int) -> list[str]:
    return [f"R@{i}" for i in range(1, k + 1)]


def test_two_of_three_queries_answered_perfectly():
    run = {"1": {"a": 1.0}, "2": {"b": 1.0}}
    scores = score_run(
        Qrels.of({"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}}), Run.of(run), ["nDCG@10", "AP"]
    )
    for row in result_rows(scores, "three", "two"):
        assert row.mean == 2 / 3
        assert (row.answered, row.queries) == (2, 3)
        assert np.isnan([row.low, row.high]).all()  # three queries are too few


def test_the_callers_dict_is_unchanged_and_ten_others_remain():
    """As on ArguAna, whose queries are documents."""
    run = {f"q{i}": {f"q{j}": float(-abs(i - j)) for j in range(30)} for i in range(30)}
    qrels = {f"q{i}": {f"q{(i + 1) % 30}": 1} for i in range(30)}
    before = copy.deepcopy(run), copy.deepcopy(qrels)
    with_self = Run.of(run).top(11)
    assert all(next(iter(row)) == query for query, row in with_self.to_dict().items())
    without = with_self.without_self()
    assert np.diff(without.ptr).tolist() == [10] * 30
    assert all(query not in row for query, row in without.to_dict().items())
    assert score_run(Qrels.of(qrels), without, ["Success@2"]).mean_values()[0] > 0.9
    assert (run, qrels) == before
    assert [list(row) for row in run.values()] == [list(row) for row in before[0].values()]


def test_a_mean_times_its_count_is_the_total():
    values = np.array([[0.1, 0.2, 0.3, np.nan], [1.0, 2.0, 4.0, 9.0]])
    scores = Scores(("a", "b"), Ids.of("wxyz"), values, np.ones(4, bool))
    assert scores.mean_values().tolist() == [pytest.approx(0.2, abs=1e-16), 4.0]
    nothing = Scores(("a",), Ids.of("w"), np.array([[np.nan]]), np.ones(1, bool))
    assert np.isnan(nothing.mean_values()).all()
