"""The collection as a folder in Weir's own layout, which appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from weir.core.origins import Origins
from weir.core.qrels import Qrels, shown_number
from weir.core.run import Run
from weir.errors import BadValue
from weir.io.collections.layout import ABOUT
from weir.io.runs.write import write_qrels, write_run
from weir.io.storage.atomic import atomic_dir, write_text
from weir.plugins.importing.merge import Imported

__all__ = ["REPORT", "Written", "refuse_foreign", "write_collection"]

REPORT = "import.json"
_OURS = {"queries.jsonl", "corpus.jsonl", "qrels", "clicks", "runs", ABOUT, REPORT}
CLICK_COLUMNS = ("query-id", "corpus-id", "share", "low", "high", "clicks", "impressions", "expected")


@dataclass(frozen=True)
class Written:
    """The files of the folder, sorted."""

    names: tuple[str, ...]


def refuse_foreign(folder: Path) -> None:
    """Raise BadValue for a folder that holds anything that weir import did not write: it would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise BadValue(f"{folder} is a file; give a folder to write")
    if not folder.exists():
        return
    held = {path.name for path in folder.iterdir() if not path.name.startswith(f".{folder.name}.tmp-")}
    if held and (REPORT not in held or held - _OURS):
        other = sorted(held - _OURS or held)[0]
        raise BadValue(f"{folder} holds '{other}', which weir import did not write; give another folder")


def write_collection(
    folder: Path,
    whole: Imported,
    files: list[dict[str, Any]],
    documents: bool = True,
    about: Mapping[str, str] | None = None,
) -> Written:
    """Write the folder.

    files: the record of each file given; documents: whether they are written too; about: keys of collection.toml.

    Raises StoreError when the disk refuses.
    """
    with atomic_dir(folder) as temporary:
        if whole.queries:
            _write_lines(temporary / "queries.jsonl", map(json.dumps, _queries(whole)))
        if documents and whole.documents:
            _write_lines(temporary / "corpus.jsonl", whole.documents.lines())
        for split, judged in whole.qrels.items():
            (temporary / "qrels").mkdir(exist_ok=True)
            qrels = _named(Qrels.of(judged), whole.origins.get(split, {}))
            write_qrels(qrels, temporary / "qrels" / f"{split}.tsv")
        for split, shares in whole.clicks.items():
            (temporary / "clicks").mkdir(exist_ok=True)
            rows = ([*pair, *map(shown_number, astuple(share))] for pair, share in shares.items())
            _write_lines(temporary / "clicks" / f"{split}.tsv", map("\t".join, [CLICK_COLUMNS, *rows]))
        for name, rankings in whole.runs.items():
            (temporary / "runs").mkdir(exist_ok=True)
            write_run(Run.of(rankings, name), temporary / "runs" / f"{name}{_ending(rankings)}")
        if about:
            lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in about.items())
            write_text(temporary / ABOUT, lines)
        names = sorted(
            path.relative_to(temporary).as_posix() for path in temporary.rglob("*") if path.is_file()
        )
        report = _report(whole, files, [*names, REPORT])
        write_text(
            temporary / REPORT, json.dumps(report, indent=1) + "\n"
        )  # ASCII: half a surrogate is no UTF-8
    return Written((*names, REPORT))


def _named(qrels: Qrels, origins: Mapping[tuple[str, str], str]) -> Qrels:
    """The judgments with where they come from, where anything says it."""
    if not origins:
        return qrels
    columns = qrels.columns()
    pairs = zip(columns["query"], columns["doc"], strict=True)
    return replace(qrels, origin=Origins.of(origins.get(pair, "") for pair in pairs))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _queries(whole: Imported) -> Iterable[dict[str, Any]]:
    for name, text in whole.queries.items():
        more = dict(whole.metadata.get(name, {}))
        if name in whole.unanswerable:
            more["unanswerable"] = True
        yield {"_id": name, "text": text, **({"metadata": more} if more else {})}


def _ending(rankings: Mapping[str, Mapping[str, float]]) -> str:
    """`.trec`, or `.json` for what TREC's lines cannot hold: identifiers with blanks, and empty rankings."""
    names = [*rankings, *(doc for row in rankings.values() for doc in row)]
    odd = any(len(name.split()) != 1 or name != name.strip() for name in names)
    comments = any(query.startswith(("#", "\ufeff")) for query in rankings)
    return ".json" if odd or comments or not all(rankings.values()) else ".trec"


def _report(whole: Imported, files: list[dict[str, Any]], written: list[str]) -> dict[str, Any]:
    from importlib.metadata import version

    return {
        "weir": version("weir-ir"),
        "queries": len(whole.queries),
        "unanswerable": len(whole.unanswerable),
        "documents": len(whole.documents),
        "judgments": {split: sum(map(len, rows.values())) for split, rows in whole.qrels.items()},
        "runs": {name: len(rows) for name, rows in whole.runs.items()},
        "notes": whole.notes,
        "written": written,
        "files": files,
    }
