"""Embedding APIs that mean harm, and experiment files that would send secrets to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.unit import model_servers as es
from tests.unit.embedding_place import KEY, QUICK, Place, expected, placed, texts
from weir.errors import BadValue, ServiceError
from weir.models.hosted import PROBE, Hosted
from weir.services.requests import is_this_machine


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[Place]:
    with placed(tmp_path / "home", monkeypatch) as found:
        yield found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": "AWS_SECRET_ACCESS_KEY"}, "'AWS_SECRET_ACCESS_KEY' is not sent anywhere; .*WEIR_KEY_NAME"),
        ({"key": "COHERE_API_KEY"}, "is not sent anywhere"),
        ({"key": "WEIR_KEY_"}, "is not sent anywhere"),
        ({"key": "XWEIR_KEY_A"}, "is not sent anywhere"),
        ({"key": 3}, "must name an environment variable, such as OPENAI_API_KEY"),
        (
            {"key": "OPENAI_API_KEY", "base": "https://example.org/v1"},
            "OPENAI_API_KEY goes to the provider's own",
        ),
        (
            {"base": "http://example.org/v1"},
            "http is allowed for localhost only; use https",
        ),
        ({"base": "http://10.0.0.7:8080/v1"}, "http is allowed for localhost only"),
        ({"base": "http://localhost.example.org/v1"}, "http is allowed for localhost only"),
        ({"base": "http://127.0.0.1.example.org/v1"}, "http is allowed for localhost only"),
        ({"base": "http://0.0.0.0/v1"}, "http is allowed for localhost only"),
        ({"base": "https://example.org\\@localhost/v1"}, "base is not an address"),
        ({"base": "https://exa\u0301mple.org/v1"}, "base is not an address"),
        ({"base": 3}, "base is not an address"),
    ],
)
def test_no_other_secret_and_no_other_way_out(given, said):
    with pytest.raises(BadValue, match=said):
        Hosted("openai:m", **given)


def test_the_usual_key_a_key_for_weir_and_this_machine_are_taken():
    Hosted("openai:m", key="OPENAI_API_KEY")
    Hosted("voyage:m", base="https://example.org/v1", key="WEIR_KEY_MINE_2")
    for host in ("localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "[::1]"):
        Hosted("openai:m", base=f"http://{host}:8080/v1")
    assert not any(map(is_this_machine, ["::", "::2", "127.1", "1270.0.0.1", "local", "", "0"]))


def test_a_proxy_does_not_see_what_goes_to_this_machine(place: Place, monkeypatch):
    with es.embedding_serving() as (other, manners):
        monkeypatch.setenv("http_proxy", other)
        monkeypatch.delenv("no_proxy", raising=False)
        assert np.array_equal(place.load().encode(["a"]), expected(["a"]))
        assert manners.asked == []


def reason(text: str):
    """A reason phrase of the server's choice."""

    def fault(handler: es.EmbeddingHandler, _: dict) -> None:
        handler.send_response(400, text)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return fault


@pytest.mark.parametrize(
    "fault",
    [
        reason(f"Bad key {KEY}"),
        es.status(307, Location=f"https://example.org/?key={KEY}"),
        es.status(403, f"no {KEY}".encode()),
        es.status(400, {"error": {"message": f"no {KEY}", "code": KEY}}),
        es.status(400, {"detail": [KEY]}),
        lambda handler, _: handler.wfile.write(f"{KEY}\r\n\r\n".encode()),
    ],
    ids=["reason", "location", "text", "json", "detail", "status line"],
)
def test_a_key_that_a_server_echoes_is_masked(place: Place, fault):
    loaded = place.ready(limits=replace(QUICK, attempts=1))
    place.manners.faults = [fault]
    with pytest.raises(ServiceError, match=r"\*\*\*") as caught:
        loaded.encode(["a"])
    assert KEY not in str(caught.value) + repr(caught.value) + repr(caught.value.__cause__)


def endless(headers: bool):
    """One byte every twentieth of a second, in the headers or in the body, for as long as anybody listens."""

    def fault(handler: es.EmbeddingHandler, _: dict) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"X: " if headers else b"\r\n"))
        while not handler.manners.released.wait(0.05):
            handler.wfile.write(b" ")

    return fault


@pytest.mark.parametrize("headers", [True, False])
def test_an_answer_that_trickles_ends_at_the_limit_for_the_whole(place: Place, headers):
    loaded = place.ready(limits=replace(QUICK, whole=0.4))
    place.manners.faults = [endless(headers)]
    began = time.monotonic()
    assert np.array_equal(loaded.encode(["a"]), expected(["a"]))
    assert 0.3 < time.monotonic() - began < 5
    assert loaded.client.metered.spent.retries == 1


def flood(handler: es.EmbeddingHandler, _: dict) -> None:
    """As many bytes as anybody takes, and how many that were."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    handler.manners.flooded = 0
    while handler.manners.flooded < 1 << 28:
        handler.manners.flooded += handler.wfile.write(b"[" * (1 << 16))


def test_an_answer_is_read_up_to_a_bound_for_each_text(place: Place):
    loaded = place.ready(limits=replace(QUICK, attempts=1))
    place.manners.faults = [flood]
    with pytest.raises(ServiceError, match=r"the answer has more than 79,360 bytes"):
        loaded.encode(texts(3))  # 64 KiB, and for each text 4 KiB and 64 bytes for each of 8 numbers
    assert place.manners.flooded < 1 << 24


@pytest.mark.parametrize(
    "tokens", [0, -5, 10**300, 10**4000, 1e300, float("inf"), float("nan"), "many", None, True, [1]], ids=repr
)
def test_a_count_of_tokens_that_is_none_is_estimated_and_never_free(place: Place, tokens):
    loaded = place.ready()
    before = loaded.client.metered.spent.tokens
    place.manners.faults = [es.changed(lambda a: a.update(usage={"total_tokens": tokens}))]
    assert np.array_equal(loaded.encode(texts(3)), expected(texts(3)))
    assert loaded.client.metered.spent.tokens - before >= sum(len(t) // 3 + 1 for t in texts(3))


def test_a_vector_of_zeros_is_refused_and_its_text_named(place: Place):
    loaded = place.ready()
    place.manners.faults = [es.changed(lambda a: a["data"][1].update(embedding=[0.0] * 8))] * 4
    with pytest.raises(ServiceError, match="vector 2 of the answer is all zeros; its text begins 'text 1'"):
        loaded.encode(texts(3))
    place.manners.faults = [
        es.changed(lambda a: a["data"][0].update(embedding=[1e-60] * 8))
    ]  # zero as a float
    assert np.array_equal(loaded.encode(texts(1)), expected(texts(1)))


def test_a_refusal_names_the_model_and_the_texts_it_was_asked_for(place: Place):
    loaded = place.ready()
    place.manners.faults = [es.status(404, {"error": "no such model"})]
    with pytest.raises(
        ServiceError,
        match=r"openai:m, asked for 3 query texts, the first the query that begins 'text 0': .*no such",
    ):
        loaded.encode(texts(3), "query")
    assert PROBE not in place.manners.sent()[-3:]
