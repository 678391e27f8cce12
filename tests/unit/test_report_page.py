"""The report in a real browser: sorting, filtering, opening a query, by keyboard, in both themes, with no request."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.shown import drawings
from tests.unit.axe import violations
from tests.unit.test_charts import large_charts
from tests.unit.test_report import results, synthetic  # noqa: F401 - behind the skip; a fixture
from tests.unit.test_submissions import mine, packed, site  # noqa: F401 - behind the skip; fixtures
from weir.core.charts import (
    MIDDLE_PX,
    NARROW_PX,
    WIDE_PX,
    WIDTHS_PX,
    Point,
    Points,
    sheets,
    svg,
)
from weir.plugins.report.page import style_sheet

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def address(results, tmp_path_factory) -> str:  # noqa: F811 - the fixture
    path = tmp_path_factory.mktemp("page") / "report.html"
    theirs = path.parent / "someone__a-model-with-a-long-name" / "brook-facts.json"
    theirs.parent.mkdir()
    scores = {"hf_subset": "default", "ndcg_at_10": 0.64508, "recall_at_100": 0.9}
    theirs.write_text(json.dumps({"scores": {"test": [scores]}}))
    weir.report(results, published=theirs).save(path)
    return path.as_uri()


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


def sized(page, width: int) -> None:
    """Give the page a width, and open the sections that a telephone folds."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate(
        """async () => {
          await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
          document.querySelectorAll('.weir-fold[aria-expanded=false]').forEach(button => button.click());
        }"""
    )


def shown_at_last(page, script: str, wanted: object) -> object:
    """What a script finds once that is as wanted, or after ten seconds: frames are told of a new size later."""
    for _ in range(200):
        if (found := page.evaluate(script)) == wanted:
            break
        page.wait_for_timeout(50)
    return found


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
    assert page.locator("#leaderboard .weir-board:visible caption").inner_text().startswith("gmAP")


def test_nothing_sticks_out_and_axe_finds_nothing_serious(page):
    assert [one for one in violations(page) if one[1] in ("serious", "critical")] == []
    for width in (360, 390, 768, 905, 1024, 1440, 3840):
        sized(page, width)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        plots = page.locator("#leaderboard .weir-board:visible tbody .weir-strip").first
        assert plots.bounding_box()["width"] >= min(width - 48, 1080) / 3
        sizes = page.locator("#main svg text:visible").evaluate_all(
            "all => all.map(t => parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b))"
        )
        assert min(sizes) >= 10.99


def test_what_is_wider_than_its_frame_says_so(page):
    sized(page, 360)
    wide = "all => all.filter(f => f.offsetParent).map(f => [f.scrollWidth > f.clientWidth + 1, getComputedStyle(f, '::before').content != 'none'])"
    page.wait_for_selector(".weir-more")
    found = page.locator("section .weir-frame:visible").evaluate_all(wide)
    assert [True, True] in found
    assert all(scrolls == said for scrolls, said in found)
    worst = page.locator("#audit .weir-question p")  # the telling part is whole at every width
    assert min(worst.evaluate_all("all => all.map(p => p.getBoundingClientRect().width)")) >= 300


def test_a_telephone_shows_titles_that_open_and_paper_shows_all(browser, address):
    from axe_playwright_python.sync_playwright import Axe

    opened = browser.new_page(viewport={"width": 390, "height": 900})
    opened.goto(f"{address}#cost")
    shown = [
        one.get_attribute("id")
        for one in opened.locator("main>section").all()
        if one.locator("p, figure").first.is_visible()
    ]
    assert shown == ["short", "leaderboard", "collections", "cost"]
    named = opened.locator("#cost h2 button")
    assert named.bounding_box()["y"] < 120
    named.press("Enter")
    assert named.get_attribute("aria-expanded") == "false"
    assert opened.evaluate("document.documentElement.scrollHeight") < 5 * 900
    assert [one["id"] for one in Axe().run(opened).response["violations"] if one["impact"] != "minor"] == []
    opened.locator(".weir-top").get_by_role("link", name="Time").click()
    opened.locator("#cost figure").first.wait_for()
    opened.set_viewport_size({"width": 800, "height": 900})
    opened.wait_for_function("() => !document.querySelector('.weir-fold, .weir-folded')")
    opened.set_viewport_size({"width": 390, "height": 900})
    opened.locator("#cost.weir-folded").wait_for()
    opened.emulate_media(media="print")
    assert opened.locator("#cost .weir-lead").is_visible()
    opened.close()


