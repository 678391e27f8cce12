"""Make tests/golden/diversity.json: judgments of intents, rankings, and what ndeval (pyndeval) says of them.

    python scripts/make_golden_diversity.py [PYTHON]

PYTHON: that of an environment with ir-measures, cwl-eval and pyndeval, where this one has them not. Judgments and
rankings are drawn at random.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "golden" / "diversity.json"


def main() -> None:
    """Write the file."""
    sys.path.insert(0, str(ROOT))
    from tests.certified import DIVERSITY, answered, made_intents

    judged, run = made_intents(seed=20_090, queries=10, depth=30)
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    asked = {"qrels": {}, "run": run, "intents": judged, "measures": DIVERSITY}
    values = {text: by_query for text, (_, by_query) in answered(python, asked).items()}
    lines = [
        '"tool": "ndeval 4.5 (pyndeval 0.0.8)"',
        '"judgments": [\n' + ",\n".join(f" {json.dumps(row)}" for row in judged) + "\n]",
        '"run": {\n' + ",\n".join(f" {json.dumps(q)}: {json.dumps(row)}" for q, row in run.items()) + "\n}",
        '"values": {\n' + ",\n".join(f" {json.dumps(m)}: {json.dumps(v)}" for m, v in values.items()) + "\n}",
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{FILE.relative_to(ROOT)}: {len(judged)} judgments, {len(values)} measures")


if __name__ == "__main__":
    main()
