"""The pages on results: what they show is what the folder and the commands say, and nothing of the data is markup."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs the `app` extra")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from starlette.testclient import TestClient

import weir
from tests.kills import until
from tests.unit.model_servers import chat_serving
from weir.cli import main
from weir.errors import RankingWarning
from weir.experiment.results import finished_cells
from weir.plugins.app import folder as folder_module
from weir.plugins.app.choices import _split, systems_text
from weir.plugins.app.folder import Folder
from weir.plugins.app.pages import PARTS, WORDS
from weir.plugins.app.queries_page import QueryRow
from weir.plugins.app.server import Access, address, application, csrf_of
from weir.plugins.importing.merge import made_id

TOKEN = "t" * 32
SYSTEMS = ("bm25", 'bm25("lucene-multifield")', "rrf(bm25, rm3)", "rm3")
MODEL = "a-model-with-a-long-name"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE = [MARKUP, "../../etc/passwd", "a/q/b?c#d", "q.json", "..", "ünï\u202e", "two words", "'\"{{7*7}}"]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    """Systems on one of brook's collections, and four on one whose identifiers and texts are hostile."""
    place = tmp_path_factory.mktemp("app")
    mine = place / "mine"
    (mine / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"d{name}", "title": MARKUP, "text": f"river {name} {'weir ' * (n % 3)}{MARKUP} {{{{7*7}}}}"}
        for n, name in enumerate(HOSTILE)
    ]
    queries = [{"_id": name, "text": f"river weir {name} {MARKUP}"} for name in HOSTILE]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (mine / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(f"{name}\td{name}\t1\n" for name in HOSTILE)
    (mine / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    weir.benchmark(["brook-facts", str(mine)], SYSTEMS, ["nDCG@10", "R@100"], out=place / "results")
    with chat_serving() as (url, _), warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)  # of one answer that does not say enough
        model = f'model="{url}/v1#{MODEL}"'
        rerankers = [
            f'bm25 >> llm("{name}", {model}, depth=4)' for name in ("reason", "listwise", "pairwise")
        ]
        weir.benchmark(["brook-facts"], rerankers, ["nDCG@10"], out=place / "results")
    return place / "results"


def client(folder: Path, **access) -> TestClient:
    app = application(Folder(folder), PARTS, Access({TOKEN: ""}, **access), WORDS)
    return TestClient(app, base_url="http://localhost:4747", cookies={"weir": TOKEN})


@pytest.fixture(scope="module")
def page(results) -> TestClient:
    return client(results)


def read(page: TestClient, *names: str, **asked) -> dict:
    path = address(*names, **asked)
    answer = page.get(path.replace("?", ".json?", 1) if "?" in path else f"{path}.json")
    assert answer.status_code == 200, answer.text
    return answer.json()


def looked(page: TestClient, *names: str, **asked) -> dict:
    """A list of queries, once rankings and texts have been looked into."""
    while (value := read(page, *names, **asked))["looking"]:
        pass
    return value


class Links(HTMLParser):
    """The links of a page; whatever would run, or be styled, by the page itself is kept as a fault."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.faults: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [given[name] for name in ("href", "hx-get") if name in given]
        inline = [name for name in given if name.startswith("on") or name == "style"]
        if inline or tag in ("img", "style", "iframe") or (tag == "script" and "src" not in given):
            self.faults.append(self.get_starttag_text() or tag)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_only_absent_parameters_leave_an_address():
    assert (
        address("try", a=0, b=0.0, c=None, d="", e=False, f=[0, "", 2], g=True)
        == "/try?a=0&b=0.0&f=0&f=2&g=True"
    )


def test_every_address_that_a_page_names_is_a_page_and_json_and_no_data_is_markup(page, results):
    before = contents(results.parent)
    found, todo = set(), ["/", address("c", "mine"), address("try", collection="mine", query=MARKUP)]
    todo += [address("c", "mine", "q", name) for name in HOSTILE]
    while todo and len(found) < 80:
        link = todo.pop(0)
        if link in found or link.startswith(("#", "/static/")):
            continue
        found.add(link)
        answer = page.get(link)
        assert answer.status_code == 200, (link, answer.text)
        if ".json" in link.partition("?")[0]:
            answer.json()
            continue
        parsed = Links(answer.text)
        assert parsed.faults == []
        assert all(one.startswith(("/", "#")) for one in parsed.links)
        todo += parsed.links
    assert any("/d/" in link for link in found)
    assert any(link.startswith("/c/mine/q/%3Cscript%3E") and "systems=" in link for link in found)
    assert contents(results.parent) == before


def compared_start(page):
    """Return the start page's value once its comparison, which runs beside it, has ended."""
    return compared(lambda: page.get("/index.json").json())


def compared(asked):
    """Return the value of a page once its comparison has ended."""
    values = []
    until(lambda: values.append(asked()) or not values[-1]["comparing"])
    return values[-1]


def test_a_fragment_is_the_inside_of_its_page(page):
    compared_start(page)
    whole, inside = page.get("/").text, page.get("/", headers={"hx-request": "true"}).text
    assert whole.startswith("<!doctype html>")
    assert "<html" not in inside
    assert inside.strip() in whole


def test_the_means_are_those_of_the_store(page, results):
    value = page.get("/index.json?measure=R@100").json()
    rows = {
        (cell.dataset, cell.label): row
        for cell in finished_cells(results)
        for row in cell.rows
        if row.measure == "R@100"
    }
    shown = {
        (one["name"], system["name"]): mean
        for one in value["collections"]
        for system, mean in zip(value["systems"], one["means"], strict=True)
    }
    assert {key: (one["mean"], one["low"], one["high"]) for key, one in shown.items() if one} == {
        key: (row.mean, row.low, row.high) for key, row in rows.items()
    }


def test_what_is_said_beside_the_means_is_what_the_command_says(page, results):
    for measure in ("nDCG@10", "R@100"):
        shown = read(page, "index", measure=measure)["remarks"]
        said = [str(note) for note in weir.results(results, measure).notes()]
        assert said
        assert [one for one in said if one not in shown and "by construction" not in one] == []


def test_verdicts_and_letters_are_those_of_compare(page, results):
    value = compared_start(page)
    comparisons = {
        one.dataset: one for one in weir.compare(results, measures="nDCG@10") if one.unit == "queries"
    }
    for row in value["collections"]:
        comparison = comparisons[row["name"]]
        letters = {one.system: one.letters for one in comparison.standings}
        for system, mean in zip(value["systems"], row["means"], strict=True):
            if mean is None:
                continue
            assert mean["letters"] == letters[system["name"]]
            pair = comparison.against(system["name"], "bm25")
            assert mean["verdict"] == ("" if pair is None else pair.verdict)


def test_the_list_is_that_of_diff_in_every_order_and_filter(page, results):
    cells = {cell.system: cell.folder for cell in finished_cells(results) if cell.dataset == "brook-facts"}
    moves = weir.diff(cells["bm25"], cells["rm3"])[0]
    value = looked(page, "c", "brook-facts", systems="bm25,rm3")
    assert {(r["query"], *r["values"], r["outcome"]) for r in value["rows"]} == {
        (one.query, one.before, one.after, one.outcome) for one in moves.queries
    }
    gaps = [abs(row["difference"]) for row in value["rows"]]
    assert gaps == sorted(gaps, reverse=True)
    losses = [
        r["difference"] for r in looked(page, "c", "brook-facts", systems="bm25,rm3", sort="loss")["rows"]
    ]
    assert losses == sorted(losses)
    counts = {one["name"]: one["count"] for one in (*value["filters"], *value["slices"])}
    assert counts["won"] + counts["lost"] + counts["tied"] == counts[""] == len(value["rows"])
    for name, count in counts.items():
        chosen = looked(page, "c", "brook-facts", systems="bm25,rm3", show=name)
        assert chosen["total"] == len(chosen["rows"]) == count
    found = looked(page, "c", "brook-facts", systems="bm25,rm3", find="LIGHTNING")["rows"]
    assert [row["query"] for row in found] == ["12"]


def test_the_verdict_on_two_systems_is_that_of_compare_and_notes_are_of_the_measure(page, results):
    for measure in ("nDCG@10", "R@100"):
        asked = {"systems": "rm3,rrf(bm25, rm3)", "measure": measure}
        value = compared(lambda asked=asked: read(page, "c", "brook-facts", **asked))
        [of_all] = [
            one
            for one in weir.compare(results, measures=measure, datasets=["brook-facts"])
            if one.unit == "queries"
        ]
        pair = of_all.against("rrf(bm25, rm3)", "rm3")
        shown = value["compares"]
        assert (shown["difference"], shown["low"], shown["adjusted"], shown["verdict"]) == (
            pair.difference, pair.low, pair.adjusted, pair.verdict
        )  # fmt: skip
        other = "R@100" if measure == "nDCG@10" else "nDCG@10"
        assert not [one for one in value["sentences"] if f"{other}: " in one]


@given(st.text(min_size=1), st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True))
def test_an_identifier_that_was_made_of_the_text_is_not_shown_beside_it(text, other):
    shown = [
        QueryRow(name, text, (), 0.0, "", 0.0, ()).identifier for name in (made_id(text, "query"), other)
    ]
    assert shown == ["", "" if other == text else other]


