from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.shown import shown
from tests.unit.brooklet import write_collection
from weir.audit import CHECKS, Subject, audited, audited_all, check
from weir.audit.duplicates import copies, expanded
from weir.audit.judgments import ceilings, hole_of_any_query, judged_share
from weir.audit.rankings import commonest_order, places_in
from weir.audit.texts import damage_of
from weir.cli import main
from weir.core.corpus import Corpus, Queries
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.query_metadata import QueryMetadata
from weir.core.run import Run
from weir.core.strings import Strings
from weir.datasets.card import normalised
from weir.datasets.load import load
from weir.errors import BadValue, UnknownName
from weir.experiment.audit_subjects import subjects_of

DOCUMENTS = {
    "a": {"title": "River", "text": "The  river floods"},
    "b": {"title": "river", "text": "the river FLOODS "},
    "c": {"title": "", "text": "dough"},
    "d": {"title": "Copy", "text": "dough"},
    "e": {"title": "", "text": " "},
    "f": {"title": "", "text": ""},
}


@given(st.lists(st.sampled_from(["x", "X ", "y", "", " ", "\u212b", "\u00e5"]), max_size=12))
def test_groups_are_those_of_a_double_loop(texts):
    for form in (None, str, normalised):
        groups, shaped = copies((Strings.of(texts),), form), form or str
        same = [
            [i for i, other in enumerate(texts) if shaped(other) == shaped(text) and text.strip()]
            for text in texts
        ]
        expected = {tuple(rows) for rows in same if len(rows) > 1}
        assert {tuple(rows.tolist()) for rows in groups.members()} == expected
        assert groups.rows == sum(map(len, expected))
        assert groups.surplus == sum(len(rows) - 1 for rows in expected)


def test_titles_count_where_they_are_asked_about():
    corpus = Corpus.of(DOCUMENTS)
    by_text = copies((corpus.text,))
    assert by_text.number.tolist() == [-1, -1, 0, 0, -1, -1]
    assert copies((corpus.title, corpus.text)).rows == 0
    assert copies((corpus.title, corpus.text), normalised).number.tolist() == [0, 0, -1, -1, -1, -1]


def test_judgments_given_to_copies_change_only_the_queries_that_have_some():
    corpus = Corpus.of(DOCUMENTS)
    qrels = Qrels.of({"q": {"a": 2, "zz": 1}, "r": {"c": 1}, "s": {"a": 0, "b": 1}})
    wider, added = expanded(qrels, corpus, copies((corpus.title, corpus.text), normalised))
    assert added == 1
    assert wider.to_dict() == {"q": {"a": 2, "zz": 1, "b": 2}, "r": {"c": 1}, "s": {"a": 0, "b": 1}}
    again, more = expanded(wider, corpus, copies((corpus.title, corpus.text), normalised))
    assert (again.to_dict(), more) == (wider.to_dict(), 0)


def statements(subject: Subject, *only: str) -> dict[str, str]:
    return {f"{f.severity} {f.check}": f.statement for f in audited(subject, only).findings}


def test_each_trap_is_found_and_named():
    subject = Subject(
        "mine",
        Corpus.of(DOCUMENTS | {"g": "caf\u00c3\u00a9 <br> and \ufffd"}),
        Queries.of({"q": "river", "r": "dough", "s": " River"}),
        Qrels.of({"q": {"a": 1, "b": 0, "gone": 1}, "s": {"c": 0}, "lost": {"d": 1}}),
        {
            "one": Run.of({"q": {"a": 2.0, "b": 1.0}}),
            "two": Run.of({"q": {"c": 2.0, "d": 1.0}, "s": {"a": 1.0}}),
        },
    )
    found = statements(subject)
    assert "1 judgment names 1 document that is" in found["wrong dangling judgments"]
    assert "1 of 3 judged queries is not among the queries" in found["caution dangling judgments"]
    assert "a and b for query q" in found["serious duplicates"]
    assert "2 of 2 judged queries share their text" in found["caution duplicate queries"]
    assert "not judged alike: 100.0% of the first 10 of one, 0.0% of two" in found["serious holes"]
    assert "1 of 3 judged queries has no relevant document" in found["caution labels"]
    assert any("2 of 7 documents have no text" in f.statement for f in audited(subject, ["texts"]).findings)
    order = [f.severity for f in audited(subject).findings]
    assert order == sorted(order, key=["wrong", "serious", "caution", "note"].index)


