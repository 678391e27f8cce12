"""weir.encoder(...) is a system wherever one is asked for, as messages advise."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.argument_types import with_article
from weir.errors import BadValue

COLLECTION = (
    {f"d{n}": text for n, text in enumerate(["a weir", "a dam", "a mill pond"])},
    {"q": "weir"},
    {"q": {"d0": 1}},
)


class M:
    """An encoder: two numbers for a text."""

    similarity_fn_name = "dot"

    def encode(self, texts):
        return np.array([[len(text), text.count("e") + 1] for text in texts], np.float64)


@pytest.mark.parametrize("settings", [{}, {"version": "2"}, {"name": "other"}, {"similarity": "dot"}])
def test_an_encoder_is_the_dense_system_of_it(settings):
    encoder = weir.encoder(M(), **settings)
    expected = weir.Dense(encoder)
    assert weir.system(encoder) == expected
    table = weir.benchmark({"mine": COLLECTION}, [encoder], ["nDCG@10"])
    assert table.systems == (str(expected),)
    assert str(weir.rrf(encoder, weir.BM25())) == f"rrf({expected}, bm25)"
    assert weir.benchmark({"mine": COLLECTION}, {"short": encoder}, ["nDCG@10"]).titles == {
        str(expected): "short"
    }


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("org/tiny", "org/tiny"),
        ("/home/me/tiny/model", "tiny/model"),
        ("/hub/models--org--tiny--x/snapshots/5f1b8cd7", "org/tiny--x"),
        ("/hub/models--tiny/snapshots/5f1b8cd7/", "tiny"),
        ("", "M"),
        (None, "M"),
    ],
)
def test_an_encoder_without_a_name_has_that_of_its_checkpoint(checkpoint, name):
    model = M()
    model.transformers_model = SimpleNamespace(name_or_path=checkpoint)  # as of sentence-transformers
    assert str(weir.system(model)) in (f"dense({name})", f'dense("{name}")')
    assert weir.encoder(model, name="mine").identity.name == "mine"


@pytest.mark.parametrize(
    "dense", [M(), weir.encoder(M()), weir.Dense(M())], ids=lambda one: type(one).__name__
)
def test_a_system_on_the_right_of_a_pipeline_names_score(dense):
    with pytest.raises(BadValue, match=r"dense\(M\) is a system; .*weir\.systems\.score\(\.\.\.\)"):
        weir.BM25() >> dense
    assert str(weir.BM25() >> weir.systems.score(weir.system(dense))) == "bm25 >> score(dense(M))"


@pytest.mark.parametrize(
    ("name", "spoken"),
    [("object", "an object"), ("M", "an M"), ("Model", "a Model"), ("Run", "a Run"), ("B", "a B")],
)
def test_articles_are_as_spoken(name, spoken):
    assert with_article(name) == spoken
