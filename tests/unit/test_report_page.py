"""The report in a real browser: sorting, filtering, opening a query, by keyboard, in both themes, with no request."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("needs Debian's chromium", allow_module_level=True)

import weir  # noqa: E402 - after the skip
from tests.unit.test_report import results, synthetic  # noqa: E402, F401 - behind the skip; a fixture
from tests.unit.test_submissions import mine, packed, site  # noqa: E402, F401 - behind the skip; fixtures
from weir.core.charts import MIDDLE_PX, NARROW_PX, WIDE_PX, Point, Points, svg  # noqa: E402 - after the skip
from weir.plugins.report.page import style_sheet  # noqa: E402 - after the skip

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
    for width in (360, 390, 768, 905, 1024, 1440, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        plots = page.locator("#leaderboard .weir-board:visible tbody .weir-strip").first
        assert plots.bounding_box()["width"] >= min(width - 48, 1080) / 3
        sizes = page.locator("#main svg text:visible").evaluate_all(
            "all => all.map(t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b))"
        )
        assert min(sizes) >= 10.99


def test_what_is_wider_than_its_frame_says_so(page):
    page.set_viewport_size({"width": 360, "height": 900})
    wide = "all => all.filter(f => f.offsetParent).map(f => [f.scrollWidth > f.clientWidth + 1, getComputedStyle(f, '::before').content != 'none'])"
    page.wait_for_selector(".weir-more")
    found = page.locator("section .weir-frame:visible").evaluate_all(wide)
    assert [True, True] in found
    assert all(scrolls == said for scrolls, said in found)
    first = page.locator("#audit thead th").first
    assert first.inner_text() == "what was found"
    assert first.bounding_box()["width"] >= 200


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


def test_every_page_of_a_leaderboard_fits_a_telephone(browser, site):  # noqa: F811 - the fixture
    pages = sorted(Path(site.folder).rglob("*.html"))
    assert len(pages) > 4
    opened = browser.new_page()
    for width in (360, 768):
        opened.set_viewport_size({"width": width, "height": 900})
        for one in pages:
            opened.goto(one.as_uri())
            assert opened.evaluate("document.scrollingElement.scrollWidth") <= width, one
    opened.close()


def test_it_prints(browser, address, tmp_path):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert Path(tmp_path / "report.pdf").stat().st_size > 20_000
    context.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> str:
    """A report of thirty systems with long names on nine collections."""
    folder = tmp_path_factory.mktemp("large")
    systems = ["bm25", *(f'dense("a-model-with-a-long-name-{n}", max_length=64)' for n in range(29))]
    shares = {
        (f"collection-number-{d}", s): (d + n) % 10 / 10 for d in range(9) for n, s in enumerate(systems)
    }
    weir.report(synthetic(folder / "results", shares), audit=False).save(folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.mark.parametrize("width", [688, 710], ids=["A4", "Letter"])
@pytest.mark.parametrize("which", ["address", "large"])
def test_nothing_is_cut_on_paper(browser, request, which, width):
    """Pages less their margins are so many pixels wide; what a frame would scroll on a screen is lost on paper."""
    opened = browser.new_page(viewport={"width": width, "height": 970})
    opened.emulate_media(media="print")
    opened.goto(request.getfixturevalue(which))
    beyond = opened.evaluate(
        """() => [...document.querySelectorAll('main *')]
          .filter(e => e.checkVisibility() && e.getClientRects().length && !(e instanceof SVGElement && e.tagName != 'svg' && e.tagName != 'text'))
          .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.weir-hidden'))
          .map(e => [e.tagName, e.textContent.slice(0, 40), e.closest('section')?.id])"""
    )
    assert beyond == []
    strips = opened.locator("#leaderboard tbody .weir-strip")
    assert min(strips.evaluate_all("all => all.map(s => s.clientWidth)")) >= width / 3 - 30
    assert opened.locator("#queries table").bounding_box()["height"] > 40
    assert opened.locator("#queries .weir-screen").is_hidden()
    assert opened.locator(".weir-code").evaluate("e => e.scrollWidth <= e.clientWidth")
    opened.close()


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs Debian's poppler-utils")
@pytest.mark.parametrize("form", ["A4", "Letter"])
def test_no_heading_ends_a_page(browser, address, form, tmp_path):
    opened = browser.new_page()
    opened.goto(address)
    opened.pdf(path=tmp_path / "report.pdf", format=form)
    above = " ".join(
        " ".join(opened.locator("h2, section:not(#reproduce) .weir-lead").all_text_contents()).split()
    )
    opened.close()
    subprocess.run(["pdftotext", tmp_path / "report.pdf", tmp_path / "report.txt"], check=True)
    pages = (tmp_path / "report.txt").read_text().strip("\f\n").split("\f")
    assert len(pages) > 2
    ends = [one.strip().splitlines()[-1].strip() for one in pages]
    assert [last for last in ends if len(last) > 8 and last in above] == []


@pytest.mark.parametrize("width", [WIDE_PX, MIDDLE_PX, NARROW_PX])
@pytest.mark.parametrize("count", [3, 8, 12])
def test_labels_touch_their_marks_and_nothing_else(browser, width, count):
    """Systems of almost one quality and time, as fusions are, with long names: measured as the browser draws them."""
    drawn = np.random.default_rng(count)
    points = tuple(
        Point(
            f"bm25 >> score({n})",
            2 + drawn.random(),
            (y := 0.5 + drawn.random() / 20),
            y - 0.03,
            y + 0.03,
            n + 1,
        )
        for n in range(count)
    )
    chart = Points("t", "milliseconds of a query", "nDCG@10", points, ((0, True),))
    opened = browser.new_page(viewport={"width": width + 40, "height": 600})
    opened.set_content(f"<style>{style_sheet()}</style>{svg(chart, width, classes=True)}")
    labels = opened.evaluate(
        """() => [...document.querySelectorAll('[data-label]')].map(g => {
          const box = g.querySelector('text').getBBox(), line = g.querySelector('line');
          return {box: [box.x, box.y + 2, box.x + box.width, box.y + box.height - 2], at: [+g.dataset.x, +g.dataset.y],
            ink: g.querySelector('text').getAttribute('class'),
            from: line && [+line.getAttribute('x1'), +line.getAttribute('y1')],
            to: line && [+line.getAttribute('x2'), +line.getAttribute('y2')]}})"""
    )
    opened.close()
    assert len(labels) == count

    def apart(point, box):
        return math.hypot(
            max(box[0] - point[0], 0, point[0] - box[2]), max(box[1] - point[1], 0, point[1] - box[3])
        )

    for n, one in enumerate(labels):
        assert one["ink"] == f"weir-f-n{n + 1}"
        assert 0 <= one["box"][0] < one["box"][2] <= width
        near = apart(one["at"], one["box"])
        assert near <= 16 or (math.dist(one["from"], one["at"]) <= 8 and apart(one["to"], one["box"]) <= 6)
        for other in labels:
            assert other is one or apart(other["at"], one["box"]) > 3
        for other in labels[:n]:
            a, b = one["box"], other["box"]
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
