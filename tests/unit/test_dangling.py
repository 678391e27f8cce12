"""Judgments of documents and queries that a collection does not have are named, with what may have changed them."""

from __future__ import annotations

import json
import random
import re
import unicodedata
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import write_collection
from weir.api.collection_notes import complete_cutoffs
from weir.audit.rankings import identifiers
from weir.cli.main import main
from weir.core.dangling import dangling, refuse_strangers
from weir.core.strings import Ids
from weir.core.subject import Subject
from weir.errors import BadValue, RankingWarning
from weir.plugins.labels.api import relabel
from weir.plugins.questions.migration import migration_of

CAUSES = [
    ({"1E+05": 1, "04. Mrz": 2}, ["1e5", "3-4"], "a spreadsheet"),
    ({"4-Mar": 1, "2024-03-04": 1}, ["3-4", "a"], "a spreadsheet"),
    ({"17.0": 1, "18.0": 0}, ["17", "18"], "'.0'"),
    ({"7": 1, "12": 1}, ["007", "012"], "zeros"),
    ({" d1": 1}, ["d1"], "blanks"),
    ({"D1": 1}, ["d1"], "other letters"),
    ({"docs/d1": 1}, ["d1"], "paths"),
    ({"caf\u00e9": 1}, ["cafe\u0301"], "composed"),
    ({"cafe\u0301": 1}, ["caf\u00e9"], "composed"),
    ({"d\u200b1": 1}, ["d1"], "cannot be seen"),
    ({"x": 1}, ["d1"], ""),
]


@pytest.mark.parametrize(("judged", "documents", "cause"), CAUSES)
def test_the_cause_is_named_where_it_explains_them(judged, documents, cause):
    found = dangling(weir.Qrels.of({"q1": {**judged, documents[0]: 1}}), Ids.of(documents))
    assert found is not None
    assert set(found.documents) == set(judged)
    assert (cause in found.cause) if cause else not found.cause
    assert found.relevant == sum(grade > 0 for grade in judged.values())
    assert dangling(weir.Qrels.of({"q1": {documents[0]: 1}}), Ids.of(documents)) is None


@pytest.fixture
def folder(tmp_path):
    """A collection of two documents, one of which no judgment names as it is."""
    (tmp_path / "c" / "qrels").mkdir(parents=True)
    for name, lines in (
        ("corpus", [{"_id": "1e5", "text": "weir one"}, {"_id": "d2", "text": "dam two"}]),
        ("queries", [{"_id": "q1", "text": "weir"}]),
    ):
        (tmp_path / "c" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    table = "query-id\tcorpus-id\tscore\nq1\t1E+05\t2\nq1\td2\t0\n"
    (tmp_path / "c" / "qrels" / "test.tsv").write_text(table, encoding="utf-8")
    return tmp_path / "c"


SAID = "1 judgment names 1 document that it does not have: '1E+05'; a spreadsheet"
RUN = {"q1": {"1e5": 2.0, "d2": 1.0}}


def test_they_are_told_wherever_the_collection_is_known(folder, tmp_path):
    new = weir.Qrels.of({"q1": {"1E+05": 2, "d2": 1}, "q9": {"d2": 1}})
    with (folder / "qrels" / "test.tsv").open("a", encoding="utf-8") as judgments:
        judgments.write("q9\td2\t1\n")
    results = weir.benchmark(folder, ["bm25"], ["R@10"], out=tmp_path / "results")
    told = [results.notes(), weir.evaluate(new, RUN, ["R@10"], collection=folder).notes()]
    for notes in told:
        for said in (
            SAID,
            "1 of 2 judged queries is not among its queries, in no mean, and asked of no system: 'q9'",
        ):
            assert sum(said in note.text for note in notes) == 1, (said, notes)
    assert any(SAID in note.text for note in relabel(new, tmp_path / "results").notes())


@pytest.mark.parametrize(
    ("metadata", "judged", "by_construction"),
    [
        ({}, {"1e5": 1, "d2": 1}, True),
        ({}, {"1E+05": 1, "d2": 1}, False),
        ({"candidates": ["d2"]}, {"1e5": 1, "d2": 1}, False),
        ({"candidates": ["d2"]}, {"d2": 1}, True),
        ({"excluded": ["1e5"]}, {"1e5": 1}, False),
    ],
)
def test_recall_is_one_by_construction_where_all_that_is_relevant_may_be_ranked(
    folder, metadata, judged, by_construction
):
    query = {"_id": "q1", "text": "weir", "metadata": metadata}
    (folder / "queries.jsonl").write_text(json.dumps(query), encoding="utf-8")
    rows = "".join(f"q1\t{doc}\t{grade}\n" for doc, grade in judged.items())
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}", encoding="utf-8")
    assert bool(list(complete_cutoffs(weir.load(folder), ["R@10"]))) == by_construction


