"""What an encoder comes to: its own settings, then the checkpoint's files, then its card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from weir.algorithms import algorithm
from weir.encode.recipes.cards import ModelCard, known
from weir.encode.recipes.checkpoint import Checkpoint, read_checkpoint
from weir.encode.recipes.fingerprint import fingerprint
from weir.encode.recipes.hub import fetch, locate
from weir.errors import BadValue

if TYPE_CHECKING:
    from weir.encode.encoder import Encoder

__all__ = ["TASK", "EncoderRecipe", "fetch_encoder", "filled_prompt", "resolve"]

T = TypeVar("T")

GENERAL = "Given a web search query, retrieve relevant passages that answer the query"
"""What models that follow instructions were told for MS MARCO (Wang et al. 2024), and their cards take by default."""
TASK = "{task}"
"""What stands in a prompt for the instruction; as an instruction, it leaves the place open for each query's own."""
KINDS = (("query", "query_prompt"), ("document", "document_prompt"), ("passage", "document_prompt"))


@dataclass(frozen=True, eq=False)
class EncoderRecipe:
    """Everything decided, nothing loaded. document, query: the checkpoints, one and the same as a rule."""

    model: str
    document: Checkpoint
    query: Checkpoint
    pooling: str
    similarity: str
    normalise: bool
    query_prompt: str
    document_prompt: str
    max_query: int
    max_document: int
    notes: tuple[str, ...]

    def describe(self) -> dict[str, object]:
        """What decides the vectors, the engine aside: contents by their hash, no path and no name."""
        found: dict[str, object] = {
            "encoding": algorithm("encoding"),
            "revision": fingerprint(self.document),
            "architecture": self.document.architecture,
            "pooling": self.pooling,
            "behind pooling": [f"{h.kind} {h.activation}".strip() for h in self.document.heads],
            "similarity": self.similarity,
            "normalised": self.normalise,
            "query": self.query_prompt + "{text}",
            "document": self.document_prompt + "{text}",
            "max_query": self.max_query,
            "max_length": self.max_document,
        }
        if self.query is not self.document:
            found["query revision"] = fingerprint(self.query)
        return found


def fetch_encoder(model: str) -> None:
    """Download the checkpoints of an encoder, of queries too where that is another, as far as they are not here."""
    fetch(model)
    card = known(model)
    if card is not None and card.query_hub:
        fetch(card.query_hub)


def resolve(encoder: Encoder, collection: str = "", instruction: str = "") -> EncoderRecipe:
    """What an encoder comes to; reads the files of its checkpoint that say how to use it.

    collection, instruction: of what is searched; a checkpoint may declare prompts under a collection's name, and
    {task} in a prompt is the instruction, see `filled_prompt`. Raises BadValue where nothing says how to pool, and
    for a length beyond what the architecture can take; DownloadError and StoreError for a checkpoint that is not here
    or damaged.
    """
    card = known(encoder.model) or ModelCard(encoder.model, encoder.model, kind="dense", source="")
    document = read_checkpoint(locate(encoder.model))
    query = read_checkpoint(locate(card.query_hub)) if card.query_hub else document
    pooling = _first(encoder.pooling, document.pooling, card.pooling)
    if pooling is None:
        raise BadValue(
            f"nothing says how '{encoder.model}' pools; give pooling='mean', 'cls', 'last' or 'max'"
        )
    similarity = _first(encoder.similarity, document.similarity, card.similarity)
    similarity = similarity or ("cosine" if document.normalise else "dot")
    theirs = _of_collection(document.prompts, collection)
    query_prompt, document_prompt = (
        filled_prompt(
            _first(getattr(encoder, name), theirs.get(name), getattr(document, name), getattr(card, name))
            or "",
            instruction,
        )
        for name in ("query_prompt", "document_prompt")
    )
    declared = [p for p in (*document.prompts.values(), card.query_prompt, card.document_prompt) if p]
    own_query = _first(encoder.max_query, encoder.max_length)
    return EncoderRecipe(
        model=encoder.model,
        document=document,
        query=query,
        pooling=pooling,
        similarity=similarity,
        normalise=similarity == "cosine" or document.normalise,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        max_query=_limit(own_query, card.max_query, query, encoder.model),
        max_document=_limit(encoder.max_length, card.max_document, document, encoder.model),
        notes=() if query_prompt or document_prompt else _unused(encoder.model, declared),
    )


def filled_prompt(prompt: str, instruction: str) -> str:
    """A prompt whose {task} is the instruction, or where there is none the one for searching the web."""
    return prompt.replace(TASK, instruction or GENERAL)


def _of_collection(prompts: dict[str, str], collection: str) -> dict[str, str]:
    """The prompts declared under a collection's name, such as "SciFact-query" or "NFCorpus"."""
    found: dict[str, str] = {}
    wanted = _plain(collection)
    for name, prompt in prompts.items() if wanted else ():
        plain = _plain(name)
        for ending, kind in (("", "query_prompt"), *KINDS):
            if plain in (wanted + ending, wanted + "retrieval" + ending):
                found[kind] = prompt
    return found


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def _limit(own: int | None, card_says: int, checkpoint: Checkpoint, model: str) -> int:
    bound = checkpoint.positions
    if own is not None and bound and own > bound:
        raise BadValue(f"'{model}' reads {bound} tokens at most, not {own}")
    if own is not None:
        return own
    return min(card_says or checkpoint.limit, bound or card_says or checkpoint.limit)


def _unused(model: str, declared: list[str]) -> tuple[str, ...]:
    shown = ", ".join(sorted({repr(p) for p in declared}))
    note = f"'{model}' declares prompts ({shown}) and none is used; its scores may be lower than published"
    return (note,) if declared else ()


def _first(*values: T | None) -> T | None:
    return next((v for v in values if v is not None), None)
