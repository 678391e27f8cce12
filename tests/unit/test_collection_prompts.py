"""Prompts by collection: instructions as facts, told to the encoders wherever they stand in a system."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit import model_servers as es
from tests.unit.brooklet import QUERIES, write_collection
from tests.unit.embedding_place import forget_spending
from weir.core.corpus import Corpus, Queries
from weir.core.strings import Ids, Strings
from weir.datasets.catalogue import get
from weir.datasets.load import load
from weir.errors import BadValue, FormatError
from weir.experiment.efficiency import efficiency
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.measures import parse_measure
from weir.models.encoder import GENERAL, _of_collection, as_encoder, filled_prompt
from weir.models.hosted import instructed
from weir.settings import settings
from weir.systems import Dense
from weir.systems.composite import adapted_to
from weir.systems.expression import parse_system

ASKING = r'dense("openai:m", query_prompt="Instruct: {task}\nQuery: ")'
TASK = "Find what the river did"


@pytest.fixture
def collection(tmp_path):
    """A collection of one's own, described by a TOML file with an instruction."""
    folder = write_collection(tmp_path / "brooklet")
    path = tmp_path / "brooklet.toml"
    path.write_text(
        f'name = "brooklet"\ninstruction = "{TASK}"\ndocuments = "{folder.name}/corpus.jsonl"\n'
        f'queries = "{folder.name}/queries.jsonl"\nqrels = "{folder.name}/qrels/test.tsv"\n',
        encoding="utf-8",
    )
    return path


def test_the_catalogue_holds_instructions_and_a_toml_file_may():
    assert get("scifact").instruction.startswith("Given a scientific claim")
    assert get("cqadupstack-gaming").instruction == get("cqadupstack-tex").instruction != ""
    assert get("brook-news").instruction == ""


def test_a_collections_own_file_names_its_instruction(collection):
    assert load(str(collection)).instruction == TASK
    collection.write_text(collection.read_text().replace(f'"{TASK}"', "7"))
    with pytest.raises(FormatError, match="not text"):
        load(str(collection))


def test_a_task_is_filled_in_and_has_a_general_form():
    assert filled_prompt("Instruct: {task}\nQuery: ", TASK) == f"Instruct: {TASK}\nQuery: "
    assert filled_prompt("{task}!", "") == GENERAL + "!"
    assert filled_prompt("query: ", TASK) == "query: "


def test_prompts_declared_under_a_collections_name_are_found():
    prompts = {"query": "q", "SciFact-query": "claim: ", "NFCorpus": "n: ", "SciFact-passage": "abstract: "}
    assert _of_collection(prompts, "scifact") == {"query_prompt": "claim: ", "document_prompt": "abstract: "}
    assert _of_collection(prompts, "nfcorpus") == {"query_prompt": "n: "}
    assert _of_collection(prompts | {"QuoraRetrieval-query": "dup: "}, "quora") == {"query_prompt": "dup: "}
    assert _of_collection(prompts, "fever") == {}
    assert _of_collection(prompts, "") == {}


@pytest.mark.parametrize(
    "name",
    [
        ASKING,
        f"rrf(bm25, {ASKING})",
        f"bm25 >> score({ASKING})",
        f"chunked({ASKING}) >> score(rm3)",
        f"rrf(bm25, bm25 >> score({ASKING}))",
    ],
)
def test_every_part_of_a_system_is_told(name):
    """The prompt changes wherever it stands, the rest does not, and what comes out prints and parses."""
    there = adapted_to(parse_system(name), "brooklet", TASK)
    assert str(there) == name.replace("{task}", TASK)
    assert parse_system(str(there)) == there


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_prompt_prints_on_one_line_and_parses_back(prompt):
    system = Dense("openai:m", query_prompt=prompt)
    assert len(str(system).splitlines()) == 1
    assert parse_system(str(system)) == system


