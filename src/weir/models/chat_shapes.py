"""The shapes in which chat models are asked and answer, by provider."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from weir.files.text_files import read_toml
from weir.services.requests import UnusableAnswerError

# ----------
# Providers of chat models, from chat_providers.toml.


PROVIDERS = Path(__file__).with_name("chat_providers.toml")
LOCAL = "transformers"
"""The provider that is this process itself."""


@dataclass(frozen=True)
class ChatProvider:
    """Who answers; chat_providers.toml says what each entry means."""

    shape: str
    base: str
    key: str
    log_probabilities: int
    json: bool
    schema: bool
    key_header: str = ""
    length: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@cache
def chat_providers() -> dict[str, ChatProvider]:
    """Every provider by name; "server" is a server of one's own."""
    return {name: ChatProvider(**facts) for name, facts in read_toml(PROVIDERS, "providers").items()}


# ----------
# Formats of requests and answers: OpenAI's, Anthropic's and Gemini's.


Json: TypeAlias = Any
"""Whatever a server sent: nothing about it is known before it is looked at."""
Finish: TypeAlias = Literal["stop", "length", "refused"]
"""Why an answer ends: the model was done; it was cut; model or provider would not answer."""
TokenChoice: TypeAlias = tuple[str, Mapping[str, float]]
"""A token that was said, and the log-probability of each alternative that the provider tells, its own among them."""

_ANY_JSON = {"type": "json_object"}


@dataclass(frozen=True)
class ChatPrompt:
    """What a model is asked: system and user text.

    max_tokens: of the answer; temperature: None leaves it to the model; log_probabilities: how many alternatives of
    each token to tell, 0 for none; json: whether the answer is held to be JSON; schema: the JSON schema that it is held
    to, as JSON, "" for none; sample: which of several answers to the same prompt this is, from 0: each is asked for
    and kept by itself; token: what the last line of the answer has to begin with, as the user text says, "" for none.
    """

    system: str
    user: str
    max_tokens: int
    temperature: float | None = 0.0
    log_probabilities: int = 0
    json: bool = False
    sample: int = 0
    schema: str = ""
    token: str = ""


@dataclass(frozen=True)
class ChatReply:
    """What a model answered.

    model: as the provider names what answered; tokens_in, tokens_out: as it counts them, None where it does not;
    choices: the tokens with their alternatives, () where none were told.
    """

    text: str
    finish: Finish = "stop"
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    choices: tuple[TokenChoice, ...] = field(default=(), repr=False)

    def kept(self) -> dict[str, Json]:
        """As JSON, which `of` reads."""
        return {
            "text": self.text,
            "finish": self.finish,
            "model": self.model,
            "tokens": [self.tokens_in, self.tokens_out],
            "choices": [[token, dict(others)] for token, others in self.choices],
        }

    @staticmethod
    def of(stored: Mapping[str, Json]) -> ChatReply:
        """The reply that `kept` gave."""
        choices = tuple((token, others) for token, others in stored["choices"])
        tokens_in, tokens_out = stored["tokens"]
        return ChatReply(stored["text"], stored["finish"], stored["model"], tokens_in, tokens_out, choices)


@dataclass(frozen=True)
class ChatShape:
    """path: of the model's name; body: of a prompt, the model's name, and what the provider calls the length of an
    answer; read: an answer, raises UnusableAnswerError; schemas: the entries of a body, each in the one before it, of
    which the last holds the answer to a JSON schema."""

    path: Callable[[str], str]
    body: Callable[[ChatPrompt, str, str], dict[str, Json]]
    read: Callable[[Json], ChatReply]
    schemas: tuple[str, ...]

    def without_schema(self, body: dict[str, Json]) -> dict[str, Json] | None:
        """The same body without its JSON schema, held to be JSON at most; None where it names no schema."""
        *outer, last = self.schemas
        plain = inner = copy.deepcopy(body)
        for name in outer:
            inner = inner.get(name, {})
        if last not in inner or inner[last] == _ANY_JSON:
            return None
        inner.pop(last)
        if self.schemas == ("response_format",):
            inner[last] = _ANY_JSON
        return plain


