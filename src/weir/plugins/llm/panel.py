"""Judges' prompts, grades in answers, pairs to judge, and one grade from several samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from weir.argument_types import named_arguments
from weir.core.corpus import Corpus
from weir.core.qrels import Qrels
from weir.core.strings import Float64, Ids, Int32
from weir.core.subject import Subject
from weir.errors import BadValue, UnknownName
from weir.files.formats import begins_as_sheet
from weir.files.journal_labels import SHEET
from weir.files.text_files import read_toml
from weir.models.checkpoints import check_least
from weir.plugins.labels.pools import about_sheet, judging_pool, open_sheet, read_sheet
from weir.plugins.llm.chat import CachedChatClient
from weir.plugins.llm.prompts import (
    ChatPrompt,
    PromptTemplate,
    checked_template,
    has_hidden_instruction,
    prompt_digest,
)
from weir.plugins.llm.verdicts import (
    NUMBER,
    OUT_OF,
    ChatReply,
    VerdictForm,
    VerdictKind,
    read_verdict,
    several_numbers,
)
from weir.services.requests import shortened
from weir.systems.rerank.reranking import VIEW

# Prompts of judges as files.

FOLDER = Path(__file__).with_name("judge_prompts")
GRADE_PLACE = "{grade}"
PLACES = ("query", "objective", "passage", "positive", "token")
PLACE = re.compile(r"\{(\w+)\}")
MAX_GRADE = 100
_JUDGE_ENTRIES = ("verdict", "last", "relevant_from", "grades", "answers")


@dataclass(frozen=True)
class GradeScale:
    """A judge's grades with their labels, and the form of its verdict."""

    labels: tuple[str, ...]
    """Aligned with `grades`; several may mean one grade."""
    grades: tuple[int, ...]
    verdict: str = GRADE_PLACE
    """The requested line, with {grade} for the label."""
    last: bool = False
    """True if the last verdict counts, after reasoning."""
    relevant_from: int = 1
    """Lowest grade of a relevant document."""

    @property
    def lowest(self) -> int:
        """The lowest grade."""
        return min(self.grades)

    @property
    def highest(self) -> int:
        """The highest grade."""
        return max(self.grades)

    @property
    def numeric(self) -> bool:
        """True if all labels are whole numbers without a sign."""
        return all(label.isdecimal() for label in self.labels)

    def label_of(self, grade: int) -> str:
        """Return the first label of a grade."""
        return self.labels[self.grades.index(grade)]


@dataclass(frozen=True)
class JudgePrompt:
    """A judge's prompt with its grade scale and examples of answers."""

    template: PromptTemplate
    scale: GradeScale
    answers: tuple[tuple[str, int], ...]
    """(text, grade) examples of the prompt's file."""

    @property
    def needs_positive(self) -> bool:
        """True if the prompt shows a passage known to be relevant, too."""
        return "{positive}" in self.template.user


