"""What a name of a collection refers to that is neither in the catalogue nor a folder of Weir's layout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from weir.datasets.references import Brought, is_reference
from weir.io.watch import Watch

__all__ = ["birco", "reference"]

BIRCO_SETS = ("test_set.pickle", "dev_set.pickle", "test_set.json", "dev_set.json")
"""The file of a folder of BIRCO's repository that is its collection: the first of these."""


def reference(name: str | Path, watch: Watch, again: bool, fetch: bool) -> Brought | None:
    """What `weir.datasets.references.brought` asks for; None for a collection in Weir's layout after all."""
    text = str(name)
    if is_reference(text):
        return _of_scheme(text, watch, again, fetch)
    plain, _, subset = text.partition("#")
    path = Path(name)
    if path.is_dir():
        return _of_folder(path, "", watch, fetch)
    return _of_file(path, watch, fetch) if path.is_file() else _of_folder(Path(plain), subset, watch, fetch)


def birco(pickle: Path, to: Path) -> None:
    """Write a pickle of BIRCO's as a collection; raises as `weir.import_files`."""
    from weir.plugins.importing.importer import Choices, import_request, requested

    import_request(requested(pickle, as_kind="birco", choices=Choices(strict=True)), to)


# What brings a collection imports the network, databases and readers of all formats: only where it is needed.


def _of_scheme(text: str, watch: Watch, again: bool, fetch: bool) -> Brought:
    if text.startswith("hf:"):
        from weir.plugins.importing.references.from_hub import from_hub, hub_name

        return from_hub(hub_name(text), watch, again, fetch)
    from weir.plugins.importing.references.from_irds import from_irds, irds_name

    return from_irds(irds_name(text), watch, fetch)


def _of_folder(path: Path, subset: str, watch: Watch, fetch: bool) -> Brought | None:
    test_set = next((path / name for name in BIRCO_SETS if (path / name).is_file()), None)
    if test_set is not None and not subset:
        from weir.plugins.importing.references.from_file import from_file

        return replace(from_file(test_set, watch), name=path.resolve().name)
    from weir.plugins.importing.references.from_hub import from_folder, is_hub_folder

    return from_folder(path, subset, watch, fetch) if is_hub_folder(path) else None


def _of_file(path: Path, watch: Watch, fetch: bool) -> Brought | None:
    if path.suffix == ".toml":
        from weir.plugins.importing.references.described import is_description

        if not is_description(path):
            return None
    from weir.plugins.importing.references.from_file import from_description, from_file

    return (from_description if path.suffix == ".toml" else from_file)(path, watch, fetch)