def _openai_body(prompt: ChatPrompt, model: str, length: str) -> dict[str, Json]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    body: dict[str, Json] = {"model": model, "messages": [*system, {"role": "user", "content": prompt.user}]}
    body[length] = prompt.max_tokens
    if prompt.temperature is not None:
        body["temperature"] = prompt.temperature
    if prompt.log_probabilities:
        body |= {"logprobs": True, "top_logprobs": prompt.log_probabilities}
    if prompt.schema:
        schema = {"name": "answer", "strict": True, "schema": json.loads(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif prompt.json:
        body["response_format"] = _ANY_JSON
    return body


def _openai_read(answer: Json) -> ChatReply:
    choice = _first(answer, "choices")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnusableAnswerError("the answer's first choice has no 'message'")
    text = _text(message.get("content"))
    refused = choice.get("finish_reason") == "content_filter" or (not text and bool(message.get("refusal")))
    finish: Finish = "length" if choice.get("finish_reason") == "length" else "stop"
    usage = answer.get("usage")
    logprobs = choice.get("logprobs")
    rows = logprobs.get("content") if isinstance(logprobs, dict) else None
    choices = [
        _choice(row.get("token"), row.get("top_logprobs"), "token", "logprob")
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
    ]
    return ChatReply(
        text,
        "refused" if refused else finish,
        _text(answer.get("model")),
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        tuple(choices),
    )


def _anthropic_body(prompt: ChatPrompt, model: str, _: str) -> dict[str, Json]:
    body: dict[str, Json] = {"model": model, "max_tokens": prompt.max_tokens}
    body["messages"] = [{"role": "user", "content": prompt.user}]
    if prompt.system:
        body["system"] = prompt.system
    if prompt.temperature is not None:
        body["temperature"] = prompt.temperature
    if prompt.schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": json.loads(prompt.schema)}}
    return body


def _anthropic_read(answer: Json) -> ChatReply:
    blocks = answer.get("content") if isinstance(answer, dict) else None
    if not isinstance(blocks, list):
        raise UnusableAnswerError("the answer has no list 'content'")
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    why, usage = answer.get("stop_reason"), answer.get("usage")
    finish: Finish = "refused" if why == "refusal" else "length" if why == "max_tokens" else "stop"
    text = "".join(t for t in texts if isinstance(t, str))
    counts = (_count(usage, "input_tokens"), _count(usage, "output_tokens"))
    return ChatReply(text, finish, _text(answer.get("model")), *counts)


def _gemini_body(prompt: ChatPrompt, _: str, __: str) -> dict[str, Json]:
    settings: dict[str, Json] = {"maxOutputTokens": prompt.max_tokens}
    if prompt.temperature is not None:
        settings["temperature"] = prompt.temperature
    if prompt.log_probabilities:
        settings |= {"responseLogprobs": True, "logprobs": prompt.log_probabilities}
    if prompt.json or prompt.schema:
        settings["responseMimeType"] = "application/json"
    if prompt.schema:
        settings["responseJsonSchema"] = json.loads(prompt.schema)
    body: dict[str, Json] = {"contents": [{"role": "user", "parts": [{"text": prompt.user}]}]}
    if prompt.system:
        body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    return body | {"generationConfig": settings}


def _gemini_read(answer: Json) -> ChatReply:
    usage = answer.get("usageMetadata") if isinstance(answer, dict) else None
    out = _count(usage, "candidatesTokenCount")
    thought = _count(usage, "thoughtsTokenCount") or 0
    counts = (_count(usage, "promptTokenCount"), None if out is None else out + thought)
    feedback = answer.get("promptFeedback") if isinstance(answer, dict) else None
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return ChatReply("", "refused", _text(answer.get("modelVersion")), *counts)
    candidate = _first(answer, "candidates")
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    texts = [p.get("text") for p in parts or [] if isinstance(p, dict) and not p.get("thought")]
    why, logprobs = candidate.get("finishReason"), candidate.get("logprobsResult")
    finish: Finish = "length" if why == "MAX_TOKENS" else "stop" if why in ("STOP", None) else "refused"
    text = "".join(t for t in texts if isinstance(t, str))
    choices: list[TokenChoice] = []
    logprobs = logprobs if isinstance(logprobs, dict) else {}
    chosen, top = logprobs.get("chosenCandidates"), logprobs.get("topCandidates")
    if isinstance(chosen, list) and isinstance(top, list) and len(chosen) == len(top):
        for one, others in zip(chosen, top, strict=True):
            if isinstance(one, dict) and isinstance(others, dict):
                choices.append(_choice(one.get("token"), others.get("candidates"), "token", "logProbability"))
    return ChatReply(text, finish, _text(answer.get("modelVersion")), *counts, tuple(choices))


def _choice(token: Json, others: Json, name: str, value: str) -> TokenChoice:
    """A token and its alternatives, of which those without a finite log-probability are left out."""
    rows = [row for row in others if isinstance(row, dict)] if isinstance(others, list) else []
    alternatives = {row[name]: row[value] for row in rows if isinstance(row.get(name), str) and value in row}
    finite = {k: float(v) for k, v in alternatives.items() if type(v) in (int, float) and math.isfinite(v)}
    return _text(token), finite


def _first(answer: Json, name: str) -> dict[str, Json]:
    entries = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not entries or not isinstance(entries[0], dict):
        raise UnusableAnswerError(f"the answer has no '{name}'")
    return entries[0]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _count(usage: Json, name: str) -> int | None:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and count >= 0 else None


SHAPES = {
    "openai": ChatShape(lambda _: "/chat/completions", _openai_body, _openai_read, ("response_format",)),
    "anthropic": ChatShape(lambda _: "/messages", _anthropic_body, _anthropic_read, ("output_config",)),
    "gemini": ChatShape(
        lambda model: f"/models/{quote(model, safe='')}:generateContent",
        _gemini_body,
        _gemini_read,
        ("generationConfig", "responseJsonSchema"),
    ),
}
