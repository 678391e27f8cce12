"""Logs of clicks become judgments by stated models; what a log lacks for a model is said."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

import weir
from weir.cli import main
from weir.errors import BadValue, LossWarning, WeirError
from weir.plugins.importing.click_models import ClickLog, click_shares, parse_click_model

TABLE = """query,url,clicks,impressions,position
red shoes,a,50,100,1
red shoes,b,30,100,2
red shoes,b,12,20,1
red shoes,a,3,20,2
wool socks,c,1,100,1
wool socks,d,20,100,2
wool socks,d,4,8,3
rain coat,e,1,5,1
"""


def log(rows):
    columns = np.array(rows, float).T
    return ClickLog(columns[0].astype(int), columns[1].astype(int), columns[2], columns[3])


def test_the_default_is_clicks_over_expected_clicks_with_intervals_and_origin(tmp_path, capsys):
    (tmp_path / "clicks.csv").write_text(TABLE)
    assert main(["data", "import", str(tmp_path / "clicks.csv"), "-o", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().out
    assert "121 clicks of 453 impressions; grades by coec (by default" in said
    assert "pairs shown fewer than 10 times, --impressions 10 (1)" in said
    with pytest.warns(LossWarning, match="not imported: pairs shown fewer than 10 times"):
        found = weir.load(tmp_path / "mine")
    names = {
        text: name for name, text in zip(found.queries.ids.tolist(), found.queries.text.tolist(), strict=True)
    }
    first, second, third = 64 / 225, 53 / 220, 4 / 8
    expected = {"red shoes": {"a": 53 / (100 * first + 20 * second), "b": 42 / (100 * second + 20 * first)},
                "wool socks": {"c": 1 / (100 * first), "d": 24 / (100 * second + 8 * third)}}  # fmt: skip
    judged = found.qrels.to_dict()
    for query, row in expected.items():
        assert judged[names[query]] == pytest.approx(row, abs=1e-12)
    assert set(found.qrels.origin.tolist()) == {"clicks"}
    lines = (tmp_path / "mine" / "clicks" / "test.tsv").read_text().splitlines()
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]
    assert len(rows) == 4
    for row in rows:
        assert float(row["low"]) <= float(row["share"]) <= float(row["high"])
        assert float(row["share"]) == pytest.approx(float(row["clicks"]) / float(row["expected"]), abs=1e-12)


def test_the_interval_of_a_click_through_rate_is_wilsons():
    [found] = click_shares(log([[0, 0, 7, 40]]), parse_click_model("ctr"))
    z, n, p = 1.959963984540054, 40, 7 / 40
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    assert (found.value, found.low, found.high) == pytest.approx((p, centre - half, centre + half), abs=1e-12)


def test_given_examination_divides_it_out():
    rows = [[0, 1, 50, 100], [0, 2, 30, 100], [1, 2, 0, 50]]
    shares = click_shares(log(rows), parse_click_model("pbm=1,0.6"))
    assert [one.value for one in shares] == pytest.approx([80 / 160, 0])
    assert [one.expected for one in shares] == pytest.approx([160, 30])
    assert shares[1].low == 0 < shares[1].high < 0.2


def test_estimated_examination_is_that_of_counts_without_chance():
    """Counts as expected: what is estimated is what they were made of, but for the scale that no log tells."""
    attractive, examined = np.array([0.8, 0.5, 0.3, 0.1]), np.array([1.0, 0.5, 0.25])
    rows = [[d, p + 1, 1000 * attractive[d] * examined[p], 1000] for d in range(4) for p in range(3)]
    found = click_shares(log(rows), parse_click_model("pbm"))
    assert [one.value for one in found] == pytest.approx(attractive.tolist(), abs=1e-3)


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ("query,url,clicks\na b,x,3\n", [], "counts clicks and no column counts impressions"),
        ("query,url,clicks,impressions\na b,x,3,50\n", ["--clicks", "coec"], "coec takes the position of each impression"),
        ("query,url,clicks,impressions\na b,x,3,50\n", ["--clicks", "pbm"], "pbm takes the position"),
        (TABLE, ["--clicks", "pbm=1,0.6"], "down to position 3, and examination is given for 2"),
        ("query,url,clicks,impressions,rank\na b,x,3,50,1\na b,y,3,50,2\n", ["--clicks", "pbm"], "no document was shown at position 2 and elsewhere"),
        (TABLE, ["--impressions", "1000"], "none of 5 pairs of query and document was shown 1000 times"),
        (TABLE, ["--impressions", "0"], "a floor of 0 impressions"),
        (TABLE, ["--clicks", "dbn"], "no click model named 'dbn'"),
        (TABLE, ["--clicks", "pbm=1,2"], "expected ctr, coec, pbm, or pbm=1,0.6,0.4"),
    ],
)  # fmt: skip
def test_what_a_log_lacks_for_a_model_is_one_line(tmp_path, capsys, table, options, said):
    (tmp_path / "log.csv").write_text(table)
    assert main(["data", "import", str(tmp_path / "log.csv"), "-o", str(tmp_path / "mine"), *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "mine").exists()


def test_a_log_of_refused_rows_alone_gives_the_first_reason(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("query,doc,clicks,impressions\na b,x,30,10\n")
    assert main(["data", "import", str(tmp_path / "log.csv"), "-o", str(tmp_path / "mine")]) == 2
    assert "nothing to import (line 2: 30 clicks of 10 impressions)" in capsys.readouterr().err


def test_rows_are_refused_one_by_one_and_averaged_positions_are_not_used(tmp_path, capsys):
    table = "query,page,clicks,impressions,ctr,position\na b,x,30,100,30%,1.4\na b,y,30,10,9,2\na b,z,-1,10,9,2\na b,w,2,many,9,2\na b,v,2,30,9,1e300\n"
    (tmp_path / "console.csv").write_text(table)
    command = ["data", "import", str(tmp_path / "console.csv"), "-o", str(tmp_path / "mine"), "--allow-loss"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "4 rows refused, the first: line 3: 30 clicks of 10 impressions" in said
    assert "have fractions, as averages do, and are not used" in said
    assert "grades by ctr (by default" in said
    assert "not imported: ctr" in said


def test_columns_are_named_and_each_row_may_be_an_impression(tmp_path):
    rows = [
        "q,u,hit,at",
        *(f"a b,x,{int(n < 3)},0" for n in range(12)),
        *(f"a b,y,{n < 1},1" for n in range(12)),
    ]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    columns = {"query": "q", "doc": "u", "clicked": "hit", "rank": "at"}
    report = weir.import_files(
        tmp_path / "log.csv", tmp_path / "mine", columns, choices=weir.plugins.importing.Choices(clicks="ctr")
    )
    [grades] = weir.load(tmp_path / "mine").qrels.to_dict().values()
    assert grades == {"x": 0.25, "y": pytest.approx(1 / 12)}
    assert "positions begin at 0" in report.lines()[0]


@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_searches_and_events_of_ubi_are_impressions_by_query(tmp_path):
    searches = "".join(
        f'{n}\tred shoes\t50\t0.5\t["x", "y"]\t[false, false]\t[{int(n < 6)}, {int(n < 1)}, 0]\n'
        for n in range(12)
    )
    events = []
    for n in range(12):
        for at, doc in enumerate("xy"):
            for action in ["impression"] + ["click"] * (2 if doc == "x" and n < 6 else 0):
                about = {"object": {"object_id": doc}, "position": {"ordinal": at}}
                events.append({"action_name": action, "query_id": f"s{n}", "user_query": "red shoes", "event_attributes": about})  # fmt: skip
    events.append(
        events[0] | {"action_name": "click", "event_attributes": {"object": {"object_id": "unseen"}}}
    )
    (tmp_path / "searches.tsv").write_text(searches)
    (tmp_path / "ubi.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))
    for name, second in (("searches.tsv", 1 / 12), ("ubi.jsonl", 0)):
        report = weir.import_files(
            tmp_path / name, tmp_path / name[:3], choices=weir.plugins.importing.Choices(clicks="ctr")
        )
        [grades] = weir.load(tmp_path / name[:3]).qrels.to_dict().values()
        assert grades == {"x": 0.5, "y": pytest.approx(second)}
    assert (
        "not imported: clicks on documents without an impression in the same search (1)" in report.lines()[0]
    )


def test_a_table_with_grades_stays_judgments_and_says_which_columns_are_not_kept(tmp_path, capsys):
    (tmp_path / "j.csv").write_text("query,url,grade,clicks,impressions\na b,x,2,30,100\na b,y,0,1,100\n")
    assert main(["data", "import", str(tmp_path / "j.csv"), "-o", str(tmp_path / "mine")]) == 0
    assert "not imported: clicks" in capsys.readouterr().out
    with pytest.warns(LossWarning, match=r"j\.csv: not imported: clicks \(2\)"):
        assert list(weir.load(tmp_path / "mine").qrels.to_dict().values()) == [{"x": 2, "y": 0}]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"q.csv": "query_id,doc,grade\nq1,a,1\n", "r.csv": "query_id,doc,rank\n7,a,1\n"}, "run r: it answers none of the 1 judged queries"),
        ({"q.csv": "query_id,doc,grade\nq1,a,1\n", "t.jsonl": '{"_id": "7", "text": "wool socks"}\n'}, "there is a text for none of the 1 judged queries"),
        ({"q.csv": "query_id,doc,grade\nq1,a,1\n", "d.jsonl": '{"_id": "7", "text": "a dam"}\n'}, "none of the 1 judged documents, such as 'a', is among them"),
    ],
)  # fmt: skip
def test_imports_that_cannot_belong_together_are_refused(tmp_path, capsys, files, said):
    paths = []
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    kinds = [
        f"--as={name}={kind}"
        for name, kind in (("t.jsonl", "queries"), ("d.jsonl", "corpus"))
        if name in files
    ]
    assert main(["data", "import", *paths, "-o", str(tmp_path / "mine"), *kinds]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()
    assert main(["data", "import", *paths, "-o", str(tmp_path / "mine"), "--allow-disjoint", *kinds]) == 0
    assert (tmp_path / "mine" / "qrels" / "test.tsv").exists()


def test_a_model_is_what_it_prints():
    for text in ("ctr", "coec", "pbm", "pbm=1,0.6,0.4"):
        assert str(parse_click_model(text)) == text
    with pytest.raises(BadValue, match="the click model 'coec=1'"):
        parse_click_model("coec=1")


def test_a_described_log_is_made_anew_by_another_model(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    (tmp_path / "log.csv").write_text(
        "query,doc,clicks,impressions,position\na b,x,30,100,1\na b,y,10,100,2\n"
    )
    for text, grades in (
        ('clicks = "ctr"', {"x": 0.3, "y": 0.1}),
        ('clicks = "pbm=1,0.5"', {"x": 0.3, "y": 0.2}),
        ('clicks = "pbm=1,0.5"\nimpressions = 101', None),
    ):
        (tmp_path / "log.toml").write_text(f'kind = "clicks"\n{text}\n')
        if grades is None:
            with pytest.raises(BadValue, match="none of 2 pairs"):
                weir.load(tmp_path / "log.csv")
        else:
            [found] = weir.load(tmp_path / "log.csv").qrels.to_dict().values()
            assert found == pytest.approx(grades)


def _table(tmp_path, text: str, name: str = "c.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("counts", [("1.000", "5.000"), ("12.500", "40.000"), ("3", "1.200")])
def test_counts_with_marks_between_thousands_are_refused(tmp_path, separator, counts):
    rows = [("query", "doc_id", "clicks", "impressions"), ("red", "a", *counts), ("red", "b", "1", "50")]
    path = _table(tmp_path, "".join(separator.join(row) + "\n" for row in rows))
    with pytest.raises(WeirError, match="thousands"):
        weir.import_files(path, tmp_path / "out")


def test_two_columns_of_clicks_are_asked_about_in_any_order(tmp_path):
    for header in ("clicks,total_clicks", "total_clicks,clicks"):
        path = _table(tmp_path, f"query,doc_id,{header},impressions\nred,a,1,2,50\n")
        with pytest.raises(BadValue, match="clicks and total_clicks could each be the clicks"):
            weir.import_files(path, tmp_path / "out")


def test_documents_that_were_never_shown_are_told(tmp_path):
    path = _table(tmp_path, "query,doc_id,clicks,impressions\nred,a,1,50\nred,b,0,0\n")
    report = weir.import_files(path, tmp_path / "out")
    assert "not imported: rows of documents that were never shown (1)" in " ".join(report.lines())


def test_clicks_of_one_query_in_two_languages_are_no_sum(tmp_path):
    path = _table(tmp_path, "query,language,doc_id,clicks,impressions\nred,en,a,1,50\nred,de,a,9,50\n")
    with pytest.raises(BadValue, match="a row of language 'de' for query 'red'"):
        weir.import_files(path, tmp_path / "out")


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_events_are_no_ranking_whatever_their_column_is_called(tmp_path, capsys, seed):
    draw = random.Random(seed)
    words = draw.sample(
        ["click", "Impression", "view", "add_to_cart", "add to cart", "PURCHASE", "page-view"], 3
    )
    name = draw.choice(["event", "action", "event_type", "type", "what happened"])
    place = draw.choice(["position", "rank", "date"])
    rows = [(f"q{n % 3}", f"d{n}", draw.choice(words), str(n + 1)) for n in range(draw.randint(1, 30))]
    path = tmp_path / "log.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [("query_id", "doc_id", name, place), *rows]))
    command = ["data", "import", str(path), "-o", str(tmp_path / "mine")]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert f"the rows are events ({rows[0][2]}" in said
    assert f"in '{name}'), no ranking" in said
    assert main([*command, "--columns", "retrieved=doc_id"]) == 0
    other = [*rows, ("q0", "another", "a remark", "99")]  # a column that also holds other words says nothing
    path.write_text("".join(",".join(row) + "\n" for row in [("query_id", "doc_id", name, place), *other]))
    main(command)
    assert "the rows are events" not in capsys.readouterr().err
