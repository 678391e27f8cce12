"""Asks a re-ranking service over HTTP: again where that may help, in halves where it is too much, within the budget."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.encode.pairs.rerank_services import RerankService, UnusableScoresError
from weir.services.attempts import AttemptError
from weir.services.http import HttpRequest, KeptConnection
from weir.services.limits import estimated
from weir.services.metered import MOST_COUNTED, MeteredClient, MeteredRequest, UnusableAnswerError

__all__ = ["RerankClient", "estimated_tokens"]

MAYBE_SMALLER = {400, 413, 422}
"""What servers answer to more documents or tokens at once than they take."""
ANSWER_BYTES, DOCUMENT_BYTES = 1 << 16, 1 << 15
"""An answer has at most: beside what it has for each document, and for each of them, where it repeats its text."""

Float32 = NDArray[np.float32]
Retrying = Callable[[AttemptError], None]


@dataclass(frozen=True, eq=False)
class RerankClient:
    """A re-ranking service as one process uses it; threads share it, each with a connection of its own.

    model: as the service calls it; url: where it is asked; metered: keeps to the budget and the rate, and counts.
    """

    service: RerankService
    model: str
    url: str
    metered: MeteredClient

    def scores(
        self, connection: KeptConnection, query: str, documents: Sequence[str], retrying: Retrying
    ) -> Float32:
        """A score for each document, in their order; what is too much at once is asked in halves.

        retrying: told each attempt that is followed by another. Raises ServiceError where the budget ends or the
        service refuses whoever asks, AttemptError where no attempt brings a usable answer.
        """
        try:
            return self.metered.answered(connection, self._request(query, documents), retrying)
        except AttemptError as error:
            if error.status not in MAYBE_SMALLER:
                raise
            if len(documents) == 1 or self.model in self.service.together:
                raise AttemptError("refused", f"{self.url}: {error}", again=False) from None
        half = (len(documents) + 1) // 2
        parts = [
            self.scores(connection, query, some, retrying) for some in (documents[:half], documents[half:])
        ]
        return np.concatenate(parts)

    def _request(self, query: str, documents: Sequence[str]) -> MeteredRequest[Float32]:
        body = json.dumps(self.service.body(self.model, query, documents)).encode("ascii")
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "weir"}
        sent = HttpRequest("POST", self.url, headers | self.metered.key.header(), body)
        tokens = estimated_tokens(query, documents)

        def read(answer: object) -> tuple[Float32, tuple[int, int] | None]:
            try:
                found = self.service.read(answer, len(documents))
            except UnusableScoresError as error:
                raise UnusableAnswerError(str(error)) from None
            self.metered.count_texts(len(documents))
            known = found.tokens is not None and found.tokens <= MOST_COUNTED * tokens
            return found.scores, (found.tokens or 0, 0) if known else None

        most = ANSWER_BYTES + len(documents) * DOCUMENT_BYTES + len(body)
        return MeteredRequest(sent, tokens, 0, most, read)


def estimated_tokens(query: str, documents: Sequence[str]) -> int:
    """Tokens of a request by estimate: those of the query once for each document, and of the documents."""
    return math.ceil(estimated(query) * len(documents) + sum(map(estimated, documents)))
