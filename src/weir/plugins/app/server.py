"""A server of pages as HTML and JSON, and of forms; requests need a token."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weir.core import rounding
from weir.core.charts import icon_svg, mark_svg, tint
from weir.core.frames import json_value
from weir.errors import StoreError, UnknownName, WeirError
from weir.plugins.app.folder import Folder
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.report.page import style_sheet

POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
BODY_BYTES = 1 << 20
"""Largest body of a POST request."""
SAFE = ("GET", "HEAD")


# ----------
# Pages, of which each part of the slice has a list.


@dataclass(frozen=True, eq=False)
class Visit:
    """A request as page functions receive it."""

    folder: Folder
    judge: str
    """Name of the judge by token; "" for an unnamed visitor."""
    names: Mapping[str, str]
    """{name in braces in the route's path: value}."""
    asked: Sequence[tuple[str, str]]
    """Query parameters of the URL, in order."""
    given: Mapping[str, str]
    """Fields of a POST request."""
    rooms: Rooms | None
    """The pools open for judging; None without any."""
    owner: bool
    """True for the owner, who sees more than a judge may."""

    def one(self, name: str, otherwise: str = "") -> str:
        """Return a URL parameter's last value, else `otherwise`."""
        return dict(self.asked).get(name, otherwise)

    def every(self, name: str) -> list[str]:
        """Return all values of a URL parameter, in order."""
        return [value for key, value in self.asked if key == name]


@dataclass(frozen=True)
class Page:
    """A URL pattern with its page function and template; `.json` after the path gives JSON."""

    path: str
    template: str
    view: Callable[[Visit], object]
    judges: bool = False
    """True if judges, who must not know the systems, may see it."""
    writes: bool = False
    """True for a POST URL, which a read-only server lacks."""


@dataclass(frozen=True)
class Redirect:
    """A page function's result that redirects to a URL of this server."""

    address: str


@dataclass(frozen=True)
class Download:
    """A page function's result that sends a file."""

    name: str
    content: bytes


@dataclass(frozen=True, eq=False)
class Access:
    """Tokens, host names and rights of visitors."""

    tokens: Mapping[str, str]
    """{token: name of the judge, or ""}, the owner's first."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Host names that requests may name."""
    read_only: bool = False
    cookie: str = "weir"
    """Name of the cookie that holds a visitor's token."""
    tickets: set[str] = field(default_factory=set)
    """One-time tokens of the owner for the browser's command line, which other users can read."""

    def _admitted(self, token: str) -> str | None:
        """Return the token itself if known, the owner's for a ticket, which is then used up; None if unknown."""
        if token in self.tickets:
            self.tickets.discard(token)
            return next(iter(self.tokens))
        same = [known for known in self.tokens if hmac.compare_digest(known.encode(), token.encode())]
        return same[0] if same else None


def csrf_of(token: str) -> str:
    """Return the CSRF value of a token; POST requests repeat it in the field `csrf` or header `X-CSRF-Token`."""
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()


# ----------
# Names in addresses: any text is one segment of a path, and none of them ends in `.json` or is `..`.

UNQUOTED = "~:@,;=!$&'()*+"


def _segment(name: str) -> str:
    """Encode any text as one URL segment, never `..` or ending in `.json`; `named` decodes it."""
    kept = re.sub(r"[~/\\]|^\.|\.(?=json$)", lambda found: f"~{ord(found[0]):02X}", name)
    return quote(kept or "~", safe=UNQUOTED)


def named(part: str) -> str:
    """Decode a URL segment that `_segment` encoded."""
    return "" if part == "~" else re.sub(r"~([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), part)


def address(*names: str, **asked: object) -> str:
    """Return a page's URL path and query string; values None, "" and False are left out, lists repeat their
    name."""
    parameters = [
        (key, str(one))
        for key, value in asked.items()
        for one in (value if isinstance(value, (list, tuple)) else (value,))
        if one is not None and one is not False and one != ""
    ]
    return "/" + "/".join(map(_segment, names)) + (f"?{encoded(parameters)}" if parameters else "")


def encoded(parameters: Sequence[tuple[str, str]]) -> str:
    """Return parameters as a percent-encoded query string."""
    return urlencode(parameters, quote_via=quote, safe=",:()@/")


def _own_path(request: Request) -> str:
    return quote(request.scope["path"], safe=f"/{UNQUOTED}")


# ----------
# The application.


def application(
    folder: Folder,
    pages: Sequence[Page],
    access: Access,
    words: Mapping[str, object] | None = None,
    rooms: Rooms | None = None,
    ahead: bool = False,
) -> ASGIApp:
    """Return the ASGI application of a folder's pages and, unless it is read-only, forms.

    words: {name: value} for templates.
    ahead: compile all templates after the first request.
    """
    looks = _templates(folder.root.name)
    looks.globals |= words or {}
    looks.globals["pools"] = rooms is not None and rooms.results is not None and not access.read_only
    used = [page.template for page in pages] if ahead else []
    after = BackgroundTask(lambda: [looks.get_template(one) for one in used])  # 40 ms each, once
    routes = [
        Route(f"/static/{name}", _static(kind, content)) for name, (kind, content) in _statics().items()
    ]
    for page in pages:
        if not (page.writes and access.read_only):
            twin = "/index.json" if page.path == "/" else f"{page.path}.json"
            answer = _endpoint(folder, page, looks, rooms, after)
            methods = ["POST"] if page.writes else ["GET"]
            routes += [Route(path, answer, methods=methods) for path in (twin, page.path)]

    async def lost(request: Request, _: Exception) -> Response:
        return _refusal(looks, request, 404, "There is no such page.")

    async def unable(request: Request, _: Exception) -> Response:
        return _refusal(looks, request, 405, "This address takes no such request.")

    async def broken(request: Request, _: Exception) -> Response:
        return _refusal(looks, request, 500, "This is a bug of Weir; the terminal says more.")

    handlers: dict[Any, Any] = {404: lost, 405: unable, 500: broken}
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), access, looks)


