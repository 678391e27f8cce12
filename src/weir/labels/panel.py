"""Judges: their prompts, the grades of their answers, the pairs they judge, and panels of samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from weir.core.corpus import Corpus
from weir.core.qrels import Qrels
from weir.core.strings import Float64, Ids, Int32
from weir.core.subject import Subject
from weir.errors import BadValue, UnknownName
from weir.files.formats import begins_as_sheet
from weir.files.text_files import read_toml
from weir.labels.pools import SHEET, about_sheet, judging_pool, open_sheet, read_sheet
from weir.models.chat import CachedChatClient
from weir.models.checkpoints import check_least
from weir.models.prompts import (
    ChatPrompt,
    PromptTemplate,
    checked_template,
    has_hidden_instruction,
    prompt_digest,
    shortened,
)
from weir.models.verdicts import (
    NUMBER,
    OUT_OF,
    ChatReply,
    VerdictForm,
    VerdictKind,
    read_verdict,
    several_numbers,
)
from weir.systems.rerank.reranking import VIEW

# Prompts of judges as files.

FOLDER = Path(__file__).with_name("prompts")
GRADE_PLACE = "{grade}"
PLACES = ("query", "objective", "passage", "positive", "token")
PLACE = re.compile(r"\{(\w+)\}")
MAX_GRADE = 100
_JUDGE_ENTRIES = ("verdict", "last", "relevant_from", "grades", "answers")


@dataclass(frozen=True)
class GradeScale:
    """The grades of a judge, and the labels by which its answers name them.

    labels, grades: aligned; several labels may stand for one grade. verdict: the line that is asked for, with {grade}
    in the label's place; "{grade}" for the label alone. last: whether the verdict stands behind reasoning, so that the
    last one counts; relevant_from: the lowest grade of a relevant document.
    """

    labels: tuple[str, ...]
    grades: tuple[int, ...]
    verdict: str = GRADE_PLACE
    last: bool = False
    relevant_from: int = 1

    @property
    def lowest(self) -> int:
        """The grade of a document that has nothing of what is asked."""
        return min(self.grades)

    @property
    def highest(self) -> int:
        """The best grade."""
        return max(self.grades)

    @property
    def numeric(self) -> bool:
        """Whether all labels are numbers."""
        return all(label.isdecimal() for label in self.labels)

    def label_of(self, grade: int) -> str:
        """The first label of a grade."""
        return self.labels[self.grades.index(grade)]


@dataclass(frozen=True)
class JudgePrompt:
    """What a judge is asked and how its answer is read; answers: (text, grade) as the file documents them."""

    template: PromptTemplate
    scale: GradeScale
    answers: tuple[tuple[str, int], ...]

    @property
    def needs_positive(self) -> bool:
        """Whether it shows a passage that people found relevant beside the one to judge."""
        return "{positive}" in self.template.user


def judge_prompts() -> list[str]:
    """The names of the prompts that come with Weir."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def judge_prompt(name: str) -> JudgePrompt:
    """The prompt of that name, or in a TOML file of that path.

    Raises UnknownName for neither, FormatError for no TOML, BadValue for entries that are wrong or missing.
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
    scale = grade_scale(path, own)
    listed = own.get("answers", [])
    answers: list[Any] = listed if isinstance(listed, list) else [None]
    for one in answers:
        if not (isinstance(one, dict) and set(one) == {"text", "grade"} and isinstance(one["text"], str)):
            raise BadValue(f"{path}: [[answers]] has a text and the grade that it gives")
        if one["grade"] not in scale.grades:
            raise BadValue(f"{path}: [[answers]] gives the grade {one['grade']!r}, which [grades] has not")
    return JudgePrompt(template, scale, tuple((one["text"], one["grade"]) for one in answers))


def grade_scale(path: Path, own: Mapping[str, Any]) -> GradeScale:
    """The scale of a file; raises BadValue."""
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


@dataclass(frozen=True)
class GradeVerdict:
    """A grade of the scale, None where the answer has none, and what became of the answer."""

    grade: int | None
    kind: VerdictKind


def verdict_form(prompt: JudgePrompt, token: str) -> VerdictForm:
    """How answers to a prompt give their grade; token: that of the prompt, "" for one that is sent as published."""
    scale = prompt.scale
    front = scale.verdict.partition(GRADE_PLACE)[0]
    return VerdictForm(token, prompt.template.object_answer, front, scale.last)


def read_grade(
    reply: ChatReply, form: VerdictForm, scale: GradeScale, shown: Sequence[str] = ()
) -> GradeVerdict:
    """The grade that an answer gives; one beyond the scale is not moved into it. shown: see `read_verdict`."""
    grade, kind = read_verdict(
        reply,
        form,
        lambda text: (grade_of_number if scale.numeric else grade_of_label)(text, scale),
        _ENTRIES,
        shown,
    )
    return GradeVerdict(grade, kind)


def grade_of_number(text: str, scale: GradeScale) -> tuple[int | None, VerdictKind]:
    """The grade of a numeric label, such as "2" or "2 out of 3"."""
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return None, "duplicate" if several_numbers(text) else "missing"
    grades = {float(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    grade, top = grades.get(float(match["number"].replace(",", "."))), match["top"]
    if grade is None or (top is not None and int(top) != max(map(int, scale.labels))):
        return None, "out of range"
    return grade, "ok" if top is None else "repaired"


def grade_of_label(text: str, scale: GradeScale) -> tuple[int | None, VerdictKind]:
    """The grade of a label in words, whatever its case, spaces and hyphens."""
    grades = {_folded(label): grade for label, grade in zip(scale.labels, scale.grades, strict=True)}
    grade = grades.get(_folded(text))
    return grade, "missing" if grade is None else "ok"


def _folded(label: str) -> str:
    return re.sub(r"[\s_-]+", "", label).casefold()


def speaks_to_the_judge(passage: str, scale: GradeScale) -> bool:
    """Whether a passage holds an instruction, or a verdict such as "final score: 3"."""
    labels = "|".join(r"[\s_-]*".join(map(re.escape, label.split())) for label in scale.labels)
    words = re.findall(r"\w+", scale.verdict.partition(GRADE_PLACE)[0])
    named = "|".join(filter(None, [r"(?:final|overall) (?:score|grade|verdict)", r"\W{0,4}".join(words)]))
    formed = rf"\b(?:{named})[\s*_`#]{{0,12}}[:：=][\s*_`]{{0,12}}(?:{labels})(?![\w-])"
    return re.search(formed, passage, re.IGNORECASE) is not None or has_hidden_instruction(passage)


# Pairs to judge, with their texts.

SEED = 11
"""Of the draw of judged pairs, where not all are asked."""


@dataclass(frozen=True, eq=False)
class JudgingPairs:
    """Pairs of query and document that are to be judged, in the order in which they are asked.

    query, doc: int32[n], numbers in queries and docs; texts, instructions: the text of each query, and what documents
    are to be found for it, "" where nothing says so; passage: the text of a row's document; positive: the text of a
    document that people found relevant for a row's query, another than the row's own, None where there is none; people:
    judgments of people, None where there are none; systems: names of those that are measured by these; textless: pairs
    left out, since the collection has not their document.
    """

    name: str
    queries: Ids
    docs: Ids
    query: Int32
    doc: Int32
    texts: tuple[str, ...]
    instructions: tuple[str, ...]
    passage: Callable[[int], str]
    positive: Callable[[int], str | None]
    people: Qrels | None = None
    systems: tuple[str, ...] = ()
    textless: int = 0

    def __len__(self) -> int:
        return len(self.query)

    def names(self, row: int) -> tuple[str, str]:
        """The identifiers of a row's query and document."""
        return self.queries[int(self.query[row])], self.docs[int(self.doc[row])]


