"""Pickles read as data: what NumPy and Python write comes back, and nothing that asks to be run is."""

from __future__ import annotations

import codecs
import collections
import contextlib
import copyreg
import functools
import importlib
import json
import os
import pickle
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.test_cli import refused
from weir.errors import FormatError
from weir.files.pickles import read_pickle
from weir.files.runs import read_run

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
EASY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("protocol", [3, 4, 5])
@EASY
@given(value=plain)
def test_plain_data_comes_back_as_python_reads_it(value, protocol, tmp_path):
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps(value, protocol))
    assert read_pickle(path) == value


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_and_tuples_and_what_is_shared(protocol, tmp_path):
    path, pool = tmp_path / "a.pickle", ["d1", "d2"]
    path.write_bytes(pickle.dumps({"q1": pool, "q2": pool, "t": (1, (2.5, True)), 7: ()}, protocol))
    assert read_pickle(path) == {"q1": pool, "q2": pool, "t": [1, [2.5, True]], "7": []}


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("kind", "?bhiqBHIQefd")
def test_numbers_of_numpy_come_back_bit_by_bit(kind, protocol, tmp_path):
    path = tmp_path / "a.pickle"
    one = np.array([1.5]).astype(kind)[0]
    path.write_bytes(pickle.dumps([one, one], protocol))
    assert read_pickle(path) == [one.item()] * 2
    path.write_bytes(pickle.dumps([np.str_("q_\U0001f600"), np.str_("q")], protocol))
    assert read_pickle(path) == ["q_\U0001f600", "q"]


def test_the_other_byte_order_and_the_module_name_of_numpy_1(tmp_path):
    path = tmp_path / "a.pickle"
    little = pickle.dumps(np.float64(2.5), 4).replace(
        b"\x8c\x16numpy._core.multiarray", b"\x8c\x15numpy.core.multiarray"
    )
    path.write_bytes(little)
    assert read_pickle(path) == 2.5
    path.write_bytes(
        little.replace(b"\x8c\x01<", b"\x8c\x01>").replace(struct.pack("<d", 2.5), struct.pack(">d", 2.5))
    )
    assert read_pickle(path) == 2.5


class Calls:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class State:
    """Pickled as an object with a state."""

    def __init__(self):
        self.here = 1


def proto0(module, name, argument):
    return f"c{module}\n{name}\n(S'{argument}'\ntR.".encode()