def judge_prompts() -> list[str]:
    """Return the names of Weir's judging prompts, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def judge_prompt(name: str) -> JudgePrompt:
    """Return the judge's prompt of a name in `judge_prompts`, or of a TOML file.

    Raises UnknownName for neither, FormatError for an unreadable file, BadValue for wrong or missing entries.
    """
    names = judge_prompts()
    if name not in names and not name.endswith(".toml"):
        raise UnknownName("prompt of a judge, nor a path that ends in .toml,", name, names)
    path = FOLDER / f"{name}.toml" if name in names else Path(name)
    entries = read_toml(path, "a judge's prompt, with system, user, objective, max_tokens and grades")
    own = {entry: entries[entry] for entry in _JUDGE_ENTRIES if entry in entries}
    others = {entry: value for entry, value in entries.items() if entry not in own}
    checked = checked_template(path, others, ("query", "passage"))
    if odd := [p for p in PLACE.findall(checked.system + checked.user) if p not in PLACES]:
        raise BadValue(f"{path}: {{{odd[0]}}} is no place that a judge fills; expected {', '.join(PLACES)}")
    deciding = {entry: value for entry, value in entries.items() if entry != "answers"} | {
        "user": checked.user
    }
    template = replace(checked, digest=prompt_digest(deciding))
    scale = _grade_scale(path, own)
    listed = own.get("answers", [])
    answers: list[Any] = listed if isinstance(listed, list) else [None]
    for one in answers:
        if not (isinstance(one, dict) and set(one) == {"text", "grade"} and isinstance(one["text"], str)):
            raise BadValue(f"{path}: [[answers]] has a text and the grade that it gives")
        if one["grade"] not in scale.grades:
            raise BadValue(f"{path}: [[answers]] gives the grade {one['grade']!r}, which [grades] has not")
    return JudgePrompt(template, scale, tuple((one["text"], one["grade"]) for one in answers))


def _grade_scale(path: Path, own: Mapping[str, Any]) -> GradeScale:
    grades, verdict = own.get("grades"), own.get("verdict", GRADE_PLACE)
    if not isinstance(grades, dict) or not all(
        type(g) is int and 0 <= g <= MAX_GRADE for g in grades.values()
    ):
        raise BadValue(
            f"{path}: [grades] says what each label is worth, a whole number from 0 to {MAX_GRADE}"
        )
    labels = tuple(" ".join(label.split()) for label in grades)
    numeric = [label.isdecimal() for label in labels]
    if len(set(grades.values())) < 2 or not all(labels) or len({x.casefold() for x in labels}) < len(labels):
        raise BadValue(
            f"{path}: [grades] has {len(grades)} labels; expected different ones, of two grades or more"
        )
    if any(numeric) and not all(numeric):
        raise BadValue(f"{path}: [grades] has numbers and words as labels; expected either")
    if not isinstance(verdict, str) or verdict.count(GRADE_PLACE) != 1:
        raise BadValue(f"{path}: verdict is {verdict!r}; expected a line with {GRADE_PLACE} in it")
    last, relevant = own.get("last", False), own.get("relevant_from", 1)
    if type(last) is not bool or relevant not in grades.values() or relevant == min(grades.values()):
        raise BadValue(f"{path}: last is true or false, relevant_from a grade above the lowest")
    return GradeScale(labels, tuple(grades.values()), verdict.strip(), last, relevant)


# Grades from answers.

_ENTRIES = ("grade", "score", "final score", "final_score", "o", "answer", "label", "verdict", "relevance")
_NUMBERED = re.compile(rf"(?P<number>{NUMBER}){OUT_OF}", re.IGNORECASE)


def verdict_form(prompt: JudgePrompt, token: str) -> VerdictForm:
    """Return the form in which answers to a prompt give their grade.

    token: word that must begin the grade's line; "" for a prompt sent as published.
    """
    scale = prompt.scale
    front = scale.verdict.partition(GRADE_PLACE)[0]
    return VerdictForm(token, prompt.template.object_answer, front, scale.last)


def read_grade(
    reply: ChatReply, form: VerdictForm, scale: GradeScale, shown: Sequence[str] = ()
) -> tuple[int | None, VerdictKind]:
    """Return (grade of an answer, how it was read); None for no grade and for one off the scale.

    shown: passages in the prompt, needed by a form without a token.
    """
    return read_verdict(
        reply,
        form,
        lambda text: (_grade_of_number if scale.numeric else _grade_of_label)(text, scale),
        _ENTRIES,
        shown,
    )


def _grade_of_number(text: str, scale: GradeScale) -> tuple[int | None, VerdictKind]:
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return None, "duplicate" if several_numbers(text) else "missing"
    grades = {float(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    grade, top = grades.get(float(match["number"].replace(",", "."))), match["top"]
    if grade is None or (top is not None and int(top) != max(map(int, scale.labels))):
        return None, "out of range"
    return grade, "ok" if top is None else "repaired"


def _grade_of_label(text: str, scale: GradeScale) -> tuple[int | None, VerdictKind]:
    grades = {_folded(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    grade = grades.get(_folded(text))
    return grade, "missing" if grade is None else "ok"


def _folded(label: str) -> str:
    return re.sub(r"[\s_-]+", "", label).casefold()


def speaks_to_the_judge(passage: str, scale: GradeScale) -> bool:
    """Return True if a passage addresses the judge, by an instruction or a verdict such as "final score: 3"."""
    labels = "|".join(r"[\s_-]*".join(map(re.escape, label.split())) for label in scale.labels)
    words = re.findall(r"\w+", scale.verdict.partition(GRADE_PLACE)[0])
    named = "|".join(filter(None, [r"(?:final|overall) (?:score|grade|verdict)", r"\W{0,4}".join(words)]))
    formed = rf"\b(?:{named})[\s*_`#]{{0,12}}[:：=][\s*_`]{{0,12}}(?:{labels})(?![\w-])"
    return re.search(formed, passage, re.IGNORECASE) is not None or has_hidden_instruction(passage)


# Pairs to judge, with their texts.

SEED = 11
"""Seed by which judged pairs are drawn."""


@dataclass(frozen=True, eq=False)
class JudgingPairs:
    """Pairs of query and document to judge, with their texts and people's judgments."""

    name: str
    queries: Ids
    docs: Ids
    query: Int32
    """int32[pairs], positions in `queries`; `doc` likewise in `docs`."""
    doc: Int32
    texts: tuple[str, ...]
    """Text of each query."""
    instructions: tuple[str, ...]
    """The search's instruction by query; "" for none."""
    passage: Callable[[int], str]
    """Row -> text of its document."""
    positive: Callable[[int], str | None]
    """Row -> text of another document known to be relevant for its query; None for none."""
    people: Qrels | None = None
    systems: tuple[str, ...] = ()
    """The systems to measure by these labels."""
    textless: int = 0
    """Pairs left out because the collection lacks their document."""

    def __len__(self) -> int:
        return len(self.query)

    def query_and_document(self, row: int) -> tuple[str, str]:
        """Return the identifiers (query, document) of a row."""
        return self.queries[int(self.query[row])], self.docs[int(self.doc[row])]


