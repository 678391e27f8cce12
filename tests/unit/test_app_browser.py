"""The local page in a real browser: by keyboard alone, in both themes and widths, with no request to elsewhere."""

from __future__ import annotations

import re
import socket
import threading

import pytest

pytest.importorskip("starlette", reason="needs the `app` extra")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")
uvicorn = pytest.importorskip("uvicorn", reason="needs the `app` extra")

from tests.unit.axe import violations  # noqa: E402 - after the skip
from tests.unit.test_app_pages import HOSTILE, TOKEN, results  # noqa: E402, F401 - after the skip; a fixture
from weir.plugins.app.folder import Folder  # noqa: E402 - after the skip
from weir.plugins.app.judging import pages as judging  # noqa: E402 - after the skip
from weir.plugins.app.judging.rooms import Rooms  # noqa: E402 - after the skip
from weir.plugins.app.pages import PARTS, WORDS  # noqa: E402 - after the skip
from weir.plugins.app.server import Access, address, application  # noqa: E402 - after the skip
from weir.plugins.questions.of_results import QUESTIONS  # noqa: E402 - after the skip

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def base(results) -> str:  # noqa: F811 - the fixture
    listening = socket.create_server(("127.0.0.1", 0))
    rooms = Rooms.beside(results, judges=("me",))
    app = application(Folder(results), [*PARTS, *judging.PAGES], Access({TOKEN: "me"}), WORDS, rooms)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    rooms.close()


