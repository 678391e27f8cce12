"""A key that a server sends back stands nowhere: not in answers, records, identifiers, stores or messages."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.unit.brooklet import write_collection
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import LocalHandler, running
from tests.unit.search_servers import elastic_serving
from weir.cli.main import main
from weir.files.masks import KEY_CHARACTERS, PIECE_CHARACTERS
from weir.services.requests import Key

SECRET = "sk-proj/Very+Secret~0123456789_abcdefGHIJKL"
WAYS = {
    "as it stands": lambda key: key,
    "in an address": lambda key: quote(key, safe=""),
    "as JSON may": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
    "as JSON does": lambda key: key.replace("/", "\\/"),
    "as HTML may": lambda key: "".join(f"&#{ord(c)};" for c in key),
    "as HTML may, in hexadecimal": lambda key: "".join(f"&#x{ord(c):x};" for c in key),
    "in hexadecimal": lambda key: key.encode().hex(),
    "in HEXADECIMAL": lambda key: key.encode().hex().upper(),
    "in base 64": lambda key: b64encode(key.encode()).decode(),
    "in base 64, behind a user": lambda key: b64encode(f"me:{key}".encode()).decode(),
    "in base 64, of addresses": lambda key: urlsafe_b64encode(f"Bearer {key}!".encode()).decode(),
    "its first half": lambda key: key[: len(key) // 2],
    "its second half": lambda key: key[len(key) // 2 :],
    "backwards": lambda key: key[::-1],
    "backwards, in base 64": lambda key: b64encode(key[::-1].encode()).decode(),
    "a third of it, backwards": lambda key: key[::-1][: len(key) // 3],
    "a third of it": lambda key: key[len(key) // 3 : 2 * len(key) // 3],
    "its middle": lambda key: key[9 : 9 + PIECE_CHARACTERS],
}


def pieces(key: str) -> list[str]:
    """What must not be found: each part of the key of so many characters, as it is and in hexadecimal and base 64."""
    forms = [key, key.encode().hex(), *(b64encode(b"0" * n + key.encode()).decode()[4:-4] for n in range(3))]
    return [
        form[at : at + PIECE_CHARACTERS] for form in forms for at in range(len(form) - PIECE_CHARACTERS + 1)
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_key_is_masked_however_it_is_written_and_nothing_else(way):
    said = WAYS[way](SECRET)
    masked = (
        Key("WEIR_KEY_TEST", SECRET)
        .masked_answer(f'{{"a": "before {said} behind {said}"}}'.encode())
        .decode()
    )
    assert [masked[:14], masked[-2:], " behind " in masked] == ['{"a": "before ', '"}', True]
    assert masked.count("***") == 2
    assert len(masked) < len('{"a": "before *** behind ***"}') + 30, (
        masked
    )  # of base 64 the letters shared with others
    assert not any(piece in masked for piece in pieces(SECRET))


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=KEY_CHARACTERS, max_size=90),
    st.binary(max_size=40), st.binary(max_size=40), st.data(),
)  # fmt: skip
def test_no_long_piece_of_any_key_is_left(key, before, behind, data):
    start = data.draw(st.integers(0, max(0, len(key) - PIECE_CHARACTERS)))
    stop = data.draw(st.integers(min(len(key), start + PIECE_CHARACTERS), len(key)))
    left = Key("WEIR_KEY_TEST", key).masked_answer(before + key[start:stop].encode() + behind)
    assert not any(
        key[at : at + PIECE_CHARACTERS].encode() in left for at in range(len(key) - PIECE_CHARACTERS + 1)
    )
    assert key.encode() not in left


def test_what_is_no_key_stays_and_a_short_key_is_masked_in_messages_alone():
    said = json.dumps({"text": "Score: 7 " * 1000, "ids": [f"sk-proj-{n}" for n in range(99)]}).encode()
    assert Key("WEIR_KEY_TEST", SECRET).masked_answer(said) == said
    short = Key("WEIR_KEY_TEST", "EMPTY")
    assert (short.masked_answer(b"EMPTY"), short.masked("no EMPTY")) == (b"EMPTY", "no ***")
    assert Key(None, None).masked_answer(said) == said


class Echo(LocalHandler):
    """A server that answers as each service does, and writes the key that it was sent wherever a text may stand."""

    status = 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = json.loads(body.splitlines()[0]) if body else {}
        key = (self.headers.get("Authorization") or "").rpartition(" ")[2]
        told = " ".join(way(key) for way in WAYS.values() if "\\" not in way(key))
        answer = json.dumps(self.answer(asked if isinstance(asked, dict) else {}, told))
        self.reply(self.status, answer.replace(key, WAYS["as JSON may"](key), 1).encode(), {"X-Key": key})

    do_GET = do_PUT = do_DELETE = do_POST

    def answer(self, asked: dict, told: str) -> object:
        if self.status != 200:
            return {"error": {"message": told, "code": told}}
        if "chat" in self.path:
            token = re.findall(r"^([a-z]{8}): \S", asked["messages"][-1]["content"], re.MULTILINE)[-1]
            message = {"role": "assistant", "content": f"It is {told}.\n{token}: 7"}
            return {"model": told, "choices": [{"message": message, "finish_reason": "stop"}], "id": told}
        if "embeddings" in self.path:
            vectors = [{"index": n, "embedding": [1.0, float(n)]} for n in range(len(asked["input"]))]
            return {"model": told, "data": vectors, "object": told}
        if "rerank" in self.path:
            scores = [
                {"index": n, "relevance_score": 0.5 - n / 99, "id": told}
                for n in range(len(asked["documents"]))
            ]
            return {"model": told, "id": told, "results": scores}
        if "search" in self.path:
            return {
                "results": [{"id": "d1", "score": 2.0, "more": told}, {"id": f"d2 {told}", "score": 1.0}],
                "told": told,
            }
        return {
            "version": {"number": f"9.1.2-{told}", "distribution": told},
            "cluster_uuid": told,
            "name": told,
        }


def systems(url: str, folder: Path) -> dict[str, str]:
    """A system behind each kind of service."""
    (folder / "search.toml").write_text(
        f'url = "{url}"\npath = "/search"\nbody = {{ q = "{{query}}" }}\n[answer]\nresults = "results"\nid = "id"\n'
        '[headers]\nAuthorization = "Bearer ${WEIR_KEY_TEST}"\n',
        encoding="utf-8",
    )
    (folder / "elastic.toml").write_text(
        f'url = "{url}"\nkey = "WEIR_KEY_TEST"\nscheme = "Bearer"\n', encoding="utf-8"
    )
    named = f'base="{url}/v1", key="WEIR_KEY_TEST"'
    return {
        "llm": f'bm25 >> llm("score", model="openai:m", {named})',
        "rerank": f'bm25 >> rerank("cohere:m", {named})',
        "dense": f'dense("openai:m", {named})',
        "http": f'http("{(folder / "search.toml").as_posix()}", version="1")',
        "elasticsearch": f'elasticsearch("{(folder / "elastic.toml").as_posix()}", version="1")',
    }


PLACES = [
    (name, status)
    for name in ("llm", "rerank", "dense", "http", "elasticsearch")
    for status in (200, 400, 401)
]


@pytest.mark.parametrize(("name", "status"), PLACES)
def test_what_a_server_sends_back_is_masked_before_it_is_kept(
    name, status, tmp_path, home, monkeypatch, capsys
):
    monkeypatch.setenv("WEIR_KEY_TEST", SECRET)
    forget_spending()
    write_collection(tmp_path / "data")
    with running(Echo, status=status) as url:
        system = systems(url, tmp_path)[name]
        out = ["-d", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "-m", "nDCG@10"]
        main(["run", "-s", system, *out])
        if status == 200 and name in ("llm", "rerank", "dense"):
            assert main(["results", str(tmp_path / "out"), "--provenance", "--json"]) == 0
    forget_spending()
    kept = {
        str(path): path.read_bytes()
        for place in (home, tmp_path)
        for path in place.rglob("*")
        if path.is_file()
    }
    kept["what was printed"] = "".join(capsys.readouterr()).encode()
    found = {where for where, data in kept.items() for piece in pieces(SECRET) if piece.encode() in data}
    assert not found
    if status != 200 or name not in ("rerank", "dense", "elasticsearch"):  # of whose answers no text is kept
        assert any(b"***" in data for data in kept.values()), "the server was asked, and its echo was met"


def test_what_an_elasticsearch_server_calls_its_version_is_masked_too(tmp_path, home, monkeypatch, capsys):
    monkeypatch.setenv("WEIR_KEY_TEST", SECRET)
    write_collection(tmp_path / "data")
    with elastic_serving() as (url, manners):
        manners.version = {"number": f"9.1.2-{SECRET}", "build_flavor": f"default {SECRET}"}
        system = systems(url, tmp_path)["elasticsearch"]
        assert (
            main(["run", "-s", system, "-d", str(tmp_path / "data"), "-o", str(tmp_path / "out"), "-m", "AP"])
            == 0
        )
        assert manners.keys == {f"Bearer {SECRET}"}
    files = [path for place in (home, tmp_path) for path in place.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert any(b"9.1.2-***" in path.read_bytes() for path in files)
    assert SECRET not in "".join(capsys.readouterr())


def test_programs_are_not_handed_the_keys_of_services(tmp_path, monkeypatch, capsys):
    """Neither is one shown where a program prints its environment and dies."""
    monkeypatch.setenv("WEIR_KEY_TEST", SECRET)
    monkeypatch.setenv("PLAIN_SETTING", "is there")
    write_collection(tmp_path / "data")
    (tmp_path / "dies.py").write_text(
        "import os, sys\nsys.stderr.write(str({k: v for k, v in os.environ.items() if k in ('PLAIN_SETTING', 'WEIR_KEY_TEST')}))"
    )
    system = f'command("{Path(sys.executable).as_posix()} {(tmp_path / "dies.py").as_posix()}", version="1")'
    assert main(["run", "-s", system, "-d", str(tmp_path / "data"), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "PLAIN_SETTING" in said
    assert SECRET not in said


class HubEcho(Echo):
    """A hub that says the token that it was sent: in a reason, in a tag, in the names of files."""

    def do_GET(self):
        token = self.headers["Authorization"].rpartition(" ")[2]
        files = [{"rfilename": f"corpus.{token}.jsonl", "size": 3, "blobId": "0" * 40}]
        said = json.dumps(
            {"sha": "a" * 40, "siblings": files, "cardData": {"configs": [{"config_name": token}]}}
        ).encode()
        describing = "/api/" in self.path and self.status == 200
        self.send_response(200 if describing else 400, f"no {token}")
        self.send_header("ETag", f'"{token}"')
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


@pytest.mark.parametrize("status", [200, 400])
def test_the_hub_is_no_exception(status, home, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", SECRET.replace("/", "-"))
    with running(HubEcho, status=status) as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        assert main(["data", "stats", "hf:them/set"]) == 2
    said = capsys.readouterr().err
    kept = said.encode() + b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert SECRET.replace("/", "-").encode() not in kept
    assert "them/set" in said