def is_sheet(path: Path) -> bool:
    """Return True for a sheet of `weir labels pool` or its folder; raises BadValue for a folder with several."""
    several = sorted(sheet.parent.name for sheet in path.glob(f"*/{SHEET}")) if path.is_dir() else []
    if several:
        raise BadValue(
            f"{path} has the sheets of {len(several)} collections ({', '.join(several[:5])}); judge one at a time, "
            f"such as {path / several[0]}"
        )
    with suppress(OSError):
        return begins_as_sheet(path / SHEET if path.is_dir() else path)
    return False


def pairs_of_sheet(
    path: Path, collection: Subject | None = None, judged: bool = False, limit: int | None = None
) -> JudgingPairs:
    """Return the pairs without a grade on a sheet of `weir labels pool`.

    collection: source of the texts; None for those on the sheet.
    judged: return the pairs with a grade instead.
    limit: number of pairs at most.

    Leaves out pairs whose document the collection lacks (`textless` counts them). Raises BadValue if no pair is left,
    a query is unknown, or the sheet has no text of any query or document.
    """
    sheet = path / SHEET if path.is_dir() else path
    all_lines = list(open_sheet(sheet))
    lines = [line for line in all_lines if bool(line.grade) == judged][:limit]
    if not lines:
        which = "with a grade" if judged else "without a grade"
        raise BadValue(f"{sheet}: none of its {len(all_lines):,} pairs is {which}")
    queries = Ids.of(dict.fromkeys(line.query for line in lines))
    docs = Ids.of(dict.fromkeys(line.doc for line in lines))
    query, doc = queries.codes([line.query for line in lines]), docs.codes([line.doc for line in lines])
    about = about_sheet(sheet)
    people = read_sheet(sheet)[0] if any(line.grade for line in all_lines) else None
    systems = tuple(map(str, about.get("names", ())))
    if collection is not None:
        placed = _placed(collection, queries, docs, query, doc)
        return replace(placed, people=people or placed.people, systems=systems or placed.systems)
    if not (any(line.query_text for line in lines) and any(line.title or line.text for line in lines)):
        raise BadValue(f"{sheet} lacks the texts of queries or documents; name the `collection`")
    return JudgingPairs(
        str(about.get("subject", sheet.name)),
        queries,
        docs,
        query,
        doc,
        tuple({line.query: line.query_text for line in lines}.values()),
        ("",) * len(queries),
        lambda row: f"{lines[row].title} {lines[row].text}".strip(),
        lambda _: None,
        people,
        systems,
    )


def pairs_of_subject(
    subject: Subject, judged: bool = False, k: int = 10, limit: int | None = None
) -> JudgingPairs:
    """Return the unjudged documents among the first k of all runs, with their queries.

    judged: return pairs that people judged instead.
    limit: keep the unjudged pairs that narrow scores most, or a uniform sample of judged pairs.

    Raises BadValue if there is no pair, or a query has no text.
    """
    if not judged:
        pool = judging_pool(subject.runs, subject.need_qrels(), k, limit)
        return _placed(subject, pool.queries, pool.docs, pool.query, pool.doc)
    qrels = _of_people(subject.need_qrels())
    if qrels is None:
        raise BadValue(f"{subject.name}: every judgment is a model's; people judged nothing")
    rows = np.random.default_rng(SEED).permutation(len(qrels.doc))[:limit]
    if not len(rows):
        raise BadValue(f"{subject.name}: no pair is judged")
    return _placed(subject, qrels.queries, qrels.docs, qrels.query_of_row()[rows], qrels.doc[rows])


