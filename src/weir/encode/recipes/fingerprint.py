"""A hash over every file of a checkpoint that can move a number: weights, heads, tokenizer, settings."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

from weir.encode.recipes.checkpoint import Checkpoint
from weir.errors import StoreError
from weir.io.storage.atomic import write_json
from weir.settings import settings

__all__ = ["deciding_files", "fingerprint"]

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


def deciding_files(root: Path) -> list[Path]:
    """Every file below a checkpoint's folder that can move a number, sorted by its path.

    Left out are only kinds of files that no engine of Weir reads, and weights in the older format where the same
    folder has safetensors, which are then the ones that are read.
    """
    found = []
    for path in root.rglob("*"):
        inside = path.relative_to(root)
        if path.suffix.lower() in IDLE_SUFFIXES or path.name in IDLE_NAMES or not path.is_file():
            continue
        if IDLE_FOLDERS & set(inside.parts[:-1]):
            continue
        if path.match("pytorch_model*.bin*") and any(path.parent.glob("*.safetensors")):
            continue
        found.append(path)
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def fingerprint(checkpoint: Checkpoint) -> str:
    """The hash of a checkpoint's deciding files, by their paths below its root and their contents.

    Remembered in Weir's home by the name, size, times and inode of each of them. Raises StoreError for a file that
    cannot be read.
    """
    root = checkpoint.root.resolve()
    try:
        files = deciding_files(root)
        seen, newest = _stamps(root, files)
        key = hashlib.blake2b(json.dumps([str(root), seen]).encode("utf-8"), digest_size=16).hexdigest()
        memory = settings().home / "encoders" / f"{key}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            return str(json.loads(memory.read_text(encoding="utf-8"))["fingerprint"])
        found = _hashed(root, files)
        settled = newest + SETTLED_SECONDS < time.time() and _stamps(root, files)[0] == seen
    except OSError as error:
        raise StoreError(f"{root}: {error.strerror or error}; fetch the checkpoint again") from None
    if settled:
        with suppress(StoreError):  # a home that cannot be written to means hashing again
            write_json(memory, {"folder": str(root), "fingerprint": found}, durable=False)
    return found


def _stamps(root: Path, files: list[Path]) -> tuple[list[tuple[str, int, int, int, int]], float]:
    """(what tells that each file is unchanged, when the last of them changed)."""
    stats = [(path.relative_to(root).as_posix(), path.stat()) for path in files]
    seen = [(name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for name, s in stats]
    return seen, max((s.st_ctime for _, s in stats), default=0.0)


def _hashed(root: Path, files: list[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        name = path.relative_to(root).as_posix().encode("utf-8")
        digest.update(b"%d %d " % (len(name), path.stat().st_size) + name)
        with path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
    return digest.hexdigest()
