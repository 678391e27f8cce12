"""Values by query as CSV and back, known values compared, names of run files, published scores of copies."""

from __future__ import annotations

import csv
import io
import math
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import write_collection
from weir.api import progress as progress_module
from weir.api.progress import Progress
from weir.cli import main
from weir.core.short_names import run_file_name, short_names
from weir.errors import BadValue, FormatError, LossWarning
from weir.files.formats import BY_SUFFIX
from weir.files.runs import run_name
from weir.files.score_files import VALUE_COLUMNS, read_values, values_csv
from weir.stats.resampling import intervals

NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=6)
VALUES = st.floats(-1e6, 1e6) | st.just(math.nan)


@pytest.fixture
def runs(tmp_path):
    qrels = tmp_path / "qrels"
    qrels.write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(8)))
    for name, other in (("good", 1.0), ("poor", 3.0)):
        rows = [f"q{n} Q0 {d} 0 {s} t\n" for n in range(8) for d, s in ((f"d{n}", 2.0), ("x", other))]
        (tmp_path / f"{name}.trec").write_text("".join(rows))
    return qrels, tmp_path / "good.trec", tmp_path / "poor.trec"


def out(capsys, *arguments: object) -> str:
    assert main(list(map(str, arguments))) == 0
    return capsys.readouterr().out


@given(
    st.dictionaries(
        NAMES.filter(lambda name: name.strip() == name),
        st.lists(VALUES, min_size=3, max_size=3),
        min_size=1,
        max_size=3,
    )
)
def test_values_by_query_read_back_as_they_were_whatever_systems_are_called(systems):
    scored = {
        ("data", name): weir.Scores.from_dict({"nDCG@10": dict(zip(("q1", "q,2", 'q"3'), row, strict=True))})
        for name, row in systems.items()
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "values.csv"
        path.write_text(values_csv(scored.items()), encoding="utf-8", newline="")
        back = read_values(path)
    assert list(back) == list(systems)
    for (_, name), scores in scored.items():
        assert repr(back[name].to_dict()) == repr(scores.to_dict())  # nan too


def test_values_by_query_are_a_table_with_a_header_of_one_run_and_of_several(runs, tmp_path, capsys):
    qrels, *files = runs
    for some in (files[:1], files):
        text = out(capsys, "eval", qrels, *some, "-m", "nDCG@10", "-m", "AP", "--per-query", "--csv")
        header, *rows = csv.reader(io.StringIO(text))
        assert tuple(header) == VALUE_COLUMNS
        assert len(rows) == 8 * 2 * len(some)
        for dataset, system, measure, query, value in rows:
            path = next(path for path in files if path.stem == system)
            assert dataset == "qrels"
            assert float(value) == weir.evaluate(qrels, path, measure)[measure][query]
    (tmp_path / "values.csv").write_text(text)
    compared = out(capsys, "compare", tmp_path / "values.csv", "-m", "nDCG@10")
    foreign = text.replace("nDCG@10", "our score")
    (tmp_path / "foreign.csv").write_text(foreign)
    assert "our score on " in out(capsys, "compare", tmp_path / "foreign.csv", "-m", "our score")
    from_files = out(capsys, "compare", qrels, *files, "-m", "nDCG@10")
    assert compared.split("\n")[1:] == from_files.split("\n")[1:]
    bounded = out(capsys, "eval", qrels, files[0], "-m", "AP", "--ties", "bounds", "--per-query", "--csv")
    assert bounded.split("\n")[0].strip() == ",".join((*VALUE_COLUMNS, "lowest", "highest"))


def test_every_row_has_the_cells_of_the_header_beside_a_result_with_bounds(runs):
    qrels, good, _ = runs
    plain, bounded = (weir.evaluate(qrels, good, "AP", {"ties": ties}) for ties in ("trec", "bounds"))
    text = values_csv([(("data", "plain"), plain), (("data", "bounded"), bounded)])
    header, *rows = csv.reader(io.StringIO(text))
    assert len(header) == len(VALUE_COLUMNS) + 2
    assert {len(row) for row in rows} == {len(header)}
    assert {(row[1], row[-2:] == ["", ""]) for row in rows} == {("plain", True), ("bounded", False)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,BM25\nq1,0.5\n", "expected a header with dataset, system, measure, query, value"),
        (
            "system,measure,query,value\na,AP,q1,high\n",
            "line 2: found 'high'; expected a finite number as the value",
        ),
        ("system,measure,query,value\na,AP,q1,1_0\n", "line 2: found '1_0'"),
        (
            "system,measure,query,value\na,AP,q1," + "9" * 140_000 + "\n",
            "a cell of more than 131,072 characters",
        ),
        ("system,measure,query,value\ra,AP,q1,1\r", "a carriage return without a line feed"),
        ('system,measure,query,value\na,"AP"@5,q1,1\n', "line 2: found bad quoting"),
        ('"system",measure,query,value\n"a\nb",AP,q1,1\n,AP,q1,1\n', "line 4: found an empty system"),
        ("system,measure,query,value\na,AP,all,1\n", "rows of the query 'all' alone"),
        ("system,measure,query,value\na,AP,all,x\na,AP,q1,1\n", "line 2: found 'x'"),
        ("system,measure,query,value\na,AP,q1,1\na,AP,q1,1\n", "twice for a"),
        ("system,measure,query,value\na,AP,q1,1\na,RR,q2,1\n", "RR has other queries than AP"),
        ("dataset,system,measure,query,value\nx,a,AP,q1,1\ny,a,AP,q1,1\n", "a second dataset, y"),
        ("system,measure,query,value,value\na,AP,q1,1,0\n", "two columns named value"),
        ("system,measure,query,value,split\na,AP,q1,1,dev\na,AP,q2,1,test\n", "a second split, test"),
    ],
)
def test_another_table_of_values_is_refused_with_what_was_found(text, said, tmp_path):
    (tmp_path / "values.csv").write_text(text)
    with pytest.raises(FormatError, match=said):
        read_values(tmp_path / "values.csv")


