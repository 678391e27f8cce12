"""Embedding APIs against a local server that misbehaves on purpose; nothing leaves this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate

import numpy as np
import pytest

from tests.unit import model_servers as es
from tests.unit.embedding_place import KEY, QUICK, Place, Time, expected, placed, texts
from weir.errors import ServiceError
from weir.models.hosted import PROBE, Ask, Hosted
from weir.services.requests import Limits, Spent


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


def test_an_estimate_is_what_is_then_asked(place: Place):
    loaded = place.ready("cohere:m")
    guess = loaded.estimate(texts(200))
    assert place.manners.asked == []
    loaded.encode(texts(200))
    assert (guess.requests, guess.texts) == (len(place.manners.asked), 200)
    assert guess.tokens == sum(len(t) // 3 + 1 for t in texts(200))


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
    loaded = place.ready(limits=replace(QUICK, timeout=0.2))
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
    loaded = place.ready(limits=Limits(attempts=4, timeout=0.5))
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
