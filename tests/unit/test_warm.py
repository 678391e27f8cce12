from __future__ import annotations

import pytest

from weir.errors import UnknownName
from weir.kernels.inverted.block_bounds import EXHAUSTIVE_DOCUMENTS
from weir.kernels.jit import spent
from weir.systems import parse_system
from weir.systems.warm import kernels_of, prepare

INDEX, FEW_SEARCH = "sparse index", "sparse search"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("bm25", (INDEX, FEW_SEARCH)),
        ("rrf(bm25, rm3)", (INDEX, FEW_SEARCH)),
        ('dense("minilm")', ("dense search",)),
        ('bm25 >> cross("minilm-cross")', (INDEX, FEW_SEARCH)),
        ('rrf(bm25, dense("minilm"))', (INDEX, FEW_SEARCH, "dense search")),
        ('bm25 >> score(colbert("colbert"))', (INDEX, FEW_SEARCH, "late search")),
        ("chunked(bm25)", (INDEX, FEW_SEARCH)),
        ('splade("splade")', (INDEX, FEW_SEARCH, "term weights")),
        ('unicoil("unicoil")', (INDEX, FEW_SEARCH)),
    ],
)
def test_what_a_system_uses_is_told_by_its_name(name, found):
    assert kernels_of(parse_system(name), 100) == found


def test_many_documents_are_searched_by_other_kernels():
    many = (INDEX, "sparse index on disk", "sparse search of many")
    assert kernels_of(parse_system("bm25"), EXHAUSTIVE_DOCUMENTS + 1) == many
    assert kernels_of(parse_system("unicoil"), EXHAUSTIVE_DOCUMENTS + 1) == (*many, "learned sparse search")


def test_a_kind_that_there_is_not_is_refused():
    with pytest.raises(UnknownName, match="sparse index"):
        prepare(["sparse indx"])


def test_what_was_prepared_takes_no_time_again():
    assert prepare([FEW_SEARCH]) >= 0
    before = spent()
    assert prepare([FEW_SEARCH]) < 0.01
    assert spent() == before
