"""The commands of `weir list`, and `weir doctor`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import click

from weir.cli.options import measure_names, system_names
from weir.cli.terminal import say
from weir.errors import WeirError

if TYPE_CHECKING:
    from weir.models import Encoder, Loaded


@click.command("systems")
@click.argument("system", shell_complete=system_names, required=False)
def systems_command(system: str | None) -> None:
    """List the systems and their presets with every setting.

    SYSTEM: a name such as bm25 or cross, which is explained, or with settings, such as 'bm25(k1=1.2)'; then everything
    that can move its numbers is shown.
    """
    import inspect
    import json

    from weir.systems import PRESETS, RERANKERS, SYSTEMS, parse_system, usage

    registry = RERANKERS if system in RERANKERS else SYSTEMS
    if system is not None and system in registry:
        click.echo(f"{usage(system)}\n")
        click.echo(inspect.getdoc(registry.get(system)) or "")
        return
    if system is not None:
        click.echo(json.dumps(parse_system(system).describe(), indent=1))
        return
    for name in SYSTEMS:
        click.echo(usage(name))
        click.echo("    " + (inspect.getdoc(SYSTEMS.get(name)) or "").partition("\n")[0])
    click.echo("\nre-rankers, behind a system: bm25 >> score(rm3)")
    for name in RERANKERS:
        click.echo("    " + usage(name))
        click.echo("        " + (inspect.getdoc(RERANKERS.get(name)) or "").partition("\n")[0])
    click.echo("\npresets of bm25")
    for preset, recipe in PRESETS.items():
        click.echo(f'    bm25("{preset}"): {recipe.reproduces}')
        fields = " | ".join(recipe.fields)
        rule = "one field" if len(recipe.fields) == 1 else "summed"
        rule = rule if recipe.tie_breaker is None else f"best field, tie breaker {recipe.tie_breaker}"
        click.echo(
            f"        {recipe.analyzer}, k1={recipe.k1}, b={recipe.b}, lengths {recipe.lengths}, {fields} ({rule})"
        )


Facts: TypeAlias = dict[str, object]

PROBED = 64
"""Documents that a probe encodes."""
WORTH = 1.2
"""Times as fast as the declared engine from which a probe names another."""


@click.command("models")
@click.argument("name", required=False)
@click.option("--dtype", help="The least precision to compute in.  [default: fp32]")
@click.option("--engine", help="auto, openvino, torch or transformers.  [default: auto]")
@click.option("--device", default="auto", help="Where it runs: cpu, cuda or cuda:1.")
@click.option(
    "--probe",
    is_flag=True,
    help="Load NAME and measure it: engines, and what company does to a text's vector.",
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
    import json
    from dataclasses import asdict

    from weir.cli.terminal import output_width, show
    from weir.core.tables import columns, paragraph
    from weir.errors import BadValue
    from weir.models.checkpoints import cards, resolve

    if name is not None:
        encoder = _encoder(name, dtype, engine)
        encoder.fetch()
        recipe = resolve(encoder)
        facts: Facts = {"model": encoder.model, "folder": str(recipe.document.folder)}
        facts |= encoder.describe(device) | {"why": encoder.declared(recipe, device).why}
        facts |= {"notes": list(recipe.notes)} if recipe.notes else {}
        facts |= _probed(encoder, device) if probe else {}
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


def _encoder(name: str, dtype: str | None, engine: str | None) -> Encoder:
    """The encoder of that name with the options, or that of a dense system as it is written."""
    from weir.errors import BadValue
    from weir.models import Encoder
    from weir.systems import parse_system
    from weir.systems.dense import DenseRetriever

    if "(" not in name:
        return Encoder(name, dtype=dtype or "fp32", engine=engine or "auto")
    system = parse_system(name)
    if not isinstance(system, DenseRetriever) or not isinstance(system.encoder, Encoder):
        raise BadValue(f"{name}: expected the name of an encoder, or a dense system with a checkpoint")
    options = [option for option, value in (("dtype", dtype), ("engine", engine)) if value is not None]
    if options:
        raise BadValue(f"{name} has its own settings; write {' and '.join(options)} among them")
    return system.encoder


def _probed(encoder: Encoder, device: str) -> dict[str, object]:
    """Speed of the engines that are installed, and how far company moves a vector; it decides nothing."""
    from dataclasses import replace

    from weir.datasets.load import load
    from weir.errors import BadValue, MissingExtra
    from weir.models.encoder import stability
    from weir.models.engine import ENGINES

    texts = load("brook-questions").corpus.view("title text").tolist()[:PROBED]
    loaded = encoder.load(device)
    speed_of = {"as declared": _speed(loaded, texts)}
    for engine in ENGINES if encoder.engine == "auto" else ():
        try:
            speed_of[engine] = _speed(replace(encoder, engine=engine).load(device), texts)
        except (BadValue, MissingExtra) as error:
            speed_of[engine] = str(error)
    stable = stability(loaded, texts)
    facts: dict[str, object] = {"documents_per_second": speed_of, "stability": str(stable)}
    speeds = {name: value for name, value in speed_of.items() if isinstance(value, float)}
    best = max(speeds, key=lambda name: speeds[name])
    if speeds[best] > WORTH * speeds["as declared"]:
        facts["advice"] = (
            f"engine={best!r} was {speeds[best] / speeds['as declared']:.1f} times as fast here; you may ask for it"
        )
    return facts


def _speed(loaded: Loaded, texts: list[str]) -> float | str:
    """Documents a second, of the better of two passes."""
    import time

    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        loaded.encode(texts)
        seconds.append(time.perf_counter() - begun)
    return round(len(texts) / min(seconds), 1)


@click.command("measures")
@click.argument("measure", shell_complete=measure_names, required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def measures_command(measure: str | None, as_json: bool) -> None:
    """List the measures, their settings and their sources.

    MEASURE: one alone, by its name here or elsewhere, such as nDCG, 'AP(rel=2)' or ndcg_cut_10. Any of them can be
    condensed, as in condensed(nDCG@10): documents that nobody judged leave the ranking first.
    """
    import inspect
    import json

    from weir.errors import UnknownName
    from weir.measures import MEASURES, parse_measure

    names = MEASURES.names()
    if measure is not None and measure not in MEASURES:
        try:
            names = [parse_measure(measure).name]
        except UnknownName:
            raise
        except WeirError:  # such as a cut-off that is missing: the question is which measure it is
            names = [parse_measure(f"{measure}@10").name]
    elif measure is not None:
        names = [measure]
    for name in names:
        definition = MEASURES.get(name)
        cut = "@k" if definition.cutoff == "required" else "[@k]"
        if as_json:
            about = {
                "measure": name,
                "cutoff": definition.cutoff,
                "settings": definition.defaults(),
                "summary": definition.summary,
                "grades": definition.takes,
            }
            click.echo(json.dumps(about))
            continue
        settings = ", ".join(f"{key}={value!r}" for key, value in definition.defaults().items())
        click.echo(f"{name}{cut}" + (f"   settings: {settings}" if settings else ""))
        for line in (inspect.getdoc(definition.function) or "").split("\n"):
            click.echo(f"    {line}".rstrip())
        click.echo(f"    {definition.takes}\n")


@click.command("datasets")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with every fact.")
def datasets_command(as_json: bool) -> None:
    """List the collections of the catalogue.

    `here` says whether one is on this machine: yes, or how to get it: fetch, or by licence.
    """
    import json
    from dataclasses import asdict

    from weir.cli.terminal import output_width, show
    from weir.core.tables import columns, paragraph
    from weir.datasets import catalogue

    entries = catalogue.entries()
    groups = [catalogue.group(name) for name in catalogue.groups()]
    if as_json:
        for entry in entries:
            click.echo(json.dumps(asdict(entry) | {"here": entry.here}, ensure_ascii=False))
        return
    lines = [["name", "task", "domain", "documents", "queries", "licence", "here"]]
    for entry in entries:
        here = "yes" if entry.here else "licence" if entry.obtain else "fetch"
        sizes = [f"{entry.documents:,}", f"{entry.queries:,}"]
        lines.append([entry.name, entry.task, entry.domain, *sizes, entry.licence, here])
    show(columns(lines, width=output_width()))
    for group in groups:
        text = f"{group.name}: the unweighted mean of {', '.join(group.members)}"
        click.echo("\n" + paragraph(text, output_width()))


EXTRAS = {
    "run": "index and search",
    "neural": "encode, re-rank on a processor",
    "int8": "encode in int8",
    "torch": "GPUs, T5, language models, other architectures",
    "ann": "approximate search",
    "train": "train encoders",
}
NOTABLE = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vnni", "avx512bf16", "amx-int8",
           "amx-bf16", "neon", "fullfp16", "dotprod", "i8mm", "bf16", "sve")  # fmt: skip
CACHES = (
    "datasets",
    "stores",
    "vectors",
    "scores",
    "questions",
    "encoders",
    "openvino",
    "training",
    "kernels",
)


@click.command("doctor")
@click.argument("kernels", nargs=-1)
@click.option(
    "--compile", "compiled", is_flag=True, help="Compile the kernels now, so that no first run waits."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with every fact.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def doctor_command(kernels: tuple[str, ...], compiled: bool, as_json: bool, quiet: bool) -> None:
    """Show what is installed.

    Packages, the engines that would run, settings, and where caches are kept. Nothing is downloaded, compiled or
    loaded: no model, and no torch. With --compile kernels are compiled and nothing is shown; KERNELS: kinds of kernels
    such as "sparse search", by default all. Compiled code is kept until its source, the compiler or the processor
    changes.
    """
    import json
    import os
    import platform
    import sys

    from weir.core.rounding import size
    from weir.kernels.jit import available
    from weir.settings import available_cores, memory_budget, settings

    if compiled:
        from weir.kernels.jit import places
        from weir.systems.warm import GROUPS, prepare

        for group in kernels or tuple(GROUPS):
            seconds = prepare([group])
            if not quiet:
                say(f"{group}: {seconds:.1f} s")
        if not quiet:
            place = next((place for place in places() if any(place.glob("*.kernel"))), None)
            say(f"kernels: {place}" if place else "kernels: nowhere to keep them")
        return
    if kernels:
        raise click.UsageError("kinds of kernels are named for --compile: weir doctor --compile KERNELS")

    budget = memory_budget()
    targets: str | list[str] = "nothing: numba is not installed, or NUMBA_DISABLE_JIT is set"
    if available():
        from weir.kernels.simd import features

        targets = [name for name in NOTABLE if name in features()]
    # The environment variables that Weir and its compiler look at; of keys only that they are set.
    environment: Facts = {"threads": settings().threads, "device": settings().device}
    for name in sorted(os.environ):
        if name.startswith(("WEIR_", "NUMBA_")) or name in ("HF_HUB_OFFLINE", "HF_HOME"):
            environment[name] = "set" if "KEY" in name else os.environ[name]
    sections: dict[str, Facts] = {
        "machine": {
            "weir": _version("weir-ir") or "not installed as a package",
            "platform": platform.platform(),
            "processor": f"{platform.machine()}, {available_cores()} cores for this process",
            "memory": f"{size(budget.bytes)} may be taken ({budget.source})",
            "python": f"{platform.python_version()} ({sys.executable})",
            "compiled for": targets,
        },
        "engines": _engines(),
        "extras": _extras(),
        "caches": _caches(),
        "settings": environment,
    }
    if as_json:
        click.echo(json.dumps(sections, ensure_ascii=False))
        return
    width = max(len(name) for facts in sections.values() for name in facts)
    for section, facts in sections.items():
        click.echo(section)
        for name, value in facts.items():
            text = str(value)
            if isinstance(value, list):
                text = ", ".join(map(str, value)) or "none"
            elif isinstance(value, dict):  # an extra
                parts = [f"{package} {version}" for package, version in value["installed"].items()]
                if value["missing"]:
                    parts.append(f"without {', '.join(value['missing'])}: {value['install']}")
                text = f"{value['for']}: {', '.join(parts)}"
            click.echo(f"  {name:{width}}  {text}")


def _engines() -> Facts:
    """What each engine lacks, or its versions; and which one a model comes to by default in each precision."""
    from weir.errors import BadValue
    from weir.models.engine import DTYPES, NEEDED, ruled
    from weir.settings import settings

    engines: Facts = {"kernels": _engine(("numba", "llvmlite"))}
    engines |= {name: _engine(needed) for name, needed in NEEDED.items()}
    engines |= {"faiss": _engine(("faiss-cpu",)), "usearch": _engine(("usearch",))}
    for dtype in DTYPES:
        try:
            chosen = ruled("auto", dtype, settings().device)
        except BadValue as error:
            engines[f"models in {dtype}"] = str(error)
        else:
            engines[f"models in {dtype}"] = (
                f"{chosen.label or f'{chosen.engine}, not installed'} ({chosen.why})"
            )
    return engines


def _engine(needed: tuple[str, ...]) -> str:
    versions = {name: _version(name) for name in needed}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        return f"no: {', '.join(missing)} not installed"
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _extras() -> Facts:
    """For each extra what of it is installed, or how to install it."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("weir-ir") or []
    except PackageNotFoundError:
        return {"weir-ir": "not installed as a package: its extras are not known"}
    needed: dict[str, list[str]] = {name: [] for name in EXTRAS}
    for line in lines:
        match = re.match(r"([\w.-]+).*;.*extra == ['\"](\w+)['\"]", line)
        if match and match[2] in needed and match[1] != "weir-ir":
            needed[match[2]].append(match[1])
    extras: Facts = {}
    for name, packages in needed.items():
        versions = {package: _version(package) for package in packages}
        extras[name] = {
            "for": EXTRAS[name],
            "installed": {package: version for package, version in versions.items() if version is not None},
            "missing": [package for package, version in versions.items() if version is None],
            "install": f"pip install 'weir-ir[{name}]'",
        }
    return extras


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _caches() -> Facts:
    """Folders and their sizes in megabytes."""
    import os

    from weir.kernels.jit import places
    from weir.settings import settings

    home = settings().home
    folders: Facts = {"home": str(home)}
    for name in (name for name in CACHES if (home / name).is_dir()):
        total = 0
        for top, _, files in os.walk(home / name):
            for file in files:
                with suppress(OSError):
                    total += os.lstat(os.path.join(top, file)).st_size  # noqa: PTH118  thousands of files
        folders[name] = f"{total / 1e6:,.1f} MB"
    for place in places():
        kernels = list(place.glob("*.kernel"))
        if kernels:
            size = sum(path.stat().st_size for path in kernels) / 1e6
            folders.setdefault("compiled kernels", f"{len(kernels)}, {size:.1f} MB, in {place}")
    return folders
