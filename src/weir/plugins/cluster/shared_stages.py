"""Stages (indexes, rankings, scores) in a store that machines share, such as S3: fetched when needed, published
when made.

    ADDRESS/COLLECTION/[indexes/]STAGE/stage.json         the record, byte for byte as in a results folder.
    ADDRESS/COLLECTION/[indexes/]STAGE/FILE.DIGEST        a file; DIGEST is a hash of its checksum in the record.
    ADDRESS/COLLECTION/[indexes/].leases/KEY/NUMBER       who makes the stage now.
    ADDRESS/COLLECTION/.vectors/STAGE/                    vectors that an index refers to, a stage of their own.

The record comes last, by a write that succeeds once; digests keep machines whose bytes differ from writing one
object.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from weir.errors import StoreError
from weir.experiment.stages import RECORD, Record, Stage, parse_record, slug
from weir.files.atomic import atomic_file, write_bytes
from weir.files.integrity import Checksum
from weir.files.leases import leased
from weir.files.text_files import Watch
from weir.plugins.cluster.object_store import Moved, ObjectStore

MEGABYTE = 1 << 20
ALONE = "alone.json"
"""The record of a stage whose files are not in the store."""


class _DamagedError(StoreError): ...


@dataclass(frozen=True, eq=False)
class SharedStages:
    """A results folder's indexes, rankings and scores in a shared store; methods raise StoreError if it cannot
    be reached.
    """

    address: str
    base: Path
    """The results folder, whose folders have the same names."""

    @cached_property
    def store(self) -> ObjectStore:
        """The shared store, opened at first use; raises BadValue for a bad address."""
        return ObjectStore.open(self.address)

    def try_out(self) -> None:
        self.store  # noqa: B018  opening it does this

    def fetch(self, stage: Stage, root: Path, watch: Watch) -> bool:
        """Download a stage's files, checked, then its record and its inputs' records; return False if missing
        or damaged.
        """
        for name, data, record in self._records(stage, root):
            if record is None or name != record.stage.folder_name:
                watch(f"{stage.kind} of {stage.name} is damaged in {self.address}", 0, 0)
                continue
            folder = root / name
            try:
                self._fetch_files(record, folder, watch)
            except _DamagedError as error:
                watch(f"{stage.kind} of {stage.name} is damaged in {self.address} ({error})", 0, 0)
                continue
            write_bytes(folder / RECORD, data)
            self._fetch_inputs(record, root)
            return True
        return False

    def has(self, stage: Stage, root: Path) -> bool:
        return any(record is not None for _, _, record in self._records(stage, root))

    def publish(self, stage: Stage, root: Path, watch: Watch) -> None:
        stored = stage.found(root)
        if stored is None or self.has(stage, root):
            return
        folder, record = stored
        progress = _progress(f"upload {record.kind}", record, watch)
        for name, checksum in record.files.items():
            written = f"{self._place(folder)}/{_object_name(name, checksum)}"
            self.store.upload(folder / name, written, progress[name])
        self.store.create(f"{self._place(folder)}/{RECORD}", (folder / RECORD).read_bytes())

    def tell(self, stage: Stage, root: Path) -> None:
        stored = stage.found(root)
        if stored is not None:
            self.store.create(f"{self._place(stored[0])}/{ALONE}", (stored[0] / RECORD).read_bytes())

    def withdraw(self, stage: Stage, root: Path) -> None:
        for name, _, _ in self._records(stage, root):
            self.store.delete(f"{self._place(root)}/{name}/{RECORD}")

    def lease(self, stage: Stage, root: Path, watch: Watch) -> AbstractContextManager[None]:
        place = "-".join([stage.key, *(slug(one, 40) for one in stage.engines if one)])
        return leased(
            self.store,
            f"{self._place(root)}/.leases/{place}",
            lambda owner: watch(
                f"{stage.kind} of {stage.name}: {owner.host or 'another machine'} makes it, waiting", 0, 0
            ),
        )

    def _place(self, folder: Path) -> str:
        return folder.relative_to(self.base).as_posix()

    def _records(self, stage: Stage, root: Path) -> Iterator[tuple[str, bytes, Record | None]]:
        place, exact = self._place(root), stage.folder_name
        data = self.store.read(f"{place}/{exact}/{RECORD}")
        if data is not None:
            record = _sound(data)
            yield exact, data, record if record is not None and stage.is_of(record) else None
        for name in self.store.names_in(place):
            if f"-{stage.key}" in name and name != exact:
                data = self.store.read(f"{place}/{name}/{RECORD}")
                record = None if data is None else _sound(data)
                if data is not None and record is not None and stage.is_of(record):
                    yield name, data, record

    def _fetch_files(self, record: Record, folder: Path, watch: Watch) -> None:
        progress, inside = _progress(f"fetch {record.kind}", record, watch), folder.resolve()
        for path in folder.rglob("*"):  # of another making
            name = path.relative_to(folder).as_posix()
            if (
                path.is_file()
                and not name.startswith((".", "scores-"))
                and name not in {RECORD, *record.files}
            ):
                path.unlink()
        for name, checksum in record.files.items():
            path = folder / name
            if not path.resolve().is_relative_to(inside):
                raise _DamagedError(f"{name} leads out of its folder")
            if _is_sound(path, checksum):
                continue
            with atomic_file(path) as temporary:
                written = f"{self._place(folder)}/{_object_name(name, checksum)}"
                if not self.store.download(written, temporary, progress[name]):
                    raise _DamagedError(f"{written} is missing")
                if not _is_sound(temporary, checksum):
                    raise _DamagedError(f"{written} changed since it was written")

    def _fetch_inputs(self, record: Record, root: Path) -> None:
        collection = self.base / self._place(root).partition("/")[0]
        for _, name in record.inputs:
            folder = Path(os.path.normpath(collection / name))
            if not folder.is_relative_to(collection) or (folder / RECORD).exists():
                continue
            place = self._place(folder)
            data = self.store.read(f"{place}/{RECORD}") or self.store.read(f"{place}/{ALONE}")
            inner = None if data is None else _sound(data)
            if data is not None and inner is not None:
                write_bytes(folder / RECORD, data)
                self._fetch_inputs(inner, root)


def _object_name(name: str, checksum: Checksum) -> str:
    text = json.dumps(checksum.to_json(), sort_keys=True)
    return f"{name}.{hashlib.blake2b(text.encode('ascii'), digest_size=8).hexdigest()}"


def _sound(data: bytes) -> Record | None:
    try:
        return parse_record(data, RECORD)
    except StoreError:
        return None


def _is_sound(path: Path, checksum: Checksum) -> bool:
    try:
        checksum.verify(path)
    except StoreError:
        return False
    return True


def _progress(what: str, record: Record, watch: Watch) -> dict[str, Moved]:
    total, before, told = sum(one.bytes for one in record.files.values()), 0, dict[str, Moved]()
    for name, checksum in record.files.items():

        def moved(count: int, before: int = before) -> None:
            watch(f"{what}, MB", (before + count) // MEGABYTE, max(total // MEGABYTE, 1))

        told[name] = moved
        before += checksum.bytes
    return told
