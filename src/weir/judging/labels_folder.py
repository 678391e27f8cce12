"""The folder of a judge's labels: labels.tsv, every answer behind them, and what came of the judging.

labels.tsv        BEIR's columns query-id, corpus-id, score, and the origin, llm:<model>:<prompt>-<digest of the prompt>
judgments.jsonl   a line for each answer: query, document, sample, grade (null without a verdict), verdict, text, model,
                  answered_by (the model as it names itself), prompt, digest, temperature, time
probes.jsonl      the same of changed passages, with the probe's name
judge.json        counts by verdict, self-consistency, probes, warnings, tokens, dollars, settings
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from weir.core.plain_values import plain
from weir.core.qrels import Qrels
from weir.errors import BadValue
from weir.io.runs.labels import LABELS
from weir.io.runs.write import write_qrels
from weir.io.storage.atomic import atomic_dir, write_json
from weir.judging.judge_report import JudgeReport
from weir.judging.panel import JudgeAnswer
from weir.services.answers import answer_key

__all__ = ["ANSWERS", "PROBE_ANSWERS", "REPORT", "LabelsWriter", "check_free", "labels_writer"]

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
