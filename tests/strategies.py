"""What hypothesis draws: identifiers, rankings, judgments, measures."""

from __future__ import annotations

from hypothesis import strategies as st

from weir.measures import MEASURES

__all__ = [
    "fractions",
    "grades",
    "identifiers",
    "judgments",
    "measure_texts",
    "rankings",
    "scores",
    "texts",
    "trials",
]

# Few letters, so that prefixes, ties and collisions happen; and some that order differently as bytes.
identifiers = st.one_of(
    st.sampled_from(
        ["1", "01", "1.0", "-5", "a b", "é", "e\u0301", "http://x.y/z?q=1#f", "a\tb", "\uff5e", "\U00010000"]
    ),
    st.text(st.sampled_from("ab0é漢\u0085\U0001f600"), min_size=1, max_size=4),
    st.text(st.sampled_from("ab"), min_size=7, max_size=18),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scores = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6, allow_nan=False),
    st.sampled_from([0.0, -0.0, 0.1, 0.1 + 1e-12, 16777217.0, 16777216.0, 1e-300, 1e300, -1e300]),
)
grades = st.integers(-2, 5)
fractions = st.one_of(grades, st.sampled_from([0.5, 0.1, 1 / 3, 1e-3, 0.999, 1.25, 2.9, -0.5]))
rankings = st.dictionaries(identifiers, st.dictionaries(identifiers, scores, max_size=8), max_size=6)
judgments = st.dictionaries(
    identifiers, st.dictionaries(identifiers, grades, min_size=1, max_size=8), min_size=1, max_size=6
)


@st.composite
def trials(
    draw: st.DrawFn, grade: st.SearchStrategy[float] = grades, score: st.SearchStrategy[float] = scores
):
    """A run and judgments that meet: mostly the same queries, and documents out of one small pool."""
    pool = draw(st.lists(identifiers, min_size=1, max_size=9, unique=True))
    asked = draw(st.lists(identifiers, min_size=1, max_size=5, unique=True))
    documents = st.sampled_from(pool)
    judged = {q: draw(st.dictionaries(documents, grade, min_size=1, max_size=9)) for q in asked}
    others = draw(st.lists(identifiers, max_size=2))
    answered = [q for q in dict.fromkeys(asked + others) if draw(st.integers(0, 4)) > 0]
    run = {q: draw(st.dictionaries(documents, score, max_size=9)) for q in draw(st.permutations(answered))}
    return run, judged


_SETTINGS = {
    "rel": st.one_of(st.integers(-2, 4), st.sampled_from([0.1, 0.5, 1.25])),
    "beta": st.floats(0, 3),
    "max_grade": st.integers(5, 8),  # the grades drawn above reach 5
    "p": st.floats(0, 0.99),
    "recall": st.floats(0, 1),
    "T": st.sampled_from([0.25, 0.5, 1.0, 1.75, 4.0]),
    "base": st.floats(1.5, 20),
    "times": st.floats(0, 3),
    **{name: st.floats(-2, 2) for name in ("hit", "noise", "miss")},
}
_TABLES = st.sampled_from(["1=1,2=3", "1=3,2=1", "0=1,3=0", "2=0.5", "5=1000", "0.5=2,1=1"])


@st.composite
def measure_texts(draw: st.DrawFn, largest: int = 12) -> str:
    """The text of a registered measure with random settings and cut-off."""
    name = draw(
        st.sampled_from([n for n in MEASURES.names() if MEASURES.get(n).of not in ("intents", "rules")])
    )
    definition = MEASURES.get(name)
    choices = {key: st.sampled_from(values) for key, values in definition.choices}
    choices |= {key: st.one_of(choices[key], _TABLES) for key, _ in definition.forms}
    drawn = {key: choices.get(key, _SETTINGS.get(key)) for key in definition.defaults()}
    needed = {key: drawn.pop(key) for key in drawn.keys() & {"max_grade"}}
    given = draw(st.fixed_dictionaries(needed, optional=drawn))
    inside = ", ".join(f"{key}={setting!r}" for key, setting in given.items())
    cut = definition.cutoff == "required" or draw(st.booleans())
    text = name + (f"({inside})" if inside else "") + (f"@{draw(st.integers(1, largest))}" if cut else "")
    return f"condensed({text})" if draw(st.integers(0, 4)) == 0 else text
