"""Embedding APIs: rates, budgets, keys, and what makes a model the same model."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tests.unit import model_servers as es
from tests.unit.embedding_place import KEY, QUICK, Place, Time, expected, placed, texts
from weir.errors import BadValue, ServiceError, StoreError, UnknownName
from weir.models.hosted import PROBE, PROVIDERS, Hosted, is_hosted
from weir.services.requests import Bucket, Limits
from weir.settings import settings


@pytest.fixture
def place(tmp_path, monkeypatch) -> Iterator[Place]:
    with placed(tmp_path / "home", monkeypatch) as found:
        yield found


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
    assert len({loaded.probe.fingerprint for loaded in found}) == 1


def test_a_providers_usual_key_goes_to_its_own_address_only(place: Place, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    place.load(key=None).encode(["a"])
    assert {asked.key for asked in place.manners.asked} == {None}
    place.manners.faults = [es.status(401)]
    with pytest.raises(ServiceError, match="no key was sent: key='NAME' names the environment variable"):
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
        "model": "cohere:m", "base": place.url + "/v2", "revision": loaded.probe.fingerprint, "dimensions": 8,
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
