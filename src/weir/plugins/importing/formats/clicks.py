"""Readers of click logs: tables of counts, searches with clicked results, events of UBI."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weir.errors import BadValue
from weir.plugins.importing.cells import grade_value, identifier, is_identifier, number, plain_text
from weir.plugins.importing.click_models import ClickLog, ClickModel, click_shares, parse_click_model
from weir.plugins.importing.contents import (
    Contents,
    click_columns,
    refuse_collections,
    roles_of,
    with_identifiers,
)
from weir.plugins.importing.items import (
    Choices,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    LeftOut,
    Refused,
    Used,
    text_of,
    value_at,
)
from weir.plugins.importing.readers import reader, when

ORIGIN = "clicks"
POSITION_LIMIT = 10_000
_ROLES = ("query", "query_id", "doc", "clicks", "clicked", "impressions", "rank")


@dataclass
class _Impressions:
    pairs: dict[tuple[ItemKey, str], int] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    rows: list[tuple[int, int, float, float]] = field(default_factory=list)

    def add(
        self, query: ItemKey, doc: str, where: str, position: int, clicks: float, impressions: float
    ) -> None:
        pair = self.pairs.setdefault((query, doc), len(self.pairs))
        if pair == len(self.where):
            self.where.append(where)
        self.rows.append((pair, position, clicks, impressions))

    def judgments(self, choices: Choices, path: Path) -> Iterator[Item]:
        if not self.rows:
            return
        pair, position, clicks, impressions = np.array(self.rows, np.float64).T
        log = ClickLog(pair.astype(np.int64), position.astype(np.int64), clicks, impressions)
        by_default = ClickModel("coec" if log.positioned else "ctr")
        model = parse_click_model(choices.clicks) if choices.clicks else by_default
        try:
            shares = click_shares(log, model)
        except BadValue as lacking:
            raise BadValue(f"{path}: {lacking}") from None
        few = sum(share.impressions < choices.impressions for share in shares)
        if few == len(shares):
            raise BadValue(
                f"{path}: none of {few:,} pairs of query and document was shown {choices.impressions} times or more; "
                "`choices={'impressions': 1}` sets a lower floor, with wider intervals"
            )
        queries: dict[ItemKey, str] = {}
        for (query, _), where in zip(self.pairs, self.where, strict=True):
            queries.setdefault(query, where)
        yield from (FoundQuery(query, where) for query, where in queries.items())
        for (query, doc), where, share in zip(self.pairs, self.where, shares, strict=True):
            if share.impressions >= choices.impressions and share.expected:
                yield Judgment(query, ItemKey(doc), share.value, where, origin=ORIGIN, clicks=share)
        choice = "" if choices.clicks else " (by default; `choices={'clicks': 'ctr'}`, coec or pbm)"
        yield FileRemark(
            f"{int(clicks.sum()):,} clicks of {int(impressions.sum()):,} impressions; grades by {model}{choice}, their "
            "intervals in clicks/"
        )
        if few:
            least = choices.impressions
            yield LeftOut(f"pairs shown fewer than {least} times, `choices={{'impressions': {least}}}`", few)
        if unclickable := sum(not share.expected for share in shares):
            yield LeftOut("pairs shown only where nothing is ever clicked", unclickable)


def _columns(contents: Contents) -> dict[str, str]:
    counts = click_columns(contents.columns, contents.roles)
    if not {"clicks", "clicked"} & set(counts):
        return {}
    others = [name for name in contents.columns if name not in counts.values()]
    roles = roles_of(others, contents.roles, contents.path)
    if {"grade", "score"} & set(roles) or not {"query", "query_id"} & set(roles) or "doc" not in roles:
        return {}
    return {role: column for role, column in {**roles, **counts}.items() if role in _ROLES}


def _table(contents: Contents) -> str:
    roles = _columns(contents) if contents.shape == "rows" else {}
    return ", ".join(f"{role}={roles[role]}" for role in _ROLES if role in roles)


@reader("clicks", "clicks and impressions", _table)
def read_clicks(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield queries, and judgments with click shares as grades, from a table of clicks or impressions by query and
    document.

    Pairs shown fewer than `choices.impressions` times are left out. The iterator raises BadValue if all are, and
    without clicks or impressions.
    """
    roles = _columns(contents)
    if not roles:
        raise BadValue(
            f"{contents.path}: no table of clicks; expected columns of query, document, clicks and impressions, as in "
            "`columns='query=q,doc=url,clicks=c,impressions=n,rank=position'`"
        )
    if "impressions" not in roles and "clicked" not in roles:
        name = roles["clicks"]
        raise BadValue(
            f"{contents.path}: '{name}' counts clicks and no column counts impressions; name the column of impressions "
            f"(one click in two impressions is not one in a hundred), or import them as grades: "
            f"`columns='grade={name}'`"
        )
    yield from (Used(role, column) for role, column in roles.items())
    sound, odd = with_identifiers(
        contents.rows, (roles[role] for role in ("doc", "query_id") if role in roles)
    )
    yield from (Refused(where, reason) for where, reason in odd.items())
    texts = [plain_text(row.fields.get(roles.get("query", ""))) for row in sound]
    texts_are_ids = "query_id" not in roles and all(map(is_identifier, filter(None, texts)))
    unranked = {role: name for role, name in roles.items() if role != "rank"}
    refuse_collections(contents.path, sound, unranked)
    rows: list[tuple[ItemKey, str, str, float, float, float]] = []
    for row, text in zip(sound, texts, strict=True):
        doc = identifier(row.fields.get(roles["doc"]))
        query = ItemKey(
            text if texts_are_ids else identifier(row.fields.get(roles.get("query_id", ""))), text
        )
        clicks = _count(row.fields.get(roles.get("clicks", roles.get("clicked", ""))))
        impressions = _count(row.fields.get(roles["impressions"])) if "impressions" in roles else 1.0
        position = number(row.fields.get(roles["rank"])) if "rank" in roles else 0.0
        if not doc or query == ItemKey():
            yield Refused(row.where, "no query" if doc else "no document")
        elif clicks is None or impressions is None:
            expected = "a whole number from 0 without marks between thousands"
            yield Refused(row.where, f"clicks or impressions are not {expected}")
        elif position is None or not 0 <= position < POSITION_LIMIT:
            yield Refused(row.where, f"the position is not a number from 0 to {POSITION_LIMIT:,}")
        elif clicks > impressions:
            yield Refused(row.where, f"{clicks:g} clicks of {impressions:g} impressions")
        else:
            rows.append((query, doc, row.where, position, clicks, impressions))
    averages = any(not position.is_integer() for _, _, _, position, _, _ in rows)
    from_zero = "rank" in roles and not averages and any(int(row[3]) == 0 for row in rows)
    if averages:
        yield FileRemark(
            f"the positions in '{roles['rank']}' have fractions, as averages do, and are not used"
        )
    elif from_zero:
        yield FileRemark("positions begin at 0 and are counted from 1")
    if never := sum(not impressions for *_, impressions in rows):
        yield LeftOut("rows of documents that were never shown", never)
    log = _Impressions()
    for query, doc, where, position, clicks, impressions in rows:
        if impressions:
            place = 0 if averages or "rank" not in roles else int(position) + from_zero
            log.add(query, doc, where, place, clicks, impressions)
    yield from log.judgments(choices, contents.path)


