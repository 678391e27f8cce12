"""The command `weir study conform`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import click

from weir.cli.options import FOLDER, OUTPUT, PATH, Given, options
from weir.cli.terminal import say
from weir.core.rounding import count, score
from weir.core.tables import columns
from weir.errors import BadValue
from weir.files.atomic import own_file, write_text
from weir.plugins.conform.certificate import Graded, Summary, ValueDifference, grade, summarised, worst
from weir.plugins.conform.tools import answers_text, ask, json_number, read_answers
from weir.plugins.conform.vectors import files, vectors


@click.command("conform")
@click.argument("tool", required=False)
@options("weir.plugins.conform.tools.ask", "python checkout", "place", python={"type": PATH},
         checkout={"type": click.Path(path_type=Path, exists=True, file_okay=False)})  # fmt: skip
@click.option("--answers", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Grade answers that any tool wrote, instead of asking one.")  # fmt: skip
@click.option("--group", "groups", multiple=True, help="Only this group of vectors; repeatable.")
@click.option("--export", type=FOLDER,
              help="Write the vectors into this folder, and nothing else.")  # fmt: skip
@click.option("--save", type=OUTPUT, help="Write the tool's answers here, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per question, at full precision.")
def command(
    tool: str | None,
    place: Given,
    answers: Path | None,
    groups: tuple[str, ...],
    export: Path | None,
    save: Path | None,
    as_json: bool,
) -> int:
    """Test a tool with the golden vectors.

    TOOL: weir (the default), beir, birco (with --checkout), ir_measures, mteb, pytrec_eval, ranx,
    sentence_transformers or sklearn, in a process of its own. A wrong value is explained by the convention
    that gives it. Exit code 0: no value differs from the exact one; 1: one differs; 2: the tool could not be
    asked. Format of vectors and answers: docs/conformance.md.
    """
    if answers is not None and (tool is not None or place):
        raise BadValue("--answers grades a file; name a tool or --python without it")
    if export is not None:
        for name, text in files().items():
            write_text(own_file(export / name), text)
        say(f"{export}: {len(files())} files")
        return 0
    chosen = vectors(groups)
    replies = ask(tool or "weir", chosen, **place) if answers is None else read_answers(answers)
    if save is not None:
        write_text(save, answers_text(replies, chosen))
    graded = grade(replies, chosen)
    if as_json:
        for g in graded:
            click.echo(_json(g))
    else:
        _show(summarised(replies, graded), worst(graded))
    return 1 if any(g.outcome == "differs" for g in graded) else 0


def _json(graded: Graded) -> str:
    row = {"vector": graded.vector.id, "group": graded.vector.group, "measure": graded.measure}
    row |= {"outcome": graded.outcome, "note": graded.note, "why": graded.why}
    differences = [asdict(d) | {"found": json_number(d.found)} for d in graded.differences]
    return json.dumps(row | {"differences": differences}, ensure_ascii=False)


def _show(tool: Summary, furthest: Sequence[tuple[Graded, ValueDifference]]) -> None:
    def value(number: float | None) -> str:
        return "nothing" if number is None else score(number)

    def exact(text: str) -> str:  # a fraction while it is short, otherwise a rounded decimal
        return text if len(text) <= 7 else score(float(Fraction(text)))

    total = tool.total_counts
    questions = total.passed + total.differs + total.refused + total.not_applicable
    click.echo(f"{tool.package} {tool.version}: {total.vectors} vectors, {count(questions)} questions")
    click.echo(f"{tool.clean} of the {tool.asked} vectors it can be asked pass whole\n")
    lines = [["group", "vectors", "passed", "differs", "refused", "not applicable"]]
    for c in (*tool.counts, total):
        numbers = (c.vectors, c.passed, c.differs, c.refused, c.not_applicable)
        lines.append([c.group, *map(count, numbers)])
    click.echo(columns(lines, right=5))
    for kind, title in (("differs", "why values differ"), ("refused", "what it refuses")):
        rows = []
        for cause in (one for one in tool.causes if one.kind == kind):
            example = f"says {value(float(cause.found))}" if kind == "differs" and cause.found else ""
            example += f", exact {exact(cause.exact)}" if example and cause.exact else ""
            rows.append([str(cause.questions), cause.why, f"{cause.vector}, {cause.measure}", example])
        if rows:
            click.echo("\n" + columns([["questions", title, "example", ""], *rows]))
    if furthest:
        rows = [
            [
                g.vector.id,
                g.measure,
                d.query or "mean",
                value(d.found),
                exact(d.exact.fraction or d.exact.decimal),
                g.why,
            ]
            for g, d in furthest
        ]
        click.echo("\n" + columns([["worst", "measure", "query", "says", "exact", "why"], *rows]))
