"""A real HTTP server that speaks like Cohere, Voyage, Jina, TEI and vLLM, checks what it is asked, and misbehaves."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.unit.local_server import reply, running

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
class RerankManners:
    """How the server behaves, and what it was asked.

    faults: what it does instead of answering, one for each request, None for answering as it should; model: which model
    answers, whatever is asked for; wrong: what was asked against the description; seconds: that an answer takes.
    """

    faults: list[Callable[[RerankHandler, dict], None] | None] = field(default_factory=list)
    asked: list[tuple[str, str | None, dict]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    model: str | None = None
    seconds: float = 0.0
    turn: threading.Lock = field(default_factory=threading.Lock)

    def pairs(self) -> list[tuple[str, str]]:
        """Every pair of every request, but those of probes."""
        bodies = [body for _, _, body in self.asked]
        found = [(b["query"], d) for b in bodies for d in b.get("documents") or b["texts"]]
        return [pair for pair in found if pair[0] != "What is a weir?"]


class RerankHandler(http.server.BaseHTTPRequestHandler):
    """Answers as `manners`, an attribute of the server's own subclass, says."""

    protocol_version = "HTTP/1.1"
    manners: RerankManners

    def log_message(self, *_):
        pass

    def do_POST(self):
        manners = self.manners
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with manners.turn:
            manners.asked.append((self.path, self.headers.get("Authorization"), body))
            fault = manners.faults.pop(0) if manners.faults else None
        time.sleep(manners.seconds)
        with contextlib.suppress(OSError):  # the client may hang up
            if fault is not None:
                fault(self, body)
                return
            wrong, most = self.wrong(body)
            if wrong:
                manners.wrong.append(wrong)
                self.reply(422, {"detail": wrong})
            elif len(self.documents(body)) > most:
                self.reply(
                    413,
                    {"error": f"batch size {len(self.documents(body))} > maximum allowed batch size {most}"},
                )
            else:
                self.reply(200, self.answer(body))

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

    reply = reply


@contextlib.contextmanager
def rerank_serving() -> Iterator[tuple[str, RerankManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = RerankManners()
    with running(RerankHandler, manners=manners) as address:
        yield address, manners
