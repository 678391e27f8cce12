"""Recompute the reference numbers in tests/golden/family: the measures beyond the first ten.

`cases.json` is written by people: name, what, qrels, run and `restated`, figures that tools print, with
their digits. This script adds, per query and at full precision, what these programs compute of them:
pytrec_eval-terrier (which must be installed), and where ir-measures, cwl-eval and pyndeval are, too:
gdeval.pl, run by perl from a copy that prints 17 digits instead of 5; cwl-eval; ndeval.
Files of programs that are not installed stay as they are.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden" / "family"
TREC_EVAL = (
    *(
        "Rprec",
        "Rprec(rel=2)",
        "Rprec@3",
        "bpref",
        "bpref(rel=2)",
        "bpref@3",
        "infAP",
        "infAP(rel=2)",
        "infAP@3",
    ),
    *(f"IPrec(recall={point / 10})" for point in (0, 1, 3, 5, 7, 10)),
    *("IPrec(recall=0.25, rel=2)", "IPrec(recall=0.5)@3", "IAP", "IAP(rel=2)", "IAP@3"),
    *("SetP", "SetP(rel=2)", "SetP@3", "SetR", "SetR@3", "SetF", "SetF(beta=2.0)", "SetF(beta=0.5, rel=2)@3"),
    *("SetAP", "SetAP(rel=2)", "SetAP@3", "NumRet", "NumRet@3", "NumRelRet", "NumRelRet(rel=2)", "R_cap@2"),
    *("condensed(AP)", "condensed(nDCG@3)", "condensed(P@3)", "condensed(RR@2)", "condensed(Rprec)"),
    *("condensed(bpref)", "condensed(SetP)", "condensed(IAP)", "condensed(NumRet)", "condensed(infAP)"),
    *("gmAP", "gmAP(rel=2)", "gmAP@3", "gmbpref", "G", "G(gain='exp')@3", "binG", "binG(rel=2)@3"),
    *("RnDCG", "RnDCG@3", "nDCG_rel", "nDCG_rel@3", "Rprec(times=0.5)", "Rprec(times=1.5)@3", "Utility@3"),
    *("SetR_cap", "SetR_cap(rel=2)@3", "NumNonrelRet", "NumNonrelRet(rel=2)@3", "nDCG(gain='1=1,2=3')@3"),
    *("nDCG(gain='1=9,2=1')", "RnDCG(gain='1=9,2=1')", "condensed(gmAP)", "condensed(G)"),
)
GDEVAL = ("ERR@1", "ERR@3", "ERR@10", "ERR@1000", "nDCG(gain='exp')@3", "nDCG(gain='exp')@10")
CWL_EVAL = ("RBP", "RBP(p=0.5)", "RBP(p=0.95)", "RBP(rel=2)")
IR_MEASURES = (
    *(
        "Accuracy",
        "Accuracy(rel=2)@3",
        "BPM@3",
        "BPM(T=0.5)@10",
        "Compat",
        "Compat(p=0.5)",
        "Compat(over='weights')",
    ),
    *(
        "INSQ",
        "INSQ(T=2.5)",
        "INST",
        "INST(T=2.5)",
        "Judged@3",
        "NERR8@3",
        "NERR9@3",
        "NERR10",
        "NERR10(p=0.5)",
    ),
    *("NERR11", "NERR11(T=2.5)", "SDCG@3", "SDCG@10"),
)
NDEVAL = ("nERR(max_grade=1)@1", "nERR(max_grade=1)@3", "nERR(max_grade=1)@10")
Values = dict[str, dict[str, float]]


def cases() -> list[dict[str, Any]]:
    """What people wrote."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
    return found


def by_trec_eval(qrels: dict[str, Any], run: dict[str, Any]) -> Values:
    """What pytrec_eval computes."""
    sys.path.insert(0, str(ROOT))
    from tests.peers import by_trec_eval as ask

    measures = TREC_EVAL
    if max(g for row in qrels.values() for g in row.values()) < 0:
        # Looking for the levels of gains it then reads memory it never wrote, and may not come to an end.
        measures = tuple(m for m in TREC_EVAL if not m.startswith(("G", "RnDCG", "nDCG", "condensed(G")))
    return ask(qrels, run, measures)


def by_gdeval(qrels: dict[str, Any], run: dict[str, Any]) -> Values | None:
    """What gdeval.pl computes; None for grades beyond its scale."""
    if max(g for row in qrels.values() for g in row.values()) > 4:
        return None
    queries = list(qrels)  # it wants numbers
    with tempfile.TemporaryDirectory() as folder:
        program, judged, ranked = (Path(folder) / name for name in ("gdeval.pl", "qrels", "run"))
        program.write_text(_gdeval().replace("%.5f,%.5f", "%.17g,%.17g"), encoding="utf-8")
        lines = [f"{i} 0 {d} {g}\n" for i, q in enumerate(queries) for d, g in qrels[q].items()]
        judged.write_text("".join(lines), encoding="utf-8")
        rows = [(i, d, s) for i, q in enumerate(queries) for d, s in run.get(q, {}).items()]
        ranked.write_text("".join(f"{i} Q0 {d} 1 {s!r} run\n" for i, d, s in rows), encoding="utf-8")
        found: Values = {measure: {} for measure in GDEVAL}
        for measure in GDEVAL:
            command = ["perl", str(program), str(judged), str(ranked), measure.partition("@")[2]]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for line in printed.split("\n")[1:-1]:
                _, topic, ndcg, err = line.split(",")
                found[measure][queries[int(topic)]] = float(err if measure.startswith("ERR") else ndcg)
    return found


