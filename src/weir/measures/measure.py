"""Measures as values, which print, parse back and compare."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import numpy as np

from weir.argument_types import checked, checked_fields
from weir.core.expressions import syntax_tree
from weir.core.judged import Judged
from weir.core.qrels import LARGEST
from weir.core.rounding import score
from weir.core.scores import GEOMETRIC, MEASURE_NAME
from weir.core.strings import Float64, Grades
from weir.errors import BadValue, UnknownName, WeirError
from weir.measures.aliases import canonical, suggestion, translated, with_setting
from weir.registry import Registry


def without_unjudged(j: Judged, grade: Grades | None = None) -> Judged:
    """Return the judged run without documents that are unjudged or of a grade below 0; later ones move up,
    ideal rankings stay.

    grade: grades to decide by; None for those in `j`.
    """
    judged = (j.grade if grade is None else grade) >= 0
    query, place = j.query[judged], j.first[judged]
    start = np.searchsorted(query, query)
    # Groups close up too: first and last count the judged documents up to and within each.
    opens = np.ones(len(query), np.bool_)
    opens[1:] = (query[1:] != query[:-1]) | (place[1:] != place[:-1])
    begin = np.flatnonzero(opens)
    size = np.diff(np.append(begin, len(query)))
    return replace(
        j,
        retrieved=j.per_query(j.query, judged).astype(np.int32),
        tied=np.bincount(query[begin], size * (size > 1), len(j)).astype(np.int32),
        query=query,
        rank=(np.arange(len(query)) - start + 1).astype(np.int32),
        grade=j.grade[judged],
        first=(np.repeat(begin, size) - start + 1).astype(np.int32),
        last=(np.repeat(begin + size, size) - start).astype(np.int32),
    )


Setting: TypeAlias = int | float | str
Cutoff: TypeAlias = Literal["required", "optional"]
Values: TypeAlias = Literal["unit", "any", "logarithm"]
Judgments: TypeAlias = Literal["documents", "whole grades", "presence", "intents", "rules"]
Better: TypeAlias = Literal["more", "less", "neither"]
Form: TypeAlias = Callable[[str], str]

_KEPT_TEXTS = 1024  # whose measures are kept: a training loop names the same ones again and again
_LONGEST = 200  # characters of a measure's text: nothing within them can exhaust the parser


@dataclass(frozen=True)
class Definition:
    """A registered measure: its function and rules."""

    name: str
    function: Callable[..., Float64]
    cutoff: Cutoff
    values: Values
    """"unit": within 0..1, which is asserted; "logarithm": the mean over queries is geometric."""
    choices: tuple[tuple[str, tuple[Setting, ...]], ...]
    """Allowed values by setting."""
    within: tuple[tuple[str, tuple[float, float]], ...] = ()
    """Smallest and largest value by setting."""
    forms: tuple[tuple[str, Form], ...] = ()
    """For a text setting with more than its choices: a function that checks and normalises it."""
    of: Judgments = "documents"
    """Judgments that it needs: "documents" with any grades or with "whole grades", their "presence" alone,
    "intents", or "rules" of documents."""
    better: Better = "more"
    never: bool = False
    """True if a value above 0 of any query is a failure that no mean makes up for."""

    @property
    def bounded(self) -> bool:
        """True if all values are within 0..1 by definition."""
        return self.values == "unit"

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def takes(self) -> str:
        """A sentence on how the measure treats fractional grades."""
        if self.of == "whole grades":
            return "Grades with fractions are refused."
        if self.of == "rules":
            return "Grades do not count, only the rules of documents that stand beside the judgments."
        if self.of == "presence":
            return "Grades do not count, only whether a document was judged."
        if "rel" in self.defaults():
            return "A grade with a fraction counts from `rel` on, which may be a fraction too (`rel=0.5`)."
        return "Grades with fractions count as they are."

    def defaults(self) -> dict[str, Setting]:
        """Return {setting: default value}."""
        return {p.name: p.default for p in self._parameters()}

    def fractional(self) -> set[str]:
        """Return the names of settings that accept fractions."""
        return {p.name for p in self._parameters() if p.annotation in ("float", float)}

    def _parameters(self) -> list[inspect.Parameter]:
        parameters = inspect.signature(self.function).parameters.values()
        return [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "k"]


MEASURES: Registry[Definition] = Registry("measure")
_definition = lru_cache(maxsize=None)(MEASURES.get)  # asked several times for each measure that is scored


@checked
def measure(
    name: str,
    *,
    cutoff: Cutoff = "optional",
    values: Values = "unit",
    choices: Mapping[str, tuple[Setting, ...]] | None = None,
    within: Mapping[str, tuple[float, float] | Form] | None = None,
    of: Judgments = "documents",
    better: Better = "more",
    never: bool = False,
) -> Callable[[Callable[..., Float64]], Measure]:
    """Return a decorator that registers a function of a `Judged` as a measure, and returns the Measure.

    name: in texts and results.
    cutoff: "required" or "optional"; passed to the function as `k`.
    values: "unit" (within 0..1), "any" or "logarithm" (geometric mean).
    choices: {setting: allowed values}. Settings are the function's other keyword parameters.
    within: {setting: (least, largest)}, or a function that checks and normalises a text.
    of: judgments needed: "documents", "whole grades", "presence", "intents", or "rules" of documents.
    better: "more", "less" or "neither".
    never: True makes a gate fail if any query has a value above 0.

    Raises BadValue for a registered name.
    """

    def add_measure(function: Callable[..., Float64]) -> Measure:
        rules = (within or {}).items()
        ranges = tuple((key, rule) for key, rule in rules if isinstance(rule, tuple))
        forms = tuple((key, rule) for key, rule in rules if not isinstance(rule, tuple))
        listed = tuple((choices or {}).items())
        MEASURES.add(
            name, Definition(name, function, cutoff, values, listed, ranges, forms, of, better, never)
        )
        return Measure(name)

    return add_measure


@checked_fields
@dataclass(frozen=True, repr=False)
class Measure:
    """A measure with settings and cut-off, such as nDCG@10 or nDCG(gain='exp')@10, by which it prints.

    Hashable. `nDCG @ 10` sets the cut-off, `nDCG(gain="exp")` a setting.
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = ()
    """Settings that differ from their default, sorted by name."""
    cutoff: int | None = None
    condensed: bool = False
    """True if unjudged documents leave the ranking first; printed as condensed(nDCG@10)."""

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    @cached_property
    def _text(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.settings)
        text = self.name + (f"({inside})" if inside else "") + (f"@{self.cutoff}" if self.cutoff else "")
        return f"condensed({text})" if self.condensed else text

    @checked
    def __matmul__(self, cutoff: int) -> Measure:
        """Return the measure with this cut-off; raises BadValue below 1."""
        if cutoff < 1:
            raise BadValue(f"{self.name}: the cut-off is {cutoff!r}; expected a whole number from 1")
        return replace(self, cutoff=cutoff)

    def __call__(self, **settings: Setting) -> Measure:
        """Return the measure with these settings (`weir list measures`).

        Raises UnknownName for an unknown setting, BadValue for a value out of range.
        """
        definition = self.definition
        defaults = definition.defaults()
        chosen = dict(self.settings)
        for key, value in settings.items():
            if key not in defaults:
                raise UnknownName(f"setting of {self.name}", key, defaults)
            chosen[key] = _checked(definition, key, value, defaults[key])
        return replace(self, settings=tuple(sorted((k, v) for k, v in chosen.items() if v != defaults[k])))

    @property
    def uncondensed(self) -> Measure:
        """The measure with `condensed` False."""
        return replace(self, condensed=False) if self.condensed else self

    @property
    def geometric(self) -> bool:
        """True if values are logarithms and the mean over queries is geometric."""
        return self.definition.values == "logarithm"

    @property
    def by_intent(self) -> bool:
        """True if the measure needs judgments of intents."""
        return self.definition.of == "intents"

    @property
    def definition(self) -> Definition:
        """The registered definition."""
        return _definition(self.name)

    def per_query(self, judged: Judged) -> Float64:
        """Return the value of each judged query, float64[queries].

        Raises BadValue if a cut-off, intents or whole grades are needed and missing, WeirError if a value of
        a measure within 0..1 is outside.
        """
        return self.asserted(self.computed(judged))

    def computed(self, judged: Judged) -> Float64:
        """Return the values of `per_query` without the check for 0..1; raises the same BadValues."""
        definition = self.definition
        if definition.of == "whole grades":
            fractions = np.flatnonzero(judged.ideal != np.rint(judged.ideal))
            if len(fractions):
                query = judged.queries[int(judged.ideal_query()[fractions[0]])]
                raise BadValue(
                    f"{self} needs whole grades; query '{query}' has a grade of {judged.ideal[fractions[0]]}: round "
                    "them first (weir data import FILE --grades round -o FOLDER; in Python qrels.rounded())"
                )
        if definition.cutoff == "required" and self.cutoff is None:
            raise BadValue(f"{self.name} needs a cut-off, such as {self.name}@10")
        join = condensed_join(judged) if self.condensed else judged
        return definition.function(join, k=self.cutoff, **dict(self.settings))

    def asserted(self, values: Float64) -> Float64:
        """Return the values; raises WeirError if one is outside 0..1 and the measure promises that range."""
        if self.definition.bounded and not all_within_unit(values):
            raise WeirError(
                f'{self} lies outside 0..1: an error of the measure, or it is registered with values="any"'
            )
        return values


