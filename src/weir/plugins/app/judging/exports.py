"""People's judgments as files: qrels in any format, a filled sheet, a prompt with examples."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

from weir.core.tables import csv_cell
from weir.errors import BadValue
from weir.files.atomic import temporary_folder
from weir.files.column_names import SHEET_HEAD
from weir.files.journal_labels import SHEET, settled_judgments
from weir.files.text_files import read_toml
from weir.files.write import write_qrels
from weir.plugins.app.judging.journal import GRADED, Event, Standing
from weir.plugins.app.judging.room import Room
from weir.plugins.app.judging.tasks import QUERIES, grades_by_pair
from weir.plugins.labels.pools import open_sheet
from weir.plugins.llm.panel import FOLDER as PROMPTS
from weir.plugins.llm.panel import judge_prompt
from weir.plugins.llm.prompts import fenced

JUDGMENTS = ("judgments.trec", "judgments.tsv", "judgments.csv", "judgments.jsonl", "judgments.parquet")
"""Files of one judgment for each pair; the second is BEIR's."""
FILES = (*JUDGMENTS, SHEET, "labels.json", "examples.toml")
"""The files of each pool."""
MERGED = "merged.tsv"
"""The judgments merged into those of the results, which they replace."""
PROMPT = "umbrela"
"""The prompt to which examples are added."""
EXAMPLES, EXAMPLE_WORDS = 2, 150
"""Most examples of each grade in a prompt, and most words of their documents."""
_PLACE = re.compile(r"\{(\w+)\}")


def files_of(room: Room) -> tuple[str, ...]:
    """Return the names of the files in which a pool's judgments can be downloaded."""
    own = (QUERIES, room.tasks.golden) if room.tasks.golden else (MERGED,) if room.results else ()
    return *own, *FILES


def exported(room: Room, name: str) -> bytes:
    """Return the bytes of a pool's file.

    name: an element of `files_of`.

    Raises BadValue for a prompt with examples if no grade has a note.
    """
    if name == "labels.json":
        return json.dumps(_label_records(room), ensure_ascii=False, indent=1).encode() + b"\n"
    if name == "examples.toml":
        return _prompt_with_examples(room).encode()
    if name == QUERIES:
        return (room.folder / QUERIES).read_bytes()
    if name == room.tasks.golden:
        entries = read_toml(room.folder.with_name(name), "a collection file")
        return _toml(entries | {"queries": QUERIES, "qrels": "judgments.tsv"}).encode()
    judgments = room.merged() if name == MERGED else settled_judgments(room.journal.path)[0]
    if name == SHEET:
        return _filled_sheet(room, grades_by_pair(judgments)).encode()
    with temporary_folder("judgments") as folder:
        write_qrels(judgments, folder / name)
        return (folder / name).read_bytes()


def _label_records(room: Room) -> list[dict[str, object]]:
    with room.journal.reading() as standing:
        return [_record(event, standing) for event in standing.current()]


def _record(event: Event, standing: Standing) -> dict[str, object]:
    compared = {"other": event.other, "left": event.left} if event.other else {}
    return {
        "query": event.query,
        "document": event.document,
        **compared,
        "judge": event.judge,
        "task": event.task,
        "kind": event.kind,
        "grade": event.grade,
        "reason": event.text if event.kind == "unable" else "",
        "note": standing.note(event.item),
        "suggested": event.suggested,
        "seconds": event.seconds,
        "time": datetime.fromtimestamp(event.time, UTC).isoformat(timespec="milliseconds"),
        "content": event.content,
        "guidelines": event.guidelines,
    }


def _filled_sheet(room: Room, grades: dict[tuple[str, str], float]) -> str:
    lines = ["\t".join(SHEET_HEAD)]
    for line in open_sheet(room.folder / SHEET):
        grade = grades.get((line.query, line.doc))
        given = line.grade if grade is None else f"{grade:g}"
        cells = (line.query, line.doc, given, line.query_text, line.title, line.text)
        lines.append("\t".join(str(csv_cell(cell)) for cell in cells))
    return "\n".join(lines) + "\n"


def _prompt_with_examples(room: Room) -> str:
    scale = judge_prompt(PROMPT).scale
    with room.journal.reading() as standing:
        explained = [
            (event, note)
            for event in standing.current()
            if event.kind in GRADED
            and event.task in ("judge", "decide")
            and (event.query, event.document) in room.tasks.by_pair
            and (note := standing.note(event.item))
        ]
    if not explained:
        raise BadValue("nobody has explained a grade by a note yet (n, then the grade)")
    odd = sorted({float(event.grade or 0) for event, _ in explained} - set(map(float, scale.grades)))
    if odd:
        known = ", ".join(map(str, scale.grades))
        raise BadValue(
            f"people explained the grade {odd[0]:g}, and the prompt {PROMPT} knows {known} alone; labels.json has "
            "every explained grade, for a prompt of your own"
        )
    chosen: list[tuple[Event, str]] = []
    for grade in sorted(scale.grades, reverse=True):
        pairs = {
            (event.query, event.document): (event, note) for event, note in explained if event.grade == grade
        }
        chosen += list(pairs.values())[:EXAMPLES]
    shown = []
    for event, note in chosen:
        pair = room.tasks.by_pair[event.query, event.document]
        words = f"{pair.title} {pair.text}".split()
        passage = " ".join(words[:EXAMPLE_WORDS]) + (" ..." if len(words) > EXAMPLE_WORDS else "")
        shown.append(
            f"Query: {_inert(room.tasks.query_text(event.query))}\n<passage>\n{_inert(passage)}\n"
            f"</passage>\nGrade of a person: {event.grade:g}, since {_inert(note)}"
        )
    entries = read_toml(PROMPTS / f"{PROMPT}.toml", "a judge's prompt")
    block = "People graded so:\n\n" + "\n\n".join(shown) + "\n\nNow the pair to grade.\n"
    user = str(entries["user"])
    user = user.replace("{objective}", "{objective}" + block, 1) if "{objective}" in user else block + user
    named = ", ".join(
        json.dumps(" ".join((event.query, event.document)), ensure_ascii=False) for event, _ in chosen
    )
    head = f"# {PROMPT} with examples that people graded: {named}\n"
    return head + _toml({**entries, "user": user})


def _inert(text: str) -> str:
    return _PLACE.sub(r"{ \1 }", fenced(" ".join(text.split())))


def _toml(entries: dict[str, object]) -> str:
    plain = [
        f"{name} = {_value(value)}" for name, value in entries.items() if not isinstance(value, (dict, list))
    ]
    for name, value in entries.items():
        tables = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
        head = f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
        for table in tables:
            plain += ["", head, *(f"{_value(key)} = {_value(one)}" for key, one in table.items())]
    return "\n".join(plain) + "\n"


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
