"""The guard that keeps tests on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.unit.model_servers import LocalHandler, running

OTHERS = ["192.0.2.1", "2001:db8::1"]


@pytest.mark.parametrize("host", [*OTHERS, "weir.example"])
def test_another_machine_is_refused_and_noted(host):
    guard = sys.modules["network_guard"]
    with pytest.raises(guard.NetworkRefused, match=f"this one reached for {host}"):
        socket.create_connection((host, 80), timeout=1)
    assert guard.attempts == [host]
    guard.attempts.clear()


def test_a_process_that_a_test_starts_is_refused_too():
    program = f"import socket; socket.create_connection(({OTHERS[0]!r}, 80), timeout=1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "NetworkRefused: tests stay on this machine" in done.stderr


def test_this_machine_is_reached():
    with running(LocalHandler) as url:
        port = int(url.rpartition(":")[2])
        for host in ("127.0.0.1", "localhost"):
            socket.create_connection((host, port), timeout=5).close()
    socket.getaddrinfo(socket.gethostname(), None)
