"""What every registered measure promises, whatever it measures."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from weir.core.intents import IntentQrels
from weir.core.judged import joined
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Ids
from weir.errors import BadValue, UnknownName
from weir.measures import MEASURES, Measure, parse_measure, score_run
from weir.plugins.questions.document_rules import DocumentRules

QRELS = {
    "q1": {"a": 3, "b": 1, "c": 0, "d": -1, "e": 2},
    "q2": {"a": 1, "f": 0},
    "q3": {"c": 0},
    "q4": {"g": 2},
}
RUN = {
    "q1": {"x": 5.0, "a": 4.0, "b": 4.0, "c": 3.0, "e": 1.0},
    "q2": {"f": 2.0, "a": 1.0},
    "q3": {"c": 1.0},
    "unknown": {"a": 1.0},
}
every = pytest.mark.parametrize("name", MEASURES.names())
# No grade below may be beyond the highest; a base is above 1.
OTHER_VALUES = {"alpha": (0.25,), "base": (10.0,), "beta": (0.25,), "max_grade": (3, 6), "T": (2.5,)}
LOGARITHMS = {name for name in MEASURES.names() if MEASURES.get(name).values == "logarithm"}
INTENTS = {name for name in MEASURES.names() if MEASURES.get(name).of == "intents"}
OF_RULES = {name for name in MEASURES.names() if MEASURES.get(name).of == "rules"}
RULES = DocumentRules(
    Ids.of(["a", "b", "c", "e", "g", "h", "i"]),
    {"*": np.array([1, 2, 6], np.int32)},  # b, c and i are forbidden
    np.full(7, -np.inf),
    np.array([np.inf, np.inf, 1.0, 1.0, np.inf, np.inf, 1.0]),  # c, e and i are out of date
    np.array([3, -1, 0, -1, -1, 4, -1], np.int32),  # e supersedes a, which supersedes c, and g h
    {"*": 2.0},
    {},
    "",
)


def variants(name):
    """The measure with its defaults and with each other choice of a setting."""
    definition = MEASURES.get(name)
    cuts = [1, 3, 10, 1000] + ([None] if definition.cutoff == "optional" else [])
    choices = dict(definition.choices)
    settings = [{}]
    for key, default in definition.defaults().items():
        others = choices.get(key) or OTHER_VALUES.get(key) or {int: (2, 0), float: (0.5,)}[type(default)]
        tables = ("1=2,3=9",) if key in dict(definition.forms) else ()
        settings += [{key: value} for value in (*others, *tables)]
    return [
        measure if cut is None else measure @ cut
        for cut in cuts
        for measure in (Measure(name)(**given) for given in settings)
    ]


def judgments(name, qrels=QRELS):
    """Of documents, or for two intents: any document serves the first, every other letter the second."""
    if name in OF_RULES:
        return replace(Qrels.of(qrels), beside=RULES)
    if name not in INTENTS:
        return Qrels.of(qrels)
    return IntentQrels.of(
        {q: {"1": row, "2": {d: g for d, g in row.items() if ord(d[0]) % 2}} for q, row in qrels.items()}
    )


@cache
def plain_values(measure):
    return values(measure)


def values(measure, run=RUN, qrels=QRELS):
    scores = score_run(judgments(measure.name, qrels), Run.of(run), [measure])
    return dict(zip(scores.queries.tolist(), scores.values[0].tolist(), strict=True))


def test_its_documentation_begins_with_one_plain_sentence():
    for name in MEASURES.names():
        summary = MEASURES.get(name).summary
        assert summary[0].isupper() or summary[0].isdigit(), name
        assert summary.endswith("."), name
        assert len(summary) <= 110, name


def test_its_documentation_names_a_source_and_its_settings():
    for name in MEASURES.names():
        documentation = inspect.getdoc(MEASURES.get(name).function)
        assert "Source:" in documentation or "trec_eval" in documentation, name
        for setting in MEASURES.get(name).defaults():
            # `rel` means the same everywhere; a file of binary measures may document it once for all of them.
            module = inspect.getmodule(MEASURES.get(name).function).__doc__
            assert f"{setting}: " in documentation or (setting == "rel" and "`rel`" in module), (
                name,
                setting,
            )


def test_its_settings_have_defaults_of_a_plain_type():
    for name in MEASURES.names():
        for setting, default in MEASURES.get(name).defaults().items():
            assert type(default) in (int, float, str), (name, setting)
            allowed = dict(MEASURES.get(name).choices).get(setting)
            assert allowed is None or default in allowed, name
            assert (type(default) is not str) or allowed, f"{name}: a text setting lists what it accepts"


def test_it_prints_and_parses_back():
    for name in MEASURES.names():
        for measure in variants(name):
            assert parse_measure(str(measure)) == measure
            assert parse_measure(f"  {measure} ") == measure


def test_settings_at_their_default_are_not_printed():
    for name in MEASURES.names():
        definition = MEASURES.get(name)
        measure = Measure(name)(**definition.defaults())
        assert measure == Measure(name)
        assert str(measure @ 3) == f"{name}@3"


def test_unknown_settings_and_wrong_types_are_refused():
    for name in MEASURES.names():
        with pytest.raises(UnknownName, match="setting"):
            parse_measure(f"{name}(nonsense=1)@3")
        for setting in MEASURES.get(name).defaults():
            for wrong in ("None", "True", "[1]", "'no such'", "1+2j", "b'x'"):
                with pytest.raises(BadValue, match=name):
                    parse_measure(f"{name}({setting}={wrong})@3")


def test_bad_cutoffs_are_refused():
    for name in MEASURES.names():
        for cut in ("0", "-1", "1.5", "ten", "1e3", "²", "9999999999", "1_0"):
            with pytest.raises(BadValue, match="cut-off"):
                parse_measure(f"{name}@{cut}")
        for cut in (0, -1, 1.0, True, "10", None):
            with pytest.raises(BadValue, match=r"(the cut-off|cutoff) is .*; expected a whole number"):
                Measure(name) @ cut


@every
def test_without_a_cutoff_it_works_or_says_that_it_needs_one(name):
    if MEASURES.get(name).cutoff == "optional":
        assert values(parse_measure(name)) == values(Measure(name) @ 1000)
    else:
        with pytest.raises(BadValue, match=f"{name}@10"):
            parse_measure(name)
        with pytest.raises(BadValue, match=f"{name}@10"):
            values(Measure(name))


@every
def test_one_finite_number_for_each_judged_query(name):
    for measure in variants(name):
        found = measure.per_query(joined(Run.of(RUN), judgments(name)))
        assert found.dtype == np.float64
        assert found.shape == (len(QRELS),)
        assert np.isfinite(found).all()
        assert (found <= 0 if name in LOGARITHMS else found >= 0).all() or name == "Utility"
        assert not MEASURES.get(name).bounded or (found <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", sorted(set(MEASURES.names()) - {"IDCG", "NumNonrelRet", "NumRel", "NumRet"}))
def test_it_can_tell_a_good_ranking_from_a_bad_one(name):
    measure = Measure(name) @ 2
    good, bad = {"q4": {"g": 2.0, "h": 1.0}}, {"q4": {"h": 2.0, "i": 1.0}}
    assert values(measure, good)["q4"] != values(measure, bad)["q4"]


@pytest.mark.parametrize(
    "name", sorted(set(MEASURES.names()) - LOGARITHMS - {"IDCG", "NumRel", "RBP_residual", "Utility"})
)
def test_a_missing_query_an_empty_ranking_and_an_unknown_one_score_zero(name):
    for measure in variants(name):
        found = values(measure, {"q1": {"a": 1.0}, "q2": {}, "unknown": {"a": 1.0}})
        assert list(found) == list(QRELS)
        assert found["q2"] == found["q3"] == found["q4"] == 0.0


@every
def test_shuffled_rows_and_queries_change_no_bit(name):
    backwards = {q: dict(reversed(row.items())) for q, row in reversed(RUN.items())}
    judged = {q: dict(reversed(row.items())) for q, row in reversed(QRELS.items())}
    for measure in variants(name):
        assert values(measure, backwards, judged) == plain_values(measure)


@every
def test_scaling_and_shifting_scores_changes_nothing(name):
    scaled = {q: {d: 2 * s - 7 for d, s in row.items()} for q, row in RUN.items()}
    for measure in variants(name):
        assert values(measure, scaled) == plain_values(measure)


@every
def test_renaming_queries_changes_nothing(name):
    for measure in variants(name):
        renamed = values(
            measure, {"n" + q: r for q, r in RUN.items()}, {"n" + q: r for q, r in QRELS.items()}
        )
        assert list(renamed.values()) == list(plain_values(measure).values())


@every
def test_an_unjudged_document_at_the_end_raises_no_value_but_that_of_holes(name):
    longer = {q: row | {"zz-unjudged": -100.0} for q, row in RUN.items()}
    for measure in variants(name):
        before, after = plain_values(measure), values(measure, longer)
        # Utility may reward it; the others look at the end of the list: what stands above it, overlaps, a last point.
        if name not in ("Hole", "NumRet", "Accuracy", "Compat", "RnDCG", "Utility"):
            assert all(after[q] <= before[q] for q in before)
            # All other measures divide by the number of documents returned.
            if name not in ("Judged", "SetP", "SetF", "SetAP", "SetR_cap"):
                assert all(after[q] == before[q] for q in RUN if q in before)


@every
def test_documents_beyond_the_cutoff_do_not_count(name):
    for measure in variants(name):
        if measure.cutoff == 1:
            top = Run.of(RUN).top(1)
            found = score_run(judgments(name), top, [measure]).values[0]
            assert found.tolist() == list(plain_values(measure).values())


@every
def test_judgments_of_other_queries_do_not_count(name):
    more = QRELS | {"other": {"x": 3, "zz": 1, "b": 0}}
    for measure in variants(name):
        assert {q: v for q, v in values(measure, qrels=more).items() if q != "other"} == plain_values(measure)


# NumRel and IDCG count it, Utility charges for it, Rprec looks one document deeper, RnDCG looks elsewhere.
@pytest.mark.parametrize(
    "name", sorted(set(MEASURES.names()) - {"IDCG", "NumRel", "RnDCG", "Rprec", "Utility"})
)
def test_a_judgment_of_a_document_not_returned_adds_no_value(name):
    more = {q: row | {"not-returned": 3} for q, row in QRELS.items()}
    for measure in variants(name):
        before, after = plain_values(measure), values(measure, qrels=more)
        assert all(after[q] <= before[q] + 1e-15 for q in before)


def test_bad_names_are_refused_with_the_nearest():
    for name in MEASURES.names():
        if name + "x" not in MEASURES:
            with pytest.raises(UnknownName, match=name):
                parse_measure(f"{name}x@10")


def test_its_name_in_any_case_is_read():
    for name in set(MEASURES.names()) - {"Accuracy", "RBP"}:  # other tools' in lower case
        assert parse_measure(f"{name.swapcase()}@10") == parse_measure(f"{name} @ 10") == Measure(name) @ 10


MALFORMED = [
    *(
        "",
        "@",
        "@10",
        "nDCG@",
        "nDCG@10@5",
        "nDCG(",
        "nDCG)",
        "nDCG()()",
        "nDCG(gain='exp')()@10",
    ),
    *(
        "nDCG('exp')@10",
        "nDCG(**{})@10",
        "nDCG(*[1])@10",
        "nDCG(gain=open)@10",
        "nDCG(gain='exp'",
    ),
    *("P(rel=2, rel=3)@5", "P(rel={[]: 1})@5", "P(rel=1+)@5", "P(rel=2**9)@5", "P\n@5", "P@5 R@5", "P@5,R@5"),
    *(
        "P(rel=" + "1" * 300 + ")@5",
        "P(rel=" + "-" * 9999 + "1)@5",
        "(" * 9999,
        "P(rel=\ud800)@5",
        "P(rel=\0)@5",
    ),
]


@pytest.mark.parametrize("text", MALFORMED, ids=lambda t: ascii(t)[:40])
def test_malformed_texts_are_refused(text):
    with pytest.raises(BadValue, match=r"is not a measure; expected such as nDCG@10|cut-off"):
        parse_measure(text)
