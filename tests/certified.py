"""Which real runs Weir's measures are held against, and the figures trec_eval prints for them."""

from __future__ import annotations

import csv
import gzip
import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.peers import by_trec_eval, differences, float32_ties
from weir.core.intents import IntentQrels
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import Scores
from weir.files.runs import read_qrels, read_run
from weir.measures import parse_measure, score_run

__all__ = [
    "DIVERSITY",
    "FAMILY",
    "MEASURES",
    "OTHERS",
    "Checked",
    "Pair",
    "answered",
    "check",
    "check_intents",
    "check_others",
    "made_intents",
    "official",
    "pairs",
    "printed",
    "summaries",
]

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
    *("gmAP", "gmAP(rel=2)", "gmbpref", "gmbpref(rel=2)", "G", "G(gain='exp')", "binG", "binG(rel=2)"),
    *("RnDCG", "RnDCG@20", "nDCG_rel", "nDCG_rel@20", "Rprec(times=0.2)", "Rprec(times=2.0)", "Utility"),
    *("SetR_cap", "SetR_cap(rel=2)", "NumNonrelRet", "NumNonrelRet(rel=2)", "nDCG(gain='1=1,2=3')@10"),
    *("nDCG(gain='1=3,2=9,3=1')", "nDCG(gain='1=3,2=9,3=1')@20", "G(gain='1=3,2=9')", "condensed(gmAP)"),
)

# What programs other than trec_eval compute: scripts/peer_scores.py.
OTHERS = (
    *("Accuracy", "Accuracy(rel=2)@20", "BPM@10", "BPM(T=2.0)@50", "Compat", "Compat(p=0.8)"),
    *("Compat(over='weights')", "ERR@10", "ERR@20", "INSQ", "INSQ(T=3.0)", "INST", "INST(T=2.5)"),
    *("Judged@10", "Judged@100", "NERR8@10", "NERR9@10", "NERR10", "NERR10(p=0.5)", "NERR11"),
    *("NERR11(T=3.0)", "RBP", "RBP(p=0.95)", "RBP(rel=2)", "RR@10", "SDCG@10", "SDCG@100"),
    *("nDCG(gain='exp')@10", "nDCG(gain='exp')@100"),
)
DIVERSITY = (
    *(
        f"{name}@{k}"
        for name in ("ERR_IA", "P_IA", "StRecall", "alpha_DCG", "alpha_nDCG", "nERR_IA")
        for k in (5, 20)
    ),
    *("AP_IA", "AP_IA(rel=2)", "NRBP", "NRBP(alpha=0.2, beta=0.8)", "nNRBP", "nNRBP(alpha=0.2, beta=0.8)"),
    *("StRecall@1", "nERR_IA@1", "alpha_nDCG@1", "alpha_nDCG(alpha=0.7)@10", "alpha_nDCG(rel=2)@10"),
    *("alpha_DCG(alpha=0.7)@10", "nERR_IA(alpha=0.2)@10", "ERR_IA(rel=2)@10", "P_IA(rel=2)@10"),
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
    birco = data / "birco"
    for name in ("relic", "wtb"):
        judged = birco / "beir" / name / "qrels" / "test.tsv"
        found += [Pair(path, judged, "BIRCO") for path in (birco / "ranks" / name).glob("*.json")]
    unjudged = [*(fixtures / "anserini").iterdir(), *(fixtures / "pyserini").glob("*.txt")]
    found += [Pair(p, None, "other evaluators' fixtures") for p in unjudged if len(_lines(p)[0].split()) == 6]
    return sorted(found, key=lambda pair: (pair.group, pair.run.name, str(pair.qrels)))


def _lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line for line in data.decode("utf-8").split("\n") if line.strip() and not line.startswith("#")]


