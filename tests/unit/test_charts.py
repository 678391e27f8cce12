"""Charts: what is drawn is what results say, whatever stands in names, and colours can be told apart."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from tests.shown import drawings
from weir.api.charts import system_numbers
from weir.core.charts import (
    ICONS,
    MIDDLE_PX,
    NARROW_PX,
    SHEET_PX,
    STRIP_PX,
    WIDE_PX,
    WIDTHS_PX,
    HeatMap,
    Interval,
    Intervals,
    Panel,
    Point,
    Points,
    Spread,
    css,
    cuts,
    height,
    legend,
    log_ticks,
    mark_svg,
    sheets,
    strips,
    svg,
    text_width,
    ticks,
)
from weir.core.colours import DARK, INKS, LIGHT, UNCOLOURED
from weir.core.rounding import score

NAMES = st.text(max_size=30) | st.sampled_from(
    ["<script>alert(1)</script>", "\u202eabc", "x" * 10_000, "&amp;\"'", "\x00\ud800"]
)
SCORES = st.floats(0, 1)


@st.composite
def charts(draw):
    names = tuple(draw(st.lists(NAMES, min_size=1, max_size=4)))
    values = [tuple(sorted(draw(st.tuples(SCORES, SCORES, SCORES)))) for _ in names]
    kind = draw(st.integers(0, 3))
    title = draw(NAMES)
    if kind == 0:
        rows = tuple(
            Interval(m, low, high, draw(st.integers(0, 12)), draw(st.booleans()), ((draw(NAMES), low),))
            for low, m, high in values
        )
        return Intervals(
            title,
            draw(NAMES),
            names,
            (Panel(draw(NAMES), rows, 1), Panel("", (None,) * len(names))),
            draw(st.booleans()),
        )
    if kind == 1:
        points = tuple(
            Point(n, 0.01 + m, low, low, high) for n, (low, m, high) in zip(names, values, strict=True)
        )
        return Points(title, "ms", "nDCG", points, draw(st.sampled_from([(), ((0, True),)])))
    if kind == 2:
        return HeatMap(
            title, names, names, tuple((low,) * (len(names) - 1) + (None,) for low, _, _ in values)
        )
    return Spread(
        title,
        "ms",
        names,
        ("p50", "p95"),
        tuple((0.1 + low, 0.1 + high) for low, _, high in values),
        draw(st.sampled_from([(0,), (None,)])) * len(names),
    )


@given(charts(), st.sampled_from([NARROW_PX, WIDE_PX, 320]), st.booleans())
@settings(max_examples=60)
def test_every_chart_is_well_formed_whatever_its_names_are(chart, width, classes):
    text = svg(chart, width, classes, key=not classes)
    root = ET.fromstring(text)
    assert "script" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    assert "\u202e" not in text
    assert "style=" not in text  # the policy of a page allows none
    for element in root.iter():
        for value in element.attrib.values():
            assert "nan" not in value.split()
            assert "inf" not in value.split()
    assert max((len(t) for t in root.itertext()), default=0) < 60_000
    assert all(float(e.get("font-size", 12)) >= 11 for e in root.iter())


def test_the_numbers_of_a_comparison_are_those_of_its_drawing():
    qrels = {f"q{n}": {"d": 1} for n in range(12)}
    runs = {
        name: {f"q{n}": ({"d": 2.0, "x": 1.0} if n % step else {"x": 2.0, "d": 1.0}) for n in range(12)}
        for name, step in (("one", 2), ("two", 3), ("three", 5))
    }
    results = weir.compare(qrels, runs, ["RR"], baseline="one")
    means, differences = results.charts()
    numbers = {"one": 1, "three": 2, "two": 3}  # by name, whoever is the baseline
    drawn = svg(means)
    for standing in results[0].standings:
        assert f"{standing.system} {score(standing.mean)}" in drawn
        assert f">{score(standing.mean)}<" in drawn
    [panel] = differences.panels  # of one collection, where systems are rows
    assert [(one.value, one.system) for one in panel.intervals] == [
        (next(p.difference for p in results[0].pairs if p.second == name), numbers[name])
        for name in differences.rows
    ]


def test_differences_of_pairs_are_the_better_less_the_worse_the_largest_first():
    qrels = {f"q{n}": {"d": 1} for n in range(12)}
    runs = {
        name: {f"q{n}": ({"d": 2.0, "x": 1.0} if n % step else {"x": 2.0, "d": 1.0}) for n in range(12)}
        for name, step in (("one", 2), ("two", 5), ("three", 3))
    }
    drawn = weir.compare(qrels, runs, ["RR"]).charts()[-1]
    sizes = [one.value for one in drawn.panels[0].intervals]
    assert drawn.rows == ("two − one", "three − one", "two − three")
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] > 0


def test_a_triangle_is_a_verdict_and_no_system():
    def corners(path):
        alone, numbers = len(re.findall("[hv]", path)), len(re.findall(r"[0-9.]+", path))
        return (numbers - alone) / 2 + alone

    assert [corners(ICONS[verdict]) for verdict in ("better", "worse")] == [3, 3]
    marks = [mark_svg(number).partition(' d="')[2].partition('"')[0] for number in range(len(LIGHT) + 1)]
    assert all(marks)
    assert all("a" in path or corners(path) > 3 for path in marks)


@pytest.mark.parametrize("named", [NARROW_PX, WIDE_PX])
def test_a_mark_beside_a_name_is_left_of_the_axis(named):
    """On a telephone names stand above their rows; a mark on the line at zero would read as a value."""
    rows = tuple(f"a system whose name is too long for a telephone {n}" for n in range(3))
    panel = Panel("", tuple(Interval(0.2, 0.1, 0.3, n) for n in range(3)))
    drawn = svg(Intervals("t", "difference of RR", rows, (panel,), signed=True), named, True, inter=True)
    zero = min(float(x) for x in re.findall(r'<line x1="([0-9.]+)"', drawn))
    marks = [float(x) for x in re.findall(r'<path transform="translate\(([0-9.]+) ', drawn)]
    assert len(marks) == 6
    assert sum(x + 6 < zero for x in marks) == 3


@pytest.mark.parametrize("width", [NARROW_PX, MIDDLE_PX, WIDE_PX])
def test_numbers_of_a_row_stand_on_one_line(width):
    verdicts = ("", "better", "worse", "") * 4
    chart = HeatMap("t", ("one",), tuple(f"s{n}" for n in range(16)), (tuple(n / 16 for n in range(16)),),
                    (verdicts,), ((0.2,) * 16,))  # fmt: skip
    parts = re.findall(r'y="([0-9.]+)"[^>]*>[01]?\.\d+<', svg(chart, width, True, inter=True))
    assert len(parts) == 16
    blocks = 1 + svg(chart, width, True, inter=True).count(">one<")
    assert len(set(parts)) < blocks


TWO_SYSTEMS = {
    "one": {"a": {"x": 1.0}, "b": {"y": 1.0}},
    "two": {"a": {"z": 2.0, "x": 1.0}, "b": {"y": 1.0}},
}


@pytest.fixture
def figure():
    return weir.compare({"a": {"x": 1}, "b": {"y": 1}}, TWO_SYSTEMS, ["RR"]).plot()


def test_a_figure_is_saved_as_its_ending_says(figure, tmp_path):
    [first, second] = figure.save(tmp_path / "one.svg", width="column")
    assert ET.parse(first).getroot().get("width") == "320"
    title = "-".join(re.findall(r"[a-z0-9]+", figure.charts[1].title.lower()))
    assert title
    assert second.name == f"one-2-{title}.svg"
    assert len(drawings(figure._repr_html_())) == 2
    with pytest.raises(weir.errors.UnknownName, match="ending of a figure"):
        figure.save(tmp_path / "one.gif")


def test_a_figure_is_saved_as_pixels_and_as_pages(figure, tmp_path):
    pytest.importorskip("vl_convert", reason="needs the `figures` extra (vl-convert-python)")
    assert figure.save(tmp_path / "one.png")[0].read_bytes()[:4] == b"\x89PNG"
    assert figure.save(tmp_path / "one.pdf")[0].read_bytes()[:4] == b"%PDF"


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_and_marks_have_the_contrast_of_aa():
    for theme in (0, 1):
        paper = INKS["paper"][theme]
        for name in ("ink", "soft", "link", "better", "worse", "serious"):
            assert contrast(INKS[name][theme], paper) >= 4.5, name
        for name in ("s0", "axis", *(f"s{n}" for n in range(1, 13))):
            assert contrast(INKS[name][theme], paper) >= 3, name
        for name in (f"n{n}" for n in range(13)):
            assert contrast(INKS[name][theme], paper) >= 4.5, name
        for name in (n for n in INKS if n[-1].isdigit() and n[0] not in "ns"):
            assert contrast(INKS["ink"][theme], INKS[name][theme]) >= 4.5, name
    assert len(set(LIGHT)) == len(set(DARK)) == 12
    assert all(f"--weir-{name}" in css() for name in INKS)


@pytest.mark.parametrize(("systems", "light", "dark"), [(4, 14.5, 15), (8, 9.5, 10.5), (12, 9, 10)])
def test_systems_have_colours_that_every_vision_tells_apart(systems, light, dark):
    """CIEDE2000 of the nearest pair, least over four visions; three kinds of colour blindness are those of
    Machado et al. 2009."""
    coloraide = pytest.importorskip("coloraide", reason="needs the `dev` extra (coloraide)")
    for theme, least in ((0, light), (1, dark)):
        colours = [coloraide.Color(INKS[f"s{n}"][theme]) for n in range(systems + 1)]
        for vision in (None, "protan", "deutan", "tritan"):
            seen = [c if vision is None else c.filter(vision, method="machado") for c in colours]
            nearest = min(a.delta_e(b, method="2000") for a, b in combinations(seen, 2))
            assert nearest >= least, (theme, vision, nearest)


def test_axes_with_unequal_steps_have_numbers():
    for low, high in ((0.2, 200), (90, 400), (150, 260), (0.011, 0.017), (3, 240)):
        for most in (3, 6, 12):
            shown = log_ticks(low, high, most)
            assert 3 <= len(shown) <= most + 5
            assert all(low * 0.99 <= tick <= high * 1.01 for tick in shown)


def test_a_system_keeps_its_mark_in_all_charts_of_the_same_systems():
    names = ["rm3", 'dense("minilm")', "bm25(k1=2.0)", "bm25", "bm25 >> rm3"]
    for baseline in ("", "rm3", "bm25"):
        for order in (names, names[::-1]):
            numbers = system_numbers(order, baseline)
            assert [numbers.number(name) for name in names] == [4, 3, 2, 0, 1]
    assert [system_numbers(["new", "old"], "old").number(name) for name in ("new", "old")] == [1, 2]


@given(st.floats(-1000, 1000), st.floats(1e-4, 1e4), st.integers(2, 8))
def test_an_axis_has_three_numbers_at_least(low, wide, most):
    shown = ticks(low, low + wide, most)
    assert 3 <= len(shown) <= most + 5
    assert all(low - wide / 1e6 <= tick <= low + wide * 1.000001 for tick in shown)


@given(st.floats(1e-3, 1e3), st.floats(1.05, 1e6), st.integers(3, 8))
def test_a_logarithmic_axis_has_three_numbers_at_least(low, times, most):
    shown = log_ticks(low, low * times, most)
    assert 3 <= len(shown) <= most + 5
    assert all(low * 0.998 <= tick <= low * times * 1.002 for tick in shown)


def test_a_figure_of_a_file_says_what_its_marks_mean():
    row = Interval(0.1, 0.05, 0.15, 1, False, (("one", 0.2),))
    drawn = svg(Intervals("t", "a", ("x",), (Panel("", (row,)),)), 672, key=True)
    for words in ("95% interval", "not separable", "mean on one collection"):
        assert f">{words}<" in drawn
        assert f">{words}<" not in svg(Intervals("t", "a", ("x",), (Panel("", (row,)),)), 672)
    tinted = HeatMap("t", ("a",), ("b",), ((0.5,),), (("worse",),), ((-0.2,),))
    assert ">worse<" in svg(tinted, 672, key=True)
    assert ">0.2 to 0.4<" in svg(HeatMap("t", ("a",), ("b",), ((0.5,),)), 672, key=True)
    assert ">20% to 40%<" in svg(HeatMap("t", ("a",), ("b",), ((0.5,),), percent=True), 672, key=True)
    assert ">0.2 to 0.4<" not in svg(HeatMap("t", ("a",), ("b",), ((7.5,),)), 672, key=True)
    root = ET.fromstring(svg(tinted, 320, key=True))
    assert float(root.get("height")) > float(ET.fromstring(svg(tinted, 320)).get("height"))


def test_a_label_is_as_wide_as_said():
    assert text_width("i" * 10, 10) < text_width("n" * 10, 10) < text_width("W" * 10, 10)
    assert re.search(r"x…x", svg(Intervals("t", "a", ("x" * 300,), (Panel("", (Interval(0.5),)),)), 320))


def large_charts():
    rows = tuple(f"bm25(k1={n / 10}, b=0.75)" for n in range(30))
    columns = tuple(f"collection-of-name-{n}" for n in range(11))
    values = tuple(tuple((i * 11 + j) / 330 for j in range(11)) for i in range(30))
    verdicts = tuple(tuple("better" if i == j else "" for j in range(11)) for i in range(30))
    panels = tuple(
        Panel(name, tuple(Interval(v, v - 0.1, v + 0.1) for v in of[:11]), 13)
        for name, of in zip(rows, values, strict=True)
    )
    yield HeatMap("t", rows, columns, values)
    yield HeatMap("t", rows, columns, values, verdicts, values)
    yield HeatMap("t", rows, columns, values, percent=True).turned
    yield Intervals("t", "difference of nDCG@10", columns, panels, signed=True)
    yield Intervals("t", "nDCG@10", columns, panels, ends=True)
    many = tuple(Interval(n / 90, n / 100, n / 80, n % 14, n > 9, (("one", n / 95),)) for n in range(90))
    names = tuple(f"run-of-a-long-name.{n}" for n in range(90))
    yield Intervals("t", "nDCG@10", names, (Panel("", many),))
    yield Spread(
        "t", "words", names, ("25%", "median"), tuple((n + 1.0, n + 2.0) for n in range(90)), (None,) * 90
    )
    yield HeatMap("t", names, columns, values * 3)
    yield Points(
        "t", "ms", "nDCG@10", tuple(Point(name, n + 1.0, n / 90, named=False) for n, name in enumerate(names))
    )


@pytest.mark.parametrize("width", [*WIDTHS_PX.values(), NARROW_PX])
def test_large_charts_are_sheets_that_hold_every_number(width):
    for chart in large_charts():
        parts = sheets(chart, width)
        drawn = [svg(part, width, key=True) for part in parts]
        assert all(float(ET.fromstring(one).get("height")) <= SHEET_PX for one in drawn)
        assert all(float(ET.fromstring(one).get("width")) <= width for one in drawn)
        shown = [t for one in drawn for t in re.findall(r">([^<]*)</text>", one)]
        if isinstance(chart, HeatMap):
            assert {(r, c) for part in parts for r in part.rows for c in part.columns} == {
                (r, c) for r in chart.rows for c in chart.columns
            }
            for value in (v for of_row in chart.values for v in of_row):
                wanted = (
                    {f"{value:.1%}", f"{value:.0%}"} if chart.percent else {score(value), f"{value:.3f}"[1:]}
                )
                assert wanted & set(shown), value
        elif isinstance(chart, Points):
            assert {f"{n} {point.name}" for n, point in enumerate(chart.points, 1)} <= set(shown)
        else:
            assert sum(len(part.rows) * len(getattr(part, "panels", "1")) for part in parts) == (
                len(chart.rows) * len(getattr(chart, "panels", "1"))
            )


def grid_lines(drawn: str) -> set[str]:
    lines = (one.attrib for one in ET.fromstring(drawn).iter() if one.tag.endswith("line"))
    return {one["x1"] for one in lines if one["x1"] == one["x2"] and one["stroke"] == INKS["line"][0]}


@pytest.mark.parametrize("width", [WIDE_PX, MIDDLE_PX, NARROW_PX])
def test_parts_of_a_chart_hold_all_of_it_on_one_axis_that_the_last_one_names(width):
    for chart in large_charts():
        parts = strips(chart, width)
        if isinstance(chart, Points):
            assert parts == (chart,)
            continue
        assert {row for part in parts for row in part.rows} == set(chart.rows)
        assert len(parts) == 1 or all(part.whole == chart for part in parts)
        if isinstance(chart, HeatMap):
            assert width == NARROW_PX or all(height(part, width) <= SHEET_PX for part in parts)
            continue
        assert all(height(part, width) <= STRIP_PX for part in parts)
        assert [part.axis for part in parts] == [""] * (len(parts) - 1) + [chart.axis]
        lines = [grid_lines(svg(part, width)) for part in parts]
        assert all(of <= lines[0] for of in lines)


def test_a_legend_explains_what_is_drawn_alone():
    for width in (320, 672, WIDE_PX):
        _, verdicts, shares, *_ = large_charts()
        drawn = svg(verdicts, width, key=True)
        assert drawn.count(ICONS["better"]) == 11 + 1
        assert ICONS["worse"] not in drawn
        assert ">better<" in drawn
        for words in ("under 20%", "20% to 40%", "over 80%"):
            assert f">{words}<" in svg(shares, width, key=True)
    spread = Spread("t", "words", ("a",), ("a query", "a document"), ((9.0, 3.0),), (None,), joined=False)
    assert svg(spread, 672, key=True).count(">a query<") == 1
    assert "then" not in svg(spread, 672)


def test_front_that_nobody_tested_is_dotted_and_says_so():
    points = (Point("a", 1, 0.5), Point("b", 2, 0.6))
    tested, untested = (
        svg(Points("t", "ms", "nDCG", points, ((0, True), (1, True)), tested=known), 672, key=True)
        for known in (True, False)
    )
    assert "stroke-dasharray" not in tested
    assert "stroke-dasharray" in untested
    assert "not tested here" in untested


STEMS = st.text("abcdef._-(", min_size=1, max_size=60)


@given(STEMS, STEMS, st.integers(2, 40), st.integers(120, 400))
@settings(max_examples=60)
def test_names_that_differ_are_cut_so_that_they_differ(before, after, count, room):
    names = [f"{before}{n}{after}" for n in range(count)] + ["bm25"]
    shown = cuts(names, room)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    assert all(text_width(text, 13) <= room for text in shown.values())
    assert all(text == name for name, text in cuts(names).items() if len(name) <= 60)


def test_systems_beyond_the_palette_have_no_colour_and_simple_ones_come_first():
    names = [f"bm25(k1={n})" for n in range(20)] + ["rm3", "elastic", "bm25"]
    for order in (names, names[::-1]):
        numbers = system_numbers(order)
        assert [numbers.number(name) for name in ("bm25", "elastic", "rm3")] == [0, 11, 12]
        assert [numbers.number(name) for name in names].count(UNCOLOURED) == 10
        assert len(legend(numbers)) == 13


def test_charts_of_a_notebook_are_images_for_a_light_and_a_dark_page():
    figure = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"]).plot()
    shown = figure._repr_html_()
    assert "prefers-color-scheme" not in shown  # the notebook's theme decides, not the system's
    for dark, theme in enumerate(("light", "dark")):
        drawn = drawings(shown, theme)
        assert drawn == [svg(one, MIDDLE_PX, key=True, dark=bool(dark)) for one in figure.charts]
        assert all(INKS["paper"][dark] in one and INKS["paper"][1 - dark] not in one for one in drawn)


def test_a_notebook_that_is_not_trusted_shows_charts_and_no_loose_words():
    """Jupyter drops style sheets with what they hold, and elements of SVG, whose texts stay."""
    shown = weir.benchmark("brook-news", ["bm25", "rm3"], ["nDCG@10"]).plot()._repr_html_()
    safe = re.sub(r"<style>.*?</style>", "", shown)
    assert not re.search("<(?!/?(div|p|strong|img)[ >])", safe)
    light, dark = re.findall("<img[^>]+>", safe)[:2]
    assert f'width="{MIDDLE_PX}"' in light
    assert 'width="0" height="0"' in dark
    assert re.search('alt="[^"]*rm3 0.7530', light)
