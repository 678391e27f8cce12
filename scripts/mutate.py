"""What share of small mistakes the tests notice: mutation testing of five parts, by a fixed sample of mutants.

Needs cosmic-ray, in an environment of its own:

    python -m venv /tmp/mutants && /tmp/mutants/bin/pip install cosmic-ray
    /tmp/mutants/bin/python scripts/mutate.py --python .venv/bin/python [PART ...]

Mutates a copy of the checkout, one place at a time, and runs the tests of the part. Prints a row for each part and
writes the mutants that no test noticed to build/mutants/PART.diff, and where an interrupted run goes on to PART.jsonl.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_SECONDS = 900
COARSE = ("Shift", "_BitAnd", "_BitOr", "_BitXor", "_Pow", "_Mod", "_Is", "_IsNot")
"""Operators in the place of another that nearly always fail at once, and so say little of the tests."""


@dataclass(frozen=True)
class Part:
    """Files of the package, and the tests that are to notice a mistake in them, the quickest first."""

    files: tuple[str, ...]
    tests: str


PARTS = {
    "measures": Part(
        ("measures",),
        """
        golden/test_golden_measures.py conformance/test_measures.py golden/test_golden_family.py
        golden/test_golden_diversity.py unit/test_*measures.py unit/test_family.py unit/test_aliases.py
        unit/test_conventions.py unit/test_fractions.py unit/test_geometric.py unit/test_diversity.py
        unit/test_tie_places.py unit/test_given.py unit/test_scoring_rules.py unit/test_anserini_ties.py
        unit/test_chunked.py property/test_contexts.py property/test_diversity.py property/test_over_orders.py
        property/test_measures_against_reference.py
        """,
    ),
    "permutation": Part(
        ("stats/permutation.py",),
        """
        golden/test_inference.py unit/test_*inference.py unit/test_stats.py unit/test_compare*.py
        property/test_inference_properties.py
        """,
    ),
    "order": Part(
        ("core/order.py",),
        """
        property/test_values.py unit/test_tie_places.py unit/test_drawn_order.py unit/test_trec*.py
        golden/test_golden_measures.py unit/test_conventions.py unit/test_fusion.py unit/test_given.py
        unit/test_anserini_ties.py unit/test_reordering.py unit/test_claims.py property/test_dict_join.py
        property/test_fusion_properties.py
        """,
    ),
    "judged": Part(
        ("core/judged.py",),
        """
        golden/test_golden_measures.py property/test_values.py unit/test_conventions.py unit/test_tie_places.py
        unit/test_chunked.py unit/test_fractions.py unit/test_trec*.py unit/test_scoring_rules.py
        unit/test_family.py unit/test_given.py conformance/test_measures.py property/test_dict_join.py
        property/test_over_orders.py property/test_measures_against_reference.py
        """,
    ),
    "stages": Part(
        ("experiment/stages.py", "experiment/stage_store.py"),
        """
        unit/test_stage*.py unit/test_shared_stages.py unit/test_verify.py unit/test_stored_run.py
        unit/test_experiment.py unit/test_efficiency.py unit/test_reproduce.py property/test_stage_faults.py
        """,
    ),
}


def checkout() -> Path:
    """A copy of what git knows of this tree, to be mutated."""
    copy = Path(tempfile.mkdtemp(prefix="weir-mutants-")) / "weir"
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def annotated_lines(path: Path) -> set[tuple[int, int]]:
    """(line, column) of everything inside annotations, which nothing evaluates."""
    places = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in ("annotation", "returns"):
            inside = getattr(node, name, None)
            if inside is not None:
                places |= {(n.lineno, n.col_offset) for n in ast.walk(inside) if hasattr(n, "lineno")}
                places |= {(line, c) for line in range(inside.lineno, inside.end_lineno + 1)
                           for c in range(inside.col_offset, inside.end_col_offset)}  # fmt: skip
    return places


def sample(part: Part, count: int, seed: int) -> list[MutationSpec]:
    """Lines drawn by the seed, of each a sort of mutant, of that a mutant: the same for the same text of the files."""
    paths = [Path("src/weir") / name for name in part.files]
    files = sorted(f for p in paths for f in (p.rglob("*.py") if p.is_dir() else [p]))
    with tempfile.TemporaryDirectory() as folder, use_db(str(Path(folder) / "work.sqlite")) as database:
        init(files, database, {})
        mutants = [m for item in database.work_items for m in item.mutations]
    quiet = {path: annotated_lines(path) for path in files}
    lines: dict[tuple[Path, int], dict[str, list[MutationSpec]]] = {}
    for mutant in sorted(mutants, key=lambda m: (str(m.module_path), m.operator_name, m.occurrence)):
        sort, _, replacement = mutant.operator_name.removeprefix("core/").partition("_")
        if tuple(mutant.start_pos) not in quiet[mutant.module_path] and not replacement.endswith(COARSE):
            sorts = lines.setdefault((mutant.module_path, mutant.start_pos[0]), {})
            sorts.setdefault(sort, []).append(mutant)
    draw = random.Random(seed)
    drawn = draw.sample(sorted(lines), min(count, len(lines)))
    return [draw.choice(lines[line][draw.choice(sorted(lines[line]))]) for line in drawn]


def main() -> None:
    """Mutates the parts that are named, or all, and prints how many mutants were noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all unless named")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="which runs the tests")
    parser.add_argument("--count", type=int, default=40, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    python, out = Path(options.python).absolute(), ROOT / "build" / "mutants"
    out.mkdir(parents=True, exist_ok=True)
    copy = checkout()
    os.environ |= {"PYTHONPATH": str(copy / "src"), "WEIR_SHARED": str(copy / "none")}
    with contextlib.chdir(copy):
        for name in options.parts or PARTS:
            part = PARTS[name]
            tests = [str(p) for pattern in part.tests.split() for p in sorted(Path("tests").glob(pattern))]
            command = f"{python} -m pytest -x -q -p no:cacheprovider --hypothesis-seed=0 {' '.join(tests)}"
            whole = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
            if whole.returncode:
                raise SystemExit(f"{name}: the tests fail without a mutant:\n{whole.stdout[-3000:]}")
            log = out / f"{name}.jsonl"
            known = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
            mutants = sample(part, options.count, options.seed)
            for mutant in mutants[len(known) :]:
                result = mutate_and_test([mutant], command, TIMEOUT_SECONDS)
                known.append({"killed": result.is_killed, "diff": result.diff})
                with log.open("a") as lines:
                    lines.write(json.dumps(known[-1]) + "\n")
            survivors = [k["diff"] for k in known if not k["killed"]]
            (out / f"{name}.diff").write_text("\n".join(survivors))
            killed = len(known) - len(survivors)
            print(
                f"{name:12} {killed:3} of {len(known)} mutants noticed ({killed / len(known):.0%})",
                flush=True,
            )
    shutil.rmtree(copy.parent)


if __name__ == "__main__":
    main()
