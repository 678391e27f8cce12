"""Real search servers on this machine, started from ../shared/engines for the length of a block."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

READY = {
    "elasticsearch": "/",
    "opensearch": "/",
    "opensearch3": "/",
    "solr": "/solr/admin/info/system",
    "weaviate": "/v1/.well-known/ready",
}
START_SECONDS = 120
BRIEF_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""A server of a minute does not earn back what Java's second compiler costs."""


@dataclass
class SearchEngine:
    """A server, which may be killed and started again on the same data."""

    name: str
    script: Path
    folder: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it is ready; skips the test where there is no Java for it."""
        command = [str(self.script), self.name, str(self.port), str(self.folder)]
        log = self.folder.with_suffix(".log")
        variables = {**os.environ, "ENGINE_HEAP": "512m"} | BRIEF_JAVA
        if self.settings:
            variables["ENGINES_CACHE"] = str(self._with_settings())
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env=variables)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                text = log.read_text(errors="replace")
                if "needs a Java" in text:
                    pytest.skip(f"{self.name}: {text.strip()}")
                pytest.fail(f"{self.name} ended with {self.process.returncode}: {text[-2000:]}")
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url + READY[self.name], timeout=5):
                return
            time.sleep(0.1)
        pytest.fail(f"{self.name} is not ready after {START_SECONDS} s")

    def _with_settings(self) -> Path:
        """A folder of engines with this one alone, whose source names the settings."""
        unpacked = Path(os.environ.get("ENGINES_CACHE", "~/.cache/engines")).expanduser() / self.name
        if not (unpacked / ".unpacked").exists():
            pytest.skip(f"{self.name} is unpacked by the tests that start it as it is")
        cache = self.folder.with_suffix(".cache")
        if not cache.exists():
            (cache / self.name).mkdir(parents=True)
            for path in unpacked.iterdir():
                (cache / self.name / path.name).symlink_to(path)
            [source] = (cache / self.name).glob("*Server.java")
            text, single = source.read_text(), 'settings.put("discovery.type", "single-node");'
            assert single in text
            puts = "".join(f'settings.put("{name}", "{value}");' for name, value in self.settings.items())
            source.unlink()
            source.write_text(text.replace(single, puts))
        return cache

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait for its end."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.send_signal(signal.SIGCONT)  # a stopped one would not end
            self.process.wait(60)

    def ask(self, method: str, path: str, body: object = None, lines: list | None = None) -> dict:
        """What the server answers to somebody who is not Weir; lines: of JSON, for _bulk."""
        data = None if body is None else json.dumps(body).encode()
        if lines is not None:
            data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        kind = "application/json" if lines is None else "application/x-ndjson"
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


@contextlib.contextmanager
def engine_running(name: str, shared: Path, folder: Path, **settings: str) -> Iterator[SearchEngine]:
    """A server that runs as long as the block; skips the test, with the reason, where it cannot run here.

    settings: of an OpenSearch's node, __ for each dot in their names.
    """
    script = shared / "engines" / "start"
    if not script.is_file():
        pytest.skip("../shared/engines is not there: real search servers are not part of the project")
    folder.mkdir(parents=True)
    dotted = {setting.replace("__", "."): value for setting, value in settings.items()}
    engine = SearchEngine(name, script, folder, _free_port(), dotted)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()


def _free_port() -> int:
    """A port that is free, as are those that such servers use beside it."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError, OverflowError):
            first = stack.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            for beside in (*range(port + 1, port + 6), port + 100):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", beside))
            return port
