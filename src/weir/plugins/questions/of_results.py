"""The questions that a results folder alone answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weir.api.comparisons import MAX_DROP, cases_to_gate, gate, gate_rules
from weir.api.result_set import KINDS, ResultSet
from weir.core.frames import rebuilt
from weir.core.rounding import counted
from weir.core.run import Run
from weir.core.scores import Note
from weir.core.tables import table_of
from weir.datasets.load import Dataset
from weir.errors import BadValue, FormatError, LossWarning, WeirError, give_warning
from weir.experiment.audit_subjects import subject_of_cells
from weir.experiment.results import ORDER, ResultCell, name_given, without_command
from weir.files.beside import RULES_FILE
from weir.files.ranking_file import RankingFile
from weir.files.runs import read_run
from weir.files.text_files import read_text
from weir.measures.measure import direction
from weir.plugins.questions.document_rules import RULE_BREACHES, RULES, RuleBreaches, breaches_of
from weir.plugins.questions.fitness import CHANGE, FITNESSES, fitness_of
from weir.plugins.questions.funnel import FUNNELS
from weir.plugins.questions.funnel_section import collection_funnels
from weir.plugins.questions.gate_looks import SEQUENTIAL_GATES, look, read_seen, seen_rules, sequential_gates
from weir.plugins.questions.migration import MIGRATIONS, MigrationRules, migration_of
from weir.plugins.questions.system_stages import COMPOSED
from weir.plugins.report.sections import Section, chosen_clause
from weir.plugins.report.study import RUN_BYTES, Study
from weir.systems.expression import parse_system

RULED_DEPTH = 10
"""Number of first documents among which none may break a rule."""
STORED_BYTES = 1 << 25
"""Largest file that is read as a stored answer."""


@dataclass(frozen=True, eq=False)
class Held:
    """The results of a collection, as input of a question."""

    root: Path
    """The results folder."""
    cells: tuple[ResultCell, ...]
    """All systems of the collection."""
    compared: tuple[ResultCell, ...]
    """The old and the new system of a question about two; the only one of a collection with one."""
    dataset: Dataset | None
    """None if the collection is not on this machine as it was measured."""
    measure: str
    """"" without judgments."""
    called: Callable[[str], str]
    """Returns the short name of a system, by its label."""
    change: float = CHANGE
    """The difference that is to be shown."""
    max_drop: float = MAX_DROP
    """The largest drop of the mean that is accepted."""

    def _need_dataset(self) -> Dataset:
        if self.dataset is None:
            raise BadValue(f"{self.cells[0].dataset} is not on this machine as it was measured")
        return self.dataset

    def _need_two(self) -> tuple[ResultCell, ResultCell]:
        """Return the results of the old and the new system; raises BadValue for a single one."""
        if len(self.compared) < 2:
            raise BadValue("the folder has one system of this collection; two are compared")
        return self.compared[0], self.compared[1]

    def _need_scored(self) -> tuple[ResultCell, ResultCell]:
        """Return the results of the old and the new system; raises BadValue for a single one, or without
        judgments."""
        if not self.measure:
            raise BadValue("nothing is judged yet")
        return self._need_two()


@dataclass(frozen=True)
class Question:
    """A question about a results folder, and the function that answers it."""

    name: str
    title: str
    about: str
    """What the answer says, as a sentence."""
    kinds: tuple[str, ...]
    """Kinds of results that are answers, if they are stored in the folder."""
    ask: Callable[[Held], ResultSet[Any]]
    """Answers the question; raises the WeirErrors of what is missing."""
    command: Callable[[Held], str]
    of_two: bool = False
    """True if it is about an old and a new system."""
    amount: str = ""
    """The number of `Held` that it is asked with, `change` or `max_drop`; "" for none."""

    @property
    def _only_stored(self) -> bool:
        return self.amount == "max_drop"


# ----------
# What a folder answers.


def _funnel(held: Held) -> ResultSet[Any]:
    found, failed = collection_funnels(held.cells, held._need_dataset(), held.measure, held.called)
    if not found:
        lacking = "no system here has several stages; the rankings of any pipeline's stages can be followed"
        raise BadValue("; ".join(failed) or lacking)
    return ResultSet(FUNNELS, tuple(found), tuple(map(Note, failed)))


def _fitness(held: Held) -> ResultSet[Any]:
    dataset = held._need_dataset()
    if len(held.cells) < 2 or not held.measure:
        raise BadValue("it is seen by the rankings of two systems, and by judgments")
    size = sum(cell.run.stat().st_size for cell in held.cells)
    if size > RUN_BYTES:
        raise BadValue(f"the rankings have {size / 1e9:.1f} GB, which is much to read for a page")
    subject = subject_of_cells(dataset, held.cells)
    names = {cell.called: held.called(cell.label) for cell in held.cells}
    subject = replace(subject, runs={names[name]: run for name, run in subject.runs.items()})
    return ResultSet(FITNESSES, (fitness_of(subject, (held.measure,), held.change),))


def _rules(held: Held) -> ResultSet[Any]:
    dataset = held._need_dataset()
    if not held.measure or dataset.qrels.beside is None:
        raise BadValue(
            f"no {RULES_FILE} stands in the folder of the collection; docs/questions.md says what it holds"
        )
    found = []
    for cell in held.cells:
        breaches = breaches_of(_first_documents(cell, RULED_DEPTH), dataset.qrels, RULED_DEPTH)
        name, queries = held.called(cell.label), len(dataset.qrels.queries)
        found.append(RuleBreaches(cell.dataset, name, RULED_DEPTH, queries, breaches))
    return ResultSet(RULE_BREACHES, tuple(found))


def _gate(held: Held) -> ResultSet[Any]:
    old, new = held._need_scored()
    return gate(str(old.folder), str(new.folder), measures=held.measure, max_drop=held.max_drop)


def _decided(held: Held) -> ResultSet[Any]:
    old, new = held._need_scored()
    rules = gate_rules(held.max_drop)
    cases, notes = cases_to_gate((str(old.folder), str(new.folder), None), (held.measure,), rules)
    gates = sequential_gates(look(held.root, [], cases), rules)
    return ResultSet(SEQUENTIAL_GATES, tuple(gates), tuple(notes))


def _migration(held: Held) -> ResultSet[Any]:
    rules, dataset = MigrationRules(), held.dataset
    old, new = held._need_two()
    before, after = (
        replace(_first_documents(cell, rules.k), name=held.called(cell.label)) for cell in (old, new)
    )
    queries = None if dataset is None or dataset.layout.queries is None else dataset.all_queries
    found = migration_of(before, after, rules, queries=queries)
    return ResultSet(MIGRATIONS, (replace(found, dataset=old.dataset),))


def _filters(_: Held) -> ResultSet[Any]:
    raise BadValue("what a filter costs is seen by searching with filters, which a page does not do")


def _first_documents(cell: ResultCell, k: int) -> Run:
    path = cell.run
    return RankingFile(path).top(k) if path.suffix == ".trec" else read_run(path).top(k)


# ----------
# The questions: the gate, the others in the order of docs/questions.md.


def _command(*parts: str) -> str:
    return " ".join(part if part.startswith("-") else shlex.quote(part) for part in parts)


def _searched_as(cell: ResultCell) -> str:
    """Return a system's name for commands, or run(...) of its rankings if it is an object of a program."""
    return f'run("{cell.run}")' if without_command(cell) else cell.system