@pytest.mark.parametrize("name", ["bm25", "rrf(bm25, rm3)", "bm25 >> score(rm3)", 'dense("openai:m")'])
def test_a_system_without_instructions_stays_what_it_is(name):
    system = parse_system(name)
    assert adapted_to(system, "brooklet", TASK) == system


def test_what_is_sent_and_recorded_is_the_rendered_prompt(tmp_path, monkeypatch, collection):
    """In one run over two collections each is told its own, under one name in the table."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    forget_spending()
    other = write_collection(tmp_path / "plain")
    with es.embedding_serving() as (url, manners):
        system = ASKING[:-1] + f', base="{url}/v1")'
        grid = Experiment((str(collection), str(other)), (system,), ("nDCG@10",), k=3)
        rows = grid.execute(tmp_path / "results")
    settings.cache_clear()
    forget_spending()
    assert {r.system for r in rows} == {str(parse_system(system))}
    sent = manners.sent()
    for task in (TASK, GENERAL):
        assert {f"Instruct: {task}\nQuery: {q}" for q in QUERIES.values()} <= set(sent)
    cells = finished_cells(tmp_path / "results")
    for cell, name, task in zip(cells, ("brooklet", "plain"), (TASK, GENERAL), strict=True):
        assert cell.dataset == name
        assert dict(cell.settings)["system.encoder.query"] == f"Instruct: {task}\nQuery: {{text}}"
        asked = cell.ranked.cost["api"]
        assert asked["texts"] == len(QUERIES)
        assert asked["tokens"] > 0
        assert asked["requests"] >= 1
    notes = "\n".join(mark for one in efficiency(tmp_path / "results") for mark in one.search_marks)
    assert "an API was asked" in notes


def test_a_query_is_asked_with_its_own_instruction(tmp_path, monkeypatch, collection):
    """Queries without one have the collection's; another instruction is another run."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    path = tmp_path / "brooklet" / "queries.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]

    def asked(instruction: str) -> str:
        lines[0]["metadata"] = {"instruction": instruction}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        [cell] = grid.cells(tmp_path / "results")
        cell.complete((parse_measure("nDCG@10"),))
        return cell.stage.key

    settings.cache_clear()
    forget_spending()
    with es.embedding_serving() as (url, manners):
        grid = Experiment((str(collection),), (ASKING[:-1] + f', base="{url}/v1")',), ("nDCG@10",), k=3)
        keys = {asked("Only floods"), asked("Only droughts")}
    settings.cache_clear()
    forget_spending()
    assert len(keys) == 2
    first, *others = QUERIES.values()
    told = {f"Instruct: {own}\nQuery: {first}" for own in ("Only floods", "Only droughts")}
    told |= {f"Instruct: {TASK}\nQuery: {other}" for other in others}
    assert told == {text for text in manners.sent() if "Query: " in text}


def test_an_encoder_that_reads_no_instruction_is_asked_as_before():
    asked = Queries.of({"q1": {"text": "a", "instruction": "b"}})
    loaded = as_encoder(lambda texts: np.ones((len(texts), 2)), name="ones").load()
    assert instructed(loaded, asked) == (loaded, asked.text)


def test_a_separator_stands_between_title_and_text_only_where_there_is_a_title():
    corpus = Corpus(Ids.of(["a", "b"]), Strings.of(["one", "two"]), Strings.of(["T", ""]))
    assert corpus.view("title text", separator=" [SEP] ").tolist() == ["T [SEP] one", "two"]
    assert corpus.view("title text").tolist() == ["T one", "two"]
    assert corpus.view("title text", separator="").tolist() == ["Tone", "two"]


def test_the_separator_is_the_cards_unless_given():
    assert parse_system('dense("dpr")').between == " [SEP] "
    assert parse_system('dense("dpr", separator=" ")').between == " "
    assert parse_system("dense").between == " "
    with pytest.raises(BadValue, match="separator"):
        parse_system("dense(separator=3)")
