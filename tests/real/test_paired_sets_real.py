"""p-MRR and the worst of a group on files of FollowIR's and InstructIR's layouts, against their definitions."""

from __future__ import annotations

import pytest
from tests.conftest import SHARED

import weir

FOLLOWIR = SHARED / "data" / "interop" / "followir"
INSTRUCTIR = SHARED / "data" / "interop" / "instructir"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not FOLLOWIR.is_dir(), reason="needs ../shared/data/interop"),
]


def test_p_mrr_of_a_run_under_two_instructions(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")

    def rows(name: str) -> list[dict]:
        [path] = (FOLLOWIR / "hub_layout" / name).iterdir()
        return parquet.read_table(path).to_pylist()

    qrels: dict[str, dict[str, int]] = {}
    for row in rows("qrels"):
        qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    run = {}
    for place, row in enumerate(rows("top_ranked")):
        shift = place % 3 if row["query-id"].endswith("-changed") else 0
        documents = row["corpus-ids"][shift:] + row["corpus-ids"][:shift]
        run[row["query-id"]] = {d: -float(n) for n, d in enumerate(documents)}
    told = {row["query-id"]: row["corpus-ids"] for row in rows("qrel_diff")}
    found = weir.p_mrr(qrels, run)
    assert found.queries.tolist() == sorted(told)
    for stem, documents in told.items():
        falls = []
        for document in documents:
            before, after = (list(run[f"{stem}-{end}"]).index(document) + 1 for end in ("og", "changed"))
            falls.append(
                (1 / before) / (1 / after) - 1 if before >= after else 1 - (1 / after) / (1 / before)
            )
        assert found["p-MRR"][stem] == pytest.approx(sum(falls) / len(falls), abs=1e-15)


def test_robustness_of_instructir_is_the_worst_of_each_query(tmp_path):
    lines = (INSTRUCTIR / "qrels" / "test.tsv").read_text().splitlines()[1:]
    qrels: dict[str, dict[str, int]] = {}
    for line in lines:
        query, document, grade = line.split("\t")
        qrels.setdefault(query, {})[document] = int(grade)
    run = {
        q: {f"other{i}": 9.0 - i for i in range(n % 5)} | {next(iter(d)): 1.0}
        for n, (q, d) in enumerate(qrels.items())
    }
    scores = weir.evaluate(qrels, run, "nDCG@10")
    worst: dict[str, list[float]] = {}
    for query, value in scores["nDCG@10"].to_dict().items():
        worst.setdefault(query.split("_")[0], []).append(value)
    found = weir.within_groups(scores, "prefix:_")[0]
    assert found.groups == len(worst) == 6
    assert found.worst == pytest.approx(sum(map(min, worst.values())) / len(worst), rel=1e-14)