def _funnel_command(held: Held) -> str:
    staged = next(filter(_staged, held.cells), None)
    if staged is None:
        place = name_given(held.cells[0])
        return _command("weir", "study", "funnel", place, "first.trec", "reranked.trec")
    return _command(
        "weir",
        "study",
        "funnel",
        "-d",
        name_given(staged),
        "-s",
        staged.system,
        "--results",
        str(held.root),
    )


def _staged(cell: ResultCell) -> bool:
    try:
        return not without_command(cell) and isinstance(parse_system(cell.system), COMPOSED)
    except WeirError:  # one of somebody's own, which is not known here
        return False


def _rules_command(held: Held) -> str:
    measures = (part for name in RULES.values() for part in ("-m", f"{name}@{RULED_DEPTH}"))
    systems = (part for cell in held.cells[:2] for part in ("-s", _searched_as(cell)))
    return _command("weir", "run", "-d", name_given(held.cells[0]), *systems, *measures, "-o", str(held.root))


def _gate_command(held: Held) -> str:
    folders = (str(cell.folder) for cell in held.compared)
    measure = ("-m", held.measure) if held.measure else ()
    return _command("weir", "gate", *folders, *measure, "--max-drop", f"{held.max_drop:g}")


def _decided_command(held: Held) -> str:
    return f"{_gate_command(held)} {_command('--sequential', str(held.root / 'looks.json'))}"


def _fitness_command(held: Held) -> str:
    return _command("weir", "audit", str(held.root), "--fit", "--change", f"{held.change:g}")


def _filters_command(held: Held) -> str:
    named = [
        cell.system for cell in held.cells if cell.system.startswith("dense(") and not without_command(cell)
    ]
    dense = named[0] if named else 'dense("minilm", index="HNSW32")'
    command = _command("weir", "study", "filters", "-d", name_given(held.cells[0]), "-s", dense, "--json")
    return f"{command} > {shlex.quote(str(held.root / 'filters.json'))}"


def _migration_command(held: Held) -> str:
    systems = (part for cell in held.compared for part in ("-s", _searched_as(cell)))
    name = name_given(held.cells[0])
    return _command("weir", "study", "migrate", "-d", name, *systems, "-o", "pool/", "--labels", "50")


