"""Prompts whose answer is held to a JSON schema: as each provider publishes it, and where a server takes none."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import chat_serving, status
from weir.core.corpus import Corpus, Queries
from weir.errors import BadValue, ServiceError
from weir.plugins.llm.chat import ChatModel
from weir.plugins.llm.prompts import prompt_template
from weir.services.requests import Limits
from weir.systems import parse_system

CORPUS = Corpus.of({f"d{n}": f"river weir {n}" for n in range(4)})
ASKED = Queries.of({"q1": "river", "q2": "weir", "q3": "river 2"})
NAMED = {
    "type": "object",
    "required": ["requirements"],
    "additionalProperties": False,
    "properties": {"requirements": {"type": "array", "items": {"type": "string"}}},
}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """(address, manners); nothing was asked or spent before, and nobody waits between attempts."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WEIR_KEY_TEST", "sk-0123456789")
    monkeypatch.setattr(Limits, "of", staticmethod(lambda _: Limits(attempts=2, pause=0.001, timeout=20)))
    weir.settings.settings.cache_clear()
    forget_spending()
    with chat_serving() as found:
        yield found
    forget_spending()
    weir.settings.settings.cache_clear()


def subtask(model, base="", key=', key="WEIR_KEY_TEST"'):
    """How the model was used in a decomposition into requirements, prompt after prompt."""
    name = f'bm25 >> llm("subtask", model="{model}"{base}{key}, concurrency=1, expected=False)'
    searcher = parse_system(name).index(CORPUS)
    searcher.search(ASKED, 4)
    return searcher.costs().services[-1]


@pytest.mark.parametrize(
    ("model", "held"),
    [
        (
            "{url}/v1#m",
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": True, "schema": NAMED},
                }
            },
        ),
        (
            "openai:m",
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": True, "schema": NAMED},
                }
            },
        ),
        ("anthropic:m", {"output_config": {"format": {"type": "json_schema", "schema": NAMED}}}),
        ("gemini:m", {"responseMimeType": "application/json", "responseJsonSchema": NAMED}),
    ],
)
def test_a_schema_is_sent_as_each_provider_publishes_it(server, model, held):
    url, manners = server
    use = subtask(model.format(url=url), "" if "url" in model else f', base="{url}"')
    bodies = [body.get("generationConfig", body) for _, _, body in manners.asked]
    naming = [body for body in bodies if held.items() <= body.items()]
    assert len(naming) == len(ASKED)
    others = [body for body in bodies if body not in naming]
    assert not any(set(held) & set(body) for body in others)
    assert set(use.verdicts) == {"ok"}


def test_a_server_that_takes_no_schema_is_asked_without_and_counted(server):
    url, manners = server
    manners.faults = [status(400, b'{"error": "response_format is not supported"}')]
    use = subtask(f"{url}/v1#m", key="")
    formats = [body.get("response_format", {}).get("type") for _, _, body in manners.asked]
    assert formats[:4] == ["json_schema", "json_object", "json_object", "json_object"]
    assert (use.counts.faults["refused"], use.counts.failed) == (1, 0)
    assert use.counts.retried >= 1  # the server may hang up after an error, which is another fault
    count = len(manners.asked)
    assert subtask(f"{url}/v1#m", key="").counts.answered == 0  # the prompts are those from before
    assert len(manners.asked) == count


def test_a_refusal_that_has_another_reason_is_said(server):
    url, manners = server
    manners.faults = [status(400, b'{"error": "too long"}')] * 2
    with pytest.raises(ServiceError, match=r"1 of 3 prompts have no answer \(1 refused\).*400.*too long"):
        subtask(f"{url}/v1#m", key="")
    formats = [body["response_format"]["type"] for _, _, body in manners.asked]
    assert formats == ["json_schema", "json_object", "json_schema", "json_schema"]  # schemas go on


def test_a_schema_is_an_entry_of_a_prompt_and_part_of_its_version(tmp_path):
    path, texts = (
        tmp_path / "mine.toml",
        'max_tokens = 9\nsystem = "S"\nobjective = ""\nuser = "{query} {passage}"\n',
    )
    path.write_text(texts)
    plain = prompt_template(str(path), ("query",))
    (tmp_path / "held.toml").write_text(texts + '[schema]\ntype = "object"\n')
    held = prompt_template(str(tmp_path / "held.toml"), ("query",))
    assert (plain.schema, json.loads(held.schema)) == ("", {"type": "object"})
    assert plain.digest != held.digest
    for name, entry, said in [
        ("a", "schema = 3", "schema is a table"),
        ("b", '[schema]\ntype = "array"', "the JSON schema of an object"),
        ("c", '[schema]\ntype = "object"\nday = 2026-01-01', "schema is no JSON"),
        ("d", '[schema]\ntype = "object"\nmost = inf', "schema is no JSON"),
    ]:
        (tmp_path / f"{name}.toml").write_text(f"{texts}{entry}\n")
        with pytest.raises(BadValue, match=said):
            prompt_template(str(tmp_path / f"{name}.toml"), ("query",))


def test_a_model_in_this_process_has_no_address(tmp_path):
    for given, said in [
        ({"base": "http://localhost/v1"}, "base and key are for services"),
        ({"key": "WEIR_KEY_X"}, "base and key are for services"),
        ({"version": 3}, "version is 3"),
    ]:
        with pytest.raises(BadValue, match=said):
            ChatModel(f"transformers:{tmp_path}", **given)
    model = ChatModel("transformers:org/small-1")
    assert (model.name, model.local, model.options) == ("small-1", True, {})
    assert parse_system('bm25 >> llm("score", model="transformers:/m")') == parse_system(
        str(parse_system('bm25 >> llm("score", model="transformers:/m")'))
    )
