"""Judging in a real browser by keys alone: wide and narrow, light and dark; nothing is asked of others, axe finds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("starlette", reason="needs the `app` extra")

from tests.unit.judging_place import SYSTEMS, pool_of
from weir.plugins.app.judging.journal import Journal

pytestmark = pytest.mark.xdist_group("browser")
SECRET = "0123456789abcdef"
LOOKS = [(1440, 900, "light"), (390, 844, "dark")]


def opened(pool, port="0"):
    """The command, running, and the addresses that it printed by judge."""
    command = [sys.executable, "-m", "weir", "open", str(pool), "--judge", "ann", "--judge", "ben"]
    server = subprocess.Popen(
        [*command, "--token", SECRET, "--port", port, "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed = []
    while not (printed and printed[-1].startswith("Ctrl-C")):
        printed.append(server.stdout.readline().strip())
        assert printed[-1], printed
    places = [line.rpartition(": http")[::2] for line in printed[:-1]]
    return server, {head.partition(" for ")[2]: f"http{rest}" for head, rest in places}


@pytest.fixture(params=LOOKS, ids=lambda look: "x".join(map(str, look)))
def place(request, browser, tmp_path):
    """A server of a pool of its own, and pages in it; what they ask of others or complain of fails the test."""
    width, height, theme = request.param
    pool = pool_of(tmp_path)
    server, addresses = opened(pool)
    contexts, asked, said = [], [], []

    def visit(name):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(addresses[name])
        return page

    yield visit, pool, server, addresses
    for context in contexts:
        context.close()
    server.terminate()
    server.wait()
    server.stdout.close()
    home = addresses[""].partition("?")[0]
    assert [url for url in asked if not url.startswith((home, "data:"))] == []
    assert said == []


def until(page, holds):
    """Wait until something holds; the page's own way to wait would evaluate text, which its policy forbids."""
    for _ in range(6000):
        if holds():
            return
        page.wait_for_timeout(20)
    raise AssertionError(page.locator("main").inner_text())


def pressed(page, *keys):
    """Press keys, and wait for the page that an answer brings."""
    for key in keys:
        page.evaluate("document.querySelector('main').dataset.old = 1")
        page.keyboard.press(key)
        if key not in ("n", "x", "i"):
            until(page, lambda: page.locator("main:not([data-old])").count())


def done(page):
    return int(page.locator(".weir-progress b").inner_text())


def accessible(page):
    """Hold a page against axe and its own width."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []
    assert page.evaluate("document.scrollingElement.scrollWidth") <= page.viewport_size["width"]


def test_a_pool_is_judged_by_keys_alone(place):
    visit, pool, *_ = place
    ann = visit("ann")
    accessible(ann)
    assert done(ann) == 0
    pressed(ann, "2", "0")
    assert done(ann) == 2
    before = ann.locator(".weir-judged").inner_text()
    pressed(ann, "u")
    assert done(ann) == 1
    pressed(ann, "1")
    assert ann.locator(".weir-judged").inner_text() == before
    pressed(ann, "s")
    assert "1 put off" in ann.locator(".weir-progress").inner_text()
    pressed(ann, "x")
    ann.keyboard.type("in Dutch")
    pressed(ann, "Enter")
    assert done(ann) == 3
    ann.evaluate("getSelection().selectAllChildren(document.querySelector('mark'))")
    marked = ann.locator("mark").first.inner_text()
    pressed(ann, "n")
    assert f"“{marked}”" in ann.locator("textarea").input_value()
    assert ann.get_by_role("button", name="save the note").is_visible()
    ann.keyboard.type("says it")
    pressed(ann, "Enter")
    assert "says it" in ann.locator("textarea").input_value()
    pressed(ann, "3")
    with ann.expect_navigation():
        ann.keyboard.press("l")
    accessible(ann)
    first = ann.evaluate("document.activeElement.id")
    ann.keyboard.press("j")
    assert ann.evaluate("document.activeElement.id") != first
    ann.keyboard.press("k")
    pressed(ann, "3")
    assert ann.evaluate("document.activeElement.id") != first
    assert ann.locator(f"#{first} button[aria-pressed=true]").inner_text() == "3"
    with ann.expect_navigation():
        ann.keyboard.press("b")
    while ann.locator(".weir-judged").count():
        pressed(ann, "1")
    assert "Nothing left to judge" in ann.locator("h1").inner_text()
    accessible(ann)
    journal = Journal.open(pool / "judgments.sqlite")
    with journal.reading() as standing:
        labels = standing.current("judge")
        assert {event.kind for event in labels} == {"graded", "unable"}
        assert [standing.note(event.item) for event in labels if standing.note(event.item)] == [
            f"“{marked}” says it"
        ]
        assert all(event.seconds is not None and event.seconds < 3600 for event in labels)
    journal.close()


def test_an_answer_stays_on_the_page_while_the_server_is_gone(browser, tmp_path):
    pool = pool_of(tmp_path)
    server, addresses = opened(pool)
    page = browser.new_context().new_page()
    page.goto(addresses["ann"])
    pressed(page, "2")
    pressed(page, "n")
    page.keyboard.type("must not be lost")
    page.keyboard.press("Escape")
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    page.keyboard.press("3")
    until(page, lambda: "Not stored" in page.locator("[data-said]").inner_text())
    assert page.locator("textarea").input_value() == "must not be lost"
    port = addresses["ann"].split(":")[2].partition("/")[0]
    server, _ = opened(pool, port)
    pressed(page, "3")
    assert done(page) == 2
    server.terminate()
    server.wait()
    server.stdout.close()
    journal = Journal.open(pool / "judgments.sqlite")
    kinds = [event.kind for event in journal.events()]
    journal.close()
    assert kinds == ["graded", "noted", "graded"]


def test_whoever_supervises_sees_changes_and_takes_back(place):
    visit, *_ = place
    ann, owner = visit("ann"), visit("")
    for _ in range(5):
        pressed(ann, "2")
    owner.reload()
    assert owner.locator("h1").inner_text().startswith("5 of")
    accessible(owner)
    for link in ("what changed", "take back", "progress"):
        assert owner.get_by_role("link", name=link).count() == 1
    owner.get_by_role("link", name="what changed").click()
    assert SYSTEMS[0] in owner.locator("table").first.inner_text()
    accessible(owner)
    owner.get_by_role("link", name="take back").click()
    owner.get_by_label("Judge").select_option("ann")
    owner.get_by_role("button", name="Show them").click()
    accessible(owner)
    owner.get_by_role("button", name="Take 5 labels back").click()
    assert "5 labels taken back" in owner.locator("[role=status]").inner_text()
    owner.get_by_role("link", name="progress").click()
    owner.locator("form", has_text="Compare the rankings").get_by_role("button").click()
    assert owner.locator("h1").inner_text().startswith("0 of")
    with ann.expect_navigation():
        ann.goto(ann.url.rstrip("/") + "/compare")
    accessible(ann)
    left = ann.locator(".weir-sides section").first.inner_text()
    pressed(ann, "1")
    assert ann.locator(".weir-progress b").inner_text() == "1"
    pressed(ann, "u")
    assert ann.locator(".weir-sides section").first.inner_text() == left
