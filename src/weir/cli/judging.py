"""The commands that label by a language model, and audit."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.options import (
    FOLDER,
    NAME,
    OUTPUT,
    budget_option,
    collections_option,
    dataset_names,
    max_ram_option,
    price_option,
)
from weir.cli.terminal import say, show_result, show_tables
from weir.errors import ServiceError


@click.command("judge")
@click.argument("targets", type=NAME, nargs=-1, required=True)
@click.option(
    "--model",
    help="Such as http://localhost:8000/v1#name, openai:gpt-4o-mini, anthropic:...  [default: WEIR_LLM]",
)
@click.option("--prompt", default="umbrela", show_default=True,
              help="umbrela, basic, binary, elastic-pointwise, -reason, -pairwise, or a path.")  # fmt: skip
@click.option("-o", "--out", type=FOLDER, required=True,
              help="The folder of the labels; the same command continues it.")  # fmt: skip
@budget_option
@price_option
@collections_option
@click.option("--qrels", type=NAME, help="Judgments of people to compare with.")
@click.option("--judged", is_flag=True, help="Judge what people judged, to see how far the model agrees.")
@click.option("-k", default=10, show_default=True, help="Ranks of each system that are looked at.")
@click.option("--limit", type=int, help="Pairs at most.")
@click.option("--samples", default=1, show_default=True, help="Answers for each pair.")
@click.option("--combine", default="mode", show_default=True, type=click.Choice(["mode", "mean"]),
              help="Of several grades the most frequent, the lowest of several such, or the mean.")  # fmt: skip
@click.option(
    "--temperature", default="0", show_default=True, help="Of the model, from 0 to 2; none leaves it to it."
)
@click.option(
    "--twice", default=0.1, show_default=True, help="The share of pairs that is judged a second time."
)
@click.option(
    "--probes", default=10, show_default=True, help="Pairs that each probe changes; 0 for no probes."
)
@click.option("--seed", default=11, show_default=True, help="Of what is drawn.")
@click.option(
    "--no-objective", is_flag=True, help="Leave out what the collection says that its queries look for."
)
@click.option("--max-length", type=int, help="Tokens of a passage at most, by estimate.")
@click.option("--max-tokens", type=int, help="Tokens of an answer at most.  [default: the prompt's]")
@click.option("--key", help="The environment variable that holds the key, WEIR_KEY_ and a name.")
@click.option("--base", help="Another address of a provider.")
@click.option("--concurrency", default=8, show_default=True, help="Prompts at a time.")
@click.option("--json", "as_json", is_flag=True, help="The report as a JSON object, at full precision.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def judge_command(
    targets: tuple[str, ...],
    model: str | None,
    prompt: str,
    out: Path,
    budget: str | None,
    price: str | None,
    collections: tuple[str, ...],
    qrels: str | None,
    judged: bool,
    k: int,
    limit: int | None,
    samples: int,
    combine: str,
    temperature: str,
    twice: float,
    probes: int,
    seed: int,
    no_objective: bool,
    max_length: int | None,
    max_tokens: int | None,
    key: str | None,
    base: str | None,
    concurrency: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Label documents with a language model, and report its agreement.

    TARGETS: a folder of weir labels pool, or a results folder, or QRELS RUN... as weir eval takes them: what nobody
    judged among the first documents of each system. With --judged, also a collection or QRELS alone: what people
    judged. Every answer is kept before the next is asked, so that the same command continues. An answer without a grade
    is no label, and never 0; where no answer has one, the exit code is 2. At the end stand the verdicts, how the judge
    agrees with itself and with people, and what moved it that should not.
    """
    from typing import cast

    from weir.api.labels import judge
    from weir.api.progress import Progress
    from weir.labels.panel import Combination, JudgeSettings
    from weir.models.chat import ChatModel, default_model

    try:
        degrees = None if temperature == "none" else float(temperature)
    except ValueError:
        raise click.UsageError(
            f"--temperature is '{temperature}'; expected a number from 0 to 2, or none"
        ) from None
    settings = JudgeSettings(
        samples,
        cast(Combination, combine),
        degrees,
        twice,
        probes,
        seed,
        not no_objective,
        max_length,
        max_tokens,
        concurrency,
    )
    with Progress(quiet) as progress:
        report = judge(
            *targets,
            model=ChatModel(model or default_model(), base, key),
            out=out,
            prompt=prompt,
            budget=budget,
            price=price,
            collection=collections,
            people=qrels,
            judged=judged,
            k=k,
            limit=limit,
            settings=settings,
            progress=progress,
        )
    show_result(report, "json" if as_json else None)
    say(f"labels: {out}")
    if not any(one.labelled for one in report):
        raise ServiceError(
            f"{out}: no answer has a grade, so no pair is labelled; the folder keeps the answers; another --model "
            "or --prompt takes a folder of its own"
        )


@click.command("audit")
@click.argument("targets", type=NAME, nargs=-1)
@click.option("--only", "names", multiple=True, help="Run this check alone; repeatable.")
@collections_option
@max_ram_option
@click.option("--training", type=NAME, multiple=True, shell_complete=dataset_names,
              help="A collection that systems may have been trained on; repeatable.")  # fmt: skip
@click.option(
    "--encoder", help="A model, as dense takes it, that tells what queries mean, and where it cuts documents."
)
@click.option("--regression-queries", "regression", type=OUTPUT,
              help="Write some queries that stand for all, as a file of groups for --by of weir gate.")  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the checks and what each needs.")
@click.option(
    "--expand", is_flag=True, help="Write judgments that copies of a judged document share, with -o."
)
@click.option("-o", "--out", type=OUTPUT, help="Where --expand writes the judgments.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each finding.")
def audit_command(
    targets: tuple[str, ...],
    names: tuple[str, ...],
    collections: tuple[str, ...],
    training: tuple[str, ...],
    encoder: str | None,
    regression: Path | None,
    listed: bool,
    expand: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Report what is wrong with collections, judgments and runs.

    TARGETS: collections by name or path, a results folder of weir run, or QRELS RUN... as weir eval takes them.
    Findings come worst first: "wrong" (a number is not what it says), "serious" (conclusions may turn), "caution",
    "note". A check runs where what it needs is there.
    """
    from weir.api.auditing import audits, expand_judgments, regression_queries
    from weir.api.progress import Progress
    from weir.audit.check import check_table

    if listed:
        show_tables([check_table()])
        return
    if expand != (out is not None):
        raise click.UsageError("--expand and -o go together: weir audit COLLECTION --expand -o QRELS")
    if out is not None:
        added, before = expand_judgments(*targets, out=out, collection=collections)
        say(f"{out}: {added:,} judgments added to {before:,}")
    if regression is not None:
        queries = regression_queries(*targets, out=regression, collection=collections)
        say(f"{regression}: {queries:,} queries; weir gate ... --by {regression}")
    if out is not None or regression is not None:
        return
    with Progress() as progress:
        findings = audits(*targets, only=names, collection=collections, training=training, encoder=encoder,
                       progress=progress)  # fmt: skip
    show_result(findings, "json" if as_json else None)
