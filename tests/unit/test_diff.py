from __future__ import annotations

import json
from dataclasses import replace

import pytest

import weir
from tests.shown import shown
from tests.unit.brooklet import QRELS as JUDGED
from tests.unit.brooklet import write_collection
from tests.unit.cells import QRELS, RUN, changed, noted, write_cell, write_qrels_file
from tests.unit.test_cli import refused
from weir.cli import main
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue
from weir.experiment.comparing import diff_cells, diff_files
from weir.experiment.experiment import Experiment
from weir.experiment.results import dataset_of, open_cell
from weir.files.write import write_run
from weir.measures import score_run
from weir.stats.query_differences import query_differences, with_documents, with_texts

OTHER = {
    "q1": {"d3": 3.0, "d1": 2.0, "d2": 1.0},
    "q2": {"d9": 3.0, "d8": 2.0, "d2": 1.0},
    "q3": {"d5": 1.0},
}


@pytest.fixture
def files(tmp_path):
    write_run(Run.of(RUN), tmp_path / "a.trec")
    write_run(Run.of(OTHER), tmp_path / "b.trec")
    return write_qrels_file(tmp_path / "q"), tmp_path / "a.trec", tmp_path / "b.trec"


def moves(top=10, measure="RR"):
    qrels = Qrels.of(QRELS)
    a, b = score_run(qrels, Run.of(RUN), [measure]), score_run(qrels, Run.of(OTHER), [measure])
    return query_differences(measure, ("a", "b"), a, b, top)


def test_queries_are_won_lost_and_tied():
    found = moves()
    assert (found.won, found.lost, found.tied) == (("q3",), ("q2", "q4"), ("q1",))
    assert found.first_mean == pytest.approx((1 + 0.5 + 0 + 0.5) / 4)
    assert found.second_mean == pytest.approx((1 + 1 / 3 + 1 + 0) / 4)
    assert [(m.query, m.first, m.second) for m in found.up] == [("q3", 0.0, 1.0)]
    assert [(m.query, m.difference) for m in found.down] == [("q4", -0.5), ("q2", pytest.approx(-1 / 6))]
    assert found.unanswered == (("q3",), ("q4",))
    assert found.left_out == 0


def test_so_many_moves_are_kept_as_are_asked_for():
    assert [m.query for m in moves(top=1).down] == ["q4"]
    assert moves(top=0).up == moves(top=0).down == ()


def test_documents_that_moved_most_come_first_with_both_ranks():
    qrels = Qrels.of(QRELS)
    found = with_documents(moves(measure="nDCG@10"), qrels, Run.of(RUN), Run.of(OTHER))
    down = {m.query: [(d.document, d.grade, d.before, d.after) for d in m.documents] for m in found.down}
    # d4 stood second: trec order of the tie with d2. Both moved; losing rank 2 altogether is farther than 3 to 3.
    assert down["q2"] == [("d4", 1, 2, None)]
    assert down["q4"] == [("d1", 1, 2, None)]
    up = {m.query: [(d.document, d.before, d.after) for d in m.documents] for m in found.up}
    assert up == {"q1": [("d3", 2, 1), ("d1", 1, 2)], "q3": [("d5", None, 1)]}


def test_texts_are_those_of_the_collection_and_absent_ones_stay_empty():
    qrels = Qrels.of(QRELS)
    found = with_documents(moves(), qrels, Run.of(RUN), Run.of(OTHER))
    corpus = Corpus.of({"d5": {"title": "Five", "text": "line one\nline two " + "x" * 500}})
    shown = with_texts(found, Queries.of({"q3": "what?"}), corpus)
    assert shown.up[0].text == "what?"
    document = shown.up[0].documents[0]
    assert (document.title, document.text[:18], len(document.text)) == ("Five", "line one line two ", 200)
    assert shown.down[0].text == ""
    assert shown.down[0].documents[0].text == ""
    with pytest.raises(BadValue, match="holds none of these queries"):
        with_texts(found, Queries.of({"zz": "other"}), corpus)