@checked
def condensed(measure: Measure) -> Measure:
    """Return the measure on condensed lists: unjudged documents, and grades below 0, leave the ranking before
    its cut-off.

    The ideal ranking stays.
    """
    # Sakai 2007; trec_eval's option -J.
    return replace(measure, condensed=True)


@checked
@lru_cache(maxsize=_KEPT_TEXTS)
def parse_measure(text: str) -> Measure:
    """Return the measure in a text such as "nDCG(gain='exp')@10", "condensed(AP)", or another tool's
    "ndcg_cut_10".

    Raises UnknownName for an unknown measure or setting, BadValue for bad syntax, a missing cut-off, and a
    name that its tool computes otherwise.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        raise _malformed(text)
    if text.startswith("condensed("):
        if not text.endswith(")"):
            raise BadValue(f"{text}: the cut-off belongs inside, as in condensed(nDCG@10)")
        return condensed(parse_measure(text.removeprefix("condensed(").removesuffix(")")))
    match = re.fullmatch(r"([^()]+?) *(?:\((.*)\))? *(@.*)?", text)
    translation = None
    if match is not None and match[1].partition("@")[0].strip() not in MEASURES:
        translation = canonical(match[1] + (match[3] or ""), MEASURES.names())
        if translation is not None and match[2]:
            translation = with_setting(translation, match[2])
    match = re.fullmatch(r"(\w+)(\(.*\))? *(?:@ *(\S+))?", translation or text)
    written = None if match is None else _settings(match[2])
    if match is None or written is None:
        raise _malformed(translation or text)
    name = match[1]
    settings, cut, judged_only = translated(name, written, match[3])
    if cut is not None and "," in cut:
        raise _malformed(text)
    if cut is not None and (not re.fullmatch(r"[0-9]{1,9}", cut) or int(cut) < 1):
        raise BadValue(f"{text}: the cut-off is '{cut}'; expected a whole number from 1")
    cutoff = None if cut is None else int(cut)
    if name not in MEASURES:
        here = suggestion(f"{name}@{cutoff}" if cutoff else name, MEASURES.names())
        raise UnknownName("measure", name, MEASURES.names(), here, listed_by="weir list measures")
    parsed = Measure(name)(**settings)  # type: ignore[arg-type]  # what is no setting is refused there
    parsed = parsed if cutoff is None else parsed @ cutoff
    if cutoff is None and MEASURES.get(name).cutoff == "required":
        raise BadValue(f"{name} needs a cut-off, such as {name}@10")
    return condensed(parsed) if judged_only else parsed


def _malformed(text: str) -> BadValue:
    several = "," in re.sub(r"\([^()]*\)", "", text[:_LONGEST])
    example = (
        "nDCG@10, each by itself: `measures=['nDCG@10', 'RR']`; or nDCG@{1,3,10}"
        if several
        else "nDCG@10 or nDCG(gain='exp')@10"
    )
    return BadValue(f"'{text[:_LONGEST]}' is not a measure; expected such as {example}")


def canonical_name(text: str) -> str:
    """Return the name by which the measure in a text prints; raises like `parse_measure`."""
    return str(parse_measure(text))


MEASURE_NAME.register(canonical_name)


def is_geometric(name: str) -> bool:
    """Return True if the named measure's mean over queries is geometric; False for an unknown name."""
    try:
        return parse_measure(name).geometric
    except WeirError:
        return False


