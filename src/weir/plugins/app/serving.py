"""Serve at a host and port, and start a browser there."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

import uvicorn

from weir.errors import BadValue
from weir.experiment.audit_subjects import subjects_of
from weir.files.label_files import read_labels
from weir.plugins.app.folder import Folder
from weir.plugins.app.judging import pages as judging
from weir.plugins.app.judging.rooms import Rooms, sheets_of
from weir.plugins.app.pages import PARTS, WORDS
from weir.plugins.app.server import Access, Page, application, hosts_of, tokens_of

TOKEN_CHARACTERS = 16
SOLE_JUDGE = "me"
"""The judge's name if none is given."""


def serve(
    root: Path,
    say: Callable[[str], None],
    *,
    host: str = "127.0.0.1",
    ports: Sequence[int] = (4747, 0),
    token: str = "",
    judges: Sequence[str] = (),
    collection: str | None = None,
    suggestions: str | None = None,
    read_only: bool = False,
    browser: bool = True,
) -> None:
    """Serve the pages of a results folder, or of a folder of pools to judge, until interrupted; pass each
    judge's URL to `say` first.

    host: listen here. Another than loopback needs `token`.
    ports: the first free one is taken. 0 is any.
    token: opens the pages, 16 characters at least. By default it is drawn anew.
    judges: names of judges, who each get an address. By default one, me.
    collection: the collection with the texts of a pool. By default they are those on its sheet.
    suggestions: labels of a model to offer to judges, kept apart.
    read_only: take no judgments.
    browser: open the pages in a browser.

    Raises BadValue for an unavailable host or port, a short token, and a host that other machines reach
    without a token.
    """
    hosts = hosts_of(host)
    if token and len(token) < TOKEN_CHARACTERS:
        raise BadValue(f"`token` has {len(token)} characters; expected {TOKEN_CHARACTERS} at least")
    if "*" in hosts and not token:
        raise BadValue(f"`host={host!r}` is reached by others; name a `token` that they need")
    folder = Folder(root)
    offered = read_labels(suggestions) if suggestions else None
    judges = judges or (() if read_only else (SOLE_JUDGE,))
    if sheets_of(root):
        [texts] = subjects_of([collection]) if collection else [None]
        rooms = Rooms.of_pools(root, texts, offered, judges)
        parts = [*judging.PAGES, Page("/", "judging/rooms.html", judging.start, judges=True)]
    else:
        folder.results()
        rooms, parts = Rooms.beside(root, offered, judges), [*PARTS, *judging.PAGES]
    listening = _listening(host, ports)
    port = listening.getsockname()[1]
    tokens = tokens_of(token, judges)
    access = Access(tokens, hosts, read_only, f"weir-{port}")
    server = uvicorn.Server(
        uvicorn.Config(
            application(folder, parts, access, WORDS, rooms, ahead=True), log_level="warning", access_log=False,
            server_header=False, proxy_headers=False, lifespan="off",
        )
    )  # fmt: skip
    shown = f"[{host}]" if ":" in host else host
    place = f"http://{socket.gethostname() if host in ('0.0.0.0', '::') else shown}:{port}/"
    for number, (own, name) in enumerate(tokens.items()):
        start = place if number == 0 else f"{place}judge"  # judges see no other page
        say(f"{root}{f' for {name}' if name else ''}: {start}?token={own}")
    say("Ctrl-C ends it")
    if browser:
        ticket = secrets.token_urlsafe(32)
        access.tickets.add(ticket)
        Thread(target=webbrowser.open, args=(f"{place}?token={ticket}",), daemon=True).start()
    try:
        server.run(sockets=[listening])
    finally:
        rooms.close()


def _listening(host: str, ports: Sequence[int]) -> socket.socket:
    for port in ports:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((host, port), family=family)
        except OSError as error:
            reason = error
    raise BadValue(
        f"cannot listen at {host}, port {ports[0]}: {reason.strerror or reason}; name another `port`"
    )
