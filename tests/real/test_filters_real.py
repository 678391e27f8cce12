"""What filters cost real indexes on a real collection: FAISS, and pgvector and OpenSearch where they run."""

from __future__ import annotations

import contextlib
import functools
import zlib

import numpy as np
import pytest
from tests.unit.postgres_place import postgres_running

import weir
from weir.errors import BadValue
from weir.systems import SYSTEMS

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@functools.cache
def direction(word):
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=48)


def bag_of_words(texts):
    """Vectors of texts without a model: words as drawn directions, rarer ones as often as they occur."""
    return np.array(
        [sum((direction(w) for w in text.lower().split() if len(w) > 3), np.zeros(48)) for text in texts]
    )


@contextlib.contextmanager
def system_of(name, encoder, started, folder, monkeypatch):
    if name == "faiss":
        pytest.importorskip("faiss", reason="needs faiss: pip install 'weir-ir[neural]'")
        yield SYSTEMS.get("dense")(encoder, index="HNSW32")
        return
    file, settings = folder / "engine.toml", '[vector]\nindex = "hnsw"\nef_search = 16\n'
    if name == "pgvector":
        with postgres_running() as place:
            monkeypatch.setenv("PGURL", place.url)
            file.write_text('dsn = "${PGURL}"\n' + settings)
            yield SYSTEMS.get("postgres")(str(file), encoder=SYSTEMS.get("dense")(encoder))
        return
    file.write_text(f'url = "{started(name).url}"\n' + settings)
    yield SYSTEMS.get("elasticsearch")(str(file), encoder=SYSTEMS.get("dense")(encoder))


@pytest.mark.parametrize(
    "name",
    [
        "faiss",
        "pgvector",
        pytest.param("opensearch", marks=pytest.mark.xdist_group("engines")),
    ],
)
def test_a_filter_after_the_search_leaves_what_it_permits_and_one_during_it_more(
    shared, started, tmp_path, monkeypatch, name
):
    whole = weir.load(shared / "data" / "scifact")
    dataset = weir.Dataset.of(whole.corpus, whole.queries.take(np.arange(60)), whole.qrels)
    encoder = weir.encoder(bag_of_words, name="words", version="1", similarity="cosine")
    rules = weir.FilterRules(selectivity=(1, 0.1), overfetch=(1, 40), effort=(1000,))
    with system_of(name, encoder, started, tmp_path, monkeypatch) as system:
        [study] = weir.filters(dataset, system, rules=rules)
        if name == "pgvector":
            (tmp_path / "engine.toml").write_text(
                'dsn = "${PGURL}"\n[vector]\nindex = "hnsw"\ndistance = "cosine"\n'
            )
            unlike = weir.encoder(bag_of_words, name="words", version="1", similarity="dot")
            other = SYSTEMS.get("postgres")(
                str(tmp_path / "engine.toml"), encoder=SYSTEMS.get("dense")(unlike)
            )
            with pytest.raises(BadValue, match="whose lengths differ by cosine"):
                weir.filters(dataset, other, rules=rules)
    found = {(one.filter, one.applied, one.effort, one.overfetch): one for one in study.searches}
    assert {key[0] for key in found} == {"none", "by lot", "near", "far"}
    for kind in ("by lot", "near", "far"):
        during, most = found[kind, "during", 16, 1], found[kind, "during", 1000, 1]
        after = found[kind, "after", 16, 1]
        assert during.permitted == most.permitted == round(0.1 * 5183)
        assert after.recall == pytest.approx(after.correlation, abs=0.1)
        assert after.recall <= during.recall + 0.02
        assert most.recall >= during.recall
        assert most.recall > (0.7 if kind == "far" else 0.95)
        assert found[kind, "after", 1000, 40].recall > after.recall
        assert after.short >= during.short
    assert found["by lot", "after", 16, 1].short > 50
    assert found["near", "after", 16, 1].correlation > 0.5 > found["far", "after", 16, 1].correlation
    assert found["none", "during", 1000, 1].recall > 0.98
