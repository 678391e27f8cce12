"""What a report concludes is what compare finds on the same results."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.unit.cells import MANIFEST, write_cell

import weir
from weir.plugins.report.sections import concluded, not_concluded
from weir.plugins.report.study import Study

SEPARABLE = ("better", "worse")


def grid(folder: Path, datasets: int, systems: int, lift: float, queries: int, seed: int) -> None:
    """Write results of systems that differ from bm25 by a lift, alike on every dataset but for noise."""
    draws = np.random.default_rng(seed)
    names = ["bm25", *(f"s{n}" for n in range(1, systems))]
    for d in range(datasets):
        qrels = {f"q{n}": {"d": 1} for n in range(queries)}
        for s, name in enumerate(names):
            hit = 0.4 + 0.02 * d + lift * s * draws.choice([1, 1, 1, 1, -1])
            answered = draws.random(queries) < hit
            run = {q: {"d": 1.0} if yes else {"x": 1.0} for q, yes in zip(qrels, answered, strict=True)}
            manifest = {**MANIFEST, "dataset": f"data{d}", "system": {"system": name}}
            write_cell(folder / f"data{d}" / name, run, manifest, ("nDCG@10", "P@1"), qrels)


@settings(max_examples=25, deadline=None)
@given(
    datasets=st.integers(1, 9),
    systems=st.sampled_from([2, 2, 3, 5, 8]),
    lift=st.sampled_from([0.0, 0.05, -0.05, 0.1, 0.3]),
    queries=st.sampled_from([8, 20, 60]),
    seed=st.integers(0, 10_000),
)
def test_no_conclusion_of_a_report_contradicts_a_verdict_of_compare(
    datasets: int, systems: int, lift: float, queries: int, seed: int
) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        grid(folder, datasets, systems, lift, queries, seed)
        study = Study.of(folder)
        compared = weir.compare(folder, baseline=None if study.pairwise else study.baseline)
        found = [one for one in compared if one.measure in study.measures]
        can, cannot = concluded(study), not_concluded(study)
    said = "\n".join(map(str, (*can, "--", *cannot)))

    def verdict(system: str, other: str, over: str | None, measure: str = "nDCG@10") -> str:
        """Return compare's verdict on a dataset, or over all of them for None."""
        [one] = [
            c for c in found
            if c.measure == measure and (c.unit == "datasets" if over is None else c.dataset == over)
        ]  # fmt: skip
        pair = one.against(system, other)
        return "" if pair is None else pair.verdict

    places = [f"data{d}" for d in range(datasets)]
    means = [None] * (datasets > 1)
    for one in can:
        if match := re.fullmatch(r"(?:By (\S+), )?(\S+) is (better|worse) than (\S+)", one.head):
            measure, system, way, other = match.groups(default="nDCG@10")
            over, singly = re.findall(r"(on the mean of \d+ collections, by [^;]*; singly )?(.*)", one.text)[
                0
            ]
            if over or one.text.startswith("on the mean"):
                assert verdict(system, other, None, measure) == way, said
            named = re.match(r"on ((?:data\d|, | and )+)", singly)
            for dataset in re.findall(r"data\d", named[1]) if named else ():
                assert verdict(system, other, dataset, measure) == way, said
            if "not separate" not in singly and (named or singly.startswith("on none")) and over:
                count = sum(verdict(system, other, name) == way for name in places)
                assert count == (len(re.findall(r"data\d", named[1])) if named else 0), said
        elif match := re.match(r"(\S+) is better than every other system", one.head):
            beaten = [verdict(match[1], s, (means or places)[0]) for s in study.systems if s != match[1]]
            assert {*beaten} <= {"better", "" if not study.pairwise else "better"}, said
    for one in cannot:
        if match := re.fullmatch(
            r"That (\S+(?:, \S+)*(?: and \S+)?) differs? from (\S+) in (\S+):", one.head
        ):
            for system in re.split(", | and ", match[1]):
                verdicts = [verdict(system, match[2], name, match[3]) for name in (*places, *means)]
                assert not {*verdicts} & {*SEPARABLE}, said
        elif one.head.startswith("Anything over"):
            whole = [p.verdict for c in found for p in c.pairs if c.unit == "datasets"]
            assert not {*whole} & {*SEPARABLE}, said
        elif match := re.fullmatch(r"That (\S+) is the best\.", one.head):
            assert not any("better than every other" in each.head for each in can), said
            others = [s for s in study.systems if s != match[1]]
            assert any(verdict(match[1], s, (means or places)[0]) != "better" for s in others), said
    if datasets > 1:  # the verdict over all stands first
        over_all = [s for s in study.systems if verdict(s, study.baseline, None) in SEPARABLE]
        firsts = [one for one in can if one.text.startswith("on the mean of")]
        assert list(can[: len(firsts)]) == firsts, said
        heads = {each.head.split()[0] for each in firsts}
        assert len(can) == 5 or {*over_all} <= heads, said
        assert not over_all or "[" in can[0].text or datasets < 6, said
