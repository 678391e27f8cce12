"""Data sets of the Hugging Face hub, and folders in their layout, as collections."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from weir.datasets.references import Materialized
from weir.errors import BadValue, DownloadError, FormatError
from weir.files.atomic import storing, write_json
from weir.files.downloads import HubFile, HubRevision, checksum_of, download, hub_address, hub_revision
from weir.files.json_record import read_json
from weir.files.layouts import SAVED, find_layout
from weir.files.leases import locked
from weir.files.text_files import PACKED, Watch
from weir.plugins.importing.importer import ImportReport, ImportRequest, InputFile, import_request
from weir.plugins.importing.items import Choices
from weir.plugins.importing.references.materialize import (
    home,
    identity,
    materialized,
    not_materialized,
)
from weir.settings import hub_cache, hub_offline

# ----------
# The roles of the files of a data set, by the names in use on the hub:
#
# corpus/test-00000-of-00001.parquet, queries/..., qrels/..., top_ranked/...   MTEB, NanoBEIR, FollowIR
# corpus.jsonl, queries.jsonl, qrels/test.jsonl                                BEIR, older MTEB
# documents/biology-00000-of-00001.parquet, examples/biology-...               BRIGHT
# ar-corpus/..., ar-queries/..., ar-qrels/...                                  several collections in one
# corpus/data-00000-of-00001.arrow, qrels/test/data-00000-of-00001.arrow       saved by datasets' save_to_disk


ENDINGS = (".parquet", ".arrow", ".jsonl", ".json", ".tsv", ".csv")
_ROLES = {
    "corpus": "documents",
    "documents": "documents",
    "docs": "documents",
    "collection": "documents",
    "passages": "documents",
    "queries": "queries",
    "query": "queries",
    "topics": "queries",
    "qrels": "judgments",
    "default": "judgments",
    "top_ranked": "candidates",
    "instruction": "instructions",
    "instructions": "instructions",
    "query_instructions": "instructions",
    "examples": "examples",
}
_SPLITS = {"train", "dev", "valid", "validation", "val", "test"}
_WILD = re.compile(r"[*?\[]")
_PATTERN_CHARACTERS, _PATTERNS = 1000, 10_000
"""Limits on patterns in a card, since each is matched against each file."""
_SHARD = re.compile(r"(.+?)[-_.]\d{5}-of-\d{5}")


@dataclass(frozen=True)
class HubPart:
    """A file of a data set in the Hugging Face hub's layout."""

    path: str
    role: str
    """documents, queries, judgments, candidates, instructions or examples (queries with their judgments)."""
    subset: str
    """The collection that it belongs to, if there are several; else ""."""
    split: str
    """The data set's own name of the split, or ""."""


def parts_of(paths: Iterable[str], configs: Sequence[Mapping[str, Any]] = ()) -> list[HubPart]:
    """Return the files with a part of a collection, such as its queries, by path; other files are left out.

    configs: configurations of the data set's card, which decide before the names of paths.
    """
    parts, declared = [], _Declared.of(configs)
    for path in sorted(paths):
        plain = next((path.removesuffix(end) for end in PACKED if path.endswith(end)), path)
        *folders, name = path.split("/")
        if not plain.endswith(ENDINGS) or name in SAVED or any(one[:1] == "." for one in (*folders, name)):
            continue
        config, split = declared.declared_place(path) or _by_path(PurePosixPath(plain))
        role, subset = _role(config)
        if role:
            parts.append(HubPart(path, role, subset, split))
    return parts


