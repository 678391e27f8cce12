"""Logs of clicks: tables of clicks and impressions, searches with the results clicked, events of UBI."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weir.errors import BadValue
from weir.plugins.importing.click_models import ClickLog, ClickModel, click_shares, parse_click_model
from weir.plugins.importing.contents import Contents, click_columns, roles_of
from weir.plugins.importing.items import (
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Refused,
    Used,
    lost_columns,
    number,
    plain,
)
from weir.plugins.importing.readers import ReadRequest, reader

ORIGIN = "clicks"
LAST_POSITION = 10_000
_ROLES = ("query", "query_id", "doc", "clicks", "clicked", "impressions", "rank")
_SHOWN = ("impression",)
_CLICKED = ("click",)


@dataclass
class _Impressions:
    """What a log holds, row by row: a pair of query and document, its position (0: unknown), clicks, impressions."""

    pairs: dict[tuple[ItemKey, str], int] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    rows: list[tuple[int, int, float, float]] = field(default_factory=list)

    def add(self, query: ItemKey, doc: str, where: str, row: tuple[int, float, float]) -> None:
        """Another row; row: position, clicks, impressions."""
        pair = self.pairs.setdefault((query, doc), len(self.pairs))
        if pair == len(self.where):
            self.where.append(where)
        self.rows.append((pair, *row))

    def log(self) -> ClickLog:
        """The rows as columns."""
        columns = np.array(self.rows, np.float64).reshape(-1, 4).T
        return ClickLog(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2], columns[3])


def _judgments(held: _Impressions, asked: ReadRequest, path: Path) -> Iterator[Item]:
    """A judgment of each pair that was shown often enough, by the model that was asked for."""
    if not held.rows:
        return
    choices = asked.choices
    log = held.log()
    model = (
        parse_click_model(choices.clicks)
        if choices.clicks
        else ClickModel("coec" if log.positioned else "ctr")
    )
    try:
        shares = click_shares(log, model)
    except BadValue as lacking:
        raise BadValue(f"{path}: {lacking}") from None
    few = sum(share.impressions < choices.impressions for share in shares)
    if few == len(shares):
        raise BadValue(
            f"{path}: none of {few:,} pairs of query and document was shown {choices.impressions} times or more; say "
            "--impressions N for a lower floor, with wider intervals"
        )
    queries: dict[ItemKey, str] = {}
    for (query, _), where in zip(held.pairs, held.where, strict=True):
        queries.setdefault(query, where)
    yield from (FoundQuery(query, where) for query, where in queries.items())
    for (query, doc), where, share in zip(held.pairs, held.where, shares, strict=True):
        if share.impressions >= choices.impressions and share.expected:
            yield Judgment(query, ItemKey(doc), share.value, where, origin=ORIGIN, clicks=share)
    by_default = "" if choices.clicks else " (by default; --clicks ctr, coec or pbm)"
    clicks, shown = int(log.clicks.sum()), int(log.impressions.sum())
    yield FileRemark(
        f"{clicks:,} clicks of {shown:,} impressions; grades by {model}{by_default}, their intervals in clicks/"
    )
    if few:
        yield FileRemark(
            f"{few:,} of {len(shares):,} pairs were shown fewer than {choices.impressions} times and are left out "
            "(--impressions)"
        )
    if nothing := sum(not share.expected for share in shares):
        yield FileRemark(f"{nothing:,} pairs stood only where nothing is ever clicked, and are left out")


def _columns(contents: Contents) -> dict[str, str]:
    """Role -> column of a table of clicks; {} for what is none."""
    counted = click_columns(contents.columns, contents.given)
    if not {"clicks", "clicked"} & set(counted):
        return {}
    others = [name for name in contents.columns if name not in counted.values()]
    roles = roles_of(others, contents.given, contents.path)
    judged = {"grade", "score"} & set(roles)
    if judged or not {"query", "query_id"} & set(roles) or "doc" not in roles:
        return {}
    return {role: column for role, column in {**roles, **counted}.items() if role in _ROLES}


def _table(contents: Contents) -> str:
    roles = _columns(contents) if contents.shape == "rows" else {}
    return ", ".join(f"{role}={roles[role]}" for role in _ROLES if role in roles)


@reader("clicks", "clicks and impressions", _table)
def read_clicks(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """A row for each query and document, perhaps position; or for each impression, with whether it was clicked.

    Raises BadValue for a table without clicks, or without impressions.
    """
    roles = _columns(contents)
    if not roles:
        raise BadValue(
            f"{contents.path}: no table of clicks; expected columns of query, document, clicks and impressions, as in "
            "--columns query=q,doc=url,clicks=c,impressions=n,rank=position"
        )
    if "impressions" not in roles and "clicked" not in roles:
        name = roles["clicks"]
        raise BadValue(
            f"{contents.path}: clicks in '{name}' and no impressions, without which no model says how attractive a "
            f"document is: a click of two impressions is not one of a hundred; give them, or --columns grade={name}"
        )
    yield from (Used(role, column) for role, column in roles.items())
    yield from lost_columns([name for name in contents.columns if name not in roles.values()])
    texts = [plain(row.fields.get(roles.get("query", ""))) for row in contents.rows]
    are_ids = "query_id" not in roles and all(
        len(text.split()) == 1 and len(text) <= 64 for text in texts if text
    )
    held, first = _Impressions(), 1 << 30
    rows = []
    averages = False
    for row in contents.rows:
        doc = plain(row.fields.get(roles["doc"]))
        text = plain(row.fields.get(roles.get("query", "")))
        key = ItemKey(text if are_ids else plain(row.fields.get(roles.get("query_id", ""))), text)
        clicks = _count(row.fields.get(roles.get("clicks", roles.get("clicked", ""))))
        shown = _count(row.fields.get(roles["impressions"])) if "impressions" in roles else 1.0
        position = number(row.fields.get(roles["rank"])) if "rank" in roles else 0.0
        reason = _wrong(doc, key, clicks, shown, position)
        if reason:
            yield Refused(row.where, reason)
            continue
        assert clicks is not None
        assert shown is not None
        assert position is not None
        averages = averages or not position.is_integer()
        rows.append((key, doc, row.where, position, clicks, shown))
        first = min(first, int(position))
    if averages:
        yield FileRemark(
            f"the positions in '{roles['rank']}' have fractions, as averages have, and are not used"
        )
    elif "rank" in roles and first == 0:
        yield FileRemark("positions begin at 0 and are counted from 1")
    for key, doc, where, position, clicks, shown in rows:
        at = 0 if averages or "rank" not in roles else int(position) + (first == 0)
        if shown:
            held.add(key, doc, where, (at, clicks, shown))
    yield from _judgments(held, asked, contents.path)


def _count(value: object) -> float | None:
    """A number of times, or whether it happened; None for anything else."""
    if isinstance(value, bool):
        return float(value)
    named = {"true": 1.0, "false": 0.0}
    count = named.get(value.strip().lower()) if isinstance(value, str) else None
    count = number(value) if count is None else count
    return count if count is not None and count >= 0 else None


def _wrong(
    doc: str, query: ItemKey, clicks: float | None, shown: float | None, position: float | None
) -> str:
    """Why a row is none; "" where nothing is wrong."""
    if not doc or query == ItemKey():
        return "no document" if not doc else "no query"
    if clicks is None or shown is None:
        return "clicks or impressions that are no number from 0"
    if position is None or not 0 <= position < LAST_POSITION:
        return f"a position that is no number from 0 to {LAST_POSITION:,}"
    return f"{clicks:g} clicks of {shown:g} impressions" if clicks > shown else ""


def _searches(contents: Contents) -> list[tuple[int, list[str]]]:
    """Lines of session, query, region, weight, results, layout and clicks, the last three as JSON."""
    if contents.shape != "lines":
        return []
    lines = [(n, line.split("\t")) for n, line in enumerate(contents.text.split("\n"), 1) if line.strip()]
    known = bool(lines) and all(len(cells) == 7 and cells[4][:1] in ("[", "{") for _, cells in lines)
    return lines if known else []


@reader(
    "click-searches",
    "searches with the results clicked",
    lambda contents: "lines of session, query, results and clicks" if _searches(contents) else "",
)
def read_searches(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """The log format of the clickmodels project: each result of a search is an impression at its place."""
    held = _Impressions()
    for line, cells in _searches(contents):
        try:
            results, clicks = _by_place(json.loads(cells[4])), _by_place(json.loads(cells[6]))
        except (ValueError, RecursionError, AttributeError):
            yield Refused(f"line {line}", "results or clicks that are no JSON list or object by place")
            continue
        for at, doc in results.items():
            if plain(doc):
                held.add(
                    ItemKey(text=cells[1]),
                    plain(doc),
                    f"line {line}",
                    (at + 1, float(bool(clicks.get(at))), 1.0),
                )
    yield from _judgments(held, asked, contents.path)


def _by_place(value: Any) -> dict[int, Any]:  # noqa: ANN401  JSON holds anything
    """Results, or clicks, by place from 0; raises ValueError or AttributeError for what is neither list nor object."""
    places = (
        dict(enumerate(value)) if isinstance(value, list) else {int(at): one for at, one in value.items()}
    )
    if not all(0 <= at < LAST_POSITION for at in places):
        raise ValueError("a place of a result that is none")
    return places


def _events(contents: Contents) -> list[dict[str, Any]]:
    rows: list[Any] = [row.fields for row in contents.rows]
    return [row for row in rows if isinstance(row, dict) and "action_name" in row and "query_id" in row]


def _ubi(contents: Contents) -> str:
    actions = Counter(plain(row["action_name"]) for row in _events(contents))
    return ", ".join(f"{count} {name}" for name, count in sorted(actions.items()))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


@reader("ubi-events", "events of User Behavior Insights", _ubi)
def read_ubi(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """Impressions and clicks by the text of the query; a document of one search counts once, clicked or not.

    Raises BadValue for events without impressions or clicks.
    """
    shown: dict[tuple[str, str], tuple[str, float, str]] = {}
    clicked: set[tuple[str, str]] = set()
    texts = {plain(r.fields["query_id"]): plain(r.fields.get("user_query")) for r in contents.rows
             if plain(r.fields.get("query_id")) and plain(r.fields.get("user_query"))}  # fmt: skip
    actions = Counter(plain(row["action_name"]) for row in _events(contents))
    if not any(actions[name] for name in _SHOWN) or not any(actions[name] for name in _CLICKED):
        events = ", ".join(f"{count} {name}" for name, count in sorted(actions.items()))
        raise BadValue(
            f"{contents.path}: a log of clicks needs impressions and clicks, and this one has {events}; without what "
            "was shown no model says how attractive a document is"
        )
    for row in contents.rows:
        action = plain(row.fields.get("action_name"))
        if action not in (*_SHOWN, *_CLICKED):
            continue
        about = _object(row.fields.get("event_attributes"))
        search, doc = plain(row.fields.get("query_id")), plain(_object(about.get("object")).get("object_id"))
        position = number(_object(about.get("position")).get("ordinal"))
        if position is None or not 0 <= position < LAST_POSITION:
            position = -1.0
        if not doc or search not in texts:
            yield Refused(row.where, "no object_id" if not doc else "an event whose search has no user_query")
        elif action in _CLICKED:
            clicked.add((search, doc))
        else:
            shown.setdefault((search, doc), (texts[search], position, row.where))
    first = min((position for _, position, _ in shown.values()), default=0.0)
    if unseen := len(clicked - shown.keys()):
        yield FileRemark(
            f"{unseen} clicks on documents without an impression in the same search are left out"
        )
    held = _Impressions()
    for (search, doc), (text, position, where) in shown.items():
        at = 0 if first < 0 else int(position) + (first == 0)
        held.add(ItemKey(text=text), doc, where, (at, float((search, doc) in clicked), 1.0))
    yield from _judgments(held, asked, contents.path)
