"""weir list models: the encoders known by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from weir.encode import Encoder, Loaded

__all__ = ["command"]

PROBED = 64
"""Documents that a probe encodes."""
WORTH = 1.2
"""Times as fast as the declared engine from which a probe names another."""


@click.command("models")
@click.argument("name", required=False)
@click.option("--dtype", help="The least precision to compute in.  [default: fp32]")
@click.option("--engine", help="auto, torch, openvino or transformers.  [default: auto]")
@click.option("--device", default="auto", help="Where it runs: cpu, cuda or cuda:1.")
@click.option(
    "--probe",
    is_flag=True,
    help="Load NAME and measure it: engines, and what company does to a text's vector.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def command(
    name: str | None, dtype: str | None, engine: str | None, device: str, probe: bool, as_json: bool
) -> None:
    """List the encoders, or describe one.

    NAME: a dense encoder, or one with its settings, such as 'dense("mybert", pooling="mean")'; what decides its
    vectors is shown, prompts rendered, and which engine encodes here by which rule. A checkpoint that is not here is
    downloaded. Any other name on the Hugging Face hub, and any folder with a checkpoint, works too: its own files say
    how it pools, what it puts before a text and how long a text may be.
    """
    import json
    from dataclasses import asdict

    from weir.cli.terminal import output_width, show
    from weir.core.tables import columns, paragraph
    from weir.encode.recipes.cards import cards
    from weir.errors import BadValue

    if name is not None:
        given = {key: value for key, value in (("dtype", dtype), ("engine", engine)) if value is not None}
        facts = _facts(_encoder(name, given), device, probe)
        lines = [
            [key, value if isinstance(value, str) else json.dumps(value)] for key, value in facts.items()
        ]
        width = max(len(key) for key, _ in lines)
        click.echo(
            json.dumps(facts) if as_json else "\n".join(f"{key:{width}}  {value}" for key, value in lines)
        )
        return
    if probe:
        raise BadValue("--probe needs the name of an encoder, such as weir list models minilm --probe")
    if as_json:
        for entry in cards():
            click.echo(json.dumps(asdict(entry), ensure_ascii=False))
        return
    lines = [["name", "kind", "million", "pooling", "similarity", "tokens", "prompts", "checkpoint"]]
    for entry in cards():
        prompts = [p for p in (entry.query_prompt, entry.document_prompt) if p]
        tokens = sorted({entry.max_query, entry.max_document})
        lines.append(
            [
                entry.name,
                entry.kind,
                f"{entry.parameters:g}",
                entry.pooling or "-",
                entry.similarity or "-",
                "/".join(map(str, tokens)),
                str(len(prompts)) if prompts else "-",
                entry.hub,
            ]
        )
    show(columns(lines, width=output_width()))
    other = "any name on the Hugging Face hub and any folder with a checkpoint works too"
    click.echo("\n" + paragraph(other, output_width()))


def _encoder(name: str, given: dict[str, str]) -> Encoder:
    """The encoder of that name with what is given, or that of a dense system as it is written."""
    from weir.encode import Encoder
    from weir.errors import BadValue
    from weir.systems import parse_system
    from weir.systems.dense import DenseRetriever

    if "(" not in name:
        return Encoder(name, dtype=given.get("dtype", "fp32"), engine=given.get("engine", "auto"))
    system = parse_system(name)
    if not isinstance(system, DenseRetriever) or not isinstance(system.encoder, Encoder):
        raise BadValue(f"{name}: expected the name of an encoder, or a dense system with a checkpoint")
    if given:
        raise BadValue(f"{name} has its own settings; write {' and '.join(given)} among them")
    return system.encoder


def _facts(encoder: Encoder, device: str, probe: bool) -> dict[str, object]:
    """What an encoder comes to here and, where asked for, what was measured of it."""
    from weir.encode.recipes.encoder_recipe import resolve

    encoder.fetch()
    recipe = resolve(encoder)
    facts: dict[str, object] = {"model": encoder.model, "folder": str(recipe.document.folder)}
    facts |= encoder.describe(device) | {"why": encoder.declared(recipe, device).why}
    facts |= {"notes": list(recipe.notes)} if recipe.notes else {}
    return facts | _probed(encoder, device) if probe else facts


def _probed(encoder: Encoder, device: str) -> dict[str, object]:
    """Speed of the engines that are installed, and how far company moves a vector; it decides nothing."""
    from dataclasses import replace

    from weir.datasets.load import load
    from weir.encode.models.engine import ENGINES
    from weir.encode.stability import stability
    from weir.errors import BadValue, MissingExtra

    texts = load("brook-questions").corpus.view("title text").tolist()[:PROBED]
    loaded = encoder.load(device)
    found = {"as declared": _speed(loaded, texts)}
    for engine in ENGINES if encoder.engine == "auto" else ():
        try:
            found[engine] = _speed(replace(encoder, engine=engine).load(device), texts)
        except (BadValue, MissingExtra) as error:
            found[engine] = str(error)
    stable = stability(loaded, texts)
    facts: dict[str, object] = {"documents_per_second": found, "stability": str(stable)}
    speeds = {name: value for name, value in found.items() if isinstance(value, float)}
    best = max(speeds, key=lambda name: speeds[name])
    if speeds[best] > WORTH * speeds["as declared"]:
        facts["advice"] = (
            f"engine={best!r} was {speeds[best] / speeds['as declared']:.1f} times as fast here; you may ask for it"
        )
    return facts


def _speed(loaded: Loaded, texts: list[str]) -> float | str:
    """Documents a second, of the better of two passes."""
    import time

    taken = []
    for _ in range(2):
        begun = time.perf_counter()
        loaded.encode(texts)
        taken.append(time.perf_counter() - begun)
    return round(len(texts) / min(taken), 1)
