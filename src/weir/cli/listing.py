"""List systems, models, measures and datasets, and show what is installed."""

from __future__ import annotations

import click

from weir import api
from weir.cli.options import Given, forms, measure_names, options, quiet_option, system_names
from weir.cli.terminal import present, say
from weir.errors import BadValue


@click.command("systems")
@click.argument("system", shell_complete=system_names, required=False)
def systems_command(system: str | None) -> int:
    """List the systems and their presets with every setting.

    SYSTEM: a name such as bm25 or cross, to explain its settings. With settings, such as 'bm25(k1=1.2)',
    everything that can change its scores is listed too.
    """
    return present(api.listings.systems(system))


@click.command("models")
@click.argument("name", required=False)
@options("weir.api.listings.model", "dtype engine device probe",
         dtype={"show_default": "fp32"}, engine={"show_default": "auto"})  # fmt: skip
@forms("json")
def models_command(name: str | None, given: Given, form: str | None) -> int:
    """List the encoders, or describe one.

    NAME: a dense encoder, or one with its settings, such as 'dense("mybert", pooling="mean")'. Shows everything that
    decides its vectors, with rendered prompts, and the engine that encodes here and why. Downloads a missing
    checkpoint. Any other name on the Hugging Face hub, and any folder with a checkpoint, works too: its own files say
    how it pools, what it puts before a text and how long a text may be.
    """
    if name is None and "probe" in given:
        raise BadValue("--probe needs the name of an encoder, such as weir list models minilm --probe")
    return present(api.listings.models() if name is None else api.listings.model(name, **given), form)


@click.command("measures")
@click.argument("measure", shell_complete=measure_names, required=False)
@forms("json")
def measures_command(measure: str | None, form: str | None) -> int:
    """List the measures, their settings and their sources.

    MEASURE: the only measure to list, by its name here or elsewhere, such as nDCG, 'AP(rel=2)' or ndcg_cut_10.
    Any measure can be condensed, as in condensed(nDCG@10): unjudged documents are first removed from the ranking.
    """
    return present(api.listings.measures(measure), form)


@click.command("datasets")
@forms("json")
def datasets_command(form: str | None) -> int:
    """List the collections of the catalogue.

    The column `here` is yes for a collection on this machine, else says how to get it: fetch, or by licence.
    """
    return present(api.listings.datasets(), form)


@click.command("doctor")
@click.argument("kernels", nargs=-1)
@click.option(
    "--compile", "compiled", is_flag=True, help="Compile the kernels now, so that no first run waits."
)
@forms("json")
@quiet_option
def doctor_command(kernels: tuple[str, ...], compiled: bool, form: str | None, quiet: bool) -> int:
    """Show what is installed.

    Lists packages, the engines that would run, settings, limits of input, and where caches are kept. Nothing is
    downloaded, compiled or loaded. With --compile, kernels are compiled and nothing is shown; KERNELS: kinds of
    kernels such as "sparse search", by default all. Compiled code is kept until its source, the compiler or the
    processor changes.
    """
    if compiled:
        api.listings.compile_kernels(kernels, (lambda _: None) if quiet else say)
        return 0
    if kernels:
        raise click.UsageError("kinds of kernels are named for --compile: weir doctor --compile KERNELS")
    return present(api.listings.installation(), form)
