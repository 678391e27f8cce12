"""What a late-interaction checkpoint says about itself, in the three layouts that such checkpoints come in.

ColBERT's own: one folder, the projection among the weights as linear.weight, settings in artifact.metadata. PyLate's:
modules.json with a Dense behind the transformer, settings in config_sentence_transformers.json. That of
sentence-transformers' MultiVectorEncoder: modules.json with Dense and MultiVectorMask, settings with the modules.
Sources: stanford-futuredata/ColBERT colbert/infra/config, lightonai/pylate pylate/models/colbert.py,
sentence-transformers sentence_transformers/multi_vector_encoder/model.py.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.algorithms import algorithm
from weir.encode.recipes.cards import ModelCard, known
from weir.encode.recipes.checkpoint import Checkpoint, Head, read_checkpoint, read_object
from weir.encode.recipes.fingerprint import fingerprint
from weir.encode.recipes.hub import locate
from weir.errors import BadValue

if TYPE_CHECKING:
    from weir.encode.late.late_encoder import LateEncoder

__all__ = ["LateRecipe", "resolve_late"]

PYLATE = (
    "query_prefix",
    "document_prefix",
    "do_query_expansion",
    "attend_to_expansion_tokens",
    "query_length",
)
QUERY, DOCUMENT = 32, 300
"""Tokens where nothing says how many."""


@dataclass(frozen=True)
class _Says:
    """What files say. marker: the token set behind a text's first one; prompt: text put before a text."""

    query_marker: str = ""
    document_marker: str = ""
    query_prompt: str = ""
    document_prompt: str = ""
    max_query: int = QUERY
    max_document: int = DOCUMENT
    fill: bool = True
    cut: bool = True
    attended: bool = False
    filler: str = ""
    skipped: tuple[str, ...] = ()
    skipped_in_queries: bool = False


@dataclass(frozen=True, eq=False)
class LateRecipe:
    """Everything decided, nothing loaded.

    heads: the layers behind the transformer, none where the projection lies among its weights; query_marker,
    document_marker: tokens set behind the first one of a text, "" for none; query_prompt, document_prompt: put before a
    text; max_query, max_document: tokens with special ones; fill: whether queries are filled up to max_query with
    `filler`; cut: whether longer ones are cut there; attended: whether the other tokens see what fills up;
    skipped: tokens of documents that have no vector.
    """

    model: str
    checkpoint: Checkpoint
    heads: tuple[Head, ...]
    query_marker: str
    document_marker: str
    query_prompt: str
    document_prompt: str
    max_query: int
    max_document: int
    fill: bool
    cut: bool
    attended: bool
    filler: str
    skipped: tuple[str, ...]
    skipped_in_queries: bool

    def describe(self) -> dict[str, object]:
        """What decides the vectors, the engine aside."""
        filled = f"{self.filler} to {self.max_query}, {'' if self.attended else 'not '}attended"
        return {
            "encoding": algorithm("encoding"),
            "revision": fingerprint(self.checkpoint),
            "architecture": self.checkpoint.architecture,
            "query": f"{self.query_marker}{self.query_prompt}{{text}}",
            "document": f"{self.document_marker}{self.document_prompt}{{text}}",
            "max_query": self.max_query,
            "max_length": self.max_document,
            "filled": filled if self.fill else "no",
            "cut": self.cut,
            "left out": "".join(self.skipped),
            "left out of queries": self.skipped_in_queries,
            "normalised": True,
        }


def resolve_late(encoder: LateEncoder) -> LateRecipe:
    """What an encoder comes to; reads the files of its checkpoint that say how to use it.

    Raises BadValue for a checkpoint that gives one vector for a text or none, and for lengths beyond the architecture;
    DownloadError and StoreError for one that is not here or damaged.
    """
    card = known(encoder.model) or ModelCard(encoder.model, encoder.model, kind="late", source="")
    folder = locate(encoder.model)
    checkpoint = read_checkpoint(folder)
    if (folder / "modules.json").exists():
        _refuse_other_modules(encoder.model, checkpoint)
        says = _of_modules(folder, checkpoint)
    else:
        says = _of_colbert(encoder.model, folder, checkpoint)
    bound = checkpoint.positions
    query, document = (
        _length(own, by_card, stated, bound, encoder.model)
        for own, by_card, stated in (
            (encoder.max_query, card.max_query, says.max_query),
            (encoder.max_length, card.max_document, says.max_document),
        )
    )
    says = replace(says, filler=says.filler or _mask_token(checkpoint.folder))
    if says.fill and not says.filler:
        raise BadValue(f"{checkpoint.folder}: queries are filled up with the mask token, and there is none")
    facts = {**vars(says), "max_query": query, "max_document": document}
    return LateRecipe(encoder.model, checkpoint, checkpoint.heads, **facts)