def _endpoint(
    folder: Folder, page: Page, looks: jinja2.Environment, rooms: Rooms | None, after: BackgroundTask
) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if not (page.judges or request.scope["weir.owner"]):
            return _refusal(looks, request, 403, "Judges do not see this page: it tells systems apart.")
        given: dict[str, str] = {}
        if page.writes:
            try:
                fields = await _fields(request)
            except ClientDisconnect:
                return Response(status_code=400)  # which nobody reads
            if fields is None:
                return _refusal(looks, request, 413, f"A write has {BODY_BYTES:,} bytes at most.")
            given = fields
            shown = request.headers.get("x-csrf-token") or given.pop("csrf", "")
            if not hmac.compare_digest(shown.encode(), csrf_of(request.scope["weir.token"]).encode()):
                return _refusal(looks, request, 403, "This form is of another session; open its page again.")
        names = {key: named(value) for key, value in request.path_params.items()}
        asked = request.query_params.multi_items()
        scope = request.scope
        visit = Visit(folder, scope["weir.judge"], names, asked, given, rooms, scope["weir.owner"])
        try:
            value = await run_in_threadpool(page.view, visit)
            if isinstance(value, Redirect):
                return RedirectResponse(value.address, 303)
            if isinstance(value, Download):
                named_so = f"attachment; filename*=UTF-8''{quote(value.name)}"
                return Response(
                    value.content, 200, {"Content-Disposition": named_so}, "application/octet-stream"
                )
            response = await run_in_threadpool(_rendered, looks, request, page.template, value)
            response.background = after
            return response
        except WeirError as error:
            stored = 507 if page.writes else 500  # a full disk, or a damaged file
            status = {UnknownName: 404, StoreError: stored}.get(type(error), 400)
            return _refusal(looks, request, status, str(error))

    return answer


async def _fields(request: Request) -> dict[str, str] | None:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES:
            return None
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        pairs = value.items() if isinstance(value, dict) else ()
        return {name: one if isinstance(one, str) else json.dumps(one) for name, one in pairs}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _rendered(
    looks: jinja2.Environment, request: Request, template: str, value: object, status: int = 200
) -> Response:
    if request.url.path.endswith(".json"):
        return JSONResponse(json_value(value), status)
    token = request.scope.get("weir.token", "")
    text = looks.get_template(template).render(
        value=value,
        judge=request.scope.get("weir.judge", ""),
        owner=request.scope.get("weir.owner", False),
        fragment="hx-request" in request.headers,
        csrf=csrf_of(token) if token else "",
        twin=_twin(request),
    )
    return Response(text, status, {"Vary": "HX-Request"}, "text/html")


def _twin(request: Request) -> str:
    path = _own_path(request)
    return f"{'/index' if path == '/' else path}.json" + (
        f"?{request.url.query}" if request.url.query else ""
    )


def _refusal(looks: jinja2.Environment, request: Request, status: int, text: str) -> Response:
    return _rendered(looks, request, "refusal.html", {"error": text}, status)


