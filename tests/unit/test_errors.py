from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest

import weir.measures
from weir import errors
from weir.cli.main import COMMANDS
from weir.errors import FormatError, MissingExtra, UnknownName, WeirError, nearest_names, require
from weir.registry import Registry
from weir.settings import settings


def classes() -> list[type]:
    found = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)]
    return [c for c in found if not issubclass(c, Warning)]


@pytest.mark.parametrize("error", classes(), ids=lambda c: c.__name__)
def test_every_error_is_in_the_drawn_tree_and_has_one_root(error):
    assert issubclass(error, WeirError)
    assert error.__name__ in (errors.__doc__ or "")


def test_format_error_names_file_line_found_and_expected():
    assert (
        str(FormatError("a.tsv", "5 columns", "4", line=312))
        == "a.tsv, line 312: found 5 columns; expected 4"
    )


def test_unknown_name_suggests_whatever_the_case():
    assert "did you mean nDCG" in str(UnknownName("measure", "NGCD", ["nDCG", "AP"]))
    assert "known: AP, nDCG" in str(UnknownName("measure", "zzz", ["nDCG", "AP"]))
    assert "none is known" in str(UnknownName("measure", "zzz", []))


def test_a_slip_of_the_keyboard_is_near_and_a_stranger_is_not():
    known = [*COMMANDS, *weir.measures.MEASURES, "scifact", "minilm-cross", "lucene-english", "k1", "b"]
    for name in (one for one in known if len(one) > 2):
        slips = {name[:n] + name[n + 1 :] for n in range(len(name))}
        slips |= {name[:n] + name[n] + name[n:] for n in range(len(name))}
        slips |= {name[:n] + name[n + 1 : n + 2] + name[n] + name[n + 2 :] for n in range(len(name) - 1)}
        assert {slip for slip in slips if name not in nearest_names(slip, known, len(known))} == set()
    strangers = ["foo", "hello", "xyzzy", "c", "10"]
    assert [nearest_names(one, known) for one in strangers] == [[]] * len(strangers)
    assert nearest_names("k2", known) == ["k1"]


def test_missing_extra_says_what_to_install():
    with pytest.raises(MissingExtra, match=r"pip install .*\[run\]'$"):
        require("weir_no_such_module", extra="run")


def test_registry_refuses_a_second_of_a_name_and_suggests():
    known: Registry[int] = Registry("number")
    assert known.register("one")(1) == 1
    with pytest.raises(errors.BadValue, match="registered already"):
        known.add("one", 2)
    with pytest.raises(UnknownName, match="did you mean one"):
        known.get("on")
    assert known.names() == ["one"]
    assert "one" in known
    assert list(known) == ["one"]


def test_settings_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("WEIR_HOME", str(tmp_path))
    monkeypatch.setenv("WEIR_THREADS", "3")
    monkeypatch.setenv("WEIR_MIRROR", "http://127.0.0.1:9/")
    settings.cache_clear()
    assert (settings().home, settings().threads, settings().mirror) == (tmp_path, 3, "http://127.0.0.1:9/")
    monkeypatch.setenv("WEIR_THREADS", "many")
    settings.cache_clear()
    with pytest.raises(errors.BadValue, match="WEIR_THREADS is 'many'"):
        settings()


@pytest.mark.parametrize(
    ("came_from", "line"),
    [
        (None, "pip install 'weir-ir[run]'"),
        ({"url": "https://example.org/weir.git", "vcs_info": {}}, "pip install 'weir-ir[run]'"),
        ({"url": "file:///no/longer/there", "dir_info": {}}, "pip install 'weir-ir[run]'"),
        ({"url": "HERE", "dir_info": {}}, "pip install 'HERE[run]'"),
        ({"url": "HERE", "dir_info": {"editable": True}}, "pip install -e 'HERE[run]'"),
    ],
)
def test_an_extra_is_installed_from_where_weir_came(tmp_path, came_from, line):
    """Another distribution of this name stands in front of the installed one."""
    about = tmp_path / "weir_ir-9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weir-ir\nVersion: 9\n")
    if came_from is not None:
        url = tmp_path.as_uri() if came_from["url"] == "HERE" else came_from["url"]
        (about / "direct_url.json").write_text(json.dumps({**came_from, "url": url}))
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom weir.errors import install_command\nprint(install_command('run'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == line.replace("HERE", str(tmp_path))
