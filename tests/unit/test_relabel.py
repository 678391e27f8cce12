"""From a pool to new judgments: blind, complete, and what a full set of judgments gives comes back."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import SMALL_RUN, written_files
from weir.api.scoring import FileScores, score_files
from weir.audit import Subject
from weir.cli import main
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError, LossWarning, RankingWarning
from weir.files.journal_labels import SHEET
from weir.files.records import write_collection
from weir.files.runs import read_qrels
from weir.files.write import write_run
from weir.plugins.labels.pools import (
    HEAD,
    judging_pool,
    open_sheet,
    read_sheet,
    relabelled,
    turned,
    write_pool,
)

FULL = {"q": {d: int(d in "acg") for d in "abcdefgh"}, "r": {d: int(d in "bh") for d in "abcdefgh"}}
HELD = {"q": {"a": 1, "b": 0}, "r": {"b": 1}}
RUNS = {
    "one": Run.of({"q": list("abcd"), "r": list("bcda")}),
    "two": Run.of({"q": list("gcha"), "r": list("hgfb")}),
}


def filled(sheet, grades):
    lines = [line.split("\t") for line in sheet.read_text(encoding="utf-8").splitlines()]
    rows = [[q, d, str(grades[q][d]), *rest] for q, d, _, *rest in lines[1:]]
    sheet.write_text("\n".join("\t".join(row) for row in [lines[0], *rows]) + "\n", encoding="utf-8")


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 20))
def test_a_pool_holds_what_is_unjudged_once_and_the_heaviest_where_there_is_a_limit(k, limit):
    qrels = Qrels.of(HELD)
    wanted = {
        (query, doc)
        for run in RUNS.values()
        for query, docs in run.top(k).to_dict().items()
        for doc in docs
        if doc not in HELD[query]
    }
    if not wanted:
        return
    whole, part = judging_pool(RUNS, qrels, k), judging_pool(RUNS, qrels, k, limit)
    pairs = [
        (whole.queries[q], whole.docs[d])
        for q, d in zip(whole.query.tolist(), whole.doc.tolist(), strict=True)
    ]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == wanted
    assert sorted(part.weight.tolist()) == sorted(whole.weight.tolist())[-limit:]
    assert len(set(zip(whole.query[:-1] != whole.query[1:], whole.query[1:], strict=True))) <= 2 * len(qrels)


def test_judging_the_pool_gives_what_full_judgments_give(tmp_path):
    subject = Subject(
        "mine",
        Corpus.of({d: {"title": d.upper(), "text": f"a text\nof {d}"} for d in "abcdefgh"}),
        Queries.of({"q": "rivers", "r": "dams"}),
        Qrels.of(HELD),
        RUNS,
    )
    folder = tmp_path / "pool"
    write_pool(judging_pool(RUNS, subject.qrels, 4), subject, folder)
    lines = (folder / SHEET).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "\t".join(HEAD)
    assert all("a text of " in line and ("rivers" in line or "dams" in line) for line in lines[1:])
    assert not {"one", "two"} & set("\t".join(lines).split())
    with pytest.raises(FormatError, match="no grade on any line"):
        read_sheet(folder / SHEET)
    filled(folder / SHEET, FULL)
    new, empty = read_sheet(folder / SHEET)
    rows, both = relabelled(subject, new, origin="me")
    judged = {q: {d: FULL[q][d] for run in RUNS.values() for d in run.to_dict()[q]} | HELD[q] for q in FULL}
    expected = {
        name: weir.evaluate(judged, run, ["nDCG@10", "Hole@10"]).means() for name, run in RUNS.items()
    }
    for row in rows:
        assert (row.after, row.hole_after) == (expected[row.system]["nDCG@10"], 0)
        assert np.isnan(row.low)  # of too few queries
    assert (empty, both.to_dict()) == (0, judged)
    assert set(both.columns()["origin"]) == {"before", "me"}
    assert turned(rows) == [("one", "two")]


def test_a_sheet_keeps_identifiers_as_they_are_and_refuses_those_that_break_it(tmp_path):
    query, docs = "q  1 ", (" d1", "d\N{NO-BREAK SPACE}2", "d\x0b3", "d 4")
    runs, none = {"one": Run.of({query: list(docs)})}, Qrels.of({query: {"x": 1}})
    write_pool(judging_pool(runs, none), Subject("mine", qrels=none, runs=runs), tmp_path / "pool")
    sheet = tmp_path / "pool" / SHEET
    lines = sheet.read_text(encoding="utf-8").split("\n")
    sheet.write_text("\n".join(line.replace("\t\t", "\t1\t", 1) for line in lines), encoding="utf-8")
    assert read_sheet(sheet)[0].to_dict() == {query: dict.fromkeys(docs, 1)}
    for name in ("d\t1", "d\n1", "d\r1"):
        runs = {"one": Run.of({query: [name]})}
        with pytest.raises(BadValue, match="has a tab or line end"):
            write_pool(judging_pool(runs, none), Subject("mine", qrels=none, runs=runs), tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


def test_no_cell_of_a_sheet_is_a_formula_and_every_identifier_comes_back(tmp_path):
    begins = ("=HYPERLINK(1)", "+1", "-1", "@x", "\N{FULLWIDTH EQUALS SIGN}a", "'=a", "''+a", "'a")
    subject = Subject(
        "mine",
        Corpus.of({name: {"title": name, "text": f"\t{name}"} for name in begins}),
        Queries.of(dict.fromkeys(begins, "=1+1")),
        Qrels.of({name: {"x": 1} for name in begins}),
        {"one": Run.of({name: list(begins) for name in begins})},
    )
    write_pool(judging_pool(subject.runs, subject.qrels, 10), subject, tmp_path / "pool")
    sheet = tmp_path / "pool" / SHEET
    cells = [cell for line in sheet.read_text(encoding="utf-8").split("\n") for cell in line.split("\t")]
    assert not [cell for cell in cells if cell[:1] in {*"=+-@\t\r\N{FULLWIDTH EQUALS SIGN}"}]
    lines = sheet.read_text(encoding="utf-8").split("\n")
    sheet.write_text("\n".join(line.replace("\t\t", "\t1\t", 1) for line in lines), encoding="utf-8")
    judged = {name: dict.fromkeys(begins, 1) for name in begins}
    for path in (sheet, tmp_path / "sheet.csv"):
        if path != sheet:
            rows = [line.split("\t") for line in sheet.read_text(encoding="utf-8").split("\n") if line]
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(rows)
        assert read_sheet(path)[0].to_dict() == judged
        assert weir.Qrels.load(path).to_dict() == judged
        assert {(line.title, line.text) for line in open_sheet(path)} == {(name, name) for name in begins}


def test_what_is_no_path_is_named_also_where_it_is_empty():
    for target in ({}, None, 0):
        with pytest.raises(BadValue, match=r"targets is .*; expected a text or a path"):
            weir.labels.judging_pool(target, RUNS["one"])


def test_a_sheet_is_read_strictly_and_half_of_one_is_half(tmp_path):
    sheet = tmp_path / "judged.tsv"
    head = "\t".join(HEAD)
    for body, said in (
        ("q\ta\tgood", "line 2"),
        ("q\ta\tnan", "line 2"),
        ("q\ta\t1\nq\ta\t0", "line 3: found 'a' judged again for 'q'"),
        ("q", "line 2: found 1 cell;"),
    ):
        sheet.write_text(f"{head}\n{body}\n", encoding="utf-8")
        with pytest.raises(FormatError, match=said):
            read_sheet(sheet)
    sheet.write_text(f"{head}\r\nq\ta\t1\t\r\nq\tb\t\t\r\n", encoding="utf-8")
    found, empty = read_sheet(sheet)
    assert (found.to_dict(), empty) == ({"q": {"a": 1}}, 1)


def test_the_commands_write_a_pool_once_and_score_again(tmp_path, capsys):
    def call(*arguments):
        code = main([str(one) for one in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    Qrels.of(HELD).save(tmp_path / "qrels.tsv")
    for name, run in RUNS.items():
        run.save(tmp_path / f"{name}.trec")
    targets = [tmp_path / name for name in ("qrels.tsv", "one.trec", "two.trec")]
    assert call("labels", "pool", *targets, "-o", tmp_path / "pool")[0] == 0
    code, _, err = call("labels", "pool", *targets, "-o", tmp_path / "pool")
    assert (code, "is there already" in err) == (2, True)
    filled(tmp_path / "pool" / SHEET, FULL)
    sheet, out = tmp_path / "pool" / SHEET, tmp_path / "both.tsv"
    code, text, _ = call("labels", "relabel", sheet, *targets, "-o", out)
    assert (code, "one was above two" in text) == (0, True)
    assert weir.Qrels.load(out).to_dict()["q"]["g"] == 1
    rows = [json.loads(line) for line in call("labels", "relabel", sheet, *targets, "--json")[1].splitlines()]
    assert [row["system"] for row in rows] == ["one", "two"]
    assert repr(weir.labels.relabel(sheet, *targets)) == text.rstrip("\n")
    Qrels.of({"other": {"a": 1}}).save(tmp_path / "strange.tsv")
    code, _, err = call("labels", "relabel", tmp_path / "strange.tsv", *targets)
    assert (code, "none of the 1 queries" in err) == (2, True)
    full = {q: {d: g for d, g in grades.items()} for q, grades in FULL.items()}
    with pytest.raises(BadValue, match="everything among the first"):
        judging_pool(RUNS, Qrels.of(full))


def test_a_collection_that_nobody_judged_is_searched_judged_and_scored(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged = weir.load("brook-news")
    queries, corpus = judged.all_queries, judged.corpus
    (tmp_path / "mine").mkdir()
    write_collection(tmp_path / "mine", corpus, queries, judged.qrels)
    held = tmp_path / "mine" / "qrels" / "test.tsv"
    held.unlink()
    run = [
        "run",
        "-q",
        "-d",
        "mine",
        "-d",
        "brook-news",
        "-s",
        "bm25",
        "-s",
        "bm25(k1=2)",
        "-k",
        "10",
        "-o",
        "out",
    ]
    assert main(run) == 0
    out, err = capsys.readouterr()
    assert "mine" not in out
    assert "mine: no judgments, so rankings are kept and nothing is scored; weir labels pool out" in err
    folders = sorted((tmp_path / "out" / "mine").glob("bm25-*"))
    assert [len(Run.load(folder / "run.trec").queries) for folder in folders] == [len(queries)] * 2
    made = [(folder / "run.trec").stat().st_mtime_ns for folder in folders]
    assert main(["verify", "out"]) == 0
    capsys.readouterr()
    assert main(["results", "out", "--json"]) == 0
    assert {json.loads(line)["dataset"] for line in capsys.readouterr().out.splitlines()} == {"brook-news"}
    assert main(run[:4] + run[6:]) == 0
    assert capsys.readouterr().out == ""
    benchmark = weir.benchmark("mine", ["bm25", "bm25(k1=2)"], k=10, out="out")
    assert len(benchmark) == 0
    assert "no judgments" in repr(benchmark)
    with pytest.raises(BadValue, match=r"mine has no judgments, and its rankings need a folder \(out=\)"):
        weir.benchmark("mine", "bm25")
    for folder in (tmp_path / "out" / "brook-news").iterdir():
        shutil.rmtree(folder)
    assert main(["compare", "out"]) == 2
    assert "out: found rankings of collections without judgments alone" in capsys.readouterr().err
    assert main(["diff", *map(str, folders)]) == 2
    assert "rankings without scores" in capsys.readouterr().err

    assert main(["labels", "pool", "out", "-o", "pool"]) == 0
    full = {q: {d: judged.qrels.to_dict().get(q, {}).get(d, 0) for d in corpus.ids} for q in queries.ids}
    filled(tmp_path / "pool" / SHEET, full)
    assert main(["labels", "relabel", f"pool/{SHEET}", "out", "-o", "mine.tsv", "--json"]) == 0
    changes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    held.write_bytes((tmp_path / "mine.tsv").read_bytes())
    assert main(run[:4] + run[6:]) == 0
    assert [(folder / "run.trec").stat().st_mtime_ns for folder in folders] == made
    rows = {row.system: row.mean for row in weir.results("out", "nDCG@10")}
    assert rows == pytest.approx({row["system"]: row["after"] for row in changes})


def test_labels_of_queries_without_a_judgment_before_are_written_and_in_no_mean(tmp_path):
    Qrels.of({"q": HELD["q"]}).save(tmp_path / "qrels.tsv")
    RUNS["one"].save(tmp_path / "one.trec")
    files = tmp_path / "qrels.tsv", tmp_path / "one.trec"
    alone = weir.labels.relabel(Qrels.of({"q": FULL["q"]}), *files)
    both = weir.labels.relabel(Qrels.of({**FULL, "elsewhere": {"a": 1}}), *files, out=tmp_path / "both.tsv")
    assert str(both.items) == str(alone.items)
    assert weir.Qrels.load(tmp_path / "both.tsv").to_dict() == FULL
    assert [str(note).partition("/")[0] for note in both.notes()] == [
        "note: qrels.tsv: 8 labels of queries that had no judgment before: in ",
        "note: 1 label of queries that qrels.tsv does not have, such as 'elsewhere': left out",
    ]
    assert alone.notes() == ()


def test_a_sheet_is_of_the_collection_it_was_written_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "yours"):
        corpus = Corpus.of({f"{n}": f"{name} text {n}" for n in range(4)})
        Path(name).mkdir()
        write_collection(Path(name), corpus, Queries.of({"1": "text", "2": "text 3"}), Qrels.of({}))
    assert (
        main(["run", "-q", "-d", "mine", "-d", "yours", "-s", "bm25", "-o", "out"]) == 0
    )  # a file without rows
    assert main(["labels", "pool", "out", "-o", "pool"]) == 0
    sheet = Path("pool") / "mine" / SHEET
    filled(sheet, {q: {f"{n}": int(n == 3) for n in range(4)} for q in "12"})
    rows = weir.labels.relabel(sheet, "out", out="judged.tsv")
    assert [row.subject for row in rows] == ["mine"]
    Path("yours/qrels/test.tsv").unlink()
    Path("yours/qrels.csv").write_text("1,3,1\n")
    with (
        pytest.warns(LossWarning, match=r"qrels\.csv is not read; weir data import reads it"),
        pytest.raises(FormatError, match=r"found no judgments; expected one of qrels/test\.tsv, qrels\.tsv"),
    ):
        weir.benchmark("yours", "bm25", out="out")
    Path("yours/qrels.csv").unlink()
    Path("judged.tsv").replace("mine/qrels/test.tsv")
    assert main(["run", "-q", "-d", "mine", "-s", "bm25", "-o", "out"]) == 0
    Path("mine").rename("there")
    with pytest.warns(RankingWarning, match="left out: mine: the collection is not at"):
        assert len(weir.labels.judging_pool("out", k=2)) == 1
    assert any("yours: rankings without scores of bm25" in str(note) for note in weir.results("out").notes())
    holes = weir.audits("out", only=["holes"], collection={"mine": "there"})
    assert [(audit.subject, audit.ran) for audit in holes] == [("mine", ("holes",)), ("yours", ())]


def test_the_first_sheet_needs_no_judgments(tmp_path, capsys):
    none, run = written_files(tmp_path, none__tsv="query-id\tcorpus-id\tscore\n", run__trec=SMALL_RUN)
    assert main(["labels", "pool", str(none), str(run), "-o", str(tmp_path / "pool")]) == 0
    sheet = tmp_path / "pool" / "to_judge.tsv"
    head, *lines = sheet.read_text().splitlines()
    assert len(lines) == 3
    filled = ["\t".join([*line.split("\t")[:2], "1" if "d1" in line else "", "", "", ""]) for line in lines]
    sheet.write_text("\n".join([head, *filled]) + "\n")
    assert main(["eval", str(sheet), str(run)]) == 2
    assert "weir labels relabel -o FILE makes judgments" in capsys.readouterr().err
    out = tmp_path / "judged.tsv"
    assert main(["labels", "relabel", str(sheet), str(none), str(run), "-o", str(out)]) == 0
    assert read_qrels(out).to_dict() == {"q1": {"d1": 1}}


def test_new_judgments_of_documents_that_nothing_names_are_told(tmp_path):
    (tmp_path / "q.qrels").write_text("q1 0 007 1\nq1 0 d2 0\n")
    (tmp_path / "r.trec").write_text("q1 Q0 007 1 2.0 t\nq1 Q0 d3 2 1.0 t\n")
    (tmp_path / "new.qrels").write_text("q1 0 7 1\nq1 0 d3 1\n")
    result = weir.labels.relabel(
        tmp_path / "new.qrels", tmp_path / "q.qrels", tmp_path / "r.trec", measure="AP"
    )
    said = " ".join(note.text for note in result.notes())
    assert "1 judgment names 1 document that no ranking and no earlier judgment has: '7'" in said


@pytest.mark.parametrize(
    ("query", "text", "told"), [("{}", "{}", 0), ("not {}", "not {}", 2), ("{}", "not {}", 1)]
)
def test_labels_with_other_texts_than_the_collection_are_told_wherever_the_two_meet(
    tmp_path, query, text, told
):
    texts = {"q": "first question", "r": "second one"}
    corpus = Corpus.of({doc: {"title": "", "text": f"text of {doc} at length"} for doc in "abcdefgh"})
    (tmp_path / "c").mkdir()
    write_collection(tmp_path / "c", corpus, Queries.of(texts), Qrels.of(HELD))
    lines = ["query-id\tcorpus-id\tgrade\tquery\ttitle\ttext"]
    for name, docs in FULL.items():
        shown = [(doc, grade, f"TEXT of {doc} at") for doc, grade in docs.items()]
        lines += [f"{name}\t{d}\t{g}\t{query.format(texts[name])}\t\t{text.format(s)}" for d, g, s in shown]
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n")
    c, run = str(tmp_path / "c"), RUNS["one"]
    write_run(run, tmp_path / "one.trec")
    labels, trec = str(tmp_path / "labels.tsv"), str(tmp_path / "one.trec")
    for found in (
        weir.labels.relabel(labels, c, trec),
        weir.labels.agree(c, labels),
        weir.labels.holes(c, trec, human=labels),
        weir.evaluate(labels, trec, collection=c),
        weir.evaluate(c, trec, labels=labels),
        score_files(labels, [tmp_path / "one.trec"], collection=c),
        score_files(c, [tmp_path / "one.trec"], labels=labels),
    ):
        notes = found.notes if isinstance(found, FileScores) else found.notes()
        assert sum("another text than in" in str(note) for note in notes) == told, found
    # Without a collection the texts beside the judgments are those that labels are held against.
    lines = [
        f"{name}\t{d}\t{g}\t{texts[name]}\t\ttext of {d} at length"
        for name, of in FULL.items()
        for d, g in of.items()
    ]
    people = tmp_path / "people.tsv"
    people.write_text("\n".join(["query-id\tcorpus-id\tgrade\tquery\ttitle\ttext", *lines]) + "\n")
    for notes in (
        weir.evaluate(people, trec, labels=labels).notes(),
        score_files(str(people), [tmp_path / "one.trec"], labels=labels).notes,
    ):
        assert sum("another text than in" in str(note) for note in notes) == told


@pytest.mark.parametrize(
    ("new", "told"), [({"d1": 1, "d2": 0}, True), ({"d1": 4, "d2": 1}, True), ({"d1": 3, "d2": 1}, False)]
)
def test_new_judgments_of_another_scale_are_told(tmp_path, new, told):
    weir.Run.of({"q1": {"d1": 2.0, "d2": 1.0}}).save(tmp_path / "a.trec")
    weir.Qrels.of({"q1": {"d3": 3, "d4": 1}}).save(tmp_path / "j.qrels")
    shown = weir.labels.relabel(weir.Qrels.of({"q1": new}), tmp_path / "j.qrels", tmp_path / "a.trec")
    assert any("count together as they stand" in str(note) for note in shown.notes()) == told