def _refuse_other_modules(model: str, checkpoint: Checkpoint) -> None:
    if checkpoint.pooling is not None:
        raise BadValue(f"'{model}' pools the vectors of tokens into one; write dense(\"{model}\")")
    if not any(head.kind == "Dense" for head in checkpoint.heads):
        raise BadValue(f"'{model}' has no layer that makes vectors of its tokens; expected a Dense module")


def _of_colbert(model: str, folder: Path, checkpoint: Checkpoint) -> _Says:
    named = checkpoint.config.get("architectures") or [""]
    said = read_object(folder / "artifact.metadata")
    if not said and named[0] != "HF_ColBERT":
        raise BadValue(
            f"'{model}' is a {named[0] or 'model'}, which gives no vectors of tokens to compare; expected ColBERT's "
            "own layout (artifact.metadata), PyLate's or that of sentence-transformers"
        )
    return _Says(
        query_marker=str(said.get("query_token_id") or "[unused0]"),
        document_marker=str(said.get("doc_token_id") or "[unused1]"),
        max_query=int(said.get("query_maxlen") or QUERY),
        max_document=int(said.get("doc_maxlen") or DOCUMENT),
        attended=bool(said.get("attend_to_mask_tokens")),
        skipped=tuple(string.punctuation) if said.get("mask_punctuation", True) else (),
    )


def _of_modules(folder: Path, checkpoint: Checkpoint) -> _Says:
    said = read_object(folder / "config_sentence_transformers.json")
    own = read_object(checkpoint.folder / "sentence_bert_config.json")
    prompts = checkpoint.query_prompt or "", checkpoint.document_prompt or ""
    pylate = any(name in said for name in PYLATE)
    mask = next((read_object(p) for p in sorted(folder.glob("*_MultiVectorMask/config.json"))), None)
    if mask is None and not pylate and said.get("model_type") != "ColBERT":
        raise BadValue(f"{folder}: nothing says how its vectors of tokens are to be used")
    if mask is not None and mask.get("keep_only_token_ids"):
        raise BadValue(f"{folder}: it keeps the vectors of certain tokens only, as models of images do")
    words = (mask or {}).get("skiplist_words")
    if words is None:
        words = said.get("skiplist_words")
    skipped = tuple(string.punctuation if words is None and mask is None else words or ())
    tasks = (mask or {}).get("skiplist_tasks") or ["document"]
    expansion = _expansion(said, own, pylate)
    found = _Says(
        query_marker=str(
            said.get("query_prefix") or ("[Q] " if pylate and "query_prefix" not in said else "")
        ),
        document_marker=str(
            said.get("document_prefix") or ("[D] " if pylate and "document_prefix" not in said else "")
        ),
        query_prompt=prompts[0],
        document_prompt=prompts[1],
        max_query=int(
            expansion.get("length") or said.get("query_length") or own.get("query_length") or QUERY
        ),
        max_document=int(said.get("document_length") or own.get("document_length") or checkpoint.limit),
        fill=bool(expansion),
        cut=expansion.get("strategy") != "min",
        attended=bool(expansion.get("attend")),
        filler=str(expansion.get("token") or ""),
        skipped=skipped,
        skipped_in_queries="query" in tasks,
    )
    return found if pylate else _with_markers(found)


def _expansion(said: Mapping[str, Any], own: Mapping[str, Any], pylate: bool) -> Mapping[str, Any]:
    """How queries are filled up, as sentence-transformers writes it; empty where they are not."""
    for facts in (own, said):
        if "query_expansion" in facts:
            return facts["query_expansion"] or {}
    if not pylate or said.get("do_query_expansion") is False:
        return {}
    attend = said.get("attend_to_expansion_tokens", said.get("attend_to_mask_tokens"))
    return {"length": said.get("query_length") or QUERY, "attend": bool(attend)}


def _with_markers(says: _Says) -> _Says:
    """Prompts that are one token in brackets, such as "[unused0] ", as what they are: markers."""

    def split(prompt: str) -> tuple[str, str]:
        alone = prompt.strip()
        marks = alone.startswith("[") and alone.endswith("]") and " " not in alone
        return (prompt, "") if marks else ("", prompt)

    query, document = split(says.query_prompt), split(says.document_prompt)
    return replace(
        says,
        query_marker=query[0],
        query_prompt=query[1],
        document_marker=document[0],
        document_prompt=document[1],
    )


def _length(own: int | None, by_card: int, stated: int, bound: int, model: str) -> int:
    if own is not None and bound and own > bound:
        raise BadValue(f"'{model}' reads {bound} tokens at most, not {own}")
    return own if own is not None else min(by_card or stated, bound or by_card or stated)


def _mask_token(folder: Path) -> str:
    """The token that masks others, as the tokenizer's settings name it."""
    said = read_object(folder / "tokenizer_config.json").get("mask_token")
    said = said or read_object(folder / "special_tokens_map.json").get("mask_token")
    named = said.get("content") if isinstance(said, dict) else said
    return str(named or "[MASK]")
