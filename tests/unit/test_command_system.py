"""Programs as systems: JSON lines on pipes, restarts, time limits, answers that are never asked for twice."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.brooklet import write_collection
from tests.unit.remote_place import CORPUS, answer, expected, queries
from weir.cli import main
from weir.errors import BadRanking, BadValue, RankingWarning, ServiceError
from weir.experiment.efficiency import efficiency
from weir.experiment.experiment import Experiment
from weir.experiment.plan import planned
from weir.experiment.results import finished_cells
from weir.systems import parse_system
from weir.systems.remote.command import Command

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (
    f"from __future__ import annotations\nimport hashlib\n{inspect.getsource(answer)}"
    + """
import json, os, sys, time
log, held = open(sys.argv[1], "a"), []
def reply(q, **more):
    found = answer(q["text"], q["k"])
    results = [{"id": d, "score": s} for d, s in found.items()]
    print(json.dumps({"id": q["id"], "results": results, **more}), flush=True)
for line in sys.stdin:
    q = json.loads(line)
    log.write(q["id"] + "\\n"); log.flush()
    what = q["text"].split()[0]
    if what == "again":
        print('{"id": "%s", "results": ["d1"], "results": ["d2"]}' % q["id"], flush=True)
        continue
    if what == "die":
        sys.exit("no more memory")
    if what == "sleep":
        time.sleep(60)
    if what == "noise":
        print("loading model ...", flush=True)
    if what == "once" and not os.path.exists(sys.argv[1] + ".once"):
        open(sys.argv[1] + ".once", "w"); sys.exit(1)
    if what == "later":
        held.append(q)
        continue
    if what == "strike" and not os.path.exists(sys.argv[1] + ".once"):
        open(sys.argv[1] + ".once", "w"); os.kill(os.getppid(), 9)
    reply(q, **{"refuse": {"error": "no such index"}, "nan": {"results": [{"id": "d1", "score": float("nan")}]},
                "twice": {"results": ["d1", "d1"]}, "many": {"results": [f"d{n}" for n in range(51)]},
                "digits": {"results": [{"id": "d1", "score": 10**3999}]}, "ranks": {"results": ["d2", "d9", "d1"]},
                "empty": {"results": []}, "stranger": {"results": ["d99"]}}.get(what, {}))
    for q in held[::-1]:
        reply(q)
    held.clear()
"""
)


class Place:
    """A program that notes what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "asked"
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")

    @property
    def line(self) -> str:
        return f"{sys.executable} {self.folder / 'program.py'} {self.log}"

    def search(self, texts: list[str], k: int = 5, **settings: object):
        settings = {"version": "1", "timeout_s": 20.0} | settings
        searcher = Command(self.line, **settings).index(CORPUS)
        run = searcher.search(queries(texts), k).to_dict()
        return run, searcher.costs().services[0].facts()

    def asked(self) -> list[str]:
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path)


def test_answers_come_in_any_order_and_are_asked_for_once(place: Place):
    texts = [f"{'later' if n % 5 in (1, 2) else 'plain'} {n}" for n in range(40)]
    run, facts = place.search(texts, batch=5, workers=2)
    assert run == expected(texts, 5)
    assert sorted(place.asked()) == sorted(run)
    counts = {
        name: facts[name] for name in ("stored", "answered", "empty", "retried", "faults", "unanswered")
    }
    assert counts == {
        "stored": 0, "answered": 40, "empty": 0, "retried": 0, "faults": {}, "unanswered": {},
    }  # fmt: skip
    assert [(taken["concurrency"], taken["answers"]) for taken in facts["latency"]] == [(10, 40)]
    again, facts = place.search([*texts, "plain 40"], batch=1)
    assert again == expected([*texts, "plain 40"], 5)
    assert (facts["stored"], facts["answered"], len(place.asked())) == (40, 1, 41)


def test_without_a_version_another_process_or_index_asks_again(place: Place):
    place.search(["plain"], version=None)
    place.search(["plain"], version=None)
    assert place.asked() == ["q0", "q0"]


def test_another_text_of_the_program_asks_again(place: Place):
    place.search(["plain"])
    (place.folder / "program.py").write_text(PROGRAM + "\n# better\n", encoding="utf-8")
    place.search(["plain"])
    assert place.asked() == ["q0", "q0"]


