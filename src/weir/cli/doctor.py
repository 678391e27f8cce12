"""weir doctor: what is here, what would be used, and what to install for more."""

from __future__ import annotations

from typing import TypeAlias

import click

from weir.cli.terminal import say

__all__ = ["command"]

Facts: TypeAlias = dict[str, object]

EXTRAS = {
    "run": "index and search",
    "neural": "encode, re-rank",
    "minilm": "MiniLM's weights as a package",
    "ann": "approximate search",
    "openvino": "encode faster on processors",
}
NOTABLE = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vnni", "avx512bf16", "amx-int8",
           "amx-bf16", "neon", "fullfp16", "dotprod", "i8mm", "bf16", "sve")  # fmt: skip
CACHES = ("datasets", "stores", "vectors", "scores", "questions", "encoders", "openvino", "kernels")


@click.command("doctor")
@click.argument("kernels", nargs=-1)
@click.option(
    "--compile", "compiled", is_flag=True, help="Compile the kernels now, so that no first run waits."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with every fact.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(kernels: tuple[str, ...], compiled: bool, as_json: bool, quiet: bool) -> None:
    """Show what is installed.

    Packages, the engines that would run, settings, and where caches are kept. Nothing is downloaded, compiled or
    loaded: no model, and no torch. With --compile kernels are compiled and nothing is shown; KERNELS: kinds of kernels
    such as "sparse search", by default all. Compiled code is kept until its source, the compiler or the processor
    changes.
    """
    import json

    if compiled:
        _compile(kernels, quiet)
        return
    if kernels:
        raise click.UsageError("kinds of kernels are named for --compile: weir doctor --compile KERNELS")

    found: dict[str, Facts] = {
        "machine": _machine(),
        "engines": _engines(),
        "extras": _extras(),
        "caches": _caches(),
        "settings": _settings(),
    }
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    width = max(len(name) for facts in found.values() for name in facts)
    for section, facts in found.items():
        click.echo(section)
        for name, value in facts.items():
            click.echo(f"  {name:{width}}  {_shown(value)}")


def _compile(groups: tuple[str, ...], quiet: bool) -> None:
    from weir.kernels.jit.code_cache import places
    from weir.systems.warm import GROUPS, prepare

    for group in groups or tuple(GROUPS):
        seconds = prepare([group])
        if not quiet:
            say(f"{group}: {seconds:.1f} s")
    if not quiet:
        place = next((place for place in places() if any(place.glob("*.kernel"))), None)
        say(f"kernels: {place}" if place else "kernels: nowhere to keep them")


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        there = [f"{name} {version}" for name, version in value["installed"].items()]
        missing = [f"without {', '.join(value['missing'])}: {value['install']}"] if value["missing"] else []
        return f"{value['for']}: {', '.join(there + missing)}"
    return str(value)


def _machine() -> Facts:
    """Platform, Python, processor, and what compiled code uses of it."""
    import platform
    import sys

    from weir.settings import available_cores

    return {
        "weir": _version("weir-ir") or "not installed as a package",
        "platform": platform.platform(),
        "processor": f"{platform.machine()}, {available_cores()} cores for this process",
        "python": f"{platform.python_version()} ({sys.executable})",
        "compiled for": _targeted(),
    }


def _targeted() -> str | list[str]:
    """The instruction sets that kernels are compiled for, as far as they make a difference."""
    from weir.kernels.jit import available

    if not available():
        return "nothing: numba is not installed, or NUMBA_DISABLE_JIT is set"
    from weir.kernels.simd import features

    targeted = features()
    return [name for name in NOTABLE if name in targeted]


def _engines() -> Facts:
    """What each engine lacks, or its versions; and which one a model comes to by default in each precision."""
    from weir.encode.models.engine import DTYPES, NEEDED, ruled
    from weir.errors import BadValue
    from weir.settings import settings

    found: Facts = {"kernels": _engine(("numba", "llvmlite"))}
    found |= {name: _engine(needed) for name, needed in NEEDED.items()}
    found |= {"faiss": _engine(("faiss-cpu",)), "usearch": _engine(("usearch",))}
    for dtype in DTYPES:
        try:
            chosen = ruled("auto", dtype, settings().device)
        except BadValue as error:
            found[f"models in {dtype}"] = str(error)
        else:
            found[f"models in {dtype}"] = (
                f"{chosen.label or f'{chosen.engine}, not installed'} ({chosen.why})"
            )
    return found


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
    return {name: _extra(name, packages) for name, packages in needed.items()}


def _extra(name: str, packages: list[str]) -> Facts:
    versions = {package: _version(package) for package in packages}
    return {
        "for": EXTRAS[name],
        "installed": {package: version for package, version in versions.items() if version is not None},
        "missing": [package for package, version in versions.items() if version is None],
        "install": f"pip install 'weir-ir[{name}]'",
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _caches() -> Facts:
    """Folders and their sizes in megabytes."""
    from weir.kernels.jit.code_cache import places
    from weir.settings import settings

    home = settings().home
    found: Facts = {"home": str(home)}
    found |= {name: _size(home / name) for name in CACHES if (home / name).is_dir()}
    for place in places():
        kept = list(place.glob("*.kernel"))
        if kept:
            size = sum(path.stat().st_size for path in kept) / 1e6
            found.setdefault("compiled kernels", f"{len(kept)}, {size:.1f} MB, in {place}")
    return found


def _size(folder: object) -> str:
    import os

    total = 0
    for top, _, files in os.walk(str(folder)):
        for name in files:
            try:
                total += os.lstat(os.path.join(top, name)).st_size  # noqa: PTH118 - thousands of files
            except OSError:
                continue
    return f"{total / 1e6:,.1f} MB"


def _settings() -> Facts:
    """The environment variables that Weir and its compiler look at; of keys only that they are set."""
    import os

    from weir.settings import settings

    found: Facts = {"threads": settings().threads, "device": settings().device}
    for name in sorted(os.environ):
        if name.startswith(("WEIR_", "NUMBA_")) or name in ("HF_HUB_OFFLINE", "HF_HOME"):
            found[name] = "set" if "KEY" in name else os.environ[name]
    return found