_GROUPED = re.compile(r"\s*\d{1,3}([.,]\d{3})+\s*")


def _count(value: object) -> float | None:
    if isinstance(value, str) and _GROUPED.fullmatch(value):
        return None  # 1.000 may be a thousand
    count = number(grade_value(value))
    return count if count is not None and count >= 0 and count.is_integer() else None


def _searches(contents: Contents) -> list[tuple[int, list[str]]]:
    if contents.shape != "lines":
        return []
    lines = [(n, line.split("\t")) for n, line in enumerate(contents.text.split("\n"), 1) if line.strip()]
    is_log = all(len(cells) == 7 and cells[4][:1] in ("[", "{") for _, cells in lines)
    return lines if is_log else []


@reader(
    "click-searches",
    "searches with the results clicked",
    when("lines of session, query, results and clicks", _searches),
)
def read_searches(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield queries and judgments as `read_clicks` does, from a click log of the clickmodels project.

    Results without identifier are left out; queries are identified by text.
    """
    log = _Impressions()
    for line, cells in _searches(contents):
        try:
            results, clicks = _by_place(json.loads(cells[4])), _by_place(json.loads(cells[6]))
        except (ValueError, RecursionError, AttributeError):
            yield Refused(f"line {line}", "results or clicks are not a JSON list, or an object by place")
            continue
        for place, doc in results.items():
            if name := identifier(doc):
                clicked = float(bool(clicks.get(place)))
                log.add(ItemKey(text=cells[1]), name, f"line {line}", place + 1, clicked, 1.0)
    yield from log.judgments(choices, contents.path)


def _by_place(value: Any) -> dict[int, Any]:  # noqa: ANN401  JSON holds anything
    pairs = (
        enumerate(value) if isinstance(value, list) else ((int(place), one) for place, one in value.items())
    )
    places = dict(pairs)
    if not all(0 <= place < POSITION_LIMIT for place in places):
        raise ValueError("the place of a result is out of range")
    return places


def _actions(contents: Contents) -> Counter[str]:
    rows = [row.fields for row in contents.rows]
    return Counter(
        plain_text(row["action_name"]) for row in rows if "action_name" in row and "query_id" in row
    )


def _ubi(contents: Contents) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(_actions(contents).items()))


@reader("ubi-events", "events of User Behavior Insights", _ubi)
def read_ubi(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield queries and judgments as `read_clicks` does, from events of User Behavior Insights.

    A document counts once in each search. The iterator raises BadValue without impressions or clicks.
    """
    actions = _actions(contents)
    if not actions["impression"] or not actions["click"]:
        raise BadValue(
            f"{contents.path}: grades by clicks need impressions and clicks; this log has {_ubi(contents) or 'none'}; "
            "without impressions no model can tell how attractive a document is"
        )
    texts = {
        search: text
        for row in contents.rows
        if (search := text_of(row.fields, "query_id")) and (text := text_of(row.fields, "user_query"))
    }
    impressions: dict[tuple[str, str], tuple[float, str]] = {}
    clicks: set[tuple[str, str]] = set()
    for row in contents.rows:
        action, about = text_of(row.fields, "action_name"), row.fields.get("event_attributes")
        if action not in ("impression", "click"):
            continue
        search, doc = (
            text_of(row.fields, "query_id"),
            identifier(value_at(about, "object", "object_id")),
        )
        position = number(value_at(about, "position", "ordinal"))
        if position is None or not 0 <= position < POSITION_LIMIT:
            position = -1.0
        if not doc or search not in texts:
            yield Refused(row.where, "no object_id" if not doc else "an event whose search has no user_query")
        elif action == "click":
            clicks.add((search, doc))
        else:
            impressions.setdefault((search, doc), (position, row.where))
    if unseen := len(clicks - impressions.keys()):
        yield LeftOut("clicks on documents without an impression in the same search", unseen)
    first = min((position for position, _ in impressions.values()), default=0.0)
    log = _Impressions()
    for (search, doc), (position, where) in impressions.items():
        place = 0 if first < 0 else int(position) + (first == 0)
        clicked = float((search, doc) in clicks)
        log.add(ItemKey(text=texts[search]), doc, where, place, clicked, 1.0)
    yield from log.judgments(choices, contents.path)