def test_it_is_whole_without_javascript(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#leaderboard .weir-board:visible").count() == 2  # one for each measure that is drawn
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
        sized(opened, width)
        for one in pages:
            opened.goto(one.as_uri())
            assert opened.evaluate("document.scrollingElement.scrollWidth") <= width, one
            named, button = (
                opened.locator(f".weir-top {part}").bounding_box() for part in ("strong", "button")
            )
            assert abs(named["y"] + named["height"] / 2 - button["y"] - button["height"] / 2) < 4, one
            assert named["x"] >= 12, one
    opened.close()


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


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> str:
    """A report of 23 runs on one collection, with the names that files of re-rankings have."""
    folder = tmp_path_factory.mktemp("runs")
    names = [f"rerank.SPLADE_P_P_ENSEMBLE.output_v2_aug_model_{n}b-checkpoint-800" for n in range(22)]
    shares = {("dl19", s): 0.2 + n / 40 for n, s in enumerate(["bm25", *names])}
    weir.report(synthetic(folder / "results", shares), audit=False).save(folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> str:
    """A report of one system on one collection."""
    folder = tmp_path_factory.mktemp("alone")
    weir.report(synthetic(folder / "results", {("one", "bm25"): 0.4}), audit=False).save(
        folder / "report.html"
    )
    return (folder / "report.html").as_uri()


PAGES = ("address", "large", "runs", "alone")
WIDTHS = (360, 390, 600, 719, 720, 768, 905, 1024, 1440)


@pytest.mark.parametrize("which", PAGES)
def test_nothing_is_wider_than_its_box_and_no_texts_meet(browser, request, which):
    """At each width: no box holds more than it shows unless it scrolls and says so; no two texts of a chart, and no
    two cells of a table, lie on one another.
    """
    opened = browser.new_page()
    opened.goto(request.getfixturevalue(which))
    for theme, width in zip(("light", "dark") * 5, WIDTHS, strict=False):
        opened.emulate_media(color_scheme=theme)
        sized(opened, width)
        assert shown_at_last(opened, f"document.scrollingElement.scrollWidth <= {width}", True), width
        assert (
            shown_at_last(
                opened,
                """() => [...document.querySelectorAll('main *')]
              .filter(e => !(e instanceof SVGElement) && e.clientWidth && e.checkVisibility())
              .filter(e => !e.matches('.weir-frame, .weir-hidden, bdi, select') && !e.closest('.weir-row, .weir-text, .weir-hidden'))
              .filter(e => getComputedStyle(e).display != 'inline' && e.scrollWidth > e.clientWidth + 1)
              .map(e => [e.tagName, e.className, e.textContent.slice(0, 40), e.scrollWidth, e.clientWidth])""",
                [],
            )
            == []
        ), width
        assert shown_at_last(opened, MEETING, []) == [], width
        assert opened.evaluate(BROKEN_NUMBERS) == [], width
    opened.close()


BROKEN_NUMBERS = r"""() => {
  const range = document.createRange(), found = [];
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (!text.parentElement.checkVisibility() || text.parentElement.closest('svg, pre, code, bdi, .weir-hidden')) continue;
    for (const number of text.data.matchAll(/[+−]?\d[\d,.]*\d/g)) {
      range.setStart(text, number.index);
      range.setEnd(text, number.index + number[0].length);
      if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) found.push(number[0]);
    }
  }
  return found;
}"""
"""Numbers that stand on two lines."""


MEETING = """() => {
  const box = e => {
    const range = document.createRange(), texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), boxes = [];
    while (texts.nextNode()) {
      if (texts.currentNode.parentElement.closest('.weir-hidden')) continue;
      range.selectNodeContents(texts.currentNode);
      boxes.push(...range.getClientRects());
    }
    const ends = (side, of) => Math[of](...boxes.map(b => b[side]));
    return { left: ends('left', 'min'), right: ends('right', 'max'), top: ends('top', 'min'), bottom: ends('bottom', 'max'), width: boxes.length };
  };
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  const found = [];
  const check = (all, boxes) => all.forEach((e, n) => boxes.slice(0, n).forEach((other, m) => {
    if (boxes[n].width && other.width && meet(boxes[n], other)) found.push([e.textContent, all[m].textContent]);
  }));
  for (const drawn of document.querySelectorAll('svg.weir-chart')) {
    if (!drawn.clientWidth) continue;
    const all = [...drawn.querySelectorAll('text')].filter(t => !t.closest('[transform*=rotate]'));
    check(all, all.map(t => t.getBoundingClientRect()));
  }
  for (const row of document.querySelectorAll('tr')) {
    if (!row.offsetParent) continue;
    const all = [...row.cells].filter(c => c.offsetParent && getComputedStyle(c).position != 'sticky');
    check(all, all.map(box));
  }
  return found;
}"""
"""Texts of a chart, and contents of a table's row, whose boxes lie on one another."""


@pytest.mark.parametrize("width", [360, 390, 768, 1024, 1440])
def test_documents_stand_side_by_side(page, width):
    sized(page, width)
    page.get_by_label("Collection", exact=True).select_option(label="brook-medical")
    page.locator(".weir-doc").first.wait_for()
    one, other = (page.locator(f".weir-pair > div:nth-child({n})").bounding_box() for n in (1, 2))
    assert one["y"] == other["y"]
    assert min(one["width"], other["width"]) >= min(300, 0.4 * width)
    assert one["height"] < 3 * 900
    document = page.locator(".weir-doc:has(details)").first
    short = document.bounding_box()["height"]
    document.locator("summary").press("Enter")  # the rest of the excerpt, by keyboard
    assert document.bounding_box()["height"] >= short
    shown = document.locator(".weir-text")
    assert shown.evaluate("e => e.checkVisibility() && e.scrollHeight <= e.clientHeight + 1")


@pytest.mark.parametrize("width", [688, 710], ids=["A4", "Letter"])
@pytest.mark.parametrize("which", PAGES)
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
    assert opened.evaluate(MEETING) == []
    if which != "alone":
        strips = opened.locator("#leaderboard tbody .weir-strip:visible")
        assert (
            opened.locator("#leaderboard .weir-leaders:visible").count() == 1
        )  # further measures are tables
        assert min(strips.evaluate_all("all => all.map(s => s.clientWidth)")) >= width / 3 - 30
        assert opened.locator("#queries table").bounding_box()["height"] > 40
    assert opened.locator("#queries .weir-screen").is_hidden()
    assert opened.locator(".weir-code").evaluate("e => e.scrollWidth <= e.clientWidth")
    opened.close()


def filled(pdf: Path) -> list[float]:
    """Return how much of each page is used: where its last ink stands, from 0 at the upper margin to 1 at the lower."""
    drawn = subprocess.run(["pdftoppm", "-r", "30", "-gray", pdf], capture_output=True, check=True).stdout
    parts, pages, margin = io.BytesIO(drawn), [], MARGIN / 25.4 * 30
    while parts.readline():  # P5, the size, the largest grey, the pixels
        wide, high = map(int, parts.readline().split())
        parts.readline()
        ink = np.frombuffer(parts.read(wide * high), np.uint8).reshape(high, wide).min(axis=1) < 245
        ink = ink[: round(high - margin)]  # the number of the page stands in the margin
        pages.append((np.flatnonzero(ink).max(initial=0) - margin) / (high - 2 * margin))
    return pages


PAPER = {"A4": (210, 297), "Letter": (215.9, 279.4)}
MARGIN = 14  # millimetres
TOGETHER = """() => {
  const whole = '.weir-chart, .weir-question, .weir-code, .weir-short p, table:not(:has(tbody tr:nth-child(7))), tr'
  const seen = part => part.checkVisibility() && !part.parentElement.closest(whole)
  const parts = [...document.querySelectorAll(whole)].filter(seen)
  let tallest = 0, end = 0
  for (const [n, part] of parts.entries()) {
    const figure = part.closest('figure')  // its last chart keeps the key
    const last = figure && figure !== parts[n + 1]?.closest('figure') ? figure : part
    const bottom = last.getBoundingClientRect().bottom
    tallest = Math.max(tallest, bottom - end)
    end = Math.max(end, bottom)
  }
  return tallest
}"""
"""Returns the pixels of the tallest part of a page that paper does not divide, with what stands above it."""


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs Debian's poppler-utils")
@pytest.mark.parametrize("form", PAPER)
@pytest.mark.parametrize("which", PAGES)
def test_pages_of_paper_are_filled_and_tables_go_on_below_their_headers(
    browser, request, which, form, tmp_path
):
    """No heading ends a page, none is left emptier than what comes next is tall, no row of a table stands alone, headers are repeated."""
    wide, high = ((size - 2 * MARGIN) / 25.4 * 96 for size in PAPER[form])
    opened = browser.new_page(viewport={"width": round(wide), "height": round(high)})
    opened.goto(request.getfixturevalue(which))
    opened.pdf(path=tmp_path / "report.pdf", format=form)
    above = opened.locator("h2, section:not(#reproduce) .weir-lead").all_text_contents()
    opened.emulate_media(media="print")
    tallest = opened.evaluate(TOGETHER) / high
    tables = opened.locator("table:visible").evaluate_all(
        """all => all.filter(t => t.tHead && t.tBodies[0].rows.length > 3).map(t => [
          [...t.tHead.rows[0].cells].map(c => c.innerText.trim().split(/\\s/)[0]).filter(Boolean),
          [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.innerText.replace(/\\s+/g, ''))),
        ])"""
    )
    moved = opened.locator(
        "thead svg [transform]"
    ).count()  # Chromium leaves them out of a header that it repeats
    opened.close()
    assert moved == 0
    subprocess.run(["pdftotext", "-layout", tmp_path / "report.pdf", tmp_path / "report.txt"], check=True)
    pages = (tmp_path / "report.txt").read_text().strip("\f\n").split("\f")
    written = [[line.strip() for line in one.splitlines() if line.strip()] for one in pages]
    assert [one[-1] for one in written] == [f"{n} of {len(pages)}" for n in range(1, len(pages) + 1)]
    ends = [one[-2] for one in written]
    assert [last for last in ends if any(text.endswith(last) for text in above)] == []
    used = filled(tmp_path / "report.pdf")
    assert len(used) == len(pages)
    assert tallest < 1
    assert 1 - min(used[:-1], default=1) <= tallest
    lines = [[re.sub(r"\s+", "", line) for line in one.splitlines()] for one in pages]
    for header, rows in tables:
        last = [row[-1] for row in rows]
        held = [
            sum(
                any(line.startswith(row[0]) and line.endswith(end) for line in of)
                for row, end in zip(rows, last, strict=True)
            )
            for of in lines
        ]
        if sum(held) != len(rows) or not all(row[0] and row[-1] for row in rows):
            continue  # rows of several lines, or like those of another table
        assert 1 not in held, (header, held)
        for of, count in zip(lines, held, strict=True):
            heads = ["".join(of[n : n + 3]) for n in range(len(of))]  # a cell of a header may have two lines
            assert not count or any(all(word in head for word in header) for head in heads), header


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
    opened.set_content(f"<style>{style_sheet()}</style>{svg(chart, width, classes=True, inter=True)}")
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


def texts_outside(opened) -> list[str]:
    """Texts of charts that leave their drawing, as the browser measures them."""
    return opened.evaluate(
        """() => [...document.querySelectorAll('svg[role=img] text')].filter(t => {
          const box = t.getBoundingClientRect(), all = t.ownerSVGElement.getBoundingClientRect();
          return box.width && (box.right > all.right + 1 || box.left < all.left - 1 || box.top < all.top - 2 || box.bottom > all.bottom + 2);
        }).map(t => t.textContent)"""
    )


@pytest.mark.parametrize("width", ["page", "column"])
def test_no_text_of_a_figure_is_cut_where_inter_is_not_there(browser, results, width):  # noqa: F811 - the fixture
    opened = browser.new_page()
    charts = [*weir.report(results, audit=False).charts(), *large_charts()]
    drawn = [
        svg(part, WIDTHS_PX[width], key=True) for one in charts for part in sheets(one, WIDTHS_PX[width])
    ]
    opened.set_content("".join(drawn))
    assert texts_outside(opened) == []
    opened.set_content("".join(drawings(weir.report(results, audit=False)._repr_html_())))
    assert texts_outside(opened) == []
    opened.close()


@pytest.mark.parametrize("width", [390, 768, 1024, 1440])
@pytest.mark.parametrize("which", ["address", "large"])
def test_charts_fill_the_page_and_cut_nothing(browser, request, which, width):
    opened = browser.new_page()
    opened.goto(request.getfixturevalue(which))
    sized(opened, width)
    assert texts_outside(opened) == []
    main = opened.locator("main").evaluate(
        "e => e.clientWidth - 2 * parseFloat(getComputedStyle(e).paddingLeft)"
    )
    wide = opened.locator(".weir-drawn > div:visible > svg[role=img]").evaluate_all(
        "all => all.map(s => s.clientWidth)"
    )
    assert min(wide) >= main - 1
    names = (
        "all => all.filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
    )
    assert opened.locator(".weir-grid th, .weir-whole").evaluate_all(names) == []
    assert opened.get_by_role("button", name="Dark or light").bounding_box()["x"] < width - 60
    opened.close()


def test_what_is_pressed_is_large_enough_and_what_does_not_scroll_is_no_stop(page):
    for pressed in ("summary", ".weir-sort", ".weir-top button"):
        boxes = page.locator(f"{pressed}:visible").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect().height)"
        )
        assert min(boxes) >= 24, pressed
    stops = page.locator(".weir-frame:visible").evaluate_all(
        "all => all.map(f => [f.scrollWidth > f.clientWidth + 1, f.tabIndex])"
    )
    assert [False, -1] in stops
    assert all((tab == 0) == scrolls for scrolls, tab in stops)
    assert " " in page.locator(".weir-pair h4").first.evaluate("e => e.textContent")