def test_every_statement_of_judgments_that_dangle_says_so_once(tmp_path, capsys):
    collection = write_collection(tmp_path / "one")
    judged = collection / "qrels" / "test.tsv"
    query = judged.read_text().splitlines()[1].split("\t")[0]
    judged.write_text(judged.read_text() + f"{query}\tghost\t1\nnobody\tghost\t1\n")
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{query} Q0 d1 1 2.0 {name}\n")
    runs = [str(tmp_path / "a"), str(tmp_path / "b")]
    for command in ("eval", "compare", "gate", "power"):
        main([command, str(collection), *runs, "-m", "R@10"])
        said = capsys.readouterr().err
        assert said.count("that it does not have: 'ghost'") == said.count("system: 'nobody'") == 1, command
    weir.benchmark(collection, ["bm25", "rm3"], "R@10", out=tmp_path / "r")
    cells = [path.parent for path in (tmp_path / "r").glob("*/*/scores-*.json")]
    shown = [weir.diff(collection, *runs), weir.diff(*cells), weir.why(collection, *runs), weir.why(*cells)]
    for name in ("'ghost'", "'nobody'"):
        assert [str(one).count(name) for one in shown] == [1] * 4
    fit = [
        "fuse",
        "wsum(norm='max')",
        *runs,
        "--fit",
        str(collection),
        "--folds",
        "2",
        "-o",
        str(tmp_path / "f"),
    ]
    main(fit)
    assert capsys.readouterr().err.count("'ghost'") == 1


def test_queries_that_no_system_can_be_asked_change_no_number(tmp_path, monkeypatch, capsys):
    """Judgments of queries that the collection lacks are told, and nothing is counted that depends on them."""
    told = []
    for more in ("", "nobody\td1\t1\nnone\td2\t1\nnone\td1\t0\n"):
        place = tmp_path / f"with{len(more)}"
        place.mkdir()
        monkeypatch.chdir(place)
        judged = write_collection(place / "c") / "qrels" / "test.tsv"
        judged.write_text(judged.read_text() + more)
        assert main(["run", "-d", "./c", "-s", "bm25", "-s", "rm3(terms=2, docs=1)", "-o", "r"]) == 0
        said = [capsys.readouterr().out]
        for name in ("bm25", "rm3"):
            [run] = (place / "r" / "c").glob(f"{name}-*/run.trec")
            (place / name).write_bytes(run.read_bytes())
        [one, other] = (str(next((place / "r" / "c").glob(f"{name}-*"))) for name in ("bm25", "rm3"))
        for command in (
            *(["results", "r"], ["compare", "r"], ["diff", one, other], ["why", one, other]),
            *([name, "./c", "bm25", "rm3"] for name in ("eval", "compare", "gate", "power", "diff", "why")),
            *(["study", "funnel", "./c", "bm25"], ["audit", "r", "--only", "unanswered queries"]),
            *(["audit", "r", "--only", "labels"], ["why", one, other, "--qrels", str(judged)]),
        ):
            main(command)
            said.append(" ".join(command).replace(str(place), "") + "\n" + capsys.readouterr().out)
        assert main(["report", "r", "--no-audit", "-o", "page.html"]) == 0
        said.append(re.findall(r"asked [\d,]+ quer\w+", (place / "page.html").read_text())[0])
        lines = "\n".join(said).replace(str(place), "").splitlines()
        told.append([line for line in lines if "asked of no system" not in line])
    assert told[1] == told[0]
    assert told[0][-1] == "asked 4 queries"


