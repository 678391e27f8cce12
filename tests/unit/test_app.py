"""The local page's server: who is let in, that every page is also JSON, that any name is an address."""

from __future__ import annotations

import asyncio
from html import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs the `app` extra")

from starlette.testclient import TestClient

from weir.errors import BadValue, UnknownName
from weir.plugins.app.folder import Folder
from weir.plugins.app.server import (
    BODY_BYTES,
    HEADERS,
    Access,
    Page,
    Redirect,
    address,
    application,
    csrf_of,
    hosts_of,
    tokens_of,
)

TOKEN = "t" * 32
HERE = "http://localhost:4747"


def echo(visit):
    given = dict(visit.given)
    if "unknown" in given:
        raise UnknownName("thing", given["unknown"], ["known"])
    if "bad" in given:
        raise BadValue(given["bad"])
    if "to" in given:
        return Redirect(given["to"])
    return {"names": dict(visit.names), "given": given, "judge": visit.judge, "error": ""}


PARTS = [
    Page("/e/{one}/{other}", "refusal.html", echo),
    Page("/w/{one}", "refusal.html", echo, judges=True, writes=True),
]


def client(tmp_path, *, entered: str = TOKEN, **access) -> TestClient:
    app = application(Folder(tmp_path), PARTS, Access({TOKEN: "", "u" * 32: "Ada"}, **access))
    return TestClient(
        app, base_url=HERE, follow_redirects=False, cookies={"weir": entered} if entered else None
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> TestClient:
    return client(tmp_path_factory.mktemp("app"))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text("/\\.~%json?# é", max_size=6))
@example("../../etc/passwd", "..")
@example("q.json", ".json")
@example("", "~2F")
@example("<script>", "a/q/b")
def test_any_name_is_one_segment_of_an_address_and_reads_back(opened, one, other):
    path = address("e", one, other)
    parts = path.split("/")
    assert len(parts) == 4
    assert not {"", ".", ".."} & set(parts[1:])
    assert not path.endswith(".json")
    assert opened.get(f"{path}.json").json()["names"] == {"one": one, "other": other}


@pytest.mark.parametrize("name", ["a?b#c", "two words", "ünï", "50%", "\\", "+&=;"])
def test_links_to_the_same_page_have_its_address(opened, name):
    path = address("e", name, name)
    assert f'href="{escape(path)}.json"' in opened.get(path).text
    entered = opened.get(f"{path}?token={TOKEN}")
    assert entered.headers["location"] == path


def test_a_token_opens_and_is_then_a_cookie_that_no_script_reads(tmp_path):
    visitor = client(tmp_path, entered="")
    assert visitor.get("/e/a/b.json").status_code == 403
    assert visitor.get("/e/a/b.json?token=wrong").status_code == 403
    entered = visitor.get(f"/e/a/b.json?x=1&token={TOKEN}&y=é")
    assert (entered.status_code, entered.headers["location"]) == (303, "/e/a/b.json?x=1&y=%C3%A9")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert visitor.get("/e/a/b.json").status_code == 200


def test_a_ticket_opens_once(tmp_path):
    tickets = {"once"}
    visitor = client(tmp_path, entered="", tickets=tickets)
    assert visitor.get("/e/a/b?token=once").status_code == 303
    visitor.cookies.clear()
    assert visitor.get("/e/a/b?token=once").status_code == 403


def test_each_judge_has_a_token_that_follows_from_the_secret():
    assert tokens_of("s" * 16, []) == {"s" * 16: ""}
    assert tokens_of("s" * 16, ["Ada"]) == {"s" * 16: "Ada"}
    several = tokens_of("s" * 16, ["Ada", "Bob"])
    assert next(iter(several.items())) == ("s" * 16, "")  # the owner's
    assert sorted(several.values()) == ["", "Ada", "Bob"]
    assert several == tokens_of("s" * 16, ["Ada", "Bob"]) != tokens_of("r" * 16, ["Ada", "Bob"])
    assert tokens_of("", []) != tokens_of("", [])


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""])
def test_a_name_that_only_leads_here_is_refused(tmp_path, host):
    visitor = client(tmp_path)
    assert visitor.get("/e/a/b", headers={"host": host}).status_code == 421
    assert (
        visitor.get("/static/style.css", headers={"host": "10.1.2.3:80"}).status_code == 421
    )  # not of a loopback server
    others = client(tmp_path, hosts=hosts_of("0.0.0.0"))
    assert others.get("/e/a/b", headers={"host": host}).status_code == 421
    assert others.get("/e/a/b", headers={"host": "10.1.2.3:80"}).status_code == 200
    assert others.get("/e/a/b", headers={"host": "[::2]:80"}).status_code == 200


