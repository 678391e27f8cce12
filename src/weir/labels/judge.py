"""Judging by a language model: every pair once, some twice."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.core.frames import plain
from weir.core.qrels import Qrels
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, ServiceError
from weir.files.atomic import atomic_dir, write_json
from weir.files.label_files import LABELS
from weir.files.text_files import read_toml
from weir.files.write import write_qrels
from weir.labels.judge_report import (
    PROBES,
    JudgeReport,
    Probe,
    ProbeResult,
    Trust,
    agreement_with_people,
    labels_of,
    probe_rows,
    probed,
    report_warnings,
    self_consistency,
)
from weir.labels.panel import (
    MODEL_ORIGIN,
    Jobs,
    JudgeAnswer,
    JudgePrompt,
    JudgeSettings,
    JudgingPairs,
    Panel,
    ShownPair,
    combined,
    speaks_to_the_judge,
)
from weir.models.chat import ChatModel, cached_chat
from weir.services.answers import ServiceUsage, answer_key
from weir.services.requests import Limits

# ----------
# Families of models: whether a judge and a system that it judges are made from the same language model.


TABLE = Path(__file__).with_name("model_families.toml")
MAX_NAMED_SYSTEMS = 3


@cache
def _families() -> dict[str, dict[str, Any]]:
    return read_toml(TABLE, "families of models")


def families_of(name: str) -> frozenset[str]:
    """The families that the name of a model, or of a system made of several, tells of."""
    lowered = name.casefold()

    def is_member(marks: dict[str, Any]) -> bool:
        within = any(mark in lowered for mark in marks.get("within", ()))
        word = (rf"(?<![a-z0-9]){re.escape(mark)}(?![a-z])" for mark in marks.get("word", ()))
        return within or any(re.search(pattern, lowered) for pattern in word)

    return frozenset(family for family, marks in _families().items() if is_member(marks))


def family_warnings(judge: str, systems: tuple[str, ...]) -> list[str]:
    """A line for each family that the judge shares with systems; judge: the model's name; systems: names."""
    found = []
    for family in sorted(families_of(judge)):
        shared = [system for system in systems if family in families_of(system)]
        if shared:
            named = ", ".join(shared[:MAX_NAMED_SYSTEMS])
            more = f" and {len(shared) - MAX_NAMED_SYSTEMS} more" if len(shared) > MAX_NAMED_SYSTEMS else ""
            found.append(
                f"the judge {judge} is of the family {family}, and so is what it judges: {named}{more}; models favour "
                "their own family, so let people judge a part of these"
            )
    return found


# ----------
# The folder of a judge's labels: labels.tsv, every answer behind them, and what came of the judging.
#
# labels.tsv BEIR's columns query-id, corpus-id, score, and the origin, llm:<model>:<prompt>-<digest of the prompt>
# judgments.jsonl a line for each answer: query, document, sample, grade (null without a verdict), verdict, text,
# model, answered_by (as the model names itself), prompt, digest, temperature, time; flagged where the passage speaks
# to the judge probes.jsonl the same of changed passages, with the probe's name judge.json counts by verdict, self-
# consistency, probes, warnings, tokens, dollars, settings


ANSWERS, PROBE_ANSWERS, REPORT = "judgments.jsonl", "probes.jsonl", "judge.json"


@dataclass(eq=False)
class LabelsWriter:
    """A folder of labels that is being written; facts: what stands on every line of an answer."""

    folder: Path
    facts: Mapping[str, object]
    files: dict[str, TextIO] = field(default_factory=dict)

    def answer(self, names: tuple[str, str], answer: JudgeAnswer, probe: str = "") -> None:
        """Write a line for an answer; names: of query and document; probe: what the passage was changed by."""
        line: dict[str, object] = {"query": names[0], "document": names[1]}
        line |= {"probe": probe} if probe else {}
        line |= {"sample": answer.sample, "grade": answer.grade, "verdict": answer.kind, "text": answer.text}
        line |= {"answered_by": answer.model, **self.facts, "time": answer.time or None}
        line |= {"flagged": True} if answer.flagged else {}
        text = json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8")
        self._file(PROBE_ANSWERS if probe else ANSWERS).write(text + "\n")

    def finish(self, labels: Qrels, report: JudgeReport, declared: str) -> None:
        """Write the labels and the report; declared: see `declared_key`."""
        self._file(ANSWERS)
        for file in self.files.values():
            file.close()
        write_qrels(labels, self.folder / LABELS)
        told = {"declared": declared, "complete": report.complete, **plain(report)}
        told |= {"grades": {f"{grade:g}": n for grade, n in report.grades}, "verdicts": dict(report.verdicts)}
        write_json(self.folder / REPORT, told)

    def _file(self, name: str) -> TextIO:
        if name not in self.files:
            self.files[name] = (self.folder / name).open("w", encoding="utf-8", newline="\n")
        return self.files[name]


def declared_key(declared: Mapping[str, object]) -> str:
    """What stands for everything that was asked for: model, prompt, settings, pairs."""
    return f"{answer_key(declared)[0]:016x}"


def check_free(folder: Path, declared: str) -> None:
    """Raise BadValue for a folder that holds something else than labels that the same command wrote."""
    if not folder.exists():
        return
    found: Any = None
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    if not isinstance(found, dict) or found.get("declared") != declared:
        raise BadValue(
            f"{folder} is there already, and not from this command with these pairs and settings; give another folder"
        )


@contextmanager
def labels_writer(folder: Path, facts: Mapping[str, object]) -> Iterator[LabelsWriter]:
    """A folder to be filled, which appears whole; raises StoreError when the disk refuses."""
    with atomic_dir(folder) as temporary:
        writer = LabelsWriter(temporary, facts)
        try:
            yield writer
        finally:
            for file in writer.files.values():
                file.close()


# ----------
# Judging by a language model: every pair asked, some of them twice, a few of them changed, and all of it written.


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
    use = ServiceUsage(judge.chat.model)
    with cached_chat(judge.chat, judge.settings.concurrency, use, limits=judge.limits) as talk:
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
        template, use, pairs = self.judge.prompt.template, self.panel.talk.usage, self.pairs
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