@pytest.mark.parametrize(("mean", "kept"), [("0.500", False), ("0.9", True)])
def test_means_that_trec_eval_prints_are_no_query(tmp_path, mean, kept):
    """A query may be called all; one whose values are the means of the others is none."""
    rows = [
        f"{system},AP,{query},{value}"
        for system in "ab"
        for query, value in (("q1", 0.2), ("q2", 0.8), ("all", mean))
    ]
    (tmp_path / "values.csv").write_text("\n".join(["system,measure,query,value", *rows]) + "\n")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = read_values(tmp_path / "values.csv")
    assert [("all" in of.to_dict()["AP"]) for of in found.values()] == [kept, kept]
    assert [str(one.message).partition(": ")[2] for one in said] == [
        "not read: 2 rows of the means over 'all' queries"
    ] * (not kept)


@pytest.mark.parametrize("head", ["system,measure,query,value", "System;Measure;Query;Value"])
def test_tables_of_values_as_trec_eval_and_spreadsheets_write_them(head, tmp_path):
    rows = ["a,runid,all,bm25", "a,num_q,all,2", "a,map,all,0.5", "a,map,q1,0.2", "a,map,q2,0.8"]
    text = "\n".join(rows) if "," in head else "\n".join(rows).replace(",", ";").replace(".", ",")
    (tmp_path / "values.csv").write_text(f"{head}\n{text}\n")
    with pytest.warns(LossWarning, match="not read: 3 rows of the means over 'all' queries"):
        assert read_values(tmp_path / "values.csv")["a"].to_dict() == {"map": {"q1": 0.2, "q2": 0.8}}


@given(
    st.lists(st.lists(st.sampled_from(["0.5", "0,5", "1", "x", ""]), max_size=2), min_size=1, max_size=5),
    st.lists(st.sampled_from(["note", "lowest"]), max_size=2, unique=True),
)
def test_each_cell_of_a_table_of_values_is_read_told_or_refused(rows, more):
    header = ["system", "measure", "query", "value", *more]
    lines = [",".join(["a", "AP", f"q{n}", *cells]) for n, cells in enumerate(rows)]
    text = "\n".join([",".join(header), *lines]) + "\n"
    whole = list(csv.reader(io.StringIO(text)))[1:]
    with TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = Path(folder) / "values.csv"
        path.write_text(text, encoding="utf-8")
        try:
            found = read_values(path)["a"].to_dict()["AP"]
        except FormatError:
            assert any(len(row) != len(header) or row[3] == "x" for row in whole)
            return
    assert all(len(row) == len(header) for row in whole)
    read = {row[2]: math.nan if row[3] == "" else float(row[3]) for row in whole}
    assert repr(found) == repr(read)
    assert [name for name in more if name in str([one.message for one in caught])] == more


@settings(max_examples=30)
@given(st.floats(1.01, 100), st.booleans())
def test_values_that_a_measure_cannot_have_meet_in_no_interval_or_verdict(scale, negative):
    one = {f"q{n}": (n + 1) / 9 * scale * (-1) ** negative for n in range(9)}
    scores = weir.Scores.from_dict({"nDCG@10": one})
    [row] = (r for r in intervals(scores))
    assert row.low <= row.mean <= row.high
    for ask in (weir.compare, lambda named: weir.power({"q": {"d": 1}}, *named.values())):
        with pytest.raises(BadValue, match="values lie within 0 to 1"):
            ask({"a": scores, "b": scores})


