"""A chat model that a service runs: prompts over HTTP, in the provider's own shape, within the budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from weir.llm.chat_provider import ChatProvider
from weir.llm.chat_shapes import SHAPES, ChatPrompt, ChatReply
from weir.services.asking import Outcome, Request, Retried, Terms
from weir.services.attempts import AttemptError
from weir.services.http import HttpRequest, KeptConnection
from weir.services.limits import estimated
from weir.services.metered import MOST_COUNTED, MeteredClient, MeteredRequest

__all__ = ["HostedChat"]

ANSWER_BYTES, TOKEN_BYTES = 1 << 18, 1 << 12
"""An answer has at most: beside its tokens, and for each of them with its alternatives."""


@dataclass(frozen=True, eq=False)
class HostedChat:
    """A ChatClient of a service. name: of the model, as the provider calls it; address: up to the version; carried: the
    header with the key."""

    name: str
    address: str
    provider: ChatProvider
    metered: MeteredClient = field(repr=False)
    carried: Mapping[str, str] = field(repr=False)

    def body(self, prompt: ChatPrompt) -> dict[str, object]:
        """What is sent for a prompt; log-probabilities and JSON are asked for where the provider offers them."""
        most = min(prompt.log_probabilities, self.provider.log_probabilities)
        held = replace(prompt, log_probabilities=most, json=prompt.json and self.provider.json)
        return SHAPES[self.provider.shape].body(held, self.name, self.provider.length)

    def terms(self, concurrency: int) -> Terms:
        """So many connections, each with one prompt at a time."""
        return Terms(concurrency)

    def asker(self, retried: Retried, terms: Terms) -> _HostedAsker:
        """One connection to the service."""
        return _HostedAsker(self, retried)

    def dollars(self, tokens: int, answer_tokens: int) -> float | None:
        """What so many tokens cost by WEIR_API_PRICE."""
        return self.metered.limits.cost(tokens, answer_tokens)

    def reply(
        self, connection: KeptConnection, body: dict[str, object], max_tokens: int, retrying: Retried
    ) -> ChatReply:
        """The answer to what is sent. Raises ServiceError and AttemptError as MeteredClient.answered."""
        shape = SHAPES[self.provider.shape]
        sent = json.dumps(body).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        headers |= {**self.provider.headers, **self.carried}
        url = self.address + shape.path(self.name)
        tokens = estimated(json.dumps(body, ensure_ascii=False)) + max_tokens

        def read(answer: object) -> tuple[ChatReply, tuple[int, int] | None]:
            found = shape.read(answer)
            said = found.tokens_out or 0
            if found.tokens_in is None or found.tokens_in + said > MOST_COUNTED * tokens:
                return replace(found, tokens_in=None, tokens_out=None), None
            return found, (found.tokens_in + said, said)

        most = ANSWER_BYTES + TOKEN_BYTES * max_tokens
        request = MeteredRequest(HttpRequest("POST", url, headers, sent), tokens, max_tokens, most, read)
        return self.metered.answered(connection, request, retrying)


@dataclass(eq=False)
class _HostedAsker:
    """One connection to the service."""

    client: HostedChat
    retried: Retried
    connection: KeptConnection = field(default_factory=KeptConnection)

    def ask(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """The answer to each request."""
        for request in requests:
            start = perf_counter()
            body, most = request.asked["body"], request.asked["max_tokens"]
            try:
                found = self.client.reply(self.connection, body, most, self.retried)
                yield Outcome(request, found.kept(), perf_counter() - start)
            except AttemptError as error:
                yield Outcome(request, error=error)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()
