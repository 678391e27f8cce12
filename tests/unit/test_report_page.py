"""The report in a real browser: sorting, filtering, opening a query, by keyboard, in both themes, with no request."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("needs Debian's chromium", allow_module_level=True)

import weir  # noqa: E402 - behind the skip
from tests.unit.test_report import results  # noqa: E402, F401 - behind the skip; a fixture
from tests.unit.test_submissions import mine, packed, site  # noqa: E402, F401 - behind the skip; fixtures

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def address(results, tmp_path_factory) -> str:  # noqa: F811 - the fixture
    path = tmp_path_factory.mktemp("page") / "report.html"
    weir.report(results).save(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        one = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture
def page(browser, address):
    """The report, opened; whatever it asks for or complains of fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    asked, said = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    opened.goto(address)
    opened.wait_for_selector(".weir-row")
    yield opened
    context.close()
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [address]
    assert said == []


def rows(page) -> list[str]:
    return page.locator(".weir-row span:first-child").all_inner_texts()


def test_a_query_is_opened_and_its_documents_are_texts(page):
    page.get_by_label("Collection", exact=True).select_option(label="mine")
    page.locator(".weir-row", has_text="onerror").first.wait_for()
    assert len(rows(page)) == 6
    assert "<img src=x onerror" in rows(page)[0]
    assert page.locator(".weir-view h3").inner_text().startswith("river")
    assert "<script>alert" in page.locator(".weir-doc").first.inner_text()
    assert page.locator(".weir-doc u").first.inner_text().lower() in rows(page)[0]
    assert page.locator(".weir-doc small").first.inner_text().split(" · ")[0].endswith("</script>")


def test_queries_are_filtered_and_sorted_by_the_chosen_pair(page):
    everything = rows(page)
    page.get_by_label("Filter queries").fill(everything[3][:12])
    assert 1 <= len(rows(page)) < len(everything)
    page.get_by_label("Filter queries").fill("")
    page.get_by_label("System", exact=True).select_option(index=2)
    gaps = [float(t.replace("−", "-")) for t in page.locator(".weir-row span:last-child").all_inner_texts()]
    assert gaps == sorted(gaps, reverse=True)


def test_the_keyboard_alone_is_enough(page):
    page.locator(".weir-list").focus()
    first = page.locator(".weir-view h3").inner_text()
    page.keyboard.press("ArrowDown")
    second = page.locator(".weir-view h3").inner_text()
    assert first != second
    page.keyboard.press("Home")
    assert page.locator(".weir-view h3").inner_text() == first
    head = page.locator(".weir-sortable thead button").nth(1)
    head.focus()
    page.keyboard.press("Enter")
    values = [
        float(v)
        for v in page.eval_on_selector_all(
            ".weir-sortable", "t => [...t[0].tBodies[0].rows].map(r => r.cells[1].dataset.value)"
        )
    ]
    assert values == sorted(values, reverse=True)
    switch = page.locator(".weir-boards .weir-switch button").nth(1)
    switch.focus()
    page.keyboard.press("Enter")
    assert page.locator("#leaderboard .weir-board:visible caption").inner_text().startswith("R@100")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_sticks_out_and_axe_finds_nothing_serious(page, theme):
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=theme)
    found = Axe().run(page).response["violations"]
    assert [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in ("serious", "critical")
    ] == []
    for width in (390, 1440, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_is_whole_without_javascript(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#leaderboard .weir-board:visible").count() == 3  # one for each measure
    assert page.locator("#queries details").count() == 1
    context.close()


def test_a_leaderboard_is_filtered_by_its_address(browser, site):  # noqa: F811 - the fixture
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(viewport={"width": 390, "height": 900})
    page = context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto((Path(site.folder) / "index.html").as_uri())
    filters = page.get_by_label("Filter")
    filters.select_option(label="size: small")
    assert page.locator(".weir-board:visible caption").inner_text().startswith("size: small")
    page.reload()
    assert page.locator(".weir-board:visible caption").inner_text().startswith("size: small")
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("link", name="bm25 (first)").first.click()
    assert page.locator("h1").inner_text() != ""
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert said == []
    context.close()


def test_it_prints(browser, address, tmp_path):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert Path(tmp_path / "report.pdf").stat().st_size > 20_000
    context.close()


def test_on_paper_the_leaderboard_is_whole(browser, address):
    """A4 less its margins is 688 pixels wide; what a frame would scroll on a screen is lost on paper."""
    opened = browser.new_page(viewport={"width": 688, "height": 970})
    opened.emulate_media(media="print")
    opened.goto(address)
    beyond = "frames => frames.filter(f => f.offsetParent && f.scrollWidth > f.clientWidth + 1).length"
    assert opened.locator("#leaderboard .weir-frame").count() > 0
    assert opened.locator("#leaderboard .weir-frame").evaluate_all(beyond) == 0
    widths = opened.locator("#leaderboard tbody .weir-strip").evaluate_all(
        "all => all.map(s => s.clientWidth)"
    )
    assert widths
    assert min(widths) >= 140
    opened.close()