def test_the_command_that_adds_a_system_is_of_the_results_collection_depth_and_measures(page, results):
    before = contents(results)
    for collection in ("brook-facts", "mine"):
        command = shlex.split(looked(page, "c", collection)["adds"])
        command[command.index("-s") + 1] = "rm3"  # is there, so that the command finds it
        assert main([*command[1:], "-q"]) == 0
    assert contents(results) == before


def test_parts_of_a_list_follow_one_another(page, monkeypatch):
    monkeypatch.setattr("weir.plugins.app.queries_page.PART_ROWS", 4)
    whole, start = list[str](), 0
    while True:
        value = looked(page, "c", "brook-facts", systems="bm25,rm3", **{"from": start})
        whole += [row["query"] for row in value["rows"]]
        start += len(value["rows"])
        if start == value["total"]:
            break
    assert len(whole) == len(set(whole)) == 21
    first, second = (read(page, "c", "brook-facts", "q", name, systems="bm25,rm3") for name in whole[:2])
    assert (first["before"], first["after"], second["before"]) == (None, whole[1], whole[0])


def test_a_query_shows_the_rankings_grades_and_places(page, results):
    qrels = weir.load("brook-facts").qrels
    value = read(page, "c", "brook-facts", "q", "12", systems="bm25,rm3", depth=20)
    folders = {cell.label: cell.folder for cell in finished_cells(results) if cell.dataset == "brook-facts"}
    runs = [weir.Run.load(folders[name] / "run.trec") for name in ("bm25", "rm3")]
    for column, run in zip(value["columns"], runs, strict=True):
        assert {one["document"]: one["score"] for one in column["answers"]} == dict([*run["12"].items()][:20])
        for one in column["answers"]:
            grade = qrels["12"].get(one["document"])
            assert (one["judgment"] or {}).get("grade") == grade
            assert one["ranks"] == [
                ([*run["12"]].index(one["document"]) + 1) if one["document"] in run["12"] else None
                for run in runs
            ]
    shown = {one["document"] for column in value["columns"] for one in column["answers"]}
    assert {one["document"] for one in value["missed"]} == {
        d for d, g in qrels["12"].items() if g > 0
    } - shown


