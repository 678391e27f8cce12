"""A handful of documents and queries for systems that run elsewhere, and the answers that all of them give."""

from __future__ import annotations

import hashlib

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Ids, Strings

DOCUMENTS = [f"d{n}" for n in range(50)]
CORPUS = Corpus(Ids.of(DOCUMENTS), Strings.of([f"text of {name}" for name in DOCUMENTS]))


def queries(texts: list[str]) -> Queries:
    """Queries q0, q1, ... of these texts."""
    return Queries(Ids.of([f"q{n}" for n in range(len(texts))]), Strings.of(texts))


def answer(text: str, k: int) -> dict[str, float]:
    """What every right server answers: ten documents that the text's hash picks, fewer where k is less."""
    first = hashlib.blake2b(text.encode(), digest_size=1).digest()[0]
    return {f"d{(first + 7 * place) % 50}": 10.0 - place for place in range(min(k, 10))}


def expected(texts: list[str], k: int, without: tuple[int, ...] = ()) -> dict[str, dict[str, float]]:
    """The run that right answers make; without: queries that have none."""
    found = {f"q{n}": {} if n in without else answer(text, k) for n, text in enumerate(texts)}
    return Run.of(found).to_dict()
