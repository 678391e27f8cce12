"""Every format reads what it writes, refuses what it cannot hold, and is as docs/formats.md says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.strategies import fractions, identifiers
from tests.strategies import scores as numbers

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadRanking, BadValue, FormatError
from weir.files import column_names as names
from weir.files.formats import FORMATS, format_of
from weir.files.runs import join_run_file, read_qrels, read_run
from weir.files.write import write_qrels, write_run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
ENDINGS = [s + p for f in FORMATS for s in f.suffixes for p in (("", ".gz", ".zst") if f.packs else ("",))]
PLAIN = [f.suffixes[0] for f in FORMATS]
HOLD_ALL = [f.suffixes[0] for f in FORMATS if f.name != "trec"]
each_ending = pytest.mark.parametrize("ending", ENDINGS)
ENGINES = ["numpy", *(["numba"] if importlib.util.find_spec("numba") else [])]

# Of need: `1`, `01`, `1.0`, `-5`, `a b`, `é`, a URL, a tab; and what quoting, comments and headers could eat.
ODD = [
    "1", "01", "1.0", "-5", "a b", "é", "http://x.y/z?q=1&r=,#f", "a\tb", '"', '""', '"q"', 'say "a"', "a,b", ",",
    "x\ny", "x\r", "\r\n", "\n", " lead", "trail ", " ", "#c", '{"', "漢", "null", "nan", "query_id", "\u0085", "'",
    "\u2028", "e\u0301", "\U0001f600" * 9, "0" * 40, "\\n", "\0",
]  # fmt: skip
EASY = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
wild = st.one_of(
    identifiers,
    st.sampled_from(ODD),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
        lambda t: not t.startswith("\ufeff")
    ),
)
runs = st.dictionaries(wild, st.dictionaries(wild, numbers, min_size=1, max_size=6), max_size=5)
grades = st.one_of(fractions, st.floats(-(2**14), 2**14))
qrels = st.dictionaries(wild, st.dictionaries(wild, grades, min_size=1, max_size=6), max_size=5)


def small_run() -> Run:
    return Run.of({"q2": {"a": 1.5, "b": 2.5}, "q1": {"a": 0.25, "c": 0.25}})


def small_qrels() -> Qrels:
    return Qrels.of({"q2": {"a": 1, "z": 0}, "q1": {"c": -1, "a": 3}})


@each_ending
def test_each_ending_reads_what_it_writes_and_nothing_is_left_beside(ending, tmp_path):
    run_path, qrels_path = tmp_path / f"r{ending}", tmp_path / f"q{ending}"
    write_run(small_run(), run_path)
    write_qrels(small_qrels(), qrels_path)
    run = read_run(run_path)
    assert run.to_dict() == small_run().to_dict()
    assert list(run.to_dict()["q1"]) == ["c", "a"]
    assert run.name == "r"
    assert read_qrels(qrels_path).to_dict() == small_qrels().to_dict()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([run_path.name, qrels_path.name])


@each_ending
def test_equal_values_make_equal_files(ending, tmp_path):
    for name in ("a", "b"):
        write_run(small_run(), tmp_path / (name + ending))
    assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


@pytest.mark.parametrize("ending", PLAIN)
def test_empty_values(ending, tmp_path):
    write_run(Run.of({}), tmp_path / f"r{ending}")
    write_qrels(Qrels.of({}), tmp_path / f"q{ending}")
    assert len(read_run(tmp_path / f"r{ending}")) == 0
    assert len(read_qrels(tmp_path / f"q{ending}")) == 0


@pytest.mark.parametrize("ending", HOLD_ALL)
def test_odd_identifiers_and_numbers_survive(ending, tmp_path):
    values = [1 / 3, -0.0, 5e-324, 1.7976931348623157e308, 1e22, 0.1 + 0.2, 16777217.0, 123456789.123456789]
    run = Run.of({q: {d: values[i % 8] * (i + 1) ** (i % 8 == 0) for i, d in enumerate(ODD)} for q in ODD})
    judged = Qrels.of({q: {d: i % 5 - 1 for i, d in enumerate(ODD)} for q in ODD})
    write_run(run, tmp_path / f"r{ending}")
    write_qrels(judged, tmp_path / f"q{ending}")
    for engine in ENGINES:
        again = read_run(tmp_path / f"r{ending}", engine=engine)
        assert again.to_dict() == run.to_dict()
        assert again.score.tobytes() == run.score.tobytes()
    assert read_qrels(tmp_path / f"q{ending}").to_dict() == judged.to_dict()


@pytest.mark.filterwarnings("ignore:.* judged ones? but for:weir.errors.RankingWarning")
@pytest.mark.parametrize("ending", HOLD_ALL)
@EASY
@given(run=runs, judged=qrels)
def test_any_run_and_judgments_survive(ending, run, judged, tmp_path):
    write_run(Run.of(run), tmp_path / f"r{ending}")
    write_qrels(Qrels.of(judged), tmp_path / f"q{ending}")
    again, qrels = read_run(tmp_path / f"r{ending}"), read_qrels(tmp_path / f"q{ending}")
    assert again.to_dict() == run
    assert qrels.to_dict() == judged
    joined, straight = join_run_file(tmp_path / f"r{ending}", qrels), Judged.of(again, qrels)
    for column in ("retrieved", "tied", "query", "rank", "grade", "first", "last", "ideal"):
        assert getattr(joined, column).tolist() == getattr(straight, column).tolist(), column
    assert joined.ignored == straight.ignored


@EASY
@given(run=runs)
def test_trec_keeps_what_it_can_hold_and_refuses_the_rest_before_writing(run, tmp_path):
    path = tmp_path / "r.trec"
    path.unlink(missing_ok=True)
    held = not re.search(r"[ \t-\r]", "".join([*run, *(d for r in run.values() for d in r)]), re.ASCII)
    held = held and not any(q.startswith("#") for q in run)
    if held:
        write_run(Run.of(run), path)
        assert read_run(path).to_dict() == run
    else:
        with pytest.raises(BadValue, match="identifier"):
            write_run(Run.of(run), path)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", PLAIN)
def test_rows_may_stand_in_any_order(ending, tmp_path):
    rng = np.random.default_rng(3)
    run = Run.of({f"q{q}": {f"d{d}": float(rng.normal()) for d in range(30)} for q in range(20)})
    write_run(run, tmp_path / f"r{ending}")
    if ending in (".json", ".pickle"):
        return
    shuffle(tmp_path / f"r{ending}", rng)
    assert read_run(tmp_path / f"r{ending}").to_dict() == run.to_dict()


def shuffle(path, rng):
    if path.suffix in (".parquet", ".arrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyarrow import feather

        parquet = path.suffix == ".parquet"
        table = pq.read_table(path) if parquet else feather.read_table(path)
        table = table.take(pa.array(rng.permutation(table.num_rows)))
        pq.write_table(table, path) if parquet else feather.write_feather(table, path)
        return
    lines = path.read_text().splitlines(keepends=True)
    head = 0 if path.suffix == ".trec" else 1
    path.write_text("".join([*lines[:head], *np.array(lines[head:])[rng.permutation(len(lines) - head)]]))


@pytest.mark.parametrize("ending", PLAIN)
def test_the_beginning_tells_the_format_where_the_name_does_not(ending, tmp_path):
    write_run(small_run(), tmp_path / f"r{ending}")
    write_qrels(small_qrels(), tmp_path / f"q{ending}")
    (tmp_path / f"r{ending}").rename(tmp_path / "run")
    (tmp_path / f"q{ending}").rename(tmp_path / "judgments.txt")
    assert read_run(tmp_path / "run").to_dict() == small_run().to_dict()
    assert read_qrels(tmp_path / "judgments.txt").to_dict() == small_qrels().to_dict()
    assert f".{format_of(tmp_path / 'run', 'run').name}" == ending


@pytest.mark.parametrize("ending", PLAIN)
def test_a_document_twice_names_query_and_document(ending, tmp_path):
    write_run(Run.of({"q1": {"dd": 3.0, "e": 1.0}, "q2": {"dd": 1.0, "ee": 2.0}}), tmp_path / f"r{ending}")
    duplicate(tmp_path / f"r{ending}")
    with pytest.raises(
        (BadRanking, FormatError), match=r"query 'q2' ranks document 'dd' twice|'dd' (occurs )?twice"
    ):
        read_run(tmp_path / f"r{ending}")
    with pytest.raises((BadRanking, FormatError), match=r"'dd'"):
        join_run_file(tmp_path / f"r{ending}", Qrels.of({"q2": {"x": 1}}))


def duplicate(path):
    """Call the document `ee` of `q2` `dd` too."""
    if path.suffix not in (".parquet", ".arrow"):
        path.write_bytes(path.read_bytes().replace(b"ee", b"dd"))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    parquet = path.suffix == ".parquet"
    table = pq.read_table(path) if parquet else feather.read_table(path)
    docs = pa.array([d.replace("ee", "dd") for d in table["doc_id"].to_pylist()])
    table = table.set_column(1, "doc_id", docs)
    pq.write_table(table, path) if parquet else feather.write_feather(table, path)


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_the_page_lists_every_format_as_it_is(form):
    row = next(line for line in PAGE.split("\n") if line.startswith(f"| {form.name} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert re.findall(r"`(\.\w+)`", cells[1]) == list(form.suffixes)
    assert (cells[5] == "`.gz` `.zst`") == form.packs
    assert cells[6] == ("pyarrow" if form.name in ("parquet", "arrow") else "numpy")
    assert ("without white space" in cells[4]) == (form.name == "trec")


@pytest.mark.parametrize(
    ("column", "roles"),
    [
        ("query", ("query_id", "query")),
        ("document", ("doc",)),
        ("score", ("score",)),
        ("grade", ("grade", "score")),
        ("text of a document", ("text",)),
    ],
)
def test_the_page_lists_names_of_columns_in_the_order_in_which_they_count(column, roles):
    row = next(line for line in PAGE.split("\n") if line.startswith(f"| {column} |"))
    ranks = {
        name: rank
        for rank, tier in enumerate(t for role in roles for t in names.field_names().roles[role])
        for name in tier
    }
    listed = [
        [
            ranks.get(names.fold(name))
            for name in re.findall(r"[\w-]+", tier.replace("then", "").partition("(")[0])
        ]
        for tier in row.strip("|").split("|")[1].split(";")
    ]
    assert all(listed)
    assert None not in (rank for tier in listed for rank in tier)
    assert [rank for tier in listed for rank in tier] == sorted(rank for tier in listed for rank in tier)


@pytest.mark.parametrize("ending", PLAIN)
def test_text_as_a_number_and_nan_are_refused(ending, tmp_path):
    path = tmp_path / f"r{ending}"
    for text in ("high", "nan", "inf", ""):
        write_run(Run.of({"q": {"d": 1.25}}), path)
        if ending in (".parquet", ".arrow", ".pickle"):
            continue
        path.write_text(path.read_text().replace("1.25", text))
        with pytest.raises(FormatError, match=re.escape(str(path))):
            read_run(path)
