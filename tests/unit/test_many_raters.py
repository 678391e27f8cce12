"""Several raters, queries one by one, and orders of systems: against SciPy, scikit-learn and counting by loops."""

from __future__ import annotations

import itertools
import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.cli import main
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.errors import BadValue, FormatError, LossWarning
from weir.files.label_files import read_labels
from weir.measures import parse_measure
from weir.stats.label_agreement import agreement, many_raters
from weir.stats.order_agreement import order_agreement

PAIRS = [(f"q{q}", f"d{d}") for q in range(4) for d in range(3)]
RATINGS = st.lists(st.lists(st.sampled_from([None, 0, 1, 2]), min_size=len(PAIRS), max_size=len(PAIRS)),
                   min_size=2, max_size=4)  # fmt: skip


def qrels(column):
    found = {}
    for (query, doc), grade in zip(PAIRS, column, strict=True):
        if grade is not None:
            found.setdefault(query, {})[doc] = grade
    return Qrels.of(found)


def alpha_by_loops(columns, level):
    """Krippendorff's definition: differences within items against those of any two ratings, item by item."""
    items = [[column[i] for column in columns if column[i] is not None] for i in range(len(PAIRS))]
    items = [one for one in items if len(one) > 1]
    ratings = [grade for one in items for grade in one]

    def apart(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= grade <= high for grade in ratings)
        return (between - (ratings.count(low) + ratings.count(high)) / 2) ** 2

    within = sum(
        sum(apart(a, b) for a, b in itertools.permutations(one, 2)) / (len(one) - 1) for one in items
    )
    among = sum(apart(a, b) for a, b in itertools.permutations(ratings, 2)) / (len(ratings) - 1)
    return 1 - within / among if among else math.nan


@settings(max_examples=10)
@given(RATINGS)
def test_alpha_of_raters_that_leave_pairs_out_is_that_of_loops_over_all_ratings(columns):
    labels = {f"rater {n}": qrels(column) for n, column in enumerate(columns)}
    counts = [sum(column[i] is not None for column in columns) for i in range(len(PAIRS))]
    if max(counts) < 2:
        with pytest.raises(BadValue, match="two labels"):
            many_raters(labels)
        return
    found = many_raters(labels)
    for level, value, low, high in found.values:
        assert value == pytest.approx(alpha_by_loops(columns, level), abs=1e-9, nan_ok=True)
        assert math.isnan(low) or low <= high
    shared = [n for n in counts if n > 1]
    assert (found.pairs, found.alone) == (len(shared), counts.count(1))
    assert found.missing == pytest.approx(1 - sum(shared) / (len(shared) * len(columns)), abs=1e-12)
    for base, column in zip(found.raters, columns, strict=True):
        given_ = [grade for grade in column if grade is not None]
        assert base.labels == len(given_)
        if given_:
            assert base.mean == pytest.approx(np.mean(given_))
            assert base.relevant == pytest.approx(sum(grade >= 1 for grade in given_) / len(given_))


