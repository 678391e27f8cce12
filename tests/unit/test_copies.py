"""A ranking or system given twice under two names is said, wherever several are taken."""

import shutil

import numpy as np
import pytest

import weir
from weir.api.fusing import fuse_files
from weir.api.scoring import score_files
from weir.errors import RankingWarning

QRELS = {f"q{n}": {"d1": 1} for n in range(8)}
RUN = {q: {"d2": 2.0, "d1": 1.0} for q in QRELS}
OTHER = {q: {"d1": 2.0, "d2": 1.0} for q in QRELS}


@pytest.fixture
def files(tmp_path):
    weir.Qrels.of(QRELS).save(tmp_path / "qrels.trec")
    weir.Run.of(RUN, "a").save(tmp_path / "a.trec")
    weir.Run.of(OTHER, "a").save(tmp_path / "c.trec")  # as many bytes
    shutil.copy(tmp_path / "a.trec", tmp_path / "b.trec")
    assert (tmp_path / "c.trec").stat().st_size == (tmp_path / "a.trec").stat().st_size
    return tmp_path


def copies(notes):
    return [str(note.text) for note in notes if "one system counts as two" in note.text]


def of_eval(files, *runs):
    return copies(score_files(str(files / "qrels.trec"), runs).notes)


def of_compare(files, *runs):
    return copies(weir.compare(files / "qrels.trec", *runs).notes())


def of_gate(files, *runs):
    return copies(weir.gate(files / "qrels.trec", *runs[:2]).notes())


def of_fuse(files, *runs):
    return copies(fuse_files("rrf", runs, files / "fused.trec").notes)


@pytest.mark.parametrize("said", [of_eval, of_compare, of_gate, of_fuse])
def test_a_copied_run_file_is_named_and_another_of_the_same_size_is_not(files, said):
    a, b, c = (files / f"{name}.trec" for name in "abc")
    assert said(files, a, b, c) == [f"{b} is a copy, byte for byte, of {a}: one system counts as two"]
    assert said(files, a, c) == []


def test_folders_of_run_files_are_compared_by_name(files):
    for folder, of in (("old", "ac"), ("new", "ab")):
        (files / folder).mkdir()
        for name, source in zip("xy", of, strict=True):
            shutil.copy(files / f"{source}.trec", files / folder / f"{name}.trec")
    old, new = files / "old", files / "new"
    assert of_gate(files, old, new) == [
        f"{new}/x.trec is a copy, byte for byte, of {old}/x.trec: one system counts as two"
    ]


def test_one_value_under_two_names_is_said_in_python(files):
    said = ["b is the same object as a: one system counts as two"]
    assert copies(weir.compare(QRELS, {"a": RUN, "b": RUN, "c": OTHER}).notes()) == said
    assert copies(weir.compare(QRELS, {"a": RUN, "b": dict(RUN)}).notes()) == []
    assert copies(weir.compare(QRELS, RUN, RUN).notes()) == [
        "second is the same object as first: one system counts as two"
    ]
    with pytest.warns(RankingWarning, match=r"b.trec is a copy, byte for byte, of .*a.trec"):
        weir.fuse([str(files / "a.trec"), files / "b.trec"])


class Model:
    def encode(self, texts, **_):
        rng = np.random.default_rng(len(list(texts)))
        return rng.normal(size=(len(list(texts)), 8)).astype("float32")


def own(queries, k):
    return {query: {"d1": 1.0} for query in queries}


@pytest.mark.parametrize("system", [Model(), own], ids=["encoder", "function"])
@pytest.mark.filterwarnings("ignore:.*compared by cosine")
def test_an_object_under_two_names_is_said_and_in_a_list_is_one_system(system):
    dataset = weir.Dataset.of({"d1": "red", "d2": "blue"}, {"q1": "red"}, {"q1": ["d1"]}, "colours")
    table = weir.benchmark(dataset, {"a": system, "b": system}, "RR")
    assert copies(table.notes()) == [
        "b has the rankings of a, score by score: one system counts as two on colours"
    ]
    assert len(weir.benchmark(dataset, [system, system], "RR")) == 1
    assert copies(weir.benchmark(dataset, {"a": system, "b": weir.BM25()}, "RR").notes()) == []
