"""Embedding APIs against a local server that misbehaves on purpose; nothing leaves this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate

import numpy as np
import pytest

from tests.unit import model_servers as es
from tests.unit.embedding_place import KEY, QUICK, Place, Time, expected, placed, texts
from weir.errors import BadValue, ServiceError, StoreError, UnknownName
from weir.files.network import is_this_machine
from weir.models.hosted import PROBE, PROVIDERS, Ask, Hosted, is_hosted
from weir.services.requests import Bucket, Limits, Spent
from weir.settings import settings


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[Place]:
    with placed(tmp_path / "home", monkeypatch) as found:
        yield found


@pytest.mark.parametrize(
    ("model", "path", "told"),
    [
        ("openai:m", "/v1/embeddings", {"encoding_format": "float"}),
        (
            "cohere:m",
            "/v2/embed",
            {"input_type": "search_query", "embedding_types": ["float"], "truncate": "END"},
        ),
        ("voyage:m", "/v1/embeddings", {"input_type": "query", "truncation": True}),
    ],
)
def test_every_provider_is_asked_and_read_in_its_own_way(place: Place, model, path, told):
    loaded = place.ready(model)
    kind = "document" if model == "openai:m" else "query"
    assert np.array_equal(loaded.encode(texts(3), "query"), expected(texts(3), kind))
    (asked,) = place.manners.asked
    assert (asked.path, asked.key, asked.texts) == (path, f"Bearer {KEY}", texts(3))
    assert asked.body.items() >= {"model": "m", **told}.items()
    assert np.array_equal(loaded.encode(texts(2), "document"), expected(texts(2)))
    assert loaded.client.metered.spent.tokens == len(PROBE) // 3 + 1 + 5 * 3


@pytest.mark.parametrize(
    ("model", "name"),
    [("openai:m", "dimensions"), ("cohere:m", "output_dimension"), ("voyage:m", "output_dimension")],
)
def test_dimensions_are_asked_for_and_checked(place: Place, model, name):
    loaded = place.load(model, dimensions=4)
    assert loaded.encode(["a"]).shape == (1, 4)
    assert {asked.body[name] for asked in place.manners.asked} == {4}
    place.manners.faults = [
        es.changed(lambda _: {"data": [{"embedding": [1.0] * 5}], "embeddings": {"float": [[1.0] * 5]}})
    ]
    with pytest.raises(ServiceError, match="asked for 3 dimensions, got 5; leave dimensions out"):
        place.load(model, dimensions=3)


def test_cosine_gives_vectors_of_length_one_and_prompts_stand_before_texts(place: Place):
    loaded = place.load(similarity="cosine", query_prompt="query: ", document_prompt="passage: ")
    found = loaded.encode(["a", "b"], "query")
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    wanted = expected(["query: a", "query: b"])
    assert np.allclose(found, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-6)
    loaded.encode(["a"], "document")
    assert place.manners.sent()[-3:] == ["query: a", "query: b", "passage: a"]


def test_batches_are_cut_by_count_and_by_tokens_and_come_in_order(place: Place):
    loaded = place.ready("cohere:m")
    given = texts(200)
    seen: list[tuple[int, int]] = []
    assert np.array_equal(loaded.encode(given, progress=lambda *p: seen.append(p)), expected(given))
    assert [len(a.texts) for a in place.manners.asked] == [96, 96, 8]
    assert seen == [(96, 200), (192, 200), (200, 200)]
    place.manners.asked.clear()
    voyage = place.ready("voyage:m")
    long = ["x" * 150_000 + str(i) for i in range(5)]  # 50,000 tokens by estimate, 100,000 go at once
    voyage.encode([*long, "y" * 900_000, "short"])
    assert [len(a.texts) for a in place.manners.asked] == [1, 1, 1, 1, 1, 1, 1]
    place.manners.asked.clear()
    voyage.encode([t[:140_000] for t in long])
    assert [len(a.texts) for a in place.manners.asked] == [2, 2, 1]


def test_nothing_is_asked_before_the_block_before_is_taken(place: Place):
    loaded = place.ready("cohere:m")
    stream = loaded.stream(texts(200))
    assert place.manners.asked == []
    for requests in (1, 2, 3):
        next(stream)
        assert len(place.manners.asked) == requests


def test_no_texts_and_empty_texts(place: Place):
    loaded = place.ready()
    assert loaded.encode([]).shape == (0, 8)
    assert place.manners.asked == []
    loaded.encode(["", "a"])
    assert place.manners.sent() == [" ", "a"]


def test_a_long_text_is_cut_at_whole_characters(place: Place):
    place.ready(max_length=10).encode(["é" * 100, "short"])
    sent = place.manners.sent()
    assert sent == ["é" * 14, "short"]  # 29 bytes, a third of which is 9.67
    place.manners.asked.clear()
    place.ready("voyage:m").encode(["é" * 100_000])
    assert place.manners.sent() == ["é" * 100_000]  # the provider cuts


def test_retry_after_is_honoured_in_seconds_and_as_a_date(place: Place):
    loaded = place.ready()
    date = formatdate(place.time.at + 1 + 42, usegmt=True)
    place.manners.faults = [
        es.status(429, Retry_After="17"),
        es.status(503, Retry_After=date),
        es.status(429, Retry_After="soon"),
    ]
    assert np.array_equal(loaded.encode(["a"]), expected(["a"]))
    # the date lay 43 seconds ahead before the first 17 passed; what cannot be read leaves the backoff
    assert place.time.slept == [17.0, 26.0, 4.0]
    assert (loaded.client.metered.spent.retries, loaded.client.metered.spent.requests) == (3, 5)


def test_backoff_doubles_with_jitter_and_ends(place: Place):
    loaded = place.ready()
    place.manners.faults = [es.status(code, {"error": {"message": "busy"}}) for code in (500, 502, 503, 504)]
    with pytest.raises(
        ServiceError, match=r"504 Gateway Timeout: busy \(4 attempts\).*same command to resume"
    ):
        loaded.encode(["a"])
    assert place.time.slept == [1.0, 2.0, 4.0]
    spread = Time()
    jittered = replace(spread.clock, chance=lambda: 0.0)
    place.manners.faults = [es.status(500)]
    Hosted("openai:m", base=place.url + "/v1").load(clock=jittered).encode(["a"])
    assert spread.slept == [0.5]


BROKEN = {
    "cut": es.cut,
    "reset": es.reset,
    "not JSON": es.status(200, b'{"data": [{"embedd'),
    "not UTF-8": es.status(200, b'{"data": "\xff\xfe"}'),
    "another shape": es.status(200, [1, 2, 3]),
    "deep": es.status(200, b"[" * 100_000),
    "no data": es.changed(lambda a: a.pop("data") and None),
    "too few": es.changed(lambda a: a["data"].pop() and None),
    "index twice": es.changed(lambda a: a["data"][0].update(index=1)),
    "index a text": es.changed(lambda a: a["data"][0].update(index="0")),
    "NaN": es.changed(lambda a: a["data"][1].update(embedding=[float("nan")] * 8)),
    "infinite in single": es.changed(lambda a: a["data"][1].update(embedding=[1e300] * 8)),
    "a huge whole number": es.changed(lambda a: a["data"][1].update(embedding=[10**400] * 8)),
    "null": es.changed(lambda a: a["data"][1].update(embedding=None)),
    "texts": es.changed(lambda a: a["data"][1].update(embedding=["0.5"] * 8)),
    "true": es.changed(lambda a: a["data"][1].update(embedding=[True] * 8)),
    "base64": es.changed(lambda a: a["data"][1].update(embedding="AAAA")),
    "fewer dimensions": es.changed(lambda a: a["data"][1].update(embedding=[0.5] * 7)),
    "other dimensions": es.changed(lambda a: [d.update(embedding=[0.5] * 9) for d in a["data"]] and None),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN.keys())
def test_an_answer_that_cannot_be_used_is_asked_for_again_and_ends_in_one_line(place: Place, fault):
    loaded = place.ready()
    place.manners.faults = [fault]
    assert np.array_equal(loaded.encode(texts(3)), expected(texts(3)))
    assert (loaded.client.metered.spent.retries, len(place.manners.asked)) == (1, 2)
    place.manners.faults = [fault] * 4
    with pytest.raises(ServiceError, match=r"\(4 attempts\)") as caught:
        loaded.encode(texts(3))
    assert "\n" not in str(caught.value)
    assert len(place.manners.asked) == 6


def test_the_text_whose_vector_is_wrong_is_named(place: Place):
    loaded = place.ready()
    place.manners.faults = [BROKEN["NaN"]] * 4
    with pytest.raises(ServiceError, match="vector 2 of the answer is not finite; its text begins 'text 1'"):
        loaded.encode(texts(3))


def test_no_answer_in_time_is_asked_for_again(place: Place):
    loaded = place.ready(limits=replace(QUICK, timeout=1.0))
    place.manners.faults = [es.hang]
    assert np.array_equal(loaded.encode(["a"]), expected(["a"]))
    assert loaded.client.metered.spent.retries == 1
    # one for the answer that never came, which may have cost as much, one for the answer that did
    assert loaded.client.metered.spent.tokens == len(PROBE) // 3 + 1 + 2


def test_vectors_in_another_order_are_put_right(place: Place):
    loaded = place.ready()
    place.manners.faults = [es.changed(lambda a: a["data"].reverse())]
    assert np.array_equal(loaded.encode(texts(5)), expected(texts(5)))
    assert len(place.manners.asked) == 1


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (401, {"error": {"message": f"Incorrect API key {KEY}", "code": "invalid_api_key"}}, r"401.*Incorrect API key \*\*\* \(invalid_api_key\); the key was taken from WEIR_KEY_TEST"),
        (403, {"message": "no access"}, "403 Forbidden: no access; the key was taken from WEIR_KEY_TEST"),
        (404, {"error": "model m\nnot found"}, "404 Not Found: model m not found"),
        (400, {"detail": "input too long"}, "400 Bad Request: input too long; the text begins 'a'"),
        (402, b"<html>pay</html>", "402 Payment Required: <html>pay</html>"),
        (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, "exceeded your quota.*same command to resume"),
    ],
)  # fmt: skip
def test_what_no_retry_can_help_ends_at_once_with_the_providers_message(place: Place, code, body, said):
    loaded = place.ready()
    place.manners.faults = [es.status(code, body)]
    with pytest.raises(ServiceError, match=said) as caught:
        loaded.encode(["a"])
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (len(place.manners.asked), place.time.slept) == (1, [])


def test_quota_day_a_wait_of_hours_ends_the_command(place: Place):
    loaded = place.ready("cohere:m")
    place.manners.faults = [None, es.status(429, {"message": "daily limit"}, Retry_After="21600")]
    blocks = []
    with pytest.raises(
        ServiceError, match=r"daily limit; the server asks to wait 6.0 hours; finished work is kept"
    ):
        blocks.extend(loaded.stream(texts(200)))
    assert (len(blocks), place.time.slept) == (1, [])


@pytest.mark.parametrize("code", [302, 307])
def test_a_redirect_is_not_followed_with_the_key(place: Place, code):
    loaded = place.ready()
    with es.embedding_serving() as (other, manners):
        place.manners.faults = [es.status(code, Location=other + "/v1/embeddings")]
        with pytest.raises(ServiceError, match=r"it moved to .*: give that address"):
            loaded.encode(["a"])
        assert manners.asked == []


def test_what_a_server_finds_too_large_is_halved(place: Place):
    place.manners.most = 10
    loaded = place.ready()
    given = texts(100)
    assert np.array_equal(loaded.encode(given), expected(given))
    assert [len(a.texts) for a in place.manners.asked] == [100, 50, 25, 13, *[7] * 14, 2]


def test_a_text_beyond_the_batch_of_llama_cpp_is_named_at_once(place: Place):
    said = "input (2100 tokens) is too large to process. increase the physical batch size (current batch size: 512)"
    loaded = place.ready()
    place.manners.faults = [es.status(500, {"message": said})] * 2 + [None, es.status(500, {"message": said})]
    with pytest.raises(
        ServiceError, match=r"batch size: 512\); the text begins 'b' and .*max_length cuts"
    ) as caught:
        loaded.encode(["a", "b", "c", "d"])
    assert "\n" not in str(caught.value)
    assert [a.texts for a in place.manners.asked] == [["a", "b", "c", "d"], ["a", "b"], ["a"], ["b"]]
    assert place.time.slept == []


def test_what_a_server_does_not_answer_in_time_is_halved(place: Place):
    """llama.cpp on a processor reads some texts a second: 256 of them take longer than one answer may."""
    place.manners.quick = 10
    loaded = place.ready(limits=Limits(attempts=4, timeout=1.0))
    given = texts(40)
    assert np.array_equal(loaded.encode(given), expected(given))
    assert [len(a.texts) for a in place.manners.asked] == [40, 20, 10, 10, 10, 10]


def test_nobody_there_is_one_line_and_costs_nothing(place: Place):
    loaded = place.ready()
    gone = replace(loaded.encoder, base="http://127.0.0.1:1/v1")
    with pytest.raises(
        ServiceError, match=r"^http://127.0.0.1:1: Connection refused, nothing listens there;"
    ):
        gone.load(limits=QUICK, clock=place.time.clock)
    metered = replace(loaded.client.metered, spent=Spent())
    client = replace(loaded.client, url=gone.address + "/embeddings", metered=metered)
    with pytest.raises(ServiceError, match="Connection refused"):
        client.ask(Ask("m", ["a" * 300], "document", None), None)
    assert client.metered.spent.tokens == 0


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
    loaded = place.ready(limits=replace(QUICK, whole=1.0))
    place.manners.faults = [endless(headers)]
    assert np.array_equal(loaded.encode(["a"]), expected(["a"]))
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


def test_the_rate_is_kept_by_waiting(place: Place):
    loaded = place.ready("cohere:m", replace(QUICK, requests_per_minute=6.0))
    loaded.encode(texts(96 * 3))
    assert place.time.slept == [10.0, 10.0, 10.0]  # the probe took the first
    assert loaded.describe()["spent"]["waited"] == 30.0


def test_a_bucket_holds_ten_seconds_and_lends_what_is_larger():
    time = Time()
    bucket = Bucket(600.0, time.clock)
    assert [bucket.take(60), bucket.take(40)] == [0.0, 0.0]
    assert bucket.take(10) == pytest.approx(1.0)
    assert bucket.take(300) == pytest.approx(10.0)  # waits until it is full
    assert bucket.take(10) == pytest.approx(21.0)  # and owes the rest
    bucket.give(10)
    assert bucket.take(10) == 0.0
    time.at += 3600.0
    assert bucket.take(100) == 0.0
    assert bucket.take(10) == pytest.approx(1.0)  # an hour's rest saves no more than it holds
    assert Bucket(None, time.clock).take(1e9) == 0.0


@pytest.mark.parametrize("fault", [None, es.cut])
def test_a_budget_of_requests_counts_the_retries(place: Place, fault):
    loaded = place.load("cohere:m", replace(QUICK, requests=3))
    place.manners.faults = [fault]
    blocks = []
    with pytest.raises(
        ServiceError,
        match=r"the budget of 3 requests ends here: spent .* tokens in 3 requests, .*the same command to resume",
    ):
        blocks.extend(loaded.stream(texts(300)))
    assert len(place.manners.asked) == 3
    assert len(blocks) == (2 if fault is None else 1)


def test_a_budget_of_tokens_is_used_up_to_the_last_text_that_fits(place: Place):
    probe = len(PROBE) // 3 + 1
    loaded = place.load("voyage:m", replace(QUICK, tokens=probe + 33))
    found = []
    with pytest.raises(
        ServiceError, match=rf"budget of {probe + 33} tokens ends here: spent {probe + 32} tokens"
    ):
        found.extend(loaded.stream(["text"] * 100))
    assert [len(block) for block in found] == [16]  # of 2 tokens each
    with pytest.raises(ServiceError, match="budget of 2 tokens ends here: spent 0 tokens in 0 requests"):
        place.load("voyage:n", replace(QUICK, tokens=2))


def test_a_tokenizer_denser_than_estimated_is_learned_from_the_first_answer(place: Place):
    place.manners.bill = lambda text: 4 * (len(text) // 3 + 1)
    probe = place.manners.bill(PROBE)
    loaded = place.load("voyage:m", replace(QUICK, tokens=probe + 80))
    found = []
    with pytest.raises(ServiceError, match=f"spent {probe + 80} tokens"):
        found.extend(loaded.stream(["text"] * 100))
    assert [len(block) for block in found] == [10]
    place.manners.asked.clear()
    place.load("voyage:m").encode(
        ["x" * 150_000, "x" * 140_000]
    )  # together 97,000 estimated, and four times that
    assert [len(a.texts) for a in place.manners.asked] == [1, 1, 1]


def test_a_budget_of_dollars_names_what_was_spent(place: Place):
    loaded = place.load(limits=replace(QUICK, dollars=0.001, price=20.0))
    loaded.encode(texts(5))
    with pytest.raises(
        ServiceError,
        match=r"the budget of 0.001 dollars ends here: spent 42 tokens in 2 requests, 0.00084 dollars at 20 a million",
    ):
        loaded.encode(["x" * 3000])
    assert loaded.describe()["spent"]["dollars"] == pytest.approx(0.00084)
    with pytest.raises(BadValue, match="needs the price"):
        Limits(dollars=1.0)


def test_one_budget_holds_for_all_that_a_process_asks(place: Place, monkeypatch):
    monkeypatch.setenv("WEIR_API_BUDGET", "5 requests")
    settings.cache_clear()
    first, second = place.load(limits=None), place.load("voyage:m", limits=None)
    first.encode(["a"])
    again = place.load(limits=None)
    again.encode(["b"])  # knows the probe already
    second.encode(["c"])
    with pytest.raises(ServiceError, match=r"the budget of 5 requests ends here: spent .* in 5 requests"):
        first.encode(["d"])
    assert [len(place.manners.asked), first.client.metered.spent.requests] == [5, 5]
    place.load().encode(["e"])  # limits of its own


def test_limits_come_from_the_environment(monkeypatch):
    for name, value in {
        "BUDGET": "5 dollars, 2e6 tokens, 300 requests",
        "PRICE": "0.02",
        "RATE": "3000 requests",
    }.items():
        monkeypatch.setenv(f"WEIR_API_{name}", value)
    settings.cache_clear()
    found = Limits.of(settings())
    assert (found.dollars, found.tokens, found.requests, found.price) == (5.0, 2_000_000, 300, 0.02)
    assert (found.requests_per_minute, found.tokens_per_minute) == (3000.0, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [("BUDGET", "5"), ("BUDGET", "5 euros"), ("BUDGET", "0 tokens"), ("RATE", "5 dollars"), ("PRICE", "cheap"), ("PRICE", "0")],
)  # fmt: skip
def test_limits_that_cannot_be_read_name_their_variable(monkeypatch, name, value):
    monkeypatch.setenv(f"WEIR_API_{name}", value)
    settings.cache_clear()
    with pytest.raises(BadValue, match=f"WEIR_API_{name} is '{value}'"):
        Limits.of(settings())
    settings.cache_clear()


def test_the_key_is_sent_and_never_shown(place: Place, monkeypatch, tmp_path):
    loaded = place.load()
    loaded.encode(["a"])
    shown = f"{loaded!r} {loaded.encoder!r} {loaded.client!r} {json.dumps(loaded.describe())}"
    kept = "".join(p.read_text(encoding="utf-8") for p in tmp_path.rglob("*") if p.is_file())
    assert kept
    assert KEY not in shown + kept
    monkeypatch.delenv("WEIR_KEY_TEST")
    again = place.load()  # what is known needs no key
    with pytest.raises(
        ServiceError, match="this needs a key: put it into the environment variable WEIR_KEY_TEST"
    ):
        again.encode(["a"])
    monkeypatch.setenv("WEIR_KEY_TEST", "two\nlines")
    with pytest.raises(ServiceError, match="the key in WEIR_KEY_TEST holds characters that no key has"):
        place.load().encode(["a"])


def test_a_key_may_be_given_after_it_was_missed(place: Place, monkeypatch):
    monkeypatch.delenv("WEIR_KEY_TEST")
    with pytest.raises(ServiceError, match="this needs a key"):
        place.load(limits=None)
    monkeypatch.setenv("WEIR_KEY_TEST", KEY)
    assert np.array_equal(place.load(limits=None).encode(["a"]), expected(["a"]))


def test_processes_that_begin_together_keep_the_same_probe(place: Place):
    place.manners.faults = [lambda handler, answer: (time.sleep(0.3), handler.reply(200, answer))]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: place.load(), range(3)))
    assert place.manners.sent() == [PROBE]
    assert len({loaded.probe.revision for loaded in found}) == 1


def test_a_providers_usual_key_goes_to_its_own_address_only(place: Place, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    place.load(key=None).encode(["a"])
    assert {asked.key for asked in place.manners.asked} == {None}
    place.manners.faults = [es.status(401)]
    with pytest.raises(ServiceError, match="no key was sent: `key='NAME'` names the environment variable"):
        place.load(key=None).encode(["a"])
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ServiceError, match="environment variable OPENAI_API_KEY"):
        Hosted("openai:text-embedding-3-small").load()


def test_the_identity_holds_the_model_its_dimension_and_the_probe_and_does_not_change(place: Place):
    loaded = place.load("cohere:m", document_prompt="d: ")
    before = loaded.identity()
    loaded.encode(texts(3))
    assert loaded.identity() == before == place.load("cohere:m", document_prompt="d: ").identity()
    assert before == {
        "model": "cohere:m", "base": place.url + "/v2", "revision": loaded.probe.revision, "dimensions": 8,
        "similarity": "dot", "normalised": False, "query": "{text}", "document": "d: {text}", "max_length": None,
        "document type": "search_document", "query type": "search_query",
    }  # fmt: skip
    assert loaded.describe().items() >= before.items()
    assert loaded.describe()["spent"]["texts"] == 4


def test_the_probe_is_asked_for_once_in_a_process_and_a_model_that_moved_is_reported(place: Place):
    place.load()
    again = place.ready()
    assert place.manners.asked == []
    again.encode(["a"])
    again.encode(["b"])
    assert [len(a.texts) for a in place.manners.asked] == [1, 1, 1]
    assert again.describe()["moved"] == 0.0
    place.manners.model = "another"
    moved = place.load()
    with pytest.warns(
        UserWarning, match="openai:m has changed since 1970-01-12: .*do not belong together; remove"
    ):
        moved.encode(["a"])
    assert moved.identity() == again.identity()
    moved.probe.path.unlink()
    assert place.load().identity() != again.identity()


def test_a_model_of_other_dimensions_than_before_is_refused(place: Place):
    place.load()
    again = place.load()
    place.manners.faults = [es.changed(lambda _: {"data": [{"embedding": [1.0] * 9}]})]
    with pytest.raises(ServiceError, match="now answers with 9 dimensions, on 1970-01-12 with 8; remove"):
        again.encode(["a"])
    again.probe.path.write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match="remove it, and the probe is asked for anew"):
        place.load()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "m"}, "expected provider:model"),
        ({"model": "openai:"}, "expected provider:model"),
        ({"model": "openai:m", "base": "localhost:8080"}, "base is not an address"),
        ({"model": "openai:m", "base": "http://me:secret@host/v1"}, "base is not an address"),
        ({"model": "openai:m", "base": "http://host/v1?key=secret"}, "base is not an address"),
        ({"model": "openai:m", "base": "http://host:99999/v1"}, "base is not an address"),
        ({"model": "openai:m", "similarity": "l2"}, "expected cosine or dot"),
        ({"model": "openai:m", "dimensions": 0}, "dimensions is 0"),
        ({"model": "openai:m", "max_length": True}, "max_length is True"),
        ({"model": "openai:m", "query_prompt": 3}, "expected a text"),
        ({"model": "openai:m", "key": KEY}, "must name an environment variable"),
    ],
)
def test_settings_out_of_range_are_refused_without_showing_secrets(given, said):
    with pytest.raises(BadValue, match=said) as caught:
        Hosted(**given)
    assert "secret" not in str(caught.value)


def test_names_of_hosted_models_and_their_providers():
    assert PROVIDERS.names() == ["cohere", "openai", "voyage"]
    assert is_hosted("openai:text-embedding-3-small")
    assert not any(
        map(is_hosted, ["minilm", "facebook/contriever", "C:\\models\\x", "D:/models/x", "/a/b:c"])
    )
    with pytest.raises(UnknownName, match="no provider named 'opnai'; did you mean openai"):
        Hosted("opnai:m")
    value = Hosted("openai:m", base="http://localhost:8080/v1", dimensions=4)
    assert value.arguments == (["openai:m"], {"base": "http://localhost:8080/v1", "dimensions": 4})
