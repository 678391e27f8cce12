"""The command `weir data export`."""

from __future__ import annotations

from pathlib import Path

import click

from weir import experiment
from weir.cli.options import FOLDER, PATH, Given, options
from weir.errors import BadValue
from weir.plugins import bridges


@click.command("export")
@click.argument("folder", type=PATH, default=Path("results"))
@click.option("--to", "form", type=click.Choice(["mteb", "hub", "ir-metadata"]), required=True,
              help="MTEB's results, a model's .eval_results/ on the hub, or runs with ir_metadata.")  # fmt: skip
@click.option("-o", "--out", type=FOLDER, required=True, help="The folder to write into.")
@options("weir.experiment.results.chosen_cells", "datasets systems")
@click.option(
    "--mteb-name", "model", default="", metavar="NAME", help="With mteb: what the one system is called there."
)
@click.option("--hub-dataset", default="", metavar="ORG/NAME:TASK",
              help="With hub: the data set there that holds the one dataset.")  # fmt: skip
def command(folder: Path, form: str, out: Path, given: Given, model: str, hub_dataset: str) -> None:
    """Write results in the formats of MTEB, the Hugging Face hub or ir_metadata.

    FOLDER: a results folder of weir run. mteb: results/<model>/<revision>/<task>.json, for
    mteb.ResultCache(OUT). hub: <system>/.eval_results/<dataset>.yaml, for the model's repository.
    ir-metadata: rankings as <dataset>/<system>.trec with provenance in comments at the head, which weir eval
    skips and trec_eval 9 does not. Splits of a dataset share a file for mteb, else are under
    <dataset>-<split> (except test).
    """
    if model and form != "mteb":
        raise BadValue(f"--mteb-name says what a system is called in MTEB; it means nothing with --to {form}")
    if hub_dataset and form != "hub":
        raise BadValue(f"--hub-dataset names a data set of the hub; it means nothing with --to {form}")
    kept = experiment.results
    cells = kept.by_split(kept.chosen_cells(kept.finished_cells(folder), **given))
    if form == "mteb":
        paths = bridges.write_mteb_results(cells, out, model)
    elif form == "hub":
        paths = bridges.write_hub_results(cells, out, hub_dataset)
    else:
        paths = bridges.write_annotated_runs(cells, out)
    for path in paths:
        click.echo(str(path))
