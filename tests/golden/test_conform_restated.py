"""The oracle against what programs print, with the digits that they print.

trec_eval: built from its tags v9.0.8 and v10.0; gdeval.pl through ir_measures 0.4.3; ranx 0.3.21 and BEIR's custom
metrics where they keep Weir's convention.
"""

from __future__ import annotations

import math

import pytest

from weir.plugins.conform.oracle import exact_answer
from weir.plugins.conform.vectors import vectors

PRINTED = [
    ("tie-docid-desc", "RR", "0.3333", "trec_eval"),
    ("tie-docid-desc", "nDCG@1", "0.0000", "trec_eval"),
    ("tie-docid-desc", "nDCG@3", "0.5000", "trec_eval"),
    ("tie-string-order", "RR", "1.0000", "trec_eval"),
    ("float32-scores", "RR", "1.0000", "trec_eval 10"),
    ("float32-tie-32", "RR", "0.5000", "trec_eval 9"),
    ("graded-ndcg", "nDCG@3", "0.6388", "trec_eval"),
    ("graded-ndcg", "nDCG(gain='exp')@3", "0.60519", "gdeval"),
    ("graded-ndcg", "condensed(nDCG@3)", "0.7224242270408039", "ir_measures"),
    ("graded-ndcg", "ERR@3", "0.12109", "gdeval"),
    ("linear-vs-exponential", "nDCG@2", "0.1480", "trec_eval"),
    ("linear-vs-exponential", "nDCG@10", "0.6138", "trec_eval"),
    ("linear-vs-exponential", "nDCG(gain='exp')@2", "0.07095", "gdeval"),
    ("linear-vs-exponential", "nDCG(gain='exp')@10", "0.54783", "gdeval"),
    ("linear-vs-exponential", "ERR@10", "0.17316", "gdeval"),
    ("negative-judgment", "AP", "0.5833", "trec_eval"),
    ("negative-judgment", "bpref", "1.0000", "trec_eval"),
    ("negative-judgment", "infAP", "0.8750", "trec_eval"),
    ("negative-judgment", "nDCG@10", "0.6199", "trec_eval"),
    ("incomplete-judgments", "AP", "0.4500", "trec_eval"),
    ("incomplete-judgments", "bpref", "0.5000", "trec_eval"),
    ("incomplete-judgments", "P@5", "0.4000", "trec_eval"),
    ("incomplete-judgments", "infAP", "0.5000", "trec_eval"),
    ("incomplete-judgments", "condensed(AP)", "0.5833", "trec_eval -J"),
    ("incomplete-judgments", "condensed(nDCG@10)", "0.6934", "trec_eval -J"),
    ("bpref-no-judged-nonrelevant", "bpref", "1.0000", "trec_eval"),
    ("which-queries-count", "AP", "0.3333", "trec_eval -c"),
    ("which-queries-count", "nDCG@10", "0.3333", "trec_eval -c"),
    ("which-queries-count", "Judged@10", "0.6666666666666666", "ir_measures"),
    ("rbp-and-residual", "RBP(p=0.8)", "0.3024", "trec_eval 10"),
    ("rbp-and-residual", "RBP_residual(p=0.8)", "0.5696", "trec_eval 10"),
    ("rbp-and-residual", "Hole@2", "0.5000", "trec_eval 10, unj_2"),
    ("rbp-and-residual", "Hole@4", "0.2500", "trec_eval 10, unj_4"),
    ("rbp-and-residual", "Hole@10", "0.1000", "trec_eval 10, unj_10"),
    ("rbp-and-residual", "Judged@4", "0.7500000000000000", "ir_measures"),
    ("rbp-and-residual", "ERR@10", "0.07715", "gdeval"),
    ("judged-tie-order", "P@1", "0.0000", "trec_eval"),
    ("judged-tie-order", "Hole@1", "1.0000", "trec_eval 10, unj_1"),
    ("cut-normalisation", "R@3", "0.6667", "trec_eval"),
    ("cut-normalisation", "AP@2", "0.3333", "trec_eval"),
    ("cut-normalisation", "AP@3", "0.5556", "trec_eval"),
    ("cut-normalisation", "nDCG@2", "0.6131471927654584", "ir_measures"),
    ("cut-normalisation", "Rprec", "0.6666666666666666", "ir_measures"),
    ("cut-normalisation", "R_cap@1", "1.00000", "BEIR"),
    ("cut-normalisation", "R_cap@2", "0.50000", "BEIR"),
    ("cut-normalisation", "R_cap@10", "0.66667", "BEIR"),
    ("relevance-level-2", "AP(rel=2)", "0.5000", "trec_eval -l 2"),
    ("relevance-level-2", "R(rel=2)@1", "0.0000", "trec_eval -l 2"),
    ("relevance-level-2", "nDCG@10", "0.8597", "trec_eval -l 2"),
    ("hole-vs-judged", "Hole@2", "0.2500", "trec_eval 10, unj_2"),
    ("hole-vs-judged", "Hole@3", "0.3333", "trec_eval 10, unj_3"),
    ("hole-vs-judged", "Hole@5", "0.2000", "trec_eval 10, unj_5"),
    ("hole-vs-judged", "Judged@3", "0.6666666666666666", "ir_measures"),
    ("one-divisor", "RR@10", "0.50000", "BEIR mrr"),
    ("identical-ids-drop", "nDCG@10", "1.00000", "BEIR evaluate"),
    ("identical-ids-keep", "nDCG@10", "0.6309297535714575", "BEIR evaluate(ignore_identical_ids=False)"),
    ("graded-rbp", "RBP(p=0.8)", "0.3599999999999999", "ir_measures, rel=1"),
    ("graded-rbp", "RBP(p=0.8, gain='scaled')", "0.2600", "trec_eval 10"),
]  # fmt: skip
BY_ID = {v.id: v for v in vectors(["examples", "missing-queries", "order"])}


@pytest.mark.parametrize(("name", "measure", "printed", "program"), PRINTED, ids=str)
def test_the_oracle_says_what_the_program_prints(name, measure, printed, program):
    exact = float(exact_answer(BY_ID[name].case, measure).mean)
    decimals = len(printed.partition(".")[2])
    # Programs round or cut; at full precision their sums end in another last digit.
    assert math.isclose(exact, float(printed), rel_tol=0, abs_tol=max(10.0**-decimals, 2e-16)), program
