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

from tests.unit.local_server import reply, running

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
class ChatManners:
    """How the server behaves, and what it was asked.

    faults: what it does instead of answering, one for each request, None for answering as it should; say: its answer,
    of system and user text; signs: whether that is then put in the form that the prompt asks for; finish: why it says that it ended; odds: alternatives of its first token with their
    probability, told where they are asked for; seconds: that an answer takes; asked: path, headers, body.
    """

    faults: list[Callable[[ChatHandler, dict], None] | None] = field(default_factory=list)
    say: Callable[[str, str], str] = verdict
    signs: bool = True
    finish: str = "stop"
    odds: dict[str, float] | None = None
    seconds: float = 0.0
    asked: list[tuple[str, dict, dict]] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def said(self, system: str, user: str) -> str:
        """The answer to a prompt."""
        return signed(self.say(system, user), user) if self.signs else self.say(system, user)

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

    reply = reply


@contextlib.contextmanager
def chat_serving() -> Iterator[tuple[str, ChatManners]]:
    """(address, manners) of a server that runs as long as the block."""
    manners = ChatManners()
    with running(ChatHandler, manners=manners) as address:
        yield address, manners
