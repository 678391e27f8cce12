"""Judge pairs by a language model, and write the labels."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from weir.algorithms import algorithm
from weir.core.frames import json_value
from weir.core.qrels import MODEL, Qrels
from weir.core.strings import Float64, Int64
from weir.errors import BadValue, FormatError, ServiceError
from weir.files.atomic import atomic_dir, own_file, write_json, write_text
from weir.files.json_record import read_json
from weir.files.label_files import LABELS
from weir.files.text_files import Watch
from weir.files.write import write_qrels
from weir.models.families import families_of
from weir.plugins.llm.chat import ChatModel, cached_chat
from weir.plugins.llm.judge_report import (
    PROBES,
    JudgeReport,
    LabelConsistency,
    ProbeResult,
    agreement_with_people,
    gold_rows,
    labels_of,
    probe_rows,
    probed,
    report_warnings,
    self_consistency,
    shown_answer,
)
from weir.plugins.llm.panel import (
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
from weir.plugins.llm.prompts import has_text
from weir.plugins.llm.wrong_answers import RULES, WrongAnswers, names_in
from weir.plugins.questions.decision import Decision
from weir.services.answers import ServiceUsage, answer_key
from weir.services.requests import Limits
from weir.stats.sequential import by_lot

MAX_NAMED_SYSTEMS = 3


def family_warnings(judge: str, systems: tuple[str, ...]) -> list[str]:
    """Return a warning for each model family, sorted, that the names of the judge and of judged systems share."""
    warnings = []
    for family in sorted(families_of(judge)):
        shared = [system for system in systems if family in families_of(system)]
        if shared:
            names = ", ".join(shared[:MAX_NAMED_SYSTEMS])
            more = f" and {len(shared) - MAX_NAMED_SYSTEMS} more" if len(shared) > MAX_NAMED_SYSTEMS else ""
            warnings.append(
                f"the judge {judge} is of the family {family}, and so is what it judges: {names}{more}; models favour "
                "their own family, so let people judge a part of these"
            )
    return warnings


# The work of a judge.
#
# The folder of its labels: labels.tsv has BEIR's columns and the origin, llm:<model>:<prompt>-<digest>;
# judgments.jsonl and probes.jsonl a line for each answer; judge.json the report.

ANSWERS, PROBE_ANSWERS, REPORT = "judgments.jsonl", "probes.jsonl", "judge.json"
DecisionRule: TypeAlias = Callable[[Qrels, Collection[str]], Decision | None]
"""(labels so far, queries with something left to judge) -> decision, or None."""


@dataclass(frozen=True)
class Judge:
    """A chat model with a judge's prompt, settings and limits."""

    chat: ChatModel
    prompt: JudgePrompt
    settings: JudgeSettings
    limits: Limits | None = None
    """Of cost and rate; None takes the environment's."""

    @property
    def origin(self) -> str:
        """The origin of each label: llm:MODEL:PROMPT-DIGEST."""
        template = self.prompt.template
        return "-".join(f"{MODEL}{self.chat.name}:{template.name}-{template.digest}".split())

    def _line_entries(self) -> dict[str, object]:
        template = self.prompt.template
        model = {"model": self.chat.name, "prompt": template.name, "digest": template.digest}
        return {**model, "temperature": self.settings.temperature}

    def declared(self, pairs: JudgingPairs) -> str:
        """Return 16 hex digits, a hash of the pairs and of everything that decides the answers."""
        settings = {**asdict(self.settings), "concurrency": 0, "verdicts": algorithm("llm verdicts")}
        names = [pairs.query_and_document(row) for row in range(len(pairs))]
        declared = {**self.chat.describe(), **self._line_entries(), "settings": settings, "pairs": names}
        return f"{answer_key(declared)[0]:016x}"


