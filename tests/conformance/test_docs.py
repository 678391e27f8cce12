"""The pages say what the code does."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from tests.unit.test_cli import QRELS as SMALL_QRELS
from tests.unit.test_cli import RUN as SMALL_RUN

from weir.cli import main
from weir.cli.main import COMMANDS
from weir.measures import MEASURES
from weir.text import analyzers

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
assert spec is not None
assert spec.loader is not None
make_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_docs)


def test_generated_pages_are_current():
    assert (ROOT / "docs" / "measures.md").read_text(encoding="utf-8") == make_docs.measures_page(), (
        "run make docs"
    )
    assert (ROOT / "docs" / "systems.md").read_text(encoding="utf-8") == make_docs.systems_page(), (
        "run make docs"
    )


@pytest.mark.parametrize("name", MEASURES.names())
def test_every_measure_has_its_page_section_and_its_source(name):
    section = make_docs.measures_page().split(f"## {name}\n")[1].split("\n## ")[0]
    assert "Source: " in section


def test_every_analyzer_is_documented():
    page = (ROOT / "docs" / "analyzers.md").read_text(encoding="utf-8")
    languages = [n for n in analyzers.names() if n.startswith("snowball-")]
    assert len(languages) > 10
    assert "snowball-" in page
    for name in set(analyzers.names()) - set(languages):
        assert name in page


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"measures", "systems"}))
def test_every_command_is_in_the_readme(command):
    assert f"weir {command}" in README


def test_the_readmes_python_runs(capsys):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    exec(compile(code.group(1), "README.md", "exec"), {})
    assert "nDCG@10" in capsys.readouterr().out


def test_the_readmes_cards_and_scores_are_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("qrels.tsv").write_text(
        SMALL_QRELS.replace("q2 0 d3 2", "q2 0 d1 1\nq3 0 d7 1").replace("d2 0", "d2 0")
    )
    Path("run.trec").write_text(SMALL_RUN.replace("q3", "q2"))
    for command in ("weir stats brook-medical", "weir eval qrels.tsv run.trec -m nDCG@10 -m R@100"):
        shown = README.split(f"$ {command}\n")[1].split("```")[0]
        assert main(shlex.split(command)[1:]) == 0
        out, err = capsys.readouterr()
        assert (out + err).split() == shown.split()


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
