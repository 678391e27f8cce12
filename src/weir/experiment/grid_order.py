"""The order in which datasets and systems were asked for, kept beside the results: tables show them in it.

<results>/grid.json      datasets and systems by name, each as it was first asked for
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from weir.errors import StoreError
from weir.io.storage.atomic import locked
from weir.io.storage.sealed import read_sealed, write_sealed

__all__ = ["ORDER", "GridOrder", "keep_order"]

ORDER = "grid.json"
LAST = 1 << 30  # behind all that were asked for


@dataclass(frozen=True)
class GridOrder:
    """Datasets and systems by name, as they were asked for; () where nothing says so."""

    datasets: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()

    @staticmethod
    def read(root: Path) -> GridOrder:
        """The order that a results folder keeps; none where it keeps none, or it is damaged."""
        try:
            found = read_sealed(root / ORDER)
            return GridOrder(tuple(map(str, found["datasets"])), tuple(map(str, found["systems"])))
        except (StoreError, KeyError, TypeError):
            return GridOrder()

    def place(self, dataset: str, system: str) -> tuple[int, int]:
        """Where a cell stands: the places of its dataset and of its system, LAST for one that was not asked for."""
        found = [
            names.index(name) if name in names else LAST
            for names, name in ((self.datasets, dataset), (self.systems, system))
        ]
        return found[0], found[1]


def keep_order(root: Path, datasets: Iterable[str], systems: Iterable[str]) -> None:
    """Note what is asked for; what was asked for before stays in front. Raises StoreError where the disk refuses."""
    with locked(root / f".{ORDER}.lock"):
        before = GridOrder.read(root)
        now = GridOrder(
            tuple(dict.fromkeys([*before.datasets, *datasets])),
            tuple(dict.fromkeys([*before.systems, *systems])),
        )
        if now != before:
            write_sealed(root / ORDER, {"datasets": now.datasets, "systems": now.systems})
