"""Estimate a grid's time, memory, disk, prompts and price."""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from weir.core.results import ResultKind
from weir.core.rounding import bytes_text, count, counted, duration
from weir.core.scores import Note
from weir.core.strings import Int64
from weir.core.tables import Table, sentences, table_of
from weir.datasets import catalogue
from weir.datasets.load import Dataset, judged_or_not, load
from weir.datasets.names import named_split
from weir.errors import BadValue, WeirError
from weir.experiment.experiment import Capacity, Experiment, distinct_datasets, refuse_other_runs, split_names
from weir.experiment.results import finished_cells, index_cost, search_cost, unscored_note
from weir.experiment.stage_store import silent
from weir.files.atomic import temporary_folder
from weir.files.text_files import Watch
from weir.models.hosted import Hosted
from weir.services.requests import Limits, estimated
from weir.settings import settings
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, parts_of, rankings
from weir.systems.expression import parse_system
from weir.systems.protocol import (
    DEPTH,
    CandidateSource,
    Composite,
    Encoding,
    Indexed,
    Prompting,
    Remote,
    Retriever,
)
from weir.systems.rerank.reranking import has_candidates, rerank_depths, rerank_room
from weir.systems.stored_run import CandidatePool, StoredRun

# ----------
# Which stages a grid has, what each is made from, and which systems share it.


Kind: TypeAlias = Literal["index", "run"]


@dataclass(frozen=True)
class Node:
    """An index or rankings that a grid computes once for each collection."""

    kind: Kind
    """"index", or "run" for the rankings of a system."""
    name: str
    """The system whose index or rankings these are."""
    inputs: tuple[str, ...]
    """Stages that it is made from, as "kind name"."""
    systems: tuple[str, ...]
    """Systems of the grid that need it."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def stage_graph(systems: Sequence[Retriever]) -> list[Node]:
    """Return the indexes and rankings that these systems need, each once, after its inputs."""
    nodes: dict[str, Node] = {}
    for system in systems:
        for node in _walk(system):
            first = nodes.setdefault(str(node), node)
            users = tuple(dict.fromkeys((*first.systems, str(system))))
            nodes[str(node)] = Node(first.kind, first.name, first.inputs, users)
    return list(nodes.values())


def _walk(system: Retriever) -> Iterator[Node]:
    inputs = []
    if isinstance(system, Composite):
        for part in system.components():
            if part.takes == "run":
                inputs.append(f"run {part.system}")
                yield from _walk(part.system)
            else:
                names = [
                    f"{name} over {part.over}" if part.over else name
                    for name in [node.name for node in _walk(part.system) if node.kind == "index"]
                ]
                inputs += [f"index {name}" for name in names]
                yield from (Node("index", name, (), ()) for name in names)
    else:
        name = str(system.indexed_as() if isinstance(system, Indexed) else system)
        inputs.append(f"index {name}")
        yield Node("index", name, (), ())
    yield Node("run", str(system), tuple(inputs), ())


def encoding_parts(system: Retriever) -> Iterator[tuple[Retriever, Encoding]]:
    """Yield (part of the system, its encoding) for each index that processes can encode in shares."""
    if isinstance(system, Composite):
        for part in system.components():
            if not part.over:
                yield from encoding_parts(part.system)
        return
    whole = system.indexed_as() if isinstance(system, Indexed) else system
    if isinstance(whole, Encoding):
        yield system, whole


# ----------
# Prompts and tokens of a language model on a collection.


def shown_candidates(system: Pipeline, dataset: Dataset, k: int) -> tuple[Int64, Int64]:
    """Return (candidates that a re-ranker receives, candidates that it scores), int64[queries] each.

    Other systems than pools and stored runs are assumed to find all permitted documents.
    """
    first, queries, corpus = system.first, dataset.queries, dataset.corpus
    room = rerank_room(system, queries, k, corpus)
    if isinstance(first, (CandidatePool, StoredRun)):
        with silent():
            candidates = np.diff(rankings(first.index(corpus), queries, room, first, dataset.name).ptr)
    else:
        candidates = np.full(len(queries), len(corpus), np.int64)
        if queries.metadata is not None and queries.metadata.candidates is not None:
            listed = queries.metadata.candidates.lengths()
            candidates = np.where(
                (listed > 0) | has_candidates(system) & system.is_drawn(), listed, candidates
            )
        candidates = np.minimum(candidates, room)
    return candidates, np.minimum(candidates, rerank_depths(system, queries))


# ----------
# Time, disk and memory of a grid, from small runs of the same systems.
#
# By default all systems run together on a few documents of each collection, then on as many as the remaining time
# allows. The costs are extended to all documents, with a range. With `precise` each system runs by itself on growing
# samples until the cost of a document can be told from noise.


SEED = 20210427
PROBING_SECONDS = 45.0
"""Seconds for all probes of a plan, unless `precise`."""
MIN_PROBING_SECONDS = 3.0
"""Remaining seconds below which no probe starts."""
MAX_SAMPLES = 3
"""Most samples of growing size, the first of a few documents."""
SAMPLE_SHARE = 0.6
"""Share of the remaining time that the next sample may take, by estimate."""
SAMPLE_GROWTH = 64
"""Largest factor between the documents of successive samples."""
TIME_NOISE_SHARE, TIME_NOISE_SECONDS = 0.25, 0.02
"""Difference in time between two runs of the same work, as a share and in seconds."""
MEMORY_NOISE_SHARE = 0.03
"""Difference in peak memory between two runs of the same work, as a share."""
FIRST_PROBE_DOCUMENTS = 16
"""Documents of the first probe, and the largest factor by which each next one grows."""
MAX_PROBE_DOCUMENTS = 20_000
PROBE_QUERIES = 16
ENOUGH_SECONDS = 2.0
"""Difference in seconds between the first and the last probe that suffices to estimate the time for a document."""
NOISE_SHARE, NOISE_MB = 0.5, 100.0
"""Growth between probes that is taken for noise: share of a query's time, and megabytes."""
MAX_PROBE_SECONDS = 20.0
"""Estimated seconds that a probe may take."""
RUN_LINE_BYTES = 48
"""Approximate bytes of a line of a run."""
QUERY_WORDS, DOCUMENT_WORDS = 10.0, 130.0
"""Lengths if none is published: about the mean of the BEIR paper's collections."""
BYTES_PER_WORD = 6.0
PROMPTS_NOTE = (
    "prompts are those asked at most; tokens those of documents of mean length and the longest answers, by estimate; "
    "answers that are kept already cost nothing"
)
_NOT_HERE = "not on this machine: probed with made texts of the published length"