SIGNS = ("\u200b", "\u00ad", "\ufeff", "\u00a0", " ", "")
spelled = st.text("aé1", min_size=1, max_size=4)


@settings(max_examples=60)
@given(judged=st.lists(spelled, min_size=1, max_size=6, unique=True), data=st.data())
def test_an_identifier_that_only_looks_like_a_judged_one_is_found(judged, data):
    """Composed otherwise, with signs of no width, or with blanks around it: names that nobody can tell apart."""
    written = {}
    for name in judged:
        odd = unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD"])), name)
        written[name] = odd + data.draw(st.sampled_from(SIGNS))
    run = {"q": {name: float(n) for n, name in enumerate(dict.fromkeys(written.values()), 1)}}
    other = {name for name in run["q"] if name not in judged}
    qrels = weir.Qrels.of({"q": dict.fromkeys(judged, 1)})
    found = list(identifiers(Subject("here", qrels=qrels, runs={"r": weir.Run.of(run)})))
    assert len(found) == bool(other)
    for finding in found:
        assert dict(finding.numbers)["documents"] == len(other)
        assert set(finding.examples) <= other


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        ([("x1", "d1")], "no query in common: of 4 in the collection one is 'q1', of 1 judged ones 'x1'"),
        ([("q1", "x1"), ("q2", "x1")], "no document in common: "),
        (
            [("d1", "q1")],
            "'d1'; all judged ones are its documents: exchange the columns of the judgments",
        ),
    ],
)
def test_a_grid_refuses_judgments_of_another_collection(tmp_path, capsys, judged, said):
    data = write_collection(tmp_path / "mine")
    rows = "".join(f"{query}\t{doc}\t1\n" for query, doc in judged)
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    assert main(["run", "-d", str(data), "-s", "bm25", "-o", str(tmp_path / "results")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    with pytest.raises(BadValue, match="in common"):
        weir.benchmark(data, "bm25")


@pytest.mark.parametrize(
    ("corpus", "queries", "said"),
    [
        (
            "queries",
            "corpus",
            "or the files of documents and queries, as all judged documents are its queries",
        ),
        (
            "queries",
            "queries",
            "the file of its documents holds queries: all judged queries, such as 'q1', are in it",
        ),
        (
            "corpus",
            "corpus",
            "the file of its queries holds documents: all judged documents, such as 'd1', are in it",
        ),
    ],
)
def test_a_file_of_queries_in_place_of_documents_is_named(tmp_path, capsys, corpus, queries, said):
    for kind in ("q", "d"):
        rows = "".join(json.dumps({"_id": f"{kind}{n}", "text": f"{kind} {n}"}) + "\n" for n in range(9))
        (tmp_path / {"q": "queries", "d": "corpus"}[kind]).write_text(rows)
    (tmp_path / "mine" / "qrels").mkdir(parents=True)
    for name, kind in (("corpus", corpus), ("queries", queries)):
        (tmp_path / "mine" / f"{name}.jsonl").write_text((tmp_path / kind).read_text())
    (tmp_path / "mine" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
    )
    assert main(["run", "-d", str(tmp_path / "mine"), "-s", "bm25", "-o", str(tmp_path / "results")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("known", [["10", "17"], ["1#0", "1#1"], ["1_a"], ["1a"], ["1"]])
@pytest.mark.parametrize("of", ["queries", "documents"])
def test_only_documents_with_a_sign_after_the_judged_name_are_its_parts(known, of):
    pair = {"1": {"d": 1}} if of == "queries" else {"q": {"1": 1}}
    queries, docs = (Ids.of(known), Ids.of(["d"])) if of == "queries" else (Ids.of(["q"]), Ids.of(known))
    if known == ["1"]:
        refuse_strangers(weir.Qrels.of(pair), queries, docs, "mine")
        return
    with pytest.raises(BadValue) as refused:
        refuse_strangers(weir.Qrels.of(pair), queries, docs, "mine")
    parts = of == "documents" and not known[0][1].isalnum()
    assert ("has parts of them" in str(refused.value)) == parts


def test_a_grid_with_one_known_pair_says_the_rest_in_a_note(tmp_path, capsys):
    data = write_collection(tmp_path / "mine")
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nx1\tx1\t1\n")
    assert main(["run", "-d", str(data), "-s", "bm25", "-o", str(tmp_path / "results")]) == 0
    assert "1 of 2 judged queries is not among its queries" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plain", "changed", "cause"),
    [
        ("d{}é", lambda name: unicodedata.normalize("NFD", name), "composed in another way"),
        ("{}1", lambda name: name.zfill(6), "zeros stand before them"),
        ("00{}1", lambda name: name.lstrip("0"), "zeros at their beginning are lost"),
        ("doc{}", str.upper, "written in other letters"),
        ("{}", "{}.0".format, "added '.0'"),
    ],
)
def test_labels_that_meet_say_why_their_documents_differ(tmp_path, plain, changed, cause):
    draw = random.Random(plain)
    names = [plain.format(n) for n in range(1, 13)]
    first = {f"q{q}": {name: draw.randint(0, 2) for name in names} for q in range(8)}
    other = {q: {changed(d) if d in names[:5] else d: g for d, g in row.items()} for q, row in first.items()}
    runs = [{q: {d: draw.random() for d in names} for q in first} for _ in range(2)]
    half = dict(list(first.items())[:4])
    weir.Qrels.of(first).save(tmp_path / "first.qrels")
    weir.Run.of(runs[0]).save(tmp_path / "a.trec")
    for said in (
        weir.labels.agree(first, other),
        weir.labels.estimate(half, other, *runs),
        relabel(weir.Qrels.of(other), tmp_path / "first.qrels", tmp_path / "a.trec"),
    ):
        assert any(cause in str(note) for note in said.notes()), said.notes()
    whole = {q: {changed(d): g for d, g in row.items()} for q, row in first.items()}
    with pytest.raises(BadValue, match=re.escape(cause)):
        weir.labels.agree(first, whole)
    assert not any("judgments name" in str(note) for note in weir.labels.agree(first, half).notes())


@pytest.mark.parametrize("meet", [lambda *runs: weir.fuse(runs), migration_of], ids=["fuse", "migrate"])
def test_rankings_that_meet_without_judgments_name_documents_in_two_compositions(meet):
    rows = {f"q{q}": {f"d\u00e9{n}": 1.0 - n / 9 for n in range(6)} for q in range(6)}
    other = {q: {unicodedata.normalize("NFD", d): s for d, s in row.items()} for q, row in rows.items()}
    mixed = {q: rows[q] | {"dé9": 0.5} for q in rows}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meet(weir.Run.of(rows), weir.Run.of(mixed))
    part = {q: rows[q] | dict(list(other[q].items())[:2]) for q in rows}
    with pytest.warns(RankingWarning, match="2 documents stand in the rankings as two"):
        meet(weir.Run.of(rows), weir.Run.of(part))


def test_pairs_of_a_pool_that_are_gone_from_its_sheet_are_told(tmp_path):
    rows = {f"q{q}": {f"d{(q + n) % 9}": 9.0 - n for n in range(5)} for q in range(6)}
    weir.Run.of(rows).save(tmp_path / "a.trec")
    weir.Qrels.of({q: {"d0": 1} for q in rows}).save(tmp_path / "j.qrels")
    targets = [str(tmp_path / "j.qrels"), str(tmp_path / "a.trec")]
    weir.labels.judging_pool(*targets, out=tmp_path / "pool")
    sheet = tmp_path / "pool" / "to_judge.tsv"
    head, *lines = sheet.read_text().splitlines()
    filled = ["\t".join([*line.split("\t")[:2], "1", *line.split("\t")[3:]]) for line in lines]
    for kept in (len(filled), len(filled) - 4):
        sheet.write_text("\n".join([head, *filled[:kept]]) + "\n")
        notes = " ".join(map(str, relabel(sheet, *targets).notes()))
        assert ("4 pairs of the pool no longer on the sheet" in notes) == (kept < len(filled))
