"""Changes of an input: of its bytes, lines, cells, words, and of the members of its JSON.

An input is a line that says how it is read, such as the name of a file, and the body behind it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

_WORD = re.compile(rb"[\w.+-]+|[^\w\s]")
_NUMBER = re.compile(rb"[+-]?[\d.]+(?:[eE][+-]?\d+)?")
_SEPARATOR = re.compile(rb"[ \t,;\v\f]")

NUMBERS: tuple[bytes, ...] = (
    *b"0 -0 1 -1 2 10 0.5 -0.0 1e0 1e-30 1e30 1e308 1e309 -1e309 1e-320 1e400 nan inf -inf NaN Infinity 16384 16385 "
    b"-16384.5 2147483648 9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551616 16777217 "
    b"1.00000001 0x10 1_0 1. .5 +3 - . 1e 00 1,5 true null 0.1 4096 999999999999999999999999999999".split(),
    b"9" * 400,
    "١٢".encode(),
    "１".encode(),
    b"1e99999999999",
)
"""Numbers at the bounds of types, and what only looks like one."""

IDENTIFIERS: tuple[bytes, ...] = (
    b"q1", b"d1", b"d2", b"q2", b"1", b"01", b"1.0", b"", b" ", b"a b", b'"', b'"a"', b'a"b', b"'", b"#", b"\\",
    b"\\n",
    b"..", b"../..", b"/etc/passwd", b"CON", b"a\x00b", b"\x1b[31m", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xc3\xa9",
    b"e\xcc\x81", "\u202e".encode(), "\u2028".encode(), "\U0001f600".encode(), "\u0130".encode(), b"\\ud800",
    b"=cmd",
    b"x" * 300, b"x" * 5000, b"Q0", b"query-id", b"_id", b"text", b"score", b"doc_id", b"query", b"{}", b"[]",
    b"__class__",
    b"%s", b"{0}", b"docdocdocdocdoc1", b"docdocdocdocdoc2",
)  # fmt: skip
"""Identifiers that separators, encodings, terminals and file systems take for something else."""

MEMBERS: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 10**120, 0.5, -0.0, 1e308, 1e-320, float("nan"),
    float("inf"), "", " ",
    "a", "q1", "d1", "1", "0.5", "nan", "\u0000", "\ud800", "\u202e", "x" * 5000, "../..", "#",
    "http://127.0.0.1:1/", [], {},
    [[]], [None], {"": 1}, {"a": None}, ["a", "a"], [1, "a"], {"a": {"a": {"a": []}}}, [0] * 50,
)  # fmt: skip
"""What may stand where JSON has another value."""

Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def mutated(data: bytes, rng: random.Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """An input with one to five changes; corpus: others, of which parts are taken; words: those of the format."""
    head, _, body = data.partition(b"\n")
    if rng.random() < 0.1:
        head = rng.choice(corpus).partition(b"\n")[0]
    for _ in range(min(5, 1 + int(rng.expovariate(1.4)))):
        body = rng.choice(_MUTATIONS)(body, rng, words)
    if rng.random() < 0.05:
        other = rng.choice(corpus).partition(b"\n")[2]
        body = body[: rng.randint(0, len(body))] + other[rng.randint(0, len(other)) :]
    return head + b"\n" + body[:100_000]


def _byte(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    at, cut = rng.randint(0, len(body)), rng.choice((0, 0, 1, 1, 2, 8))
    new = rng.choice(
        (b"", bytes([rng.randrange(256)]), rng.randbytes(rng.randint(1, 4)), b"\n", b"\t", b" ", b"\0")
    )
    return body[:at] + new + body[at + cut :]


def _bit(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    if not body:
        return body
    at = rng.randrange(len(body))
    return body[:at] + bytes([body[at] ^ 1 << rng.randrange(8)]) + body[at + 1 :]


def _cut(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    at = rng.randint(0, len(body))
    return body[:at] if rng.random() < 0.5 else body[:at] + body[at + rng.randint(0, 40) :]


def _word(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    """Another word in the place of one: mostly a number for a number, a name for a name, a sign for a sign."""
    spans = [match.span() for match in _WORD.finditer(body[:20_000])]
    start, stop = rng.choice(spans) if spans else (0, 0)
    old = body[start:stop]
    here = [body[a:b] for a, b in spans]
    if rng.random() < 0.15:
        start = stop = rng.choice((start, stop))
    if rng.random() < 0.2:
        like = [*NUMBERS, *IDENTIFIERS]
    elif _NUMBER.fullmatch(old):
        like = list(NUMBERS)
    else:
        is_name = old[:1].isalpha()
        like = [word for word in (*words, *here) if word[:1].isalpha() == is_name]
    return body[:start] + (rng.choice(like) if like else b"") + body[stop:]


def _line(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    """A line twice, elsewhere, not at all, or ended otherwise."""
    lines = body.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randint(0, len(lines))
    match rng.randrange(5):
        case 0:
            lines.insert(to, lines[at])
        case 1:
            lines.insert(to, lines.pop(at))
        case 2:
            del lines[at]
        case 3:
            lines[at] += rng.choice((b"\r", b" ", b"\t", b"\x0b", b" #", "\u2028".encode()))
        case _:
            lines[at:at] = [lines[at]] * rng.randint(2, 30)
    return b"\n".join(lines)


def _cell(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    """Cells of a line exchanged, doubled, dropped, replaced, or separated otherwise."""
    lines = body.split(b"\n")
    at = rng.randrange(len(lines))
    separators = _SEPARATOR.findall(lines[at]) or [b" "]
    mark = rng.choice(separators)
    cells = lines[at].split(mark)
    one, other = rng.randrange(len(cells)), rng.randrange(len(cells))
    match rng.randrange(5):
        case 0:
            cells[one], cells[other] = cells[other], cells[one]
        case 1:
            cells.insert(one, cells[other])
        case 2:
            del cells[one]
        case 3:
            cells[one] = rng.choice(NUMBERS + IDENTIFIERS)
        case _:
            mark = rng.choice((b" ", b"\t", b",", b";", b"  ", b"\xc2\xa0"))
    lines[at] = mark.join(cells)
    return b"\n".join(lines)


def _member(body: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    """A member of JSON, or of a line of JSON, exchanged, removed, renamed or doubled."""
    lines = [body] if rng.random() < 0.5 else body.split(b"\n")
    at = rng.randrange(len(lines))
    try:
        value = json.loads(lines[at])
    except (ValueError, RecursionError):
        return _word(body, rng, words)
    lines[at] = json.dumps(altered(value, rng, words), ensure_ascii=rng.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )
    return b"\n".join(lines)


def altered(value: Any, rng: random.Random, words: Sequence[bytes]) -> Any:  # noqa: ANN401  any JSON
    """JSON with one member exchanged, removed, renamed, doubled or wrapped."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.15:
        wrapped = ([value], {"a": value}, str(value), [value, value])
        return rng.choice(wrapped if rng.random() < 0.2 else MEMBERS)
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    key = rng.choice(list(copy)) if isinstance(copy, dict) else rng.randrange(len(copy))
    match rng.randrange(8):
        case 0:
            del copy[key]
        case 1 if isinstance(copy, dict):
            copy[rng.choice(words or (b"a",)).decode("utf-8", "replace")] = copy.pop(key)
        case 1:
            copy.insert(key, copy[key])
        case 2 if isinstance(copy, dict):
            copy[rng.choice(list(copy))] = copy[key]
        case _:
            copy[key] = altered(copy[key], rng, words)
    return copy


_MUTATIONS: tuple[Mutation, ...] = (
    _byte,
    _bit,
    _cut,
    _word,
    _word,
    _word,
    _line,
    _cell,
    _cell,
    _member,
    _member,
    _member,
)
