"""Our means beside published ones, as people read them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from weir.core.rounding import change, count, score
from weir.core.tables import columns, paragraph
from weir.experiment.reproduce import PublishedCheck


def reproduce_text(checks: Sequence[PublishedCheck], width: int | None = None) -> str:
    """A line for each claim, then the counts and the sources."""
    shown = [c for c in checks if c.outcome != "not published" or c.nearest]
    numbers: dict[tuple[str, str], int] = {}
    lines = [["dataset", "system", "measure", "ours", "published", "difference", "verdict", "by"]]
    for c in shown:
        lines.append(_line(c, numbers))
        lines += [["", "", "", "", n.printed, "", "nearby", n.model] for n in c.nearest]
    parts = [columns(lines, width=width)] if shown else []
    parts += [paragraph(line, width) for line in _counts(checks).split("\n")]
    sources = [f"[{n}] {source}{f' ({note})' if note else ''}" for (source, note), n in numbers.items()]
    parts += [paragraph(source, width) for source in sources]
    return "\n".join([*parts[:1], *([""] if shown else []), *parts[1:]])


def reproduce_json(checks: Sequence[PublishedCheck]) -> str:
    """One JSON object for each check, at full precision."""
    return "\n".join(json.dumps(_plain(c), ensure_ascii=False) for c in checks)


def _line(c: PublishedCheck, numbers: dict[tuple[str, str], int]) -> list[str]:
    ours = [c.dataset, c.system, c.measure]
    if c.published is None:
        return [*ours, score(c.ours), "-", "-", "nothing published", ""]
    number = numbers.setdefault((c.published.source, c.published.note), len(numbers) + 1)
    places = max(4, c.published.decimals)
    by = f"{c.published.model} [{number}]"
    return [*ours, f"{c.ours:.{places}f}", c.published.printed, change(c.difference), _verdict(c), by]


def _verdict(c: PublishedCheck) -> str:
    if c.outcome == "reproduced":
        whole = c.published is not None and c.decimals == c.published.decimals
        return "reproduced" if whole else f"reproduced to {c.decimals} decimals"
    if c.outcome == "explained":
        return f"explained: {c.because}"
    return f"off by {abs(c.difference):.4f}" if c.outcome == "off" else "other data"


def _counts(checks: Sequence[PublishedCheck]) -> str:
    def of(outcome: str) -> str:
        return count(sum(c.outcome == outcome for c in checks))

    text = f"{of('reproduced')} reproduced, {of('off')} off, {of('not published')} with nothing published"
    explained = sum(c.outcome == "explained" for c in checks)
    if explained:
        text += (
            f", {count(explained)} explained (equal once scored by the rules that the publisher documents)"
        )
    other = sum(c.outcome == "other data" for c in checks)
    if other:
        text += f", {count(other)} on other data (another number of judged queries than published)"
    off = next((c for c in checks if c.outcome == "off" and c.published), None)
    if off is None or off.published is None:
        return text
    return (
        f"{text}\nwhy: weir why {off.folder} --published '{off.published.model}' -m '{off.measure}'"
        " [--collection PATH]"
    )


def _plain(check: PublishedCheck) -> dict[str, object]:
    fields = asdict(check)
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in fields.items()}