def test_a_tab_or_a_newline_in_a_text_stays_on_its_line():
    found = with_documents(moves(), Qrels.of(QRELS), Run.of(RUN), Run.of(OTHER))
    moved = with_texts(
        found, Queries.of({"q3": "a\nb\tc"}), Corpus.of({"d5": {"title": "t\nu", "text": "v\nw"}})
    )
    line = next(x for x in shown("diff", [moved]).split("\n") if "query q3" in x)
    assert line.endswith("query q3  a b c  (not answered by a)")
    assert "      rank - -> 1  d5 (grade 1)  t u | v w" in shown("diff", [moved]).split("\n")


def test_files_give_what_values_give(files):
    found = diff_files(files[0], files[1:], "RR")
    expected = with_documents(moves(), Qrels.of(QRELS), Run.of(RUN), Run.of(OTHER))
    assert replace(found, notes=expected.notes) == expected
    [more] = [note.text for note in found.notes if note not in expected.notes]  # of q4, which finds itself
    assert more.startswith("a: 1 of 3 rankings has the query's own document among the first 10")


def test_json_runs_work_too(files, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(OTHER))
    found = diff_files(files[0], (files[1], tmp_path / "c.json"), "RR")
    assert (found.won, found.lost, found.tied) == (("q3",), ("q2", "q4"), ("q1",))


def test_the_command_says_counts_identifiers_and_policies(files, capsys):
    assert main(["diff", *map(str, files), "-m", "RR"]) == 0
    out = capsys.readouterr().out
    assert "RR: a 0.5000 -> b 0.5833 (+0.0833) on 4 queries\nb wins 1, loses 2, ties 1\n" in out
    assert "  won: q3\n  lost: q2 q4\n  tied: q1\n" in out
    assert "  0.0000 -> 1.0000  query q3  (not answered by a)\n      rank - -> 1  d5 (grade 1)\n" in out
    assert "documents by descending identifier" in out
    assert "note: a and b: 1 of 4 judged queries are not answered and score 0" in out