@dataclass(frozen=True)
class _Declared:
    places: tuple[tuple[str, str], ...]
    """(configuration, split) of each path or pattern, in order."""
    exact: Mapping[str, int]
    """Path -> index in `places`."""
    patterns: Mapping[str, int]
    """Pattern -> index in `places`, in order."""

    @staticmethod
    def of(configs: Sequence[Mapping[str, Any]]) -> _Declared:
        places, exact, patterns = list[tuple[str, str]](), dict[str, int](), dict[str, int]()
        for config in configs:
            files = config.get("data_files")
            for one in files if isinstance(files, list) else [files]:
                split, given = (
                    (one.get("split"), one.get("path")) if isinstance(one, dict) else ("train", one)
                )
                for pattern in given if isinstance(given, list) else [given]:
                    if isinstance(pattern, str):
                        kind = patterns if _WILD.search(pattern) else exact
                        kind.setdefault(pattern.replace("**", "*"), len(places))
                        places.append((str(config.get("config_name", "default")), str(split or "")))
        if long := next((one for one in patterns if len(one) > _PATTERN_CHARACTERS), None):
            raise BadValue(f"the card of the data set names files by a pattern of {len(long):,} characters")
        if len(patterns) > _PATTERNS:
            raise BadValue(
                f"the card of the data set has {len(patterns):,} patterns; expected at most {_PATTERNS:,}"
            )
        return _Declared(tuple(places), exact, patterns)

    def declared_place(self, path: str) -> tuple[str, str] | None:
        at = self.exact.get(path, len(self.places))
        for pattern, number in self.patterns.items():
            if number > at:
                break
            if fnmatchcase(path, pattern):
                at = number
        return self.places[at] if at < len(self.places) else None


def _by_path(path: PurePosixPath) -> tuple[str, str]:
    stem, folders = path.stem, list(path.parent.parts)
    shard = _SHARD.fullmatch(stem)
    stem = shard[1] if shard else stem
    conversion = len(folders) >= 2 and stem.isdecimal()  # the hub's own: config/split/0000.parquet
    if conversion or (folders and path.suffix == ".arrow" and stem == "data"):  # a saved one
        stem = folders.pop()
    folder = folders[-1] if folders else ""
    if (
        _role(folder)[0] or not _role(stem)[0]
    ):  # qrels/test.tsv; else biology/corpus.jsonl of several collections
        config, split = folders.pop() if folders else "data", "" if stem == folder else stem
    else:
        config, split = stem, ""
    if config == "data":
        config, split = ("default", split) if folder or stem in _SPLITS else (stem, "")
    # Folders above name the collection: fr/corpus/..., fr/qrels/test.tsv beside de/...
    above = [one for one in folders if one != "data"]
    return "-".join(["/".join(above), config]) if above else config, split


def _role(config: str) -> tuple[str, str]:
    folded = config.replace("-", "_")
    if folded in _ROLES:
        return _ROLES[folded], ""
    for word, role in _ROLES.items():
        if folded.endswith(f"_{word}"):
            return role, config[: -len(word) - 1]
        if folded.startswith(f"{word}_"):
            return role, config[len(word) + 1 :]
    return "", ""


def chosen_parts(parts: Sequence[HubPart], subset: str, name: str) -> list[HubPart]:
    """Return the files of one of a data set's collections.

    subset: a collection, or a split of the documents; "" takes the only collection, and of several splits test.
    name: the data set's name for messages.

    Raises BadValue for a missing or unknown subset, and without documents and queries.
    """

    def unknown(names: set[str]) -> BadValue:
        problem = f"has no '{subset}'" if subset else "holds several collections"
        known = sorted(names - {""})
        if not known:
            return BadValue(f"{name}: {problem}; it holds one collection alone, which is {name} without '#'")
        return BadValue(f"{name}: {problem}; choose one of {', '.join(known[:20])}, as in {name}#{known[0]}")

    documents = [part for part in parts if part.role == "documents"]
    if not documents and not any(part.role in ("queries", "examples") for part in parts):
        paths = ", ".join(dict.fromkeys(part.path for part in parts)) or "nothing with a known name"
        raise BadValue(
            f"{name}: holds {paths[:120]}; expected corpus, queries and qrels, as BEIR and MTEB lay them out"
        )
    subsets = {part.subset for part in parts if part.role in ("documents", "queries", "judgments")}
    if subset in subsets:
        chosen = subset
    elif "" in subsets:
        chosen = ""
    elif len(subsets) == 1 and not subset:
        chosen = next(iter(subsets))
    else:
        raise unknown(subsets)
    mine: list[HubPart] = []
    for role in dict.fromkeys(_ROLES.values()):  # its own parts, else shared ones
        of_role = [part for part in parts if part.role == role]
        own = [part for part in of_role if part.subset == chosen]
        shared = [part for part in of_role if not part.subset]
        alone = of_role if not chosen and len({part.subset for part in of_role}) == 1 else []
        mine += own or shared or alone
    splits = {part.split for part in mine if part.role == "documents"}
    if len(splits) < 2:
        if subset and subset != chosen and subset not in splits:
            raise unknown((subsets | splits) - {""})
        return mine
    split = subset if subset in splits else "test" if "test" in splits and subset in ("", chosen) else ""
    if not split:
        raise unknown(splits)
    roles = {part.role for part in mine if part.split == split}
    return [part for part in mine if part.split == split or part.role not in roles]


