"""Which real runs Weir's measures are held against, and the figures trec_eval prints for them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.peers import by_trec_eval, differences, float32_ties
from weir.core.qrels import Qrels
from weir.io.trec import read_qrels, read_run
from weir.measures import evaluate

__all__ = ["FAMILY", "MEASURES", "Checked", "Pair", "check", "official", "pairs", "printed", "summaries"]

MEASURES = (
    *("AP", "AP@10", "AP@100", "AP(rel=2)"),
    *("P@1", "P@5", "P@10", "P@100", "P(rel=2)@10"),
    *("R", "R@10", "R@100", "R@1000", "R(rel=2)@100"),
    *("RR", "RR@10", "RR(rel=2)"),
    *("Success@1", "Success@5", "Success(rel=2)@5"),
    *("nDCG", "nDCG@1", "nDCG@5", "nDCG@10", "nDCG@100", "nDCG@1000", "nDCG(gain='exp')@10"),
)

# What else trec_eval has: tests/real/test_family_real.py.
FAMILY = (
    *("Rprec", "Rprec(rel=2)", "bpref", "bpref(rel=2)", "infAP", "infAP(rel=2)", "IAP", "IAP(rel=2)"),
    "IPrec",
    *(f"IPrec(recall={point / 10})" for point in (0, 2, 3, 4, 5, 6, 7, 8, 9, 10)),
    *("IPrec(rel=2)", "SetP", "SetP@10", "SetR", "SetF", "SetF(beta=2.0)", "SetAP", "SetAP(rel=2)"),
    *("NumRet", "NumRelRet", "NumRelRet(rel=2)", "R_cap@10", "R_cap@100", "R_cap(rel=2)@100"),
    *("condensed(AP)", "condensed(nDCG@10)", "condensed(P@10)", "condensed(RR)", "condensed(R@100)"),
    *("condensed(Rprec)", "condensed(infAP)", "condensed(IAP)", "condensed(NumRet)"),
)


@dataclass(frozen=True)
class Pair:
    """A run and its judgments; without judgments of its own, some are made from the run (`None`)."""

    run: Path
    qrels: Path | None
    group: str


@dataclass(frozen=True)
class Checked:
    """How one measure of one run compares."""

    measure: str
    ties: str
    queries: int
    difference: float


def pairs(shared: Path) -> list[Pair]:
    """Every stored run with the judgments it is scored against."""
    data = shared / "data"
    found = []
    for year in ("dl19", "dl20"):
        qrels = data / "trec-dl" / "qrels" / f"qrels.{year}-passage.txt"
        found += [
            Pair(p, qrels, f"TREC {year.upper()}") for p in (data / "trec-dl" / "runs" / year).iterdir()
        ]
    judged = data / "trec-dl" / "qrels" / "qrels.dl19-passage.txt"
    found += [
        Pair(p, judged, "TREC DL19, official") for p in (data / "trec-dl" / "runs-official-dl19").iterdir()
    ]
    tests = data / "trec_eval-tests" / "v10.0"
    for run, qrels in (
        ("results.test", "qrels.test"),
        ("results.test", "qrels.rel_level"),
        ("results.trunc", "qrels.test"),
        ("results-302.test", "qrels-302.test"),
        ("results.comment.test", "qrels.comment.test"),
    ):
        found.append(Pair(tests / run, tests / qrels, "trec_eval's tests"))
    vaswani = data / "vaswani"
    found.append(Pair(vaswani / "runs" / "terrier-DPH.txt.gz", vaswani / "qrels" / "test.tsv", "Vaswani"))
    for path in (data / "lucene-golden").glob("*.trec.gz"):
        judged = data / path.name.split(".")[0] / "qrels" / "test.tsv"
        found.append(Pair(path, judged, "Lucene on SciFact, NFCorpus, Cranfield"))
    fixtures = data / "eval-fixtures"
    for name in ("compat", "cwl"):
        folder = fixtures / "ir_measures"
        found.append(Pair(folder / f"{name}.run", folder / f"{name}.qrels", "other evaluators' fixtures"))
    found.append(
        Pair(
            fixtures / "ranx" / "results.test", fixtures / "ranx" / "qrels.test", "other evaluators' fixtures"
        )
    )
    unjudged = [*(fixtures / "anserini").iterdir(), *(fixtures / "pyserini").glob("*.txt")]
    found += [Pair(p, None, "other evaluators' fixtures") for p in unjudged if len(_lines(p)[0].split()) == 6]
    return sorted(found, key=lambda pair: (pair.group, pair.run.name, str(pair.qrels)))


def _lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for line in data.decode("utf-8").split("\n") if line.strip() and not line.startswith("#")]


def plain_run(path: Path) -> dict[str, dict[str, float]]:
    """A run read without Weir."""
    found: dict[str, dict[str, float]] = {}
    for line in _lines(path):
        query, _, document, _, score = line.split()[:5]
        found.setdefault(query, {})[document] = float(score)
    return found


def plain_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Judgments read without Weir: four columns, or BEIR's three with a header."""
    lines = _lines(path)
    if path.suffix == ".tsv":
        lines = lines[1:]
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        columns = line.split()
        found.setdefault(columns[0], {})[columns[-2]] = int(columns[-1])
    return found


