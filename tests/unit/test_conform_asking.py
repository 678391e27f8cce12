from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path

import pytest

from weir.cli import main
from weir.errors import BadValue, FormatError, UnknownName
from weir.plugins.conform import tools as asking
from weir.plugins.conform.certificate import UNEXPLAINED, grade
from weir.plugins.conform.tools import ToolValue, answers_text, ask, read_answers, tools
from weir.plugins.conform.vectors import files, vectors


def test_the_tools_by_name():
    assert {
        "weir",
        "pytrec_eval",
        "ir_measures",
        "ranx",
        "sklearn",
        "sentence_transformers",
        "beir",
        "birco",
        "mteb",
    } == set(tools())
    with pytest.raises(UnknownName, match="did you mean ranx"):
        ask("rankx", vectors(["order"]))


def test_trec_eval_is_asked_and_every_difference_explained():
    members = vectors(["order", "missing-queries", "refused", "ties"])
    answers = ask("pytrec_eval", members)
    found = grade(answers, members)
    why = {g.why for g in found if g.outcome == "differs"}
    assert {"scores as 32-bit floats", "unanswered queries leave the mean"} <= why
    assert UNEXPLAINED not in why
    assert sum(g.outcome == "passed" for g in found) > 300


def test_a_checkout_is_asked_as_its_users_run_it(tmp_path, capsys):
    """BIRCO's program was not at hand: the one that stands for it is written from its description."""
    (tmp_path / "evaluation").mkdir()
    shutil.copy(Path(__file__).with_name("birco_program.py"), tmp_path / "evaluation" / "rank2metric.py")
    wanted = ("partly-relevant-first", "one-divisor", "no-relevant-document", "judged-tie-order", "judged-twice-conflicting",
              "identical-ids-drop", "constant-first", "grade-half")  # fmt: skip
    members = [v for v in vectors() if v.id in wanted]
    assert len(members) == len(wanted)
    answers = ask("birco", members, checkout=tmp_path)
    assert answers.version.startswith("sha256 ")
    found = {(g.vector.id, g.measure): g for g in grade(answers, members)}
    assert found["constant-first", "nDCG@10"].why == "ties in the order of the input"
    assert found["grade-half", "nDCG@10"].outcome == "passed"
    assert found["identical-ids-drop", "nDCG@10"].note == "it does not offer self_matches=drop"
    assert found["partly-relevant-first", "RR@10"].why == "the highest grade of a query alone as relevant"
    assert found["no-relevant-document", "nDCG@10"].note.startswith("ZeroDivisionError")
    assert found["one-divisor", "RR@10"].outcome == "differs"  # whole pools hold what was not returned
    with pytest.raises(BadValue, match=r"birco is not installed .*name its folder with `checkout`"):
        ask("birco", members)
    with pytest.raises(BadValue, match=r"no evaluation/rank2metric\.py in "):
        ask("birco", members, checkout=tmp_path / "evaluation")
    assert main(["study", "conform", "--answers", __file__, "--checkout", str(tmp_path)]) == 2
    assert "without it" in capsys.readouterr().err


def test_answers_survive_a_round_trip(tmp_path):
    members = vectors(["refused", "order"])
    answers = ask("weir", members)
    (tmp_path / "answers.jsonl").write_text(answers_text(answers, members))
    assert read_answers(tmp_path / "answers.jsonl") == answers


def test_a_tool_that_is_not_there(tmp_path):
    with pytest.raises(BadValue, match="expected the Python of an environment"):
        ask("ranx", vectors(["order"]), tmp_path / "python")
    if shutil.which("false"):
        with pytest.raises(BadValue, match="did not start"):
            ask("ranx", vectors(["order"]), shutil.which("false"))


def adapters(tmp_path, monkeypatch, **sources: str) -> None:
    """Adapters of our own in place of those that are shipped; the processes are real."""
    script = Path(asking._script())
    shutil.copy(script, tmp_path / script.name)
    (tmp_path / "adapters").mkdir()
    for name, source in sources.items():
        (tmp_path / "adapters" / f"{name}.py").write_text(source)
    monkeypatch.setattr(asking, "_script", lambda: tmp_path / script.name)


HEAD = "import os, sys\nPACKAGE = 'click'\nFOLLOWS = set()\nHOLDS = {'unanswered'}\n"