# ----------
# Data sets of the hub, and folders of the same layout, as collections.


_NAME = re.compile(r"hf:([\w.-]+(?:/[\w.-]+)?)(?:@([^#\s]+))?(?:#([^#\s]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = {
    "documents": "corpus",
    "queries": "queries",
    "judgments": "hub-qrels",
    "candidates": "candidates",
    "instructions": "instructions",
    "examples": "records",
}


@dataclass(frozen=True)
class HubName:
    """A data set of the Hugging Face hub, named by `hf:repository@revision#subset`."""

    repository: str
    revision: str = "main"
    subset: str = ""

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision != "main" else ""
        return f"hf:{self.repository}{at}{f'#{self.subset}' if self.subset else ''}"


def hub_name(text: str) -> HubName:
    """Parse `hf:repository@revision#subset`, by default revision main; raises BadValue for other text."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise BadValue(
            f"'{text}'; expected hf:organisation/name, hf:organisation/name@revision or ...#subset"
        )
    return HubName(match[1], match[2] or "main", match[3] or "")


def from_hub(name: HubName, watch: Watch, again: bool = False, fetch: bool = True) -> Materialized:
    """Return a data set of the Hugging Face hub as a collection, imported once for each commit.

    again: look up the branch's present commit instead of the remembered one.
    fetch: False raises DownloadError unless it was imported before.

    With HF_HUB_OFFLINE and no remembered commit, the hub library's cache is read. Raises DownloadError if the hub
    cannot be reached or a checksum differs; BadValue for a missing or unknown subset or no judgments; FormatError for
    a malformed file.
    """
    records_file, records_key = home() / "hub-revisions.json", f"{name.repository}@{name.revision}"
    is_commit = _COMMIT.fullmatch(name.revision) is not None
    commit = name.revision if is_commit else ""
    if not is_commit and not again:
        record = _records(records_file).get(records_key)
        commit = str(record.get("commit", "")) if isinstance(record, dict) else ""
        commit = commit if _COMMIT.fullmatch(commit) else ""
    if not commit and hub_offline():
        return _from_library(name, watch, fetch)
    if not commit and not fetch:
        raise not_materialized(name)
    revision: HubRevision | None = None
    if not commit:
        revision = hub_revision(name.repository, name.revision)
        commit = revision.commit
        when = datetime.now(UTC).isoformat(timespec="seconds")
        with storing(records_file):
            home().mkdir(parents=True, exist_ok=True)
        with locked(home() / ".hub-revisions.lock"):  # another process may look another one up
            write_json(records_file, _records(records_file) | {records_key: {"commit": commit, "when": when}})

    def make(to: Path) -> ImportReport:
        return _make(name, revision or hub_revision(name.repository, commit), to, watch)

    key = ["hf", name.repository, commit, name.subset]
    place = materialized(f"hf-{name.repository}", key, make if fetch else None)
    pinned = str(replace(name, revision=commit))
    return Materialized(find_layout(place), str(name), pinned)


def _records(path: Path) -> dict[str, Any]:
    try:
        records = read_json(path)
    except (OSError, FormatError):
        return {}
    return records if isinstance(records, dict) else {}


def _make(name: HubName, revision: HubRevision, folder: Path, watch: Watch) -> ImportReport:
    files = {one.path: one for one in revision.files}
    below = home() / "downloads" / name.repository.replace("/", "--") / revision.commit
    parts = chosen_parts(parts_of(files, revision.configs), name.subset, f"hf:{name.repository}")
    paths = [_fetched(name.repository, revision.commit, files[part.path], below, watch) for part in parts]
    if not any(part.role in ("judgments", "examples") for part in parts):
        beside = f"{name.repository}-qrels"  # a second data set with the judgments, as BEIR's on the hub have
        try:
            other = hub_revision(beside)
        except DownloadError as error:
            raise BadValue(
                f"hf:{name.repository}: no judgments in it, and none beside it ({error})"
            ) from None
        files = {one.path: one for one in other.files}
        judgments = [part for part in parts_of(files, other.configs) if part.role == "judgments"]
        parts += judgments
        paths += [
            _fetched(beside, other.commit, files[part.path], below / "qrels", watch) for part in judgments
        ]
    report = import_request(_request(parts, paths), folder, watch)
    shutil.rmtree(below, ignore_errors=True)
    with suppress(OSError):  # another commit is being fetched
        below.parent.rmdir()
    return report


def _fetched(repository: str, commit: str, file: HubFile, below: Path, watch: Watch) -> Path:
    cached = hub_cache() / f"datasets--{repository.replace('/', '--')}" / "snapshots" / commit / file.path
    if cached.is_file() and checksum_of(cached, file.checksum) == file.checksum:
        return cached
    to = below / file.path
    with storing(to):
        to.parent.mkdir(parents=True, exist_ok=True)

    def progress(done: int, _: int | None) -> None:
        watch(f"fetch {file.path}", done, max(2, file.bytes or done))

    download([hub_address(repository, commit, file.path)], to, file.checksum, file.bytes, progress)
    return to


def _request(parts: Sequence[HubPart], paths: Sequence[Path]) -> ImportRequest:
    pairs = sorted(zip(parts, paths, strict=True), key=lambda pair: list(_KINDS).index(pair[0].role))
    files = [
        InputFile(path, {}, _KINDS[part.role], (part.split or "test") if part.role == "judgments" else "test")
        for part, path in pairs
    ]
    return ImportRequest(tuple(files), choices=Choices(strict=True))


def _from_library(name: HubName, watch: Watch, fetch: bool) -> Materialized:
    below = hub_cache() / f"datasets--{name.repository.replace('/', '--')}"
    try:
        commit = (below / "refs" / name.revision).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        commit = ""
    folder = below / "snapshots" / commit
    if not _COMMIT.fullmatch(commit) or not folder.is_dir():
        raise DownloadError(f"{name} is not on this machine, and HF_HUB_OFFLINE forbids asking the hub")
    collection = from_folder(folder, name.subset, watch, fetch)
    return replace(collection, name=str(name), source=str(replace(name, revision=commit)))


def is_hub_folder(folder: Path) -> bool:
    """Return True if a folder has documents in the Hugging Face hub's layout."""
    return any(part.role == "documents" for part in parts_of(_paths(folder)))


