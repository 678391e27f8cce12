"""Charts: what is drawn is what results say, whatever stands in names, and colours can be told apart."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.api.charts import system_numbers
from weir.core.charts import (
    DARK,
    INKS,
    LIGHT,
    NARROW_PX,
    WIDE_PX,
    HeatMap,
    Interval,
    Intervals,
    Panel,
    Point,
    Points,
    Spread,
    css,
    log_ticks,
    svg,
    text_width,
    ticks,
)
from weir.core.rounding import score, short_score

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
        assert f">{short_score(standing.mean)}<" in drawn
    assert [one.value for panel in differences.panels for one in panel.intervals] == [
        next(p.difference for p in results[0].pairs if p.second == panel.title)
        for panel in differences.panels
    ]
    assert [panel.system for panel in differences.panels] == [
        numbers[panel.title] for panel in differences.panels
    ]


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
    assert second.name == "one-2.svg"
    assert "<svg" in figure._repr_html_()
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
            assert (1 if most == 3 else 2) <= len(shown) <= most
            assert all(low * 0.99 <= tick <= high * 1.01 for tick in shown)


def test_a_system_keeps_its_mark_in_all_charts_of_the_same_systems():
    names = ["rm3", 'dense("minilm")', "bm25(k1=2.0)", "bm25", "bm25 >> rm3"]
    for baseline in ("", "rm3", "bm25"):
        for order in (names, names[::-1]):
            numbers = system_numbers(order, baseline)
            assert [numbers.number(name) for name in names] == [4, 3, 2, 0, 1]
    assert [system_numbers(["new", "old"], "old").number(name) for name in ("new", "old")] == [1, 2]


def test_an_axis_has_two_numbers_at_least():
    for low, high in ((0.44, 0.86), (0.0, 1.0), (0.701, 0.709), (-0.02, 0.03)):
        for most in (2, 3, 5):
            shown = ticks(low, high, most)
            assert 2 <= len(shown) <= most + 3
            assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in shown)


def test_a_figure_of_a_file_says_what_its_marks_mean():
    row = Interval(0.1, 0.05, 0.15, 1, False, (("one", 0.2),))
    drawn = svg(Intervals("t", "a", ("x",), (Panel("", (row,)),)), 672, key=True)
    for words in ("95% interval", "not separable", "mean on one collection"):
        assert f">{words}<" in drawn
        assert f">{words}<" not in svg(Intervals("t", "a", ("x",), (Panel("", (row,)),)), 672)
    tinted = HeatMap("t", ("a",), ("b",), ((0.5,),), (("worse",),), ((-0.2,),))
    assert ">worse<" in svg(tinted, 672, key=True)
    assert ">lower to higher<" in svg(HeatMap("t", ("a",), ("b",), ((0.5,),)), 672, key=True)
    root = ET.fromstring(svg(tinted, 320, key=True))
    assert float(root.get("height")) > float(ET.fromstring(svg(tinted, 320)).get("height"))


def test_a_label_is_as_wide_as_said():
    assert text_width("i" * 10, 10) < text_width("n" * 10, 10) < text_width("W" * 10, 10)
    assert re.search(r"x…x", svg(Intervals("t", "a", ("x" * 300,), (Panel("", (Interval(0.5),)),)), 320))