def test_known_values_are_compared_as_the_refusal_of_dicts_says():
    first, second = ({f"q{n}": value + n / 100 for n in range(9)} for value in (0.1, 0.5))
    with pytest.raises(BadValue, match=r"weir\.Scores\.from_dict"):
        weir.compare({"a": first, "b": second})
    scores = {name: weir.Scores.from_dict({"nDCG@10": of}) for name, of in (("a", first), ("b", second))}
    [comparison] = weir.compare(scores)
    assert comparison.pairs[0].difference == pytest.approx(0.4)
    for odd in ({}, {"AP": {}}):
        with pytest.raises(BadValue, match="no values"):
            weir.Scores.from_dict(odd)


@given(st.sampled_from([*sorted(BY_SUFFIX), ""]), st.sampled_from(["", ".gz", ".zst"]), st.booleans())
def test_a_file_of_rankings_has_one_name_alone_and_in_a_results_folder(ending, packed, of_dataset):
    file = f"BM25{ending}{packed}"
    assert run_name(Path("runs") / file) == "BM25"
    assert short_names([f'run("runs/{file}")', "bm25"])[0] == "BM25"
    if of_dataset:
        assert run_file_name("{dataset}." + file) == "BM25"
    both = short_names([f'run("a/{file}")', f'run("b/{file}")'])
    assert len(set(both)) == 2


def test_run_files_go_by_their_names_in_every_form_and_are_labelled_by_them(runs, tmp_path, capsys):
    _, *files = runs
    data = write_collection(
        tmp_path / "data", {**{f"d{n}": ("", f"weir {n}") for n in range(8)}, "x": ("", "x")}
    )
    (data / "queries.jsonl").write_text("".join(f'{{"_id": "q{n}", "text": "weir"}}\n' for n in range(8)))
    rows = "".join(f"q{n}\td{n}\t1\n" for n in range(8))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    systems = [word for path in files for word in ("-s", f'run("{path}")')]
    folder = tmp_path / "r"
    out(capsys, "run", "-d", data, *systems, "-m", "nDCG@10", "-o", folder, "-q")
    assert "data & good & " in out(capsys, "results", folder, "--latex")
    assert "| data | poor |" in out(capsys, "results", folder, "--markdown")
    assert "data & best & " in out(capsys, "results", folder, "--latex", "--label", "best=good")
    assert "good - poor" in out(capsys, "compare", folder, "--baseline", "poor")


def test_results_in_python_have_the_letters_of_the_command(tmp_path, capsys):
    weir.benchmark(["brook-facts", "brook-news"], ["bm25", "rm3"], ["nDCG@10"], tmp_path)
    table = weir.results(tmp_path)
    assert table.shown() == out(capsys, "results", tmp_path).rstrip("\n")
    assert table.to_latex() == out(capsys, "results", tmp_path, "--latex").rstrip("\n")
    assert "$^{\\mathrm{a}}$" in table.to_latex()


@pytest.mark.parametrize(
    ("asked", "dataset", "split"),
    [
        ("msmarco:test", "trec-dl-2019", "test"),
        ("hf:mteb/scifact", "scifact", None),
        ("scifact", "scifact", None),
        ("scifact:test", "scifact", "test"),
    ],
)
def test_a_copy_and_a_split_have_the_scores_of_what_they_are_copies_of(asked, dataset, split):
    scores = weir.published(asked)
    assert len(scores) > 0
    assert {one.dataset for one in scores} == {dataset}
    assert list(scores) == [one for one in weir.published(dataset) if split in (None, one.split)]
    assert str(weir.published(asked, measure="AP@7")).startswith(
        f"note: nothing is published of AP@7, {asked}; "
    )


def test_progress_outside_a_terminal_begins_after_a_while(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    with Progress(after=10) as progress:
        progress("index", 1, 9)
        now[0] += 9
        progress("search", 1, 9)
        assert capsys.readouterr().err == ""
        now[0] += 2
        progress("search", 2, 9)
        assert "search  2/9" in capsys.readouterr().err


def test_geometric_means_of_values_from_elsewhere_are_those_of_the_folder(tmp_path, capsys):
    """Values of gmAP are logarithms in CSV too; what is none is refused."""
    weir.benchmark("brook-facts", ["bm25", "bm25(b=0.0)"], ["gmAP", "AP"], out=tmp_path / "r")
    assert main(["results", str(tmp_path / "r"), "--per-query", "--csv"]) == 0
    (tmp_path / "v.csv").write_text(capsys.readouterr().out, encoding="utf-8")
    there, own = weir.compare(tmp_path / "v.csv"), weir.compare(tmp_path / "r")
    assert [str(one) for one in there] == [str(one) for one in own]
    scores = weir.evaluate("brook-facts", next((tmp_path / "r").glob("*/bm25-*/run.trec")), ["gmAP", "AP"])
    assert weir.Scores.from_dict(scores.to_dict()).means() == scores.means()
    with pytest.raises(BadValue, match=r"found gmAP of 0\.5; its values are logarithms"):
        weir.Scores.from_dict({"gmAP": {"q1": 0.5, "q2": 0.0}})
