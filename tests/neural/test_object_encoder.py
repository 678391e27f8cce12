"""A SentenceTransformer, as it is, in weir.Dense: its own prompts and similarity, the same answers as its folder."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")
library = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")

import weir  # noqa: E402 - behind the skip
from tests.neural.conftest import WORDS, sentence_transformer  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.mark.parametrize("normalise", [True, False])
def test_a_sentence_transformer_answers_as_its_folder_does(checkpoint_of, tmp_path, normalise):
    prompts = {"query": "the river ", "document": "a stone "}
    folder = sentence_transformer(
        shutil.copytree(checkpoint_of("bert"), tmp_path / "bert"), normalise=normalise, prompts=prompts
    )
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.integers(3, 30, 40)]
    corpus = Corpus.of({f"d{i}": text for i, text in enumerate(texts)})
    queries = Queries.of({"q1": "red weir", "q2": "a cat under the bridge", "blank": " "})
    model = library.SentenceTransformer(str(folder), device="cpu")
    assert model.similarity_fn_name == "cosine"
    found = weir.Dense(model).index(corpus).search(queries, 40).to_dict()
    expected = weir.Dense(str(folder), similarity="cosine").index(corpus).search(queries, 40).to_dict()
    assert found["blank"] == {}
    for query in ("q1", "q2"):
        assert set(found[query]) == set(expected[query])
        theirs = [expected[query][document] for document in found[query]]
        np.testing.assert_allclose(list(found[query].values()), theirs, atol=1e-5)
