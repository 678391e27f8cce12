"""Judging by a language model: every pair asked, some of them twice, a few of them changed, and all of it written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.core.qrels import Qrels
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, ServiceError
from weir.judging.grade_verdict import speaks_to_the_judge
from weir.judging.judge_prompt import JudgePrompt
from weir.judging.judge_report import (
    JudgeReport,
    Trust,
    agreement_with_people,
    labels_of,
    report_warnings,
    self_consistency,
)
from weir.judging.judging_pairs import MODEL_ORIGIN, JudgingPairs
from weir.judging.labels_folder import LabelsWriter, check_free, declared_key, labels_writer
from weir.judging.model_families import family_warnings
from weir.judging.panel import Jobs, JudgeAnswer, JudgeSettings, Panel, ShownPair, combined
from weir.judging.probes import PROBES, Probe, ProbeResult, probe_rows, probed
from weir.llm.chat_model import ChatModel
from weir.llm.conversation import conversation
from weir.services.asking import ServiceUse
from weir.services.limits import Limits

__all__ = ["Judge", "judge_pairs"]

Told: TypeAlias = Callable[[str, int, int], None]
"""A progress: what is being done, how much of it is done, of how much in all."""


@dataclass(frozen=True)
class Judge:
    """Who judges: a model, a prompt and settings; limits: what it may cost, None for the environment's."""

    chat: ChatModel
    prompt: JudgePrompt
    settings: JudgeSettings
    limits: Limits | None = None

    @property
    def origin(self) -> str:
        """Where its labels come from."""
        template = self.prompt.template
        return "-".join(f"{MODEL_ORIGIN}{self.chat.name}:{template.name}-{template.digest}".split())

    def facts(self) -> dict[str, object]:
        """What stands on the line of every answer."""
        template = self.prompt.template
        named = {"model": self.chat.name, "prompt": template.name, "digest": template.digest}
        return {**named, "temperature": self.settings.temperature}

    def declared(self, pairs: JudgingPairs) -> str:
        """The key of everything that decides what is asked."""
        asked = {**asdict(self.settings), "concurrency": 0, "verdicts": algorithm("llm verdicts")}
        names = [pairs.names(row) for row in range(len(pairs))]
        return declared_key({**self.chat.describe(), **self.facts(), "settings": asked, "pairs": names})


@dataclass(eq=False)
class _Tally:
    """What became of the answers: verdicts by kind, those that max_tokens cut, and answers that are missing."""

    verdicts: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    cut: int = 0
    missing: int = 0

    def count(self, answer: JudgeAnswer | None, probing: bool = False) -> None:
        """An answer was read; those of probes are no part of the verdicts."""
        self.missing += answer is None
        if answer is not None:
            self.answers += 1
            if not probing:
                self.verdicts[answer.kind] += 1
                self.cut += answer.cut and answer.grade is None


def judge_pairs(pairs: JudgingPairs, judge: Judge, out: Path, told: Told | None = None) -> JudgeReport:
    """Judge pairs and write the labels to a folder, which appears whole.

    What was answered is never asked again, so the same call continues where one ended. Raises BadValue for a folder
    that holds other labels and where nothing can be asked; ServiceError where the budget ends or answers are missing,
    after writing the labels that are there; StoreError when the disk refuses.
    """
    declared = judge.declared(pairs)
    check_free(out, declared)
    rows = _askable(pairs, judge.prompt)
    use = ServiceUse(judge.chat.model)
    with conversation(judge.chat, judge.settings.concurrency, use, limits=judge.limits) as talk:
        work = _Work(pairs, judge, Panel(talk, judge.prompt, judge.settings), rows, told)
        stopped = work.ask("judging", work.jobs())
        if stopped is not None and not work.begun():
            raise stopped
        with labels_writer(out, judge.facts()) as writer:
            report, labels, ended = work.written(writer, stopped)
            writer.finish(labels, report, declared)
    if ended is not None:
        raise ServiceError(f"{ended}; {out} holds {report.labelled:,} labels of {len(pairs):,} pairs so far")
    return report


def _askable(pairs: JudgingPairs, prompt: JudgePrompt) -> Int64:
    """The pairs of which the prompt can ask; raises BadValue where it can ask of none."""
    rows = np.arange(len(pairs))
    if prompt.needs_positive:
        rows = np.array([row for row in range(len(pairs)) if pairs.positive(row) is not None], np.int64)
    if not len(rows):
        raise BadValue(
            f"the prompt {prompt.template.name} shows a document that people found relevant, and no query has another "
            "one; --collection, or targets with judgments, say which are"
        )
    return rows


