"""Which files of a data set hold documents, queries or judgments, by the names that collections on the hub use.

corpus/test-00000-of-00001.parquet  queries/...  qrels/...  top_ranked/...       MTEB, NanoBEIR, FollowIR
corpus.jsonl  queries.jsonl  qrels/test.jsonl                                    BEIR, older MTEB
documents/biology-00000-of-00001.parquet  examples/biology-...                   BRIGHT
ar-corpus/...  ar-queries/...  ar-qrels/...                                      several collections in one
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from weir.errors import BadValue

__all__ = ["HubPart", "chosen_parts", "parts_of"]

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
    found = []
    for path in sorted(paths):
        if not _plain_name(path).endswith(ENDINGS) or any(one.startswith(".") for one in path.split("/")):
            continue
        config, split = _declared(path, configs) or _by_path(path)
        role, subset = _role(config)
        if role:
            found.append(HubPart(path, role, subset, split))
    return found


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
    found = f"has no '{wanted}'" if wanted else "holds several collections"
    return BadValue(f"{shown}: {found}; say one of {listed}, as in {shown}#{min(there, default='NAME')}")


def _of_subset(parts: Sequence[HubPart], role: str, subset: str) -> list[HubPart]:
    """The parts of a role that belong to a collection: its own, else those that belong to all."""
    own = [part for part in parts if part.role == role and part.subset == subset]
    return own or [part for part in parts if part.role == role and not part.subset]
