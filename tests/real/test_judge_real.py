"""The judged pairs of TREC DL 2019, judged again by a stand-in, from the texts to the agreement with NIST's assessors."""

from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import pytest
from tests.unit.model_servers import chat_serving

import weir
from weir.files.label_files import read_labels
from weir.files.runs import read_qrels
from weir.stats.label_agreement import agreement

pytestmark = pytest.mark.real
PAIRS = 400
PARTS = re.compile(r"Query: (.*?)\n.*<passage>\n(.*)\n</passage>", re.DOTALL)


@pytest.fixture
def pool(shared: Path) -> Path:
    found = shared / "data" / "trec-dl" / "judged-pool" / "dl19"
    if not found.is_dir():
        pytest.skip(
            "../shared/data/trec-dl/judged-pool is not there: the passages are not part of the project"
        )
    return found


def test_a_stand_in_judges_the_pool_and_its_agreement_is_that_of_its_labels(pool, shared, tmp_path):
    """The stand-in answers with the label that GPT-4o gave the pair, so that all between text and label is held."""
    with gzip.open(shared / "data" / "llm-judgments" / "methods.dl19.tsv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    label = {(row["query-id"], row["corpus-id"]): int(row["umbrela_gpt4o"]) for row in rows}
    dataset = weir.load(pool)
    texts = dict(zip(dataset.corpus.ids.tolist(), dataset.corpus.view("title text").tolist(), strict=True))
    asked = dataset.queries.to_dict()
    known = {(asked[q], " ".join(texts[d].split())): grade for (q, d), grade in label.items()}

    def say(_, user):
        query, passage = PARTS.search(user).groups()
        return f"M: 2, T: 2\n##final score: {known[query, ' '.join(passage.split())]}"

    with chat_serving() as (url, manners):
        manners.say = say
        settings = weir.labels.JudgeSettings(twice=0.2, probes=0)
        [report] = weir.judge(
            pool,
            model=f"{url}/v1#gpt-4o",
            judged=True,
            limit=PAIRS,
            out=tmp_path / "labels",
            settings=settings,
        )
    labels = read_labels(tmp_path / "labels")
    assert (report.pairs, report.labelled, dict(report.verdicts)) == (
        PAIRS,
        PAIRS,
        {"ok": PAIRS + PAIRS // 5},
    )
    assert {
        (q, d): g for q, docs in labels.to_dict().items() for d, g in docs.items()
    }.items() <= label.items()
    found = agreement(read_qrels(pool / "qrels" / "test.tsv"), labels)
    assert report.people.pairs == found.pairs == PAIRS
    assert report.people.kappa == pytest.approx(found.value("kappa"), abs=1e-12)
    assert report.people.equal == pytest.approx(found.value("accuracy"), abs=1e-12)
    assert 0.25 < report.people.kappa < 0.5  # .3626 on all 9,260 pairs
    assert (report.consistency.pairs, report.consistency.equal) == (PAIRS // 5, 1.0)
