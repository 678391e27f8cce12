"""Which benchmark collections look like one, and the systems by their scores on those, as text and JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

from weir.core.rounding import count, score, share
from weir.core.tables import columns, paragraph
from weir.experiment.alignment import Alignment

SYSTEMS_SHOWN = 15


def align_text(found: Alignment, width: int | None = None) -> str:
    """Two tables, and what they come to: collections by likeness, systems by their weighted means."""
    read = not any(math.isnan(one.overlap) for one in found.likenesses)
    body = [
        ["collection", "task", "words a query", "words a document", *(["overlap"] if read else []), "weight"]
    ]
    body.append(
        [
            found.collection,
            "",
            count(found.query_words, 1),
            count(found.document_words, 1),
            *([""] * read),
            "",
        ]
    )
    body += [
        [
            one.collection,
            one.task,
            count(one.query_words, 1),
            count(one.document_words, 1),
            *([score(one.overlap)] if read else []),
            share(one.weight),
        ]
        for one in found.likenesses
    ]
    shown = [s for n, s in enumerate(found.systems) if n < SYSTEMS_SHOWN or s.own]
    systems = [["system", f"mean {found.measure}", "place", "by likeness", "95% interval", "place"]]
    systems += [
        [
            s.system + (" (own)" if s.own else ""),
            score(s.mean),
            count(s.rank),
            score(s.aligned),
            f"[{score(s.low)}, {score(s.high)}]",
            count(s.aligned_rank),
        ]
        for s in shown
    ]
    left = len(found.systems) - len(shown)
    said = (
        f"weights come to {count(found.effective, 1)} equal collections of {len(found.likenesses)}; Kendall's tau of "
        f"both orders is {score(found.tau)}; intervals over resamples of the collections"
        + (f"; {count(left)} more systems in --json" if left else "")
    )
    return "\n\n".join([columns(body, 3 + read, width), columns(systems, 5, width), paragraph(said, width)])


def align_json(found: Alignment) -> str:
    """One JSON object, at full precision; null where a number is not known."""
    whole = asdict(found)
    for one in whole["likenesses"]:
        one["overlap"] = None if math.isnan(one["overlap"]) else one["overlap"]
    whole["tau"] = None if math.isnan(found.tau) else found.tau
    return json.dumps(whole, ensure_ascii=False)