def test_a_clean_subject_has_no_findings_but_ceilings():
    subject = Subject(
        "clean",
        Corpus.of({"a": "one two three", "b": "four five six"}),
        Queries.of({"q": "one"}),
        Qrels.of({"q": {"a": 1, "b": 0}}),
        {"run": Run.of({"q": {"a": 2.0, "b": 1.0}})},
    )
    assert {f.severity for f in audited(subject).findings} <= {"note"}


def test_what_is_not_there_is_said_and_nothing_at_all_is_refused():
    audit = audited(Subject("queries", queries=Queries.of({"q": "x"})))
    assert dict(audit.left_out)["duplicates"] == "corpus"
    with pytest.raises(BadValue, match="no check can run: holes needs qrels, runs"):
        audited(Subject("queries", queries=Queries.of({"q": "x"})), ["holes"])
    with pytest.raises(UnknownName, match="did you mean holes"):
        audited(Subject("queries", queries=Queries.of({"q": "x"})), ["hole"])
    with pytest.raises(
        BadValue, match=r"there are no judgments, which this needs"
    ):  # weir labels pool says it, too
        Subject("queries").need_qrels()


def test_a_check_of_ones_own_is_one_function():
    @check("queries of a test", needs=["queries"])
    def queries_of_a_test(subject):
        """Queries of more than five words."""
        from weir.audit import Finding

        names = [i for i, text in subject.queries.to_dict().items() if len(text.split()) > 5]
        if names:
            yield Finding("note", f"{len(names)} long queries", examples=tuple(names))

    try:
        found = audited(
            Subject("own", queries=Queries.of({"q": "a b c d e f"})), ["queries of a test"]
        ).findings
        assert [(f.check, f.subject, f.examples) for f in found] == [("queries of a test", "own", ("q",))]
    finally:
        CHECKS._known.pop("queries of a test")


def test_findings_name_whose_idea_their_check_is():
    sources = {name: CHECKS.get(name).source for name in CHECKS}
    assert sources["holes"] == "Thakur et al. 2021, section 6"
    assert sources["labels"] == "Arabzadeh et al. 2021 and Thakur et al. 2021, section 6, on MS MARCO"
    assert sources["texts"] == ""
    audit = audited(Subject("mine", qrels=Qrels.of({"q": {"a": 1}})), ["labels"])
    assert {f.source for f in audit.findings} == {sources["labels"]}


def test_every_check_is_told_of_before_it_runs():
    told: list[tuple[str, int, int]] = []
    subjects = [Subject("mine", qrels=Qrels.of({"q": {"a": 1}}))]
    audited_all(subjects, ["labels", "published counts"], lambda *said: told.append(said))
    assert told == [("auditing mine", 0, 2), ("auditing mine", 1, 2)]


def test_the_judged_share_is_of_what_is_returned_and_leaves_out_who_does_not_answer():
    qrels = Qrels.of({"q": {"a": 1, "b": 0}, "r": {"a": 1}})
    assert judged_share(Judged.of(Run.of({"q": {"a": 3.0, "x": 2.0, "b": 1.0}}), qrels)) == pytest.approx(
        2 / 3
    )
    assert np.isnan(judged_share(Judged.of(Run.of({}), qrels)))


def test_ceilings_are_what_the_best_ranking_scores():
    from weir.measures import score_run

    qrels = Qrels.of({"q": {f"d{i}": 1 for i in range(15)}, "r": {"a": 2, "b": 0}, "s": {"c": 0}})
    best = Run.of({q: {d: float(g) for d, g in grades.items()} for q, grades in qrels.to_dict().items()})
    for name in ("P@10", "R@10", "R@100"):
        assert ceilings(Subject("whole", qrels=qrels))[name] == pytest.approx(
            score_run(qrels, best, [name]).means()[name], abs=1e-15
        )
    assert ceilings(Subject("whole", qrels=qrels)) == pytest.approx(
        {"P@10": (1 + 0.1 + 0) / 3, "R@10": (10 / 15 + 1 + 0) / 3, "R@100": 2 / 3}
    )