def test_the_command_prints_json(files, capsys):
    assert main(["diff", *map(str, files), "--json", "--top", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["measure"] == "nDCG@10"
    assert len(found["up"]) == len(found["down"]) == 1
    assert set(found["won"]) | set(found["lost"]) | set(found["tied"]) == set(QRELS)


def test_two_cells_without_their_collection_have_values_alone(tmp_path):
    one, other = write_cell(tmp_path / "a"), write_cell(tmp_path / "b", OTHER, changed("system.k1", 1.2))
    found = diff_cells(one, other, "AP")
    assert set(found.won) | set(found.lost) | set(found.tied) == set(QRELS)
    assert found.unanswered == (("q3",), ("q4",))  # the scores do not say so, the rankings do
    assert all(m.documents == () for m in (*found.up, *found.down))
    said = [note.text for note in found.notes if "not answered" in note.text]
    assert said == [f"{found.first} and {found.second}: 1 of 4 judged queries are not answered and score 0"]
    with pytest.raises(BadValue, match=r"R@10 is not in both folders.*in both: nDCG@10, AP"):
        diff_cells(one, other, "R@10")


def test_two_cells_with_their_collection_have_documents_and_texts(tmp_path, capsys):
    data = str(write_collection(tmp_path / "brooklet"))
    manifest = changed("dataset", "brooklet")
    one = write_cell(tmp_path / "one", {"q1": {"d1": 2.0, "d4": 1.0}}, manifest, qrels=JUDGED)
    other = write_cell(tmp_path / "other", {"q1": {"d4": 2.0}, "q2": {"d3": 1.0}}, manifest, qrels=JUDGED)
    found = diff_cells(one, other, "nDCG@10", data)
    assert (found.won, found.lost, found.tied) == (("q2",), ("q1",), ("d4", "q3"))
    assert (found.up[0].text, found.down[0].text) == ("rising dough", "river dam")
    texts = {d.document: d.title for m in (*found.up, *found.down) for d in m.documents}
    assert texts == {"d3": "Bread", "d1": "The weir", "d4": "Dam"}
    assert main(["diff", str(one), str(other), "--collection", data, "-m", "RR"]) == 0  # computed now
    assert "RR: one/bm25" not in capsys.readouterr().out


def test_the_collection_of_the_catalogue_is_taken_if_it_is_the_one_that_was_measured(tmp_path):
    Experiment(("brook-news",), ("bm25",), ("nDCG@10",), k=3).execute(tmp_path)
    folder = next((tmp_path / "brook-news").glob("bm25-*"))
    cell = open_cell(folder)
    assert dataset_of(cell).name == "brook-news"
    assert dataset_of(open_cell(noted(folder, fingerprint="another"))) is None


def test_mistakes_are_refused_in_one_line(files, tmp_path, capsys):
    qrels, a, b = map(str, files)
    assert "found 1 path" in refused(capsys, "diff", qrels)
    assert "no measure named" in refused(capsys, "diff", qrels, a, b, "-m", "nDGC@10")
    assert "no dataset (or folder) named" in refused(capsys, "diff", qrels, a, b, "--collection", "scifcat")
    assert "no such folder" in refused(capsys, "diff", str(tmp_path / "x"), str(tmp_path / "y"))
    write_run(Run.of({"z": {"d1": 1.0}}), tmp_path / "z.trec")
    assert "z answers none of the 4" in refused(capsys, "diff", qrels, a, str(tmp_path / "z.trec"))
    data = str(write_collection(tmp_path / "brooklet", {"d1": ("", "x")}))
    (tmp_path / "brooklet" / "queries.jsonl").write_text('{"_id": "elsewhere", "text": "x"}\n')
    assert "holds none of these queries" in refused(capsys, "diff", qrels, a, b, "--collection", data)
    one = str(write_cell(tmp_path / "one"))
    other = str(write_cell(tmp_path / "other", manifest=changed("dataset", "another")))
    assert "are scores of other queries" in refused(capsys, "diff", one, other)
    assert "found a file" in refused(capsys, "diff", a, b)


def test_columns_are_headed_by_the_names_of_systems_where_folders_of_results_are_given(tmp_path, capsys):
    data = write_collection(tmp_path / "mine")
    systems = ["bm25", "rm3"]
    for name, k in (("one", 1000), ("two", 2)):
        weir.benchmark(str(data), systems, "nDCG@10", tmp_path / name, k=k)
    first, second, other = (
        next(path for path in sorted((tmp_path / folder / "mine").glob(f"{system}-*")))
        for folder, system in (("one", "bm25"), ("one", "rm3"), ("two", "bm25"))
    )
    judged = str(data / "qrels" / "test.tsv")
    assert main(["diff", judged, str(first), str(second), "-m", "nDCG@10"]) == 0
    assert capsys.readouterr().out.startswith("nDCG@10: bm25 ")
    assert main(["diff", judged, str(first), str(other), "-m", "nDCG@10"]) == 0
    told = capsys.readouterr().out
    assert first.name in told
    assert other.name in told


@pytest.mark.parametrize("words", ["diff {} bm25 rm3", "why {} bm25 rm3", "gate {} bm25 rm3", "eval {} bm25"])
def test_a_results_folder_in_place_of_judgments_is_named_with_the_folders_of_its_results(
    tmp_path, words, capsys
):
    weir.benchmark(str(write_collection(tmp_path / "mine")), ["bm25", "rm3"], "nDCG@10", tmp_path / "results")
    folders = sorted(path for path in (tmp_path / "results" / "mine").iterdir() if path.name != "indexes")
    capsys.readouterr()
    assert main(words.format(tmp_path / "results").split()) == 2
    said = capsys.readouterr().err
    assert "found a results folder of weir run" in said
    assert f"named by their folders, such as {folders[0]} and {folders[1]}" in said
    assert main(["diff", *map(str, folders)]) == 0