GEOMETRIC.register(is_geometric)


P_MRR = "p-MRR"
"""Name of the only value by query that is no measure of a ranking; more is better."""


def direction(name: str) -> int:
    """Return 1 if larger values of the named measure are better or its name is unknown, -1 if smaller, 0 if
    neither."""
    try:
        return {"more": 1, "less": -1, "neither": 0}[MEASURES.get(parse_measure(name).name).better]
    except WeirError:
        return 1


def best_of(name: str, means: Iterable[float]) -> float:
    """Return the best of a measure's means, ignoring NaN; NaN without any, or if neither direction is better."""
    way = direction(name)
    return way * max((way * mean for mean in means if way and not math.isnan(mean)), default=math.nan)


def is_best(name: str, mean: float, means: Sequence[float], shown: Callable[[float], str] = score) -> bool:
    """Return True if a measure's mean, formatted by `shown`, equals the best of two or more means; False for
    NaN."""
    best = shown(best_of(name, means))
    return len(means) > 1 and not math.isnan(mean) and shown(mean) == best


def judged_by_default(measures: Iterable[str]) -> list[str]:
    """Return the distinct names of measures with a better direction; all names if none has one."""
    names = list(dict.fromkeys(measures))
    return [name for name in names if direction(name)] or names


def no_direction_note(measures: Iterable[str]) -> list[str]:
    """Return one sentence naming the measures without a better direction; [] if none."""
    names = ", ".join(dict.fromkeys(name for name in measures if not direction(name)))
    return [f"{names}: more is neither better nor worse, so there is no verdict and no rank"] if names else []