def _placed(subject: Subject, queries: Ids, docs: Ids, query: Int32, doc: Int32) -> JudgingPairs:
    collection, corpus = subject.need_queries(), subject.need_corpus()
    at = collection.ids.codes(queries.strings)
    if missing := [queries[int(q)] for q in np.unique(query) if at[q] < 0]:
        raise BadValue(f"{subject.name}: the query '{missing[0]}' has no text in the collection")
    doc_at = corpus.ids.codes(docs.strings)
    rows = np.flatnonzero(doc_at[doc] >= 0)
    if not len(rows):
        raise BadValue(f"{subject.name}: none of the documents to judge is in the collection")
    own = None if collection.metadata is None else collection.metadata.instruction
    codes = doc_at[doc[rows]]
    pairs = JudgingPairs(
        subject.name,
        queries,
        docs,
        query[rows].astype(np.int32),
        doc[rows].astype(np.int32),
        tuple(collection.text[int(q)] if q >= 0 else "" for q in at),
        tuple((own[int(q)] if own is not None and q >= 0 else "") or subject.instruction for q in at),
        lambda row: _text(corpus, int(codes[row])),
        lambda _: None,
        None if subject.qrels is None else _of_people(subject.qrels),
        tuple(subject.runs),
        len(query) - len(rows),
    )
    return replace(pairs, positive=_positives_of(pairs, corpus))


def _of_people(qrels: Qrels) -> Qrels | None:
    if qrels.origin is None or not (of_models := qrels.origin.of_models()).any():
        return qrels
    return None if of_models.all() else qrels.of_rows(~of_models)


def _text(corpus: Corpus, code: int) -> str:
    [text] = corpus.view_of(VIEW, np.array([code])).tolist()
    return str(text)


def _positives_of(pairs: JudgingPairs, corpus: Corpus) -> Callable[[int], str | None]:
    if pairs.people is None:
        return lambda _: None
    people = pairs.people
    at = people.queries.codes(pairs.queries.strings)
    doc_at = corpus.ids.codes(people.docs.strings)
    best: dict[int, list[tuple[str, int]]] = {}
    for number in np.unique(pairs.query).tolist():
        rows = range(*people.ptr[at[number] : at[number] + 2].tolist()) if at[number] >= 0 else range(0)
        relevant = [r for r in rows if people.grade[r] > 0 and doc_at[people.doc[r]] >= 0]
        ranked = sorted(relevant, key=lambda r: (-float(people.grade[r]), people.docs[int(people.doc[r])]))
        best[number] = [(people.docs[int(people.doc[r])], int(doc_at[people.doc[r]])) for r in ranked[:2]]

    def positive(row: int) -> str | None:
        own = pairs.query_and_document(row)[1]
        return next((_text(corpus, at) for name, at in best[int(pairs.query[row])] if name != own), None)

    return positive


# A judge at work: prompts, grades, and one grade from several samples.

Combination: TypeAlias = Literal["mode", "mean"]
""""mode": the most frequent grade, of several the lowest; "mean": the mean grade."""
MAX_SAMPLES = 100
MAX_CONCURRENCY = 256


@named_arguments
@dataclass(frozen=True)
class JudgeSettings:
    """How a judge is asked. Raises BadValue and UnknownName for values out of range."""

    samples: int = 1
    """Answers for each pair."""
    combine: Combination = "mode"
    """The most frequent of several grades ("mode"; of equally frequent, the lowest), or their mean."""
    temperature: float | None = 0.0
    """None leaves it to the model."""
    twice: float = 0.1
    """The share of pairs that is judged a second time."""
    probes: int = 10
    """Pairs that each probe changes; 0 for no probes."""
    wrong: int = 0
    """Relevant passages of which near misses are made, by rule and kind: negated, another number, name and date. How
    many are still called relevant is reported."""
    seed: int = 11
    """Seed of all draws."""
    objective: bool = True
    """Put the search's instruction into the prompt."""
    max_length: int | None = None
    """Tokens of a passage at most, by estimate."""
    max_tokens: int | None = None
    """Tokens of an answer at most; by default the prompt's."""
    concurrency: int = 8
    """Prompts at a time."""

    def __post_init__(self) -> None:
        if self.combine not in get_args(Combination):
            raise UnknownName("combination of samples", str(self.combine), get_args(Combination))
        least = {
            "samples": 1,
            "probes": 0,
            "wrong": 0,
            "seed": 0,
            "max_length": 1,
            "max_tokens": 1,
            "concurrency": 1,
        }
        check_least(self, least)
        for name, greatest in (("samples", MAX_SAMPLES), ("concurrency", MAX_CONCURRENCY)):
            if getattr(self, name) > greatest:
                raise BadValue(f"{name} is {getattr(self, name)}; expected at most {greatest}")
        if not (type(self.twice) in (int, float) and 0 <= self.twice <= 1):
            raise BadValue(f"twice is {self.twice!r}; expected a share from 0 to 1")
        warmth = self.temperature
        if warmth is not None and not (type(warmth) in (int, float) and 0 <= warmth <= 2):
            raise BadValue(f"temperature is {warmth!r}; expected a number from 0 to 2, or None")