def test_ceilings_are_of_what_a_system_can_return():
    qrels = Qrels.of({q: {f"d{n}": 1 for n in range(4)} for q in ("q", "barred", "unasked")})
    corpus = Corpus.of({f"d{n}": "text" for n in range(2)})  # d2 and d3 are absent
    rules = QueryMetadata.of([{}, {"candidates": ["d0", "d3"]}])
    queries = Queries.of({"q": "one", "barred": "two"})
    subject = Subject("part", corpus, queries, qrels, asked=replace(queries, metadata=rules))
    assert ceilings(subject) == pytest.approx({"P@10": 0.3 / 3, "R@10": 0.75 / 3, "R@100": 0.75 / 3})
    [said] = [f.statement for f in audited(subject, ["labels"]).findings if "best possible" in f.statement]
    assert "9 of 12 relevant judgments are out of its reach" in said
    own = Subject("own", qrels=Qrels.of({"q": {"q": 1, "d": 1}}), self_match="drop")
    assert own.best.to_dict() == {"q": {"d": 1.0}}


@pytest.mark.parametrize("text", ["naïve café", "x < y & z > 0", "AT&T", "3 â 4", "a\tb\nc", "Ângela Ã"])
def test_sound_texts_are_not_called_damaged(text):
    assert damage_of(text) == []


def test_sentences_without_spaces_between_words_are_not_called_short():
    texts = {"ja": "東京は日本の首都です。", "th": "กรุงเทพเป็นเมืองหลวง", "cut": "only two", "字": "東京"}
    [short] = audited(Subject("mine", Corpus.of(texts)), ["texts"]).findings
    assert (short.statement, short.examples) == ("2 of 4 documents have fewer than 3 words", ("cut", "字"))