def from_folder(folder: Path, subset: str, watch: Watch, fetch: bool = True) -> Materialized:
    """Return the collection of a folder in the Hugging Face hub's layout, imported once while its files are the same.

    fetch: False raises DownloadError unless it was imported before.

    Raises BadValue for a missing or unknown subset, FormatError for a malformed file.
    """
    parts = chosen_parts(parts_of(_paths(folder)), subset, str(folder))
    paths = [folder / part.path for part in parts]
    key = ["folder", subset, [[part.path, identity(path)] for part, path in zip(parts, paths, strict=True)]]
    name = folder.resolve().name + (f"-{subset}" if subset else "")
    make = partial(import_request, _request(parts, paths), watch=watch)
    place = materialized(name, key, make if fetch else None)
    return Materialized(find_layout(place), name, str(folder.resolve()) + (f"#{subset}" if subset else ""))


def folder_patterns(folder: Path, subset: str) -> list[str]:
    """Return patterns, relative to the folder, of the files that `from_folder` imports, one for each folder and file
    ending."""
    paths = (Path(part.path) for part in chosen_parts(parts_of(_paths(folder)), subset, str(folder)))
    return sorted({(path.parent / f"*{path.suffix}").as_posix() for path in paths})


def _paths(folder: Path) -> Mapping[str, None]:
    return dict.fromkeys(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
