"""Audits of the stored collections against plain double loops and what others have said of them."""

from __future__ import annotations

from collections import defaultdict

import pytest

import weir
from weir.audit import Subject, audited
from weir.audit.duplicates import copies, near_copies
from weir.audit.judgments import judged_share
from weir.datasets.card import normalised, title_and_text
from weir.datasets.load import load
from weir.experiment.audit_subjects import subjects_of
from weir.files.runs import read_qrels

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
    assert unequal.severity == "caution"  # the one that is judged less is far better as it stands
    assert "whatever the unjudged ones are, D_BERT_KD_TASB has the higher nDCG@10" in unequal.statement


ALIKE = {"19": [("BM25", 40), ("rerank.BM25.vicuna-7b-v1.5", 38)], "20": []}
"""What vicuna-13b-v1.5 put into one order; vicuna-7b-v1.5 is nearly BM25 itself."""


def test_the_re_ranking_of_dl19_that_failed_without_a_word_is_found_and_no_other(shared):
    """PROVENANCE.md: vicuna-7b-v1.5 left BM25's order untouched; 42 of 43 topics have the same first ten documents."""
    data = shared / "data" / "trec-dl"
    for year, expected in (("19", ["BM25 and rerank.BM25.vicuna-7b-v1.5"]), ("20", [])):
        runs = sorted((data / "runs" / f"dl{year}").glob("*.trec.gz"))
        [subject] = subjects_of([data / "qrels" / f"qrels.dl{year}-passage.txt", *runs])
        found = audited(subject, ["same rankings"]).findings
        assert [f.statement.split(" have")[0] for f in found] == expected
        alike = [f.statement for f in audited(subject, ["query-independent rankings"]).findings]
        places = "stand at the places 19, 1, 2, 3, 4, 5, 6, 7, 8, 9 of"
        assert alike == [
            f"the first 10 documents of rerank.BM25.vicuna-13b-v1.5 {places} {first} for {count} of 43 queries"
            for first, count in ALIKE[year]
        ]


def test_near_copies_of_the_stored_collections(shared):
    counts = {"scifact": 0, "nfcorpus": 41, "cranfield": 1, "vaswani": 23}
    for name, surplus in counts.items():
        assert near_copies(load(shared / "data" / name).corpus)[0].surplus == surplus


TRAPS = {
    "scifact": ["serious labels: sparse judgments: 1.13", "note texts: 6 of 5,183"],
    "nfcorpus": ["serious duplicates: 4 times", "caution duplicates: 80 of 3,633"],
    "cranfield": [
        "caution texts: 2 of 1,400 documents have no text",
        "caution texts: 1,396 of 1,398 texts begin with their title",
        "note texts: 3 of 1,400 documents hold left-over field marks",
    ],
    "vaswani": ["caution duplicates: 30 of 11,429 documents share their text with another: by title and text 30 (16"],
    "small-beir-layout/arcd": [
        "wrong dangling judgments: 18 judgments name 6 documents",
        "caution dangling judgments: 652 of 702",
        "caution duplicate queries: 2 of 50 judged queries share their text with another: 2 as it is written",
    ],
    "small-beir-layout/business-reports": ["note unjudged queries: 39 of 50"],
    "small-beir-layout/dbpedia": ["caution duplicates: 4 of 5,000", "note unjudged queries: 10 of 50"],
    "small-beir-layout/msmarco": ["serious published counts: this is not msmarco", "note unjudged queries: 7 of 50"],
    "small-beir-layout/pg": ["serious unjudged queries: none of 50", "caution duplicates: 39 of 2,043"],
    "birco/beir/doris-mae-dev": ["note labels: 2,557 of 3,129 judgments are above 0 and below 1"],
    "birco/beir/clinical-trial-dev": [],
    "birco/beir/relic": ["caution texts: 161 of 5,023 documents hold UTF-8 read in another encoding"],
    "birco/beir/wtb": ["caution duplicates: 2 of 1,767"],
    "beir-topics-qrels/trec-covid": ["caution published counts: this is not trec-covid"],
    "beir-topics-qrels/webis-touche2020": ["caution published counts: this is not webis-touche2020 as it was published: judgments of grade 0: 0"],
    "beir-topics-qrels/fever": ["caution copied query labels: 103 pairs"],
}  # fmt: skip
ALARMS = {
    "scifact": {"leakage", "labels"},
    "nfcorpus": {"duplicates"},
    "small-beir-layout/arcd": {"dangling judgments", "labels"},
    "small-beir-layout/msmarco": {"published counts"},
    "small-beir-layout/pg": {"unjudged queries"},
    "beir-topics-qrels/fever": {"labels"},
}
"""Checks that may call something wrong or serious, each read and found true; none elsewhere."""


@pytest.mark.parametrize("name", TRAPS)
def test_a_stored_collection_has_the_traps_that_are_known_of_it_and_no_false_alarm(name, shared):
    [subject] = subjects_of([shared / "data" / name])
    found = audited(subject).findings
    said = [f"{f.severity} {f.check}: {f.statement}" for f in found]
    for trap in TRAPS[name]:
        assert any(s.startswith(trap) for s in said), (trap, said)
    assert {f.check for f in found if f.severity in {"wrong", "serious"}} == ALARMS.get(name, set())
    assert not any(" 1 documents" in s or " 1 queries" in s for s in said)
    if name in ("scifact", "nfcorpus"):  # 8 and 48 of all splits do, none that is judged in this one
        assert "duplicate queries" not in {f.check for f in found}


def test_another_layer_of_judgments_is_no_training_data_and_its_negative_grades_are_said(shared):
    """Cranfield's codes.tsv judges the same queries as test.tsv, with 225 grades of -1."""
    folder = shared / "data" / "cranfield"
    [subject] = subjects_of([folder])
    assert subject.training == ()
    found = audited(Subject("codes", qrels=read_qrels(folder / "qrels" / "codes.tsv")), ["labels"]).findings
    assert any(f.statement.startswith("225 of 1,837 judgments are below 0, down to -1") for f in found)


def test_four_systems_on_scifact_are_audited_without_a_false_alarm(shared, tmp_path, monkeypatch):
    """What is called serious is true of SciFact's shallow judgments; nothing is said to be wrong, no slice is found."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    folder = shared / "data" / "scifact"
    systems = ["bm25", 'bm25("lucene-multifield")', "bm25(b=0.0)", "rm3"]
    weir.benchmark([folder], systems, ["nDCG@10"], tmp_path / "results")
    [subject] = subjects_of([tmp_path / "results"], [folder])
    assert len(subject.runs) == 4
    found = audited(subject).findings
    assert {f.check for f in found if f.severity == "serious"} == {
        "score bounds",
        "holes",
        "labels",
        "leakage",
    }
    assert not [
        f for f in found if f.severity == "wrong" or f.check in {"slices", "hub documents", "same rankings"}
    ]
    assert not any("is expected" in f.statement for f in found)  # nothing judged not relevant to expect by
