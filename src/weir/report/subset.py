"""The proof of a mini collection, as text and JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from weir.audit.subsets import LEAST_TAU, SubsetProof
from weir.core.rounding import change, count, score
from weir.core.tables import columns, paragraph


def subset_text(proof: SubsetProof, width: int | None = None) -> str:
    """Each system on the whole and on the part, the order's agreement with its interval, and the verdict."""
    lines = [["system", f"{proof.measure} whole", "subset", "shift"]]
    rows = sorted(zip(proof.systems, proof.whole, proof.part, strict=True), key=lambda row: -row[1])
    lines += [[name, score(whole), score(part), change(part - whole)] for name, whole, part in rows]
    tau = f"Kendall's tau {proof.tau:.2f} [{proof.low:.2f}, {proof.high:.2f}]"
    verdict = (
        f"{tau}: the subset ranks these systems as the whole does"
        if proof.valid
        else f"{tau}: the subset is not shown to rank systems as the whole does (the lower bound is below "
        f"{LEAST_TAU}); take more documents, or do not compare systems on it"
    )
    size = f"{count(proof.documents)} documents, {count(proof.queries)} queries"
    return columns(lines, width=width) + "\n\n" + paragraph(f"{size}; {verdict}", width)


def subset_json(proof: SubsetProof) -> str:
    """One JSON object at full precision."""
    return json.dumps(asdict(proof) | {"valid": proof.valid}, ensure_ascii=False)
