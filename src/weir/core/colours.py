"""Colours of systems, verdicts, charts and pages, for both themes."""

from __future__ import annotations

LIGHT = [
    "#3d3dd2",
    "#d95281",
    "#a1950c",
    "#9c76ff",
    "#519eaf",
    "#7b0640",
    "#598549",
    "#452e77",
    "#945c01",
    "#655c8a",
    "#950914",
    "#2b7153",
]
DARK = [
    "#81b4ff",
    "#ea8495",
    "#f5d84a",
    "#7b6ff5",
    "#267590",
    "#9e5a61",
    "#c9efa9",
    "#a38db8",
    "#b79763",
    "#e1cfff",
    "#f05910",
    "#a3edcd",
]
"""Colours of systems 1 to 12 on a light and on a dark page, apart for readers of every colour vision."""
UNCOLOURED = len(LIGHT) + 1
"""The number of every system beyond the colours: a thin grey line, a dot as mark, absent from legends."""


def _luminance(ink: str) -> float:
    parts = [int(ink[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _readable(colour: str, paper: str, ink: str) -> str:
    def mixed(part: float) -> str:
        pairs = [(int(colour[at : at + 2], 16), int(ink[at : at + 2], 16)) for at in (1, 3, 5)]
        return "#" + "".join(f"{round(own * (1 - part) + other * part):02x}" for own, other in pairs)

    return next(one for one in map(mixed, (n / 20 for n in range(21))) if _contrast(one, paper) >= 4.6)


INKS = {
    "paper": ("#ffffff", "#15181c"),
    "ink": ("#1a1e23", "#e8ebee"),
    "soft": ("#555e68", "#a3adb8"),
    "axis": ("#8a929b", "#6d7680"),
    "line": ("#e3e6ea", "#2c3238"),
    "panel": ("#f4f6f8", "#1d2126"),
    "link": ("#2450b8", "#8ab4ff"),
    "s0": ("#434a52", "#c3cad2"),
    "better": ("#0b6b5c", "#4fc3ad"),
    "worse": ("#9a4a10", "#e79a5b"),
    "serious": ("#9b1c1c", "#ff8f85"),
    **{f"s{n + 1}": pair for n, pair in enumerate(zip(LIGHT, DARK, strict=True))},
    f"s{UNCOLOURED}": ("#8a929b", "#6d7680"),
    **{f"better{n}": pair for n, pair in enumerate(zip(["#e2f3ef", "#c3e6de", "#9fd6ca", "#78c4b4"],
        ["#19332f", "#1b443d", "#1c564c", "#1b695c"], strict=True))},
    **{f"worse{n}": pair for n, pair in enumerate(zip(["#fbeadb", "#f8dcc3", "#f2c6a0", "#ecb27f"],
        ["#38281b", "#4a3019", "#5f3a18", "#764617"], strict=True))},
    **{f"place{n}": pair for n, pair in enumerate(zip(["#eef3fb", "#dbe6f7", "#c2d5f1", "#a5c0e9", "#86a9df"],
        ["#1b2330", "#1f2c42", "#243757", "#29436d", "#2f5085"], strict=True))},
}  # fmt: skip
"""Every colour by name, as (on a light page, on a dark page); n0, n1 ... are for names of systems."""
INKS |= {
    f"n{n}": (
        _readable(INKS[f"s{n}"][0], INKS["paper"][0], INKS["ink"][0]),
        _readable(INKS[f"s{n}"][1], INKS["paper"][1], INKS["ink"][1]),
    )
    for n in range(UNCOLOURED + 1)
}
"""Every colour by its name, on a light page and on a dark one; n0, n1 ... are those of names of systems."""
ANY_PAGE = {"better": "#16857a", "worse": "#b8621b"}
"""Teal and rust for a page whose theme is not known: 4:1 on white and on near-black."""
STYLES = {"best": "1", "better": "38;5;30", "worse": "38;5;130", "faint": "2"}
"""SGR parameters of each style: bold, teal, rust, faint; both colours keep 4:1 on black and on white."""
