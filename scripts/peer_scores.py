"""What ir-measures' providers, gdeval.pl and ndeval say of rankings; run by the python that has them.

Standard input: JSON {"qrels": {query: {document: grade}}, "intents": [[query, intent, document, grade], ...],
"run": {query: [document, ...]}, "measures": [name in Weir, ...]}, rankings best first. Standard output: JSON
{"tools": {reference: version}, "values": {measure: [reference, {query: value}]}}. The programs order ties each in
their own way, so they are handed scores that fall by one from rank to rank. gdeval.pl is run from a copy that
prints 17 digits instead of 5.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

Values = dict[str, float]
CWL = {"BPM", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11", "RBP", "SDCG"}
NDEVAL = {
    "AP_IA": "MAP-IA",
    "ERR_IA": "ERR-IA",
    "NRBP": "NRBP",
    "P_IA": "P-IA",
    "StRecall": "strec",
    "alpha_DCG": "alpha-DCG",
    "alpha_nDCG": "alpha-nDCG",
    "nERR_IA": "nERR-IA",
    "nNRBP": "nNRBP",
}


def parsed(text: str) -> tuple[str, dict[str, Any], int | None]:
    """Name, settings and cut-off of a measure's text."""
    match = re.fullmatch(r"(\w+)(\(.*\))?(?:@(\d+))?", text)
    assert match is not None, text
    call = ast.parse(f"f{match[2] or '()'}", mode="eval").body
    assert isinstance(call, ast.Call)
    settings = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    return match[1], settings, int(match[3]) if match[3] else None


def by_ir_measures(texts: list[str], asked: dict[str, Any]) -> Iterator[tuple[str, str, Values]]:
    """Measures that a provider of ir-measures computes, each asked of its own provider."""
    import ir_measures

    logging.disable(logging.WARNING)
    qrels = asked["qrels"]
    run = {
        q: {d: float(len(row) - i) for i, d in enumerate(row)}
        for q, row in asked["run"].items()
        if q in qrels
    }
    groups: dict[Any, dict[Any, str]] = {}
    for text in texts:
        provider, measure = _provided(ir_measures, *parsed(text))
        groups.setdefault(provider, {})[measure] = text
    for provider, measures in groups.items():
        calls = [(list(measures), run)]
        if provider is ir_measures.accuracy:  # it divides by zero where all that was returned is relevant
            calls = [([measure], {q: row}) for measure in measures for q, row in run.items()]
        found: dict[Any, Values] = {measure: {} for measure in measures}
        for some, part in calls:
            try:
                rows = list(provider.iter_calc(some, {q: qrels[q] for q in part}, part))
            except ZeroDivisionError:
                continue
            for row in rows:
                found[row.measure][row.query_id] = float(row.value)
        for measure, text in measures.items():
            yield text, f"ir-measures {measure.NAME} ({provider.NAME})", found[measure]


def _provided(irm: ModuleType, name: str, settings: dict[str, Any], cut: int | None) -> tuple[Any, Any]:
    """The provider and what it calls a measure of Weir's."""
    if name in CWL:
        measure = getattr(irm, name)
        given = {key: settings[key] for key in ("p", "T") if key in settings}
        if name == "RBP":
            return irm.cwl_eval, measure(rel=settings.get("rel", 1), **({"p": 0.8} | given))
        measure = measure(max_rel=settings.get("max_grade", 4), **given)
        return irm.cwl_eval, measure if cut is None else measure @ cut
    if name == "Compat":
        measure = irm.Compat(p=settings.get("p", 0.95), normalize=settings.get("over") != "weights")
        return irm.compat, measure
    provider, measure = {
        "Accuracy": (irm.accuracy, irm.Accuracy),
        "Judged": (irm.judged, irm.Judged),
        "RR": (irm.msmarco, irm.RR),
    }[name]
    if "rel" in settings:
        measure = measure(rel=settings["rel"])
    return provider, measure if cut is None else measure @ cut


def by_gdeval(texts: list[str], asked: dict[str, Any]) -> Iterator[tuple[str, str, Values]]:
    """ERR and exponential nDCG; nothing for grades beyond gdeval's scale. It wants numbers for topics."""
    import ir_measures

    qrels, run = asked["qrels"], asked["run"]
    if max(g for row in qrels.values() for g in row.values()) > 4:
        return
    names = list(qrels)
    text = (Path(ir_measures.__file__).parent / "bin" / "gdeval.pl").read_text(encoding="utf-8")
    assert "%.5f,%.5f" in text, "another gdeval.pl"
    with tempfile.TemporaryDirectory() as folder:
        program, judged, ranked = (Path(folder) / name for name in ("gdeval.pl", "qrels", "run"))
        program.write_text(text.replace("%.5f,%.5f", "%.17g,%.17g"), encoding="utf-8")
        lines = [f"{i} 0 {d} {g}\n" for i, q in enumerate(names) for d, g in qrels[q].items()]
        judged.write_text("".join(lines), encoding="utf-8")
        rows = [
            f"{i} Q0 {d} 1 {len(run[q]) - at} run\n"
            for i, q in enumerate(names)
            for at, d in enumerate(run.get(q, ()))
        ]
        ranked.write_text("".join(rows), encoding="utf-8")
        for measure in texts:
            name, _, cut = parsed(measure)
            command = ["perl", str(program), str(judged), str(ranked), str(cut)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            values = {}
            for line in printed.split("\n")[1:-1]:
                _, topic, ndcg, err = line.split(",")
                values[names[int(topic)]] = float(err if name == "ERR" else ndcg)
            # It leaves out queries without a relevant document.
            yield measure, "gdeval.pl 1.2a", dict.fromkeys((q for q in run if q in qrels), 0.0) | values


def by_ndeval(texts: list[str], asked: dict[str, Any]) -> Iterator[tuple[str, str, Values]]:
    """Measures of diversity; ndeval goes no deeper than rank 20."""
    import pyndeval

    judged = [(q, i, d, g) for q, i, d, g in asked["intents"]]
    ranked = [(q, d, float(len(row) - i)) for q, row in asked["run"].items() for i, d in enumerate(row)]
    for text in texts:
        name, settings, cut = parsed(text)
        key = NDEVAL[name] + (f"@{cut}" if cut else "")
        evaluator = pyndeval.RelevanceEvaluator(
            judged, [key], settings.get("rel", 1), settings.get("alpha", 0.5), settings.get("beta", 0.5)
        )
        yield text, "ndeval 4.5 (pyndeval)", {q: row[key] for q, row in evaluator.evaluate(ranked).items()}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The values of every measure that a program here computes."""
    groups: dict[Any, list[str]] = {by_ir_measures: [], by_gdeval: [], by_ndeval: []}
    for text in asked["measures"]:
        name, settings, _ = parsed(text)
        if name in NDEVAL:
            groups[by_ndeval].append(text)
        elif name == "ERR" or settings.get("gain") == "exp":
            groups[by_gdeval].append(text)
        else:
            groups[by_ir_measures].append(text)
    values = {
        text: [reference, found]
        for ask, texts in groups.items()
        for text, reference, found in (ask(texts, asked) if texts else ())
    }
    tools = {name: version(name) for name in ("ir-measures", "cwl-eval", "pyndeval")}
    return {"tools": tools, "values": values}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
