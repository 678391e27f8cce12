"""weir data subset: a mini collection, and how far it ranks systems as the whole does."""

from __future__ import annotations

from pathlib import Path

import click

from weir.cli.completion import measure_names
from weir.cli.terminal import output_width, say, show

__all__ = ["command"]


@click.command("subset")
@click.argument("dataset")
@click.option("--docs", type=int, required=True, help="Documents of the mini collection.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The folder to write.")
@click.option("-s", "--system", "systems", multiple=True,
              help="A system to prove it by; repeatable.  [default: seven lexical ones]")  # fmt: skip
@click.option("-m", "--measure", shell_complete=measure_names, default="nDCG@10", show_default=True,
              help="A measure such as nDCG@10.")  # fmt: skip
@click.option("--seed", default=1, show_default=True, help="Of what is drawn.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, at full precision.")
def command(
    dataset: str, docs: int, out: Path, systems: tuple[str, ...], measure: str, seed: int, as_json: bool
) -> None:
    """Write a small collection, and report how well it ranks systems.

    Queries are drawn as long as their judged documents take half of the room; BM25's first answers and documents drawn
    at random fill the rest. Then systems run on both, and their orders are compared over resamples of the queries.
    """
    from weir.audit.subsets import SYSTEMS_COMPARED, chosen, proof, write_subset
    from weir.datasets.load import load
    from weir.measures.measure import parse_measure
    from weir.report.subset import subset_json, subset_text
    from weir.systems.expression import parse_system

    whole = load(dataset)
    named = [parse_system(name) for name in systems or SYSTEMS_COMPARED]
    asked = parse_measure(measure)
    part = write_subset(whole, chosen(whole, docs, seed), out)
    found = proof(whole, part, named, asked, say)
    show(subset_json(found) if as_json else subset_text(found, output_width()))
