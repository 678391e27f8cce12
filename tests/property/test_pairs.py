"""Pairs of query and document are found in rankings and judgments that number both in another way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weir.core.pairs import pair_rows
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids

NAMES = st.sampled_from("abcde")
HELD = st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(0, 3), min_size=1), max_size=4)


@given(HELD, st.lists(st.tuples(NAMES, NAMES)), st.booleans())
def test_each_pair_is_found_at_its_row_and_nothing_else(held, wanted, ranking):
    made = Run.of(held) if ranking else Qrels.of(held)
    names = sorted({name for pair in wanted for name in pair})
    codes = np.array([[names.index(query), names.index(doc)] for query, doc in wanted], np.int64).reshape(
        -1, 2
    )
    rows = pair_rows(made, Ids.of(names), Ids.of(names), codes[:, 0], codes[:, 1])
    columns = list(zip(made.query_of_row().tolist(), made.doc.tolist(), strict=True))
    there = [(made.queries[query], made.docs[doc]) for query, doc in columns]
    assert rows.tolist() == [there.index(pair) if pair in there else -1 for pair in wanted]


def test_a_document_without_its_identifier_is_no_other_one():
    run = Run(
        Ids.of("ab"), Ids.of("xy"), np.array([0, 1, 2]), np.array([0, -1], np.int32), np.array([2.0, 1.0])
    )
    # Numbered on, row 1 would be document y of query a.
    assert pair_rows(run, run.queries, run.docs, np.array([0, 0, 1]), np.array([1, 0, -1])).tolist() == [
        -1,
        0,
        -1,
    ]
