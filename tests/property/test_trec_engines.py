"""Both engines read any run file alike, and as a slow reader in plain Python does."""

from __future__ import annotations

import gzip
import math
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from weir.core.run import Run
from weir.core.strings import Ids, Strings, hash_strings
from weir.errors import BadRanking, FormatError, WeirError
from weir.files import parsers as engines
from weir.files.formats import PICKLE_MAGIC
from weir.files.parsers import parse_decimals
from weir.files.runs import read_run, read_run_against
from weir.files.text_files import _FOREIGN

pytestmark = [  # of ranks that say another order, and of rows that begin with #
    pytest.mark.filterwarnings(f"ignore::weir.errors.{name}") for name in ("RankingWarning", "LossWarning")
]
EASY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])

_SPACE = re.compile(rb"[ \t\r\v\f]+")
_SCORE = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def slow_reader(data: bytes, ties: str) -> dict[bytes, list[tuple[bytes, float]]] | str:
    """The format, said once more: {query: [(document, score)]} in result order, or the kind of its errors."""
    found: dict[bytes, dict[bytes, float]] = {}
    ranks: dict[bytes, list[bytes]] = {}
    tags: dict[bytes, set[bytes]] = {}
    kind = ""
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        cells = [c for c in _SPACE.split(line) if c]
        if not cells or cells[0].startswith(b"#"):
            continue
        bare, beyond = len(cells) == 5, cells[6:7]
        if len(cells) < 5 or (bare and cells[1].upper() != b"Q0"):
            return "FormatError"
        tag_of_words = [cell.upper() for cell in cells[1:]].count(b"Q0") == 1 and cells[1].upper() == b"Q0"
        if beyond and beyond[0][:1] != b"#" and (not tag_of_words or b"+" <= cells[5][:1] <= b"9"):
            return "FormatError"
        if cells[3][:1] not in (b"+", b"-", b".", *(b"%d" % n for n in range(10))):
            return "FormatError"
        score = float(cells[4]) if _SCORE.fullmatch(cells[4]) else math.nan
        if not math.isfinite(score):
            return "FormatError"
        ranking = found.setdefault(cells[0], {})
        kind = "BadRanking" if cells[2] in ranking else kind
        ranking[cells[2]] = score
        ranks.setdefault(cells[0], []).append(cells[3])
        tags.setdefault(cells[0], set()).update(cells[5:6])
    if any(len(tags[query]) > 1 and len(set(of)) < len(of) for query, of in ranks.items()):
        return "FormatError"  # rows of several systems
    if kind:
        return kind
    with np.errstate(over="ignore"):
        key = np.float32 if ties == "trec9" else np.float64
        return {
            q: sorted(sorted(r.items(), reverse=True), key=lambda pair: key(pair[1]), reverse=True)
            for q, r in found.items()
        }


def as_bytes(run: Run) -> dict[bytes, list[tuple[bytes, float]]]:
    def texts(s: Strings) -> list[bytes]:
        return [s.data[a:b].tobytes() for a, b in zip(s.ptr[:-1], s.ptr[1:], strict=True)]

    docs = texts(run.docs.strings)
    return {
        q: [(docs[d], s) for d, s in zip(run.doc[a:b].tolist(), run.score[a:b].tolist(), strict=True)]
        for q, a, b in zip(texts(run.queries.strings), run.ptr[:-1], run.ptr[1:], strict=True)
    }


_ids = st.one_of(
    st.sampled_from(
        [b"1", b"2", b"10", b"q1", b"docdocdocdocdoc1", b"docdocdocdocdoc2", b"\xc3\xa9", b"a\x01b"]
    ),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=10).map(
        lambda text: re.sub(rb"[\t-\r ]", b"_", text.encode())
    ),
)
_scores = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: repr(x).encode()),
    st.floats(-50, 50).map(lambda x: f"{x:.4f}".encode()),
    st.floats(-50, 50, width=32).map(lambda x: repr(x).encode()),
    st.sampled_from([b"1", b"1.0", b"-0.0", b"0", b"2.", b".5", b"+3", b"1e0", b"1.00000001", b"16777217"]),
)
_gaps = st.sampled_from([b" ", b" ", b" ", b"\t", b"  ", b" \t"])
_ends = st.sampled_from([b"\n", b"\n", b"\r\n", b" \n", b"\n\n", b"\n  \n", b"\n# a remark\n"])
_tags = st.sampled_from(
    [b"tag", b"tag", b"tag # and more", b"tag #1 2", b"another-much-longer-tag", b"", b"", b"tag and more"]
)
_second = st.sampled_from([b"Q0", b"Q0", b"Q0", b"q0", b"0", b"Q00"])
_ranks = st.sampled_from([b"1", b"1", b"1", b"+1", b"-", b".0", b"x", b"0"])


