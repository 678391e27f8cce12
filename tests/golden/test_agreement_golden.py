"""Agreement of labels against scikit-learn's, krippendorff's and published numbers.

The worked cases and what made them stand in ../shared/facts/judge-examples.json (scikit-learn 1.9.1, krippendorff 0.9.0).
"""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from weir.core.qrels import Qrels
from weir.errors import BadValue
from weir.stats.label_agreement import ac1, agreement, alpha_of, cohen_kappa, coincidences

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40)


@pytest.fixture(scope="module")
def cases(shared):
    return {
        one["id"]: one for one in json.loads((shared / "facts" / "judge-examples.json").read_text())["cases"]
    }


def krippendorff_alpha(ratings, level):
    labels = np.unique(ratings[~np.isnan(ratings)])
    return alpha_of(coincidences(ratings, labels), labels, level)


def both(human, other):
    return (Qrels.of({f"q{i // 3}": {f"d{j}": g for j, g in enumerate(grades) if j // 3 == i // 3}
                      for i in range(len(grades))}) for grades in (human, other))  # fmt: skip


@pytest.mark.real
def test_the_worked_cases_come_out(cases):
    graded = cases["agreement-graded"]
    found = agreement(*both(graded["human"], graded["llm"]))
    expected = graded["expected"]
    names = {
        "accuracy": "accuracy", "kappa": "kappa", "linear kappa": "kappa_linear", "quadratic kappa": "kappa_quadratic",
        "nominal alpha": "alpha_nominal", "ordinal alpha": "alpha_ordinal", "interval alpha": "alpha_interval",
        "AC1": "gwet_ac1", "mean absolute error": "mae", "bias": "bias_llm_minus_human",
    }  # fmt: skip
    for name, key in names.items():
        assert found.value(name) == pytest.approx(expected[key], abs=1e-12), name
    assert [list(row) for row in found.confusion] == expected["confusion_rows_human"]
    at = {cut: kappa for cut, kappa, *_ in found.binary}
    assert at[1] == pytest.approx(expected["kappa_binary_ge1"], abs=1e-12)
    assert at[2] == pytest.approx(expected["kappa_binary_ge2"], abs=1e-12)
    missing = cases["krippendorff-missing"]
    ratings = np.array([[np.nan if r is None else r for r in row] for row in missing["ratings"]])
    for level, value in missing["expected"].items():
        assert krippendorff_alpha(ratings, level) == pytest.approx(value, abs=1e-12)
    rare = cases["kappa-prevalence"]
    assert cohen_kappa(np.array(rare["table"])) == pytest.approx(rare["expected"]["kappa"], abs=1e-12)
    assert np.isnan(cohen_kappa(np.array([[3]])))


@pytest.mark.real
def test_the_published_agreement_of_dl19_comes_out(shared):
    """llm-judge.md: kappa .3626 of four grades, .5244 binary, .5951 quadratic, ordinal alpha .5967, of 9,260 pairs."""
    path = shared / "data" / "llm-judgments" / "methods.dl19.tsv.gz"
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode()), delimiter="\t"))
    labels = {}
    for rater in ("human", "umbrela_gpt4o"):
        grades = {}
        for row in rows:
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row[rater])
        labels[rater] = Qrels.of(grades)
    found = agreement(labels["human"], labels["umbrela_gpt4o"])
    assert (found.pairs, found.queries) == (9260, 43)
    assert found.value("kappa") == pytest.approx(0.3626, abs=5e-5)
    assert found.value("quadratic kappa") == pytest.approx(0.5951, abs=5e-5)
    assert found.value("ordinal alpha") == pytest.approx(0.5967, abs=5e-5)
    [(kappa, low, high)] = [(k, low, high) for cut, k, low, high, *_ in found.binary if cut == 2]
    assert kappa == pytest.approx(0.5244, abs=5e-5)
    assert low < kappa < high


@settings(max_examples=15, phases=(Phase.generate,))
@given(LABELS)
def test_alpha_of_two_raters_is_that_of_their_table_and_nothing_depends_on_the_order_of_pairs(
    pairs,
):
    a, b = np.array(pairs, float).T
    if len({*a, *b}) < 2:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "weir.stats.label_agreement.RESAMPLES", 5
        )  # values do not depend on them, but take their time
        found, swapped = agreement(*both(a, b)), agreement(*both(b, a))
    for level in ("nominal", "ordinal", "interval"):
        expected = krippendorff_alpha(np.stack([a, b]), level)
        assert found.value(f"{level} alpha") == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert swapped.value("kappa") == pytest.approx(found.value("kappa"), abs=1e-12, nan_ok=True)
    assert swapped.value("bias") == pytest.approx(-found.value("bias"), abs=1e-12)


def test_raters_of_different_pairs_are_refused_and_others_counted():
    with pytest.raises(BadValue, match="judged by both"):
        agreement(Qrels.of({"q": {"a": 1}}), Qrels.of({"q": {"b": 1}}))
    found = agreement(Qrels.of({"q": {"a": 1, "b": 0}, "r": {"a": 1}}), Qrels.of({"q": {"a": 0, "c": 1}}))
    assert (found.pairs, found.only_first, found.only_second) == (1, 2, 1)
    assert ac1(np.array([[5]])) == 1
