"""Queries with instructions of their own: each behind the prompt in which {task} is its instruction."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from weir.core.corpus import Queries
from weir.core.strings import Strings
from weir.encode.api.hosted import LoadedHosted
from weir.encode.encoder import Encoder, Loaded
from weir.encode.object_encoder import LoadedObject
from weir.encode.recipes.encoder_recipe import TASK, filled_prompt, resolve

__all__ = ["LoadedEncoder", "instructed"]

LoadedEncoder: TypeAlias = Loaded | LoadedHosted | LoadedObject


def instructed(loaded: LoadedEncoder, queries: Queries) -> tuple[LoadedEncoder, Strings]:
    """What encodes queries, and their texts: with instructions of their own, an encoder without a prompt, and texts
    behind theirs; as they are where no query has any, or where the encoder's prompt has no place for one."""
    metadata = queries.metadata
    if metadata is None or metadata.instruction is None:
        return loaded, queries.text
    prompt = _prompt(loaded)
    if TASK not in prompt:
        return loaded, queries.text
    texts = Strings.of(
        filled_prompt(prompt, own) + text
        for own, text in zip(metadata.instruction, queries.text, strict=True)
    )
    return _bare(loaded), texts


def _prompt(loaded: LoadedEncoder) -> str:
    """The prompt of queries, {task} in it."""
    if isinstance(loaded, Loaded):
        return _template(loaded.encoder)
    return loaded.encoder.query_prompt if isinstance(loaded, LoadedHosted) else ""


@lru_cache(maxsize=16)
def _template(encoder: Encoder) -> str:
    """The prompt of an encoder's queries before anything is filled in, from the files of its checkpoint."""
    return resolve(encoder, "", TASK).query_prompt


def _bare(loaded: LoadedEncoder) -> LoadedEncoder:
    if isinstance(loaded, Loaded):
        return replace(loaded, recipe=replace(loaded.recipe, query_prompt=""))
    if isinstance(loaded, LoadedHosted):
        return replace(loaded, encoder=replace(loaded.encoder, query_prompt=""))
    return loaded