def test_what_made_a_score_adds_up(page):
    value = read(page, "c", "brook-facts", "q", "12", "d", "1129")
    places = {one["system"]["name"]: one for one in value["places"]}
    for name in ("bm25", "rm3", 'bm25("lucene-multifield")'):
        assert math.fsum(part["score"] for part in places[name]["parts"]) == pytest.approx(
            places[name]["score"], rel=1e-6
        )
    parts = {part["name"]: part["rank"] for part in places["rrf(bm25, rm3)"]["parts"]}
    assert parts == {name: places[name]["rank"] for name in ("bm25", "rm3")}


def test_a_language_models_answers_are_its_own_with_the_documents_and_the_prompt(
    results, session_home, monkeypatch
):
    lacking = read(client(results), "c", "brook-facts", "q", "12", "d", "1129")["places"]
    assert sum("not kept on this machine" in one["reason"] for one in lacking) == 3
    monkeypatch.setenv("WEIR_HOME", str(session_home))  # where the fixture kept them
    weir.settings.settings.cache_clear()
    page = client(results)
    value = read(page, "c", "brook-facts", "q", "12", "d", "1129")
    asked = {
        trace.system: [one for one in trace.exchanges if "1129" in one.documents]
        for trace in weir.llm_trace(results, "12")
    }
    told = {one["system"]["name"]: one for one in value["places"]}
    assert len(asked) == 3
    for name, exchanges in asked.items():
        assert told[name]["answered"] == len(exchanges) > 0
        for shown, exchange in zip(told[name]["answers"], exchanges, strict=True):
            assert (shown["text"], shown["prompt"]) == (exchange.answer, exchange.user_text)
            assert shown["documents"] == list(exchange.documents)
    [name] = [name for name in asked if '"reason"' in name]
    [reason] = asked[name]
    assert round(told[name]["score"]) == json.loads(reason.value)
    text = page.get(address("c", "brook-facts", "q", "12", "d", "1129")).text
    assert "It is of some use." in text
    assert f"the model: {reason.value}" in text


