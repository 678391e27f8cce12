"""A real HTTP server that speaks like OpenAI, Cohere and Voyage, and misbehaves on demand."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tests.unit.local_server import reply, running

DIMENSIONS = 8


def vector_of(
    text: str, kind: str = "document", model: str = "m", dimensions: int = DIMENSIONS
) -> list[float]:
    """What the server's model says about a text: the same everywhere, and of no particular length."""
    seed = hashlib.blake2b(f"{model}|{kind}|{text}".encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(seed)).normal(size=dimensions).tolist()


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    key: str | None
    body: dict

    @property
    def texts(self) -> list[str]:
        return self.body.get("input") or self.body["texts"]


@dataclass
class Manners:
    """How the server behaves, and what it was asked.

    faults: what it does instead of answering, one for each request, None for answering as it should. most: texts
    it takes at once. bill: tokens it counts for a text. model: which model answers, whatever is asked for.
    """

    faults: list[Callable[[Handler, dict], None] | None] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    most: int | None = None
    model: str | None = None
    bill: Callable[[str], int] = lambda text: len(text) // 3 + 1
    released: threading.Event = field(default_factory=threading.Event)

    def sent(self) -> list[str]:
        """Every text of every request, in order."""
        return [text for asked in self.asked for text in asked.texts]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as `manners`, an attribute of the server's own subclass, says."""

    protocol_version = "HTTP/1.1"
    manners: Manners

    def log_message(self, *_):
        pass

    def do_POST(self):
        manners = self.manners
        self.close_connection = True
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        manners.asked.append(Asked(self.path, self.headers.get("Authorization"), body))
        fault = manners.faults.pop(0) if manners.faults else None
        with contextlib.suppress(OSError):  # the client may hang up
            if fault is not None:
                fault(self, body)
            elif manners.most is not None and len(manners.asked[-1].texts) > manners.most:
                self.reply(
                    422, {"error": f"batch size {len(manners.asked[-1].texts)} > maximum {manners.most}"}
                )
            else:
                self.reply(200, self.answer(body))

    def do_GET(self):
        self.reply(405, {})

    def answer(self, body: dict) -> dict:
        model = self.manners.model or body["model"]
        tokens = sum(map(self.manners.bill, body.get("input") or body["texts"]))
        size = body.get("dimensions") or body.get("output_dimension") or DIMENSIONS
        if self.path.endswith("/embed"):
            kind = body["input_type"].removeprefix("search_")
            vectors = [vector_of(t, kind, model, size) for t in body["texts"]]
            return {
                "id": "1",
                "embeddings": {"float": vectors},
                "meta": {"billed_units": {"input_tokens": tokens}},
            }
        kind = body.get("input_type", "document")
        vectors = [vector_of(t, kind, model, size) for t in body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        return {"object": "list", "data": data, "model": model, "usage": {"total_tokens": tokens}}

    reply = reply


def status(code: int, body: object = b"", **headers: str) -> Callable[[Handler, dict], None]:
    """Answers with an error; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(code, body, named)


def changed(change: Callable[[dict], object]) -> Callable[[Handler, dict], None]:
    """Answers with 200 and what `change` makes of the right answer, changed in place or returned."""

    def fault(handler: Handler, body: dict) -> None:
        answer = handler.answer(body)
        made = change(answer)
        handler.reply(200, answer if made is None else made)

    return fault


def cut(handler: Handler, body: dict) -> None:
    """Promises more bytes than it sends."""
    handler.reply(200, handler.answer(body), cut=40)


def reset(handler: Handler, _: dict) -> None:
    """Closes the connection without a word."""


def hang(handler: Handler, _: dict) -> None:
    """Says nothing until the test is over."""
    handler.manners.released.wait(60)


@contextlib.contextmanager
def serving() -> Iterator[tuple[str, Manners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = Manners()
    with running(Handler, daemon=False, manners=manners) as address:
        try:
            yield address, manners
        finally:
            manners.released.set()