def is_sheet(path: Path) -> bool:
    """Whether a path is a folder of `weir labels pool`, or a sheet of one; raises BadValue for a folder of several."""
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
    """The pairs of a sheet of `weir labels pool` that nobody has graded yet; judged: those that somebody has.

    collection: where the texts are; None for those on the sheet. limit: pairs at most, the first ones. Raises
    FormatError for a line that is no pair, BadValue where no pair is left or a text is nowhere.
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
    if not (any(line.query_text for line in lines) and any(line.text for line in lines)):
        raise BadValue(
            f"{sheet} has not all texts of queries and documents; name the collection by --collection"
        )
    return JudgingPairs(
        str(about.get("subject", sheet.name)),
        queries,
        docs,
        query,
        doc,
        tuple({line.query: line.query_text for line in lines}.values()),
        ("",) * len(queries),
        lambda row: lines[row].text,
        lambda _: None,
        people,
        systems,
    )


def pairs_of_subject(
    subject: Subject, judged: bool = False, k: int = 10, limit: int | None = None
) -> JudgingPairs:
    """The unjudged documents among the first k of any run, as `weir labels pool` finds them.

    judged: the judged pairs instead; limit: pairs at most, unjudged ones those that narrow scores most, judged ones
    drawn from all alike. Raises BadValue where there is nothing to judge, and for texts that are not there.
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
    """Pairs with the texts of a collection; those whose document it has not are left out.

    Raises BadValue for a query without a text, and where no document is there.
    """
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
    return replace(pairs, positive=positives_of(pairs, corpus))