def test_copies_are_told_and_words_are_marked(tmp_path):
    texts = {
        f"d{n}": f"the weir on the river held back the flood {'of the upper valley ' * 20}{'x' * (n > 1)}"
        for n in range(3)
    }
    data = weir.Dataset.of(
        {**texts, "other": "a river"}, {"q": "flooding rivers"}, {"q": {"d0": 1}}, "copied"
    )
    weir.benchmark([data], ["bm25"], ["nDCG@10"], out=tmp_path / "results")
    answers = read(client(tmp_path / "results"), "c", "copied", "q", "q")["columns"][0]["answers"]
    assert {one["document"] for one in answers if one["copy_of"]} < {*texts}
    assert sum(bool(one["copy_of"]) for one in answers) == 2
    marked = {part.lower() for one in answers for part, hit in one["excerpt"] if hit}
    assert marked == {"flood", "river"}


def test_a_typed_query_is_answered_as_by_the_systems(page):
    data = weir.load("brook-facts")
    value = read(
        page, "try", collection="brook-facts", query="why do rivers flood", systems="bm25,rrf(bm25, rm3)"
    )
    for column, name in zip(value["columns"], ("bm25", "rrf(bm25, rm3)"), strict=True):
        run = weir.system(name).index(data.corpus).search(weir.Queries.of({"q": "why do rivers flood"}), 100)
        assert [one["document"] for one in column["answers"]] == [*run["q"]][:10]
        assert column["milliseconds"] > 0
    shown = page.get(address("try", collection="brook-facts", query="why do rivers flood")).text
    assert "weir-dot-other" in shown
    assert "unjudged" not in shown  # of a typed query nothing is known
    document = value["columns"][0]["answers"][0]["document"]
    told = read(page, "c", "brook-facts", "d", document, query="why do rivers flood")
    assert told["places"][0]["system"]["name"] == "bm25"


def test_a_new_result_is_noticed_and_a_damaged_one_told(results, tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "STAMP_SECONDS", 0)
    copy = Path(shutil.copytree(results, tmp_path / "results"))
    page = client(copy)
    before = len(page.get("/index.json").json()["systems"])
    weir.benchmark(["brook-facts"], ["bm25(k1=2)"], ["nDCG@10"], out=copy)
    assert len(page.get("/index.json").json()["systems"]) == before + 1
    run = next(copy.glob("brook-facts/rm3-*/run.trec"))
    run.write_bytes(run.read_bytes()[:-100])
    broken = page.get("/c/brook-facts/q/12.json?systems=bm25,rm3")
    assert broken.status_code == 500
    assert "not as it was written" in broken.json()["error"]
    assert page.get("/c/brook-facts/q/12?systems=bm25").status_code == 200


def test_without_its_collection_a_folder_shows_what_it_has(results, tmp_path):
    moved = Path(shutil.copytree(results.parent, tmp_path / "all"))
    for record in (moved / "results").glob("mine/*/scores-*.json"):
        assert str(results.parent) in record.read_text()
    (results.parent / "mine").rename(results.parent / "away")
    try:
        page = client(moved / "results")
        value = read(page, "c", "mine", "q", "q.json")
        assert not value["here"]
        assert value["columns"][0]["answers"]
        assert looked(page, "c", "mine")["total"] == len(HOSTILE)
        failed = read(page, "try", collection="mine", query="river")["columns"][0]["failure"]
        assert "not here" in failed
    finally:
        (results.parent / "away").rename(results.parent / "mine")


def test_a_collection_without_judgments_stands_beside_one_with_them(tmp_path):
    for name in ("judged", "unjudged"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "corpus.jsonl").write_text(
            '{"_id": "d1", "text": "weir"}\n{"_id": "d2", "text": "dam"}\n'
        )
        (tmp_path / name / "queries.jsonl").write_text(
            '{"_id": "q1", "text": "weir"}\n{"_id": "q2", "text": "dam"}\n'
        )
    (tmp_path / "judged" / "qrels").mkdir()
    (tmp_path / "judged" / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n"
    )
    places = [str(tmp_path / name) for name in ("judged", "unjudged")]
    weir.benchmark(places, ["bm25", "rm3"], ["nDCG@10"], out=tmp_path / "results")
    page = client(tmp_path / "results")
    for path in ("/", "/c/judged", "/c/unjudged", "/c/unjudged/q/q1", "/c/unjudged/questions"):
        for asked in ("", "?measure=nDCG@10"):
            assert page.get(path + asked).status_code == 200, path + asked