@dataclass(frozen=True)
class Planned:
    """Estimated costs of a system on a collection, with ranges; None for an unknown figure."""

    dataset: str
    system: str
    documents: int
    queries: int
    probed: tuple[int, int] | None = None
    """Documents of the smallest and the largest probe."""
    index_seconds: float | None = None
    """Seconds to index all documents."""
    search_seconds: float | None = None
    """Seconds to search for all queries."""
    disk_bytes: float | None = None
    """Bytes of index, vectors and rankings."""
    peak_mb: float | None = None
    tokens: float | None = None
    """Tokens of an embedding API or a language model; estimated without a probe, like `dollars` and `prompts`."""
    dollars: float | None = None
    notes: tuple[str, ...] = ()
    prompts: int | None = None
    longest_tokens: float | None = None
    """Tokens if all documents had the greatest length."""
    index_range: tuple[float, float] | None = None
    """(low, high) of the estimate; likewise the three ranges below."""
    search_range: tuple[float, float] | None = None
    disk_range: tuple[float, float] | None = None
    peak_range: tuple[float, float] | None = None
    """None also where probes of one size alone were made, whose memory is the least that is taken."""
    asks: tuple[tuple[str, int, float, float | None], ...] = ()
    """(key of the questions, prompts, tokens, dollars) for each language model; equal keys are asked once."""


def planned_total(plans: Sequence[Planned]) -> tuple[int, float, float | None] | None:
    """Return (prompts, tokens, dollars) of all language models in a plan; None without any.

    Counts shared prompts once; dollars are None if no price is known.
    """
    most: dict[tuple[str, str], tuple[int, float, float | None]] = {}
    for one in plans:
        for key, prompts, tokens, dollars in one.asks:
            before = most.get((one.dataset, key))
            if before is None or before[0] < prompts:
                most[one.dataset, key] = (prompts, tokens, dollars)
    if not most:
        return None
    prices = [dollars for _, _, dollars in most.values() if dollars is not None]
    totals = (sum(prompts for prompts, *_ in most.values()), sum(tokens for _, tokens, _ in most.values()))
    return *totals, sum(prices) if prices else None


