"""Odd identifiers."""

from __future__ import annotations

from collections.abc import Iterator

from vector_cases.writing import case
from weir.plugins.conform.vectors import Vector

ABOUT = "Identifiers are text, compared byte for byte: no number, no trimming, no normalisation."
ALL = "nDCG@10 AP RR P@1 R@1"
ODD = {
    "leading-zero": ("01", "1", "01 and 1 are two documents"),
    "decimal": ("1.0", "1", "1.0 and 1 are two documents"),
    "negative": ("-5", "5", "-5 is an identifier"),
    "blank": ("a b", "a", "an identifier with a blank"),
    "outer-blank": (" a", "a", "a blank before it belongs to the identifier"),
    "trailing-blank": ("a ", "a", "a blank after it belongs to the identifier"),
    "tab": ("a\tb", "a", "an identifier with a tab"),
    "line-end": ("a\nb", "a", "an identifier with a line end"),
    "accent": ("\u00e9", "e", "an identifier beyond ASCII"),
    "composed": ("\u00e9", "e\u0301", "NFC and NFD spellings are two documents"),
    "url": ("http://x.y/z?q=1#f", "http://x.y/z?q=1", "a URL with its fragment"),
    "case": ("Doc", "doc", "Doc and doc are two documents"),
    "emoji": ("\U0001f600", "\U0001f601", "identifiers beyond 16 bits"),
    "chinese": ("\u6f22\u5b57", "\u6f22", "an identifier in Chinese"),
    "nan": ("nan", "inf", "identifiers that look like floats"),
    "none": ("None", "null", "identifiers that look like nothing"),
    "true": ("True", "true", "identifiers that look like truth"),
    "exponent": ("1e5", "100000", "1e5 and 100000 are two documents"),
    "hash": ("#1", "1", "an identifier that begins like a comment"),
    "quote": ('"a"', "a", "quotes belong to the identifier"),
    "comma": ("a,b", "a", "a comma belongs to the identifier"),
    "backslash": ("a\\nb", "a", "a backslash is a backslash"),
    "percent": ("a%20b", "a b", "nothing is decoded"),
    "invisible": ("a\u200b", "a", "a zero-width space belongs to the identifier"),
    "mark": ("\ufeffa", "a", "a byte order mark belongs to the identifier"),
    "wide": ("\uff11", "1", "a full-width 1 is not 1"),
    "long": ("x" * 300, "x" * 299, "identifiers of 300 bytes"),
    "big-number": ("9007199254740993", "9007199254740992", "numbers beyond 53 bits"),
    "sharp-s": ("stra\u00dfe", "strasse", "no case folding"),
}


def cases() -> Iterator[Vector]:
    for name, (odd, plain, shows) in ODD.items():
        yield case(
            f"id-{name}",
            f"Documents: {shows}.",
            {"q1": [(odd, 1), (plain, 0)]},
            {"q1": [(plain, 2.0), (odd, 1.0)]},
            ALL,
        )
    for name in (
        "leading-zero",
        "decimal",
        "negative",
        "blank",
        "tab",
        "accent",
        "composed",
        "url",
        "case",
        "nan",
        "big-number",
    ):
        odd, plain, shows = ODD[name]
        yield case(
            f"query-id-{name}",
            f"Queries: {shows}.",
            {odd: [("a", 1)], plain: [("b", 1)]},
            {odd: [("a", 1.0)], plain: [("x", 2.0), ("b", 1.0)]},
            ALL,
        )
    yield case(
        "id-like-the-query",
        "A query's identifier may be a document's, by chance.",
        {"7": "7 8"},
        {"7": "9 8 7"},
        ALL,
        "beir#206",
    )
    yield case(
        "numbers-as-ids",
        "Query and document identifiers that are all numbers.",
        {"1": "10:2 20:1", "2": "10"},
        {"1": "20 10 30", "2": "30 10"},
        ALL,
    )