@pytest.mark.parametrize(
    "path",
    ["/c/nowhere", "/c/brook-facts/q/nothing", "/c/brook-facts?systems=none", "/c/brook-facts?measure=x", "/c/brook-facts?sort=x",
     "/c/brook-facts/q/12/d/nothing", "/try?collection=x", "/c/..%2f..%2fetc/q/passwd", "/c/brook-facts/q/12/d/..%2f..%2fcorpus.jsonl"],
)  # fmt: skip
def test_what_is_not_there_is_told(page, path):
    answer = page.get(path)
    assert answer.status_code == 404
    assert "Not here" in answer.text


def test_a_system_that_asks_a_service_waits_for_a_write(page, results):
    value = read(page, "try", collection="brook-facts", query="river")
    assert not value["waiting"]
    own = {"csrf": csrf_of(TOKEN), "query": "river"}
    asked = page.post("/try/ask.json?collection=brook-facts&systems=bm25", data=own).json()
    assert asked["columns"][0]["answers"]
    assert page.post("/try/ask?collection=brook-facts", data={"query": "river"}).status_code == 403
    assert client(results, read_only=True).post("/try/ask", data=own).status_code == 404


@pytest.mark.parametrize(
    "labels", [["bm25", "rm3"], ["rrf(bm25, rm3)", "bm25"], ["a,b", "c"], ["x)", "y,z"], [",", "("]]
)
def test_labels_of_systems_stand_in_an_address(labels):
    text = systems_text(labels)
    assert (_split(text) if isinstance(text, str) else text) == labels


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["judged.csv"], "expected a results folder, or judgments and one or more files of rankings"),
        (["made", "a.csv"], "found the results folder made and 1 more"),
        (["made", "-m", "RR"], "found measures without files of rankings"),
        (["judged.csv", "none.csv"], "none.csv: found no such file"),
    ],
)
def test_what_is_no_folder_and_no_judgments_with_runs_is_told(tmp_path, monkeypatch, capsys, given, told):
    monkeypatch.chdir(tmp_path)
    Path("judged.csv").write_text("query,document,grade\nq1,d1,1\n")
    Path("a.csv").write_text("query,document,score\nq1,d1,2.0\n")
    weir.benchmark("brook-facts", "bm25", "RR", out="made")
    capsys.readouterr()
    assert main(["open", *given, "--no-browser"]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert told in line


def test_judgments_and_runs_open_as_their_results_and_nothing_else_is_written(tmp_path):
    """Files as `weir compare` takes them; the folder lies where the command runs, and other results are let be."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (tmp_path / "judged.csv").write_text("query,document,grade\nboots,p1,2\nboots,p3,0\nusb c,p9,1\n")
    (tmp_path / "before.csv").write_text("query,document,score\nboots,p3,7.1\nboots,p1,6.0\nusb c,p9,8.5\n")
    (tmp_path / "after.trec").write_text("boots Q0 p1 1 7.3 after\n")
    command = [
        sys.executable,
        "-m",
        "weir",
        "open",
        "../judged.csv",
        "../before.csv",
        "../after.trec",
        "-m",
        "RR",
    ]
    with subprocess.Popen(
        [*command, "--port", "0", "--no-browser"], stderr=subprocess.PIPE, text=True, cwd=folder
    ) as server:
        try:
            said = [line for line in iter(server.stderr.readline, "Ctrl-C ends it\n") if line]
            assert "results: judged-results\n" in said
            place = said[-1].split()[-1]
            visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            visitor.open(place).read()
            shown = json.load(visitor.open(place.replace("/?", "/c/judged.json?")))
            assert "before" in json.dumps(shown)
            assert "usb c" in json.dumps(shown)
        finally:
            server.kill()
    assert {path.name for path in folder.iterdir()} == {"judged-results"}
    means = {row.system: row.mean for row in weir.results(folder / "judged-results") if row.measure == "RR"}
    assert means == {'run("../before.csv")': 0.75, 'run("../after.trec")': 0.5}


def test_the_command_serves_and_ends_when_told_also_in_the_middle_of_work(results):
    command = [sys.executable, "-m", "weir", "open", str(results), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            place = server.stderr.readline().split()[-1]
            visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert b"2 collections" in visitor.open(place).read()
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(place.partition("?")[0])
            server.send_signal(signal.SIGTERM)
            assert server.wait(300) in (143, -signal.SIGTERM)
        finally:
            server.kill()