def judge_pairs(
    pairs: JudgingPairs,
    judge: Judge,
    out: Path,
    progress: Watch | None = None,
    rule: DecisionRule | None = None,
) -> JudgeReport:
    """Judge pairs, write the labels to the folder `out`, and return the report; the same call continues.

    rule: judge queries in random order until it returns a decision; None judges all.

    Raises ServiceError, after writing the labels so far, if the budget ends or answers are missing; BadValue for a
    folder of other labels, or if no pair can be asked about.
    """
    declared = judge.declared(pairs)
    if out.exists():
        earlier: Any = None
        with suppress(OSError, FormatError):
            earlier = read_json(out / REPORT)
        if not isinstance(earlier, dict) or earlier.get("declared") != declared:
            raise BadValue(
                f"{out} is there already, and not from this command with these pairs and settings; give another folder"
            )
    rows = np.arange(len(pairs))
    if judge.prompt.needs_positive:
        rows = np.array([row for row in range(len(pairs)) if pairs.positive(row) is not None], np.int64)
    wanted = len(rows)
    rows, empty = _with_texts(pairs, rows)
    if wanted and not len(rows):
        raise BadValue(
            f"{pairs.name}: nothing can be judged: each pair misses the text of its query or document"
        )
    if not len(rows):
        raise BadValue(
            f"the prompt {judge.prompt.template.name} shows a document that people found relevant, and no query has "
            "another one; `collection`, or targets with judgments, say which are"
        )
    usage = ServiceUsage(judge.chat.model)
    with cached_chat(judge.chat, judge.settings.concurrency, usage, limits=judge.limits) as client:
        work = _Work(pairs, judge, Panel(client, judge.prompt, judge.settings), rows, progress, empty)
        stopped = None if rule is None else work.decide(rule)
        stopped = stopped or work.ask("judging", work.jobs())
        if stopped is not None and all(answer is None for answer in work.panel.stored_answers(work.jobs())):
            raise stopped
        with atomic_dir(out) as folder:
            report, labels, stopped = work.write_labels(folder, stopped)
            write_qrels(labels, folder / LABELS)
            about = {"declared": declared, "complete": report.unanswered == 0, **json_value(report)}
            about["grades"] = {f"{grade:g}": n for grade, n in report.grades}
            write_json(folder / REPORT, about | {"verdicts": dict(report.verdicts)})
    if stopped is not None:
        raise ServiceError(
            f"{stopped}; {out} holds {report.labelled:,} labels of {len(pairs):,} pairs so far"
        )
    return report


def _with_texts(pairs: JudgingPairs, rows: Int64) -> tuple[Int64, tuple[int, int]]:
    query = np.array([not has_text(pairs.texts[int(pairs.query[row])]) for row in rows.tolist()], np.bool_)
    passage = np.array([not has_text(pairs.passage(row)) for row in rows.tolist()], np.bool_) & ~query
    return rows[~(query | passage)], (int(query.sum()), int(passage.sum()))