def test_a_write_needs_what_only_a_page_of_this_session_has(tmp_path):
    visitor, own = client(tmp_path), csrf_of(TOKEN)
    assert visitor.post("/w/a.json").status_code == 403
    assert visitor.post("/w/a.json", data={"csrf": csrf_of("u" * 32)}).status_code == 403
    for origin in ("http://evil.example", "http://localhost:1", "null"):
        assert (
            visitor.post(
                "/w/a.json", data={"csrf": own}, headers={"origin": origin, "sec-fetch-site": "none"}
            )
        ).status_code == 403
    assert (
        visitor.post("/w/a.json", headers={"sec-fetch-site": "cross-site", "x-csrf-token": own}).status_code
        == 403
    )
    form = visitor.post("/w/a.json", data={"csrf": own, "grade": "é"}, headers={"origin": HERE})
    assert form.json() == {"names": {"one": "a"}, "given": {"grade": "é"}, "judge": "", "error": ""}
    sent = visitor.post("/w/a.json", json={"grade": 2, "note": "é"}, headers={"x-csrf-token": own})
    assert sent.json()["given"] == {"grade": "2", "note": "é"}
    assert (
        client(tmp_path, entered="u" * 32).post("/w/a.json", data={"csrf": csrf_of("u" * 32)}).json()["judge"]
        == "Ada"
    )
    assert visitor.get("/w/a.json").status_code == 405
    assert (
        visitor.post("/w/a.json", content=b"x" * (BODY_BYTES + 1), headers={"x-csrf-token": own}).status_code
        == 413
    )
    for odd in (b"[1]", b"{", b"7"):
        kind = {"x-csrf-token": own, "content-type": "application/json"}
        assert visitor.post("/w/a.json", content=odd, headers=kind).json()["given"] == {}


def test_a_judge_sees_no_page_that_tells_systems_apart(tmp_path):
    judge = client(tmp_path, entered="u" * 32)
    assert judge.get("/e/a/b.json").status_code == 403
    assert client(tmp_path).get("/e/a/b.json").status_code == 200


def test_a_read_only_server_has_no_address_that_writes(tmp_path):
    visitor = client(tmp_path, read_only=True)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/w/a", "/w/a.json", "/e/a/b", "/e/a/b.json"):
            answer = visitor.request(method, path, headers={"x-csrf-token": csrf_of(TOKEN)})
            assert answer.status_code in (404, 405)


def test_every_answer_has_the_headers_and_no_page_has_a_script_of_its_own(opened):
    for path in (
        "/e/a/b.json",
        "/e/a/b",
        "/nowhere",
        "/static/style.css",
        "/static/app.js",
        "/static/../server.py",
    ):
        answer = opened.get(path)
        assert HEADERS.items() <= {name: answer.headers.get(name) for name in HEADERS}.items()
        assert "<script>" not in answer.text
        assert "style=" not in answer.text
    assert opened.get("/static/%2e%2e/server.py").status_code == 404
    assert opened.get("/static/style.css").headers["cache-control"].endswith("immutable")
    assert opened.get("/e/a/b.json").headers["cache-control"] == "no-store"


def test_an_error_of_weir_is_an_answer_as_html_and_json(opened):
    own = {"csrf": csrf_of(TOKEN)}
    lacking = opened.post("/w/a.json", data={**own, "unknown": "<b>x</b>"})
    assert lacking.status_code == 404
    assert "<b>x</b>" in lacking.json()["error"]
    page = opened.post("/w/a", data={**own, "bad": "<b>x</b>"})
    assert page.status_code == 400
    assert "&lt;b&gt;x&lt;/b&gt;" in page.text
    assert "<b>x" not in page.text
    assert opened.post("/w/a", data={**own, "to": "/e/1/2"}).headers["location"] == "/e/1/2"


def test_a_visitor_who_leaves_in_the_middle_of_a_write_is_no_bug(tmp_path):
    app = application(Folder(tmp_path), PARTS, Access({TOKEN: ""}))
    path = "/w/a"
    headers = {"host": "localhost:4747", "cookie": f"weir={TOKEN}", "content-length": "100"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    events = iter(
        [{"type": "http.request", "body": b"csrf=", "more_body": True}, {"type": "http.disconnect"}]
    )
    sent = []

    async def receive():
        return next(events)

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert [one["status"] for one in sent if "status" in one] == [400]
