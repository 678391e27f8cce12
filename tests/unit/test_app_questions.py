"""The questions on the page: what the folder alone answers is what the commands say; else the command is named."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs the `app` extra")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.test_app_pages import client, contents, page, read, results  # noqa: F401 - fixtures
from weir.cli import main
from weir.core.frames import json_value
from weir.errors import LossWarning
from weir.experiment.results import finished_cells
from weir.plugins.app.server import address
from weir.plugins.questions.document_rules import (
    SHOWN_BREACHES,
    Breach,
    RuleBreaches,
    breach_tables,
    breaches_of,
    with_document_rules,
)
from weir.plugins.questions.filter_recall import FILTER_STUDIES, FilteredSearch, FilterStudy
from weir.plugins.questions.of_results import QUESTIONS, stored_answers

FUSED = "rrf(bm25, rm3)"


def answered(page, collection, question, **asked):  # noqa: F811 - the fixture
    while (value := read(page, "c", collection, "questions", question, **asked))["looking"]:
        pass
    return value


def rankings(results, *systems):  # noqa: F811 - the fixture
    cells = {cell.system: cell for cell in finished_cells(results) if cell.dataset == "brook-facts"}
    return [cells[one].folder for one in systems]


def test_all_questions_are_listed_and_each_has_a_page_that_writes_nothing(page, results):  # noqa: F811 - the fixtures
    before = contents(results.parent)
    listed = read(page, "c", "mine", "questions")["questions"]
    assert [one["name"] for one in listed] == [one.name for one in QUESTIONS]
    for one in listed:
        for collection in ("mine", "brook-facts"):
            value = answered(page, collection, one["name"])
            assert value["found"] or value["lacking"]
            assert value["command"].startswith("weir ")
            html = page.get(address("c", collection, "questions", one["name"])).text
            assert "<script>alert" not in html
            assert "<style" not in html
            assert "style=" not in html
    assert contents(results.parent) == before
    assert page.get("/c/mine/questions/why").status_code == 404
    for wrong in ("fitness?change=a", "fitness?change=0", "gate?max_drop=-1", "decided?max_drop=nan"):
        assert page.get(f"/c/mine/questions/{wrong}").status_code == 400


def test_a_funnel_is_that_of_the_command(page, results):  # noqa: F811 - the fixtures
    [found] = answered(page, "brook-facts", "funnel")["found"]
    [of_page] = [one for one in found["results"] if one["system"] == FUSED]
    [of_command] = weir.funnel("brook-facts", FUSED)
    assert of_page["stages"] == json_value(of_command)["stages"]
    html = page.get("/c/brook-facts/questions/funnel").text
    lost = [lost["query"] for stage in of_page["stages"] for lost in stage["losses"]]
    assert lost
    assert f'href="{address("c", "brook-facts", "q", lost[0])}"' in html


@pytest.mark.parametrize("drop", ["0", "0.03", "0.9"])
@pytest.mark.parametrize("systems", [("bm25", "rm3"), ("rm3", "bm25")], ids="-".join)
def test_a_gate_is_that_of_the_command(page, results, systems, drop):  # noqa: F811 - the fixtures
    folders = rankings(results, *systems)
    expected = weir.gate(*folders, measures="nDCG@10", max_drop=float(drop))
    value = answered(page, "brook-facts", "gate", systems=",".join(systems), max_drop=drop)
    [found] = value["found"]
    assert found["results"] == json_value(expected.items)
    assert found["notes"] == json_value(expected.notes())
    assert shlex.split(value["command"])[2:] == [*map(str, folders), "-m", "nDCG@10", "--max-drop", drop]
    for query, text in value["texts"].items():
        assert weir.load("brook-facts").queries[query].startswith(text.rstrip("…"))


def test_a_look_is_the_first_look_of_the_command(page, results, tmp_path):  # noqa: F811 - the fixtures
    folders = rankings(results, "bm25", "rm3")
    expected = weir.gate_sequentially(tmp_path / "looks.json", *folders, measures="nDCG@10")
    value = answered(page, "brook-facts", "decided", systems="bm25,rm3")
    [found] = value["found"]
    assert found["results"] == json_value(expected.items)
    turned = answered(page, "brook-facts", "decided", systems="rm3,bm25")["found"][0]["results"][0]
    assert turned["difference"] == -found["results"][0]["difference"]


def test_a_migration_is_that_of_the_command(page, results):  # noqa: F811 - the fixtures
    old, new = (folder / "run.trec" for folder in rankings(results, "bm25", "rm3"))
    [expected] = weir.migrate(old, new, collection="brook-facts")
    [of_page] = answered(page, "brook-facts", "migration", systems="bm25,rm3")["found"][0]["results"]
    same = ("queries", "other_documents", "other_order", "other_first", "kept", "low", "high", "changed")
    assert {name: of_page[name] for name in same} == {name: json_value(expected)[name] for name in same}


def test_the_fitness_is_that_of_the_command(page, results):  # noqa: F811 - the fixtures
    expected = next(
        one for one in weir.fitness(results, measures=["nDCG@10"], change=0.1) if one.subject == "brook-facts"
    )
    [of_page] = answered(page, "brook-facts", "fitness", change="0.1")["found"][0]["results"]
    assert [one["kind"] for one in of_page["faults"]] == [one.kind for one in expected.faults]
    named = ("pair", "best")  # a page has short names
    for mine, theirs in zip(of_page["measures"], json_value(expected.measures), strict=True):
        assert {**mine, **dict.fromkeys(named)} == {**theirs, **dict.fromkeys(named)}


def test_a_document_that_must_not_be_found_is_named(tmp_path):
    place = tmp_path / "shop"
    (place / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{n}", "title": "", "text": f"river weir {n}"} for n in range(4)]
    queries = [{"_id": f"q{n}", "text": "river weir"} for n in range(2)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\n")
    lacking = answered(client(run_on(place, tmp_path / "before")), "shop", "rules")
    assert "document-rules.tsv" in lacking["lacking"]
    (place / "document-rules.tsv").write_text(
        "rule\tdocument\tfor\tvalue\nforbidden\td2\tquery:q1\t\nvalid-until\td3\t\t2020-01-01\nasked\t\t*\t2026-11-30\n"
    )
    value = answered(client(run_on(place, tmp_path / "after")), "shop", "rules")
    for system in value["found"][0]["results"]:
        assert {(one["query"], one["document"], one["rule"]) for one in system["breaches"]} == {
            ("q1", "d2", "forbidden"), ("q0", "d3", "stale"), ("q1", "d3", "stale"),
        }  # fmt: skip


def run_on(place, out):
    weir.benchmark([str(place)], ["bm25", "rm3"], ["nDCG@10"], out=out)
    return out


DOCS = [f"d{n}" for n in range(6)]
RANKINGS = st.dictionaries(st.sampled_from("ab"), st.permutations(DOCS), min_size=1)


@given(
    RANKINGS,
    st.lists(st.tuples(st.sampled_from(["*", "query:a", "query:b"]), st.sampled_from(DOCS)), min_size=1),
    st.integers(1, 7),
)
def test_breaches_are_the_forbidden_documents_among_the_first(tmp_path_factory, orders, forbidden, k):
    path = tmp_path_factory.mktemp("rules") / "document-rules.tsv"
    path.write_text(
        "rule\tdocument\tfor\tvalue\n" + "".join(f"forbidden\t{doc}\t{asker}\t\n" for asker, doc in forbidden)
    )
    run = weir.Run.of(
        {query: {doc: -float(n) for n, doc in enumerate(order)} for query, order in orders.items()}
    )
    qrels = with_document_rules({"a": {"d0": 1}, "b": {"d1": 1}}, path)
    barred = {(query, doc) for asker, doc in forbidden for query in "ab" if asker in ("*", f"query:{query}")}
    expected = {
        (query, doc, rank)
        for query, order in orders.items() for rank, doc in enumerate(order[:k], 1) if (query, doc) in barred
    }  # fmt: skip
    assert {(one.query, one.document, one.rank) for one in breaches_of(run, qrels, k)} == expected


def study(collection):
    search = FilteredSearch(
        "by lot", 0.1, 518, 0.1, "during", 16, 1, 300, 0.779, 0.7, 0.8, 0, 400.0, 0.1, 0.0, 0.2, 300, 0.2, 0.4
    )
    return FilterStudy(collection, 'dense("x")', 5183, 300, 10, 0.95, "nDCG@10", 17, 'dense("x")', (search,))


@pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")
def test_what_a_command_left_in_the_folder_is_shown_for_its_collection(results, tmp_path):  # noqa: F811 - the fixtures
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    saved = weir.ResultSet(FILTER_STUDIES, (study("brook-facts"), study("elsewhere")))
    saved.save(folder / "a.json")
    (folder / "b.json").write_text(saved.shown("json"))
    weir.gate_sequentially(folder / "looks.json", *rankings(folder, "bm25", "rm3"), measures="nDCG@10")
    (folder / "broken.json").write_text('{"weir": "filters", "results": [{}]}')
    (folder / "other.json").write_bytes(b"\xff")
    (folder / "<b>.json").symlink_to("/nowhere")
    pages = client(folder)
    with pytest.warns(LossWarning, match="not read: 1 file without valid JSON, other.json"):
        stored_answers(folder, next(one for one in QUESTIONS if one.kinds), "brook-facts")
    found = answered(pages, "brook-facts", "filters")["found"]
    assert [(one["file"], [of["dataset"] for of in one["results"]]) for one in found] == [
        ("a.json", ["brook-facts"]), ("b.json", ["brook-facts"]),
    ]  # fmt: skip
    assert "0.779" in pages.get("/c/brook-facts/questions/filters").text
    assert answered(pages, "mine", "filters")["found"] == []
    assert answered(pages, "brook-facts", "decided", systems="bm25,rm3")["found"][1]["file"] == "looks.json"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda of: st.lists(of, max_size=3) | st.dictionaries(st.sampled_from(["weir", "results", "format", "rules", "dataset", "x"]), of, max_size=4)))  # fmt: skip
def test_any_other_json_in_the_folder_is_no_answer(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("stored")
    (folder / "file.json").write_text(json.dumps(value))
    assert all(stored_answers(folder, one, "x") == [] for one in QUESTIONS)


@pytest.mark.parametrize("question", ["funnel", "decided", "fitness", "migration"])
def test_the_command_that_a_page_names_can_be_typed(results, tmp_path, question, monkeypatch):  # noqa: F811 - the fixtures
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    monkeypatch.chdir(tmp_path)
    command = answered(
        client(folder), "brook-facts", question, systems="bm25,rm3" if question != "funnel" else ""
    )["command"]
    assert main(shlex.split(command)[1:]) in (0, 1, 3)  # 3: not decided yet


def test_the_report_has_the_answers_of_the_page(page, results):  # noqa: F811 - the fixtures
    made = weir.report(results, audit=False, measures=["nDCG@10"])
    [section] = [one for one in made.sections if one.name == "open"]
    said = {row[0].text: row[1].text for row in section.tables[0].rows}
    assert list(said) == ["Can these queries show a change?", "May the new system go live?"]
    fitness = answered(page, "brook-facts", "fitness")["found"][0]["results"][0]
    assert all(fault["statement"] in said["Can these queries show a change?"] for fault in fitness["faults"])


def test_a_report_has_a_test_of_many_looks_only_where_it_was_made(results, tmp_path):  # noqa: F811 - the fixtures
    """Beside the verdicts of one sample, bets on the same sample would contradict them."""
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    titles = []
    for _ in range(2):
        made = weir.report(folder, audit=False, measures=["nDCG@10"])
        [section] = [one for one in made.sections if one.name == "open"]
        titles.append([row[0].text for row in section.tables[0].rows])
        weir.gate_sequentially(folder / "looks.json", *rankings(folder, "bm25", "rm3"), measures="nDCG@10")
    assert ["Is it decided yet?" in of for of in titles] == [False, True]


@pytest.mark.parametrize("more", [0, 1, 3])
def test_breaches_beyond_the_first_are_counted(more):
    every = tuple(Breach("q", f"d{n}", n + 1, "forbidden") for n in range(SHOWN_BREACHES + more))
    table, notes = breach_tables([RuleBreaches("x", "one", 99, 1, every)])
    assert len(table.rows) == SHOWN_BREACHES
    assert any(f"one: {more} further document" in note for note in notes.notes) == (more > 0)
