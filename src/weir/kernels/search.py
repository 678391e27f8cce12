"""Exact top-k over an impact index. (Signatures below are stable; bodies follow.)

    Index arrays: ptr int64[V+1], doc int32[P] ascending in a term, impact float32[P] >= 0   (see postings.py)
    Bounds        small arrays derived from them, built once:  bounds = Bounds.of(ptr, doc, impact, n_docs)
                  a frozen dataclass of plain arrays (fields are saved and memory-mapped like the index itself)

    search(index: Impacts, qptr int64[Q+1], qterm int32[], qweight float32[], k, threads=1)
        -> (count int32[Q], doc int32[Q, k], score float32[Q, k])

    index = Impacts(n_docs, ptr, doc, impact, bounds)      read-only views are taken of whatever is passed

A score is float32(sum over the query's terms, in float64, of weight * impact); order: score descending,
internal number ascending; rows beyond count[q] hold doc -1 and score 0. Terms outside 0..V-1 and weights
of 0 are ignored; a repeated term counts each time. Only documents with a score above 0 are returned.
"""