def less_note(measures: Iterable[str]) -> list[str]:
    """Return one sentence naming the measures for which less is better; [] if none."""
    names = ", ".join(dict.fromkeys(name for name in measures if direction(name) < 0))
    return [f"by {names} less is better"] if names else []


def direction_notes(measures: Iterable[str]) -> list[str]:
    """Return sentences on measures without a better direction, and on unknown measures; [] if none."""
    names = list(dict.fromkeys(measures))
    others = [name for name in names if not _is_known(name)]
    one = len(others) == 1
    assumed = (
        f"{', '.join(others)}: {'no measure' if one else 'no measures'} of Weir, so more is taken as better"
    )
    return [*no_direction_note(names), *[assumed] * bool(others)]


def _is_known(name: str) -> bool:
    try:
        return name == P_MRR or bool(MEASURES.get(parse_measure(name).name))
    except WeirError:
        return False


def must_stay_zero(name: str) -> bool:
    """Return True if any query's value above 0 is a failure, as for leaks; False for an unknown name."""
    try:
        return MEASURES.get(parse_measure(name).name).never
    except WeirError:
        return False


def within_unit(name: str) -> bool:
    """Return True if the named measure's values are within 0..1; False for an unknown name."""
    try:
        return MEASURES.get(parse_measure(name).name).bounded
    except WeirError:
        return False


def _settings(inside: str | None) -> dict[str, object] | None:
    try:
        call = syntax_tree(f"f{inside or '()'}")
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            return None
        settings = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
    except (SyntaxError, ValueError, TypeError):
        return None
    return settings if len(settings) == len(call.keywords) else None


def _checked(definition: Definition, key: str, value: object, default: Setting) -> Setting:
    where = f"{definition.name}({key}={value!r})"
    allowed, form = dict(definition.choices).get(key), dict(definition.forms).get(key)
    if allowed is not None and value not in allowed:
        listed = ", ".join(map(repr, allowed))
        if form is None:
            raise BadValue(f"{where}: expected one of {listed}")
        try:
            return form(value if isinstance(value, str) else "")
        except ValueError as error:
            raise BadValue(f"{where}: expected one of {listed}, or {error}") from None
    fractional = key in definition.fractional()
    if isinstance(value, (int, float)) and not isinstance(
        value, bool
    ):  # of the type of its default, if it is the same
        if isinstance(default, float):
            value = float(value)
        elif fractional and isinstance(default, int) and float(value).is_integer():
            value = int(value)
    right_type = type(value) is type(default) or (isinstance(value, float) and fractional)
    if not right_type or not isinstance(value, (int, float, str)):
        raise BadValue(f"{where}: expected {type(default).__name__}")
    low, high = dict(definition.within).get(key, (-LARGEST, LARGEST))
    if not isinstance(value, str) and not low <= value <= high:  # NaN lies nowhere
        raise BadValue(f"{where}: expected within {low}..{high}")
    return value


def all_within_unit(values: Float64) -> bool:
    """Return True if no value is below 0, or above 1 by more than rounding; NaN is passed over."""
    # Sums of rounded quotients may end a few units in the last place above 1.
    return not values.size or not (
        np.fmin.reduce(values, axis=None) < 0 or np.fmax.reduce(values, axis=None) > 1 + 1e-12
    )


def condensed_join(judged: Judged) -> Judged:
    """Return the judged run without unjudged documents, also in `intents`."""
    join = without_unjudged(judged)
    if judged.intents is None:
        return join
    joined = without_unjudged(judged.intents.joined, judged.grade)
    return replace(join, intents=replace(judged.intents, joined=joined))