def test_bars_of_queries_are_as_long_as_the_largest_and_the_list_stays_in_sight(page):
    page.get_by_label("Collection", exact=True).select_option(label="brook-medical")
    page.locator(".weir-view h3").wait_for()
    bars = page.locator(".weir-row rect").evaluate_all("all => all.map(r => +r.getAttribute('width'))")
    assert max(bars) == pytest.approx(48)
    listed = page.locator(".weir-list")
    rows_high = page.locator(".weir-list [role=presentation]").bounding_box()["height"]
    assert listed.bounding_box()["height"] <= rows_high + 4
    page.locator(".weir-doc").last.scroll_into_view_if_needed()
    assert listed.bounding_box()["y"] > 0


def test_paper_has_one_chart_of_a_section_and_breaks_between_its_strips(browser, large, address):
    opened = browser.new_page(viewport={"width": 688, "height": 970})
    opened.emulate_media(media="print")
    opened.goto(large)
    high = opened.locator(".weir-chart:visible").evaluate_all(
        "all => all.map(s => s.getBoundingClientRect().height)"
    )
    assert max(high) <= 970
    assert set(
        opened.locator(".weir-chart[role=img]:visible").evaluate_all(
            "all => all.map(s => getComputedStyle(s).breakInside)"
        )
    ) == {"avoid"}
    rows = opened.locator("#collections table").first.locator("tbody tr")
    assert rows.count() == 30
    opened.goto(address)
    assert opened.locator("#leaderboard .weir-paper table").count() == 1  # the further measure that is drawn
    assert opened.locator("#leaderboard .weir-paper").is_visible()
    opened.close()


