"""Objects in a store that machines share, such as S3 and others that fsspec knows."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from weir.errors import BadValue, StoreError, WeirError, is_shortage, require
from weir.files.masks import without_secrets
from weir.settings import RECORD_BYTES

CONNECT_SECONDS = 10
"""Timeout of a connection to S3; each request is retried several times."""

Moved = Callable[[int], None]
"""Called with the bytes of a file transferred so far."""


@dataclass(frozen=True, eq=False)
class ObjectStore:
    """Objects below an address such as s3://bucket/prefix; each is written whole, and by one machine
    (If-None-Match).

    Methods raise StoreError if the store fails or refuses.
    """

    address: str
    files: Any
    """fsspec's file system."""
    root: str

    @staticmethod
    def open(address: str) -> ObjectStore:
        """Return the store at an address, after a test that it can write, write conditionally and delete.

        Raises BadValue for a bad address or one with credentials, MissingExtra, and StoreError if the test
        fails.
        """
        parts = urlsplit(address)
        if parts.scheme in ("file", "local"):
            raise BadValue(
                f"{address}: a folder that machines share is named as a folder, without {parts.scheme}://"
            )
        if "@" in parts.netloc or parts.query:
            raise BadValue(
                "the address of a store holds a name, a password or a query; expected such as s3://bucket/prefix, and "
                "credentials where its package looks for them, such as AWS_ACCESS_KEY_ID"
            )
        if not address.startswith(f"{parts.scheme}://") or not (parts.netloc + parts.path).strip("/"):
            raise BadValue(f"{address}: not the address of a store; expected such as s3://bucket/prefix")
        core, options = require("fsspec.core", extra="cloud"), dict[str, Any]()
        if parts.scheme in ("s3", "s3a"):
            require("s3fs", extra="cloud")
            options = {"config_kwargs": {"connect_timeout": CONNECT_SECONDS}}
        with _reached(address):
            try:
                files, root = core.url_to_fs(address, use_listings_cache=False, **options)
            except (ImportError, ValueError) as error:  # names the package, or says that there is none
                raise BadValue(f"{address}: {error}") from None
        store = ObjectStore(address.rstrip("/"), files, str(root).rstrip("/"))
        store._probe()
        return store

    def _probe(self) -> None:
        name = f".probe-{secrets.token_hex(8)}"
        self.create(name, b"1")
        try:
            honoured = not self.create(name, b"2") and self.read(name) == b"1"
        finally:
            self.delete(name)
        if not honoured:
            raise StoreError(
                f"{self.address}: the store ignores conditional writes (If-None-Match); machines cannot share it"
            )

    def create(self, name: str, data: bytes) -> bool:
        with self._reached():
            try:
                self.files.pipe_file(f"{self.root}/{name}", data, mode="create")
            except FileExistsError:
                return False
            except OSError as error:
                if not _is_condition(error):
                    raise
                return False
            return True

    def renew(self, name: str, data: bytes) -> None:
        with self._reached():
            self.files.pipe_file(f"{self.root}/{name}", data)

    def read(self, name: str) -> bytes | None:
        """Return an object's bytes; None if missing. Raises StoreError for more than RECORD_BYTES."""
        with self._reached():
            try:
                length = self.files.size(f"{self.root}/{name}")
                if length is not None and length > RECORD_BYTES:
                    long = f"{length:,} bytes; expected a record, of at most {RECORD_BYTES:,}"
                    raise StoreError(f"{self.address}/{name}: found {long}")
                return bytes(self.files.cat_file(f"{self.root}/{name}"))
            except FileNotFoundError:
                return None

    def age(self, name: str) -> float | None:
        clock = f".clock-{secrets.token_hex(8)}"
        with self._reached():
            self.files.pipe_file(f"{self.root}/{clock}", b"now")
            try:
                now, then = (self.files.modified(f"{self.root}/{one}") for one in (clock, name))
            except FileNotFoundError:
                return None
            finally:
                self.delete(clock)
        return float((now - then).total_seconds())

    def names_in(self, folder: str) -> list[str]:
        with self._reached():
            try:
                paths = self.files.ls(f"{self.root}/{folder}", detail=False)
            except FileNotFoundError:
                return []
        return [path.rstrip("/").rpartition("/")[2] for path in paths]

    def delete(self, name: str) -> None:
        with self._reached(), suppress(FileNotFoundError):
            self.files.rm_file(f"{self.root}/{name}")

    def upload(self, path: Path, name: str, moved: Moved) -> None:
        """Upload a file as an object, which appears when complete.

        moved: called with the bytes so far.
        """
        with self._reached():
            self.files.put_file(str(path), f"{self.root}/{name}", callback=_callback(moved))

    def download(self, name: str, path: Path, moved: Moved) -> bool:
        """Download an object to a file; return False if it is missing.

        moved: called with the bytes so far.
        """
        with self._reached():
            try:
                self.files.get_file(f"{self.root}/{name}", str(path), callback=_callback(moved))
            except FileNotFoundError:
                return False
            return True

    @contextmanager
    def _reached(self) -> Iterator[None]:
        with _reached(self.address):
            yield


def _callback(moved: Moved) -> Any:  # noqa: ANN401 - fsspec's
    return require("fsspec.callbacks", extra="cloud").Callback(
        hooks={"moved": lambda size, value, **_: moved(int(value))}
    )


def _is_condition(error: OSError) -> bool:
    text = f"{error} {error.__cause__}"
    return any(
        word in text for word in ("PreconditionFailed", "ConditionalRequestConflict", "conditionNotMet")
    )


@contextmanager
def _reached(address: str) -> Iterator[None]:
    try:
        yield
    except WeirError:
        raise
    except Exception as error:
        if is_shortage(error) and not isinstance(error, PermissionError):
            raise
        text = without_secrets(" ".join(str(error).split()))
        raise StoreError(f"{address}: {type(error).__name__}: {text[:200]}") from None
