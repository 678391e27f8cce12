"""Recompute the reference numbers in tests/golden/measures with pytrec_eval-terrier.

A file there is a list of cases. Of each, this script keeps what people wrote (name, what, qrels, run, and
`restated`: figures other tools print, with their digits) and rewrites `computed`: every measure that
trec_eval has, per query, at full precision. To add a case, write its qrels and run and run `make golden`.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden" / "measures"
MEASURES = (
    *("nDCG", "nDCG@1", "nDCG@3", "nDCG@10", "nDCG(gain='exp')@3", "nDCG(gain='exp')"),
    *("P@1", "P@3", "P@10", "P(rel=2)@3", "R", "R@1", "R@3", "R@10", "R(rel=2)@3"),
    *("AP", "AP@1", "AP@3", "AP@10", "AP(rel=2)", "RR", "RR@1", "RR@3", "RR(rel=2)"),
    *("Success@1", "Success@3", "Success@10", "Success(rel=2)@3"),
)


def recomputed(case: dict[str, Any]) -> dict[str, Any]:
    """The case with its computed figures."""
    sys.path.insert(0, str(ROOT))
    from tests.peers import by_trec_eval

    kept = {key: case[key] for key in ("name", "what", "qrels", "run", "restated") if key in case}
    tool = f"pytrec_eval-terrier {version('pytrec_eval-terrier')}"
    return kept | {"computed": {"tool": tool, "values": by_trec_eval(case["qrels"], case["run"], MEASURES)}}


def text_of(cases: list[dict[str, Any]]) -> str:
    """The cases as JSON, a line for each measure."""
    return "[\n" + ",\n".join(_case(case) for case in cases) + "\n]\n"


def _case(case: dict[str, Any]) -> str:
    lines = [f" {_json(key)}: {_json(case[key])}" for key in case if key != "computed"]
    values = ",\n".join(f"   {_json(m)}: {_json(v)}" for m, v in case["computed"]["values"].items())
    tool = _json(case["computed"]["tool"])
    lines.append(f' "computed": {{"tool": {tool}, "values": {{\n{values}\n }}}}')
    return "{\n" + ",\n".join(lines) + "\n}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Rewrite every file of cases."""
    for path in sorted(FOLDER.glob("*.json")):
        cases = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(text_of([recomputed(case) for case in cases]), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(cases)} cases")


if __name__ == "__main__":
    main()