@pytest.mark.parametrize(("theme", "system"), [("true", "dark"), ("false", "light")])
def test_a_notebook_decides_the_colours_of_its_charts_and_texts_stand_left(browser, theme, system):
    """JupyterLab has a theme of its own, and sets every cell of a table to the right."""
    rows = weir.benchmark("brook-facts", ["bm25", "rm3"], ["RR"])
    opened = browser.new_page()
    opened.emulate_media(color_scheme=system)
    opened.set_content(
        "<style>:not(.m).jp-RenderedHTMLCommon td {text-align: right}</style>"
        f'<body data-jp-theme-light="{theme}"><div class="jp-RenderedHTMLCommon">'
        f"{rows._repr_html_()}{rows.plot()._repr_html_()}</div></body>"
    )
    for media, dark in (("screen", theme == "false"), ("print", False)):
        opened.emulate_media(media=media, color_scheme=system)
        seen = opened.locator(".weir-figure img").evaluate_all(
            "all => all.filter(i => i.clientWidth).map(i => [i.className, i.clientWidth])"
        )
        assert seen == [["weir-dark" if dark else "weir-light", MIDDLE_PX]] * len(rows.plot().charts)
    aligned = opened.locator("tbody tr:first-child td").evaluate_all(
        "all => all.map(c => getComputedStyle(c).textAlign)"
    )
    assert aligned[:3] == ["left", "left", "right"]
    opened.close()