def made_qrels(run: dict[str, dict[str, float]]) -> dict[str, dict[str, int]]:
    """Judgments for a run that has none: every other document, grades 0 to 3."""
    return {
        q: {d: (3 * i + len(d)) % 4 for i, d in enumerate(sorted(row)) if i % 2 == 0}
        for q, row in run.items()
    }


def check(pair: Pair, measures: tuple[str, ...] = MEASURES) -> list[Checked]:
    """Compare each measure on each query with pytrec_eval.

    With ties="trec9" always; with the default, doubles, where no two scores are equal as floats only.
    """
    run = plain_run(pair.run)
    judged = made_qrels(run) if pair.qrels is None else plain_qrels(pair.qrels)
    if max(grade for row in judged.values() for grade in row.values()) > 15:
        # Exponential gains are asked of trec_eval as grades 2**g - 1, and its table of grades has an end.
        measures = tuple(m for m in measures if "exp" not in m)
    theirs = by_trec_eval(judged, run, measures)
    found = []
    for ties in ("trec9",) if float32_ties(run) else ("trec9", "trec"):
        qrels = Qrels.of(judged) if pair.qrels is None else read_qrels(pair.qrels)
        scores = evaluate(read_run(pair.run, ties), qrels, measures)
        if scores.queries.tolist() != list(judged):
            raise AssertionError(f"{pair.run}: other queries are judged")
        for measure in measures:
            ours = dict(zip(scores.queries.tolist(), scores.of(measure).tolist(), strict=True))
            found.append(Checked(measure, ties, *differences(ours, theirs[measure])))
    return found


PRINTED = {
    "map": "AP",
    "map_cut": "AP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "P": "P",
    "recall": "R",
    "recip_rank": "RR",
    "set_recall": "R",
    "success": "Success",
    "unj": "Hole",
}
BOTH = {"map", "ndcg", "recip_rank", "set_recall"}  # without a cut-off


def weir_name(name: str, rel: int = 1) -> str | None:
    """What Weir calls a measure that trec_eval prints, or None."""
    stem, _, cut = name.rpartition("_")
    if name in BOTH:
        stem, cut = name, ""
    if name not in BOTH and (stem in BOTH or stem not in PRINTED or not cut.isdecimal()):
        return None
    if rel > 1 and stem == "unj":
        return None
    inside = f"(rel={rel})" if rel > 1 and not stem.startswith("ndcg") else ""
    return PRINTED[stem] + inside + (f"@{cut}" if cut else "")


def printed(path: Path, rel: int = 1) -> Iterator[tuple[str, str, float]]:
    """(query or "all", Weir's measure, value) of what trec_eval wrote."""
    for line in path.read_text(encoding="utf-8").split("\n"):
        columns = line.split()
        name = weir_name(columns[0], rel) if len(columns) == 3 else None
        if name is not None:
            yield columns[1], name, float(columns[2])


def official(path: Path, run: str) -> dict[str, float]:
    """{topic: nDCG@10} that NIST's assessors' files hold for one run."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["runid"] == run]
    return {row["topic"]: float(row["ndcg_cut_10"]) for row in rows if row["topic"] != "average"}


def summaries(path: Path, run: str) -> Iterator[tuple[str, float]]:
    """(Weir's measure, mean) of NIST's summary tables; "passages-eval" counts grades from 2 as relevant."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rel = {"passages-eval": 2, "trec_eval": 1}.get(row["summary"])
            if row["run"] == run and rel is not None and weir_name(row["measure"], rel):
                yield str(weir_name(row["measure"], rel)), float(row["value"])
