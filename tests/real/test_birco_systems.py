"""Language models and re-rankers on BIRCO's own pools: RELIC and WhatsThatBook, as the catalogue has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.kills import killed_unanswered
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import chat_serving, grade_of

import weir
from weir.cli import main
from weir.datasets import catalogue
from weir.experiment.results import finished_cells
from weir.systems import parse_system

pytestmark = pytest.mark.real
SETS = ("relic", "wtb")


@pytest.fixture
def sets(shared: Path, home: Path) -> dict[str, Path]:
    """Both sets where the catalogue looks for them."""
    there = shared / "data" / "birco" / "beir"
    if not there.is_dir():
        pytest.skip("../shared/data/birco/beir is not there: BIRCO's texts are not part of the project")
    found = {name: home / "datasets" / "birco" / name for name in SETS}
    for name, folder in found.items():
        folder.mkdir(parents=True)
        for part in ("corpus.jsonl", "queries.jsonl", "qrels"):
            (folder / part).symlink_to(there / name / part)
    return found


def judged(_, user: str) -> str:
    """A number for one passage, the order of several."""
    grades = [grade_of(text) for text in re.findall(r"<passage>\n(.*?)\n</passage>", user, re.DOTALL)]
    if len(grades) == 1:
        return str(grades[0])
    return " > ".join(f"[{i + 1}]" for i in sorted(range(len(grades)), key=lambda i: -grades[i]))


@pytest.fixture
def server(monkeypatch):
    """(address, manners) of a language model, which is also the one of whoever names none."""
    forget_spending()
    with chat_serving() as (url, manners):
        manners.say = (
            judged  # real texts hold the words by which the server's usual answers tell prompts apart
        )
        monkeypatch.setenv("WEIR_LLM", f"{url}/v1#name")
        weir.settings.settings.cache_clear()
        yield url, manners
    forget_spending()


def kept_part(sets: dict[str, Path], name: str, queries: int) -> None:
    """Leave a set only its first queries, and the documents of their pools."""
    folder = sets[name]
    lines = (folder / "qrels" / "test.tsv").read_text().splitlines()
    asked = list(dict.fromkeys(line.split("\t")[0] for line in lines[1:]))[:queries]
    rows = [line for line in lines[1:] if line.split("\t")[0] in asked]
    documents = {line.split("\t")[1] for line in rows}
    texts = {
        part: [
            li for li in (folder / f"{part}.jsonl").read_text().splitlines() if json.loads(li)["_id"] in keep
        ]
        for part, keep in (("corpus", documents), ("queries", set(asked)))
    }
    for part in ("corpus.jsonl", "queries.jsonl", "qrels"):
        (folder / part).unlink()
    written(folder, [lines[0], *rows], texts)


def written(folder: Path, rows: list[str], texts: dict[str, list[str]]) -> None:
    (folder / "qrels").mkdir(parents=True)
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n")
    for part, lines in texts.items():
        (folder / f"{part}.jsonl").write_text("\n".join(lines) + "\n")


def by_windows(passages: dict[str, str], order: list[str], window: int, step: int) -> list[str]:
    """The order that a model with `grade_of` gives by windows from the last documents to the first."""
    stop, order = len(order), list(order)
    while True:
        start = max(0, stop - window)
        order[start:stop] = sorted(order[start:stop], key=lambda d: -grade_of(passages[d]))
        if start == 0:
            return order
        stop -= step


def test_the_commands_work_as_they_are_written(sets, server, tmp_path, capsys):
    url, manners = server
    kept_part(sets, "wtb", 20)
    pointwise = f'pool >> llm("score", model="{url}/v1#name", depth=3)'
    listwise = 'pool >> llm("listwise", window=20, step=10, objective=False)'
    out = str(tmp_path / "results")
    grid = ["-s", pointwise, "-s", listwise, "-s", "pool", "-m", "nDCG@10", "-o", out, "-q"]
    for name in SETS:
        assert main(["run", "-d", f"birco/{name}", *grid]) == 0
    cells = finished_cells(out)
    queries = {"relic": 100, "wtb": 20}
    assert [(cell.dataset, cell.queries) for cell in cells] == [
        (f"birco-{name}", count) for name, count in queries.items() for _ in range(3)
    ]
    for name in SETS:
        dataset = weir.load(f"birco-{name}")
        texts = dict(zip(dataset.corpus.ids.tolist(), dataset.corpus.text.tolist(), strict=True))
        scored, ordered, pool = (
            weir.Run.load(cell.run).to_dict() for cell in cells if cell.dataset == dataset.name
        )
        for query, judged in dataset.qrels.to_dict().items():
            first = list(pool[query])  # drawn: neither the order of the file nor that of names
            assert set(first) == set(judged)
            assert first not in (list(judged), sorted(judged), sorted(judged, reverse=True))
            head = sorted(first[:3], key=lambda d: -grade_of(texts[d]))
            assert list(scored[query]) == head + first[3:]
            assert list(ordered[query]) == by_windows(texts, first, 20, 10)
        told = catalogue.get(dataset.name).instruction
        assert sum(told in prompt for prompt in manners.prompts()) == 3 * queries[name]
    assert max(Counter(manners.prompts()).values()) == 1
    asked = len(manners.asked)
    capsys.readouterr()
    assert main(["run", "-d", "birco/relic", *grid]) == 0
    assert main(["results", out, "--scorer", "birco", "-d", "birco/relic", "--json"]) == 0
    figures = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert len(figures) == 3 * 7
    assert {
        (one["measure"], one["left_out"], one["best_grade"]) for one in figures if one["measure"] == "MRR@10"
    } == {("MRR@10", 0.0, 0.0)}
    row = next(row for row in weir.results(out) if (row.dataset, row.system) == ("birco-relic", "pool"))
    official = next(one for one in figures if (one["system"], one["measure"]) == ("pool", "nDCG@10"))
    assert (official["score"], official["low"], official["high"]) == (row.mean, row.low, row.high)
    assert main(["study", "reproduce", out, "--all"]) == 0
    assert "GPT-4 (gpt-4-0613), scoring +O [BIRCO]" not in capsys.readouterr().out  # nobody claims to be it
    assert len(manners.asked) == asked


@pytest.mark.parametrize("method", ["score", "listwise"])
def test_what_is_asked_does_not_depend_on_the_order_of_the_file(sets, server, tmp_path, method):
    _, manners = server
    kept_part(sets, "relic", 5)
    folder = sets["relic"]
    rows = (folder / "qrels" / "test.tsv").read_text().splitlines()
    texts = {part: (folder / f"{part}.jsonl").read_text().splitlines() for part in ("corpus", "queries")}
    written(
        tmp_path / "other",
        [rows[0], *reversed(rows[1:])],
        {part: lines[::-1] for part, lines in texts.items()},
    )
    toml = tmp_path / "other.toml"
    toml.write_text(
        f'documents = "{tmp_path}/other/corpus.jsonl"\nqueries = "{tmp_path}/other/queries.jsonl"\n'
        f'qrels = "{tmp_path}/other/qrels/test.tsv"\ncandidates = "judged"\n'
    )
    system = parse_system(f'pool >> llm("{method}", depth=20, objective=False)')
    found = []
    for dataset in (weir.load("birco-relic"), weir.load(toml)):
        run = system.index(dataset.corpus).search(dataset.queries, 100)
        found.append({query: list(ranked.items()) for query, ranked in run.to_dict().items()})
    assert found[0] == found[1]
    assert len(manners.asked) == 5 * (20 if method == "score" else 1)  # the second found every answer kept


def test_killed_in_the_middle_it_goes_on(sets, server, tmp_path):
    _, manners = server
    kept_part(sets, "wtb", 30)
    name = 'pool >> llm("listwise", window=10, step=5, concurrency=2)'
    command = [sys.executable, "-m", "weir", "run", "-d", "birco/wtb", "-s", name, "-m", "nDCG@10", "-q"]
    command += ["-o", str(tmp_path / "results")]
    killed_unanswered(command, manners, answers=60, at_once=2)
    assert subprocess.run(command, env=os.environ, stdout=subprocess.DEVNULL, check=False).returncode == 0
    seen = Counter(manners.prompts())
    assert 30 * 9 <= len(seen) <= 30 * 10  # nine windows of a pool of 50, ten of 51
    assert sum(seen.values()) - len(seen) <= 2  # what was out when it was killed


def test_the_table_of_the_page_is_what_a_grid_prints(sets, shared, tmp_path, capsys):
    """Means and intervals: a page that is written by hand is older than the numbers that it shows."""
    ranks = shared / "data" / "birco" / "pickles" / "ranks"
    page = (Path(__file__).parents[2] / "docs" / "birco.md").read_text(encoding="utf-8")
    number = r"(\d\.\d{4} \[\d\.\d{4}, \d\.\d{4}\])"
    shown = re.findall(rf"^\| .*?`([^`]+)` \| {number} \| {number} \|$", page, re.MULTILINE)
    assert len(shown) == 4
    for place, name in enumerate(SETS, 1):
        rows = {row[0]: row[place] for row in shown}
        systems = [one if one.startswith("pool") else f'run("{ranks / name / one}.pickle")' for one in rows]
        grid = ["run", "-d", f"birco-{name}", "-m", "nDCG@10", "-o", str(tmp_path / name)]
        assert main([*grid, *(part for one in systems for part in ("-s", one))]) == 0
        printed = capsys.readouterr().out
        for system, found in rows.items():
            line = next(one for one in printed.splitlines() if re.search(rf"{re.escape(system)}  ", one))
            assert found in " ".join(line.replace("*", "").split()), (system, line)
