"""Rankings as they are given: run files, folders of results, values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from weir.core.run import Run
from weir.errors import BadValue
from weir.files.frames import run_from
from weir.files.paths import path_of


def run_paths(given: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The run files that paths stand for: each file, and of each folder of results its run files.

    Raises FormatError for a folder without results, BadValue for one of several collections, and for folders of two.
    """
    found, of_folders = list[Path](), list[Path]()
    for path in map(path_of, given):
        if path.is_dir():
            from weir.experiment.results import runs_in

            of_folders += (runs := runs_in(path))
            found += runs
        else:
            found.append(path)
    if len(of_folders) > 1:
        from weir.experiment.results import refuse_collections_apart

        refuse_collections_apart(of_folders)
    return found


def run_path(given: str | os.PathLike[str]) -> Path:
    """The one run file that a path stands for; raises as `run_paths`, and BadValue for a folder of several."""
    paths = run_paths([given])
    if len(paths) > 1:
        names = ", ".join(path.parent.name for path in paths)
        raise BadValue(f"{given} holds {len(paths)} rankings; name the folder of one: {names}")
    return paths[0]


def one_ranking(given: object) -> object:
    """A ranking as it is given, of a path the run file; raises as `run_path`."""
    return run_path(given) if isinstance(given, (str, os.PathLike)) else given


def two_rankings(first: object, second: object) -> tuple[object, object]:
    """Two rankings as `one_ranking` has each; raises as `run_path`."""
    both = one_ranking(first), one_ranking(second)
    run_paths(one for one in (first, second) if isinstance(one, (str, os.PathLike)))  # together
    return both


def all_rankings(given: Sequence[object]) -> list[object]:
    """Rankings as they are given, of paths the run files; raises as `run_paths`."""
    run_paths(one for one in given if isinstance(one, (str, os.PathLike)))  # together
    several = [run_paths([one]) if isinstance(one, (str, os.PathLike)) else [one] for one in given]
    return [one for of in several for one in of]


def ranking(given: object) -> Run:
    """A ranking from whatever holds one, a folder of results too; raises as `run_path` and `run_from`."""
    return run_from(one_ranking(given))
