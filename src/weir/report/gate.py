"""Whether a change passes, as people, a pull request and a build server read it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import change, count, probability, score, share
from weir.core.tables import Cell, Table, columns, paragraph
from weir.errors import printable
from weir.stats.gate import CORRECTED, Gate
from weir.stats.power import POWER

WORDS = {"pass": "pass", "fail": "FAIL", "undecided": "UNDECIDED"}
_INDENT = " " * 6


def gate_outcome(found: Sequence[Gate]) -> str:
    """pass, fail or undecided: what all of them come to; a group of queries, which has few, can only fail."""
    if any(one.verdict == "fail" for one in found):
        return "fail"
    return "pass" if all(one.harmless for one in found) else "undecided"


def gate_text(found: Sequence[Gate], width: int | None = None) -> str:
    """Each gate with its verdict; where it does not pass, why, and the queries that lost most; groups as a table."""
    lines = []
    several = len({one.dataset for one in found}) > 1
    for one in found:
        if one.group and one.verdict != "fail":
            continue
        lines.append(paragraph(f"{WORDS[one.verdict]}  {_what(one, several)}: {_said(one)}", width))
        if not one.passed:
            lines += [paragraph(_INDENT + reason, width) for reason in _reasons(one)]
            lines += _broken_lines(one, width)
    groups = [one for one in found if one.group]
    if groups:
        lines += ["", _group_table(groups, several, width)]
    if len(found) > 1:
        lines += ["", paragraph(f"{WORDS[gate_outcome(found)]}: {_control(found)}", width)]
    return "\n".join(lines)


def gate_json(found: Sequence[Gate]) -> str:
    """One JSON object for each gate, at full precision."""
    rows = [plain(one) | {"passed": one.passed, "needed": one.needed} for one in found]
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def gate_markdown(found: Sequence[Gate]) -> str:
    """For a pull request: the outcome, a line for each gate, and the queries that lost most."""
    header = ("dataset", "group", "measure", "verdict", "queries", "baseline", "candidate", "change")
    rows = [
        (
            *(one.dataset, one.group, one.measure, WORDS[one.verdict], count(one.queries)),
            *(
                score(one.before),
                score(one.after),
                change(one.difference),
                change(one.low),
                score(one.max_drop),
            ),
        )
        for one in found
    ]
    table = _table((*header, "at least", "allowed drop"), rows, 4)
    parts = [f"**weir gate: {WORDS[gate_outcome(found)]}**", table.markdown()]
    reasons = [f"- {_what(one, True)}: {'; '.join(_reasons(one))}" for one in found if not one.passed]
    broken = [
        (one.dataset, one.group, one.measure, move.query, score(move.first), score(move.second))
        for one in found
        if not one.harmless
        for move in one.broken
    ]
    if reasons:
        parts.append("\n".join(printable(line) for line in reasons))
    if broken:
        heads = ("dataset", "group", "measure", "query that lost", "baseline", "candidate")
        parts.append(_table(heads, broken, 4).markdown())
    return "\n\n".join([*parts, *([_control(found)] if len(found) > 1 else [])])


def gate_junit(found: Sequence[Gate]) -> str:
    """JUnit's XML: a test case for each gate; one that does not pass is a failure, an undecided group is skipped."""
    from xml.etree import ElementTree as Xml

    failed = sum(not one.harmless for one in found)
    skipped = sum(one.harmless and not one.passed for one in found)
    counts = {"tests": str(len(found)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    root = Xml.Element("testsuites", counts)
    suite = Xml.SubElement(root, "testsuite", {"name": "weir gate", **counts})
    for one in found:
        name = f"{one.measure} of {one.group}" if one.group else one.measure
        case = Xml.SubElement(
            suite, "testcase", {"classname": printable(one.dataset), "name": printable(name), "time": "0"}
        )
        if one.passed:
            continue
        outcome = Xml.SubElement(
            case,
            "skipped" if one.harmless else "failure",
            {"type": one.verdict, "message": printable(f"{WORDS[one.verdict]}: {_said(one)}")},
        )
        outcome.text = printable("; ".join(_reasons(one))) + "\n" + "\n".join(_broken_lines(one, None))
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode")


def _what(one: Gate, several: bool) -> str:
    """The measure, with its dataset where there are several and its group where it has one."""
    return one.measure + (f" on {one.dataset}" if several else "") + (f", {one.group}" if one.group else "")


def _said(one: Gate) -> str:
    logarithms = " of logarithms" if one.geometric else ""
    queries = f"{count(one.queries)} quer{'y' if one.queries == 1 else 'ies'}"
    return (
        f"candidate - baseline {change(one.difference)}{logarithms}, at least {change(one.low)} with "
        f"{100 * one.confidence:g}% confidence over {queries}; allowed drop {score(one.max_drop)}"
    )


def _reasons(one: Gate) -> list[str]:
    """Why a gate does not pass, and what would decide it."""
    adjusted = f", {CORRECTED[bool(one.group)]} over {one.tests}" if one.tests > 1 else ""
    tested = f"p {probability(one.p)} where nothing dropped (one-sided t{adjusted})"
    if one.verdict == "fail":
        return [f"the mean fell from {score(one.before)} to {score(one.after)}, {tested}"]
    if one.queries < 2:
        return ["one query tells nothing of others"]
    remedy = " or a larger --max-drop" if one.within else ""
    dropped = "" if one.within else f", and the drop may be chance: {tested}"
    needed = "more than ten million queries" if one.needed is None else f"about {count(one.needed)} queries"
    return [
        f"{count(one.queries)} queries that vary so tell the mean only to within "
        f"{score(one.difference - one.low)}{dropped}",
        f"{needed} would decide it {share(POWER, 0)} of the time if the change is what it looks like{remedy}",
    ]


def _broken_lines(one: Gate, width: int | None) -> list[str]:
    if not one.broken:
        return []
    rows = [[m.query, score(m.first), score(m.second), change(m.difference)] for m in one.broken]
    table = columns(
        [["query", "baseline", "candidate", "change"], *rows],
        3,
        None if width is None else width - len(_INDENT),
    )
    head = f"{count(one.lost)} quer{'y' if one.lost == 1 else 'ies'} lost"
    most = f", these {len(one.broken)} most" if one.lost > len(one.broken) else ""
    return [_INDENT + line for line in [f"{head}{most}:", *table.split("\n")]]


def _group_table(groups: Sequence[Gate], several: bool, width: int | None) -> str:
    head = [
        "dataset",
        "measure",
        "group",
        "verdict",
        "queries",
        "baseline",
        "candidate",
        "change",
        "at least",
    ]
    rows = [
        [
            *(one.dataset, one.measure, one.group, _word(one), count(one.queries)),
            *(score(one.before), score(one.after), change(one.difference), change(one.low)),
        ]
        for one in groups
    ]
    cells = [line if several else line[1:] for line in (head, *rows)]
    return columns(cells, 5, width, keys=3 if several else 2)


def _word(one: Gate) -> str:
    """The verdict, loud where it stands in the way."""
    return one.verdict if one.harmless else WORDS[one.verdict]


def _control(found: Sequence[Gate]) -> str:
    """Over what the verdicts hold together."""
    whole = [one for one in found if not one.group]
    said = [
        f"all {len(whole)} have to pass, each at its full confidence; a failure is adjusted over them (holm)"
    ] * (len(whole) > 1)
    said += [f"of {len(found) - len(whole)} groups none may fail (bh); none has to pass"] * (
        len(found) > len(whole)
    )
    return "; ".join(said)


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], keys: int) -> Table:
    """The rows without the columns in which nothing stands."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    cells = tuple(tuple(Cell(row[i]) for i in kept) for row in rows)
    names = tuple(header[i] for i in kept)
    return Table("", names, cells, keys=sum(i < keys for i in kept))
