"""Read rankings as run files, results folders or values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from weir.core.order import Ties
from weir.core.run import READ_RUN, Run
from weir.core.scores import Note, Scores
from weir.datasets import catalogue
from weir.datasets.scoring_rules import Collection, ScoringRules
from weir.errors import BadValue, CallError
from weir.files.frames import run_from
from weir.files.integrity import content_hash
from weir.files.paths import path_of
from weir.files.runs import RESULT_RECORD, RESULT_RUNS, read_run, run_name


def is_results_folder(value: object) -> bool:
    """Return True if the value is the path of a folder that `weir run` wrote."""
    with suppress(OSError, ValueError):  # no path at all, such as a text that is too long
        return (
            isinstance(value, (str, os.PathLike))
            and next(Path(value).glob("*/*/stage.json"), None) is not None
        )
    return False


def two_folders(first: object, second: object) -> str:
    """Return a sentence on how to compare two results folders, for an error."""
    first, second = Path(str(first)), Path(str(second))  # without the separator that completion leaves
    return (
        f"found two results folders, {first} and {second}: weir gate {first} {second} compares system by system; "
        f"weir compare {_judgments(first)} {first} {second} compares all with each other; "
        f"weir diff takes a ranking of each, such as {first}/DATASET/SYSTEM"
    )


def _judgments(folder: Path) -> str:
    names = {stage.parent.parent.name for stage in folder.glob("*/*/stage.json")}
    return names.pop() if len(names) == 1 and names <= set(catalogue.collection_names()) else "COLLECTION"


def run_paths(paths: Iterable[str | os.PathLike[str]], collection: Collection = None) -> list[Path]:
    """Return paths of run files, with each folder, of results or of run files, replaced by all its run files.

    Raises FormatError for a folder without any, BadValue for runs of several collections, or not of `collection`.
    """
    found, of_folders = list[Path](), list[Path]()
    for path in map(path_of, paths):
        if path.is_dir():
            from weir.experiment.results import runs_in

            of_folders += (runs := runs_in(path))
            found += runs
        else:
            found.append(path)
            of_folders += [path] * (path.name in RESULT_RUNS and (path.parent / RESULT_RECORD).exists())
    if of_folders and (len(of_folders) > 1 or collection is not None):
        from weir.experiment.results import refuse_collections_apart

        refuse_collections_apart(of_folders, ScoringRules.of(collection).dataset)
    return found


def run_path(path: str | os.PathLike[str], collection: Collection = None) -> Path:
    """Return the path of a run file, or of the only one in a results folder.

    Raises FormatError for a folder without results, BadValue for several, or another collection.
    """
    paths = run_paths([path], collection)
    if len(paths) > 1:
        which = "one of them" if paths[0].parent == path_of(path) else "the folder of one"
        raise BadValue(f"{path} holds {len(paths)} rankings; name {which}: {', '.join(map(run_name, paths))}")
    return paths[0]


def _ranking_at(path: str | os.PathLike[str], ties: Ties) -> Run:
    return read_run(run_path(path), ties)


READ_RUN.register(_ranking_at)


def one_ranking(ranking: object, collection: Collection = None) -> object:
    """Return the run file's path for a path, and any other ranking unchanged.

    Raises the errors of `run_path`, and BadValue for several rankings.
    """
    if isinstance(ranking, (list, tuple)) and len(ranking) > 1 and all(map(_is_ranking, ranking)):
        raise BadValue(
            f"found {len(ranking)} rankings; expected one (weir.compare(qrels, *rankings) takes several)"
        )
    return run_path(ranking, collection) if isinstance(ranking, (str, os.PathLike)) else ranking


def _is_ranking(one: object) -> bool:
    by_query = isinstance(one, Mapping) and all(isinstance(docs, (Mapping, list)) for docs in one.values())
    return by_query or isinstance(one, (str, os.PathLike, Run))


def two_rankings(first: object, second: object, collection: Collection = None) -> tuple[object, object]:
    """Return two rankings as by `one_ranking`; raises its errors, and BadValue for two collections."""
    both = one_ranking(first), one_ranking(second)
    run_paths((one for one in (first, second) if isinstance(one, (str, os.PathLike))), collection)  # together
    return both


def copy_notes(named: Iterable[tuple[str, object]]) -> list[Note]:
    """Return a note for each ranking or system that is the same object, or a file of the same bytes, as an earlier.

    named: (name, value) pairs; a path of one name counts once.
    """
    notes, given = list[Note](), list(dict(named).items())
    sizes = Counter(map(_size_of, (one for _, one in given)))
    firsts: dict[object, str] = {}
    for name, one in given:
        size = _size_of(one)
        if size is not None and sizes[size] < 2:
            continue
        key = id(one) if size is None else content_hash(path_of(one))  # type: ignore[arg-type]  # a path
        first = firsts.setdefault(key, name)
        if first != name:
            same = "the same object as" if size is None else "a copy, byte for byte, of"
            notes.append(Note(f"{name} is {same} {first}: one system counts as two"))
    return notes


def _size_of(given: object) -> int | None:
    """Return the bytes of a file; None for anything but the path of a file."""
    is_path = isinstance(given, (str, os.PathLike)) and path_of(given).is_file()
    return path_of(given).stat().st_size if is_path else None  # type: ignore[arg-type]  # a path


def unnamed(count: int) -> list[str]:
    """Return names for rankings without names: "first" and "second" for two, else "system 1" and so on."""
    return ["first", "second"] if count == 2 else [f"system {n}" for n in range(1, count + 1)]


def two_given(function: str, *given: object) -> tuple[object, object]:
    """Return two rankings given as two arguments, or as {name: ranking} and None.

    function: the called function, for messages.

    Raises CallError if one is missing, BadValue for another number of names and named Scores.
    """
    match given:
        case (Mapping() as named, None):
            if len(named) != 2:
                raise BadValue(f"found {len(named)} rankings by name; {function} compares two")
            if any(isinstance(one, Scores) for one in named.values()):
                raise BadValue(f"found Scores by name; {function} takes them in their order, without names")
            first, second = (run_from(one_ranking(one), str(name)) for name, one in named.items())
            return first, second
        case (_, None):
            raise CallError(
                f"{function} lacks the argument second: another ranking, or both as {{name: ranking}}"
            )
    return given[0], given[1]


def all_rankings(rankings: Sequence[object], collection: Collection = None) -> list[object]:
    """Return the rankings as a list, with each path replaced by its run files; a folder may have several.

    Raises FormatError for a folder without any, BadValue for several collections.
    """
    run_paths((one for one in rankings if isinstance(one, (str, os.PathLike))), collection)  # together
    several = [run_paths([one]) if isinstance(one, (str, os.PathLike)) else [one] for one in rankings]
    return [one for of in several for one in of]


def run_from_given(ranking: object, collection: Collection = None) -> Run:
    """Return a Run from any form of `run_from`, or from a results folder with a single result.

    Raises the errors of `run_path` and `run_from`.
    """
    return run_from(one_ranking(ranking, collection))