QUESTIONS: Sequence[Question] = (
    Question(
        "gate",
        "Is the change safe to ship?",
        "Whether the second system is worse than the first by more than you allow.",
        ("gate",),
        _gate,
        _gate_command,
        of_two=True,
        amount="max_drop",
    ),
    Question(
        "funnel",
        "Where is it lost?",
        "How many relevant documents are left after each stage of a system.",
        ("funnel",),
        _funnel,
        _funnel_command,
    ),
    Question(
        "rules",
        "What must never be found?",
        "How often documents are found that are forbidden, out of date or superseded.",
        (RULE_BREACHES.name,),
        _rules,
        _rules_command,
    ),
    Question(
        "decided",
        "Is it decided yet?",
        "Whether the second system may pass, by a test at which one may look again and again.",
        ("sequential gate",),
        _decided,
        _decided_command,
        of_two=True,
        amount="max_drop",
    ),
    Question(
        "fitness",
        "Can these queries show a change?",
        "Whether these queries and judgments can show a change, and if not, because of what.",
        ("fitness",),
        _fitness,
        _fitness_command,
        amount="change",
    ),
    Question(
        "filters",
        "What does a filter cost?",
        "How many of the exact first documents are found by a vector search under filters.",
        ("filters",),
        _filters,
        _filters_command,
    ),
    Question(
        "migration",
        "May the new system go live?",
        "How many queries get other first documents by the second system, and which.",
        ("migration", "canary"),
        _migration,
        _migration_command,
        of_two=True,
    ),
)


# ----------
# In a report.


def open_section(study: Study) -> Section | None:
    """Return the report's section of answered questions on `study.largest`; None without any answer.

    Questions about two systems compare the baseline with the best of the others.
    """
    cells = tuple(cell for cell in study.cells if cell.dataset == study.largest)
    measure, labels = study.measures[0], {cell.label: cell for cell in cells}
    board = {
        one.system: one.mean for one in study.rows if one.dataset == study.largest and one.measure == measure
    }
    others = sorted(
        labels.keys() - {study.baseline}, key=lambda name: -direction(measure) * board.get(name, 0.0)
    )
    compared = tuple(labels[name] for name in (study.baseline, *others[:1]) if name in labels)
    dataset = study.collections.get(study.largest)
    held = Held(study.folder, cells, compared, dataset, measure, study.short_name)
    rows = [["question", "answer"]]
    for question in QUESTIONS:
        if question.ask is _funnel:
            continue
        answers = [one for _, one in stored_answers(study.folder, question, study.largest)]
        if not question._only_stored:
            with suppress(WeirError):  # the folder alone does not answer
                answers = [question.ask(held)]
        for answer in answers:
            said = [note for table in answer.tables() if not table.header for note in table.notes]
            rows += [[question.title, "; ".join(line.strip() for line in said)]] if said else []
    if len(rows) == 1:
        return None
    two = " and ".join(held.called(cell.label) for cell in compared)
    return Section(
        "open",
        "What scores leave open",
        f"On {study.largest}{chosen_clause(study, study.why_largest)}; where two systems are compared: {two}. "
        "weir open shows more of it.",
        (),
        (table_of(rows, right=0),),
        study.without_results(study.largest),
    )


# ----------
# Answers that a command left in the folder.


def stored_answers(root: Path, question: Question, collection: str) -> list[tuple[str, ResultSet[Any]]]:
    """Return (file name, results) of each JSON file in a results folder that answers a question on a
    collection.

    Other files, and large ones, are ignored; warns (LossWarning) of invalid JSON.
    """
    found, damaged = [], list[str]()
    for path in sorted(root.glob("*.json")):
        try:
            if path.name == ORDER or not path.is_file() or path.stat().st_size > STORED_BYTES:
                continue
            lines = [json.loads(line) for line in read_text(path).splitlines() if line.strip()]
        except (json.JSONDecodeError, FormatError, OSError, RecursionError):
            damaged.append(path.name)
            continue
        try:
            answers = _answers_in(path, lines, question)
        except (WeirError, ValueError, KeyError, TypeError):  # a file of something else
            continue
        items = tuple(one for one in answers.items if _about(one) in ("", collection))
        if items:
            found.append((path.name, replace(answers, items=items)))
    if damaged:
        said = (
            f"{root}: not read: {counted(len(damaged), 'file')} without valid JSON, {', '.join(damaged[:4])}"
        )
        give_warning(LossWarning(said))
    return found


def _answers_in(path: Path, lines: Sequence[Any], question: Question) -> ResultSet[Any]:
    first = lines[0] if lines else None
    if not isinstance(first, dict):
        raise ValueError
    if "weir" in first and "results" in first:
        if first["weir"] not in question.kinds:
            raise ValueError
        return ResultSet.load(path)
    if "format" in first and SEQUENTIAL_GATES.name in question.kinds:
        rules = seen_rules(first)
        return ResultSet(SEQUENTIAL_GATES, tuple(sequential_gates(read_seen(path, rules), rules)))
    for name in question.kinds:
        kind = KINDS.get(name)
        if first.keys() <= kind.of.__dataclass_fields__.keys():
            return ResultSet(kind, tuple(rebuilt(kind.of, line) for line in lines))
    raise ValueError


def _about(one: object) -> str:
    return str(getattr(one, "dataset", getattr(one, "subject", "")))
