"""Documents that several processes encode, a share each: what one process makes of them."""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.strings import Strings
from weir.systems.vectors.store import (
    EncodingBlocks,
    RaggedStore,
    TextSource,
    VectorStore,
    encode_share,
    stored,
    stored_ragged,
)


class Company:
    """An encoder whose vector of a text says which texts were encoded together with it."""

    def __init__(self):
        self.batches = []

    def dense(self, texts):
        self.batches.append(list(texts))
        together = zlib.crc32("|".join(texts).encode())
        return np.array([[len(text), together % 9973 + 1] for text in texts], np.float32)

    def ragged(self, texts):
        rows = self.dense(texts).astype(np.uint8)
        return np.arange(len(texts) + 1), rows[:, :1].copy()


@settings(deadline=None, max_examples=50)
@given(
    texts=st.lists(st.text("ab", max_size=4), max_size=40),
    size=st.integers(1, 7),
    of=st.integers(1, 9),
    there=st.integers(0, 40),
    kind=st.sampled_from(["dense", "ragged"]),
)
def test_shares_give_the_store_of_one_process(texts, size, of, there, kind):
    """Whatever is there already, a text is encoded in the company that one process gives it, and stands in its place."""
    source, cut = TextSource.of(Strings.of(texts)), EncodingBlocks(size)
    with tempfile.TemporaryDirectory() as folder:

        def store(name):
            if kind == "dense":
                return VectorStore.of(Path(folder) / name, {"model": "m"})
            return RaggedStore.of(Path(folder) / name, {"model": "m"}, 1)

        def made(name, of_texts, encoder):
            run = stored if kind == "dense" else stored_ragged
            return run(store(name), of_texts, getattr(encoder, kind), None, cut)

        made("alone", source, Company())
        made("home", TextSource.of(Strings.of(list(dict.fromkeys(texts))[: there // size * size])), Company())
        encoders, hashes = [Company() for _ in range(of)], source.hashes()
        for number, encoder in enumerate(encoders):
            for _ in range(2):  # the second time nothing is left
                part = replace(store("home"), folder=Path(folder) / f"share{number}")
                keep = part.keeper(source, hashes, getattr(encoder, kind))
                encode_share(part, store("home"), hashes, keep, None, replace(cut, share=(number, of)))
        for number in range(of):
            store("home").take_in(Path(folder) / f"share{number}")
        last = Company()
        made("home", source, last)
        assert last.batches == []
        batches = [tuple(batch) for encoder in encoders for batch in encoder.batches]
        assert len(batches) == len(set(batches))
        for file in ("vectors.bin", "rows.bin", "texts.bin"):
            alone, home = (next((Path(folder) / name).glob(f"*/{file}"), None) for name in ("alone", "home"))
            assert (alone and alone.read_bytes()) == (home and home.read_bytes())
