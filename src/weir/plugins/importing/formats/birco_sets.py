"""BIRCO's test sets: queries, documents and a pool of graded candidates for each query, in one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.io.runs.pickled_runs import is_birco_set
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.found import (
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Refused,
    plain,
)
from weir.plugins.importing.readers import ReadRequest, reader

__all__: list[str] = []


def _parts(contents: Contents) -> str:
    return "query, corpus, qrel" if contents.shape == "json" and is_birco_set(contents.value) else ""


def _without_order(pool: Mapping[str, object]) -> list[str]:
    """The documents of a pool by descending identifier: the file's order gives grades away.

    In RELIC the relevant document of 63 of 100 queries is the last of its pool.
    """
    return sorted((doc.strip() for doc in pool), reverse=True)


@reader("birco", "a test set of BIRCO", _parts)
def read_birco(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries with the documents of their grades, 0 included, as candidates; documents; judgments."""
    pools = contents.value["qrel"]
    yield FileRemark("the judged documents of a query are its candidates")
    for query, text in contents.value["query"].items():
        pool = pools.get(query)
        metadata = {"candidates": _without_order(pool)} if isinstance(pool, dict) else {}
        yield FoundQuery(ItemKey(query.strip(), plain(text)), f"query {query}", metadata)
    for doc, text in contents.value["corpus"].items():
        yield Document(ItemKey(doc.strip(), plain(text)), f"document {doc}")
    for query, grades in pools.items():
        if not isinstance(grades, dict):
            yield Refused(f"query {query}", "no grades by document")
            continue
        for doc, grade in grades.items():
            yield Judgment(
                ItemKey(query.strip()), ItemKey(doc.strip()), grade, f"query {query}, document {doc}"
            )
