"""Files, folders and descriptions as collections: brought once for each content, asked about what they leave open."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weir
from weir.cli.main import main
from weir.errors import BadValue, FormatError, UnknownName, WeirError

ROWS = [
    {"query": "red shoes", "relevant": ["d1"], "group": "colour"},
    {"query": "wool socks", "relevant": ["d2", "d3"], "group": "cloth"},
]
DOCUMENTS = "".join(
    json.dumps({"_id": f"d{n}", "text": text}) + "\n"
    for n, text in enumerate(["hat", "red shoe", "wool sock", "warm sock"])
)
TABLE = "q,url,ctr\nred shoes,d1,2\nred shoes,d2,0\nwool socks,d2,1\n"


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def shop(tmp_path):
    """A golden set, its documents, and a TOML file that joins them."""
    (tmp_path / "golden.jsonl").write_text(lines(ROWS))
    (tmp_path / "products.jsonl").write_text(DOCUMENTS)
    (tmp_path / "golden.toml").write_text('documents = "products.jsonl"\n')
    return tmp_path


def by_text(dataset):
    texts = dataset.queries.to_dict()
    return {texts[query]: row for query, row in dataset.qrels.to_dict().items()}


def test_a_golden_set_is_a_collection(shop, home):
    dataset = weir.load(shop / "golden.jsonl")
    assert by_text(dataset) == {"red shoes": {"d1": 1}, "wool socks": {"d2": 1, "d3": 1}}
    assert (dataset.name, dataset.split, len(dataset.corpus)) == ("golden", "test", 4)
    assert "group" in dataset.layout.need_queries().path.read_text()
    (kept,) = home.glob("references/golden-*")
    assert not (kept / "corpus.jsonl").exists()  # the documents stay where they are
    before = (kept / "queries.jsonl").stat().st_mtime_ns
    weir.load(shop / "golden.jsonl")
    assert (kept / "queries.jsonl").stat().st_mtime_ns == before
    (shop / "golden.jsonl").write_text(lines(ROWS[:1]))
    assert len(weir.load(shop / "golden.jsonl").queries) == 1


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | st.sampled_from([lines(ROWS).encode(), TABLE.encode()]).flatmap(
           lambda whole: st.integers(0, len(whole)).map(lambda at: whole[:at])),
       name=st.sampled_from(["x.jsonl", "x.csv", "x.toml", "x.parquet", "x.zip", "corpus/x.parquet", "corpus/test.jsonl"]))  # fmt: skip
def test_whatever_a_file_holds_it_is_a_collection_or_one_line(tmp_path, data, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data)
    said = ""
    try:
        weir.load(tmp_path if "/" in name else tmp_path / name)
    except WeirError as error:
        said = str(error)
    assert "\n" not in said
    (tmp_path / name).unlink()


def test_the_card_of_a_golden_set(shop, capsys):
    assert main(["data", "stats", str(shop / "golden.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 4
    assert len(weir.Dataset.load(shop / "golden.jsonl").qrels) == 2


def test_a_golden_set_is_run(shop, capsys):
    pytest.importorskip("numba", reason="BM25 takes numba")
    assert (
        main(
            [
                "run",
                "-q",
                "-d",
                str(shop / "golden.jsonl"),
                "-s",
                "bm25",
                "-m",
                "R@10",
                "-o",
                str(shop / "results"),
            ]
        )
        == 0
    )
    assert "golden" in capsys.readouterr().out
    assert main(["verify", str(shop / "results")]) == 0


def test_documents_that_are_not_there_are_asked_for(shop):
    (shop / "golden.toml").unlink()
    dataset = weir.load(shop / "golden.jsonl")
    with pytest.raises(
        FormatError,
        match=r'golden.jsonl: found no documents; expected documents = "FILE OR FOLDER" in golden.toml',
    ):
        len(dataset.corpus)


def test_texts_beside_identifiers_are_documents(tmp_path):
    row = {
        "query": "red shoes",
        "relevant": [{"id": "d1", "text": "a red shoe", "title": "Shoe"}, {"id": "d2", "grade": 2}],
    }
    (tmp_path / "golden.jsonl").write_text(lines([row]))
    dataset = weir.load(tmp_path / "golden.jsonl")
    assert by_text(dataset) == {"red shoes": {"d1": 1, "d2": 2}}
    assert dataset.corpus.view("title text").tolist() == ["Shoe a red shoe"]


def test_words_are_looked_up_in_the_documents_beside(shop, home):
    (shop / "golden.jsonl").write_text(
        lines([{"question": "what warms feet", "expected_keywords": ["sock"]}])
    )
    assert by_text(weir.load(shop / "golden.jsonl")) == {"what warms feet": {"d2": 1, "d3": 1}}
    (kept,) = home.glob("references/golden-*")
    assert not (kept / "corpus.jsonl").exists()


def test_what_columns_leave_open_is_asked_and_said_in_the_toml(tmp_path, capsys):
    (tmp_path / "clicks.csv").write_text("q,url,ctr\n" + "\n".join(TABLE.split("\n")[1:]))
    assert main(["data", "stats", str(tmp_path / "clicks.toml")]) == 2  # nothing there
    with pytest.raises(WeirError, match=r"say which|`columns"):
        weir.load(tmp_path / "clicks.csv")
    (tmp_path / "clicks.toml").write_text(
        'columns = { query = "q", doc = "url", grade = "ctr" }\nsplit = "test"\n'
    )
    assert by_text(weir.load(tmp_path / "clicks.csv")) == {
        "red shoes": {"d1": 2, "d2": 0},
        "wool socks": {"d2": 1},
    }


DESCRIBED = """
name = "shop"
self_match = "drop"
instruction = "Find the product"
[[files]]
path = "products/*.csv"
kind = "corpus"
columns = { doc = "sku", text = "about", title = "name" }
[[files]]
path = "asked.csv"
kind = "queries"
columns = { query_id = "nr", query = "wanted" }
[[files]]
path = "judged.csv"
columns = { query_id = "nr", doc = "sku", grade = "stars" }
split = "dev"
"""


def test_one_toml_describes_an_unusual_layout(tmp_path):
    (tmp_path / "products").mkdir()
    for n in range(2):
        (tmp_path / f"products/{n}.csv").write_text(f"sku,name,about,price\ns{n},Shoe {n},a red shoe,{n}.5\n")
    (tmp_path / "asked.csv").write_text(
        "nr,text,wanted,region\n1,ignored,red shoes,north\n2,ignored,blue shoes,south\n"
    )
    (tmp_path / "judged.csv").write_text("nr,sku,stars\n1,s0,3\n2,s1,1\n")
    (tmp_path / "shop.toml").write_text(DESCRIBED)
    shop = weir.load(tmp_path / "shop.toml")
    assert (shop.name, shop.split, shop.self_match, shop.instruction) == (
        "shop",
        "dev",
        "drop",
        "Find the product",
    )
    assert shop.queries.to_dict() == {"1": "red shoes", "2": "blue shoes"}
    assert shop.qrels.to_dict() == {"1": {"s0": 3}, "2": {"s1": 1}}
    assert shop.corpus.view("title text").tolist() == ["Shoe 0 a red shoe", "Shoe 1 a red shoe"]
    rows = [json.loads(line) for line in shop.layout.need_queries().path.read_text().splitlines()]
    assert rows[0]["metadata"]["region"] == "north"
    assert main(["data", "import", str(tmp_path / "shop.toml"), "-o", str(tmp_path / "canonical")]) == 0
    written = weir.load(tmp_path / "canonical")
    assert written.fingerprint == shop.fingerprint
    assert (written.name, written.split, written.self_match, written.instruction) == (
        "shop",
        "dev",
        "drop",
        "Find the product",
    )


WRONG = {
    "another key": ('files = []\ncolour = "red"', UnknownName, "key of .*mine.toml named 'colour'"),
    "no files": ("files = []", FormatError, "found no files"),
    "no such file": ('[[files]]\npath = "none.csv"', FormatError, "found no file none.csv"),
    "no such pattern": ('[[files]]\npath = "*.csv"', FormatError, r"found no file \*.csv"),
    "another reader": ('[[files]]\npath = "mine.toml"\nkind = "qrel"', UnknownName, "'qrel'.*did you mean qrels"),
    "another role": ('[[files]]\npath = "mine.toml"\ncolumns = { dok = "x" }', UnknownName, "role of a column named 'dok'"),
    "columns that are none": ('[[files]]\npath = "mine.toml"\ncolumns = "x"', FormatError, "found columns = 'x'"),
    "files that are none": ('files = ["a.csv"]', FormatError, "found files that are no tables"),
    "a path that is none": ("[[files]]\npath = 3", FormatError, "found path = 3"),
    "self_match": ('self_match = "maybe"\n[[files]]\npath = "mine.toml"', FormatError, "self_match = 'maybe'"),
    "grades": ('grades = "some"\n[[files]]\npath = "mine.toml"', BadValue, "`grades`: found 'some'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_description_that_is_wrong_is_one_line(tmp_path, case):
    text, kind, said = WRONG[case]
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(kind, match=said) as caught:
        weir.load(tmp_path / "mine.toml")
    assert "\n" not in str(caught.value)


def test_documents_in_two_places_are_refused(shop):
    (shop / "golden.jsonl").write_text(
        lines([{"query": "red shoes", "relevant": [{"id": "d1", "text": "other"}]}])
    )
    with pytest.raises(
        FormatError, match=r"documents in golden.jsonl and in products.jsonl; expected documents in one place"
    ):
        weir.load(shop / "golden.jsonl")


def saved(folder, rows, shards=1):
    """A data set as `save_to_disk` of datasets writes it: Arrow streams and their record."""
    folder.mkdir(parents=True)
    table = pyarrow.Table.from_pylist(rows)
    names = [f"data-{n:05d}-of-{shards:05d}.arrow" for n in range(shards)]
    for n, name in enumerate(names):
        part = table.slice(n * len(rows) // shards, (n + 1) * len(rows) // shards - n * len(rows) // shards)
        with (folder / name).open("wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(part)
    record = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "ab", "_split": None}
    (folder / "state.json").write_text(json.dumps(record))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}, "citation": ""}))


def write_table(folder, split, rows, form):
    """Rows of a split as Parquet, as the hub's conversion of it, or as `save_to_disk` writes them."""
    if form == "saved":
        return saved(folder / split, rows)
    path = folder / {"parquet": f"{split}-00000-of-00001.parquet", "converted": f"{split}/0000.parquet"}[form]
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


