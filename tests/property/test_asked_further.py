"""Filters, candidates and exclusions over a system that is not asked for free: k documents where k fit, or it is said."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core.corpus import Corpus, Queries
from weir.core.run import Run
from weir.core.strings import Ids
from weir.datasets.load import filtered
from weir.errors import RankingWarning, ServiceError
from weir.systems import restricted
from weir.systems.protocol import IN_MEMORY, Costs

DOCUMENTS = 60


class Server:
    """Ranks documents by number, each asked depth written down; gives `most` at most, fails beyond `fails`."""

    def __init__(self, matched: list[int], most: int, fails: int) -> None:
        self.matched, self.most, self.fails, self.asked = matched, most, fails, [0] * len(matched)

    def search(self, queries: Queries, k: int, context=IN_MEMORY) -> Run:
        if k > self.fails:
            raise ServiceError("no answer so deep")
        found = {}
        for query in queries.ids:
            number = int(query[1:])
            assert k > self.asked[number]
            self.asked[number] = k
            found[query] = {f"d{n}": -float(n) for n in range(min(k, self.most, self.matched[number]))}
        columns = [(q, n, -n) for q, name in enumerate(queries.ids) for n in range(len(found[name]))]
        query, doc, score = (np.array([row[at] for row in columns]) for at in range(3))
        return Run.from_columns(queries.ids, IDS, query.astype(int), doc.astype(int), score.astype(float))

    def costs(self) -> Costs:
        return Costs()


IDS = Ids.of([f"d{n}" for n in range(DOCUMENTS)])
whole = st.integers(1, DOCUMENTS)
some = st.lists(st.integers(0, DOCUMENTS - 1).map("d{}".format), max_size=12, unique=True)


@given(
    st.lists(st.tuples(whole, some, some, st.integers(0, 4)), min_size=1, max_size=5),
    st.integers(1, 12),
    st.integers(5, 200),
    st.integers(12, 200),
    st.integers(1, 100),
)
@settings(max_examples=200)
def test_k_documents_come_where_k_fit_or_it_is_said(rows, k, most, fails, deepest):
    server = Server([matched for matched, *_ in rows], most, max(fails, 24))
    made = {}
    for n, (_, candidates, excluded, group) in enumerate(rows):
        made[f"q{n}"] = {"text": "weir", "filter": f"group == {group}"} if group else {"text": "weir"}
        made[f"q{n}"] |= {"candidates": candidates} if candidates else {}
        made[f"q{n}"] |= {"excluded": excluded} if excluded else {}
    corpus = Corpus.of({f"d{n}": {"text": "", "group": n // 15 + 1} for n in range(DOCUMENTS)})
    queries = filtered(Queries.of(made), corpus)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RankingWarning)
        run = restricted.asked_further(server, queries, k, depths=(min(4, deepest), deepest)).to_dict()
    short = 0
    for n, (matched, candidates, excluded, group) in enumerate(rows):
        fit = [
            d
            for d in range(DOCUMENTS)
            if (not group or d // 15 + 1 == group)
            and (not candidates or f"d{d}" in candidates)
            and f"d{d}" not in excluded
        ]
        seen = [f"d{d}" for d in fit if d < min(matched, most)][:k]
        got = list(run[f"q{n}"])
        assert got == seen[: len(got)]
        lacking = len(got) < min(k, len(fit))
        short += lacking
        if len(got) < len(seen):
            assert server.asked[n] >= min(deepest, server.fails // 2), "it was asked as deep as it answers"
    of = f"for {short} of {len(rows)} queries"
    assert [of in str(one.message) for one in said] == [True] * bool(short), (
        "queries that lack documents are told"
    )
