"""Systems whose documents are encoded in shares, with random weights: the rankings of one process."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural import late_checkpoint
from tests.neural.conftest import WORDS, configs, sentence_transformer
from tests.neural.test_sparse import mlm
from weir.core.corpus import Corpus, Queries
from weir.settings import settings
from weir.systems import parse_system
from weir.systems.protocol import Context, Encoding

colbert, made, one_thread = (getattr(late_checkpoint, name) for name in ("colbert", "made", "one_thread"))
pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.mark.parametrize("family", ["dense", "colbert", "splade"])
def test_an_index_of_shares_is_that_of_one_process(family, checkpoint_of, colbert, tmp_path, monkeypatch):
    if family == "dense":
        folder = sentence_transformer(shutil.copytree(checkpoint_of("bert"), tmp_path / "model"))
    elif family == "colbert":
        folder, _, _ = colbert()
    else:
        folder = tmp_path / "model"
        mlm(folder, configs()["bert"])
    system = parse_system(f'{family}("{folder}", engine="torch")')
    rng = np.random.default_rng(4)
    corpus = Corpus.of({f"d{i}": " ".join(rng.choice(WORDS, 1 + i % 9)) for i in range(300)})
    queries = Queries.of({"a": "red cat", "b": "river under the bridge"})

    def home(name):
        monkeypatch.setenv("WEIR_HOME", str(tmp_path / name))
        settings.cache_clear()

    home("alone")
    alone = system.index(corpus, Context(tmp_path / "alone index")).search(queries, 50).to_dict()
    assert isinstance(system, Encoding)
    assert system.encoding_blocks(len(corpus)) == 3
    for machine in ("one", "other"):
        home(machine)
        encode = system.share_encoder()
        encode(corpus, (machine == "other", 2), tmp_path / "shares" / machine, None)
    home("third")
    vectors = tuple(tmp_path / "shares" / machine for machine in ("one", "other"))
    searcher = system.index(corpus, Context(tmp_path / "shared index", vectors=vectors))
    assert searcher.costs().reused_documents == 300
    assert searcher.search(queries, 50).to_dict() == alone
    for file in (tmp_path / "alone index").glob("*.npy"):
        assert file.read_bytes() == (tmp_path / "shared index" / file.name).read_bytes()
    settings.cache_clear()