@pytest.mark.real
def test_the_worked_case_with_missing_values_is_krippendorffs(shared):
    cases = json.loads((shared / "facts" / "judge-examples.json").read_text())["cases"]
    case = next(one for one in cases if one["id"] == "krippendorff-missing")
    labels = {
        f"rater {n}": Qrels.of({"q": {f"d{i}": g for i, g in enumerate(row) if g is not None}})
        for n, row in enumerate(case["ratings"])
    }
    found = {level: value for level, value, *_ in many_raters(labels).values}
    assert found == pytest.approx(case["expected"], abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_each_query_is_what_scikit_learn_says_of_its_pairs_and_the_worst_stands_first(seed):
    metrics = pytest.importorskip("sklearn.metrics", reason="the oracle is scikit-learn")
    columns = np.random.default_rng(seed).integers(0, 3 - seed % 2, (2, len(PAIRS))).tolist()
    found = agreement(qrels(columns[0]), qrels(columns[1])).by_query
    for one in found:
        rows = [i for i, (query, _) in enumerate(PAIRS) if query == one.query]
        a, b = ([column[i] for i in rows] for column in columns[:2])
        assert one.pairs == len(rows)
        assert one.accuracy == pytest.approx(metrics.accuracy_score(a, b))
        assert one.bias == pytest.approx(np.mean(b) - np.mean(a))
        if len({*a, *b}) > 1:
            assert one.kappa == pytest.approx(metrics.cohen_kappa_score(a, b), abs=1e-12)
        else:
            assert math.isnan(one.kappa)
    kappas = [one.kappa for one in found if not math.isnan(one.kappa)]
    assert kappas == sorted(kappas)
    assert all(math.isnan(one.kappa) for one in found[len(kappas) :])


def systems(seed, count=8, queries=12):
    rng = np.random.default_rng(seed)
    docs = [f"d{i}" for i in range(8)]
    return {
        f"s{n}": Run.of({f"q{q}": rng.permutation(docs).tolist() for q in range(queries)})
        for n in range(count)
    }


def random_labels(seed, queries=12):
    rng = np.random.default_rng(seed)
    return Qrels.of({f"q{q}": {f"d{i}": int(rng.integers(0, 3)) for i in range(8)} for q in range(queries)})


@pytest.mark.parametrize("seed", range(4))
def test_orders_are_what_scipy_and_loops_over_systems_say(seed):
    stats = pytest.importorskip("scipy.stats", reason="the oracle is SciPy")
    runs, first, second = systems(seed), random_labels(seed + 10), random_labels(seed + 20)
    found = order_agreement(runs, first, second, parse_measure("P@3"))
    one, other = (
        {name: round(weir.evaluate(labels, run, ["P@3"])["P@3"].mean, 12) for name, run in runs.items()}
        for labels in (first, second)
    )
    a, b = np.array(list(one.values())), np.array(list(other.values()))
    assert found.tau == pytest.approx(stats.kendalltau(a, b).statistic, abs=1e-12)
    assert found.spearman == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
    best = sorted(one, key=lambda name: -one[name])[:5]
    theirs = sorted(other, key=lambda name: -other[name])[:5]
    assert (found.top_systems, found.top) == (5, len({*best} & {*theirs}) / 5)
    expected = stats.kendalltau([one[n] for n in best], [other[n] for n in best]).statistic
    assert found.top_tau == pytest.approx(expected, abs=1e-12, nan_ok=True)
    for name, low, high in found.intervals:
        assert low <= high, name
    assert [name for name, *_ in found.intervals] == ["tau", "tau_ap", "spearman", "rbo", "top", "top_tau"]


def test_decisions_are_counted_pair_by_pair():
    """Ten systems of which each answers more queries: the judge that labels by chance decides nothing."""
    stats = pytest.importorskip("scipy.stats", reason="the oracle is SciPy")
    queries = [f"q{q:02}" for q in range(20)]
    runs = {
        f"s{n}": Run.of(
            {query: ["good", "bad"] if q < 4 * n else ["bad", "good"] for q, query in enumerate(queries)}
        )
        for n in range(5)
    }
    first = Qrels.of({query: {"good": 1, "bad": 0} for query in queries})
    second = Qrels.of({query: {"good": q % 2, "bad": 1 - q % 2} for q, query in enumerate(queries)})
    found = order_agreement(runs, first, second, parse_measure("P@1"))
    says = []
    for labels in (first, second):
        values = [[weir.evaluate(labels, run, ["P@1"])["P@1"][q] for q in queries] for run in runs.values()]
        pairs = list(itertools.combinations(range(5), 2))
        p = [stats.ttest_rel(values[j], values[i]).pvalue for i, j in pairs]
        order = np.argsort(p)
        holm = np.empty(len(p))
        holm[order] = np.maximum.accumulate(np.array(p)[order] * np.arange(len(p), 0, -1))
        says.append([
            0 if not holm[n] <= 0.05 else int(np.sign(np.mean(values[j]) - np.mean(values[i])))
            for n, (i, j) in enumerate(pairs)
        ])  # fmt: skip
    both = list(zip(*says, strict=True))
    assert found.pairs == 10
    assert found.decisions == sum(a == b for a, b in both) / 10
    assert found.only_first == sum(a != 0 and b == 0 for a, b in both) > 0
    assert found.only_second == sum(a == 0 and b != 0 for a, b in both)
    assert found.turned == sum(a * b < 0 for a, b in both)


def test_a_system_called_like_the_model_that_labels_is_named(tmp_path):
    labels = random_labels(1)
    runs = {"bm25": systems(1)["s0"], "rankgpt-4o": systems(1)["s1"]}
    assert weir.labels.rank_agreement(labels, labels.labelled("human"), runs=runs)[0].alike == ()
    result = weir.labels.rank_agreement(labels, labels.labelled("llm:gpt-4o:umbrela-12ab"), runs=runs)
    assert "named like the model that labels: rankgpt-4o (GPT)" in repr(result)


def test_one_file_of_several_raters_is_compared_with_itself(tmp_path, capsys):
    path = tmp_path / "both.tsv"
    rows = [f"q{i // 3}\td{i}\t{i % 3}\t{i % 2}\t{min(i, 2)}" for i in range(12)]
    path.write_text("\n".join(["qid\tdocid\thuman\tgpt\tllama", *rows]) + "\n", encoding="utf-8")
    assert main(["labels", "agree", str(path), "--per-query"]) == 0
    text = capsys.readouterr().out
    assert repr(weir.labels.agree(path)) in text
    assert repr(weir.labels.rater_agreement(path)) in text
    assert "human and gpt" in text
    assert main(["labels", "agree", str(path), "--per-query", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("second") for line in lines] == ["gpt", "llama", None]
    assert len(lines[0]["by_query"]) == 4
    Qrels.of({"q0": {"d0": 1}}).save(tmp_path / "alone.tsv")
    assert main(["labels", "agree", str(tmp_path / "alone.tsv")]) == 2
    assert "alone has the labels of one rater alone" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["", "#label"])
def test_marks_of_thousands_are_refused_in_a_column_of_labels_alone(column, tmp_path):
    head, rows = "query;doc;label;views\n", [("yes", "1.234"), ("no", "950"), ("yes", "12")]
    (tmp_path / "t.csv").write_text(head + "".join(f"q;d{n};{a};{b}\n" for n, (a, b) in enumerate(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)  # of the views
        assert read_labels(f"{tmp_path}/t.csv{column}").to_dict() == {"q": {"d0": 1, "d1": 0, "d2": 1}}
    with pytest.raises(FormatError, match="the point may group thousands"):
        read_labels(tmp_path / "t.csv#views")
    (tmp_path / "t.csv").write_text("\n" + head + "q;d;yes;1\n")
    with pytest.raises(FormatError, match="line 1: found a blank line in the place of the header"):
        read_labels(tmp_path / "t.csv")


def test_a_mark_of_thousands_among_columns_of_open_names_is_told_how_to_name_the_labels(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("query_id;doc_id;anna;views\nq1;d1;1;1,234\nq1;d2;0;999\n")
    with pytest.raises(FormatError, match=r"line 2: found '1,234' .* as the label, as in FILE#COLUMN"):
        read_labels(path)
    assert read_labels(f"{path}#anna").to_dict() == {"q1": {"d1": 1, "d2": 0}}
