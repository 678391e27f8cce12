"""Every client of services against every misdeed of a server: it ends in time, within its bounds, in one line."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.unit import model_servers, search_servers
from tests.unit.embedding_place import KEY, forget_spending
from tests.unit.hostile_server import MISDEEDS, HostileManners, answered, hostile
from tests.unit.hub_server import Hub, served
from tests.unit.remote_place import CORPUS, queries
from tests.unit.test_http_system import VALUES
from weir.errors import WeirError
from weir.files.downloads import Address, Patience, download, hub_revision
from weir.models.hosted import Hosted
from weir.plugins.llm.chat import ChatModel, ChatPrompt, cached_chat
from weir.plugins.servers.endpoint import Http
from weir.plugins.servers.service_reranker import ServiceReranker
from weir.services.answers import ServiceUsage
from weir.services.requests import Limits, paid
from weir.settings import settings
from weir.systems import parse_system

SECONDS = 0.4  # that one answer may take
PATIENT = 60.0
"""Seconds that the whole may take, a fraction of which is usual: a server that is silent for good takes longer."""
TEXTS = ["text d1", "text d2"]
HEADER = '[headers]\nAuthorization = "Bearer ${WEIR_KEY_TEST}"\n'


def _template(name: str) -> Callable[[str, Path], object]:
    def ask(url: str, folder: Path) -> object:
        file = folder / "search.toml"
        limits = f"[limits]\nattempts = 2\npause_s = 0.001\ntimeout_s = {SECONDS}\nwhole_s = {SECONDS}\nlongest_s = 0.1\n"
        values = f"{limits}{HEADER}[values]\n{VALUES[name]}\n"
        file.write_text(f'extends = "{name}"\nurl = "{url}"\n{values}')
        return Http(str(file), version="1").index(CORPUS).search(queries(TEXTS), 5).to_dict()

    return ask


def _embed(url: str, _: Path) -> object:
    model = Hosted("openai:m", base=f"{url}/v1", key="WEIR_KEY_TEST", similarity="dot").load()
    return [model.identity(), model.encode(TEXTS).tolist()]


def _rerank(url: str, _: Path) -> object:
    model = ServiceReranker("vllm:m", base=f"{url}/vllm", key="WEIR_KEY_TEST")
    return [model.describe(), model.probe_scores(model.client()).tolist()]


def _chat(url: str, _: Path) -> object:
    usage = ServiceUsage("chat")
    with cached_chat(ChatModel(f"{url}/v1#m", key="WEIR_KEY_TEST"), 2, usage) as client:
        replies = client.replies(2, lambda n: ChatPrompt("", f"<passage>\nprompt {n}\n</passage>", 8))
        return [[vars(reply) for reply in replies], usage.facts()]


def _elastic(url: str, folder: Path) -> object:
    file = folder / "elastic.toml"
    file.write_text(f'url = "{url}"\nkey = "WEIR_KEY_TEST"\ntimeout_s = {SECONDS}\n')
    system = parse_system(f'elasticsearch("{file.as_posix()}")')
    return system.index(CORPUS).search(queries(TEXTS), 5).to_dict()


def _download(url: str, folder: Path) -> object:
    patience = Patience(
        timeout=SECONDS, window=SECONDS, attempts=2, pause=0.001, whole=4 * SECONDS, most=1 << 20
    )
    download([Address(f"{url}/datasets/a/b/resolve/main/x.txt", KEY)], folder / "x.txt", patience=patience)
    return (folder / "x.txt").read_text(encoding="utf-8", errors="replace")


def _hub(url: str, _: Path) -> object:
    return str(hub_revision("a/b"))


@contextlib.contextmanager
def _serving_hub() -> Iterator[tuple[str, object]]:
    hub = Hub()
    hub.put("a/b", {"x.txt": b"A weir is a low dam."})
    with served(hub):
        yield hub.url, hub


@dataclass(frozen=True)
class Client:
    """serving: a right server; ask: asks the server at an address for something, with a folder of its own; every: of
    the values of answers only each of this number is tried, another one at each place."""

    serving: Callable[[], contextlib.AbstractContextManager]
    ask: Callable[[str, Path], object]
    every: int = 1


CLIENTS = {
    **{name: Client(lambda n=name: search_servers.searching(n), _template(name), 2) for name in ("elasticsearch", "solr", "weaviate")},
    "elastic index": Client(search_servers.elastic_serving, _elastic, 10),
    "embeddings": Client(model_servers.embedding_serving, _embed),
    "rerank": Client(model_servers.rerank_serving, _rerank),
    "chat": Client(model_servers.chat_serving, _chat),
    "download": Client(_serving_hub, _download),
    "hub": Client(_serving_hub, _hub),
}  # fmt: skip


@pytest.fixture
def impatient(monkeypatch):
    """Limits of a fraction of a second, and a key that every client sends."""
    quick = {"timeout": SECONDS, "whole": SECONDS, "attempts": 2, "pause": 0.001, "longest": 0.1}
    defaults = [quick.get(n, f.default) for n, f in Limits.__dataclass_fields__.items()]
    monkeypatch.setattr(Limits.__init__, "__defaults__", tuple(defaults))
    monkeypatch.setattr(
        "weir.files.downloads._API", Patience(SECONDS, 1024.0, SECONDS, 2, 0.001, 4 * SECONDS, 1 << 20)
    )
    monkeypatch.setattr("weir.plugins.servers.elasticsearch.SHARD_PAUSE_SECONDS", 0.001)
    monkeypatch.setenv("WEIR_KEY_TEST", KEY)
    monkeypatch.setenv("HF_TOKEN", KEY)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    forget_spending()
    yield
    forget_spending()


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
@pytest.mark.parametrize("misdeed", MISDEEDS)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_misdeed_ends_in_one_line(name, misdeed, impatient, monkeypatch, tmp_path, home):
    client = CLIENTS[name]
    other = HostileManners("")
    with client.serving() as (right, _), hostile(other) as elsewhere:
        manners = HostileManners(right, key=KEY, elsewhere=elsewhere, misdeed=MISDEEDS[misdeed])
        with hostile(manners) as url:
            monkeypatch.setenv("HF_ENDPOINT", url)
            start, answer, error = time.monotonic(), None, None
            try:
                answer = client.ask(url, tmp_path)
            except WeirError as raised:
                error = raised
            seconds = time.monotonic() - start
    assert seconds < PATIENT
    assert manners.sent < 1 << 26
    said = str(error) if error else json.dumps(answer, default=str)
    if name == "download" and not error:
        said = ""  # a file is what the server says it is
    assert KEY not in said + repr(error) + repr(getattr(error, "__cause__", None))
    if error:
        assert "\n" not in said
        assert len(said) < 2000
    assert manners.heads
    assert not any(KEY in head for head in other.heads)
    for file in (*home.rglob("*"), *tmp_path.rglob("*")):
        assert not file.is_file() or file.name == "x.txt" or KEY.encode() not in file.read_bytes(), file


# Values of an answer

VALUES_SENT = (
    "null", "true", "-1", "0", "1e400", "NaN", "1" + "0" * 80, "9" * 5000, '""', '"x"', '"\\ud800"', "[]", "{}", "[[]]", '{"":0}',
)  # fmt: skip
"""What stands in place of each value, as JSON; beside these, the value is left out."""
MARK = "a mark that no server sends"
Place = tuple[str | int, ...]


def places(tree: object, place: Place = ()) -> Iterator[Place]:
    """Every place of a tree; of a list the first entry alone."""
    yield place
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree[:1]) if isinstance(tree, list) else ()
    for name, part in parts:
        yield from places(part, (*place, name))


def altered(body: bytes, place: Place, value: str) -> bytes:
    """An answer with another value at a place, "" for none; as it is where it has no such place."""
    outer = {"": json.loads(body)}
    tree, (*way, last) = outer, ("", *place)
    try:
        for step in way:
            tree = tree[step]
        if value:
            tree[last] = MARK
        else:
            del tree[last]
    except (KeyError, IndexError, TypeError):
        return body
    return json.dumps(outer.get("")).replace(f'"{MARK}"', value).encode()


def numbers(tree: object) -> Iterator[float]:
    if isinstance(tree, (dict, list, tuple)):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from numbers(part)
    elif isinstance(tree, float):
        yield tree


@pytest.fixture
def unhurried(monkeypatch):
    """An answer may take as long as a busy machine needs."""
    monkeypatch.setattr(f"{__name__}.SECONDS", 30.0)


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning", "ignore::weir.errors.StoreWarning")
@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "download"])
def test_another_value_in_an_answer_is_refused_or_harmless(name, unhurried, impatient, monkeypatch, tmp_path):
    client, failures = CLIENTS[name], []

    def asked(manners: HostileManners, number: int) -> object:
        monkeypatch.setenv("WEIR_HOME", str(tmp_path / f"home-{number}"))
        settings.cache_clear()
        forget_spending()
        with hostile(manners) as url:
            monkeypatch.setenv("HF_ENDPOINT", url)
            return client.ask(url, tmp_path)

    with client.serving() as (right, _):
        manners = HostileManners(right)
        asked(manners, 0)
        answers = {(method, path): body for method, path, body in reversed(manners.exchanges) if body}
    trials = [
        (request, place, value)
        for request, body in answers.items()
        for place in places(json.loads(body))
        for value in ("", *VALUES_SENT)
    ]
    for number, ((method, path), place, value) in enumerate(trials[:: client.every], 1):

        def misdeed(line, place=place, value=value):
            line.send(answered(altered(line.right, place, value)))

        with client.serving() as (right, _):
            manners = HostileManners(right, misdeed=misdeed, fits=lambda *one, of=(method, path): one == of)
            try:
                answer = asked(manners, number)
                fine = all(map(math.isfinite, numbers(answer)))
            except WeirError as error:
                answer, fine = str(error), "\n" not in str(error) and len(str(error)) < 2000
            except Exception as error:  # noqa: BLE001  whatever it is, it is the finding
                answer, fine = repr(error)[:200], False
            if paid().requests and not 0 < paid().tokens < 100_000:
                answer, fine = f"{answer}: spent {paid().tokens} tokens", False
        if not fine:
            failures.append(f"{method} {path} {place} = {value[:20]}: {answer}")
    assert not failures, f"{len(failures)} of {len(trials)}:\n" + "\n".join(failures)
