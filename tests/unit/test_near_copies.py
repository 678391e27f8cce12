"""Near copies: groups around a leader, against plain sets and a double loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.audit import Subject, audited
from weir.audit.duplicates import NEAR, SHINGLE_TERMS, near_copies
from weir.core.corpus import Corpus
from weir.core.qrels import Qrels

WORDS = [f"w{i}" for i in range(40)]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    width = min(SHINGLE_TERMS, len(words))
    return {tuple(words[i : i + width]) for i in range(len(words) - width + 1)} if words else set()


def jaccard(a: str, b: str) -> float:
    one, other = shingles(a), shingles(b)
    return len(one & other) / len(one | other) if one | other else 0.0


def edited(rng: np.random.Generator, text: str, changes: int) -> str:
    words = text.split()
    for at in rng.integers(0, len(words), changes):
        words[at] = str(rng.choice(WORDS))
    return " ".join(words)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 60))
def test_every_member_is_near_its_leader_and_no_leader_near_an_earlier_one(seed, originals, copied):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 50))) for _ in range(originals)]
    sources = [text for text in texts if text]
    texts += [
        edited(rng, str(rng.choice(sources)), int(rng.integers(0, 4)))
        for _ in range(copied if sources else 0)
    ]
    groups, leaders, _ = near_copies(Corpus.of({f"d{i}": text for i, text in enumerate(texts)}))
    for row, leader in enumerate(leaders.tolist()):
        assert leader <= row
        assert leader == row or jaccard(texts[row], texts[leader]) >= NEAR
    for group in groups.members():
        assert all(jaccard(texts[a], texts[b]) >= 2 * NEAR - 1 for a in group for b in group)
    missed = sum(
        jaccard(texts[a], texts[b]) >= 0.9
        for b in range(len(texts))
        for a in range(b)
        if leaders[a] == a and leaders[b] == b
    )
    assert missed == 0  # at 0.9 a pair shares no band once in 300 million times


def test_the_check_names_pairs_that_are_not_copies_already_and_what_is_judged_differently():
    text = " ".join(f"word{i}" for i in range(60))
    corpus = Corpus.of({"a": text, "b": text.upper(), "c": text + " more", "d": "something else entirely"})
    found = audited(
        Subject("mine", corpus, qrels=Qrels.of({"q": {"a": 1, "c": 0}})), ["near duplicates"]
    ).findings
    assert [(f.severity, f.examples) for f in found] == [("caution", ("c ~ a",)), ("caution", ("q: a, c",))]
    assert dict(found[0].numbers)["near copies"] == 1


@pytest.mark.parametrize("documents", [{}, {"a": ""}, {"a": "one"}, {"a": "one", "b": "one"}])
def test_next_to_nothing_is_no_matter(documents):
    groups, _, _ = near_copies(Corpus.of(documents))
    assert groups.surplus == (1 if len(documents) == 2 else 0)
