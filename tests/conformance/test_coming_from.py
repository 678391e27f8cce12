"""docs/coming-from.md: the calls of Weir print what the page shows; the tables hold every task, tool and mistake."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("coming_from", ROOT / "scripts" / "coming_from.py")
assert spec is not None
assert spec.loader is not None
coming_from = importlib.util.module_from_spec(spec)
sys.modules["coming_from"] = coming_from  # its dataclasses ask for it
spec.loader.exec_module(coming_from)

PAGE = coming_from.PAGE.read_text(encoding="utf-8")
SNIPPETS = coming_from.snippets(PAGE) + coming_from.snippets(coming_from.OTHERS.read_text(encoding="utf-8"))
OURS = [one for one in SNIPPETS if one.tool == "Weir"]
NEURAL = {9}  # its last digits are those of the processor that encodes


def part(name):
    found = re.search(rf"<!-- measured: {name} -->\n(.*?)<!-- end -->", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def folder(shared, tmp_path_factory):
    made = tmp_path_factory.mktemp("coming-from")
    coming_from.prepare(made, None)
    return made


@pytest.mark.real
@pytest.mark.parametrize("snippet", [s for s in OURS if s.task not in NEURAL], ids=lambda s: f"task {s.task}")
def test_what_weir_prints_is_what_the_page_shows(snippet, folder):
    outcome = coming_from.run(snippet.code, "Weir", None, folder)
    assert not outcome.raised
    assert outcome.printed == PAGE[slice(*snippet.output)].rstrip()


def test_ten_tasks_each_with_a_call_of_weir_and_of_another():
    assert [one.task for one in OURS] == list(range(1, 11))
    assert all({one.tool for one in SNIPPETS if one.task == task} > {"Weir"} for task in range(1, 11))


def test_the_table_of_tasks_counts_the_lines_of_the_page():
    rows = re.findall(r"^\| (\d+)\. .*? \| (.*) \|$", part("tasks"), re.MULTILINE)
    assert len(rows) == 10
    for task, cells in rows:
        *known, others = cells.split(" | ")
        by_tool = dict(zip(coming_from.TOOLS, known, strict=True))
        by_tool |= dict(one.split(" ", 1) for one in others.split("; ") if one)
        lines = {one.tool: f"{one.lines} line" for one in SNIPPETS if one.task == int(task)}
        assert set(lines) <= set(by_tool)
        assert all(cell.startswith(lines.get(tool, "not offered")) for tool, cell in by_tool.items())


def test_every_mistake_is_on_the_page_for_every_tool():
    known = tomllib.loads(coming_from.MISTAKES.read_text(encoding="utf-8"))
    head, _, *rows = [line.strip("| ").split(" | ") for line in part("mistakes").strip().splitlines()]
    assert head == ["mistake", *known["calls"]]
    assert [row[0] for row in rows] == [f"**{one['title']}.** {one['right']}" for one in known["mistake"]]
    reaction = re.compile(r"an error|does not arise|\d\.\d{4}(, silently| and a note)")
    assert all(len(row) == len(head) and all(map(reaction.fullmatch, row[1:])) for row in rows)


def test_no_tool_but_one_fails_at_its_own_snippet():
    assert re.findall(r"fails", part("tasks")) == ["fails"]
    assert "BM25Search" in part("tasks")