@pytest.mark.parametrize("form", ["saved", "converted"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    splits=st.dictionaries(st.sampled_from(["train", "validation", "test"]), st.integers(1, 3), min_size=1),
    split_corpus=st.booleans(),
)
def test_splits_in_numbered_tables_load_as_in_parquet(tmp_path_factory, form, splits, split_corpus):
    def layout(form):
        folder = tmp_path_factory.mktemp(form)
        documents = [{"_id": f"d{n}", "title": "", "text": f"word{n}"} for n in range(4)]
        write_table(folder / "corpus", "test" if split_corpus else "corpus", documents, form)
        for split, count in splits.items():
            queries = [{"_id": f"{split}{n}", "text": f"word of {split} {n}"} for n in range(count)]
            write_table(folder / "queries", split, queries, form)
            grades = [{"query-id": one["_id"], "corpus-id": "d1", "score": 1} for one in queries]
            write_table(folder / "qrels", split, grades, form)
        return folder

    first, second = layout("parquet"), layout(form)
    for split in splits:
        one, other = weir.load(f"{first}:{split}"), weir.load(f"{second}:{split}")
        assert one.queries.to_dict() == other.queries.to_dict()
        assert one.qrels.to_dict() == other.qrels.to_dict()
        assert one.corpus.fingerprint == other.corpus.fingerprint
    out = tmp_path_factory.mktemp("out") / "mine"
    tables = sorted(path for path in second.rglob("*") if path.suffix in (".arrow", ".parquet"))
    report = weir.import_files(tables, out).whole
    assert report["judgments"] == splits
    assert report["queries"] == sum(splits.values())


def test_documents_that_come_again_are_counted_where_they_are_used(tmp_path, home):
    documents = [{"_id": name, "text": f"word{name}"} for name in "abcab"]
    write_table(tmp_path / "mine" / "corpus", "corpus", documents, "parquet")
    write_table(tmp_path / "mine" / "queries", "queries", [{"_id": "q", "text": "worda"}], "parquet")
    judged = [{"query-id": "q", "corpus-id": "a", "score": 1}]
    write_table(tmp_path / "mine" / "qrels", "test", judged, "parquet")
    with pytest.warns(
        weir.errors.LossWarning, match="documents that come again with the same text, kept once: 2"
    ):
        assert len(weir.load(tmp_path / "mine").corpus) == 3


@pytest.mark.parametrize("split_folders", [False, True])
def test_saved_data_sets_are_a_collection_or_named(tmp_path, capsys, split_folders):
    folder = tmp_path / "saved"
    documents = [{"_id": f"d{n}", "title": "", "text": f"word{n}"} for n in range(7)]
    queries = [{"_id": "q1", "text": "word1"}, {"_id": "q2", "text": "word5"}]
    grades = [("q1", "d1", 2), ("q1", "d3", 0), ("q2", "d5", 1)]
    parts = {"corpus": documents, "queries": queries}
    parts["qrels"] = [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in grades]
    for name, rows in parts.items():
        split = ("test" if name == "qrels" else name) if split_folders else ""
        saved(folder / name / split, rows, shards=3 if name == "corpus" else 1)
        if split:
            (folder / name / "dataset_dict.json").write_text(json.dumps({"splits": [split]}))
    found = weir.load(str(folder))
    assert len(found.corpus) == 7
    assert by_text(found) == {"word1": {"d1": 2, "d3": 0}, "word5": {"d5": 1}}
    judgments = folder / "qrels" / ("test" if split_folders else "")
    assert main(["data", "stats", str(judgments)]) == 2
    assert "found a saved data set, data-00000-of-00001.arrow" in capsys.readouterr().err
    assert main(["data", "import", str(judgments), "-o", str(tmp_path / "mine")]) == 2
    said = capsys.readouterr().err
    assert "data-00000-of-00001.arrow" in said
    assert "state.json" not in said
    (next(folder.rglob("data-00001-of-00003.arrow"))).unlink()
    with pytest.raises(WeirError, match="found 2 of 3 shards"):
        weir.load(str(folder))


def test_a_description_takes_no_options_but_permissions(tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("query,document,grade\n" + "red,a,1\n" * 4 + ",b,1\n,c,1\n")
    (tmp_path / "mine.toml").write_text('[[files]]\npath = "mine.csv"\n')
    command = ["data", "import", str(tmp_path / "mine.toml"), "-o", str(tmp_path / "out")]
    for option in (
        ["--columns", "query=q"],
        ["--grades", "round"],
        ["--as", "qrels"],
        ["--corpus", str(tmp_path)],
    ):
        assert main([*command, *option]) == 2
        assert "says how its files are read" in capsys.readouterr().err
    assert main(command) == 2
    option = re.search(r"add (--[\w-]+)", capsys.readouterr().err)[1]
    assert main([*command, option]) == 0


ADVICE = re.compile(
    r"`(choices|columns)=([^`]+)`.*?\(of weir\.import_files, or of weir data import (.+?) -o FOLDER\)"
)
LOSSY = "query,document,grade\n" + "red,a,1\n" * 4 + ",b,1\n,c,1\n"


@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
@pytest.mark.parametrize("case", ["rows that are lost", "shards that are missing", "documents of others"])
def test_advice_on_a_collection_of_files_is_followed_as_it_stands(tmp_path, home, capsys, case):
    place = tmp_path / "mine"
    if case == "rows that are lost":
        place = tmp_path / "mine.csv"
        place.write_text(LOSSY)
    else:
        write_table(place / "corpus", "corpus", [{"_id": name, "text": name} for name in "abc"], "parquet")
        write_table(place / "queries", "queries", [{"_id": "q", "text": "red"}], "parquet")
        judged = "a" if case == "shards that are missing" else "z"
        write_table(place / "qrels", "test", [{"query-id": "q", "corpus-id": judged, "score": 1}], "parquet")
        if judged == "a":
            shard = place / "corpus" / "corpus-00000-of-00001.parquet"
            shard.rename(shard.with_name("corpus-00000-of-00002.parquet"))
    with pytest.raises(WeirError) as refused:
        weir.load(place)
    name, value, files = ADVICE.search(str(refused.value)).groups()
    paths = [one for pattern in map(Path, files.split()) for one in pattern.parent.glob(pattern.name)]
    for choice in (None, ast.literal_eval(value)):  # without it, the import asks the same
        if choice is None:
            with pytest.raises(WeirError, match="`choices="):
                weir.import_files(paths, tmp_path / "none")
        else:
            weir.import_files(paths, tmp_path / "python", **{name: choice})
    assert main(["run", "-d", str(place), "-s", "bm25", "-o", str(tmp_path / "results")]) == 2
    said = capsys.readouterr().err
    option = re.search(r"(?:add|or) (--[\w-]+)", said)[1]
    assert main(["data", "import", *map(str, paths), "-o", str(tmp_path / "shell"), option]) == 0
    for folder in ("python", "shell"):
        assert weir.load(tmp_path / folder).qrels.to_dict()
