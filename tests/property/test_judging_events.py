"""Any sequence of events leaves the state of a plain dict: in memory, in the file's views, and after opening it again."""

import itertools
import sqlite3
import tempfile
import warnings
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.files.journal_labels import read_journal, read_judges
from weir.plugins.app.judging.journal import Event, Journal

JUDGES, DOCS, GRADES = ("ann", "ben", "cyd"), ("d1", "d2"), (0.0, 1.0, 2.0)
items = st.tuples(
    st.sampled_from(JUDGES), st.sampled_from(("judge", "again", "decide")), st.sampled_from(DOCS)
)
answers = st.one_of(
    st.tuples(st.sampled_from(("graded", "accepted")), st.sampled_from(GRADES)),
    st.tuples(st.sampled_from(("unable", "later", "withdrawn")), st.none()),
    st.tuples(st.just("noted"), st.none()),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("answer"), items, answers, st.integers(0, 60)),
        st.tuples(st.just("undo"), st.sampled_from(JUDGES), st.integers(0, 60)),
        st.tuples(st.just("put back"), st.integers(0, 5)),
        st.tuples(st.just("reopen")),
    ),
    max_size=40,
)


def settled(labels):
    """The grade of each document by the rule that is stated, and how many are contested and not decided."""
    grades, contested = {}, set()
    for task, document in itertools.product(("judge", "decide"), DOCS):
        given_grades = [
            grade for (_, t, d), (kind, grade) in labels.items()
            if (t, d) == (task, document) and kind in ("graded", "accepted")
        ]  # fmt: skip
        if given_grades:
            grades[document] = min(given_grades, key=lambda g: (-given_grades.count(g), g))
            contested -= {document}
            if task == "judge" and len(set(given_grades)) > 1:
                contested.add(document)
    return grades, len(contested)


@given(steps)
@example(
    [
        ("answer", (judge, "judge", "d1"), ("graded", grade), 0)
        for judge, grade in zip(JUDGES, GRADES, strict=True)
    ]
)
@settings(max_examples=60, deadline=None)
def test_any_sequence_of_events_leaves_the_state_of_a_plain_dict(sequence):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "judgments.sqlite"
        journals = [Journal.open(path), Journal.open(path)]
        history, keys = [], {}  # (judge, item, kind, grade, number), None where undone
        for number, step in enumerate(sequence):
            journal = journals[number % 2]
            if step[0] == "reopen":
                journals[number % 2].close()
                journals[number % 2] = Journal.open(path)
            elif step[0] == "answer":
                _, (judge, task, document), (kind, grade), key = step
                [stored] = journal.append(
                    Event(judge, kind, "q", document, task, grade, "words", key=f"{key}" if key else "")
                )
                if not key or key not in keys:
                    history.append((judge, (judge, task, document), kind, grade, stored.number))
                    keys[key] = True
            elif step[0] == "put back":
                back = [n for n, one in enumerate(history) if one and one[2] == "withdrawn"]
                if back:
                    at = back[step[1] % len(back)]
                    _, (judge, task, document), *_, undoes = history[at]
                    journal.append(Event(judge, "undone", "q", document, task, undoes=undoes, author="boss"))
                    history[at] = None
            else:
                _, judge, key = step
                journal.undo(judge, f"undo {key}" if key else "")
                if not key or ("undo", key) not in keys:
                    own = [
                        n
                        for n, one in enumerate(history)
                        if one and one[0] == judge and one[2] != "withdrawn"
                    ]
                    if own:
                        history[own[-1]] = None
                        keys["undo", key] = True
        labels, notes = {}, set()
        for _, item, kind, grade, _ in filter(None, history):
            if kind == "noted":
                notes.add(item)
            elif kind == "withdrawn":
                labels.pop(item, None)
            else:
                labels[item] = (kind, grade)
        with sqlite3.connect(path) as connection:
            by_view = {
                (judge, task, document): (kind, grade)
                for judge, task, document, kind, grade in connection.execute(
                    "SELECT judge, task, document, kind, grade FROM labels"
                )
            }
        connection.close()
        assert by_view == labels
        for journal in [*journals, Journal.open(path)]:
            with journal.reading() as standing:
                assert {
                    (e.judge, e.task, e.document): (e.kind, e.grade) for e in standing.current()
                } == labels
                assert {(j, t, d) for (j, t, _, d, _), held in standing.notes.items() if held} == notes
                assert {(d, j): e.kind for (_, d), of in standing.judged.items() for j, e in of.items()} == {
                    (d, j): kind for (j, t, d), (kind, _) in labels.items() if t == "judge"
                }
            journal.close()
        expected, contested = settled(labels)
        if expected:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                assert read_journal(path).to_dict() == {"q": expected}
            assert [f"differ on {contested} pairs" in str(one.message) for one in said] == [True] * (
                contested > 0
            )
        graded = {(j, d): g for (j, t, d), (k, g) in labels.items() if t == "judge" and g is not None}
        if graded:
            found = read_judges(path)
            assert {(j, d): g for j, of in found.items() for d, g in of["q"].items()} == graded
