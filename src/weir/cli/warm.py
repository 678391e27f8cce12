"""Compiles the kernels once, so that the first run does not wait for them: python -m weir.cli.warm."""

from __future__ import annotations

import tempfile
from pathlib import Path

__all__ = ["warm"]


def warm() -> None:
    """Index, search and score three documents by every path that has a compiled kernel."""
    from weir.core.corpus import Corpus, Queries
    from weir.io.nested import nested_source
    from weir.io.trec import read_run, run_of, write_run
    from weir.systems import parse_system

    texts = {"a": "A weir measures a stream.", "b": "Über die Brücke — 川と海 flow.", "c": ""}
    corpus, queries = Corpus.of(texts), Queries.of({"q": "stream measured by a weir"})
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(("bm25", 'bm25("lucene-multifield")', 'bm25("bm25s")', "rm3")):
            run = parse_system(name).index(corpus, Path(folder) / str(number)).search(queries, 10)
        for ending in (".trec", ".csv", ".arrow", ".json"):
            write_run(run, Path(folder) / f"run{ending}")
            if ending == ".json":
                source = nested_source(Path(folder) / f"run{ending}", worth=0)
                assert source is not None
                run_of(source, "run", engine="numba")
            else:
                read_run(Path(folder) / f"run{ending}", engine="numba")


if __name__ == "__main__":
    warm()