def test_a_column_that_nothing_fills_is_left_out(tmp_path):
    """Judgments alone say no number of documents."""
    places = [tmp_path / "one", tmp_path / "two"]
    for place in places:
        (place / "qrels").mkdir(parents=True)
        (place / "qrels/test.tsv").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(8)))
    for name, step in (("a", 1), ("b", 2)):
        lines = [f"q{n} Q0 d{n % (7 * step)} 1 1 {name}\n" for n in range(8)]
        (tmp_path / f"{name}.trec").write_text("".join(lines))
    systems = [f'run("{tmp_path}/{name}.trec")' for name in "ab"]
    weir.benchmark(places, systems, ["RR"], out=tmp_path / "results")
    page = weir.report(tmp_path / "results").to_html()
    table = page.partition('id="collections"')[2].partition("</table>")[0]
    assert "queries" in table
    assert "documents" not in table


@pytest.mark.parametrize("width", [360, 390])
@pytest.mark.parametrize("which", ["address", "large"])
def test_names_of_systems_stand_below_one_another_on_a_telephone(browser, request, which, width):
    opened = browser.new_page()
    opened.goto(request.getfixturevalue(which))
    sized(opened, width)
    places = opened.locator(".weir-leaders:visible tbody th").evaluate_all(
        "all => all.map(c => Math.round(c.getBoundingClientRect().left))"
    )
    assert len(places) > 1
    assert len(set(places)) == 1
    opened.close()