def plain_run(path: Path) -> dict[str, dict[str, float]]:
    """A run read without Weir; a list of documents without scores has those that fall by one."""
    if path.suffix == ".json":
        listed = json.loads(path.read_text(encoding="utf-8"))
        return {q: {d: float(len(row) - i) for i, d in enumerate(row)} for q, row in listed.items()}
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
        ranked = Run.of(run, ties=ties) if pair.run.suffix == ".json" else read_run(pair.run, ties)
        scores = score_run(qrels, ranked, measures)
        if scores.queries.tolist() != list(judged):
            raise AssertionError(f"{pair.run}: other queries are judged")
        for measure in measures:
            ours = dict(zip(scores.queries.tolist(), scores.of(measure).tolist(), strict=True))
            found.append(Checked(measure, ties, *differences(ours, theirs[measure])))
    return found


def check_others(pair: Pair, python: str, measures: tuple[str, ...] = OTHERS) -> dict[str, Checked]:
    """{measure: how it compares with the program that computes it}; grades beyond 4 are cut to it first.

    python: of the environment that has ir-measures, cwl-eval and pyndeval. Only queries for which the program has
    a value are compared; `ties` names the program.
    """
    run = plain_run(pair.run)
    judged = made_qrels(run) if pair.qrels is None else plain_qrels(pair.qrels)
    judged = {q: {d: min(grade, 4) for d, grade in row.items()} for q, row in judged.items()}
    ranked = Run.of(run)
    lists = {q: list(row) for q, row in ranked.to_dict().items()}
    asked = {"qrels": judged, "run": lists, "intents": [], "measures": measures}
    scores = score_run(Qrels.of(judged), ranked, measures)
    return _compared(scores, answered(python, asked))


def made_intents(
    seed: int, queries: int = 100, depth: int = 100
) -> tuple[list[tuple[str, str, str, int]], dict[str, list[str]]]:
    """Judgments of intents, and rankings for them, drawn at random."""
    draw = random.Random(seed)
    documents = [f"d{i}" for i in range(depth + depth // 5)]
    judged, run = [], {}
    for q in range(queries):
        for intent in range(draw.randint(1, 8)):
            some = draw.sample(documents, draw.randint(1, 3 * depth // 10))
            judged += [(f"q{q}", f"i{intent}", d, draw.choice((-1, 0, 0, 0, 1, 1, 2))) for d in some]
        run[f"q{q}"] = draw.sample([*documents, "x", "y", "z"], draw.randint(1, depth))
    return judged, run


def check_intents(seed: int, python: str, measures: tuple[str, ...] = DIVERSITY) -> dict[str, Checked]:
    """As check_others for measures of diversity, on judgments drawn at random."""
    judged, run = made_intents(seed)
    asked = {"qrels": {}, "run": run, "intents": judged, "measures": measures}
    qrels = IntentQrels.from_rows(*(list(column) for column in zip(*judged, strict=True)))
    ranked = Run.of({q: {d: float(len(row) - i) for i, d in enumerate(row)} for q, row in run.items()})
    return _compared(score_run(qrels, ranked, measures), answered(python, asked))


def answered(python: str, asked: dict[str, object]) -> dict[str, tuple[str, dict[str, float]]]:
    """{measure: (reference, {query: value})}: what scripts/peer_scores.py says, run by that python."""
    script = Path(__file__).resolve().parents[1] / "scripts" / "peer_scores.py"
    done = subprocess.run(
        [python, str(script)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return {
        text: (reference, values) for text, (reference, values) in json.loads(done.stdout)["values"].items()
    }


def _compared(scores: Scores, theirs: dict[str, tuple[str, dict[str, float]]]) -> dict[str, Checked]:
    found = {}
    for measure, (reference, values) in theirs.items():
        ours = dict(
            zip(scores.queries.tolist(), scores.of(str(parse_measure(measure))).tolist(), strict=True)
        )
        largest = max((abs(ours[q] - value) for q, value in values.items()), default=0.0)
        found[measure] = Checked(str(parse_measure(measure)), reference, len(values), largest)
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