@dataclass(frozen=True, eq=False)
class _Work:
    """One judging; rows: int64[m], the pairs that are asked; tally: what became of the answers."""

    pairs: JudgingPairs
    judge: Judge
    panel: Panel
    rows: Int64
    told: Told | None
    tally: _Tally = field(default_factory=_Tally)

    def shown(self, row: int) -> ShownPair:
        """What the judge is shown of a pair."""
        pairs = self.pairs
        positive = pairs.positive(row) if self.judge.prompt.needs_positive else None
        query = int(pairs.query[row])
        return ShownPair(pairs.asked[query], pairs.told[query], pairs.passage(row), positive or "")

    def jobs(self) -> Jobs:
        """Every pair with its samples, and behind them those of its second judging where it is judged twice."""
        settings = self.judge.settings
        count = math.ceil(settings.twice * len(self.rows))
        twice = np.random.default_rng(settings.seed).permutation(self.rows)[:count]
        each = np.where(np.isin(self.rows, twice), 2, 1) * settings.samples
        sample = np.concatenate([np.arange(n) for n in each])
        return Jobs(np.repeat(self.rows, each).astype(np.int32), sample.astype(np.int32), self.shown)

    def ask(self, stage: str, jobs: Jobs) -> ServiceError | None:
        """Ask; the error that ended it, None where all is answered."""
        told = self.told
        telling = None if told is None else lambda done: told(stage, done, len(jobs))
        try:
            self.panel.ask(jobs, telling)
        except ServiceError as error:
            return error
        return None

    def begun(self) -> bool:
        """Whether anything is answered."""
        return any(answer is not None for answer in self.panel.answers(self.jobs()))

    def written(
        self, writer: LabelsWriter, stopped: ServiceError | None
    ) -> tuple[JudgeReport, Qrels, ServiceError | None]:
        """The report, the labels, and what ended the asking; every answer is written on the way."""
        settings, scale = self.judge.settings, self.judge.prompt.scale
        given = np.full((2, len(self.pairs), settings.samples), np.nan)
        for answer in self.panel.answers(self.jobs()):
            self.tally.count(answer)
            if answer is not None:
                writer.answer(self.pairs.names(answer.row), answer)
                turn, sample = divmod(answer.sample, settings.samples)
                given[turn, answer.row, sample] = math.nan if answer.grade is None else answer.grade
        grades, tied = combined(given[0], settings.combine)
        consistency = self_consistency(self.pairs, grades, combined(given[1], settings.combine)[0])
        probes: tuple[ProbeResult, ...] = ()
        if stopped is None and settings.probes:
            noise = 0.0 if consistency is None else consistency.rose
            probes, stopped = self.probe(writer, grades, noise)
        people = agreement_with_people(self.pairs, grades, scale)
        report = self._report(grades, tied, Trust(consistency, probes, people))
        return report, labels_of(self.pairs, grades).labelled(self.judge.origin), stopped

    def probe(
        self, writer: LabelsWriter, grades: Float64, noise: float
    ) -> tuple[tuple[ProbeResult, ...], ServiceError | None]:
        """What probes show, and what ended the asking; noise: the share of grades that rise when nothing is changed."""
        settings, scale = self.judge.settings, self.judge.prompt.scale
        cases = [
            (name, row, changed)
            for name, probe in PROBES.items()
            for row, changed in self._changed(probe, probe_rows(probe, grades, scale, settings.seed))
        ]
        shown = lambda case: replace(self.shown(cases[case][1]), passage=cases[case][2])  # noqa: E731  of these cases
        row = np.repeat(np.arange(len(cases), dtype=np.int32), settings.samples)
        jobs = Jobs(row, np.tile(np.arange(settings.samples, dtype=np.int32), len(cases)), shown)
        stopped = self.ask("probing", jobs)
        given = np.full((len(cases), settings.samples), np.nan)
        for answer in self.panel.answers(jobs):
            self.tally.count(answer, probing=True)
            if answer is not None:
                name, pair, _ = cases[answer.row]
                writer.answer(self.pairs.names(pair), answer, name)
                given[answer.row, answer.sample] = math.nan if answer.grade is None else answer.grade
        after, _ = combined(given, settings.combine)
        before = grades[[row for _, row, _ in cases]] if cases else np.empty(0)
        named = np.array([name for name, _, _ in cases])
        results = [probed(name, before[named == name], after[named == name], noise) for name in PROBES]
        return tuple(results), stopped

    def _changed(self, probe: Probe, rows: list[int]) -> list[tuple[int, str]]:
        """The first pairs that a probe can change, with the changed passages."""
        found: list[tuple[int, str]] = []
        for row in rows:
            if len(found) == self.judge.settings.probes:
                break
            shown = self.shown(row)
            changed = probe.change(shown.passage, shown.query, self.judge.prompt.scale)
            if changed is not None:
                found.append((row, changed))
        return found

    def _report(self, grades: Float64, tied: int, trust: Trust) -> JudgeReport:
        template, use, pairs = self.judge.prompt.template, self.panel.talk.use, self.pairs
        values, counts = np.unique(grades[~np.isnan(grades)], return_counts=True)
        flagged = self._flagged()
        report = JudgeReport(
            subject=pairs.name,
            model=self.judge.chat.name,
            prompt=template.name,
            digest=template.digest,
            answered_by=", ".join(sorted(self.panel.talk.versions)),
            pairs=len(pairs),
            queries=len(np.unique(pairs.query)),
            labelled=int(counts.sum()),
            left_out=len(pairs) - len(self.rows),
            unanswered=self.tally.missing,
            grades=tuple(zip(values.tolist(), counts.tolist(), strict=True)),
            verdicts=tuple(sorted(self.tally.verdicts.items())),
            cut=self.tally.cut,
            tied=tied,
            flagged=len(flagged),
            consistency=trust.consistency,
            probes=trust.probes,
            people=trust.people,
            warnings=(),
            answers=self.tally.answers,
            tokens=use.tokens,
            answer_tokens=use.answer_tokens,
            dollars=use.dollars,
            settings=self.judge.settings,
        )
        said = [
            *report_warnings(report, pairs.textless),
            *family_warnings(self.judge.chat.name, pairs.systems),
        ]
        if flagged:
            others = f" and {len(flagged) - 1:,} others" if len(flagged) > 1 else ""
            said.append(f"the judge is spoken to by document '{pairs.names(flagged[0])[1]}'{others}")
        return replace(report, warnings=tuple(said))

    def _flagged(self) -> list[int]:
        """A row of each document that speaks to the judge."""
        _, first = np.unique(self.pairs.doc[self.rows], return_index=True)
        scale = self.judge.prompt.scale
        rows = self.rows[np.sort(first)].tolist()
        return [row for row in rows if speaks_to_the_judge(self.pairs.passage(row), scale)]
