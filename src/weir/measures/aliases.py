"""What other tools call our measures, for whoever asks by those names."""

from __future__ import annotations

import re

__all__ = ["name_here"]

_NAMES = {
    "hit": "Success",
    "hitrate": "Success",
    "hits": "Success",
    "map": "AP",
    "mapcut": "AP",
    "mrr": "RR",
    "ndcg": "nDCG",
    "ndcgcut": "nDCG",
    "precision": "P",
    "recall": "R",
    "reciprank": "RR",
    "rprecision": "Rprec",
    "success": "Success",
}
"""Names in lower case without underscores, as trec_eval, ranx, BEIR and MTEB have them."""
_OTHER = re.compile(r"([A-Za-z_-]+?)(?:[_.@-]?(?:at_?)?(\d{1,9}))?")
_CUT = 10


def name_here(text: str) -> str | None:
    """Our name of the measure that a text such as "ndcg_cut_10", "recall@100" or "MAP" names, None for any other."""
    match = _OTHER.fullmatch(text.strip())
    name = _NAMES.get(re.sub("[_-]", "", match[1]).lower()) if match else None
    if match is None or name is None:
        return None
    if match[2]:
        return f"{name}@{int(match[2])}"
    return f"{name}@{_CUT}" if name in ("P", "R", "Success") else name
