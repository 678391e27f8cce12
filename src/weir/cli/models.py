"""weir models: the encoders known by name."""

from __future__ import annotations

import click

__all__ = ["command"]

PROBED = 64
"""Documents that a probe encodes."""


@click.command("models")
@click.argument("name", required=False)
@click.option("--dtype", default="fp32", show_default=True, help="The least precision to compute in.")
@click.option("--device", default="auto", help="Where it runs: cpu, cuda or cuda:1.")
@click.option(
    "--probe", is_flag=True, help="Load NAME and measure it: speed, and what company does to a text's vector."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def command(name: str | None, dtype: str, device: str, probe: bool, as_json: bool) -> None:
    """List the encoders that Weir knows, or say what one comes to.

    NAME: a dense encoder; what decides its vectors is shown, prompts rendered. Any other name on the Hugging Face
    hub, and any folder with a checkpoint, works too: its own files say how it pools, what it puts before a text and
    how long a text may be.
    """
    import json
    from dataclasses import asdict

    from weir.encode.cards import cards
    from weir.errors import BadValue
    from weir.report.table import columns

    if name is not None:
        facts = _facts(name, dtype, device, probe)
        lines = [
            [key, value if isinstance(value, str) else json.dumps(value)] for key, value in facts.items()
        ]
        width = max(len(key) for key, _ in lines)
        click.echo(
            json.dumps(facts) if as_json else "\n".join(f"{key:{width}}  {value}" for key, value in lines)
        )
        return
    if probe:
        raise BadValue("--probe needs the name of an encoder, such as weir models minilm --probe")
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
    click.echo(columns(lines))
    click.echo("\nany name on the Hugging Face hub and any folder with a checkpoint works too")


def _facts(name: str, dtype: str, device: str, probe: bool) -> dict[str, object]:
    """What an encoder comes to here and, where asked for, what was measured of it."""
    import time

    from weir.datasets.load import load
    from weir.encode import Encoder
    from weir.encode.stability import stability

    encoder = Encoder(name, dtype=dtype)
    if not probe:
        return encoder.describe(device)
    loaded = encoder.load(device)
    texts = load("brook-questions").corpus.view("title text").tolist()[:PROBED]
    begun = time.perf_counter()
    loaded.encode(texts)
    seconds = time.perf_counter() - begun
    tokens = int(loaded.document.tokenizer(texts).ptr[-1])
    speed = {
        "documents_per_second": round(len(texts) / seconds, 1),
        "tokens_per_second": round(tokens / seconds),
    }
    return loaded.describe() | speed | {"stability": str(stability(loaded, texts))}
