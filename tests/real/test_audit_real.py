"""Audits of the stored collections against plain double loops and what others have said of them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from weir.audit import audited
from weir.audit.duplicates import copies
from weir.audit.holes import judged_share
from weir.datasets.load import load
from weir.datasets.same_text import normalised, title_and_text
from weir.experiment.audit_subjects import subjects_of

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", ["scifact", "nfcorpus", "cranfield", "vaswani"])
def test_duplicates_are_those_of_a_plain_loop(name, shared):
    corpus = load(shared / "data" / name).corpus
    for columns, form in (
        ((corpus.text,), str),
        (title_and_text(corpus), str),
        (title_and_text(corpus), normalised),
    ):
        plain = defaultdict(list)
        for row, parts in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if any(form(part).strip() for part in parts):
                plain[tuple(form(part) for part in parts)].append(row)
        expected = sorted(rows for rows in plain.values() if len(rows) > 1)
        assert sorted(rows.tolist() for rows in copies(columns, form).members()) == expected


def test_elastics_figure_for_nfcorpus_counts_documents_in_groups(shared):
    """Elastic's text says 80 for NFCorpus without saying how it was counted: documents that have a copy, by text."""
    corpus = load(shared / "data" / "nfcorpus").corpus
    groups = copies((corpus.text,))
    assert (groups.rows, groups.surplus) == (80, 40)


def test_judged_shares_of_dl19_are_those_that_were_counted(shared):
    """Judged@10 of stored runs: BM25 1.00, TAS-B 0.90, ada-002 0.91, RepLLaMA 0.92."""
    data = shared / "data" / "trec-dl"
    names = {"BM25": 1.00, "D_BERT_KD_TASB": 0.90, "OPEN_AI_ADA2": 0.91, "REP_LLAMA": 0.92}
    runs = [data / "runs" / "dl19" / f"{name}.trec.gz" for name in names]
    [subject] = subjects_of([data / "qrels" / "qrels.dl19-passage.txt", *runs])
    for (name, share), judged in zip(names.items(), subject.joins.values(), strict=True):
        assert judged_share(judged) == pytest.approx(share, abs=0.005), name
    [unequal] = [f for f in audited(subject, ["holes"]).findings if "not judged alike" in f.statement]
    assert unequal.severity == "serious"
