"""What language models were asked and answered, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from weir.core.rounding import count
from weir.core.tables import columns, display_width, paragraph
from weir.errors import printable
from weir.experiment.llm_answers import ModelUse, QueryTrace
from weir.systems.rerank.llm_methods import NOT_KEPT, Exchange

INDENT_COLUMNS = 8
"""Columns before the text of a prompt or an answer."""


def use_text(found: Sequence[ModelUse], width: int | None = None) -> str:
    """A table for the terminal: a line for each model behind a system, a column for each verdict that occurs."""
    kinds = dict.fromkeys(["ok", *sorted({kind for one in found for kind in one.verdicts})])
    head = ("dataset", "system", "model", "answers", *kinds, "cut", "flagged", "faults", "tokens", "dollars")
    lines = [
        (
            one.dataset,
            one.system,
            one.named or one.model,
            f"{one.answers:,}",
            *(f"{one.verdicts.get(kind, 0):,}" for kind in kinds),
            f"{one.cut:,}",
            f"{one.flagged:,}",
            f"{sum(one.faults.values()):,}",
            f"{one.tokens:,}",
            "-" if one.dollars is None else f"{one.dollars:,.4f}",
        )
        for one in found
    ]
    return columns([head, *lines], len(head) - 3, width, keys=2)


def use_json(found: Sequence[ModelUse]) -> str:
    """One JSON object for each model behind a system, at full precision."""
    return "\n".join(json.dumps(asdict(one), ensure_ascii=False) for one in found)


def trace_json(found: Sequence[QueryTrace]) -> str:
    """One JSON object for each prompt."""
    return "\n".join(
        json.dumps({**_about(one), **asdict(exchange)}, ensure_ascii=False)
        for one in found
        for exchange in one.exchanges
    )


def _about(one: QueryTrace) -> dict[str, str]:
    return {"dataset": one.dataset, "system": one.system, "query": one.query, "model": one.model}


def trace_text(one: QueryTrace, width: int | None = None) -> str:
    """Every prompt about a query with its answer and how it was read; system texts where they change."""
    lines = [paragraph(f"query {one.query} of {one.dataset}, {one.system}", width)]
    said = ""
    for exchange in one.exchanges:
        lines += ["", paragraph(_verdict(exchange, one.asked), width)]
        if exchange.system_text != said:
            said = exchange.system_text
            lines += _block("system", said, width)
        lines += _block("about", ", ".join(exchange.documents), width) if exchange.documents else []
        lines += _block("asked", exchange.user_text, width)
        lines += [] if exchange.answer is None else _block("said", exchange.answer, width)
    if not one.asked:
        lines += ["", "the model was asked nothing: there was nothing to order"]
    if not one.whole:
        lines += ["", "what was asked next follows from answers that are not kept here"]
    if one.flagged:
        lines += ["", paragraph(f"the model is spoken to by: {', '.join(one.flagged)}", width)]
    return "\n".join(lines)


def _verdict(exchange: Exchange, total: int) -> str:
    """Number, verdict and value of an exchange, then what it took."""
    read = f"{exchange.verdict} {exchange.value}".strip()
    if exchange.verdict == NOT_KEPT:
        return f"{exchange.number} of {total}: {read}"
    took = [] if exchange.milliseconds is None else [f"{exchange.milliseconds:,.0f} ms"]
    tokens = (exchange.tokens_in, exchange.tokens_out)
    if tokens[0] is not None:
        took.insert(0, f"{count(tokens[0])} tokens and {count(tokens[1] or 0)} of the answer")
    took += [part for part in (exchange.time, exchange.named) if part]
    took += [] if exchange.finish == "stop" else [f"ended by {exchange.finish}"]
    return f"{exchange.number} of {total}: {read}" + (f" ({', '.join(took)})" if took else "")


def _block(name: str, text: str, width: int | None) -> list[str]:
    """A text behind its name, line by line, wrapped at blanks; what would move a cursor is shown as an escape."""
    room = None if width is None else max(width - INDENT_COLUMNS, INDENT_COLUMNS)
    lines = [piece for line in (text or "(empty)").split("\n") for piece in _wrapped(printable(line), room)]
    heads = [name.ljust(INDENT_COLUMNS), *[" " * INDENT_COLUMNS] * (len(lines) - 1)]
    return [(head + line).rstrip() for head, line in zip(heads, lines, strict=True)]


def _wrapped(line: str, room: int | None) -> Iterator[str]:
    """A line in pieces of at most so many columns, cut at blanks where it has any."""
    while room is not None and display_width(line) > room:
        cut = room
        while display_width(line[:cut]) > room:
            cut -= 1
        blank = line.rfind(" ", 1, cut + 1)
        cut = blank if blank > 0 else max(1, cut)
        yield line[:cut].rstrip()
        line = line[cut:].lstrip(" ")
    yield line
