"""What stands for a collection that is copied to a server."""

from __future__ import annotations

import hashlib

from weir.core.corpus import Corpus

__all__ = ["content_of"]

HASHED_DOCUMENTS = 4096


def content_of(corpus: Corpus, views: tuple[str, ...]) -> str:
    """The fingerprint of what these views read of a corpus; for one in memory the hash of it."""
    known = corpus.fingerprint_with(views)
    if known:
        return known
    digest, names = hashlib.blake2b(digest_size=16), corpus.ids.tolist()
    for start in range(0, len(names), HASHED_DOCUMENTS):
        stop = min(start + HASHED_DOCUMENTS, len(names))
        columns = [corpus.view(view, start, stop).tolist() for view in views]
        for row in zip(names[start:stop], *columns, strict=True):
            digest.update("".join(f"{len(part)} {part}" for part in row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