def text(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


NUMPY_TYPE = b"\x80\x04" + text("numpy") + text("dtype") + b"\x93"


def calls(marker: Path) -> dict[str, tuple[bytes, str]]:
    """Pickles that call what would leave a file at the marker, or any other function, and what is said of each."""
    touch = f"touch {marker}"
    by_python = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    return {
        "os.system": (pickle.dumps(Calls(os.system, touch)), "posix.system"),
        "eval": (pickle.dumps(Calls(eval, by_python)), "builtins.eval"),
        "exec, protocol 2": (pickle.dumps(Calls(exec, by_python), 2), "builtin__.exec"),
        "partial": (pickle.dumps(Calls(functools.partial, os.system, touch)), "functools.partial"),
        "a chain of calls": (pickle.dumps(Calls(list, Calls(map, os.system, [touch]))), "builtins.list"),
        "getattr": (
            pickle.dumps(Calls(getattr, Calls(importlib.import_module, "os"), "system")),
            "builtins.getattr",
        ),
        "importlib": (pickle.dumps(Calls(importlib.import_module, "this")), "importlib.import_module"),
        "codecs": (pickle.dumps(Calls(codecs.encode, "x", "rot13")), "codecs.encode"),
        "copyreg": (
            pickle.dumps(Calls(copyreg._reconstructor, State, object, None)),
            "copyreg._reconstructor",
        ),
        "an object array": (pickle.dumps(np.array([Calls(os.system, touch)], object)), "_reconstruct"),
        "an array": (pickle.dumps(np.zeros(3)), "numpy"),
        "a type of objects": (pickle.dumps(np.dtype("O"), 4), "the NumPy type 'O8'"),
        "a compound type": (pickle.dumps(np.dtype([("a", "f8")]), 4), "the NumPy type 'V8'"),
        "dates": (pickle.dumps(np.datetime64("2020-01-01"), 4), "the NumPy type 'M8'"),
        "protocol 0": (proto0("os", "system", touch), "os.system"),
        "protocol 1": (pickle.dumps(Calls(os.system, touch), 1), "posix.system"),
        "a dotted name": (
            b"\x80\x04" + text("numpy") + text("dtype.__class__") + b"\x93.",
            "numpy.dtype.__class__",
        ),
        "a dotted name, old": (b"cnumpy\ndtype.mro\n(tR.", "numpy.dtype.mro"),
        "a name with blanks": (b"cnumpy.core.multiarray scalar\nx\n.", "which is not allowed"),
        "a number as a name": (b"\x80\x04K\x01K\x02\x93.", "the name 1.2"),
        "INST": (f"(S'{touch}'\nios\nsystem\n.".encode(), "an object to be made (os system)"),
        "OBJ": (b"(cos\nsystem\nS'x'\no.", "os.system"),
        "NEWOBJ": (NUMPY_TYPE + b")\x81.", "an object to be made"),
        "an object": (pickle.dumps(State()), "test_safe_pickle.State"),
        "a counter": (pickle.dumps(collections.Counter("ab")), "collections.Counter"),
        "BUILD": (b"\x80\x04}}" + text("__class__") + b"Nsb.", "the state of a dict"),
        "BUILD of a type": (
            NUMPY_TYPE + text("f8") + b"\x85R}b.",
            "the state of a NumPy type of several parts",
        ),
        "a call of a text": (b"\x80\x04" + text("os.system") + text(touch) + b"\x85R.", "a call of a str"),
    }


def others() -> dict[str, tuple[bytes, str]]:
    """Pickles that point outside, take the machine's memory, or are none, and what is said of each."""
    eight = pickle.dumps(np.float64(1), 4)
    loop: list[object] = []
    loop.append({"q": loop})
    bomb: list[object] = []
    for _ in range(30):
        bomb = [bomb, bomb]
    return {
        "EXT1": (b"\x80\x02\x82\x01.", "an entry of the extension registry (1)"),
        "EXT4": (b"\x80\x02\x84\x01\x00\x00\x00.", "an entry of the extension registry"),
        "a persistent name": (b"Pfile:///etc/passwd\n.", "a reference to outside the file"),
        "a persistent name, new": (b"\x80\x04" + text("x") + b"Q.", "a reference to outside the file"),
        "a buffer": (b"\x80\x05\x97.", "a buffer"),
        "a set": (pickle.dumps({"q": {"a", "b"}}), "a set, which has no order"),
        "nested deeply": (b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".", "more than 32 levels"),
        "within itself": (pickle.dumps(loop), "containers within themselves"),
        "a bomb of references": (pickle.dumps(bomb), "unfold into too many values"),
        "a bomb of containers": (b"\x80\x04(" + b"}" * 300_001 + b"l.", "300,000 instructions"),
        "a long that is too long": (
            b"\x80\x04\x8b" + (1 << 20).to_bytes(4, "little") + b"\x7f" * (1 << 20) + b".",
            "bits",
        ),
        "a length beyond the file": (b"\x80\x04X\xff\xff\xff\xffabc.", "a damaged pickle"),
        "a protocol to come": (b"\x80\x09N.", "a protocol that is not known (9)"),
        "a key twice": (b"\x80\x04}(K\x01NK\x01Nu.", "'1' twice in one dict"),
        "1 and '1'": (pickle.dumps({1: 2, "1": 3}), "'1' twice in one dict, as a text and as a number"),
        "a list as a key": (b"\x80\x04}(]Nu.", "a list as a key"),
        "a scalar cut short": (eight.replace(b"C\x08\x00", b"C\x07"), "a NumPy scalar of type f8 in 7 bytes"),
        "a bare name": (NUMPY_TYPE + b".", "a NumPy name instead of a value"),
        "never kept": (b"\x80\x04h\x07.", "a reference to a value that was not stored"),
        "nothing to take": (b"\x80\x040.", "an instruction without a value to take"),
        "two pickles": (b"\x80\x04N." * 2, "bytes after a pickle's end"),
        "left over": (b"\x80\x04NN.", "with values left over"),
        "cut": (eight[:-1], "a damaged pickle"),
    }


def hostile(marker: Path) -> dict[str, tuple[bytes, str]]:
    return calls(marker) | others()


@pytest.mark.parametrize("name", hostile(Path("x")))
def test_a_hostile_pickle_runs_nothing_and_is_one_line(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("weir.files.pickles._MOST_INSTRUCTIONS", 300_000)  # five million take half a minute
    marker = tmp_path / "run"
    data, said = hostile(marker)[name]
    path = tmp_path / "a.pickle"
    path.write_bytes(data)
    (tmp_path / "q.tsv").write_text("q\td\t1\n")
    with pytest.raises(
        FormatError, match="expected a pickle of plain dicts, lists, texts and numbers"
    ) as error:
        read_pickle(path)
    assert said in str(error.value)
    for command in (
        ["eval", str(tmp_path / "q.tsv"), str(path)],
        ["data", "import", str(path), "-o", str(tmp_path / "o")],
    ):
        line = refused(capsys, *command)
        assert said in line
        assert str(path) in line
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.pickle", "q.tsv"]


def test_the_hostile_ones_do_run_where_they_are_loaded_plainly(tmp_path):
    marker = tmp_path / "run"
    for name in ("os.system", "eval", "protocol 0", "an object array"):
        pickle.loads(hostile(marker)[name][0])
        assert marker.exists(), name
        marker.unlink()


def test_a_pickle_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.pickle"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(FormatError, match="more than 67,108,864 bytes"):
        read_pickle(path)


@settings(EASY, max_examples=300)
@given(data=st.data())
def test_damage_anywhere_is_a_format_error_or_other_data(data, tmp_path):
    value = {"q1": ["d1", np.str_("d2"), 2.5, (1, True)], np.str_("q"): {"d": np.float64(0.5)}}
    whole = bytearray(pickle.dumps(value, data.draw(st.integers(0, 5))))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "a.pickle").write_bytes(whole)
    with contextlib.suppress(FormatError):
        json.dumps(read_pickle(tmp_path / "a.pickle"), default=repr)


def test_a_pipe_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "r.json")
    writer = threading.Thread(target=lambda: (tmp_path / "r.json").write_text('{"q": {"d": 1.5}}'))
    writer.start()
    assert read_run(tmp_path / "r.json").to_dict() == {"q": {"d": 1.5}}
    writer.join()
