"""TREC topics: the classic tagged form, and a query and its text between a tab."""

from __future__ import annotations

import html
import re
from pathlib import Path

from weir.core.corpus import Queries
from weir.errors import BadValue, FormatError
from weir.io.storage.text_files import read_bytes

__all__ = ["read_topics"]

_TOP = re.compile(r"<top\b[^>]*>(.*?)(?:</top>|(?=<top\b)|\Z)", re.DOTALL | re.IGNORECASE)
_NAMES = "num|title|desc|narr|con|fac|def|dom|smry|lang|nat"
_FIELD = re.compile(rf"<({_NAMES})\b[^>]*>(.*?)(?=<(?:{_NAMES})\b|\Z)", re.DOTALL | re.IGNORECASE)
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>")
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
FIELDS = ("title", "desc", "narr")


def read_topics(path: Path | str, field: str = "title") -> Queries:
    """Read TREC topics: `<top> <num> <title> <desc> <narr>`, or lines of `query<TAB>text`.

    field: which part of a tagged topic becomes the text: "title", "desc" or "narr"; several may be joined
    with `+`, as in "title+desc". Raises FormatError for a topic without number or field, and for one that
    occurs twice.
    """
    path = Path(path)
    wanted = field.split("+")
    unknown = [name for name in wanted if name not in FIELDS]
    if unknown:
        raise BadValue(f"topics have no field '{unknown[0]}'; expected one of {', '.join(FIELDS)}")
    text = read_bytes(path).decode("utf-8", "replace")
    pairs = _tagged(path, text, wanted) if re.search(r"<top\b", text, re.IGNORECASE) else _tabbed(path, text)
    found: dict[str, str] = {}
    for number, (query, value) in pairs:
        if query in found:
            raise FormatError(path, f"topic '{query}' a second time", "each topic once", number)
        found[query] = value
    return Queries.of(found)


def _tagged(path: Path, text: str, wanted: list[str]) -> list[tuple[int, tuple[str, str]]]:
    pairs, line, counted = [], 1, 0
    for topic in _TOP.finditer(text):
        line += text.count("\n", counted, topic.start())
        counted = topic.start()
        fields = {name.lower(): _clean(value) for name, value in _FIELD.findall(topic[1])}
        missing = [name for name in ("num", *wanted) if not fields.get(name)]
        if missing:
            raise FormatError(
                path, f"a topic without <{missing[0]}>", f"<num> and <{'>, <'.join(wanted)}>", line
            )
        pairs.append((line, (fields["num"], " ".join(fields[name] for name in wanted))))
    return pairs


def _clean(value: str) -> str:
    return " ".join(html.unescape(_MARKUP.sub(" ", _LABEL.sub("", value))).split())


def _tabbed(path: Path, text: str) -> list[tuple[int, tuple[str, str]]]:
    pairs = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        query, tab, value = line.partition("\t")
        if not tab or not query.strip():
            raise FormatError(path, f"'{line.strip()[:60]}'", "query, tab, text; or <top> topics", number)
        pairs.append((number, (query.strip(), value.strip())))
    return pairs
