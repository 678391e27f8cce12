"""What the README shows of comparing is what the commands print."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import weir
from weir.cli import main
from weir.io.runs.read import write_qrels

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.split("## Comparing systems\n")[1].split("\n## ")[0]


def test_the_readmes_comparison_is_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = [line[2:] for line in SECTION.split("\n") if line.startswith("$ weir")]
    assert [c.split()[1] for c in commands] == ["run", "compare", "power", "gate"]
    for command in commands:
        assert main([*shlex.split(command)[1:], *(["-q"] if " run " in command else [])]) == 0
        out = capsys.readouterr().out
        if " run " in command:
            write_qrels(weir.load("brook-news").qrels, Path("qrels.tsv"))
            for run in Path("results").rglob("run.trec"):
                name = run.parent.name.rpartition("-")[0]
                shutil.copy(run, f"{name}.trec")
        else:
            shown = SECTION.split(f"$ {command}\n")[1].split("\n$ ")[0].split("```")[0]
            assert out.split() == shown.split()
