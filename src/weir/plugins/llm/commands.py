"""The commands `weir judge` and `weir study llm`."""

from __future__ import annotations

from pathlib import Path

import click

import weir
from weir import api
from weir.cli.options import (
    FOLDER,
    NAME,
    PATH,
    Given,
    budget_option,
    forms,
    options,
    price_option,
    quiet_option,
)
from weir.cli.terminal import present, say, say_notes
from weir.errors import ServiceError
from weir.plugins import llm


def _degrees(_: click.Context, __: click.Parameter, text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise click.UsageError(f"--temperature is '{text}'; expected a number from 0 to 2, or none") from None


@click.command("judge")
@click.argument("targets", type=NAME, nargs=-1, required=True)
@click.option(
    "--model",
    help="Such as http://localhost:8000/v1#name, openai:gpt-4o-mini, anthropic:...  [default: WEIR_LLM]",
)
@click.option("-o", "--out", type=FOLDER, required=True,
              help="The folder of the labels; the same command continues it.")  # fmt: skip
@budget_option
@price_option
@options("weir.plugins.llm.api.judge", "prompt collection people judged k limit until_decided margin",
         prompt={"help": "umbrela, basic, binary, elastic-pointwise, -reason, -pairwise, or a path."},
         collection={"metavar": "[NAME=]COLLECTION"}, people={"flags": "--qrels", "type": NAME})  # fmt: skip
@options("weir.plugins.llm.panel.JudgeSettings",
         "samples combine temperature twice probes wrong seed objective max_length max_tokens concurrency", "settings",
         temperature={"type": str, "default": "0", "callback": _degrees,
                      "help": "Of the model, from 0 to 2; none leaves it to it."},
         objective={"flags": "--no-objective", "flag_value": False,
                    "help": "Leave out what the collection says that its queries look for."})  # fmt: skip
@options("weir.plugins.llm.chat.ChatModel", "key base", "service")
@forms("json")
@quiet_option
def judge_command(
    targets: tuple[str, ...],
    model: str | None,
    out: Path,
    given: Given,
    settings: Given,
    service: Given,
    form: str | None,
    quiet: bool,
) -> int:
    """Label documents with a language model, and report its agreement.

    TARGETS: a folder of weir labels pool, a results folder, or judgments and run files (QRELS RUN...), whose
    unjudged documents among the first of each system are judged. With --judged, pairs that people judged are
    judged again, also of a collection or QRELS alone. Answers are stored at once; the same command continues.
    An answer without a grade is no label, and never 0; if no answer has one, the exit code is 2. Reported are
    counts of answers, the judge's agreement with itself and with people, and harmless changes of passages
    that moved its grades.
    """
    chat = llm.ChatModel(model or llm.default_model(), **service)
    with api.progress.Progress(quiet) as progress:
        report = weir.judge(
            *targets, model=chat, out=out, settings=llm.JudgeSettings(**settings), progress=progress, **given
        )
    code = present(report, form)
    say(f"labels: {out}")
    if not any(one.labelled for one in report):
        raise ServiceError(
            f"{out}: no answer has a grade, so no pair is labelled; the folder keeps the answers; another --model "
            "or --prompt takes a folder of its own"
        )
    return code


@click.command("llm")
@click.argument("folder", type=PATH, default=Path("results"))
@options("weir.plugins.llm.api.llm_trace", "query verdicts", "prompts",
         query={"flags": "--trace", "metavar": "QUERY"},
         verdicts={"flags": "--verdict", "metavar": "KIND"})  # fmt: skip
@options("weir.plugins.llm.api.llm_trace", "datasets system")
@forms("json")
def llm_command(folder: Path, prompts: Given, given: Given, form: str | None) -> None:
    """Show the prompts and answers of language models.

    FOLDER: a results folder of weir run. Prints a line for each language model of a system: answers by
    verdict, tokens, dollars, failed attempts. With --trace, prints every prompt about a query in order, with
    the stored answer, its verdict and its cost. No model is asked.
    """
    found = weir.llm_trace(folder, **prompts, **given) if prompts else weir.llm_use(folder, **given)
    if found:
        present(found, form)
        return
    answers = f"no answer is {' or '.join(prompts.get('verdicts', ()))}"
    say(f"note: {answers if prompts else 'no language model was asked for these results'}")
    say_notes(found.notes())