@pytest.fixture
def page(browser, base):
    """The first page, opened by its token; a request to elsewhere and any complaint fail the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    asked, said = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on(
        "console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None
    )
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    opened.goto(f"{base}/?token={TOKEN}")
    yield opened
    context.close()
    assert [url for url in asked if not url.startswith(f"{base}/")] == []
    assert said == []


def settled(page) -> None:
    page.wait_for_load_state("networkidle")


def test_a_document_is_reached_and_explained_by_keyboard_alone(page, base):
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{base}/c/brook-facts*")
    page.wait_for_selector(".weir-filters :text('howlers')")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_url("**/q/*")
    assert page.locator("h1").inner_text() == second
    page.keyboard.press("p")
    page.wait_for_function("words => document.querySelector('h1').innerText !== words", arg=second)
    page.keyboard.press("n")
    page.wait_for_function("words => document.querySelector('h1').innerText === words", arg=second)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".weir-places")
    assert page.locator(".weir-part").count() > 3
    page.keyboard.press("m")
    page.wait_for_url("**depth=20*")
    page.keyboard.press("u")
    page.wait_for_url(f"{base}/c/brook-facts?*")
    page.go_back()
    page.wait_for_url("**depth=20*")
    page.keyboard.press("t")
    page.wait_for_url(f"{base}/try?*")
    page.wait_for_selector("input:focus")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.wait_for_url(f"{base}/")


def test_a_list_is_searched_filtered_and_explained_by_keyboard(page, base):
    page.goto(f"{base}/c/brook-facts?systems=bm25,rm3")
    page.wait_for_selector(".weir-filters :text('howlers')")
    rows = page.locator("#rows [data-item]")
    assert rows.count() == 21
    page.keyboard.press("/")
    page.keyboard.type("lightning")
    page.wait_for_function("() => document.querySelectorAll('#rows [data-item]').length === 1")
    assert "find=lightning" in page.url
    page.keyboard.press("Escape")
    page.keyboard.press("w")
    page.wait_for_selector("#why table")
    page.keyboard.press("?")
    keys = page.locator("dialog[open] kbd").all_inner_texts()
    assert {"j k", "Enter", "/", "w", "?"} <= set(keys)
    page.keyboard.press("Escape")
    page.get_by_label("queries").select_option("won")
    page.get_by_label("containing").fill("")
    won = int(page.locator(".weir-filters a", has_text="won").inner_text().split()[-1])
    page.wait_for_function(
        "number => document.querySelectorAll('#rows [data-item]').length === number", arg=won
    )


def test_a_long_list_goes_on_as_it_is_scrolled(page, base, monkeypatch):
    monkeypatch.setattr("weir.plugins.app.queries_page.PART_ROWS", 8)
    page.set_viewport_size({"width": 1440, "height": 400})
    for _ in range(2):  # while the systems are compared, which is done once, the list begins anew each second
        page.goto(f"{base}/c/brook-facts?systems=bm25,rm3")
        page.wait_for_selector('[hx-trigger="every 1s"]', state="detached", timeout=120_000)
    for number in range(21):
        page.wait_for_function(
            "n => document.querySelectorAll('#rows [data-item]').length > n", arg=number, timeout=120_000
        )
        page.keyboard.press("j")
    names = page.locator("#rows [data-item]").all_inner_texts()
    assert len(set(names)) == 21


def test_a_query_is_answered_while_it_is_typed(page, base):
    page.goto(f"{base}/try?collection=brook-facts&systems=bm25,rm3")
    page.wait_for_selector("input:focus")
    page.keyboard.type("why do rivers flood")
    page.wait_for_selector(".weir-doc u")
    page.wait_for_function("() => location.search.includes('flood')")
    assert page.locator(".weir-beside section").count() == 2
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(".weir-places")


def put_into_the_golden_set(page, base, query) -> None:
    page.goto(f"{base}/try?collection=brook-facts&systems=bm25,rm3&query={query}")
    page.wait_for_selector("input:focus")  # it takes the focus once the page is there
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.tagName !== 'INPUT'")
    with page.expect_navigation():
        page.keyboard.press("e")


def test_a_query_is_put_into_the_golden_set_and_judged_by_keyboard(page, base):
    put_into_the_golden_set(page, base, "why do rivers flood")
    assert re.search(r"/judge/golden-brook-facts/q/g\d+$", page.url)
    grades = page.locator("button[data-key='1']")
    most = grades.count()
    for number in range(most):
        page.keyboard.press("1")
        page.wait_for_function(
            "n => document.querySelectorAll('button[data-key=\"1\"][aria-pressed=true]').length === n",
            arg=number + 1,
        )
    with page.expect_navigation():
        page.keyboard.press("g")
    page.goto(f"{base}/c/brook-facts/q/12?systems=bm25,rm3")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("l")
    assert page.evaluate("document.activeElement.closest('li').id") == "a-1-2"
    page.keyboard.press("h")
    assert page.evaluate("document.activeElement.closest('li').id") == "a-0-2"
    with page.expect_navigation():
        page.keyboard.press("e")
    assert page.url.endswith("/judge/brook-facts-queries/q/12")


def test_an_undo_stands_on_the_document_whose_grade_was_taken_back(page, base):
    put_into_the_golden_set(page, base, "where do otters sleep")
    pressed = "() => [...document.querySelectorAll('[data-item]')].map(one => one.querySelector('[aria-pressed=true]')?.value ?? '').join('')"
    for key in "122u0":  # at once: a key waits for the answer before it
        page.keyboard.press(key)
    page.wait_for_function(f"() => ({pressed})() === '120'")
    at = page.evaluate("document.querySelector('[aria-current][data-item]').id")
    page.keyboard.press("k")
    page.locator("h1").click()  # the cursor stays, wherever else somebody clicks
    page.keyboard.press("1")
    page.wait_for_function(f"() => ({pressed})() === '121'")
    assert page.evaluate("document.querySelector('[aria-current][data-item]').id") == at
    page.reload()
    page.wait_for_function("() => document.querySelectorAll('[data-item]')[3].matches('[aria-current]')")


PLACES = ["/", "/c/brook-facts?systems=bm25,rm3", "/c/brook-facts/q/12?systems=bm25,rm3,rrf(bm25, rm3)",
          "/c/brook-facts/q/12", "/c/brook-facts/q/12/d/1129", "/c/brook-facts", "/try?collection=brook-facts&query=rivers", "/c/brook-facts/why?systems=bm25,rm3",
          "/c/brook-facts/questions", *(f"/c/brook-facts/questions/{one.name}" for one in QUESTIONS),
          "/judge", "/judge/golden-brook-facts/progress", "/c/nowhere", *(address("c", "mine", "q", name) for name in HOSTILE[:3])]  # fmt: skip


def test_nothing_sticks_out_and_axe_finds_nothing(page, base):
    put_into_the_golden_set(page, base, "what is a weir")
    for place in PLACES:
        if place != "/c/nowhere":  # its answer is an error, which a console tells
            page.goto(base + place)
        settled(page)
        assert violations(page) == [], place
        for width in (390, 768, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.scrollingElement.scrollWidth") <= width, (place, width)


def test_a_table_wider_than_a_telephone_says_so(page, base):
    hint = "getComputedStyle(document.querySelector('.weir-frame'), '::before').content"
    page.set_viewport_size({"width": 220, "height": 900})
    page.goto(base + "/")
    page.wait_for_function("document.querySelector('.weir-frame').matches('.weir-more')")
    assert "more columns on the right" in page.evaluate(hint)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_function("!document.querySelector('.weir-frame').matches('.weir-more')")
    assert page.evaluate(hint) == "none"


def test_without_javascript_every_page_is_there(browser, base):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{base}/?token={TOKEN}")
    page.locator("table a").first.click()
    page.get_by_role("button", name="Show").click()
    page.locator("#rows a").first.click()
    assert page.locator(".weir-doc").count() > 2
    context.close()