MARKS = (*PICKLE_MAGIC, *(magic for magic, _, _ in _FOREIGN))  # how files of other kinds begin


@st.composite
def _files(draw: st.DrawFn) -> bytes:
    queries = draw(st.lists(_ids, min_size=1, max_size=4))
    lines, usual = [], draw(_tags)
    for _ in range(draw(st.integers(0, 25))):
        gap = draw(_gaps)
        odd = draw(st.integers(0, 9)) == 0  # so that most files are sound
        second, rank = (draw(_second), draw(_ranks)) if odd else (b"Q0", b"1")
        tag = draw(_tags) if odd else usual
        cells = [draw(st.sampled_from(queries)), second, draw(_ids), rank, draw(_scores), tag]
        lines.append(gap.join(c for c in cells if c) + draw(_ends))
    if draw(st.booleans()):
        lines.sort()
    start = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\n"]))
    data = start + b"".join(lines)
    assume(not any(line.startswith(MARKS) or b"\0" in line[:4] for line in [data, *lines]))
    return data.rstrip(b"\n") if draw(st.booleans()) else data


def outcome(path: Path, ties: str, engine: str) -> object:
    try:
        return as_bytes(read_run(path, ties, engine))
    except (FormatError, BadRanking) as error:
        return str(error)


def small_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    original = engines.choose_engine

    def smaller(name: str, text: int) -> engines.Parser:
        return replace(original(name, text), block=size)

    monkeypatch.setattr("weir.files.runs.choose_engine", smaller)


@EASY
@given(data=_files(), ties=st.sampled_from(["trec", "trec9"]), block=st.sampled_from([64, 300, 1 << 20]))
def test_engines_agree_with_a_slow_reader(
    data: bytes, ties: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if data.lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"{"):
        return  # that would be JSON
    path = tmp_path / "run.trec"
    path.write_bytes(data)
    with monkeypatch.context() as patch:
        small_blocks(patch, block)
        plain, compiled = (outcome(path, ties, engine) for engine in ("numpy", "numba"))
    assert plain == compiled
    expected = slow_reader(data, ties)
    if isinstance(expected, str):
        assert isinstance(plain, str)
        # A document twice may be met in a block before that of a line that is no row.
        assert "twice" in plain or expected == "FormatError"
    else:
        assert plain == expected


