"""Writes src/weir/text/data/uax29-{classes,automaton}.txt: word segmentation as Lucene 9.1 to 9.12 does it.

Needs the one release of the `regex` package whose tables are Unicode 12.1, the version Lucene's StandardTokenizer is
built for:

    pip install --no-build-isolation --no-binary :all: regex==2019.12.20
    python scripts/make_uax29.py

The classes file says which kind of character each code point is. The automaton is the longest match over the word
rules of UAX #29 (WB3 to WB13b), the emoji sequences of UTS #51, and three rules of Lucene's own: one ideograph or
one hiragana is a word, a run of South East Asian letters (line break class SA) is one word, and everything that is
in no word is dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

DATA = Path(__file__).parent.parent / "src/weir/text/data"
PROPERTIES = {
    "letter": r"\p{WB=ALetter}",
    "hebrew": r"\p{WB=Hebrew_Letter}",
    "numeric": r"\p{WB=Numeric}",
    "katakana": r"\p{WB=Katakana}",
    "midletter": r"\p{WB=MidLetter}",
    "midnumlet": r"\p{WB=MidNumLet}",
    "midnum": r"\p{WB=MidNum}",
    "quote": r"\p{WB=Single_Quote}",
    "doublequote": r"\p{WB=Double_Quote}",
    "joiner": r"\p{WB=ExtendNumLet}",
    "ignored": r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]",
    "selector": "[\ufe0e\ufe0f]",
    "emojiselector": "\ufe0f",
    "zwj": r"\p{WB=ZWJ}",
    "flag": r"\p{WB=Regional_Indicator}",
    "han": r"\p{Script=Han}",
    "hiragana": r"\p{Script=Hiragana}",
    "southeast": r"\p{LB=SA}",
    "emoji": r"[\p{Emoji}\p{Extended_Pictographic}]",
    "pictographic": r"\p{Extended_Pictographic}",
    "modifier": r"\p{Emoji_Modifier}",
    "modifierbase": r"\p{Emoji_Modifier_Base}",
    "keycapbase": r"[0-9#*]",
    "accidental": r"[©®™〰〽]",
    "keycap": "\u20e3",
    "tag": "[\U000e0020-\U000e007e]",
    "tagend": "\U000e007f",
}
Part = tuple[int, int]  # where an expression starts and ends in the nondeterministic automaton


def class_of_code_points() -> tuple[list[int], list[frozenset[str]]]:
    """The class number of every code point, and the properties each class has; class 0 has none."""
    import regex  # type: ignore[import-untyped]  # a development tool, one release only

    every = "".join(map(chr, range(0x110000)))
    has: list[list[str]] = [[] for _ in every]
    for name, pattern in PROPERTIES.items():
        for found in regex.finditer(f"{pattern}+", every):
            for code in range(*found.span()):
                has[code].append(name)
    kinds = [frozenset[str]()]
    number = {kinds[0]: 0}
    classes = []
    for names in map(frozenset, has):
        if names not in number:
            number[names] = len(kinds)
            kinds.append(names)
        classes.append(number[names])
    return classes, kinds


class Grammar:
    """Expressions over character classes, built bottom-up into one nondeterministic automaton."""

    def __init__(self, kinds: list[frozenset[str]]) -> None:
        self.kinds = kinds
        self.empty: list[list[int]] = []
        self.moves: list[tuple[frozenset[int], int] | None] = []

    def state(self) -> int:
        self.empty.append([])
        self.moves.append(None)
        return len(self.moves) - 1

    def one(self, test: Callable[[frozenset[str]], bool]) -> Part:
        start, end = self.state(), self.state()
        self.moves[start] = (frozenset(i for i, k in enumerate(self.kinds) if test(k)), end)
        return start, end

    def any_of(self, *names: str) -> Part:
        return self.one(lambda k: bool(k & set(names)))

    def seq(self, *parts: Part) -> Part:
        for (_, end), (start, _) in pairwise(parts):
            self.empty[end].append(start)
        return parts[0][0], parts[-1][1]

    def either(self, *parts: Part) -> Part:
        start, end = self.state(), self.state()
        self.empty[start] += [p[0] for p in parts]
        for p in parts:
            self.empty[p[1]].append(end)
        return start, end

    def plus(self, part: Part) -> Part:
        self.empty[part[1]].append(part[0])
        return part

    def maybe(self, part: Part) -> Part:
        start, end = self.state(), self.state()
        self.empty[start] += [part[0], end]
        self.empty[part[1]].append(end)
        return start, end

    def many(self, part: Part) -> Part:
        return self.maybe(self.plus(part))

    def ex(self, *names: str) -> Part:
        """A character of these properties and what WB4 ignores after it."""
        return self.seq(self.any_of(*names), self.many(self.any_of("ignored")))


def words(g: Grammar) -> Part:
    """WB5 to WB13b: letters, digits and katakana, with what may stand between them."""

    def joiners() -> Part:
        return g.many(g.ex("joiner"))

    def chunk() -> Part:
        katakana = g.seq(g.ex("katakana"), g.many(g.seq(joiners(), g.ex("katakana"))))
        between = g.either(joiners(), g.ex("midnum", "midnumlet", "quote"))
        number = g.seq(g.ex("numeric"), g.many(g.seq(between, g.ex("numeric"))))
        between = g.either(joiners(), g.ex("midletter", "midnumlet", "quote"))
        letters = g.seq(g.ex("letter", "hebrew"), g.many(g.seq(between, g.ex("letter", "hebrew"))))
        gershayim = g.seq(g.ex("doublequote"), g.ex("hebrew"))
        hebrew = g.seq(g.ex("hebrew"), g.either(g.ex("quote"), gershayim))
        return g.either(katakana, g.plus(g.either(hebrew, number, letters)))

    return g.seq(joiners(), chunk(), g.many(g.seq(g.plus(g.ex("joiner")), chunk())), joiners())


def emoji(g: Grammar) -> Part:
    """UTS #51 sequences: presentation, modifier, zwj, tag, keycap and flag."""

    def trailing() -> Part:
        return g.many(g.one(lambda k: "ignored" in k and "selector" not in k))

    def is_emoji(k: frozenset[str]) -> bool:
        special = k & {"flag", "keycapbase", "accidental", "modifier"}
        return "pictographic" in k or ("emoji" in k and not special)

    def element() -> Part:
        selector = g.maybe(g.any_of("emojiselector"))
        plain = g.seq(g.many(g.any_of("zwj")), g.one(is_emoji), trailing(), selector)
        base = g.maybe(g.seq(g.many(g.any_of("zwj")), g.any_of("modifierbase"), trailing()))
        return g.either(plain, g.seq(base, g.any_of("modifier"), trailing()))

    joined = g.many(g.seq(g.any_of("zwj"), element()))
    tagged = g.seq(g.plus(g.any_of("tag")), g.any_of("tagend"))
    sequence = g.seq(element(), g.either(joined, tagged))
    selector = g.maybe(g.any_of("emojiselector"))
    keycap = g.seq(g.any_of("keycapbase"), trailing(), selector, g.any_of("keycap"), trailing())
    return g.either(sequence, keycap, g.seq(g.ex("flag"), g.ex("flag")))