def _gdeval() -> str:
    import ir_measures

    text = (Path(ir_measures.__file__).parent / "bin" / "gdeval.pl").read_text(encoding="utf-8")
    if "%.5f,%.5f" not in text:
        raise SystemExit("another gdeval.pl: it does not print what was expected")
    return text


def by_cwl_eval(qrels: dict[str, Any], run: dict[str, Any]) -> Values:
    """What cwl-eval computes for ir-measures."""
    import ir_measures

    found = {}
    for measure in CWL_EVAL:
        p = float(m[1]) if (m := re.search(r"p=([0-9.]+)", measure)) else 0.8
        rows = ir_measures.iter_calc([ir_measures.RBP(p=p, rel=2 if "rel=2" in measure else 1)], qrels, run)
        found[measure] = {row.query_id: float(row.value) for row in rows if row.query_id in run}
    return found


def by_ir_measures(qrels: dict[str, Any], run: dict[str, Any]) -> Values | None:
    """What ir-measures' providers compute of the rankings in Weir's order; None for grades beyond 4."""
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]
    import peer_scores

    from weir.core.run import Run

    if max(g for row in qrels.values() for g in row.values()) > 4:
        return None
    lists = {q: list(row) for q, row in Run.of(run).to_dict().items() if row}
    asked = {"qrels": qrels, "run": lists}
    return {text: found for text, _, found in peer_scores.by_ir_measures(list(IR_MEASURES), asked)}


def by_ndeval(qrels: dict[str, Any], run: dict[str, Any]) -> Values | None:
    """What ndeval computes where all judgments are of one subtopic; None for grades, which it does not know."""
    import pyndeval

    if not {g for row in qrels.values() for g in row.values()} <= {0, 1}:
        return None
    judged = [(q, "1", d, g) for q, row in qrels.items() for d, g in row.items()]
    ranked = [(q, d, s) for q, row in run.items() for d, s in row.items()]
    asked = {measure: f"nERR-IA@{measure.partition('@')[2]}" for measure in NDEVAL}
    values = pyndeval.ndeval(judged, ranked, measures=list(asked.values()))
    return {m: {q: row[name] for q, row in values.items()} for m, name in asked.items()}


PROGRAMS = {
    "pytrec_eval": (by_trec_eval, ("pytrec_eval-terrier",)),
    "gdeval": (by_gdeval, ("ir_measures",)),
    "cwl_eval": (by_cwl_eval, ("cwl-eval", "ir_measures")),
    "ir_measures": (by_ir_measures, ("ir_measures", "cwl-eval")),
    "ndeval": (by_ndeval, ("pyndeval",)),
}
LABELS = {"gdeval": "gdeval.pl 1.2a of ", "ndeval": "ndeval of "}
MODULES = {
    "pytrec_eval": "pytrec_eval",
    "gdeval": "ir_measures",
    "cwl_eval": "cwl",
    "ir_measures": "cwl",
    "ndeval": "pyndeval",
}


def computed(program: str) -> dict[str, Any]:
    """What one program says of every case."""
    ask, packages = PROGRAMS[program]
    tool = LABELS.get(program, "") + ", ".join(f"{name} {version(name)}" for name in packages)
    values = {case["name"]: ask(case["qrels"], case["run"]) for case in cases()}
    return {"tool": tool, "values": {name: found for name, found in values.items() if found is not None}}


def text_of(found: dict[str, Any]) -> str:
    """The file: a line for each measure of a case."""
    blocks = []
    for name, values in found["values"].items():
        lines = ",\n".join(f"  {json.dumps(m)}: {json.dumps(v)}" for m, v in values.items())
        blocks.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    inside = ",\n".join(blocks)
    return f'{{"tool": {json.dumps(found["tool"])}, "values": {{\n{inside}\n}}}}\n'


def main() -> None:
    """Rewrite the file of every program that is installed."""
    for program in PROGRAMS:
        path = FOLDER / f"{program}.json"
        if importlib.util.find_spec(MODULES[program]) is None:
            print(f"{path.relative_to(ROOT)}: kept, {MODULES[program]} is not installed")
            continue
        found = computed(program)
        path.write_text(text_of(found), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(found['values'])} cases by {found['tool']}")


if __name__ == "__main__":
    main()