@dataclass(frozen=True)
class ShownPair:
    """The texts of a query and a document in a judge's prompt."""

    query: str
    instruction: str
    passage: str
    positive: str = ""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Requests to a judge: number i asks for answer sample[i] about the pair row[i], int32[n] each."""

    row: Int32
    sample: Int32
    content: Callable[[int], ShownPair]
    """Row -> texts in its prompt."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class JudgeAnswer:
    """A judge's answer on one pair, with the grade read from it."""

    row: int
    sample: int
    grade: int | None
    """None without a verdict."""
    kind: VerdictKind
    text: str
    model: str
    """The model's name for itself."""
    time: str
    cut: bool = False
    """True if it ended at max_tokens."""
    flagged: bool = False
    """True if the passage addresses the judge."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A judge's client, prompt and settings, to ask and to read stored answers."""

    client: CachedChatClient
    prompt: JudgePrompt
    settings: JudgeSettings

    def ask(self, jobs: Jobs, progress: Callable[[int], None] | None = None) -> None:
        """Ask for the answers that are not stored; raises ServiceError if one stays missing or the budget ends."""
        self.client.replies(len(jobs), lambda number: self._chat(jobs, number), progress)

    def stored_answers(self, jobs: Jobs) -> Iterator[JudgeAnswer | None]:
        """Yield the stored answer of each job in order; None if it has none."""
        tokens: dict[int, str] = {}

        def prompt_of(number: int) -> ChatPrompt:
            prompt = self._chat(jobs, number)
            tokens[number] = prompt.token
            return prompt

        for number, stored in enumerate(self.client.stored_replies(len(jobs), prompt_of)):
            if stored is None:
                yield None
                continue
            row, (reply, time) = int(jobs.row[number]), stored
            pair = jobs.content(row)
            form = verdict_form(self.prompt, tokens.pop(number))
            grade, kind = read_grade(reply, form, self.prompt.scale, (pair.passage, pair.positive))
            yield JudgeAnswer(
                row,
                int(jobs.sample[number]),
                grade,
                kind,
                reply.text,
                reply.model,
                time,
                reply.finish == "length",
                speaks_to_the_judge(pair.passage, self.prompt.scale),
            )

    def _chat(self, jobs: Jobs, number: int) -> ChatPrompt:
        pair, template = jobs.content(int(jobs.row[number])), self.prompt.template
        passage, positive = (
            shortened(text, self.settings.max_length) for text in (pair.passage, pair.positive)
        )
        places = {"query": pair.query, "passage": passage, "positive": positive}
        filled = template.filled_prompt(places, pair.instruction if self.settings.objective else "")
        return ChatPrompt(
            filled.system,
            filled.user.strip(),
            self.settings.max_tokens or template.max_tokens,
            self.settings.temperature,
            json=template.json,
            schema=template.schema,
            sample=int(jobs.sample[number]),
            token=filled.token,
        )


def combined(grades: Float64, how: Combination) -> tuple[Float64, int]:
    """Return (one grade for each pair, float64[n]; number of pairs with several most frequent grades, 0 for "mean").

    grades: float64[n, samples]; NaN is no grade, and NaN alone gives NaN.
    how: "mode" takes the most frequent grade, of several the lowest; "mean" the mean.
    """
    together, tied = np.full(len(grades), np.nan), 0
    for row, answers in enumerate(grades):
        samples = answers[~np.isnan(answers)]
        if not len(samples):
            continue
        values, counts = np.unique(samples, return_counts=True)
        modes = values[counts == counts.max()]
        tied += len(modes) > 1
        together[row] = samples.mean() if how == "mean" else modes[0]
    return together, tied if how == "mode" else 0