def deterministic(g: Grammar, whole: Part) -> tuple[list[list[int]], list[bool]]:
    """next[state][class] and which states are the end of a word; state 0 is the dead end, 1 the start."""

    def closed(states: Iterable[int]) -> frozenset[int]:
        seen, todo = set(states), list(states)
        while todo:
            for s in g.empty[todo.pop()]:
                if s not in seen:
                    seen.add(s)
                    todo.append(s)
        return frozenset(seen)

    order = [frozenset[int](), closed([whole[0]])]
    number = {s: i for i, s in enumerate(order)}
    table: list[list[int]] = []
    for states in order:  # grows while it is walked
        row = []
        for c in range(len(g.kinds)):
            moves = (g.moves[s] for s in states)
            target = closed([m[1] for m in moves if m is not None and c in m[0]])
            if target not in number:
                number[target] = len(order)
                order.append(target)
            row.append(number[target])
        table.append(row)
    return table, [whole[1] in s for s in order]


def smallest(table: list[list[int]], accept: list[bool]) -> tuple[list[list[int]], list[bool]]:
    """The same automaton without states that cannot be told apart; 0 and 1 keep their meaning."""
    group = [int(a) for a in accept]
    while True:
        signature = [(group[s], *(group[t] for t in row)) for s, row in enumerate(table)]
        number: dict[tuple[int, ...], int] = {}
        finer = [number.setdefault(x, len(number)) for x in signature]
        if len(number) == len(set(group)):
            break
        group = finer
    first = {n: s for s, n in reversed(list(enumerate(finer)))}
    kept = [first[n] for n in range(len(first))]
    return [[finer[t] for t in table[s]] for s in kept], [accept[s] for s in kept]


def same_columns(table: list[list[int]]) -> list[int]:
    """Classes the automaton cannot tell apart share a number; class 0 stays 0."""
    number: dict[tuple[int, ...], int] = {}
    return [number.setdefault(column, len(number)) for column in zip(*table, strict=True)]


def write(classes: list[int], names: list[str], table: list[list[int]], accept: list[bool]) -> None:
    """The two files, readable and small."""
    rows, start = [], 0
    for code in range(1, len(classes) + 1):
        if code == len(classes) or classes[code] != classes[start]:
            if classes[start]:
                rows.append(f"{start:04X} {code - 1:04X} {classes[start]}")
            start = code
    head = ["# first code point, last code point, class; every other code point is class 0"]
    head += [f"# class {i}: {n}" for i, n in enumerate(names)]
    made = "# made by scripts/make_uax29.py from Unicode 12.1; see README.md"
    (DATA / "uax29-classes.txt").write_text("\n".join([made, *head, *rows, ""]), encoding="utf-8")
    lines = [made, "# one line a state, from 0 (dead end) and 1 (start): ends a word?, next state by class"]
    lines += [" ".join(map(str, [int(a), *row])) for a, row in zip(accept, table, strict=True)]
    (DATA / "uax29-automaton.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> int:
    """Make both files."""
    classes, kinds = class_of_code_points()
    g = Grammar(kinds)
    single = [g.plus(g.ex("southeast")), g.ex("han"), g.ex("hiragana")]
    table, accept = smallest(*deterministic(g, g.either(words(g), emoji(g), *single)))
    merged = same_columns(table)
    names = [
        "; ".join(
            sorted(" ".join(sorted(k)) or "other" for k, m in zip(kinds, merged, strict=True) if m == n)
        )
        for n in range(max(merged) + 1)
    ]
    columns = [merged.index(n) for n in range(len(names))]
    write([merged[c] for c in classes], names, [[row[c] for c in columns] for row in table], accept)
    sys.stdout.write(f"{len(names)} classes, {len(table)} states\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
