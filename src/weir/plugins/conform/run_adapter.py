"""Ask a tool for its answers: vectors as JSON on standard input, answers as JSON lines on standard output.

It runs in the tool's own Python, as `python run_adapter.py NAME [CHECKOUT]`, and needs only adapters/NAME.py
beside it, nothing of Weir. An adapter defines

    PACKAGE   the package to install.
    VERSION   only for a tool that is a checkout, whose folder is the second argument.
    FOLLOWS   unusual conventions that it supports or always keeps, such as "self_matches=drop".
    HOLDS     inputs that the tool's types can hold: "twice ranked", "twice judged", "unanswered"
    value(vector, measure)   {"mean": ..., "per_query": {...}, "decimals": ...}, each optional; None if the tool lacks
              the measure. An exception is a refusal.

vector["grades"] and ["scores"] have {query: {document: number}} beside the pairs in ["qrels"] and ["run"].
The first line of the output describes the tool; a line follows for each vector, until one ends the tool.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

USUAL = {"ties": "trec", "missing": "zero", "empty": "zero", "self_matches": "keep"}
NOT_INSTALLED = 3


def adapter(name: str) -> Any:  # noqa: ANN401 - a module whose attributes are described above
    """Return the module of a tool's adapter; raises ImportError if it or the tool is missing."""
    path = Path(__file__).with_name("adapters") / f"{name}.py"
    spec = importlib.util.spec_from_file_location("adapter", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tool_answer(tool: Any, vector: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - an adapter
    reason = _not_applicable(tool, vector)
    if reason is not None:
        return {"id": vector["id"], "not_applicable": reason}
    measures: dict[str, Any] = {}
    for measure in vector["measures"]:
        try:
            value = tool.value(numbers(vector), measure)  # a copy, which tools may change
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is its answer
            first = str(error).strip().split("\n")[0]
            # Paths and addresses differ from machine to machine and say nothing.
            text = re.sub(r"(?<![\w.])(/[\w.+-]+){2,}", "(path)", re.sub(r" at 0x[0-9a-f]+", "", first))
            value = {"refused": f"{type(error).__name__}: {text[:200]}"}
        if value is not None:
            measures[measure["name"]] = value
    return {"id": vector["id"], "measures": measures}


def _not_applicable(tool: Any, vector: dict[str, Any]) -> str | None:  # noqa: ANN401 - an adapter
    for key, value in vector["conventions"].items():
        if value != USUAL[key] and f"{key}={value}" not in tool.FOLLOWS:
            return f"it does not offer {key}={value}"
    for key in ("candidates", "excluded"):
        if vector.get(key) and key not in tool.FOLLOWS:
            return f"it cannot be told {key} of a query"
    qrels, run = vector["qrels"], vector["run"]
    needs = {
        "twice ranked": any(len({d for d, _ in row}) < len(row) for row in run.values()),
        "twice judged": any(len({d for d, _ in row}) < len(row) for row in qrels.values()),
        "unanswered": any(row and not run.get(q) for q, row in qrels.items()),
    }
    missing = (what for what, needed in needs.items() if needed and what not in tool.HOLDS)
    return next((f"its input cannot hold this: {what}" for what in missing), None)


def _to_json_value(value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    if isinstance(value, dict):
        return {str(key): _to_json_value(one) for key, one in value.items()}
    if value is None or isinstance(value, (str, bool, int)):
        return value
    number = float(value)
    return number if number - number == 0 else str(number)


def numbers(vector: dict[str, Any]) -> dict[str, Any]:
    """Return the test vector with numbers for texts such as "nan", and with {query: {document: number}} as
    "grades" and "scores"."""
    qrels, run = (
        {q: [[d, float(x) if isinstance(x, str) else x] for d, x in row] for q, row in vector[name].items()}
        for name in ("qrels", "run")
    )
    grades = {q: dict(row) for q, row in qrels.items()}
    scores = {q: {d: float(s) for d, s in row} for q, row in run.items()}
    return {**vector, "qrels": qrels, "run": run, "grades": grades, "scores": scores}


def main(name: str) -> int:
    """Print a tool's version, then its answers to the test vectors in standard input, as JSON lines; return
    0.

    Prints {"not_installed": reason} and returns 3 without the tool.
    """
    # What tools print themselves must not fall between the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [p for p in sys.path if p and str(Path(p).resolve()) != here]
    vectors = json.loads(sys.stdin.buffer.read().decode("utf-8"))["vectors"]
    try:
        tool = adapter(name)
        head = {
            "tool": name,
            "package": tool.PACKAGE,
            "version": vars(tool).get("VERSION") or version(tool.PACKAGE),
        }
    except (ImportError, PackageNotFoundError) as error:
        print(json.dumps({"not_installed": str(error)}), file=out, flush=True)
        return NOT_INSTALLED
    print(json.dumps({**head, "python": platform.python_version()}), file=out, flush=True)
    for vector in vectors:
        print(json.dumps(_to_json_value(_tool_answer(tool, vector))), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
