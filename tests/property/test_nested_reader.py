"""The compiled reader of JSON runs gives what the general parser gives, or leaves the file to it."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.strategies import identifiers, scores

from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.errors import WeirError
from weir.files import json_files as nested
from weir.files.json_files import OddJsonError, nested_source
from weir.files.runs import join_run_file, read_run, run_of

EASY = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
names = st.one_of(
    identifiers,
    st.sampled_from(["q", "d" * 30, "a:b", "{", "}", ",", '"', "\\", "\n", "", "sixteen-bytes-it"]),
)
rankings = st.dictionaries(names, st.dictionaries(names, scores, max_size=9), max_size=6)


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(nested, "_LARGE_BYTES", (0, 0))


def outcome(path, engine):
    try:
        return read_run(path, engine=engine).to_dict()
    except WeirError as error:
        return str(error)


@EASY
@given(run=rankings, indent=st.sampled_from([None, 1]), ascii_only=st.booleans(), rows=st.sampled_from([1, 3, 1 << 16]),
       tight=st.booleans(), damage=st.none() | st.tuples(st.integers(0, 400), st.sampled_from('{}",:1-.eE0+ \\nN')))  # fmt: skip
def test_any_json_is_read_alike_whoever_reads_it(
    run, indent, ascii_only, rows, tight, damage, tmp_path, monkeypatch
):
    text = json.dumps(run, indent=indent, ensure_ascii=ascii_only, separators=(",", ":") if tight else None)
    if damage is not None:
        at, letter = damage
        text = text[: at % len(text)] + letter + text[at % len(text) + 1 :]
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(nested, "BLOCK_ROWS", rows)
    assert outcome(path, "numba") == outcome(path, "numpy")


PLAIN = {"q1": {"d1": 1.5, "a longer identifier": -2.0}, "é": {"d1": 1e-30, "x": 123456789.123}}


def test_plain_json_is_not_left_to_the_general_parser(tmp_path, monkeypatch):
    monkeypatch.setattr(nested, "BLOCK_ROWS", 1)
    for indent, head in ((None, ""), (2, "\n "), (None, "\ufeff ")):
        path = tmp_path / "r.json"
        path.write_text(head + json.dumps(PLAIN, indent=indent, ensure_ascii=False) + " \n", encoding="utf-8")
        source = nested_source(path)
        assert source is not None
        assert run_of(source, "r", engine="numba").to_dict() == PLAIN
    qrels = Qrels.of({"é": {"x": 1}, "q9": {"d": 1}})
    joined, straight = join_run_file(path, qrels), Judged.of(read_run(path, engine="numpy"), qrels)
    assert joined.rank.tolist() == straight.rank.tolist() == [1]
    assert joined.ignored == straight.ignored == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "{", '{"q": {}}', '{"q": {"d": 1}', '{"q": {"d": 1}} x', '{"q": {"d": 1},}', '{"q": {"d": 1,}}',
        '{"q": {"d": 01}}', '{"q": {"d": +1}}', '{"q": {"d": .5}}', '{"q": {"d": 1.}}', '{"q": {"d": 1.e5}}',
        '{"q": {"d": 1e999}}', '{"q": {"d": NaN}}', '{"q": {"d": "1"}}', '{"q": {"d": true}}', '{"q": {"d": -}}',
        '{"q": {"d\\u0041": 1}}', '{"q": {"": 1}}', '{"q": {"d": 1}, "q": {"e": 1}}', '{"q": {"a\tb": 1}}', '{"q": 1}',
    ],
)  # fmt: skip
def test_whatever_is_unusual_is_left_to_it(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    source = nested_source(path)
    assert source is not None
    with pytest.raises(OddJsonError):
        run_of(source, "r", engine="numba")
    assert outcome(path, "numba") == outcome(path, "numpy")


def test_bytes_that_are_no_utf_8_are_left_to_it(tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(b'{"q": {"\xff": 1}}')
    assert "line 1: found bytes that are not UTF-8 (0xff)" in outcome(path, "numba")


def test_small_files_and_bases_without_numba_do_without(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(PLAIN), encoding="utf-8")
    assert nested_source(path, worth=1 << 20) is None
    monkeypatch.setattr(nested, "available", lambda: False)
    assert nested_source(path) is None
    assert nested_source(tmp_path / "absent.json") is None
