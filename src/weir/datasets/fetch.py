"""Download collections of the catalogue from the first source that has all files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from weir.argument_types import checked
from weir.core.rounding import counted
from weir.datasets import catalogue
from weir.datasets.catalogue import Entry
from weir.datasets.load import Dataset, how_to_obtain, load_group, of_reference
from weir.datasets.names import catalogue_name, is_reference, named_split
from weir.datasets.references import materialize, source
from weir.errors import UNKNOWN_SERVER, DownloadError, DownloadWarning, WeirError, give_warning
from weir.files.atomic import storing
from weir.files.pickles import is_pickle
from weir.settings import settings

if TYPE_CHECKING:
    from weir.files.downloads import Progress

# ----------
# A hash of the content of a collection, whatever its order and white space.


VERSION = 1
_BATCH_DOCUMENTS = 4096


def content_of(dataset: Dataset) -> str:
    """Return a hash of a split's documents, judged queries and judgments; reads every document.

    Order, white space, metadata and unjudged queries do not change it.
    """

    def document_rows() -> Iterator[tuple[str, ...]]:
        corpus = dataset.corpus
        for start in range(0, len(corpus), _BATCH_DOCUMENTS):
            stop = min(start + _BATCH_DOCUMENTS, len(corpus))
            ids, texts = (column.slice(start, stop).tolist() for column in (corpus.ids.column, corpus.text))
            titles = [""] * len(ids) if corpus.title is None else corpus.title.slice(start, stop).tolist()
            yield from zip(ids, titles, texts, strict=True)

    judgments = (
        (query, document, str(int(grade)) if float(grade).is_integer() else repr(float(grade)))
        for query, row in dataset.qrels.to_dict().items()
        for document, grade in row.items()
    )
    whole = hashlib.sha256(f"weir content {VERSION}".encode())
    parts: tuple[Iterable[tuple[str, ...]], ...] = (
        document_rows(),
        dataset.queries.to_dict().items(),
        judgments,
    )
    for records in parts:
        count = total = 0
        for record in records:
            tidy = "\0".join(" ".join(text.split()) for text in record).encode("utf-8", "surrogatepass")
            total += int.from_bytes(hashlib.blake2b(tidy, digest_size=16).digest(), "big")  # in any order
            count += 1
        whole.update(f" {count} {total % (1 << 128):x}".encode())
    return whole.hexdigest()[:32]


# ----------
# Collections from the first source that gives them whole.


@checked
def fetch(name: str, progress: Progress | None = None) -> list[Dataset]:
    """Download, verify and unpack a collection, or every member of a group, and return the datasets.

    name: a name in the catalogue, or a reference such as hf:mteb/nfcorpus.
    progress: called with (bytes so far, total bytes or None).

    Skips collections on this machine, except a reference with a newer commit. For an unavailable archive, takes a
    copy of equal content, with a DownloadWarning. Raises UnknownName for an unknown name, DownloadError with the
    reason of each source.
    """
    if is_reference(name):
        datasets = [_materialized(name, progress, again=True)]
    else:
        failed: dict[str, str] = {}
        for entry in map(catalogue.get, catalogue.members(name)):
            if not entry.here:
                _from_any_source(entry, progress, failed)
        datasets = load_group(catalogue.catalogued(name) or name)
    for dataset in datasets:
        dataset.corpus  # noqa: B018  (the first use builds the store)
    return datasets


def refuse_unknown(name: str) -> None:
    """Raise UnknownName for a name that is neither in the catalogue nor a reference."""
    if not is_reference(name):
        catalogue.group(name) if catalogue.is_group(name) else catalogue.get(name)


def fetch_missing(names: Iterable[str], progress: Callable[[str, int, int], None]) -> None:
    """Download the named collections and groups of the catalogue that are not on this machine; ignore other names.

    progress: called with (name of the step, amount done, total).

    Raises DownloadError with the reason of each source.
    """
    for given in names:
        name, _ = named_split(given)
        if not catalogue.is_group(name):
            name = catalogue_name(name)
        if name and not all(catalogue.get(member).here for member in catalogue.members(name)):

            def advance(done: int, total: int | None, stage: str = f"fetch {name}") -> None:
                progress(stage, done, total or 0)

            fetch(name, advance)


def _materialized(
    name: str, progress: Progress | None, again: bool = False, split: str | None = None
) -> Dataset:
    def watch(_: str, done: int, total: int) -> None:
        if progress is not None and total > 1:
            progress(done, total)

    collection = materialize(name, watch, again)
    assert collection is not None
    return of_reference(collection, split)


def _from_any_source(entry: Entry, progress: Progress | None, failed: dict[str, str]) -> None:
    # `failed` maps archives that were tried before, for other members, to the reason.
    if entry.obtain:
        raise DownloadError(how_to_obtain(entry))
    if progress is not None:
        progress(0, entry.bytes or 1)  # before anything answers
    if entry.urls and entry.archive not in failed:
        try:
            from weir.files.downloads import download, extract

            top = settings().home / "datasets" / entry.folder.partition("/")[0]
            archive = top.with_name(entry.archive)
            mirror = settings().mirror
            first = [f"{mirror.rstrip('/')}/{entry.archive}"] if mirror else []
            download([*first, *entry.urls], archive, f"md5:{entry.md5}", entry.bytes, progress)
            try:
                if is_pickle(archive):
                    source("birco", archive)(archive, entry.path)
                else:
                    extract(archive, top)
            finally:
                archive.unlink(missing_ok=True)
            if not entry.here:
                raise DownloadError(f"{entry.archive} holds no folder {entry.folder}")
            return
        except DownloadError as error:
            failed[entry.archive] = str(error)
    reasons = [failed[entry.archive]] if entry.urls else []
    for name in entry.copies:
        try:
            copy = _materialized(name, progress, split=entry.split)
            if differs := _difference(entry, copy):
                raise DownloadError(f"{name}: {differs}")
            with storing(entry.path):
                entry.path.parent.mkdir(parents=True, exist_ok=True)
                copy.layout.root.rename(entry.path)
                for ending in ("", ".part", ".part.json"):  # what the archive left
                    (settings().home / "datasets" / f"{entry.archive}{ending}").unlink(missing_ok=True)
        except WeirError as error:
            reasons.append(str(error) if name in str(error) else f"{name}: {error}")
            continue
        if reasons:
            give_warning(DownloadWarning(f"{entry.name} comes from {name}: {'; '.join(reasons)}"))
        return
    offline = all(UNKNOWN_SERVER in reason for reason in reasons)
    raise DownloadError(
        f"{entry.name} could not be fetched: without a network copy its folder from another machine to {entry.path}, "
        "have WEIR_MIRROR name a place that holds the archive, or take brook, which comes with Weir; "
        + (
            f"no server of {counted(len(reasons), 'source')} is known here"
            if offline
            else f"tried: {'; '.join(reasons)}"
        )
    )


def _difference(entry: Entry, copy: Dataset) -> str:
    if entry.content:
        content = content_of(copy)
        return "" if content == entry.content else f"its content is {content}, published is {entry.content}"
    grades, counts = np.unique(copy.qrels.grade, return_counts=True)
    pairs = (
        ("documents", len(copy.corpus), entry.documents),
        ("judged queries", len(copy.queries), entry.queries),
        ("grades", dict(zip(grades.tolist(), counts.tolist(), strict=True)), entry.grades),
    )
    return "; ".join(f"its {what} are {ours}, published are {n}" for what, ours, n in pairs if ours != n)
