"""Documents that several processes encode, a share each: what one process makes of them."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.strings import Strings
from weir.models.batching import Ragged
from weir.systems.vectors.store import (
    RAW,
    EncodingBlocks,
    RowStore,
    TextSource,
    encoded_rows,
    share_encoder,
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
        return Ragged(np.arange(len(texts) + 1), rows[:, :1].copy())


@settings(max_examples=50)
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
                return RowStore.of(Path(folder) / name, {"model": "m"})
            return RowStore.of(Path(folder) / name, {"model": "m"}, RAW, 1)

        def made(name, of_texts, encoder):
            return encoded_rows(store(name), of_texts, getattr(encoder, kind), None, cut)

        made("alone", source, Company())
        made("home", TextSource.of(Strings.of(list(dict.fromkeys(texts))[: there // size * size])), Company())
        encoders = [Company() for _ in range(of)]
        for number, encoder in enumerate(encoders):
            encode = share_encoder(
                store("home"),
                lambda source: source,
                getattr(encoder, kind),
                cut,
            )
            for _ in range(2):  # the second time nothing is left
                encode(source, (number, of), Path(folder) / f"share{number}", None)
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
