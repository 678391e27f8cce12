"""Unpacks a zip from elsewhere without trusting it."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from weir.errors import FormatError, StoreError
from weir.io.storage.atomic import atomic_dir

__all__ = ["extract"]

_ALWAYS_FINE = 1 << 27  # bytes: nothing so small is a bomb
_RATIO = 200  # unpacked to packed; collections of texts reach 10, their judgments 20
_SHOWN = 80  # characters of a member's name in a message
_LEVELS = 32  # folders that a member may lie in, one in another


def extract(archive: Path, to: Path) -> None:
    """Unpack a zip into a folder that appears whole or not at all.

    When all members lie in one folder, as in BEIR's archives, that folder becomes `to`.
    Raises FormatError for a damaged zip and for members that lead outside (absolute, `..`, links), lie more than
    32 folders deep, occur twice, are encrypted, or would unpack to more than 200 times the archive; StoreError when
    the disk refuses or has too little room.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            members = [m for m in source.infolist() if not m.is_dir()]
            targets = _checked(members, archive)
            _check_size(sum(m.file_size for m in members), archive, to)
            with atomic_dir(to) as folder:
                for member, target in zip(members, targets, strict=True):
                    path = folder / target
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with source.open(member) as packed, path.open("wb") as unpacked:
                        shutil.copyfileobj(packed, unpacked, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise FormatError(archive, f"a damaged zip ({error})", "a whole one; fetch it again") from None


def _checked(members: list[zipfile.ZipInfo], archive: Path) -> list[PurePosixPath]:
    """Where each member goes, relative to the destination."""
    for member in members:
        if reason := _refused(member):
            found = f"the member '{member.orig_filename[:_SHOWN]}', {reason}"
            raise FormatError(
                archive, found, "plain files inside the archive's own folder; nothing was unpacked"
            )
    targets = [PurePosixPath(m.filename) for m in members]
    if len({str(t).casefold() for t in targets}) != len(targets):
        raise FormatError(archive, "two members of one name", "each file once; nothing was unpacked")
    tops = {t.parts[0] for t in targets}
    if len(tops) == 1 and all(len(t.parts) > 1 for t in targets):
        return [PurePosixPath(*t.parts[1:]) for t in targets]
    return targets


def _refused(member: zipfile.ZipInfo) -> str:
    name = member.orig_filename.replace("\\", "/")
    mode = member.external_attr >> 16
    if name.startswith("/") or name[1:2] == ":":
        return "an absolute path"
    if ".." in name.split("/"):
        return "which leads outside"
    if name.count("/") > _LEVELS:
        return f"which lies more than {_LEVELS} folders deep"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "a link or a special file"
    if member.flag_bits & 1:
        return "which is encrypted"
    return ""


def _check_size(unpacked: int, archive: Path, to: Path) -> None:
    packed = archive.stat().st_size
    if unpacked > max(_ALWAYS_FINE, _RATIO * packed):
        raise FormatError(
            archive, f"{packed:,} bytes that unpack to {unpacked:,}", f"at most {_RATIO} times as many"
        )
    near = next(p for p in (to, *to.parents) if p.exists())
    free = shutil.disk_usage(near).free
    if unpacked > free:
        raise StoreError(
            f"cannot unpack {archive.name} into {to}: needs {unpacked:,} bytes, {free:,} are free"
        )
