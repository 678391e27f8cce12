"""Overlap of collections: how far two of them use the same words equally often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from weir.audit.check import Finding, comparing_check
from weir.core import rounding
from weir.core.subject import Subject


@comparing_check("overlap", needs=["corpus"])
def overlap(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """How far collections use the same words equally often: the weighted Jaccard index of their shares of words.

    numbers: the index of each pair, and x and y of each collection in a plane where unlike ones stand apart.
    Source: Thakur et al. 2021, appendix F.
    """
    from weir.text.word_counts import layout, weighted_jaccard, word_counts

    profile = word_counts([subject.need_corpus() for subject in subjects])
    shares = [profile.shares(which) for which in range(len(subjects))]
    pairs = list(combinations(range(len(subjects)), 2))
    values = {pair: weighted_jaccard(shares[pair[0]], shares[pair[1]]) for pair in pairs}
    names = [subject.name for subject in subjects]
    alike = np.eye(len(subjects))
    for (one, other), value in values.items():
        alike[one, other] = alike[other, one] = np.nan_to_num(value)
    places = layout(alike).tolist()
    most, least = max(pairs, key=values.__getitem__), min(pairs, key=values.__getitem__)
    said = (
        f"{names[most[0]]} and {names[most[1]]} have a weighted Jaccard index of words of "
        f"{rounding.score(values[most])}"
    )
    if len(pairs) > 1:
        said = f"of {len(names)} collections {said}, the most alike; the least are {names[least[0]]} and "
        said += f"{names[least[1]]} with {rounding.score(values[least])}"
    yield Finding(
        "note",
        said,
        "expect systems to keep their order between collections that are alike, not between others",
        (
            *((f"{names[a]} and {names[b]}", value) for (a, b), value in values.items()),
            *((f"x of {name}", x) for name, (x, _) in zip(names, places, strict=True)),
            *((f"y of {name}", y) for name, (_, y) in zip(names, places, strict=True)),
        ),
        tuple(
            f"typical of {names[one]}: {', '.join(profile.typical(one, other))}"
            for one, other in (least, least[::-1])
        ),
    )
