"""What an encoder cuts is counted in its own tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")

from tests.neural.conftest import WORDS  # noqa: E402 - behind the skip
from weir.audit import Subject, audited  # noqa: E402 - behind the skip
from weir.audit.texts import cut_by_encoder, lost_behind_the_cut  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip
from weir.core.qrels import Qrels  # noqa: E402 - behind the skip
from weir.core.subject import TokenLimit  # noqa: E402 - behind the skip
from weir.models import Encoder  # noqa: E402 - behind the skip

LIMIT = 16


@pytest.mark.parametrize("prompt", ["", "red blue "])
def test_tokens_and_characters_are_those_of_the_checkpoints_own_tokenizer(checkpoint_of, prompt):
    folder = checkpoint_of("bert")
    loaded = Encoder(str(folder), max_length=LIMIT, document_prompt=prompt, pooling="mean").load("cpu")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    rng = np.random.default_rng(3)
    texts = ["", "Ünknown Weir", *(" ".join(rng.choice(WORDS, n)) for n in (3, 13, 14, 15, 40))]
    tokens, kept = loaded.extents(texts)
    for text, count, characters in zip(texts, tokens.tolist(), kept.tolist(), strict=True):
        assert count == len(theirs(prompt + text)["input_ids"])
        cut = theirs(prompt + text, truncation=True, max_length=LIMIT, return_offsets_mapping=True)
        read = max(stop for _, stop in cut["offset_mapping"]) - len(prompt)
        assert characters == (len(text) if count <= LIMIT else read)


def test_a_relevant_document_whose_words_stand_behind_the_cut_is_named(checkpoint_of):
    loaded = Encoder(str(checkpoint_of("bert")), max_length=LIMIT, pooling="mean").load("cpu")
    filler = " ".join(["stone"] * LIMIT)
    corpus = Corpus.of({"late": f"{filler} weir", "early": f"weir {filler}", "short": "weir"})
    subject = Subject("mine", corpus, Queries.of({"q": "weirs"}), Qrels.of({"q": ["late", "early", "short"]}))
    limit = TokenLimit("bert", LIMIT, loaded.extents)
    assert lost_behind_the_cut(subject, cut_by_encoder(corpus, limit)) == (1, 2)
    [found] = audited(replace(subject, limit=limit), ["truncation"]).findings
    assert dict(found.numbers) == {"cut at 16": 2 / 3, "relevant cut at 16": 2, "relevant lost at 16": 1}
    assert found.statement.startswith("documents that bert cuts: 66.7% by one of 16 tokens")