def test_a_tool_that_is_not_installed_is_named(tmp_path, monkeypatch):
    adapters(tmp_path, monkeypatch, absent="import no_such_module_anywhere")
    with pytest.raises(BadValue, match=r"absent is not installed for .*no_such_module_anywhere"):
        ask("absent", vectors(["order"]))


def test_a_tool_that_dies_is_asked_the_rest(tmp_path, monkeypatch):
    source = HEAD + (
        "def value(vector, measure):\n"
        "    print('noise on standard output')\n"
        "    if vector['id'] == 'negative-scores':\n"
        "        os._exit(7)\n"
        "    return {'mean': float('nan') if measure['name'] == 'RR' else 0.25}\n"
    )
    adapters(tmp_path, monkeypatch, dying=source)
    members = vectors(["order"])
    answers = ask("dying", members)
    assert set(answers.replies) == {v.id for v in members}
    assert answers.replies["negative-scores"].died == "its process died (exit code 7)"
    assert sum(r.died is not None for r in answers.replies.values()) == 1
    assert answers.replies["cosines"].measures["AP"] == ToolValue(0.25)
    assert math.isnan(answers.replies["cosines"].measures["RR"].mean)
    assert "trec9" in answers.replies["float32-tie-32"].not_applicable


def test_what_a_tool_raises_is_its_refusal_without_paths(tmp_path, monkeypatch):
    source = (
        HEAD
        + "def value(vector, measure):\n    raise OSError('/tmp/x/y.txt: <A object at 0x7f00> is bad\\nmore')\n"
    )
    adapters(tmp_path, monkeypatch, raising=source)
    reply = ask("raising", vectors(["order"])[:1]).replies["worst-first-input"]
    assert {t.refused for t in reply.measures.values()} == {"OSError: (path): <A object> is bad"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no answer"),
        ('{"tool": "t"}\n', "no answer"),
        ('{"id": "x"}\n', "line 1: found KeyError"),
        ('{"tool": "t"}\n{"id": "x", "measures": {"AP": {"mean": "high"}}}\n', "line 2: found ValueError"),
        ('{"tool": "t"}\nnothing\n', "line 2: found JSONDecodeError"),
        ("[1, 2]\n", "line 1: found"),
        ('{"id": "x", "measures": [1]}\n', "line 1: found AttributeError"),
        ("\xff\xfe\n", "line 1: found"),
    ],
)
def test_bad_answers_are_refused_by_line(tmp_path, content, message):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FormatError, match=message):
        read_answers(path)


# The command


def test_weir_conforms(capsys):
    assert main(["study", "conform", "--group", "order", "--group", "refused"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("weir-ir ")
    assert "45 of the 45 vectors it can be asked pass whole" in out
    assert "why values differ" not in out


def test_one_wrong_value_is_shown_and_fails(tmp_path, capsys):
    members = vectors(["examples"])
    answers = tmp_path / "mine.jsonl"
    assert main(["study", "conform", "--group", "examples", "--save", str(answers)]) == 0
    capsys.readouterr()
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    changed = next(line for line in lines if line.get("id") == "tie-docid-desc")
    changed["measures"] = {"RR": {"mean": 1.0, "per_query": {"1": 1.0}}}
    lines[0] |= {"tool": "mine", "package": "mine", "version": "7"}
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["study", "conform", "--group", "examples", "--answers", str(answers)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("mine 7: 18 vectors")
    assert f"{len(members) - 1} of the 18 vectors" in out
    assert "ties in the order of the input" in out
    assert "says 1.0000, exact 1/3" in out
    assert main(["study", "conform", "--group", "examples", "--answers", str(answers), "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == sum(len(v.measures) for v in members)
    (wrong,) = [row for row in rows if row["outcome"] == "differs"]
    assert wrong["differences"][0]["exact"]["fraction"] == "1/3"


def test_the_vectors_are_written_out(tmp_path, capsys):
    assert main(["study", "conform", "--export", str(tmp_path / "kit")]) == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "kit").iterdir()} == files()
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "no tool named 'nonsense'"),
        (["--group", "nonsense"], "no group of vectors named 'nonsense'"),
        (["ranx", "--answers", sys.executable], "name a tool or --python without it"),
        (["--python", "/no/such/python"], "expected the Python of an environment"),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    assert main(["study", "conform", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
