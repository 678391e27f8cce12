"""A judge at work: what it is shown becomes prompts, its answers grades, and several samples one grade."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from weir.core.strings import Float64, Int32
from weir.errors import BadValue, UnknownName
from weir.judging.grade_verdict import read_grade, speaks_to_the_judge, verdict_form
from weir.judging.judge_prompt import JudgePrompt
from weir.llm.chat_shapes import ChatPrompt
from weir.llm.conversation import Conversation
from weir.llm.passage_text import shortened
from weir.llm.verdicts import VerdictKind

__all__ = ["Combination", "Jobs", "JudgeAnswer", "JudgeSettings", "Panel", "ShownPair", "combined"]

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
        for name, low in least.items():
            value = getattr(self, name)
            if not (type(value) is int and value >= low) and not (value is None and name.startswith("max_")):
                raise BadValue(f"{name} is {value!r}; expected a whole number from {low}")
        for name, most in (("samples", MAX_SAMPLES), ("concurrency", MAX_CONCURRENCY)):
            if getattr(self, name) > most:
                raise BadValue(f"{name} is {getattr(self, name)}; expected at most {most}")
        if not (type(self.twice) in (int, float) and 0 <= self.twice <= 1):
            raise BadValue(f"twice is {self.twice!r}; expected a share from 0 to 1")
        warmth = self.temperature
        if warmth is not None and not (type(warmth) in (int, float) and 0 <= warmth <= 2):
            raise BadValue(f"temperature is {warmth!r}; expected a number from 0 to 2, or None")


@dataclass(frozen=True)
class ShownPair:
    """What a judge is shown: the query, what the search is for, the passage, and one that is known to be relevant."""

    query: str
    told: str
    passage: str
    positive: str = ""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Answers to be asked for: row, sample: int32[n]; shown: what a row shows."""

    row: Int32
    sample: Int32
    shown: Callable[[int], ShownPair]

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

    talk: Conversation
    prompt: JudgePrompt
    settings: JudgeSettings

    def ask(self, jobs: Jobs, progress: Callable[[int], None] | None = None) -> None:
        """Ask what is not answered yet; progress: told how many are done.

        Raises ServiceError where the budget ends or an answer is missing; what was answered is kept.
        """
        self.talk.replies(len(jobs), lambda number: self._chat(jobs, number), progress)

    def answers(self, jobs: Jobs) -> Iterator[JudgeAnswer | None]:
        """What was answered, in the order of the jobs; None for a job without an answer."""
        tokens: dict[int, str] = {}

        def noted(number: int) -> ChatPrompt:
            made = self._chat(jobs, number)
            tokens[number] = made.token
            return made

        kept = self.talk.kept(len(jobs), noted)
        for number, one in enumerate(kept):
            if one is None:
                yield None
                continue
            row = int(jobs.row[number])
            shown = jobs.shown(row)
            form = verdict_form(self.prompt, tokens.pop(number))
            verdict = read_grade(one.reply, form, self.prompt.scale, (shown.passage, shown.positive))
            said = (one.reply.text, one.reply.model, one.time, one.reply.finish == "length")
            flagged = speaks_to_the_judge(shown.passage, self.prompt.scale)
            yield JudgeAnswer(row, int(jobs.sample[number]), verdict.grade, verdict.kind, *said, flagged)

    def _chat(self, jobs: Jobs, number: int) -> ChatPrompt:
        shown, template, most = (
            jobs.shown(int(jobs.row[number])),
            self.prompt.template,
            self.settings.max_length,
        )
        passage, positive = (shortened(text, most) for text in (shown.passage, shown.positive))
        given = {"query": shown.query, "passage": passage, "positive": positive}
        filled = template.filled(given, shown.told if self.settings.objective else "")
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
    found, tied = np.full(len(grades), np.nan), 0
    for row, given in enumerate(grades):
        known = given[~np.isnan(given)]
        if not len(known):
            continue
        values, counts = np.unique(known, return_counts=True)
        most = values[counts == counts.max()]
        tied += len(most) > 1
        found[row] = known.mean() if how == "mean" else most[0]
    return found, tied if how == "mode" else 0