def test_the_command_prints_findings_writes_judgments_and_lists_checks(tmp_path, capsys):
    def weir(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    folder = str(write_collection(tmp_path / "mine"))
    rows = [json.loads(line) for line in weir("audit", folder, "--json")[1].splitlines()]
    assert {row["check"] for row in rows} >= {"duplicates", "texts"}
    assert all(row["subject"] == "mine" for row in rows)
    wider = tmp_path / "wider.tsv"
    assert weir("audit", folder, "--expand", "-o", str(wider))[0] == 0
    assert wider.exists()
    assert "holes" in weir("audit", "--list")[1]
    for arguments, said in ((["audit"], "nothing to audit"), (["audit", folder, "--expand"], "go together")):
        code, _, err = weir(*arguments)
        assert (code, said in err) == (2, True)


def test_a_re_ranking_that_kept_its_first_stages_order_is_found():
    first = {f"q{i}": ["a", "b", "c", "d"] for i in range(4)}
    kept = {f"q{i}": ["a", "b", "c", "d"] if i < 3 else ["d", "a", "b", "c"] for i in range(4)}
    other = {f"q{i}": ["b", "a", "c", "d"] for i in range(4)}
    runs = {"first": Run.of(first), "kept": Run.of(kept), "other": Run.of(other), "again": Run.of(first)}
    found = audited(Subject("runs", runs=runs), ["same rankings"]).findings
    assert [(f.severity, f.statement.split(" have")[0]) for f in found] == [
        ("wrong", "first and again"),
        ("serious", "first and kept"),
        ("serious", "kept and again"),
    ]
    assert dict(found[1].numbers) == {"queries": 3, "share": 0.75}


@pytest.mark.parametrize(
    ("unscored", "severity", "remedy"),
    [
        ({}, "wrong", "one file under two names"),
        ({"one": (0, 0), "other": (0, 8)}, "wrong", "a re-ranking that failed"),
        ({"one": (0, 0), "other": (0, 0)}, "caution", "neither is a re-ranking"),
    ],
)
def test_equal_rankings_have_the_remedy_of_what_the_systems_are(unscored, severity, remedy):
    run = Run.of({f"q{i}": ["a", "b", "c", "d"] for i in range(4)})
    subject = Subject("runs", runs={"one": run, "other": run}, unscored=unscored)
    [found] = audited(subject, ["same rankings"]).findings
    assert (found.severity, remedy in found.remedy) == (severity, True)


def test_a_re_ranking_that_answers_every_query_alike_is_found():
    rng = np.random.default_rng(5)
    first = {f"q{i}": [f"d{d}" for d in rng.permutation(40)] for i in range(20)}
    alike = {q: [docs[11], *docs[:11], *docs[12:]] for q, docs in first.items()}
    half = {q: alike[q] if i < 9 else sorted(docs) for i, (q, docs) in enumerate(first.items())}
    without = {q: docs[1:] for q, docs in first.items()}  # a filter, and no failure
    given = {"first": first, "alike": alike, "half": half, "without": without}
    runs = {name: Run.of(rankings) for name, rankings in given.items()}
    places = places_in(runs["first"], runs["half"])
    by_loops = [[docs.index(d) + 1 for d in half[q][:10]] for q, docs in first.items()]
    assert places.tolist() == [by_loops[list(first).index(q)] for q in runs["half"].queries.tolist()]
    assert commonest_order(places) == ((12, *range(1, 10)), 9)
    assert not places_in(runs["first"], Run.of({"q0": [f"x{i}" for i in range(10)]})).any()
    found = audited(Subject("runs", runs=runs), ["query-independent rankings"]).findings
    said = {f.statement.split(" documents of ")[1].split(" for ")[0] for f in found}
    assert "alike stand at the places 12, 1, 2, 3, 4, 5, 6, 7, 8, 9 of first" in said
    assert not any(one.startswith(("half", "without stand at the places 2")) for one in said)
    assert dict(found[0].numbers) == {"queries": 20, "share": 1}


@pytest.mark.parametrize("length", range(3, 10))
def test_a_constant_order_of_fewer_than_ten_places_is_found(length):
    """Rankings that end early, and those whose first places alone are always the same."""
    docs = {
        f"q{n}": np.random.default_rng(n).permutation([f"d{i}" for i in range(40)]).tolist()
        for n in range(20)
    }
    order = list(range(length))[::-1]
    short = {query: [ranked[place] for place in order] for query, ranked in docs.items()}
    rest = {
        query: [*short[query], *np.random.default_rng([7, n]).permutation(docs[query][length:]).tolist()]
        for n, query in enumerate(docs)
    }
    chance = {
        query: np.random.default_rng([9, n]).permutation(docs[query]).tolist() for n, query in enumerate(docs)
    }
    for other, wanted in ((short, True), (rest, True), (chance, False)):
        runs = {"first": Run.of(docs), "other": Run.of(other)}
        found = audited(Subject("runs", runs=runs), ["query-independent rankings"]).findings
        assert bool(found) == wanted
        if wanted:
            places = ", ".join(str(place + 1) for place in order)
            assert found[0].statement == (
                f"the first {length} documents of other stand at the places {places} of first for 20 of 20 queries"
            )


def test_a_junk_document_is_a_hub_whatever_other_hubs_are():
    """At rank 1 of every query, in front of three that are often relevant; judged relevant once it is junk still."""
    names = [f"q{n}" for n in range(60)]
    run = Run.of({q: ["junk", "a", "b", "c", *(f"{q}-{i}" for i in range(8))] for q in names})
    qrels = {q: {"a": 1, "b": 1, "c": int(n % 2)} for n, q in enumerate(names)}
    for once in ({}, {"junk": 1}):
        judged = Qrels.of(
            qrels | {"q0": qrels["q0"] | once} | {f"unasked{n}": {"junk": 1} for n in range(99)}
        )
        [found] = audited(Subject("mine", qrels=judged, runs={"one": run}), ["hub documents"]).findings
        assert found.examples == ("junk",)
        assert dict(found.numbers) == {"hubs": 1, "queries of the first": 60, "relevant to": len(once)}
    few = Qrels.of({q: {"a": 1} for q in names[:49]})
    assert not audited(
        Subject("mine", qrels=few, runs={"one": run}), ["hub documents"]
    ).findings  # fewer than 50 are judged
    [found] = audited(Subject("mine", runs={"one": run}), ["hub documents"]).findings
    assert set(found.examples) == {"junk", "a", "b", "c"}
    corpus = Corpus.of(
        {f"d{n}": "x" for n in range(40)}
    )  # each is among the first ten of a quarter by chance
    chance = {
        q: np.random.default_rng(n).permutation([f"d{i}" for i in range(40)]) for n, q in enumerate(names)
    }
    drawn = Subject(
        "mine", corpus, qrels=Qrels.of(qrels), runs={"one": Run.of({q: list(d) for q, d in chance.items()})}
    )
    assert not audited(drawn, ["hub documents"]).findings


def test_what_is_found_of_several_systems_is_told_once():
    """Equal findings of seven systems are one line, findings of one kind one paragraph; JSON has each."""
    half = {"a": 2.0, "x": 1.0, "y": 0.5}
    runs = {f"s{n}": Run.of({"q": half}) for n in range(7)}
    subject = Subject("mine", qrels=Qrels.of({"q": {"a": 1}}), runs=runs)
    found = audited(subject, ["holes"])
    assert [f.system for f in found.findings] == list(runs)
    said = shown("audit", [found])
    assert said.count("do: ") == said.count("33.3% of the first 10") == 1
    assert f"serious: holes: {', '.join(runs)}: 33.3%" in said
    assert {json.loads(line)["system"] for line in shown("audit", [found], "json").splitlines()} == set(runs)
    other = {name: Run.of({"q": half | {f"z{i}": -i for i in range(n)}}) for n, name in enumerate(runs)}
    said = shown("audit", [audited(replace(subject, runs=other), ["holes"])])
    assert said.count("do: its scores may be") == said.count("serious: holes, of 7 systems:") == 1
    assert [line.split(":")[0] for line in said.splitlines()[3:8]] == [f"  s{n}" for n in range(5)]
    assert "  and 2 more" in said


def test_checks_that_were_skipped_are_counted_with_what_they_lack():
    subject = Subject("mine", qrels=Qrels.of({"q": {"a": 1}}), runs={"one": Run.of({"q": ["a"]})})
    [said, *_] = shown("audit", [audited(subject, ["holes", "texts", "leakage by meaning"])]).splitlines()
    assert said == (
        "mine: 0 findings by 1 check; 2 skipped for want of documents, an encoder, queries, training data"
    )


def test_queries_without_judgments_and_without_any_are_told_apart():
    corpus, queries = Corpus.of({"a": "one two three"}), Queries.of({"q": "one", "r": "two"})
    for judged, severity, said in (
        ({}, "serious", "none of 2 queries has a judgment"),
        ({"q": {"a": 1}}, "note", "1 of 2 queries has no judgment in any split"),
        ({"q": {"a": 1}, "r": {"a": 0}}, None, ""),
    ):
        found = audited(Subject("mine", corpus, queries, Qrels.of(judged))).findings
        here = [f for f in found if f.check == "unjudged queries"]
        assert [(f.severity, f.statement[: len(said)]) for f in here] == (
            [(severity, said)] if severity else []
        )


def test_a_collection_under_a_published_name_is_held_to_what_was_published():
    qrels = Qrels.of({"q": {"a": 1}})
    assert audited(Subject("mine", qrels=qrels), ["published counts"]).findings == ()
    [found] = audited(Subject("scifact", Corpus.of({"a": "x"}), qrels=qrels), ["published counts"]).findings
    assert found.statement == (
        "this is not scifact as it was published: documents: 1, published 5,183; judged queries: 1, published 300; "
        "judgments of grade 1: 1, published 339"
    )


def test_queries_that_are_documents_and_texts_that_repeat_their_title_are_found():
    corpus = Corpus.of(
        {"a": {"title": "The  Weir", "text": "the weir holds"}, "b": {"title": "x", "text": "x y z"}}
    )
    subject = Subject("mine", corpus, Queries.of({"a": "the weir the weir HOLDS", "q": "X y  z", "r": "x"}))
    found = {f.check: f for f in audited(subject).findings}
    assert found["queries that are documents"].examples == ("q = b", "a = a")
    assert dict(found["queries that are documents"].numbers) == {
        "queries": 2,
        "as written": 0,
        "same identifier": 1,
    }
    assert found["texts"].statement.startswith("1 of 2 texts begins with its title")


def test_queries_are_counted_in_the_split_that_is_evaluated_and_equal_texts_told_from_alike_ones():
    """48 of all splits shared their text, none of the 323 judged ones did."""
    texts = {"a": "x y", "b": "X  y", "c": "z", "d": "z", "e": "dough", "f": "dough", "g": " ", "h": ""}
    corpus, qrels = Corpus.of(DOCUMENTS), Qrels.of({name: {"c": 1} for name in "abcdeg"})
    found = {f.check: f for f in audited(Subject("mine", corpus, Queries.of(texts), qrels)).findings}
    twins = found["duplicate queries"]
    assert twins.statement == (
        "4 of 6 judged queries share their text with another: 2 as it is written, 2 only after normalising (2 surplus)"
    )
    assert dict(twins.numbers) == {"queries": 4, "as written": 2, "surplus": 2}
    assert found["queries that are documents"].statement == (
        "1 of 6 judged queries is the text of a document: 1 as it is written, 0 only after normalising; 0 under the same "
        "identifier"
    )
    assert found["query texts"].statement == "1 of 6 judged queries has no text at all"
    alone = Subject("mine", corpus, Queries.of(texts), Qrels.of({name: {"c": 1} for name in "ace"}))
    assert not {"duplicate queries", "query texts"} & {f.check for f in audited(alone).findings}
    [every] = audited(Subject("mine", queries=Queries.of(texts)), ["duplicate queries"]).findings
    assert every.statement.startswith(
        "6 of 8 queries share their text with another: 4 as it is written, 2 only after"
    )


def test_self_matches_that_the_collection_drops_are_no_alarm():
    queries = Queries.of({"c": "dough", "d": "Dough"})
    held = Subject("mine", Corpus.of(DOCUMENTS), queries, Qrels.of({"c": {"a": 1}, "d": {"a": 1}}))
    [found] = audited(held, ["queries that are documents"]).findings
    assert (found.severity, dict(found.numbers)["as written"]) == ("serious", 1)
    [found] = audited(replace(held, self_match="drop"), ["queries that are documents"]).findings
    assert (found.severity, found.remedy) == ("note", "")
    assert found.statement.endswith("leave the rankings, as the collection says")


def test_judgments_below_zero_and_their_number_by_query_are_said():
    found = audited(
        Subject("mine", qrels=Qrels.of({"q": {"a": 1, "b": -1}, "r": {"a": 2}})), ["labels"]
    ).findings
    said = [f.statement for f in found]
    assert any(s.startswith("1 of 3 judgments is below 0, down to -1") for s in said)
    assert "2 judged documents a query at the median, 1 to 2; grades -1: 1, 1: 1, 2: 1" in said


def test_holes_have_the_figures_of_each_tools_own_definition():
    """Of one case, by hand: z is judged by nobody, c by the other query alone, and s is not answered."""
    qrels = Qrels.of({"q": {"a": 1, "b": 0}, "r": {"c": 1}, "s": {"a": 1}})
    run = Run.of({"q": {"a": 3.0, "c": 2.0, "z": 1.0}, "r": {"c": 1.0}, "other": {"z": 1.0}})
    assert hole_of_any_query(run, qrels, 3) == pytest.approx(1 / 9)
    [found] = audited(Subject("mine", qrels=qrels, runs={"one": run}), ["holes"]).findings
    numbers = dict(found.numbers)
    assert numbers["Elastic's judge rate at 10"] == pytest.approx((1 / 3 + 1) / 2)
    assert numbers["ir-measures' Judged@10"] == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert numbers["BEIR's Hole@10"] == pytest.approx(1 / 30)


def test_judgments_given_as_a_file_are_audited_with_the_queries_that_they_and_the_runs_are_about(tmp_path):
    folder = write_collection(tmp_path / "mine")
    every = load(folder).all_queries
    judged = every.ids.tolist()[:1]
    Qrels.of({judged[0]: {"a": 1}}).save(tmp_path / "some.tsv")
    Run.of({judged[0]: {"a": 1.0}}).save(tmp_path / "run.trec")
    [subject] = subjects_of([tmp_path / "some.tsv", tmp_path / "run.trec"], [folder])
    assert subject.need_queries().ids.tolist() == judged
    assert len(every) > 1


def test_training_data_that_are_named_twice_are_looked_at_once():
    once, twice = (weir.audits("brook-news", only=["leakage"], training=["brook-facts"] * n) for n in (1, 2))
    assert [one.findings for one in once] == [one.findings for one in twice]
    named = weir.audits("brook-news", only=["leakage"], training=["brook-news", "brook-news", "brook"])
    statements = [finding.statement for one in named for finding in one.findings]
    assert len(statements) == len(set(statements)) > 0


def test_training_data_of_one_name_are_looked_at_once_if_they_are_the_same(tmp_path):
    for folder, asked in (("mine", "one"), ("other/mine", "two")):
        for split in ("train", "test"):
            path = tmp_path / folder / "qrels" / f"{split}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"query-id\tcorpus-id\tscore\n{split}\td\t1\n")
        (tmp_path / folder / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}\n')
        queries = [{"_id": "train", "text": asked}, {"_id": "test", "text": "one"}]
        (tmp_path / folder / "queries.jsonl").write_text("".join(json.dumps(one) + "\n" for one in queries))
    mine, other = (f"{tmp_path / folder}:train" for folder in ("mine", "other/mine"))
    for training in ([], [mine], [mine, mine], [mine, other]):
        [subject] = subjects_of([str(tmp_path / "mine")], training=training)
        assert len(subject.training) == 1 + (other in training)


@given(st.permutations("abcd"), st.permutations("abcd"), st.sets(st.sampled_from("abcd"), max_size=3))
def test_systems_that_are_not_judged_alike_are_serious_only_if_judgments_could_turn_them(one, two, relevant):
    runs = {"one": {"q": list(one)[:2]}, "two": {"q": list(two)[:2]}}
    judged = {doc: int(doc in relevant) for doc in one[:2]}
    unjudged = [doc for doc in "abcd" if doc not in judged]
    subject = Subject(
        "mine", None, None, Qrels.of({"q": judged}), {name: Run.of(run) for name, run in runs.items()}
    )
    found = [f for f in audited(subject, ["holes"]).findings if "not judged alike" in f.statement]
    if not found:
        return
    orders = set()
    for grades in product((0, 1), repeat=len(unjudged)):
        qrels = {"q": judged | dict(zip(unjudged, grades, strict=True))}
        first, second = (weir.evaluate(qrels, run, "nDCG@10")["nDCG@10"].mean for run in runs.values())
        orders.add("one" if first > second else "two" if second > first else "neither")
    if found[0].severity == "caution":
        assert orders in ({"one"}, {"two"})
        assert f"{orders.pop()} has the higher nDCG@10" in found[0].statement


def test_documents_that_quote_a_query_are_found_whatever_stands_around_it():
    texts = {
        "a": "Asked: what measures the flow of a river? A weir.",
        "b": "what measures the flow of a river",  # the query itself, which another check names
        "c": "what measures the flow of a lake",
        "d": "a short query",
    }
    queries = Queries.of({"q": "What measures the flow of a river", "s": "short query"})
    subject = Subject("quoting", Corpus.of(texts), queries, Qrels.of({"q": {"a": 1}, "s": {"d": 1}}))
    [found] = audited(subject, ["quoted queries"]).findings
    assert found.examples == ("q in a",)
    assert found.statement == (
        "1 of 1 judged queries of 6 words or more is quoted word for word in documents, 1 of them in a relevant one"
    )
    without = replace(subject, corpus=Corpus.of({name: texts[name] for name in "bcd"}))
    assert not audited(without, ["quoted queries"]).findings