@dataclass(frozen=True)
class _Subject:
    name: str
    documents: int
    queries: int
    words: tuple[float, float]
    """Mean words of a document and a query; used if `dataset` is None."""
    dataset: Dataset | None

    @property
    def pool(self) -> int | None:
        if self.dataset is not None:
            metadata = self.dataset.queries.metadata
            lists = None if metadata is None else dict(metadata.lists()).get("candidates")
            return None if lists is None else int(lists.lengths().max())
        entry = catalogue.get(self.name)
        judged = entry.candidates == "judged" and entry.grades and self.queries
        return -(-sum(entry.grades.values()) // self.queries) if judged else None

    def sample(self, count: int, folder: Path) -> None:
        rng = np.random.default_rng(SEED)
        if self.dataset is not None:
            corpus, all_queries = self.dataset.corpus, self.dataset.queries
            rows = np.sort(rng.choice(len(corpus), count, replace=False))
            titles = [""] * count if corpus.title is None else corpus.title.take(rows).tolist()
            some = rng.choice(len(all_queries), min(PROBE_QUERIES, len(all_queries)), replace=False)
            texts, queries = corpus.text.take(rows).tolist(), all_queries.text.take(some).tolist()
        else:
            words = [
                word
                for member in catalogue.group("brook").members
                for text in load(member).corpus.text
                for word in text.split()
            ]
            titles = [""] * count
            texts = [" ".join(rng.choice(words, n)) for n in rng.poisson(self.words[0], count) + 1]
            queries = [" ".join(rng.choice(words, n)) for n in rng.poisson(self.words[1], PROBE_QUERIES) + 1]
        listed = [f"d{i}" for i in range(min(count, self.pool or 0))]
        more = {"metadata": {"candidates": listed}} if listed else {}
        (folder / "qrels").mkdir(parents=True)
        for name, lines in (
            ("corpus", [{"_id": f"d{i}", "title": title, "text": text}
                        for i, (title, text) in enumerate(zip(titles, texts, strict=True))]),
            ("queries", [{"_id": f"q{i}", "text": text, **more} for i, text in enumerate(queries)]),
        ):  # fmt: skip
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (folder / f"{name}.jsonl").write_text(text, encoding="utf-8", newline="\n")
        judged = "".join(f"q{i} 0 d0 1\n" for i in range(len(queries)))
        (folder / "qrels" / "test.tsv").write_text(judged, encoding="utf-8", newline="\n")


@dataclass(frozen=True)
class _Probe:
    documents: int
    index: float
    bytes: float
    search: float
    """Seconds per query."""
    peak_mb: float
    queries: int = PROBE_QUERIES


_Probes: TypeAlias = dict[tuple[str, str], list[_Probe]]
"""Probes of growing size by (collection, system)."""


def planned(experiment: Experiment, watch: Watch, precise: bool = False) -> list[Planned]:
    """Return the estimated costs of each system on each collection, from runs on samples.

    precise: probe each system by itself without a time limit, instead of all within PROBING_SECONDS.

    Random texts replace a missing collection. Raises UnknownName and BadValue as running would, BadValue for
    functions and objects, and if all probes fail.
    """
    deadline = time.monotonic() + PROBING_SECONDS
    experiment.refuse_empty()
    systems = experiment.parsed_systems()
    for system in systems:
        # Raise BadValue for a system that cannot be handed to another process by its name
        try:
            by_name: Retriever | None = parse_system(str(system))
        except WeirError:
            by_name = None
        if by_name != system:
            raise BadValue(
                f"{system} holds a function or object, which a probe in a process of its own cannot be given"
            )
    subjects = []
    splits = [named_split(str(reference)) for reference in experiment.datasets]
    for name, split in ((member, split) for one, split in splits for member in catalogue.members(one)):
        entry = catalogue.get(name) if name in catalogue.collection_names() else None
        if entry is not None and not entry.here:
            words = (entry.words_per_document or DOCUMENT_WORDS, entry.words_per_query or QUERY_WORDS)
            subjects.append(_Subject(name, entry.documents, entry.queries, words, None))
        else:
            dataset = judged_or_not(load(name, split))
            subjects.append(
                _Subject(dataset.name, len(dataset.corpus), len(dataset.queries), (0.0, 0.0), dataset)
            )
    distinct = distinct_datasets(one.dataset for one in subjects if one.dataset is not None)
    names = dict(zip(map(id, distinct), split_names(distinct), strict=True))
    subjects = [
        one if one.dataset is None else replace(one, name=names[id(one.dataset)])
        for one in subjects
        if one.dataset is None or id(one.dataset) in names
    ]
    for system in systems:
        for dataset in distinct:
            refuse_other_runs(system, dataset)
    probed = [
        system
        for system in systems
        if (not _asks_an_api(system) and not any(isinstance(part, Remote) for part in parts_of(system)))
    ]
    quick, failed = _Probes(), dict[str, BadValue]()
    if probed and not precise:
        watch(f"{counted(len(subjects), 'collection')}  probes", 0, 1)
        try:
            quick = _probe_samples(subjects, probed, experiment.k, deadline)
        except BadValue:
            failed = _failed(subjects[0], probed, experiment.k)
            rest = [system for system in probed if str(system) not in failed]
            if not failed or not rest:
                raise
            quick = _probe_samples(subjects, rest, experiment.k, time.monotonic() + PROBING_SECONDS)
    plans = []
    for subject in subjects:
        for system in systems:
            if precise:
                watch(f"{subject.name}  {system}  probe", 0, 1)
            try:
                if str(system) in failed:
                    raise failed[str(system)]
                plans.append(_system_plan(subject, system, experiment.k, quick, precise))
            except BadValue as error:
                failed[str(system)] = error
                reason = str(error).removeprefix(f"{system}: ")
                plan = Planned(subject.name, str(system), subject.documents, subject.queries)
                plans.append(replace(plan, notes=(reason,)))
    if len(failed) == len(set(map(str, systems))):
        raise next(iter(failed.values()))
    return plans


def _failed(subject: _Subject, systems: Sequence[Retriever], k: int) -> dict[str, BadValue]:
    failed = dict[str, BadValue]()
    with temporary_folder("plan") as name:
        for number, system in enumerate(systems):
            try:
                _probe(
                    [(subject, min(FIRST_PROBE_DOCUMENTS, subject.documents))],
                    [system],
                    k,
                    name / str(number),
                )
            except BadValue as error:
                failed[str(system)] = error
    return failed


def _probe_samples(
    subjects: Sequence[_Subject], systems: Sequence[Retriever], k: int, deadline: float
) -> _Probes:
    counts, probes = [min(FIRST_PROBE_DOCUMENTS, subject.documents) for subject in subjects], _Probes()
    with temporary_folder("plan") as name:
        for number in range(MAX_SAMPLES):
            begun = time.monotonic()
            if deadline - begun < MIN_PROBING_SECONDS:
                break
            samples = list(zip(subjects, counts, strict=True))
            place = name / str(number)
            for cell, probe in _probe(samples, systems, k, place, deadline - begun).items():
                probes.setdefault(cell, []).append(probe)
            seconds_left = deadline - time.monotonic()
            worked = sum(some[-1].index + some[-1].search * some[-1].queries for some in probes.values())
            room = SAMPLE_SHARE * seconds_left - max(0.0, time.monotonic() - begun - worked)
            larger = []
            for subject, count in samples:
                of_subject = [some for (name, _), some in probes.items() if name == subject.name]
                most = min(SAMPLE_GROWTH * count, MAX_PROBE_DOCUMENTS, subject.documents)
                while most > count and _likely_seconds(most, of_subject) > room / len(subjects):
                    most //= 2
                larger.append(max(most, count))
            if larger == counts or len(probes) < len(subjects) * len(systems):
                break
            counts = larger
    return probes


def _likely_seconds(documents: int, probes: Sequence[Sequence[_Probe]]) -> float:
    ends = [(_between(documents, some, what), some[-1].queries if what == "search" else 1)
            for some in probes for what in ("index", "search")]  # fmt: skip
    return sum(times * (low + high) / 2 for (low, high), times in ends)


def _system_plan(subject: _Subject, system: Retriever, k: int, quick: _Probes, precise: bool) -> Planned:
    notes = [] if subject.dataset else [_NOT_HERE]
    pipelines = [part for part in parts_of(system) if isinstance(part, Pipeline)]
    notes += [note for part in pipelines if (note := _unscored(subject, part, k))]
    plan = Planned(subject.name, str(system), subject.documents, subject.queries)
    if _asks_an_api(system):
        return _of_an_api(subject, plan, notes)
    if prompted := [part for part in pipelines if isinstance(part.reranker, Prompting)]:
        return _prompted(subject, plan, system, prompted, k, notes)
    if services := [part.service for part in parts_of(system) if isinstance(part, Remote)]:
        asked = [f"{service} is asked {subject.queries:,} queries; it is not probed" for service in services]
        return replace(plan, notes=(*notes, *asked))
    other = next((name for name, of in quick if of == str(system)), None)
    if precise:
        return _extended_plan(subject, plan, system, k, _probes(subject, system, k), notes, precise)
    if other is None:
        late = (
            f"no probe ended within {PROBING_SECONDS:g} seconds; `precise=True` takes the time that it needs"
        )
        return replace(plan, notes=(*notes, late))
    if (subject.name, str(system)) in quick:
        other = subject.name
    else:
        notes.append(f"as {other}, document for document: no time was left for a probe")
    return _extended_plan(subject, plan, system, k, quick[other, str(system)][-2:], notes, precise)


def _unscored(subject: _Subject, part: Pipeline, k: int) -> str:
    if subject.dataset is None:
        candidates, reranked = (subject.queries * count for count in _estimated_candidates(subject, part, k))
    else:
        adapted = adapted_to(part, subject.dataset.name, subject.dataset.instruction)
        candidates, reranked = (int(some.sum()) for some in shown_candidates(adapted, subject.dataset, k))
    missed = candidates - reranked
    return unscored_note(str(part), missed, candidates, "up to ") if missed > 0 else ""


def _of_an_api(subject: _Subject, plan: Planned, notes: Sequence[str]) -> Planned:
    if subject.dataset is None:
        words = subject.words[0] * subject.documents + subject.words[1] * subject.queries
        tokens = BYTES_PER_WORD / 3 * words
    else:
        corpus = subject.dataset.corpus
        columns = [corpus.text, *([] if corpus.title is None else [corpus.title])]
        size = float(sum(int(column.lengths().sum()) for column in columns))
        tokens = size / 3 + sum(estimated(query) for query in subject.dataset.queries.text)
    kept = "an embedding API is not probed; texts that are stored already cost nothing"
    dollars = Limits.of(settings()).cost(int(tokens))
    return replace(plan, tokens=tokens, dollars=dollars, notes=(*notes, kept))


def _extended_plan(
    subject: _Subject,
    plan: Planned,
    system: Retriever,
    k: int,
    probes: Sequence[_Probe],
    notes: list[str],
    precise: bool,
) -> Planned:
    first, last = probes[0], probes[-1]
    drawn = isinstance(system, CandidateSource) and system.is_drawn()
    searched = min(subject.documents, subject.pool or subject.documents) if drawn else subject.documents
    search, peak = last.search, last.peak_mb
    # Growth below the noise between runs of one size must not be extrapolated.
    if last.documents < searched and last.search - first.search > NOISE_SHARE * first.search:
        search = _extended(searched, (first.documents, first.search), (last.documents, last.search))
    if last.peak_mb - first.peak_mb > NOISE_MB:
        peak = _extended(subject.documents, (first.documents, first.peak_mb), (last.documents, last.peak_mb))
    grown = (("search", search, last.search, searched), ("memory", peak, last.peak_mb, subject.documents))
    # Most memory is no document's, so that of one size says nothing of another.
    one_size = first.documents == last.documents < subject.documents
    peak_range = None if one_size else _between(subject.documents, probes, "peak_mb")
    notes += [
        f"{cost} is that of {last.documents} documents, in which no growth could be seen: at least"
        for cost, value, measured, whole in grown
        if (precise or (cost == "memory" and one_size)) and value == measured and last.documents < whole
    ]
    rankings_bytes = RUN_LINE_BYTES * subject.queries * min(k, subject.documents)
    size = last.bytes / last.documents * subject.documents + rankings_bytes
    # The index of a small collection holds more for each document than that of a large one.
    least = size
    if last.documents != subject.documents:
        step = last.documents - first.documents
        slope = (last.bytes - first.bytes) / step if step else 0.0
        least = last.bytes + max(0.0, slope) * (subject.documents - last.documents) + rankings_bytes
    notes += _beyond_this_machine(size, 1e6 * peak)
    low, high = _between(searched, probes, "search")
    index = _extended(subject.documents, (first.documents, first.index), (last.documents, last.index))
    return replace(
        plan,
        probed=(first.documents, last.documents),
        index_seconds=index,
        search_seconds=search * subject.queries,
        disk_bytes=size,
        peak_mb=peak,
        notes=tuple(notes),
        index_range=_between(subject.documents, probes, "index"),
        search_range=(low * subject.queries, high * subject.queries),
        disk_range=(min(least, size), max(least, size)),
        peak_range=peak_range,
    )


def _beyond_this_machine(disk: float, memory: float) -> Iterator[str]:
    home = next(place for place in (settings().home, *settings().home.parents) if place.exists())
    free = shutil.disk_usage(home).free
    if disk > free:
        yield f"more disk than is free at {home}: {free / 1e9:.1f} GB"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if memory > there:
            yield f"more memory than this machine has: {there / 1e9:.1f} GB"


def _estimated_candidates(subject: _Subject, system: Pipeline, k: int) -> tuple[int, int]:
    depth, first, room = system.reranker.depth, system.first, max(k, system.reranker.depth or DEPTH)
    if depth is None and isinstance(first, CandidateSource):
        room = first.pool_depth(k, subject.documents) or room
    candidates = min(room if subject.pool is None else subject.pool, subject.documents)
    whole = depth is None and (subject.pool is not None or has_candidates(system))
    return candidates, candidates if whole else min(candidates, depth or DEPTH)


def _between(documents: int, probes: Sequence[_Probe], name: str) -> tuple[float, float]:
    # Both probes may be off by the noise between equal runs; the line rises, at most in proportion. With one probe, or
    # if the larger took less time (the first may have loaded compiled code), the range runs from the last value to
    # that value in proportion.
    first, last = probes[max(0, len(probes) - 2)], probes[-1]
    v1, v2 = (
        float({"index": p.index, "search": p.search, "peak_mb": p.peak_mb}[name]) for p in (first, last)
    )
    least = {"index": TIME_NOISE_SECONDS, "search": TIME_NOISE_SECONDS / last.queries, "peak_mb": 0.0}[name]
    share = MEMORY_NOISE_SHARE if name == "peak_mb" else TIME_NOISE_SHARE
    off1, off2 = (max(share * value, least) for value in (v1, v2))
    more = documents - last.documents
    most = (v2 + off2) / last.documents
    low = high = most
    if first.documents < last.documents and (v1 <= v2 or name == "peak_mb"):
        step = last.documents - first.documents
        low, high = ((v2 - v1 + sign * (off1 + off2)) / step for sign in (-1, 1))
    else:
        low = 0.0
    return (
        max(0.0, v2 - off2) + min(max(0.0, low), most) * more,
        v2 + off2 + min(max(0.0, high), most) * more,
    )


def _prompted(
    subject: _Subject, plan: Planned, system: Retriever, prompted: list[Pipeline], k: int, notes: list[str]
) -> Planned:
    limits, dataset = Limits.of(settings()), subject.dataset
    notes = [
        "not on this machine: lengths are those published" if note == _NOT_HERE else note for note in notes
    ]
    models = {part.reranker.service for part in prompted if isinstance(part.reranker, Prompting)}
    remote = [part.service for part in parts_of(system) if isinstance(part, Remote)]
    notes += [
        f"{service} is asked {subject.queries:,} queries; it is not probed"
        for service in remote
        if service not in models
    ]
    asks, longest = [], list[int]()
    for pipeline in prompted:
        part = pipeline.reranker
        assert isinstance(part, Prompting)  # those that ask a language model were chosen before
        if dataset is None:
            document, query = (BYTES_PER_WORD * words for words in subject.words)
            _, depth = _estimated_candidates(subject, pipeline, k)
            estimate = part.plan_words(depth, subject.queries, document, query)
        else:
            adapted = adapted_to(pipeline, dataset.name, dataset.instruction)
            part = adapted.reranker
            assert isinstance(part, Prompting)  # it is adapted to what it was
            part = part.for_collection(dataset)
            shown = shown_candidates(replace(adapted, reranker=part), dataset, k)[1]
            estimate = part.plan_prompts(dataset, shown)
        price = None if part.local else limits.cost(estimate.tokens, estimate.answer_tokens)
        text = json.dumps(part.asked() | {"first": str(pipeline.first)}, sort_keys=True, default=str)
        key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        asks.append((key, estimate.prompts, float(estimate.tokens), price))
        longest += [] if estimate.longest is None else [estimate.longest]
    costs = [price for *_, price in asks if price is not None]
    return replace(
        plan,
        tokens=sum(tokens for _, _, tokens, _ in asks),
        dollars=sum(costs) if costs else None,
        notes=(*notes, PROMPTS_NOTE),
        prompts=sum(prompts for _, prompts, _, _ in asks),
        longest_tokens=sum(longest) if len(longest) == len(prompted) else None,
        asks=tuple(asks),
    )


def _probes(subject: _Subject, system: Retriever, k: int) -> list[_Probe]:
    count = min(FIRST_PROBE_DOCUMENTS, subject.documents)
    with temporary_folder("plan") as name:
        probes = list(_probe([(subject, count)], [system], k, name / "0").values())
        while probes[-1].documents < min(MAX_PROBE_DOCUMENTS, subject.documents):
            last = probes[-1]
            if last.index - probes[0].index >= ENOUGH_SECONDS or (
                last.index > MAX_PROBE_SECONDS and len(probes) > 1
            ):
                break
            bearable = int(MAX_PROBE_SECONDS * last.documents / max(last.index, 0.001))
            count = min(
                max(2 * last.documents, bearable), 16 * last.documents, MAX_PROBE_DOCUMENTS, subject.documents
            )
            probes += _probe([(subject, count)], [system], k, name / str(len(probes))).values()
            if (
                probes[1].index < probes[0].index
            ):  # the first one compiled kernels, or read a model from a cold disk
                del probes[0]
    return probes


def _probe(
    samples: Sequence[tuple[_Subject, int]],
    systems: Sequence[Retriever],
    k: int,
    place: Path,
    seconds: float | None = None,
) -> dict[tuple[str, str], _Probe]:
    home, results = place / "home", place / "results"
    for number, (subject, documents) in enumerate(samples):
        subject.sample(documents, place / f"sample-{number}")
    for cache in ("encoders", "openvino"):  # hashes of checkpoints, and what was quantised before
        if (settings().home / cache).is_dir():
            shutil.copytree(settings().home / cache, home / cache)
    command = [sys.executable, "-m", "weir", "run", "-m", "P@1", "-k", str(k), "-o", str(results)]
    command += ["--json", "-q"]
    command += [part for number in range(len(samples)) for part in ("-d", str(place / f"sample-{number}"))]
    command += [part for system in systems for part in ("-s", str(system))]
    environment = os.environ | {"WEIR_HOME": str(home)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        done = None
    if done is not None and done.returncode != 0:
        reason = (done.stderr.strip().split("\n") or [""])[-1].removeprefix("weir: ")
        title = str(systems[0]) if len(systems) == 1 else f"{len(systems)} systems"
        of = samples[0][0].name if len(samples) == 1 else f"{len(samples)} collections"
        raise BadValue(f"{title}: the probe on {samples[0][1]} documents of {of} failed: {reason}")
    probes = {}
    for cell in finished_cells(results) if next(results.glob("*/*/scores-*.json"), None) else ():
        index, search = index_cost(cell), search_cost(cell)
        subject, count = samples[int(cell.dataset.removeprefix("sample-"))]
        queries = max(1, search["queries"])
        peak = max(index.get("peak_mb", 0.0), search["peak_mb"])
        index_costs = (index.get("seconds", 0.0), index.get("bytes", 0))
        probe = _Probe(count, *index_costs, search["seconds"] / queries, peak, queries)
        for system in systems:  # those of one key share a cell, which bears one of their names
            if str(system) == cell.system or (
                (subject.name, str(system)) not in probes
                and (system.describe() == parse_system(cell.system).describe())
            ):
                probes[subject.name, str(system)] = probe
    shutil.rmtree(place, ignore_errors=True)
    return probes


def _extended(documents: int, small: tuple[int, float], large: tuple[int, float]) -> float:
    (n1, v1), (n2, v2) = small, large
    if n2 == n1:
        return v2
    return v2 + (v2 - v1) / (n2 - n1) * (documents - n2) if v2 >= v1 else v2 / n2 * documents


def _asks_an_api(system: object) -> bool:
    if isinstance(system, Hosted):
        return True
    if isinstance(system, tuple):
        return any(map(_asks_an_api, system))
    parts = (getattr(system, f.name) for f in fields(system)) if is_dataclass(system) else ()
    return any(_asks_an_api(part) for part in parts if is_dataclass(part) or isinstance(part, tuple))


# ----------
# Tables.


def _plan_tables(results: Sequence[Planned]) -> tuple[Table, ...]:
    def between(
        written: Callable[[float | None], str], value: float | None, ends: tuple[float, float] | None
    ) -> str:
        if ends is None or written(ends[0]) == written(ends[1]):
            return written(value)
        return f"{written(ends[0])} to {written(ends[1])}"

    def calls(prompts: int | None, tokens: float | None, dollars: float | None) -> list[str]:
        return [
            "-" if prompts is None else count(prompts),
            "-" if tokens is None else count(tokens),
            "-" if dollars is None else f"{dollars:,.2f}",
        ]

    total = planned_total(results)
    called = any(one.tokens is not None for one in results)
    probed = not called or any(one.probed is not None for one in results)
    costs = ["index", "search", "disk", "memory"] if probed else []
    head = ["dataset", "system", "documents", "queries", *costs, *["prompts", "tokens", "dollars"] * called]
    lines = [head]
    for one in results:
        line = [one.dataset, one.system, count(one.documents), count(one.queries)]
        if probed:
            peak = None if one.peak_mb is None else 1e6 * one.peak_mb
            peaks = None if one.peak_range is None else (1e6 * one.peak_range[0], 1e6 * one.peak_range[1])
            line += [
                between(duration, one.index_seconds, one.index_range),
                between(duration, one.search_seconds, one.search_range),
                between(bytes_text, one.disk_bytes, one.disk_range),
                between(bytes_text, peak, peaks),
            ]
        lines.append([*line, *(calls(one.prompts, one.tokens, one.dollars) if called else [])])
    if total is not None and len(results) > 1:
        blank = [""] * (2 + len(costs))
        lines.append(["in all, what is shared once", "", *blank, *calls(*total)])
    return (table_of(lines, right=len(head) - 2, keys=2),)


PLANS = ResultKind("plan", Planned, _plan_tables)


def _stage_tables(nodes: Sequence[Node]) -> tuple[Table, ...]:
    lines = []
    for node in nodes:
        made_from = f"  from {', '.join(node.inputs)}" if node.inputs else ""
        shared = f"  for {len(node.systems)} systems" if len(node.systems) > 1 else ""
        lines.append(f"  {node}{made_from}{shared}")
    return (sentences("stages on each collection, each made once:", *lines),)


NODES = ResultKind("stages", Node, _stage_tables)


def plan_notes(results: Sequence[Planned]) -> list[Note]:
    """Return notes on how a plan's figures were estimated, and on single systems."""
    probed = [one.probed for one in results if one.probed is not None]
    notes = []
    if probed:
        least, most = min(p[0] for p in probed), max(p[1] for p in probed)
        upto = f" to {count(most)}" if most > least else ""
        notes.append(
            f"extended along a line from runs on {count(least)}{upto} documents, one after the other "
            "on this machine as it is now; what is stored already takes no time again"
        )
    cells: dict[str, list[Planned]] = {}
    for one in results:
        for note in one.notes:
            cells.setdefault(note, []).append(one)
    for note, cells_of in cells.items():
        first = f"{cells_of[0].dataset}, {cells_of[0].system}"
        others = f" and {count(len(cells_of) - 1)} others" if len(cells_of) > 1 else ""
        notes.append(f"{note}" if len(cells_of) == len(results) else f"{first}{others}: {note}")
    longest = [(one, one.longest_tokens) for one in results if one.longest_tokens is not None]
    if longest:
        one, tokens = max(longest, key=lambda pair: pair[1])
        notes.append(
            f"with the longest documents {count(tokens)} tokens at most ({one.dataset}, {one.system})"
        )
    seconds = [s for one in results for s in (one.index_seconds, one.search_seconds) if s is not None]
    if len(results) > 1 and seconds:
        low, high = (sum(_seconds_at(one, end) for one in results) for end in (0, 1))
        notes.append(
            f"{duration(sum(seconds))} in all ({duration(low)} to {duration(high)}), less what systems share: each "
            "stage is made once"
        )
    return [Note(note) for note in notes]


# ----------
# A grid on a cluster.


def cluster_note(plans: Sequence[Planned], capacity: Capacity, machine_price: float | None = None) -> Note:
    """Return a note on a grid's time on a cluster, with its range, and its price if known.

    machine_price: dollars for a machine and hour.
    """

    def total_time(seconds: Sequence[float]) -> float:
        ends = [0.0] * capacity.cells
        for one in seconds:
            heapq.heapreplace(ends, ends[0] + one)
        return max(ends)

    probed = [one for one in plans if one.index_seconds is not None or one.search_seconds is not None]
    middle = [(one.index_seconds or 0.0) + (one.search_seconds or 0.0) for one in probed]
    ends = [[_seconds_at(one, end) for one in probed] for end in (0, 1)]
    times = [total_time(middle), *map(total_time, ends)]
    machines = f"{count(capacity.machines)} machine{'s' * (capacity.machines > 1)}"
    at_once = f"{count(capacity.cells)} cell{'s' * (capacity.cells > 1)} at once"
    cells = f"{count(len(probed))} cell{'s' * (len(probed) != 1)}"
    text = f"on {machines}, {at_once}: {cells} in {duration(times[0])} ({duration(times[1])} to {duration(times[2])})"
    if machine_price is not None:
        dollars = [f"${capacity.machines * machine_price * seconds / 3600:,.2f}" for seconds in times]
        text += f", {dollars[0]} ({dollars[1]} to {dollars[2]})"
    if len(probed) < len(plans):
        text += f"; {count(len(plans) - len(probed))} more without an estimate"
    if middle:
        longest = probed[middle.index(max(middle))]
        text += f"; the longest, {longest.system} on {longest.dataset}, takes {duration(max(middle))}"
    return Note(
        text, "processors as fast as this machine's, and stages that cells share made for each of them"
    )


def _seconds_at(one: Planned, end: int) -> float:
    """Return the seconds of index and search at the low (0) or high (1) end of their ranges."""
    costs = ((one.index_seconds, one.index_range), (one.search_seconds, one.search_range))
    return sum((value or 0.0) if ends is None else ends[end] for value, ends in costs)