@pytest.mark.parametrize(
    ("bad", "kind", "attempts", "said"),
    [
        ("die", "failed", 3, "the program ended with exit code 1; on standard error: no more memory"),
        pytest.param(
            "sleep",
            "timed out",
            3,
            r"no answer within 1 seconds \(timeout_s\); nothing on standard error",
            marks=pytest.mark.slow,
        ),
        ("noise", "malformed", 3, "found 'loading model ...' on standard output"),
        ("nan", "malformed", 3, "the score of 'd1' is NaN; expected a finite number"),
        ("twice", "malformed", 3, "a document stands twice among the results"),
        ("many", "malformed", 3, "51 results; expected at most 5"),
        ("digits", "malformed", 3, ".* on standard output; expected an answer to a query"),
        ("again", "malformed", 3, ".* on standard output; expected an answer to a query"),
        ("refuse", "refused", 1, "the program says: no such index"),
    ],
)
def test_one_bad_query_is_counted_and_the_others_are_answered(place: Place, bad, kind, attempts, said):
    texts = ["plain 0", "plain 1", f"{bad} 2", "plain 3", "plain 4"]
    timeout = 1.0 if bad == "sleep" else 20.0
    with pytest.raises(
        ServiceError, match=rf"1 of 5 queries have no answer \(1 {kind}\); the first, 'q2': {said}"
    ):
        place.search(texts, timeout_s=timeout)
    asked = Counter(place.asked())
    assert asked["q2"] == attempts
    with pytest.warns(RankingWarning, match="1 of 5 queries have no answer .* they are missing"):
        run, facts = place.search(texts, timeout_s=timeout, on_failure="missing")
    assert run == expected(texts, 5, without=(2,))
    assert (facts["stored"], facts["answered"], facts["unanswered"]) == (4, 0, {kind: 1})
    assert (facts["retried"], facts["faults"]) == (attempts - 1, {kind: attempts})


def test_a_program_that_died_is_started_again_and_its_batch_asked_one_by_one(place: Place):
    texts = ["plain 0", "once 1", "plain 2", "plain 3"]
    run, facts = place.search(texts)
    assert run == expected(texts, 5)
    assert (facts["answered"], facts["retried"], facts["faults"]) == (4, 3, {"failed": 3})


def test_ranks_without_scores_empty_answers_and_strangers(place: Place):
    run, facts = place.search(["ranks", "empty"])
    assert run == {"q0": {"d2": 3.0, "d9": 2.0, "d1": 1.0}, "q1": {}}
    assert facts["empty"] == 1
    with pytest.raises(BadRanking, match=r"the first .d99. to query .q0.*another version"):
        place.search(["stranger"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("false", "the program ended with exit code 1"),
        ("sh -c 'echo lost its index >&2; exit 7'", "exit code 7; on standard error: lost its index"),
    ],
)
def test_a_program_that_never_answers_is_given_up(line, said, tmp_path):
    log = tmp_path / "starts"
    counted = f"sh -c 'echo >>{log}; exec \"$@\"' - {line}"
    with pytest.raises(ServiceError, match=rf"20 queries in a row have no answer, and no further .*{said}"):
        Command(counted).index(CORPUS).search(queries(["plain"] * 1000), 5)
    assert len(log.read_text()) < 40


def test_a_flood_of_a_line_without_end_is_cut(place: Place):
    line = (
        f"{sys.executable} -c \"import sys; sys.stdin.readline()\nwhile True: sys.stdout.write('x' * 65536)\""
    )
    with pytest.raises(ServiceError, match="a line of more than 16,777,216 bytes"):
        Command(line).index(CORPUS).search(queries(["plain"]), 5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"command": ""}, "expected such as 'node search.mjs'"),
        ({"command": "node 'x"}, "cannot be split: No closing quotation"),
        ({"command": "cat", "batch": 0}, "batch is 0; expected a whole number from 1 to 1,024"),
        ({"command": "cat", "workers": True}, "workers is True"),
        ({"command": "cat", "timeout_s": -1}, "timeout_s is -1; expected seconds above 0"),
        ({"command": "cat", "on_failure": "zero"}, "on_failure is 'zero'; expected 'refuse' or 'missing'"),
        ({"command": "cat", "version": 3}, "version is 3; expected a text"),
    ],
)
def test_settings_out_of_range_are_one_line(settings, said):
    with pytest.raises(BadValue, match=said):
        Command(**settings)
    with pytest.raises(BadValue, match="cannot start 'no-such-program': No such file"):
        Command("no-such-program").index(CORPUS).search(queries(["a"]), 5)


