"""Data sets of the Hugging Face hub as collections."""

from __future__ import annotations

import json
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
from weir.errors import BadValue, DownloadError
from weir.files.atomic import locked, storing, write_json
from weir.files.downloads import HubFile, HubRevision, checksum_of, download, hub_address, hub_revision
from weir.files.layouts import find_layout
from weir.files.text_files import Watch
from weir.plugins.importing.importer import FileAsked, ImportRequest
from weir.plugins.importing.items import Choices
from weir.plugins.importing.references.materialize import (
    home,
    identity,
    imported,
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


ENDINGS = (".parquet", ".jsonl", ".json", ".tsv", ".csv")
_PACKED = (".gz", ".zst")
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
_SHARD = re.compile(r"(.+?)[-_.]\d{5}-of-\d{5}")


@dataclass(frozen=True)
class HubPart:
    """A file that plays a role.

    role: documents, queries, judgments, candidates, instructions or examples (queries with their judgments); subset:
    which of several collections it belongs to, or ""; split: as the data set calls it, or "".
    """

    path: str
    role: str
    subset: str
    split: str


def parts_of(paths: Iterable[str], configs: Sequence[Mapping[str, Any]] = ()) -> list[HubPart]:
    """The files that play a role, in the order of their paths; configs: what the data set's card declares."""
    parts = []
    for path in sorted(paths):
        if not _plain_name(path).endswith(ENDINGS) or any(one.startswith(".") for one in path.split("/")):
            continue
        config, split = _declared(path, configs) or _by_path(path)
        role, subset = _role(config)
        if role:
            parts.append(HubPart(path, role, subset, split))
    return parts


def _plain_name(path: str) -> str:
    return next((path.removesuffix(end) for end in _PACKED if path.endswith(end)), path)


def _declared(path: str, configs: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Configuration and split of a path by the data set's card, None where it is silent."""
    for config in configs:
        files = config.get("data_files")
        for one in files if isinstance(files, list) else [files]:
            split, patterns = (one.get("split"), one.get("path")) if isinstance(one, dict) else ("train", one)
            for pattern in patterns if isinstance(patterns, list) else [patterns]:
                if isinstance(pattern, str) and fnmatchcase(path, pattern.replace("**", "*")):
                    return str(config.get("config_name", "default")), str(split or "")
    return None


def _by_path(path: str) -> tuple[str, str]:
    """Configuration and split of a path by its folders and name."""
    whole = PurePosixPath(_plain_name(path))
    stem, folders = whole.stem, whole.parent.parts
    shard = _SHARD.fullmatch(stem)
    stem = shard[1] if shard else stem
    if len(folders) >= 2 and stem.isdecimal():  # the hub's own conversion: config/split/0000.parquet
        return folders[-2], folders[-1]
    if not folders:
        return ("default", stem) if stem in _SPLITS else (stem, "")
    folder = folders[-1]
    if (
        not _role(folder)[0] and _role(stem)[0]
    ):  # data/corpus.jsonl, and biology/corpus.jsonl of several collections
        return (stem if folder == "data" else f"{folder}-{stem}"), ""
    return ("default" if folder == "data" else folder), ("" if stem == folder else stem)


def _role(config: str) -> tuple[str, str]:
    """The role of a configuration, and which of several collections it belongs to; ("", "") for none."""
    folded = config.replace("-", "_")
    if folded in _ROLES:
        return _ROLES[folded], ""
    for word, role in _ROLES.items():
        if folded.endswith(f"_{word}"):
            return role, config[: -len(word) - 1]
        if folded.startswith(f"{word}_"):
            return role, config[len(word) + 1 :]
    return "", ""


def chosen_parts(parts: Sequence[HubPart], wanted: str, shown: str) -> list[HubPart]:
    """The parts of one collection among those of a data set.

    wanted: a subset, or a split of the documents, "" where there is but one; shown: the data set in errors. Raises
    BadValue where there are several and none, or another one, is wanted, and for parts without documents or queries.
    """
    documents = [part for part in parts if part.role == "documents"]
    if not documents and not any(part.role in ("queries", "examples") for part in parts):
        held = ", ".join(dict.fromkeys(part.path for part in parts)) or "nothing with a known name"
        raise BadValue(
            f"{shown}: holds {held[:120]}; expected corpus, queries and qrels, as BEIR and MTEB lay them out"
        )
    subsets = {part.subset for part in parts if part.role in ("documents", "queries", "judgments")}
    subset = _one_of(subsets, wanted, shown)
    mine = [part for role in dict.fromkeys(_ROLES.values()) for part in _of_subset(parts, role, subset)]
    splits = {part.split for part in mine if part.role == "documents"}
    if len(splits) < 2:
        if wanted and wanted != subset and wanted not in splits:
            raise _no_such(wanted, (subsets | splits) - {""}, shown)
        return mine
    split = wanted if wanted in splits else "test" if "test" in splits and wanted in ("", subset) else ""
    if not split:
        raise _no_such(wanted, splits, shown)
    own = {part.role for part in mine if part.split == split}
    return [part for part in mine if part.split == split or part.role not in own]


def _one_of(subsets: set[str], wanted: str, shown: str) -> str:
    if wanted in subsets or "" in subsets:
        return wanted if wanted in subsets else ""
    if len(subsets) == 1 and not wanted:
        return next(iter(subsets))
    raise _no_such(wanted, subsets, shown)


def _no_such(wanted: str, there: set[str], shown: str) -> BadValue:
    listed = ", ".join(sorted(there)[:20])
    problem = f"has no '{wanted}'" if wanted else "holds several collections"
    return BadValue(f"{shown}: {problem}; say one of {listed}, as in {shown}#{min(there, default='NAME')}")


def _of_subset(parts: Sequence[HubPart], role: str, subset: str) -> list[HubPart]:
    """The parts of a role that belong to a collection: its own, else those that belong to all."""
    own = [part for part in parts if part.role == role and part.subset == subset]
    return own or [part for part in parts if part.role == role and not part.subset]


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
    """A data set of the hub as `hf:repository@revision#subset` names it."""

    repository: str
    revision: str = "main"
    subset: str = ""

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision != "main" else ""
        return f"hf:{self.repository}{at}{f'#{self.subset}' if self.subset else ''}"


def hub_name(text: str) -> HubName:
    """Read `hf:repository@revision#subset`; raises BadValue for anything else."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise BadValue(
            f"'{text}'; expected hf:organisation/name, hf:organisation/name@revision or ...#subset"
        )
    return HubName(match[1], match[2] or "main", match[3] or "")


def from_hub(name: HubName, watch: Watch, again: bool = False, fetch: bool = True) -> Materialized:
    """Bring a data set here, once for each commit.

    A branch or tag is looked up the first time, and the commit kept, so that what it names does not change under
    anybody's hands; again: look it up anew; fetch: see `materialize`. Raises DownloadError where
    the hub cannot be asked or a file is not the published one, BadValue or FormatError for a data set that is no
    collection.
    """
    commit = name.revision if _COMMIT.fullmatch(name.revision) else "" if again else _recorded(name)
    if not commit and hub_offline():
        return _from_library(name, watch, fetch)
    revision: HubRevision | None = None
    if not commit and not fetch:
        raise not_materialized(name)
    if not commit:
        revision = hub_revision(name.repository, name.revision)
        commit = revision.commit
        when = datetime.now(UTC).isoformat(timespec="seconds")
        with storing(_records()):
            home().mkdir(parents=True, exist_ok=True)
        with locked(home() / ".hub-revisions.lock"):  # another process may look another one up
            records = _known() | {f"{name.repository}@{name.revision}": {"commit": commit, "when": when}}
            write_json(_records(), records)
    pinned = replace(name, revision=commit)
    note = "" if _COMMIT.fullmatch(name.revision) else f"{name} is {pinned}"
    key = ["hf", name.repository, commit, name.subset]
    make = lambda to: _make(pinned, revision or hub_revision(name.repository, commit), to, watch)  # noqa: E731  where it is needed
    place = materialized(f"hf-{name.repository}", key, make if fetch else None)
    return Materialized(find_layout(place), str(name), str(pinned), note)


def _make(name: HubName, held: HubRevision, folder: Path, watch: Watch) -> None:
    """Download what a collection takes and write it; what was downloaded stays until the collection is written."""
    files = {one.path: one for one in held.files}
    below = home() / "downloads" / name.repository.replace("/", "--") / held.commit
    parts = chosen_parts(parts_of(files, held.configs), name.subset, f"hf:{name.repository}")
    got = [_got(name.repository, held.commit, files[part.path], below, watch) for part in parts]
    if not any(part.role in ("judgments", "examples") for part in parts):
        judged, paths = _judgments_beside(name, below, watch)
        parts, got = [*parts, *judged], [*got, *paths]
    imported(_request(parts, got), watch, folder)
    shutil.rmtree(below, ignore_errors=True)
    with suppress(OSError):  # another commit is being fetched
        below.parent.rmdir()


def _judgments_beside(name: HubName, below: Path, watch: Watch) -> tuple[list[HubPart], list[Path]]:
    """The judgments of a data set that has a second one for them, as BEIR's on the hub have."""
    repository = f"{name.repository}-qrels"
    try:
        held = hub_revision(repository)
    except DownloadError as error:
        raise BadValue(f"hf:{name.repository}: no judgments in it, and none beside it ({error})") from None
    files = {one.path: one for one in held.files}
    parts = [part for part in parts_of(files, held.configs) if part.role == "judgments"]
    return parts, [_got(repository, held.commit, files[part.path], below / "qrels", watch) for part in parts]


def _got(repository: str, commit: str, file: HubFile, below: Path, watch: Watch) -> Path:
    """A file of a commit: out of the cache of the hub's library, else downloaded; compared with its checksum."""
    cached = hub_cache() / f"datasets--{repository.replace('/', '--')}" / "snapshots" / commit / file.path
    if cached.is_file() and checksum_of(cached, file.checksum) == file.checksum:
        return cached
    to = below / file.path
    with storing(to):
        to.parent.mkdir(parents=True, exist_ok=True)

    def told(done: int, _: int | None) -> None:
        watch(f"fetch {file.path}", done, max(2, file.bytes))

    download([hub_address(repository, commit, file.path)], to, file.checksum, file.bytes, told)
    return to


def _request(parts: Sequence[HubPart], paths: Sequence[Path]) -> ImportRequest:
    """What to import: documents first, since judgments may name them by text."""
    both = sorted(zip(parts, paths, strict=True), key=lambda one: list(_KINDS).index(one[0].role))
    files = [
        FileAsked(path, {}, _KINDS[part.role], (part.split or "test") if part.role == "judgments" else "test")
        for part, path in both
    ]
    return ImportRequest(tuple(files), choices=Choices(strict=True))


def _records() -> Path:
    return home() / "hub-revisions.json"


def _known() -> dict[str, Any]:
    try:
        records = json.loads(_records().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return records if isinstance(records, dict) else {}


def _recorded(name: HubName) -> str:
    """The commit that a branch or tag stood for when it was looked up; "" where it never was."""
    record = _known().get(f"{name.repository}@{name.revision}")
    commit = str(record.get("commit", "")) if isinstance(record, dict) else ""
    return commit if _COMMIT.fullmatch(commit) else ""


def _from_library(name: HubName, watch: Watch, fetch: bool) -> Materialized:
    """What the hub's own library has kept, where nothing may be asked of the network."""
    below = hub_cache() / f"datasets--{name.repository.replace('/', '--')}"
    try:
        commit = (below / "refs" / name.revision).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        commit = ""
    folder = below / "snapshots" / commit
    if not _COMMIT.fullmatch(commit) or not folder.is_dir():
        raise DownloadError(f"{name} is not on this machine, and HF_HUB_OFFLINE forbids to ask the hub")
    collection = from_folder(folder, name.subset, watch, fetch)
    return replace(collection, name=str(name), source=str(replace(name, revision=commit)))


def is_hub_folder(folder: Path) -> bool:
    """Whether a folder is laid out as data sets of the hub are, and not as Weir's own collections."""
    return any(part.role == "documents" for part in parts_of(_paths(folder)))


def from_folder(folder: Path, subset: str, watch: Watch, fetch: bool = True) -> Materialized:
    """Bring a local folder of the hub's layout; raises BadValue or FormatError where it is no collection."""
    parts = chosen_parts(parts_of(_paths(folder)), subset, str(folder))
    paths = [folder / part.path for part in parts]
    key = ["folder", subset, [[part.path, identity(path)] for part, path in zip(parts, paths, strict=True)]]
    name = folder.resolve().name + (f"-{subset}" if subset else "")
    place = materialized(name, key, partial(imported, _request(parts, paths), watch) if fetch else None)
    return Materialized(find_layout(place), name, str(folder.resolve()) + (f"#{subset}" if subset else ""))


def _paths(folder: Path) -> Mapping[str, None]:
    return dict.fromkeys(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
