"""Embedding APIs and the store together: nothing is paid for twice, whatever happens in between."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from tests.kills import killed_when
from tests.unit import model_servers as es
from tests.unit.brooklet import QUERIES, write_collection
from tests.unit.embedding_place import forget_spending
from weir.cli import main
from weir.core.strings import Strings
from weir.errors import BadValue, ServiceError, UnknownName
from weir.models.hosted import PROBE, Hosted
from weir.services.requests import Clock, Limits
from weir.settings import settings
from weir.systems.expression import parse_system
from weir.systems.vectors.store import EncodingBlocks, RowStore, StoredRows, TextSource, encoded_rows

TEXTS = [f"text {i % 240}" for i in range(300)]  # some of them twice
CODE = "import sys; from tests.unit.test_embedding_api_store import embed; embed(sys.argv[1])"
WAITLESS = Clock(sleep=lambda _: None)


def embed(base: str, limits: Limits | None = None, texts: list[str] = TEXTS) -> StoredRows:
    """The vectors of the texts, by way of the store in Weir's home."""
    loaded = Hosted("cohere:m", base=base, similarity="dot").load(limits=limits or Limits(), clock=WAITLESS)
    store = RowStore.of(settings().home / "vectors", loaded.identity())
    return encoded_rows(
        store, TextSource.of(Strings.of(texts)), loaded.stream, cut=EncodingBlocks(1000, whole=False)
    )


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[tuple[str, es.EmbeddingManners]]:
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    forget_spending()
    with es.embedding_serving() as (url, manners):
        yield url + "/v2", manners
    settings.cache_clear()
    forget_spending()


def right(found: StoredRows) -> bool:
    wanted = np.array([es.vector_of(t) for t in TEXTS], np.float32)
    return np.array_equal(found.block(0, len(TEXTS)), wanted)


def sent(manners: es.EmbeddingManners) -> Counter[str]:
    """How often each text was sent, but for the probe."""
    counts = Counter(manners.sent())
    del counts[PROBE]
    return counts


def test_a_text_is_sent_once_in_its_life(server):
    base, manners = server
    assert right(embed(base))
    assert [len(a.texts) for a in manners.asked] == [1, 96, 96, 48]
    assert right(embed(base))
    assert set(sent(manners).values()) == {1}
    assert len(manners.asked) == 4


@pytest.mark.parametrize("answered", [0, 2])
def test_a_killed_process_loses_the_request_it_waits_for_and_nothing_else(server, answered):
    base, manners = server
    manners.faults = [None, *[None] * answered, es.hang]
    process = subprocess.Popen([sys.executable, "-c", CODE, base])
    killed_when(process, lambda: len(manners.asked) == 2 + answered)
    waited_for = set(manners.asked[-1].texts)
    assert right(embed(base))
    assert sent(manners) == Counter({t: 2 if t in waited_for else 1 for t in set(TEXTS)})


@pytest.mark.parametrize(
    "fault",
    [
        es.status(401, {"message": "no"}),
        es.status(400, {"message": "no"}),
        es.status(429, {"message": "trial key, 1000 calls a month"}, Retry_After="86400"),
    ],
)
def test_a_command_that_was_stopped_continues_where_it_was(server, fault):
    base, manners = server
    manners.faults = [None, None, *[fault] * 8]
    with pytest.raises(ServiceError):
        embed(base)
    refused = set(manners.asked[2].texts)
    paid = manners.asked[1].texts
    manners.faults = []
    assert right(embed(base))
    counts = sent(manners)
    assert {counts[t] for t in paid} == {1}
    assert {counts[t] for t in set(TEXTS) - set(paid) - refused} == {1}


def test_a_budget_ends_a_run_and_the_next_ones_finish_it(server):
    base, manners = server
    limits = Limits(tokens=300)
    runs = 0
    while True:
        runs += 1
        try:
            found = embed(base, limits)
            break
        except ServiceError as error:
            assert "budget of 300 tokens ends here" in str(error)  # noqa: PT017 - it may end well too
    assert right(found)
    assert runs == 3  # 240 texts of 3 tokens, and the probe each time
    assert set(sent(manners).values()) == {1}


def test_a_batch_that_was_halved_is_kept_half_by_half(server):
    base, manners = server
    manners.most = 40
    assert right(embed(base))
    answered = Counter(t for a in manners.asked if len(a.texts) <= 40 for t in a.texts)
    del answered[PROBE]
    assert set(answered.values()) == {1}


def test_an_encoder_that_gives_too_many_or_too_few_blocks_is_refused(server, tmp_path):
    rows = np.ones((2, 4), np.float32)
    texts = TextSource.of(Strings.of(["a", "b", "c"]))
    for blocks, said in ((1, "3 texts gave the rows of 2"), (2, "3 texts gave the rows of 4")):
        store = RowStore.of(tmp_path / str(blocks), {"model": "m"})
        with pytest.raises(BadValue, match=said):
            encoded_rows(store, texts, lambda _, n=blocks: iter([rows] * n))


def test_dense_names_an_api_with_its_settings(server):
    base, _ = server
    name = f'dense("cohere:m", base="{base}", dimensions=6, key="WEIR_KEY_SOME")'
    assert str(parse_system(name)) == name
    for wrong, said in (
        (f'dense("cohere:m", base="{base}", pooling="mean")', "pooling does not apply to an embedding API"),
        ('dense("opnai:m")', "did you mean openai"),
        ('dense("minilm", dimensions=6)', "dimensions does not apply to a checkpoint"),
    ):
        with pytest.raises((BadValue, UnknownName), match=said):
            parse_system(wrong)


def test_a_budget_ends_weir_run_in_one_line_and_the_same_command_continues(
    server, tmp_path, monkeypatch, capsys
):
    base, manners = server
    arguments = ["run", "-d", str(write_collection(tmp_path / "brooklet")), "-m", "nDCG@3", "-k", "3"]
    arguments += ["-s", f'dense("cohere:m", base="{base}")', "-o", str(tmp_path / "results"), "--json"]
    monkeypatch.setenv("WEIR_API_BUDGET", "1 requests")
    settings.cache_clear()
    forget_spending()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    last = err.strip().split("\n")[-1]
    assert out == ""
    assert last.startswith("weir: ")
    assert "the budget of 1 requests ends here: spent " in last
    assert "Traceback" not in err
    monkeypatch.delenv("WEIR_API_BUDGET")
    settings.cache_clear()
    forget_spending()
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["measure"] == "nDCG@3"
    queries = set(QUERIES.values())
    assert {a.body["input_type"] for a in manners.asked if set(a.texts) <= queries} == {"search_query"}
    asked = len(manners.asked)
    assert main([*arguments, "--quiet"]) == 0
    assert len(manners.asked) == asked