@dataclass(eq=False)
class _Work:
    pairs: JudgingPairs
    judge: Judge
    panel: Panel
    rows: Int64
    """int64[m], the pairs to ask about."""
    progress: Watch | None
    empty: tuple[int, int] = (0, 0)
    """Pairs left out because the query, or else the document, has no text."""
    spared: int = 0
    """Pairs not asked because of a decision."""
    decision: Decision | None = None
    verdicts: Counter[str] = field(default_factory=Counter)
    """Answers by kind, without probes."""
    unread: Counter[str] = field(default_factory=Counter)
    """Answers without a grade, shortened."""
    counts: Counter[str] = field(default_factory=Counter)
    """"answers", "missing" ones, and "cut": without a grade, ended at max_tokens."""

    def content(self, row: int) -> ShownPair:
        pairs = self.pairs
        positive = pairs.positive(row) if self.judge.prompt.needs_positive else None
        query = int(pairs.query[row])
        return ShownPair(pairs.texts[query], pairs.instructions[query], pairs.passage(row), positive or "")

    def jobs(self) -> Jobs:
        settings = self.judge.settings
        count = math.ceil(settings.twice * len(self.rows))
        twice = np.random.default_rng(settings.seed).permutation(self.rows)[:count]
        each = np.where(np.isin(self.rows, twice), 2, 1) * settings.samples
        sample = np.concatenate([np.arange(n) for n in each])
        return Jobs(np.repeat(self.rows, each).astype(np.int32), sample.astype(np.int32), self.content)

    def ask(self, stage: str, jobs: Jobs) -> ServiceError | None:
        progress = self.progress
        try:
            self.panel.ask(jobs, progress and (lambda done: progress(stage, done, len(jobs))))
        except ServiceError as error:
            return error
        return None

    def decide(self, rule: DecisionRule) -> ServiceError | None:
        pairs, samples = self.pairs, self.judge.settings.samples
        rows_of: dict[str, list[int]] = {}
        for row in self.rows.tolist():
            rows_of.setdefault(pairs.query_and_document(row)[0], []).append(row)
        left, asked, stopped = by_lot(rows_of), list[int](), None
        grades = np.full(len(pairs), np.nan)
        while left and stopped is None and (self.decision is None or self.decision.decided is None):
            batch = list[int]()
            while left and len(batch) < self.judge.settings.concurrency:
                batch += rows_of[left.pop(0)]
            rows = np.repeat(np.array(batch, np.int32), samples)
            jobs = Jobs(rows, np.tile(np.arange(samples, dtype=np.int32), len(batch)), self.content)
            stopped = self.ask("judging", jobs)
            found = np.full((len(batch), samples), np.nan)
            for number, answer in enumerate(self.panel.stored_answers(jobs)):
                if answer is not None and answer.grade is not None:
                    found[divmod(number, samples)] = answer.grade
            grades[batch] = combined(found, self.judge.settings.combine)[0]
            asked += batch
            if stopped is None:
                self.decision = rule(labels_of(pairs, grades), left)
        self.spared = len(self.rows) - len(asked)
        self.rows = np.sort(np.array(asked, np.int64))
        return stopped

    def answer_line(self, row: int, answer: JudgeAnswer, probe: Mapping[str, str]) -> str:
        query, document = self.pairs.query_and_document(row)
        facts: dict[str, object] = {"query": query, "document": document, **probe}
        facts |= {"sample": answer.sample, "grade": answer.grade, "verdict": answer.kind, "text": answer.text}
        facts |= {"answered_by": answer.model, **self.judge._line_entries(), "time": answer.time or None}
        facts |= {"flagged": True} if answer.flagged else {}
        line = json.dumps(facts, ensure_ascii=False) + "\n"
        return line.encode("utf-8", "backslashreplace").decode("utf-8")

    def write_labels(
        self, folder: Path, stopped: ServiceError | None
    ) -> tuple[JudgeReport, Qrels, ServiceError | None]:
        settings, scale = self.judge.settings, self.judge.prompt.scale
        samples = np.full((2, len(self.pairs), settings.samples), np.nan)
        with (folder / ANSWERS).open("w", encoding="utf-8", newline="\n") as file:
            for answer in self.panel.stored_answers(self.jobs()):
                self.counts["missing"] += answer is None
                if answer is None:
                    continue
                self.counts["answers"] += 1
                self.counts["cut"] += answer.cut and answer.grade is None
                self.verdicts[answer.kind] += 1
                if answer.grade is None:
                    self.unread[shown_answer(answer.text)] += 1
                file.write(self.answer_line(answer.row, answer, {}))
                turn, sample = divmod(answer.sample, settings.samples)
                samples[turn, answer.row, sample] = math.nan if answer.grade is None else answer.grade
        grades, tied = combined(samples[0], settings.combine)
        consistency = self_consistency(self.pairs, grades, combined(samples[1], settings.combine)[0])
        probes: tuple[ProbeResult, ...] = ()
        wrong: tuple[WrongAnswers, ...] = ()
        if stopped is None and (settings.probes or settings.wrong):
            noise = 0.0 if consistency is None else consistency.rose
            probes, wrong, stopped = self.probe(folder / PROBE_ANSWERS, grades, noise)
        people = agreement_with_people(self.pairs, grades, scale)
        report = replace(self.report(grades, tied, consistency, probes, people), wrong=wrong)
        return report, labels_of(self.pairs, grades).labelled(self.judge.origin), stopped

    def probe(
        self, path: Path, grades: Float64, noise: float
    ) -> tuple[tuple[ProbeResult, ...], tuple[WrongAnswers, ...], ServiceError | None]:
        settings, scale = self.judge.settings, self.judge.prompt.scale
        cases: list[tuple[str, int, ShownPair]] = []
        for name, probe in PROBES.items() if settings.probes else ():
            changed: list[tuple[str, int, ShownPair]] = []
            for row in probe_rows(probe, grades, scale, settings.seed):
                if len(changed) == settings.probes:
                    break
                pair = self.content(row)
                passage = probe.change(pair.passage, pair.query, scale)
                if passage is not None:
                    changed.append((name, row, replace(pair, passage=passage)))
            cases += changed
        cases += self.near_misses(grades) if settings.wrong else []
        rows = np.repeat(np.arange(len(cases), dtype=np.int32), settings.samples)
        sample = np.tile(np.arange(settings.samples, dtype=np.int32), len(cases))
        jobs = Jobs(rows, sample, lambda case: cases[case][2])
        stopped = self.ask("probing", jobs)
        samples, lines = np.full((len(cases), settings.samples), np.nan), list[str]()
        for answer in self.panel.stored_answers(jobs):
            self.counts["missing"] += answer is None
            if answer is not None:
                self.counts["answers"] += 1
                name, row, _ = cases[answer.row]
                lines.append(self.answer_line(row, answer, {"probe": name}))
                samples[answer.row, answer.sample] = math.nan if answer.grade is None else answer.grade
        if lines:
            write_text(own_file(path), "".join(lines))
        after, _ = combined(samples, settings.combine)
        before = grades[[row for _, row, _ in cases]] if cases else np.empty(0)
        names = np.array([name for name, _, _ in cases])
        results = [
            probed(name, before[names == name], after[names == name], noise)
            for name in PROBES
            if settings.probes
        ]
        wrong = [
            WrongAnswers.of(name, after[names == name], scale.relevant_from)
            for name in RULES
            if settings.wrong
        ]
        return tuple(results), tuple(wrong), stopped

    def near_misses(self, grades: Float64) -> list[tuple[str, int, ShownPair]]:
        settings, cases = self.judge.settings, list[tuple[str, int, ShownPair]]()
        gold = [
            (row, self.content(row))
            for row in gold_rows(self.pairs, grades, self.judge.prompt.scale, settings.seed)
        ]
        names = sorted({name for _, pair in gold for name in names_in(pair.passage)})
        for kind, rule in RULES.items():
            missed = ((row, pair, rule(pair.passage, pair.query, names)) for row, pair in gold)
            made = (
                (kind, row, replace(pair, passage=text)) for row, pair, text in missed if text is not None
            )
            cases += islice(made, settings.wrong)
        return cases

    def report(
        self,
        grades: Float64,
        tied: int,
        consistency: LabelConsistency | None,
        probes: tuple[ProbeResult, ...],
        people: LabelConsistency | None,
    ) -> JudgeReport:
        template, client, pairs = self.judge.prompt.template, self.panel.client, self.pairs
        values, counts = np.unique(grades[~np.isnan(grades)], return_counts=True)
        scale = self.judge.prompt.scale
        _, first = np.unique(pairs.doc[self.rows], return_index=True)  # a row of each document
        rows = self.rows[np.sort(first)].tolist()
        flagged = [row for row in rows if speaks_to_the_judge(pairs.passage(row), scale)]
        report = JudgeReport(
            subject=pairs.name,
            model=self.judge.chat.name,
            prompt=template.name,
            digest=template.digest,
            answered_by=", ".join(sorted(client.versions)),
            pairs=len(pairs),
            queries=len(np.unique(pairs.query)),
            labelled=int(counts.sum()),
            left_out=len(pairs) - len(self.rows) - sum(self.empty) - self.spared,
            empty_queries=self.empty[0],
            empty_passages=self.empty[1],
            unanswered=self.counts["missing"],
            grades=tuple(zip(values.tolist(), counts.tolist(), strict=True)),
            verdicts=tuple(sorted(self.verdicts.items())),
            cut=self.counts["cut"],
            tied=tied,
            flagged=len(flagged),
            consistency=consistency,
            probes=probes,
            people=people,
            warnings=(),
            answers=self.counts["answers"],
            tokens=client.usage.tokens,
            answer_tokens=client.usage.answer_tokens,
            dollars=client.usage.dollars,
            settings=self.judge.settings,
            spared=self.spared,
            decision=self.decision,
        )
        warnings = [
            *report_warnings(report, pairs.textless, self.unread),
            *family_warnings(self.judge.chat.name, pairs.systems),
        ]
        if flagged:
            others = f" and {len(flagged) - 1:,} others" if len(flagged) > 1 else ""
            warnings.append(
                f"possible prompt injection in document '{pairs.query_and_document(flagged[0])[1]}'{others}"
            )
        return replace(report, warnings=tuple(warnings))
