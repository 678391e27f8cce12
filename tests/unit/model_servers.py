"""Real HTTP servers that stand in for services of models, and misbehave on demand.

Embeddings as OpenAI, Cohere and Voyage answer them; re-ranking as Cohere, Voyage, Jina, TEI and vLLM, with what each of
them takes; chat as OpenAI, Anthropic and Gemini, by a model that judges passages.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np


@contextlib.contextmanager
def running(
    handler: type[http.server.BaseHTTPRequestHandler], daemon: bool = True, **told: object
) -> Iterator[str]:
    """The address of a server on this machine; told: attributes of its handlers; daemon: no request is waited for."""
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Mannered", (handler,), told))
    httpd.daemon_threads = daemon
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


class LocalHandler(http.server.BaseHTTPRequestHandler):
    """What the handlers of servers on this machine share."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # else a kept connection waits 40 ms between the head and the body of an answer
    )

    def log_message(self, *_):
        pass

    def reply(self, status: int, body: object, headers: dict[str, str] | None = None, cut: int = 0) -> None:
        """Answer with bytes, or what is written as JSON; cut: bytes that are promised and not sent."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection and not cut:
            self.send_header("Connection", "close")  # else the next request may leave before the end is seen
        self.end_headers()
        self.wfile.write(data[: len(data) - cut])
        self.close_connection = self.close_connection or cut > 0


# What a server does instead of answering


Fault = Callable[["LocalHandler", object], None]
"""What a server does instead of sending the right answer, which it is given."""


def status(code: int, body: object = b"", **headers: str) -> Fault:
    """Answers with an error; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.reply(code, body, named)


def changed(change: Callable[[dict], object]) -> Fault:
    """Answers with 200 and what `change` makes of the right answer, changed in place or returned."""

    def fault(handler: LocalHandler, answer: object) -> None:
        made = change(answer)
        handler.reply(200, answer if made is None else made)

    return fault


def cut(handler: LocalHandler, answer: object) -> None:
    """Promises more bytes than it sends."""
    handler.reply(200, answer, cut=20)


def reset(handler: LocalHandler, _: object) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True


def hang(handler: LocalHandler, _: object) -> None:
    """Says nothing until the test is over."""
    handler.manners.released.wait(300)
    handler.close_connection = True


@dataclass
class Manners:
    """How a server of models behaves, and what it was asked.

    faults: what it does instead of answering, one for each request, None for answering as it should; seconds: that an
    answer takes; asked: the requests.
    """

    faults: list[Fault | None] = field(default_factory=list)
    seconds: float = 0.0
    asked: list = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)


class ModelHandler(LocalHandler):
    """Answers as `manners`, an attribute of the server's own subclass, says."""

    manners: Manners

    def do_POST(self):
        manners = self.manners
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with manners.turn:
            manners.asked.append(self.noted(body))
            fault = manners.faults.pop(0) if manners.faults else None
        time.sleep(manners.seconds)
        with contextlib.suppress(OSError):  # the client may hang up
            if fault is None:
                self.reply(*self.response(body))
            else:
                self.close_connection = True
                fault(self, self.answer(body))

    def noted(self, body: dict) -> object:
        """A request as it is remembered."""
        return self.path, self.headers.get("Authorization"), body

    def response(self, body: dict) -> tuple[int, object]:
        """The status and the body of a right answer."""
        return 200, self.answer(body)


@contextlib.contextmanager
def behaving(handler: type[ModelHandler], manners: Manners, daemon: bool = True) -> Iterator[str]:
    """The address of a server with these manners, as long as the block."""
    with running(handler, daemon=daemon, manners=manners) as address:
        try:
            yield address
        finally:
            manners.released.set()


# Embeddings

DIMENSIONS = 8


def vector_of(
    text: str, kind: str = "document", model: str = "m", dimensions: int = DIMENSIONS
) -> list[float]:
    """What the server's model says about a text: the same everywhere, and of no particular length."""
    seed = hashlib.blake2b(f"{model}|{kind}|{text}".encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(seed)).normal(size=dimensions).tolist()


@dataclass
class EmbeddingRequest:
    """One request as it arrived."""

    path: str
    key: str | None
    body: dict

    @property
    def texts(self) -> list[str]:
        return self.body.get("input") or self.body["texts"]


@dataclass
class EmbeddingManners(Manners):
    """most: texts that it takes at once; quick: texts that it answers in time; bill: tokens that it counts for a text;
    model: which model answers, whatever is asked for."""

    most: int | None = None
    quick: int | None = None
    model: str | None = None
    bill: Callable[[str], int] = lambda text: len(text) // 3 + 1

    def sent(self) -> list[str]:
        """Every text of every request, in order."""
        return [text for asked in self.asked for text in asked.texts]