@EASY
@given(data=_files(), ties=st.sampled_from(["trec", "trec9"]), engine=st.sampled_from(["numpy", "numba"]))
def test_known_tables_only_rename(data: bytes, ties: str, engine: str, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(data)
    if not isinstance(expected := slow_reader(data, ties), dict) or data.lstrip().startswith(b"{"):
        return
    every_query = sorted(expected)
    every_doc = sorted({d for ranking in expected.values() for d, _ in ranking})
    queries, docs = [*every_query[::-2], b"unasked"], [*every_doc[::2], b"unseen"]
    packed = [Ids(Strings.of([])), Ids(Strings.of([]))]
    for i, names in enumerate((queries, docs)):
        ptr = np.cumsum([0, *map(len, names)]).astype(np.int64)
        packed[i] = Ids(Strings(np.frombuffer(b"".join(names), np.uint8), ptr))
    run, ignored = read_run_against(path, packed[0], packed[1], ties, engine)
    assert ignored == len(set(every_query) - set(queries))
    number = {d: i for i, d in enumerate(docs)}
    as_floats = slow_reader(data, "trec9")
    assert isinstance(as_floats, dict)
    for q, a, b in zip(queries, run.ptr[:-1], run.ptr[1:], strict=True):
        ranking = expected.get(q, [])
        assert run.doc[a:b].tolist() == [number.get(d, -1) for d, _ in ranking]
        assert run.score[a:b].tolist() == [s for _, s in ranking]
        float_rank = run.ranks() if (ranks := run.float_ranks()) is None else ranks
        by_floats = [d for d, _ in as_floats.get(q, [])]
        assert float_rank[a:b].tolist() == [by_floats.index(d) + 1 for d, _ in ranking]


@EASY
@given(data=_files(), seed=st.integers(0, 99))
def test_shuffled_lines_and_packing_change_nothing(data: bytes, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(data)
    if not isinstance(slow_reader(data, "trec"), dict) or data.lstrip().startswith(b"{"):
        return
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    np.random.default_rng(seed).shuffle(lines)
    packed = tmp_path / "shuffled.trec.gz"
    packed.write_bytes(gzip.compress(b"\n".join(lines)))
    for engine in ("numpy", "numba"):
        assert as_bytes(read_run(packed, engine=engine)) == as_bytes(read_run(path, engine=engine))


_mistakes = st.sampled_from(
    [b"q Q0 d 1", b"q", b"q Q0 my doc 1 2 t", b"q Q0 d 1 nan t", b"q Q0 d 1 inf", b"q Q0 d 1 1_0 t",
     b"q Q0 d 1 0x1 t", b"q Q0 d 1 1e999 t", b"q Q0 d 1 high t", b"q Q0 d 1 1.2.3 t", b"q Q0 d 1 - t",
     b"q Q0 d 1 1e t", b"q Q0 d 1 \xd9\xa1 t", b"q Q0 d 1 2 tq Q0 e 1 2 t", b"q Q0 d 1 2q Q0 e 1 2",
     b"q Q0 d 1 2 t\rq Q0 e 1 2 t", b"q d 1 2.5 0", b"q 0 d 1 5", b"q Q0 my doc 1 2"]
)  # fmt: skip


@EASY
@given(before=_files(), mistake=_mistakes, after=_files())
def test_both_engines_name_the_same_bad_line(
    before: bytes, mistake: bytes, after: bytes, tmp_path: Path
) -> None:
    if not isinstance(slow_reader(before, "trec"), dict) or before.lstrip().startswith(b"{"):
        return
    path = tmp_path / "run.trec"
    path.write_bytes(before + b"\n" + mistake + b"\n" + after)
    errors = []
    for engine in ("numpy", "numba"):
        with pytest.raises(WeirError) as caught:
            read_run(path, engine=engine)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    if b"\xef\xbb\xbf" not in after:  # a byte order mark, which is refused first
        assert f"run.trec, line {before.count(10) + 2}: " in errors[0]


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_numbers_of_more_than_64_bits_are_those_of_python(tmp_path, engine):
    """A multiple of 2**64 is 0 to whoever multiplies and adds in 64 bits."""
    digits = [str(n << 64) for n in range(1, 6)]
    numbers = [
        *digits,
        *(f"-{d}0" for d in digits),
        *(f"{d[:-k]}.{d[-k:]}" for d in digits for k in (1, 5, 19)),
    ]
    path = tmp_path / "run.trec"
    path.write_text("".join(f"q Q0 d{i} 1 {number} t\n" for i, number in enumerate(numbers)))
    read = read_run(path, engine=engine).to_dict()["q"]
    assert read == {f"d{i}": float(number) for i, number in enumerate(numbers)}


@EASY
@given(st.lists(st.binary(max_size=40), max_size=30))
def test_compiled_hash_equals_the_numpy_one(texts: list[bytes]) -> None:
    from weir.kernels.lines import hash_bytes

    raw = bytearray(b"".join(texts) + bytes(32))
    words = np.ndarray((len(raw) - 7,), "<u8", raw, strides=(1,))
    length = np.array([len(t) for t in texts], np.int64)
    start = np.cumsum(length) - length
    data = np.frombuffer(raw, np.uint8)[: int(length.sum())]
    compiled = [int(hash_bytes(words, a, n)) for a, n in zip(start.tolist(), length.tolist(), strict=True)]
    assert hash_strings(data, start, length).tolist() == compiled
    assert len(set(compiled)) == len(set(texts))


_numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**22), 10**22).map(str),
    st.integers(2**53, 2**63).map(lambda n: str(2 * n + 1)),  # ties between two doubles
    st.decimals(-1000, 1000, places=12).map(str),
    st.from_regex(r"[+-]?[0-9]{0,12}\.?[0-9]{0,20}", fullmatch=True),
    st.text("0123456789.eE+-_xnaif", min_size=1, max_size=12),
)


@settings(max_examples=300)
@given(st.lists(_numbers.filter(bool), min_size=1, max_size=20))
def test_decimals_round_as_python_does(texts: list[str]) -> None:
    encoded = [t.encode() for t in texts]
    buf = np.frombuffer(b" ".join(encoded) + b"\n", np.uint8)
    length = np.array([len(t) for t in encoded], np.int64)
    start = np.cumsum(length + 1) - length - 1
    value, bad = parse_decimals(buf, start, length)
    for i, text in enumerate(encoded):
        good = _SCORE.fullmatch(text) is not None and math.isfinite(float(text))
        assert (i in bad) == (not good), text
        if good:
            assert struct.pack("d", value[i]) == struct.pack("d", float(text)), text
