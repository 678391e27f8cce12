"""Stages in a store that machines share, such as S3: fetched one by one as they are needed, published as they are made.

    <address>/<collection>/[indexes/]<stage>/stage.json         the record, byte for byte as in a results folder
    <address>/<collection>/[indexes/]<stage>/<file>.<digest>    a file; the digest is that of its checksum in the record
    <address>/<collection>/[indexes/].leases/<key>/<number>     who makes the stage now
    <address>/<collection>/.vectors/<stage>/                    vectors that an index refers to, a stage of their own

The files come first and the record last, by a write that succeeds once: what has no record is not there. A file bears
the digest of its checksum, so that two machines whose bytes differ, as those of two processors may, never write one
object.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from weir.errors import StoreError
from weir.experiment.stages import RECORD, Record, Stage, parse_record, slug
from weir.files.atomic import atomic_file, write_bytes
from weir.files.integrity import Checksum
from weir.files.leases import leased
from weir.files.object_store import Moved, ObjectStore

Watch = Callable[[str, int, int], None]
MEGABYTE = 1 << 20
ALONE = "alone.json"
"""The record of a stage whose files are not in the store."""


class _DamagedError(StoreError):
    """What the store holds is not what was written."""


@dataclass(frozen=True, eq=False)
class SharedStages:
    """The stages below an address. base: the results folder, whose folders have the same names.

    All methods raise StoreError, in one line, for a store that cannot be reached.
    """

    address: str
    base: Path

    @cached_property
    def store(self) -> ObjectStore:
        """The store, tried out when it is first asked for; raises as `ObjectStore.open`."""
        return ObjectStore.open(self.address)

    def fetch(self, stage: Stage, root: Path, watch: Watch) -> bool:
        """Bring a stage below `root`: its files, each checked before it has its name, then its record.

        False where the store has no such stage, or has it damaged, which is told. Files that are here are not fetched.
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
        """Whether the store has a record of a stage."""
        return any(record is not None for _, _, record in self._records(stage, root))

    def publish(self, stage: Stage, root: Path, watch: Watch) -> None:
        """Upload the files of a stage that is sound below `root`, then its record, unless the store has the stage."""
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
        """Upload the record alone of a stage whose files other machines make themselves: what it cost stands there."""
        stored = stage.found(root)
        if stored is not None:
            self.store.create(f"{self._place(stored[0])}/{ALONE}", (stored[0] / RECORD).read_bytes())

    def withdraw(self, stage: Stage, root: Path) -> None:
        """Remove the records of a stage, whose files are damaged; called by the one who makes it anew."""
        for name, _, _ in self._records(stage, root):
            self.store.delete(f"{self._place(root)}/{name}/{RECORD}")

    def lease(self, stage: Stage, root: Path, watch: Watch) -> AbstractContextManager[None]:
        """Hold the right to make a stage, of all machines; waits for it."""
        place = "-".join([stage.key, *(slug(one, 40) for one in stage.engines if one)])
        return leased(
            self.store,
            f"{self._place(root)}/.leases/{place}",
            lambda owner: watch(
                f"{stage.kind} of {stage.name}: {owner.host or 'another machine'} makes it, waiting", 0, 0
            ),
        )

    def _place(self, folder: Path) -> str:
        """What a folder of results is called in the store."""
        return folder.relative_to(self.base).as_posix()

    def _records(self, stage: Stage, root: Path) -> Iterator[tuple[str, bytes, Record | None]]:
        """(name, bytes, record) of what the store has of a stage under any name; no record where it is damaged."""
        place, exact = self._place(root), stage.folder_name
        data = self.store.read(f"{place}/{exact}/{RECORD}")
        if data is not None:
            record = _sound(data)
            yield exact, data, record if record is not None and stage.is_of(record) else None
        for name in self.store.names(place):
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
        """Bring the records, without files, of the stages that a stage was made from: costs are read from them."""
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
    """What a file of a stage is called in the store."""
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
    """For each file of a record what tells, in megabytes of all of them, how much has been moved."""
    total, before, told = sum(one.bytes for one in record.files.values()), 0, dict[str, Moved]()
    for name, checksum in record.files.items():

        def moved(count: int, before: int = before) -> None:
            watch(f"{what}, MB", (before + count) // MEGABYTE, max(total // MEGABYTE, 1))

        told[name] = moved
        before += checksum.bytes
    return told