class EmbeddingHandler(ModelHandler):
    """A server of embeddings, which closes every connection."""

    manners: EmbeddingManners

    def do_POST(self):
        self.close_connection = True
        super().do_POST()

    def do_GET(self):
        self.reply(405, {})

    def noted(self, body: dict) -> EmbeddingRequest:
        return EmbeddingRequest(self.path, self.headers.get("Authorization"), body)

    def response(self, body: dict) -> tuple[int, object]:
        count, most = len(body.get("input") or body["texts"]), self.manners.most
        if most is not None and count > most:
            return 422, {"error": f"batch size {count} > maximum {most}"}
        if self.manners.quick is not None and count > self.manners.quick:
            self.manners.released.wait(300)
        return 200, self.answer(body)

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


@contextlib.contextmanager
def embedding_serving() -> Iterator[tuple[str, EmbeddingManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = EmbeddingManners()
    with behaving(EmbeddingHandler, manners, daemon=False) as address:
        yield address, manners


# Re-ranking

# What each service takes, by its own description: what has to be there, what may be, how many documents.
TAKEN = {
    "/cohere/v2/rerank": (
        {"model", "query", "documents"},
        {"top_n", "max_tokens_per_doc", "priority"},
        10_000,
    ),
    "/voyage/v1/rerank": ({"model", "query", "documents"}, {"top_k", "return_documents", "truncation"}, 1000),
    "/jina/v1/rerank": ({"model", "query", "documents"}, {"top_n", "return_documents"}, 2048),
    "/tei/rerank": (
        {"query", "texts"},
        {"raw_scores", "return_text", "truncate", "truncation_direction"},
        32,
    ),
    "/vllm/rerank": ({"model", "query", "documents"}, {"top_n", "truncate_prompt_tokens"}, 10_000),
}


def score_of(query: str, document: str, model: str = "m") -> float:
    """What the server's model says of a pair, the same everywhere."""
    seed = hashlib.blake2b(f"{model}|{query}|{document}".encode(), digest_size=4).digest()
    return int.from_bytes(seed) / 2**32


@dataclass
class RerankManners(Manners):
    """model: which model answers, whatever is asked for; wrong: what was asked against the description."""

    wrong: list[str] = field(default_factory=list)
    model: str | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """Every pair of every request, but those of probes."""
        bodies = [body for _, _, body in self.asked]
        found = [(b["query"], d) for b in bodies for d in b.get("documents") or b["texts"]]
        return [pair for pair in found if pair[0] != "What is a weir?"]


class RerankHandler(ModelHandler):
    """A server of re-ranking models."""

    manners: RerankManners

    def response(self, body: dict) -> tuple[int, object]:
        wrong, most = self.wrong(body)
        if wrong:
            self.manners.wrong.append(wrong)
            return 422, {"detail": wrong}
        if (count := len(self.documents(body))) > most:
            return 413, {"error": f"batch size {count} > maximum allowed batch size {most}"}
        return 200, self.answer(body)

    def documents(self, body: dict) -> list[str]:
        return body.get("documents") or body.get("texts") or []

    def wrong(self, body: dict) -> tuple[str, int]:
        """(what is against the service's description, how many documents it takes)."""
        needed, more, most = TAKEN.get(self.path, (set(), set(), 0))
        documents = self.documents(body)
        texts = isinstance(body.get("query"), str) and all(isinstance(d, str) and d for d in documents)
        fits = needed <= set(body) <= needed | more and texts and body["query"] and documents
        return "" if fits else f"{self.path} does not take {sorted(body)}", most

    def answer(self, body: dict):
        documents, query = self.documents(body), body["query"]
        model = self.manners.model or body.get("model", "m")
        company = "|".join(documents) if model == "jina-reranker-v3" else ""
        scores = [score_of(query, d + company, model) for d in documents]
        order = sorted(range(len(documents)), key=lambda i: -scores[i])
        if self.path == "/tei/rerank":
            return [{"index": i, "score": scores[i]} for i in order]
        results = [{"index": i, "relevance_score": scores[i]} for i in order]
        tokens = sum(len(d) for d in documents)
        if self.path == "/voyage/v1/rerank":
            return {"object": "list", "data": results, "model": model, "usage": {"total_tokens": tokens}}
        if self.path == "/cohere/v2/rerank":
            meta = {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": tokens}}
            return {"id": "1", "results": results, "meta": meta}
        return {"model": model, "results": results, "usage": {"total_tokens": tokens}}


@contextlib.contextmanager
def rerank_serving() -> Iterator[tuple[str, RerankManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = RerankManners()
    with behaving(RerankHandler, manners) as address:
        yield address, manners


# Chat

PASSAGE = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)


def grade_of(passage: str) -> int:
    """The server's verdict of a passage, 0 to 10, the same everywhere."""
    return hashlib.blake2b(passage.strip().encode(), digest_size=2).digest()[0] % 11


def token_of(user: str) -> str:
    """The word that a prompt asks the last line of its answer to begin with, "" for none."""
    found = re.findall(r"^([a-z]{8}): \S", user, re.MULTILINE)
    return found[-1] if found else ""


def signed(said: str, user: str) -> str:
    """An answer whose last line has the form that the prompt asks for, what stood there without its own first words."""
    token, (*before, last) = token_of(user), said.split("\n")
    if not token or not last or "<think>" in last:
        return said
    return "\n".join([*before, f"{token}: {last.rpartition(': ')[2]}"])


def verdict(system: str, user: str) -> str:
    """What a well-behaved model answers to Weir's own prompts, but for the token."""
    found = [grade_of(text) for text in PASSAGE.findall(user)]
    if "requirements" in user:
        return '{"requirements": ["It is of rivers.", "It is of weirs."]}'
    if "in order" in user:
        order = sorted(range(len(found)), key=lambda i: -found[i])
        return " > ".join(f"[{i + 1}]" for i in order)
    if "1 or 2" in user:
        return "1" if found[0] >= found[1] else "2"
    if "serves the search best?" in user:
        return str(1 + found.index(max(found)))
    return f"It is of some use.\nScore: {found[0]}" if "First write down" in user else str(found[0])


@dataclass
class ChatManners(Manners):
    """say: its answer, of system and user text; signs: whether that is then put in the form that the prompt asks for;
    finish: why it says that it ended; odds: alternatives of its first token with their probability, told where they are
    asked for; asked: path, headers, body."""

    say: Callable[[str, str], str] = verdict
    signs: bool = True
    finish: str = "stop"
    odds: dict[str, float] | None = None

    def said(self, system: str, user: str) -> str:
        """The answer to a prompt."""
        return signed(self.say(system, user), user) if self.signs else self.say(system, user)

    def prompts(self) -> list[str]:
        """Every request, as text."""
        return [json.dumps(body, sort_keys=True) for _, _, body in self.asked]


class ChatHandler(ModelHandler):
    """A server of chat models."""

    manners: ChatManners

    def noted(self, body: dict) -> tuple[str, dict, dict]:
        return self.path, dict(self.headers), body

    def answer(self, body: dict) -> dict:
        manners = self.manners
        if self.path.endswith("/messages"):
            said = manners.said(body.get("system", ""), body["messages"][0]["content"])
            blocks = [{"type": "thinking", "thinking": "Score: 1"}, {"type": "text", "text": said}]
            why = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[manners.finish]
            usage = {"input_tokens": 11, "output_tokens": 2}
            return {"model": body["model"], "content": blocks, "stop_reason": why, "usage": usage}
        if self.path.endswith(":generateContent"):
            return self.gemini(body)
        *system, user = [message["content"] for message in body["messages"]]
        said = manners.said("".join(system), user)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": said},
            "finish_reason": manners.finish,
        }
        if body.get("logprobs") and manners.odds:
            top = [{"token": t, "logprob": math.log(p)} for t, p in manners.odds.items()]
            front, blank, value = said.rpartition(" ")
            content = [{"token": front + blank, "top_logprobs": []}] if front else []
            choice["logprobs"] = {
                "content": [*content, {"token": value, "top_logprobs": top[: body["top_logprobs"]]}]
            }
        usage = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
        return {"model": body["model"] + "-0613", "choices": [choice], "usage": usage}

    def gemini(self, body: dict) -> dict:
        manners, system = self.manners, body.get("systemInstruction", {"parts": [{"text": ""}]})
        said = manners.said(system["parts"][0]["text"], body["contents"][0]["parts"][0]["text"])
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 1, "thoughtsTokenCount": 1}
        if manners.finish == "content_filter":
            return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}
        parts = [{"text": "Score: 1", "thought": True}, {"text": said}]
        why = {"stop": "STOP", "length": "MAX_TOKENS"}[manners.finish]
        candidate = {"content": {"parts": parts}, "finishReason": why}
        if body["generationConfig"].get("responseLogprobs") and manners.odds:
            top = [{"token": t, "logProbability": math.log(p)} for t, p in manners.odds.items()]
            front, blank, value = said.rpartition(" ")
            chosen = [{"token": front + blank}, {"token": value, "logProbability": -0.1}]
            candidate["logprobsResult"] = {
                "chosenCandidates": chosen,
                "topCandidates": [{"candidates": []}, {"candidates": top}],
            }
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gem-001"}


@contextlib.contextmanager
def chat_serving() -> Iterator[tuple[str, ChatManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = ChatManners()
    with behaving(ChatHandler, manners) as address:
        yield address, manners
