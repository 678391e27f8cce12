"""Encode texts on several devices, with a process for each."""

from __future__ import annotations

import json
import os
import queue
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import IO, cast

import numpy as np

from weir.core.strings import Float32
from weir.errors import BadValue
from weir.models.encoder import Encoder, Loaded
from weir.settings import settings

PIECES_PER_DEVICE = 4
"""Parts of the texts per device, so that no device waits long for the slowest."""
HEAD = struct.Struct("<qq")
"""Rows and columns of a response; or -1 and the length of an error message."""


def devices(setting: str) -> list[str]:
    """Return the devices in a setting such as "cuda:0,cuda:1"; raises BadValue for an empty name."""
    names = [part.strip() for part in setting.split(",")]
    if not all(names):
        raise BadValue(f"device is '{setting}'; expected such as cuda:0,cuda:1")
    return names


@contextmanager
def on_several(loaded: Loaded, names: Sequence[str], size: int) -> Iterator[Callable[[list[str]], Float32]]:
    """Yield a function that encodes documents, float32[texts, d], in one process per device, for use within the
    block.

    names: devices, such as "cuda:0".
    size: texts sent at once.

    The function raises BadValue, naming the device, if a process fails.
    """
    threads = max(1, settings().threads // max(1, sum(n == "cpu" for n in names)))
    workers = [_Worker.begun(loaded.encoder, name, threads) for name in names]
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def encode_piece(texts: list[str]) -> Float32:
        worker = idle.get()
        try:
            return worker.encode(texts)
        finally:
            idle.put(worker)

    def encode(texts: list[str]) -> Float32:
        pieces = [texts[start : start + size] for start in range(0, len(texts), size)]
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                return np.concatenate(list(pool.map(encode_piece, pieces)))
            except BaseException:  # an interrupt too: the pool would wait for their answers
                for worker in workers:
                    worker.process.kill()
                raise

    try:
        yield encode
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
            for pipe in (worker.process.stdin, worker.process.stdout):
                with suppress(OSError):  # what was to be sent when it ended
                    cast(IO[bytes], pipe).close()


@dataclass(frozen=True, eq=False)
class _Worker:
    device: str
    process: subprocess.Popen[bytes]

    @staticmethod
    def begun(encoder: Encoder, device: str, threads: int) -> _Worker:
        command = [sys.executable, "-m", "weir.models.multi_device", json.dumps(asdict(encoder)), device]
        environment = os.environ | {"WEIR_THREADS": str(threads), "WEIR_DEVICE": device}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            env=environment,
            start_new_session=True,  # so that an interrupt is ours to handle
        )
        return _Worker(device, process)

    def encode(self, texts: list[str]) -> Float32:
        request, answer = cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)
        data = json.dumps(texts).encode("utf-8")
        try:
            request.write(HEAD.pack(len(data), 0) + data)
            request.flush()
        except OSError:
            raise self._ended() from None
        rows, columns = HEAD.unpack(self._read(answer, HEAD.size))
        if rows < 0:
            raise BadValue(f"{self.device}: {self._read(answer, columns).decode('utf-8')}")
        return np.frombuffer(self._read(answer, 4 * rows * columns), "<f4").reshape(rows, columns)

    def _read(self, answer: IO[bytes], count: int) -> bytes:
        data = answer.read(count)
        if len(data) < count:
            raise self._ended()
        return data

    def _ended(self) -> BadValue:
        return BadValue(
            f"the process that encodes on {self.device} ended with code {self.process.wait()}; what was encoded is kept"
        )


def _serve(encoder: Encoder, device: str) -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    loaded: Loaded | None = None
    while head := sys.stdin.buffer.read(HEAD.size):
        texts = json.loads(sys.stdin.buffer.read(HEAD.unpack(head)[0]))
        try:
            loaded = loaded or encoder.load(device)
            vectors = loaded.encode(texts, "document")
            out.write(HEAD.pack(*vectors.shape) + np.ascontiguousarray(vectors, "<f4").tobytes())
        except Exception as error:  # noqa: BLE001 - whatever it is, the process that asked says it in one line
            message = " ".join(f"{error}".split()).encode("utf-8") or type(error).__name__.encode()
            out.write(HEAD.pack(-1, len(message)) + message)
        out.flush()


if __name__ == "__main__":
    _serve(Encoder(**json.loads(sys.argv[1])), sys.argv[2])
