"""Thresholds as people read them: the chosen score, what it does, and what others would do."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from weir.core.frames import plain
from weir.core.rounding import count, exact, score, share
from weir.core.tables import columns, paragraph
from weir.stats.threshold import CutOff, Threshold


def threshold_text(found: Sequence[Threshold], width: int | None = None) -> str:
    """The chosen score with its intervals, then a table of cut-offs."""
    return "\n\n".join(_one(one, width) for one in found)


def threshold_json(found: Sequence[Threshold]) -> str:
    """One JSON object for each threshold, at full precision; a score that nothing reaches is null."""
    return "\n".join(json.dumps(plain(one), ensure_ascii=False) for one in found)


def _one(one: Threshold, width: int | None) -> str:
    chosen, rules = one.reported, one.rules
    asked = f"at most {share(rules.max_false)} false answers"
    said = (
        f"no score keeps {asked}: nothing would be answered"
        if math.isinf(chosen.score)
        else f"answer from {exact(chosen.score)} on (confidence {rules.confidence}), chosen for {asked}"
    )
    halves = (
        f"chosen on {_queries(*one.chosen_on)}; reported on the other {_queries(one.answerable, one.unanswerable)}; "
        f"split by seed {rules.seed}"
    )
    lines = [
        said,
        f"  false answers {share(chosen.false_answers)} [{share(one.false_interval[0])}, "
        f"{share(one.false_interval[1])}], {share(one.chosen.false_answers)} where it was chosen",
        f"  answered {share(chosen.answered)} [{share(one.answered_interval[0])}, {share(one.answered_interval[1])}] "
        "of queries with an answer",
        f"  {one.measure} {score(chosen.kept)} [{score(one.kept_interval[0])}, {score(one.kept_interval[1])}], "
        f"{score(one.silent_never)} where everything is answered",
        halves,
        f"a query with an answer has the higher confidence {share(one.separation)} of the time; 50% is chance",
    ]
    head = ["answer from", "false answers", "answered", one.measure]
    rows = [_cut(cut) for cut in dict.fromkeys(one.curve)]
    table = columns([head, *rows], 4, width)
    return "\n".join([*(paragraph(line, width) for line in lines), "", table])


def _cut(cut: CutOff) -> list[str]:
    where = "never" if math.isinf(cut.score) else exact(cut.score)
    return [where, share(cut.false_answers), share(cut.answered), score(cut.kept)]


def _queries(answerable: int, unanswerable: int) -> str:
    return f"{count(answerable)} queries with an answer and {count(unanswerable)} without"