def _of_people(qrels: Qrels) -> Qrels | None:
    """The judgments that are not a model's, None where all are."""
    if qrels.origin is None or not (of_models := qrels.origin.of_models()).any():
        return qrels
    return None if of_models.all() else qrels.of_rows(~of_models)


def _text(corpus: Corpus, code: int) -> str:
    [text] = corpus.view_of(VIEW, np.array([code])).tolist()
    return str(text)


def positives_of(pairs: JudgingPairs, corpus: Corpus) -> Callable[[int], str | None]:
    """The best document of a row's query by its judgments, another than the row's; the first by identifier."""
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
        own = pairs.names(row)[1]
        return next((_text(corpus, at) for name, at in best[int(pairs.query[row])] if name != own), None)

    return positive


# A judge at work: prompts, grades, and one grade from several samples.

Combination: TypeAlias = Literal["mode", "mean"]
"""mode: the grade of most samples, of several such the lowest; mean: the mean of the grades."""
MAX_SAMPLES = 100
MAX_CONCURRENCY = 256


@dataclass(frozen=True)
class JudgeSettings:
    """How a judge is asked.

    samples: answers for each pair; combine: what becomes of them; temperature: None leaves it to the model; twice: the
    share of pairs that is judged a second time; probes: pairs that each probe changes; seed: of both draws; objective:
    whether the prompt says what the search is for; max_length: tokens of a passage at most, by estimate; max_tokens:
    of an answer, None for the prompt's own; concurrency: prompts at a time. Raises BadValue for what is out of range.
    """

    samples: int = 1
    combine: Combination = "mode"
    temperature: float | None = 0.0
    twice: float = 0.1
    probes: int = 10
    seed: int = 11
    objective: bool = True
    max_length: int | None = None
    max_tokens: int | None = None
    concurrency: int = 8

    def __post_init__(self) -> None:
        if self.combine not in get_args(Combination):
            raise UnknownName("combination of samples", str(self.combine), get_args(Combination))
        least = {"samples": 1, "probes": 0, "seed": 0, "max_length": 1, "max_tokens": 1, "concurrency": 1}
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
    """What a judge is shown: the query, what the search is for, the passage, and one that is known to be relevant."""

    query: str
    instruction: str
    passage: str
    positive: str = ""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Answers to be asked for: row, sample: int32[n]; content: what the judge is shown of a row."""

    row: Int32
    sample: Int32
    content: Callable[[int], ShownPair]

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class JudgeAnswer:
    """One answer: the grade that it gives, None without a verdict, its text, who says to have given it, and when.

    cut: whether it ended at max_tokens; flagged: whether the passage speaks to the judge.
    """

    row: int
    sample: int
    grade: int | None
    kind: VerdictKind
    text: str
    model: str
    time: str
    cut: bool = False
    flagged: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """A model, a prompt and the settings by which pairs are judged."""

    client: CachedChatClient
    prompt: JudgePrompt
    settings: JudgeSettings

    def ask(self, jobs: Jobs, progress: Callable[[int], None] | None = None) -> None:
        """Ask what is not answered yet; progress: called with how many are done.

        Raises ServiceError where the budget ends or an answer is missing; what was answered is stored.
        """
        self.client.replies(len(jobs), lambda number: self._chat(jobs, number), progress)

    def answers(self, jobs: Jobs) -> Iterator[JudgeAnswer | None]:
        """What was answered, in the order of the jobs; None for a job without an answer."""
        tokens: dict[int, str] = {}

        def prompt_of(number: int) -> ChatPrompt:
            prompt = self._chat(jobs, number)
            tokens[number] = prompt.token
            return prompt

        for number, stored in enumerate(self.client.stored(len(jobs), prompt_of)):
            if stored is None:
                yield None
                continue
            row, reply = int(jobs.row[number]), stored.reply
            pair = jobs.content(row)
            form = verdict_form(self.prompt, tokens.pop(number))
            verdict = read_grade(reply, form, self.prompt.scale, (pair.passage, pair.positive))
            yield JudgeAnswer(
                row,
                int(jobs.sample[number]),
                verdict.grade,
                verdict.kind,
                reply.text,
                reply.model,
                stored.time,
                reply.finish == "length",
                speaks_to_the_judge(pair.passage, self.prompt.scale),
            )

    def _chat(self, jobs: Jobs, number: int) -> ChatPrompt:
        pair, template = jobs.content(int(jobs.row[number])), self.prompt.template
        passage, positive = (
            shortened(text, self.settings.max_length) for text in (pair.passage, pair.positive)
        )
        places = {"query": pair.query, "passage": passage, "positive": positive}
        filled = template.filled(places, pair.instruction if self.settings.objective else "")
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
    """(the grade of each pair, how many had several modes, of which the lowest counts).

    grades: float64[n, samples], NaN without a verdict; a pair without any has none, NaN.
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