def test_its_name_parses_back_and_the_collection_stands_in_it():
    system = Command("node search.mjs {dataset}", version="2026-11", batch=4)
    assert str(system) == 'command("node search.mjs {dataset}", version="2026-11", batch=4)'
    assert parse_system(str(system)) == system
    assert system.adapted_to("my set", "").arguments == ["node", "search.mjs", "my set"]


def test_it_is_a_first_stage_a_part_of_a_fusion_and_planned(tmp_path, home):
    """The whole path: a results folder with a note, what the service took, and a plan that asks nothing."""
    folder, log = write_collection(tmp_path / "brooklet"), tmp_path / "asked"
    (tmp_path / "program.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        f"    open({str(log)!r}, 'a').write('.')\n"
        "    said = {'error': 'no'} if q['id'] == 'q3' else {'results': ['d1', 'd4']}\n"
        "    print(json.dumps({'id': q['id'], **said}), flush=True)\n"
    )
    one = f'command("{sys.executable} {tmp_path / "program.py"}", version="1", on_failure="missing")'
    systems = (one, f"rrf(bm25, {one})", f"{one} >> score(bm25)")
    (plan,) = planned(Experiment((str(folder),), systems[:1]), lambda *_: None)
    assert any("is asked 4 queries; it is not probed" in note for note in plan.notes)
    assert not log.exists()
    with pytest.warns(RankingWarning) as given:
        Experiment((str(folder),), systems, ("nDCG@10",), 10).complete(tmp_path / "results", lambda *_: None)
    assert any("1 of 4 queries have no answer (1 refused)" in str(one.message) for one in given)
    assert log.read_text() == "." * 4 * 3  # to depth 10, 1000 for the fusion, 100 for the re-ranker
    cells = {str(cell.ranked.name): cell for cell in finished_cells(tmp_path / "results")}
    assert set(cells) == set(systems)
    (row,) = [row for row in cells[one].rows if row.measure == "nDCG@10"]
    assert (row.queries, row.answered) == (4, 3)
    assert "1 of 4 queries have no answer (1 refused)" in cells[one].ranked.facts["notes"][0]
    found = {line.quality.system: line for line in efficiency(tmp_path / "results")}
    assert (found[one].concurrency, found[one].singles) == (16, None)
    assert found[one].p50_ms is not None
    assert "queries without an answer: 1 refused" in found[one].search_marks
    assert main(["study", "efficiency", str(tmp_path / "results")]) == 0


def test_a_killed_run_goes_on_where_it_was(tmp_path, home):
    """kill -9 in the middle: no answer is lost, nothing that was answered is asked again."""
    place, texts = Place(tmp_path), [f"{'strike' if n == 100 else 'plain'} {n}" for n in range(300)]
    script = (
        "import sys\n"
        "from tests.unit.remote_place import CORPUS, queries\n"
        "from weir.systems.remote.command import Command\n"
        f"texts = {texts!r}\n"
        f"Command({place.line!r}, version='1', batch=2, workers=2).index(CORPUS).search(queries(texts), 5)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == -9
    run, facts = place.search(texts)
    assert run == expected(texts, 5)
    assert facts["stored"] > 80
    repeated = [query for query, count in Counter(place.asked()).items() if count > 1]
    assert len(repeated) <= 4  # handed over, and not answered when it was killed


NODE = """
import {createInterface} from 'node:readline';
for await (const line of createInterface({input: process.stdin})) {
  const {id, text, k} = JSON.parse(line);
  console.log(JSON.stringify({id, results: [{id: `d${text.length % 50}`, score: 1}]}));
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_program_in_another_language(tmp_path):
    (tmp_path / "search.mjs").write_text(NODE, encoding="utf-8")
    texts = [f"ü{'x' * n}" for n in range(100)]
    run = Command(f"node {tmp_path / 'search.mjs'}").index(CORPUS).search(queries(texts), 5).to_dict()
    assert run == {f"q{n}": {f"d{(n + 1) % 50}": 1.0} for n in range(100)}
