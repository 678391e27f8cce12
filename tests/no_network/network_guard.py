"""No test leaves this machine: a connection to another, and the name of another, is refused and noted.

The root conftest imports it, and puts its folder on the path of the Python processes that tests start; there
`sitecustomize` imports it.
"""

from __future__ import annotations

import socket
import sys
from ipaddress import ip_address

attempts: list[str] = []
"""The hosts that this process was refused since the list was last emptied."""


class NetworkRefused(OSError):
    """A test reached for another machine."""


def is_here(host: object) -> bool:
    """Whether a host is this machine: by its loopback addresses, its names for them, or an address that it has."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "localhost")
    if name in ("localhost", "0.0.0.0", "::", socket.gethostname()):
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    if address.is_loopback:
        return True
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6) as own:
        try:
            own.bind((name, 0))
        except OSError:
            return False
    return True


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook; a datagram socket that is connected sends nothing, and tells the machine's own address."""
    if event == "socket.connect":
        one, address = arguments
        host = address[0] if isinstance(address, tuple) else "localhost"  # else a path
        if isinstance(one, socket.socket) and one.type == socket.SOCK_DGRAM:
            return
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if not is_here(host):
        attempts.append(str(host))
        raise NetworkRefused(f"tests stay on this machine; this one reached for {host}")


sys.addaudithook(refuse)
