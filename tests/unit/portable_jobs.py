"""What every processor and every way to compile must answer alike: prints a digest of each job's answers, as JSON.

With --prepared the kernels are compiled first, as `weir doctor --compile` does, and what is said and what is compiled later stands
beside the digests.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from weir.datasets.load import load
from weir.files.runs import read_run
from weir.files.write import write_run
from weir.kernels.inverted.byte_bounds import ByteBounds
from weir.kernels.inverted.packed import PlainLists, packed
from weir.kernels.inverted.search import Impacts, search
from weir.kernels.jit import listening, spent
from weir.systems import parse_system
from weir.systems.protocol import Context
from weir.systems.warm import kernel_kinds, prepare


def digest(*arrays: np.ndarray) -> str:
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        found.update(str((array.dtype, array.shape)).encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def of_run(run) -> str:
    return digest(np.array(run.docs.tolist())[run.doc], run.ptr, run.score)


def lexical(folder: Path):
    ds = load("brook-medical")
    for name in ("bm25", 'bm25("lucene-multifield")', "rm3"):
        run = parse_system(name).index(ds.corpus, Context(folder / name)).search(ds.queries, 20)
        yield name, of_run(run)


def readers(folder: Path):
    ds = load("brook-medical")
    run = parse_system("bm25").index(ds.corpus).search(ds.queries, 50)
    for ending in (".trec", ".csv"):
        write_run(run, folder / f"run{ending}")
        for engine in ("numpy", "numba"):
            yield f"{engine} {ending}", of_run(read_run(folder / f"run{ending}", engine=engine))


def sparse(_: Path):
    rng = np.random.default_rng(1)
    n, terms = 9000, 60
    lists = [np.sort(rng.choice(n, rng.integers(1, n), replace=False)).astype(np.int32) for _ in range(terms)]
    ptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    doc = np.concatenate(lists)
    impact = rng.exponential(1, len(doc)).astype(np.float32)
    qptr = np.arange(0, 41 * 12, 12)
    qterm, qweight = rng.integers(0, terms, 480).astype(np.int32), rng.exponential(1, 480).astype(np.float32)
    many = Impacts(n, ptr, packed(ptr, doc, impact, n))
    columns = ByteBounds.of_terms(np.flatnonzero(np.diff(ptr) > n // 8), *many.arrays[:2], n)
    for name, index in (
        ("few", Impacts(n, ptr, PlainLists(doc, impact))),
        ("many", many),
        ("learned", replace(many, columns=columns)),
    ):
        yield f"sparse {name}", digest(*search(index, qptr, qterm, qweight, 100, 2))


def dense(_: Path):
    from weir.systems.vectors.exact_search import ArraySource
    from weir.systems.vectors.exact_search import search as nearest

    rng = np.random.default_rng(2)
    rows, queries = (rng.standard_normal((n, 45)).astype(np.float32) for n in (3000, 40))
    for similarity in ("dot", "cosine"):
        for count in (1, 40):
            found = nearest(ArraySource(rows), queries[:count], 30, similarity)
            yield f"dense {similarity} {count}", digest(found.ptr, found.doc, found.score)
        for way in ("int8", "fp32"):  # processors differ in which they take, and neither may decide anything
            found = nearest(ArraySource(rows + 1), queries, 50, similarity, None, way)
            yield f"dense {similarity} {way}", digest(found.ptr, found.doc, found.score)


def late(_: Path):
    from weir.core.strings import offsets
    from weir.models.batching import Ragged
    from weir.plugins.encoders.maxsim import maxsim
    from weir.plugins.encoders.maxsim_search import search_tokens

    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 30, 200)
    tokens = rng.standard_normal((int(lengths.sum()), 32)) / 6
    tokens[5] *= 1e-7  # of which half precision keeps fewer bits
    query = Ragged(np.array([0, 5, 21]), (rng.standard_normal((21, 32)) / 6).astype(np.float32))
    for kind in (np.float16, np.float32):
        given = tokens.astype(kind)
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        yield f"late {np.dtype(kind)}", digest(maxsim(query.values, query.ptr, given, ptr))
        found = search_tokens(Ragged(offsets(lengths), given), query, 10, np.arange(len(lengths)))
        yield f"late search {np.dtype(kind)}", digest(found.doc, found.score)


if __name__ == "__main__":
    answers: dict[str, object] = {}
    compiled_late: list[str] = []
    if sys.argv[1:] == ["--prepared"]:
        announced: list[str] = []
        seconds = prepare(kernel_kinds(), announced.append)
        answers["prepared"] = [announced, seconds >= spent() > 0]
        answers["compiled late"] = compiled_late
    with tempfile.TemporaryDirectory() as folder, listening(compiled_late.append):
        for job in (lexical, readers, sparse, dense, late):
            answers.update(job(Path(folder)))
    print(json.dumps(answers))
