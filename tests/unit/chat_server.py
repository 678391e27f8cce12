"""A real HTTP server that speaks like OpenAI, Anthropic and Gemini, judges passages, and misbehaves on demand."""

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

_PASSAGE = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)


def grade_of(passage: str) -> int:
    """The server's verdict of a passage, 0 to 10, the same everywhere."""
    return hashlib.blake2b(passage.strip().encode(), digest_size=2).digest()[0] % 11


def verdict(system: str, user: str) -> str:
    """What a well-behaved model answers to Weir's own prompts."""
    found = [grade_of(text) for text in _PASSAGE.findall(user)]
    if "requirements" in user:
        return '{"requirements": ["It is of rivers.", "It is of weirs."]}'
    if "in order" in user:
        order = sorted(range(len(found)), key=lambda i: -found[i])
        return " > ".join(f"[{i + 1}]" for i in order)
    if "1 or 2" in user:
        return "1" if found[0] >= found[1] else "2"
    if "serves the search best?" in user:
        return str(1 + found.index(max(found)))
    return f"It is of some use.\nScore: {found[0]}" if "Score: " in user else str(found[0])


@dataclass
class ChatManners:
    """How the server behaves, and what it was asked.

    faults: what it does instead of answering, one for each request, None for answering as it should; say: its answer,
    of system and user text; finish: why it says that it ended; odds: alternatives of its first token with their
    probability, told where they are asked for; seconds: that an answer takes; asked: path, headers, body.
    """

    faults: list[Callable[[ChatHandler, dict], None] | None] = field(default_factory=list)
    say: Callable[[str, str], str] = verdict
    finish: str = "stop"
    odds: dict[str, float] | None = None
    seconds: float = 0.0
    asked: list[tuple[str, dict, dict]] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def prompts(self) -> list[str]:
        """Every request, as text."""
        return [json.dumps(body, sort_keys=True) for _, _, body in self.asked]


class ChatHandler(http.server.BaseHTTPRequestHandler):
    """Answers as `manners`, an attribute of the server's own subclass, says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    manners: ChatManners

    def log_message(self, *_):
        pass

    def do_POST(self):
        manners = self.manners
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with manners.turn:
            manners.asked.append((self.path, dict(self.headers), body))
            fault = manners.faults.pop(0) if manners.faults else None
        time.sleep(manners.seconds)
        with contextlib.suppress(OSError):  # the client may hang up
            if fault is None:
                self.reply(200, self.answer(body))
            else:
                self.close_connection = True
                fault(self, body)

    def answer(self, body: dict) -> dict:
        manners = self.manners
        if self.path.endswith("/messages"):
            said = manners.say(body.get("system", ""), body["messages"][0]["content"])
            blocks = [{"type": "thinking", "thinking": "Score: 1"}, {"type": "text", "text": said}]
            why = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[manners.finish]
            usage = {"input_tokens": 11, "output_tokens": 2}
            return {"model": body["model"], "content": blocks, "stop_reason": why, "usage": usage}
        if self.path.endswith(":generateContent"):
            return self.gemini(body)
        *system, user = [message["content"] for message in body["messages"]]
        said = manners.say("".join(system), user)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": said},
            "finish_reason": manners.finish,
        }
        if body.get("logprobs") and manners.odds:
            top = [{"token": t, "logprob": math.log(p)} for t, p in manners.odds.items()]
            choice["logprobs"] = {"content": [{"token": said, "top_logprobs": top[: body["top_logprobs"]]}]}
        usage = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
        return {"model": body["model"] + "-0613", "choices": [choice], "usage": usage}

    def gemini(self, body: dict) -> dict:
        manners, system = self.manners, body.get("systemInstruction", {"parts": [{"text": ""}]})
        said = manners.say(system["parts"][0]["text"], body["contents"][0]["parts"][0]["text"])
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 1, "thoughtsTokenCount": 1}
        if manners.finish == "content_filter":
            return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}
        parts = [{"text": "Score: 1", "thought": True}, {"text": said}]
        why = {"stop": "STOP", "length": "MAX_TOKENS"}[manners.finish]
        candidate = {"content": {"parts": parts}, "finishReason": why}
        if body["generationConfig"].get("responseLogprobs") and manners.odds:
            top = [{"token": t, "logProbability": math.log(p)} for t, p in manners.odds.items()]
            chosen = [{"token": said, "logProbability": -0.1}]
            candidate["logprobsResult"] = {"chosenCandidates": chosen, "topCandidates": [{"candidates": top}]}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gem-001"}

    def reply(self, status: int, body: object, headers: dict[str, str] | None = None, cut: int = 0) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) - cut])


@contextlib.contextmanager
def chat_serving() -> Iterator[tuple[str, ChatManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = ChatManners()
    handler = type("MannerlyChat", (ChatHandler,), {"manners": manners})
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", manners
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