def _templates(place: str) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("weir.plugins.app"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {
        "score": rounding.score,
        "change": rounding.typeset_change,
        "counted": rounding.counted,
        "share": rounding.percent,
        "probability": rounding.probability,
        "markdown": lambda text: Markup(markdown_html(text)),
        "zipped": lambda values: [(value, value) for value in values],
    }
    files_of = {name: f"/static/{name}?{_mark(content)}" for name, (_, content) in _statics().items()}
    made.globals |= {
        "address": address,
        "icon": lambda verdict: Markup(icon_svg(verdict)),
        "mark": lambda system: Markup(mark_svg(system)),
        "tint": tint,
        "place": place,
        "files": files_of,
    }
    return made


def markdown_html(text: str) -> str:
    """Return Markdown as HTML, in which raw HTML is text, images are links, and headings begin at h3."""
    parser = MarkdownIt("js-default").disable("image")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, max(3, int(token.tag[1]) + 1))}"
    return str(parser.renderer.render(tokens, parser.options, {}))


# ----------
# Files that a page loads: a fixed table, so that no path of an address reaches the disk.


def _statics() -> dict[str, tuple[str, bytes]]:
    own, report = files("weir.plugins.app") / "static", files("weir.plugins.report")
    rules = [(own / name).read_text(encoding="utf-8") for name in ("app.css", "judge.css")]
    style = style_sheet("/static/inter.woff2") + "".join(rules)
    return {
        "style.css": ("text/css", style.encode()),
        "inter.woff2": ("font/woff2", (report / "inter.woff2").read_bytes()),
        "htmx.js": ("text/javascript", (own / "htmx.min.js").read_bytes()),
        "icon.svg": ("image/svg+xml", (own / "icon.svg").read_bytes()),
        "frames.js": ("text/javascript", (report / "frames.js").read_bytes()),
        "app.js": ("text/javascript", (own / "app.js").read_bytes()),
        "judge.js": ("text/javascript", (own / "judge.js").read_bytes()),
    }


def _mark(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def _static(kind: str, content: bytes) -> Callable[[Request], Any]:
    async def answer(_: Request) -> Response:
        return Response(content, 200, {"Cache-Control": "public, max-age=31536000, immutable"}, kind)

    return answer


# ----------
# Who is let in.


@dataclass(frozen=True, eq=False)
class _Guard:
    """Middleware that refuses requests by host, token and origin, and adds security headers; /static/ needs
    no token."""

    inner: ASGIApp
    access: Access
    looks: jinja2.Environment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope, receive)
        refused = self._checked(request)
        await (refused or self.inner)(scope, receive, with_headers)

    def _checked(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if not _known_host(host, self.access.hosts):
            return _refusal(self.looks, request, 421, "This server does not go by that name.")
        token = self.access._admitted(request.query_params.get("token", ""))
        if token is not None:
            rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
            entered = RedirectResponse(f"{_own_path(request)}?{encoded(rest)}".rstrip("?"), 303)
            entered.set_cookie(self.access.cookie, token, httponly=True, samesite="lax")
            return entered
        token = self.access._admitted(request.cookies.get(self.access.cookie, ""))
        if token is None and not request.url.path.startswith("/static/"):
            return _refusal(
                self.looks, request, 403, "Open the address that weir open printed: it carries the token."
            )
        if request.method not in SAFE and not _same_origin(request.headers):
            return _refusal(self.looks, request, 403, "This request came from another page.")
        request.scope["weir.token"] = token or ""
        request.scope["weir.judge"] = self.access.tokens.get(token or "", "")
        request.scope["weir.owner"] = token == next(iter(self.access.tokens))
        return None


def _known_host(header: str, hosts: frozenset[str]) -> bool:
    name = re.sub(r":\d*$", "", header).strip("[]").lower()
    if name in hosts:
        return True
    try:
        return "*" in hosts and bool(ip_address(name))
    except ValueError:
        return False


def _same_origin(headers: Headers) -> bool:
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    return site in ("same-origin", "none") and (
        origin is None or origin.partition("://")[2] == headers["host"]
    )


def hosts_of(host: str) -> frozenset[str]:
    """Return the host names that requests to a server at `host` may use; "*" is any IP address."""
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    own = {"localhost", "127.0.0.1", "::1", host.lower()}
    return frozenset(own if loopback else {*own, "*", socket.gethostname().lower(), socket.getfqdn().lower()})


def tokens_of(secret: str, judges: Sequence[str]) -> dict[str, str]:
    """Return {token: judge, "" for the owner}, the owner's first; a single judge is the owner.

    secret: the owner's token, from which judges' are derived; "" draws one at random.
    """
    secret = secret or secrets.token_urlsafe(32)
    if len(judges) < 2:
        return {secret: judges[0] if judges else ""}
    key = secret.encode()
    own = {hmac.new(key, name.encode(), hashlib.sha256).hexdigest(): name for name in judges}
    return {secret: "", **own}
