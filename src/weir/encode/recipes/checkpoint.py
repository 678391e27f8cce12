"""A checkpoint on disk: what its own files say about how to encode with it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.errors import BadValue, StoreError

__all__ = [
    "Checkpoint",
    "Head",
    "bare_checkpoint",
    "declared_prompts",
    "inner_folder",
    "read_checkpoint",
    "read_object",
]

QUERY_NAMES = ("query", "search_query", "s2p_query")
DOCUMENT_NAMES = ("document", "passage", "corpus", "search_document")
POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
ROBERTA = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Architectures whose positions start behind the number of the padding token."""


@dataclass(frozen=True)
class Head:
    """A layer behind pooling: "Dense" (with an activation) or "LayerNorm", its weights in `folder`."""

    kind: str
    folder: Path
    activation: str = ""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What the files of a checkpoint say.

    root: the whole checkpoint's folder; folder: the transformer's in it; config: its config.json; pooling: mean, cls,
    last, max, or None where nothing says so; normalise: whether a last step makes vectors of length 1; heads: layers
    behind pooling; similarity: "dot", "cosine" or None; prompts: declared prompts by name; query_prompt and
    document_prompt: those meant for queries and documents, None where nothing is declared; limit: tokens of a text at
    most; positions: tokens that the architecture can tell apart, 0 where there is no such bound.
    """

    root: Path
    folder: Path
    config: dict[str, Any]
    pooling: str | None
    normalise: bool
    heads: tuple[Head, ...]
    similarity: str | None
    prompts: dict[str, str]
    query_prompt: str | None
    document_prompt: str | None
    limit: int
    positions: int

    @property
    def architecture(self) -> str:
        """The architecture's name in transformers, such as "bert"."""
        return str(self.config.get("model_type", ""))


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read what a checkpoint's files say; raises StoreError where they are damaged or of an unknown form."""
    modules = _modules(folder)
    path = next((p for kind, p in modules if kind == "Transformer"), folder)
    config = read_object(path / "config.json", needed=True)
    pooling = next((_pooling(p) for kind, p in modules if kind == "Pooling"), None)
    settings = read_object(folder / "config_sentence_transformers.json")
    positions = _positions(config)
    heads = tuple(_head(kind, p) for kind, p in modules if kind in ("Dense", "LayerNorm"))
    return Checkpoint(
        root=folder,
        folder=path,
        config=config,
        pooling=pooling,
        normalise=any(kind == "Normalize" for kind, _ in modules),
        heads=heads,
        similarity={"cosine": "cosine", "dot": "dot"}.get(str(settings.get("similarity_fn_name"))),
        limit=_limit(path, positions),
        positions=positions,
        **declared_prompts(folder),
    )


def declared_prompts(folder: Path) -> dict[str, Any]:
    """The fields of a Checkpoint that say what is put before texts, as sentence-transformers' settings declare it."""
    settings = read_object(folder / "config_sentence_transformers.json")
    prompts = {str(k): str(v) for k, v in (settings.get("prompts") or {}).items()}
    default = prompts.get(str(settings.get("default_prompt_name")))
    return {
        "prompts": prompts,
        "query_prompt": next((prompts[n] for n in QUERY_NAMES if n in prompts), default),
        "document_prompt": next((prompts[n] for n in DOCUMENT_NAMES if n in prompts), default),
    }


def bare_checkpoint(folder: Path, root: Path) -> Checkpoint:
    """What a transformer's own files say, whatever steps may stand behind it; raises as `read_checkpoint` does.

    root: the folder of the checkpoint that it is a part of.
    """
    config = read_object(folder / "config.json", needed=True)
    positions = _positions(config)
    limit = _limit(folder, positions)
    return Checkpoint(root, folder, config, None, False, (), None, {}, None, None, limit, positions)


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The steps of a sentence-transformers checkpoint: their kinds and folders; none for a plain one."""
    path = folder / "modules.json"
    if not path.exists():
        return []
    known_kinds = ("Transformer", "Pooling", "Normalize", "Dense", "LayerNorm", "MultiVectorMask")
    try:
        steps = json.loads(path.read_text(encoding="utf-8"))
        found = [(str(s["type"]).rpartition(".")[2], inner_folder(folder, s["path"])) for s in steps]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: damaged ({error}); fetch the checkpoint again") from None
    for kind, _ in found:
        if kind not in known_kinds:
            raise BadValue(f"{path}: a step '{kind}' is not known; expected {', '.join(known_kinds)}")
    return found


def inner_folder(folder: Path, name: object) -> Path:
    """A folder that a checkpoint's own file names; raises ValueError for one outside of the checkpoint."""
    found = folder / str(name)
    if not Path(os.path.normpath(found)).is_relative_to(os.path.normpath(folder)):
        raise ValueError(f"'{name}' leads out of the checkpoint")
    return found


def _pooling(folder: Path) -> str:
    facts = read_object(folder / "config.json", needed=True)
    if facts.get("include_prompt") is False:
        raise BadValue(f"{folder}: pooling without the prompt's tokens is not supported")
    chosen = [name for key, name in POOLINGS.items() if facts.get(key)]
    if isinstance(facts.get("pooling_mode"), str):
        chosen = [{"lasttoken": "last"}.get(facts["pooling_mode"], facts["pooling_mode"])]
    if len(chosen) != 1 or chosen[0] not in POOLINGS.values():
        raise BadValue(
            f"{folder}: pooling by {chosen or 'an unknown rule'}; expected {set(POOLINGS.values())}"
        )
    return chosen[0]


def _head(kind: str, folder: Path) -> Head:
    facts = read_object(folder / "config.json", needed=True)
    activation = str(facts.get("activation_function", "")).rpartition(".")[2]
    if activation not in ("", "Identity", "Tanh"):
        raise BadValue(f"{folder}: activation '{activation}' is not supported; expected Identity or Tanh")
    return Head(kind, folder, activation)


def _positions(config: dict[str, Any]) -> int:
    """Tokens whose places the architecture can tell apart; 0 for no bound of its own."""
    size = config.get("max_position_embeddings") or config.get("n_positions") or 0
    offset = int(config.get("pad_token_id") or 0) + 1 if config.get("model_type") in ROBERTA else 0
    return max(int(size) - offset, 0)


def _limit(folder: Path, positions: int) -> int:
    """Tokens of a text at most, as the checkpoint's settings say."""
    for path in sorted(folder.glob("sentence_*_config.json")):
        stated = read_object(path).get("max_seq_length")
        if isinstance(stated, int) and stated > 0:
            return min(stated, positions) if positions else stated
    stated = read_object(folder / "tokenizer_config.json").get("model_max_length")
    bounds = [int(n) for n in (stated, positions) if isinstance(n, (int, float)) and 0 < n < 1e6]
    return min(bounds, default=512)


def read_object(path: Path, needed: bool = False) -> dict[str, Any]:
    """A JSON object in a file, empty where it is neither there nor needed; raises StoreError for anything else."""
    if not path.exists() and not needed:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); fetch the checkpoint again") from None
    if not isinstance(value, dict):
        raise StoreError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value
