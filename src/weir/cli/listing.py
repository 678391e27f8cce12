"""The commands of `weir list`, and `weir doctor`."""

from __future__ import annotations

import click

from weir.cli.options import measure_names, system_names
from weir.cli.terminal import say, show_listing


@click.command("systems")
@click.argument("system", shell_complete=system_names, required=False)
def systems_command(system: str | None) -> None:
    """List the systems and their presets with every setting.

    SYSTEM: a name such as bm25 or cross, which is explained, or with settings, such as 'bm25(k1=1.2)'; then everything
    that can move its numbers is shown.
    """
    from weir.api.listings import systems

    show_listing(systems(system))


@click.command("models")
@click.argument("name", required=False)
@click.option("--dtype", help="The least precision to compute in.  [default: fp32]")
@click.option("--engine", help="auto, openvino, torch or transformers.  [default: auto]")
@click.option("--device", default="auto", help="Where it runs: cpu, cuda or cuda:1.")
@click.option(
    "--probe",
    is_flag=True,
    help="Load NAME and measure it: engines, and how far the rest of a batch moves a vector.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def models_command(
    name: str | None, dtype: str | None, engine: str | None, device: str, probe: bool, as_json: bool
) -> None:
    """List the encoders, or describe one.

    NAME: a dense encoder, or one with its settings, such as 'dense("mybert", pooling="mean")'; what decides its
    vectors is shown, prompts rendered, and which engine encodes here by which rule. A checkpoint that is not here is
    downloaded. Any other name on the Hugging Face hub, and any folder with a checkpoint, works too: its own files say
    how it pools, what it puts before a text and how long a text may be.
    """
    from weir.api.listings import model, models
    from weir.errors import BadValue

    if name is None and probe:
        raise BadValue("--probe needs the name of an encoder, such as weir list models minilm --probe")
    show_listing(models() if name is None else model(name, dtype, engine, device, probe), as_json)


@click.command("measures")
@click.argument("measure", shell_complete=measure_names, required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def measures_command(measure: str | None, as_json: bool) -> None:
    """List the measures, their settings and their sources.

    MEASURE: one alone, by its name here or elsewhere, such as nDCG, 'AP(rel=2)' or ndcg_cut_10. Any of them can be
    condensed, as in condensed(nDCG@10): documents that nobody judged leave the ranking first.
    """
    from weir.api.listings import measures

    show_listing(measures(measure), as_json)


@click.command("datasets")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def datasets_command(as_json: bool) -> None:
    """List the collections of the catalogue.

    `here` says whether one is on this machine: yes, or how to get it: fetch, or by licence.
    """
    from weir.api.listings import datasets

    show_listing(datasets(), as_json)


@click.command("doctor")
@click.argument("kernels", nargs=-1)
@click.option(
    "--compile", "compiled", is_flag=True, help="Compile the kernels now, so that no first run waits."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with every fact.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def doctor_command(kernels: tuple[str, ...], compiled: bool, as_json: bool, quiet: bool) -> None:
    """Show what is installed.

    Packages, the engines that would run, settings, bounds of what is read, and where caches are kept. Nothing is
    downloaded, compiled or loaded: no model, and no torch. With --compile kernels are compiled and nothing is shown;
    KERNELS: kinds of kernels such as "sparse search", by default all. Compiled code is kept until its source, the
    compiler or the processor changes.
    """
    from weir.api.listings import compile_kernels, installation

    if compiled:
        compile_kernels(kernels, (lambda _: None) if quiet else say)
        return
    if kernels:
        raise click.UsageError("kinds of kernels are named for --compile: weir doctor --compile KERNELS")
    show_listing(installation(), as_json)
