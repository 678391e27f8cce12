"""What a grid will take before it is started: time, memory, disk, prompts, money."""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from weir.core.results import result
from weir.core.rounding import count, duration, size
from weir.core.scores import Note
from weir.core.strings import Float64, Int64
from weir.core.tables import Table, sentences, table_of
from weir.datasets import catalogue
from weir.datasets.load import Dataset, judged_or_not, load
from weir.datasets.references import named_split
from weir.errors import BadValue, WeirError
from weir.experiment.experiment import Capacity, Experiment
from weir.experiment.results import finished_cells, index_cost, search_cost, unscored_note
from weir.experiment.stage_store import Watch, silent
from weir.files.atomic import temporary_folder
from weir.settings import settings
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, parts_of, rankings
from weir.systems.expression import parse_system
from weir.systems.protocol import DEPTH, CandidateSource, Composite, Encoding, Indexed, Remote, Retriever
from weir.systems.rerank.llm_methods import LLMReranker
from weir.systems.rerank.reranking import has_candidates, rerank_depths, rerank_room
from weir.systems.stored_run import CandidatePool, StoredRun

# ----------
# Which stages a grid has, what each is made from, and which systems share it.


Kind: TypeAlias = Literal["index", "run"]


@dataclass(frozen=True)
class Node:
    """A stage that a grid makes once for each collection.

    kind: "index" or "run", the rankings of a system; name: the system; inputs: the stages it is made from, as
    "kind name"; systems: those of the grid that need it.
    """

    kind: Kind
    name: str
    inputs: tuple[str, ...]
    systems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def stage_graph(systems: Sequence[Retriever]) -> list[Node]:
    """The stages of these systems, each once, after those that it is made from."""
    nodes: dict[str, Node] = {}
    for system in systems:
        for node in _walk(system):
            first = nodes.setdefault(str(node), node)
            users = tuple(dict.fromkeys((*first.systems, str(system))))
            nodes[str(node)] = Node(first.kind, first.name, first.inputs, users)
    return list(nodes.values())


def _walk(system: Retriever) -> Iterator[Node]:
    """The stages of a system, its own rankings last."""
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
    """The parts of a system that index documents of the collection which several processes may encode."""
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


TOKEN_BYTES = 3
"""Bytes of a token, as budgets estimate: most tokenizers make fewer tokens."""
BODY_BYTES = 160
"""Bytes of a request beside its two texts, about."""
FENCE_BYTES = 34
"""Bytes around each of several passages in a prompt."""
REQUIREMENT_BYTES = 120
"""Bytes of a requirement that a model names, about."""


@dataclass(frozen=True)
class PromptPlan:
    """What a re-ranking would ask at most.

    prompts: for all queries; most: for one of them; tokens: with documents of mean length and answers as long as they
    may be, of which answer_tokens are the answers'; longest: the tokens if the longest documents stood in every prompt,
    None where lengths are not known.
    """

    prompts: int
    most: int
    tokens: int
    answer_tokens: int
    longest: int | None


def shown_candidates(system: Pipeline, dataset: Dataset, k: int) -> tuple[Int64, Int64]:
    """(documents that each query gives a re-ranker, those of them that it scores), where k are wanted of both stages.

    A pool and a stored run are counted; else nothing is searched, and a query is taken to find as many documents as may
    be ranked.
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


def prompt_plan(reranker: LLMReranker, dataset: Dataset, depths: Int64) -> PromptPlan:
    """What a re-ranker would ask about the queries of a collection; depths: how many candidates of each it is shown."""
    queries, metadata = dataset.queries, dataset.queries.metadata
    own = None if metadata is None else metadata.instruction
    general = len(reranker.prompts.task.encode())
    own_lengths = np.zeros(len(queries), np.int64) if own is None else own.lengths()
    objective = (
        np.where(own_lengths > 0, own_lengths, general) if reranker.prompts.objective else own_lengths * 0
    )
    # Bytes of each document as it stands in prompts
    columns = [dataset.corpus.text, *([] if dataset.corpus.title is None else [dataset.corpus.title])]
    sizes: Float64 = np.full(len(dataset.corpus), len(columns) - 1, np.float64)
    for column in columns:
        sizes += column.lengths()
    lengths = (
        sizes
        if reranker.prompts.max_length is None
        else np.minimum(sizes, TOKEN_BYTES * reranker.prompts.max_length)
    )
    query = queries.text.lengths() + objective
    return _prompt_costs(reranker, query, depths, float(lengths.mean()), np.sort(lengths)[::-1])


def plan_of_words(
    reranker: LLMReranker, candidates: int, queries: int, document_bytes: float, query_bytes: float
) -> PromptPlan:
    """The same of a collection of which only these mean lengths are known; candidates: of a query, that are found."""
    depth = candidates if reranker.depth is None else min(candidates, reranker.depth)
    most = reranker.prompts.max_length
    mean = document_bytes if most is None else min(document_bytes, TOKEN_BYTES * most)
    general = len(reranker.prompts.task.encode()) if reranker.prompts.objective else 0
    query = np.full(queries, int(query_bytes) + general, np.int64)
    return _prompt_costs(reranker, query, np.full(queries, depth, np.int64), mean)


def _prompt_costs(
    reranker: LLMReranker,
    query_bytes: Int64,
    depths: Int64,
    document: float,
    longest_bytes: Float64 | None = None,
) -> PromptPlan:
    """What is asked for queries of these lengths with their objectives, and so many candidates shown of each.

    document: mean bytes of a document; longest_bytes: of all documents, the longest first, None where not known.
    """
    prompts = answers = most = 0
    mean, longest = 0.0, 0.0
    for candidates in np.unique(depths).tolist():
        rows = depths == candidates
        requests = [one for one in reranker.max_calls(candidates) if one.prompts]
        most = max(most, sum(one.prompts for one in requests))
        for one in requests:
            number = one.prompts * int(rows.sum())
            # (bytes of a prompt without its query and passages, tokens of its answer at most)
            template = reranker.templates()[one.template]
            slots = {"query": "", "passage": "", "passages": "", "requirement": "x" * REQUIREMENT_BYTES}
            slots |= {"count": str(one.passages), "scale": str(reranker.prompts.scale)}
            filled = template.filled(slots, " " if reranker.prompts.objective else "")
            size = len(json.dumps([filled.system, filled.user], ensure_ascii=False).encode()) + BODY_BYTES
            fences = FENCE_BYTES * one.passages if one.passages > 1 else 0
            fixed, answer = size + fences, reranker.prompts.max_tokens or template.max_tokens
            query = one.prompts * float(query_bytes[rows].sum())
            prompts += number
            answers += number * answer
            mean += _tokens(number, number * (fixed + one.passages * document) + query)
            if longest_bytes is not None and one.passages:
                # Who reads every document once reads the longest of one ranking; groups may all hold the same longest.
                several = candidates if one.passages == 1 else one.passages
                long = float(longest_bytes[:several].mean())
                longest += _tokens(number, number * (fixed + one.passages * long) + query)
            else:
                longest += _tokens(number, number * fixed + query)
    at_most = None if longest_bytes is None else round(longest) + answers
    return PromptPlan(prompts, most, round(mean) + answers, answers, at_most)


def _tokens(prompts: int, size: float) -> float:
    """Tokens of so many prompts of so many bytes together."""
    return size / TOKEN_BYTES + prompts


# ----------
# Time, disk and memory of a grid, from small runs of the same systems.
#
# By default all systems run together on a few documents of each collection, then on as many as the remaining time
# allows. The costs are extended to all documents, with a range. With `precise` each system runs by itself on growing
# samples until the cost of a document can be told from noise.


SEED = 20210427
PROBING_SECONDS = 45.0
"""Seconds that all probes of a plan may take together, unless it is to be precise."""
MIN_PROBING_SECONDS = 3.0
"""Seconds below which no probe is started: a process and its imports take as long."""
MAX_SAMPLES = 3
"""Samples of growing size at most, the first of a few documents to see how large the next may be."""
SAMPLE_SHARE = 0.6
"""The share of the time left that a sample may take, judged by those before."""
SAMPLE_GROWTH = 64
"""How many times as many documents a sample has at most as the one before."""
TIME_NOISE_SHARE, TIME_NOISE_SECONDS = 0.25, 0.02
"""How far a time of the same work differs between two runs, as a share of it and in seconds."""
MEMORY_NOISE_SHARE = 0.03
"""How far a peak of memory differs between two runs, as a share of it."""
FIRST_PROBE_DOCUMENTS = 16
"""Documents of the first probe; each that follows has up to so many times more."""
MAX_PROBE_DOCUMENTS = 20_000
PROBE_QUERIES = 16
"""Queries of a probe."""
ENOUGH_SECONDS = 2.0
"""Seconds between the first probe and the last after which the difference tells what a document takes."""
NOISE_SHARE, NOISE_MB = 0.5, 100.0
"""Growth between probes, as a share of a query's time and in megabytes, below which it is taken for noise."""
MAX_PROBE_SECONDS = 20.0
"""Seconds that a probe may take, judged by the one before."""
RUN_LINE_BYTES = 48
"""Bytes of a line of a run, about."""
QUERY_WORDS, DOCUMENT_WORDS = 10.0, 130.0
"""Where nothing is published: about the mean of the BEIR paper's collections."""
BYTES_PER_WORD = 6.0
PROMPTS_NOTE = (
    "prompts are those asked at most; tokens those of documents of mean length and the longest answers, by estimate; "
    "answers that are kept already cost nothing"
)
_NOT_HERE = "not on this machine: probed with made texts of the published length"


@dataclass(frozen=True)
class Planned:
    """What a system will take on a collection; None is what a probe cannot tell.

    probed: documents of the smallest and the largest probe; index_seconds, search_seconds: of all documents and of all
    queries; disk_bytes: of the index, the vectors and the rankings; peak_mb: of memory; the four ranges: between which
    such an estimate lies; prompts, tokens, dollars: of an embedding API or a language model, which are not probed;
    longest_tokens: those of the longest documents; notes: what has to be said beside them; asks: (what is asked,
    prompts, tokens, dollars) of each language model: what two systems ask alike is asked once.
    """

    dataset: str
    system: str
    documents: int
    queries: int
    probed: tuple[int, int] | None = None
    index_seconds: float | None = None
    search_seconds: float | None = None
    disk_bytes: float | None = None
    peak_mb: float | None = None
    tokens: float | None = None
    dollars: float | None = None
    notes: tuple[str, ...] = ()
    prompts: int | None = None
    longest_tokens: float | None = None
    index_range: tuple[float, float] | None = None
    search_range: tuple[float, float] | None = None
    disk_range: tuple[float, float] | None = None
    peak_range: tuple[float, float] | None = None
    asks: tuple[tuple[str, int, float, float | None], ...] = ()


@dataclass(frozen=True)
class PlanTotal:
    """What all systems of a plan would ask together: what several of them ask alike counts once."""

    prompts: int
    tokens: float
    dollars: float | None


def planned_total(plans: Sequence[Planned]) -> PlanTotal | None:
    """What a plan asks of language models in all, None where it asks none."""
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
    return PlanTotal(*totals, sum(prices) if prices else None)


@dataclass(frozen=True)
class _Subject:
    """A collection as far as it is known: itself, or how many words its documents and queries have."""

    name: str
    documents: int
    queries: int
    words: tuple[float, float]
    dataset: Dataset | None

    @property
    def pool(self) -> int | None:
        """The most candidates of a query, as far as that is known; None where all documents may be ranked."""
        if self.dataset is not None:
            metadata = self.dataset.queries.metadata
            lists = None if metadata is None else dict(metadata.lists()).get("candidates")
            return None if lists is None else int(lists.lengths().max())
        entry = catalogue.get(self.name)
        judged = entry.candidates == "judged" and entry.grades and self.queries
        return -(-sum(entry.grades.values()) // self.queries) if judged else None

    def sample(self, count: int, folder: Path) -> None:
        """Write a collection of so many of its documents, or of texts of their length, and a few queries."""
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
    """What a run on so many documents took; search: seconds of a query."""

    documents: int
    index: float
    bytes: float
    search: float
    peak_mb: float
    queries: int = PROBE_QUERIES


_Probes: TypeAlias = dict[tuple[str, str], list[_Probe]]
"""What runs of growing size took, by names of collection and system."""


def planned(experiment: Experiment, watch: Watch, precise: bool = False) -> list[Planned]:
    """What each cell of a grid will take, from runs of it on a few documents, in a folder that goes afterwards.

    precise: whether each system is run by itself on growing samples, however long that takes; else all probes end
    within PROBING_SECONDS. A collection that is not on this machine is stood in for by texts of the published length.
    A system whose probe fails has the reason in its notes. Raises UnknownName and BadValue as running the grid would,
    BadValue where no system can be probed, with the reason, and for a system that is a function or object.
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
        entry = catalogue.get(name) if name in catalogue.names() else None
        if entry is not None and not entry.here:
            words = (entry.words_per_document or DOCUMENT_WORDS, entry.words_per_query or QUERY_WORDS)
            subjects.append(_Subject(name, entry.documents, entry.queries, words, None))
        else:
            dataset = judged_or_not(load(name, split))
            subjects.append(
                _Subject(dataset.name, len(dataset.corpus), len(dataset.queries), (0.0, 0.0), dataset)
            )
    probed = [
        system
        for system in systems
        if (not _asks_an_api(system) and not any(isinstance(part, Remote) for part in parts_of(system)))
    ]
    quick, failed = _Probes(), dict[str, BadValue]()
    if probed and not precise:
        watch(f"{len(subjects)} collections  probes", 0, 1)
        try:
            quick = _sampled(subjects, probed, experiment.k, deadline)
        except BadValue:
            failed = _failed(subjects[0], probed, experiment.k)
            rest = [system for system in probed if str(system) not in failed]
            if not failed or not rest:
                raise
            quick = _sampled(subjects, rest, experiment.k, time.monotonic() + PROBING_SECONDS)
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
    """Why each system cannot be probed alone, by the names of those that cannot."""
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


def _sampled(subjects: Sequence[_Subject], systems: Sequence[Retriever], k: int, deadline: float) -> _Probes:
    """Probes of all systems on all collections together, each stage once: on a few documents, then on as many as the
    time until the deadline allows."""
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
    """How long a sample of so many documents of a collection is likely to take, all systems together."""
    ends = [(_between(documents, some, what), some[-1].queries if what == "search" else 1)
            for some in probes for what in ("index", "search")]  # fmt: skip
    return sum(times * (low + high) / 2 for (low, high), times in ends)


def _system_plan(subject: _Subject, system: Retriever, k: int, quick: _Probes, precise: bool) -> Planned:
    notes = [] if subject.dataset else [_NOT_HERE]
    pipelines = [part for part in parts_of(system) if isinstance(part, Pipeline)]
    for part in pipelines:
        if subject.dataset is None:
            candidates, reranked = (subject.queries * count for count in _shown_of_words(subject, part, k))
        else:
            adapted = adapted_to(part, subject.name, subject.dataset.instruction)
            candidates, reranked = (int(some.sum()) for some in shown_candidates(adapted, subject.dataset, k))
        if reranked < candidates:
            notes.append(unscored_note(str(part), candidates - reranked, candidates, "up to "))
    plan = Planned(subject.name, str(system), subject.documents, subject.queries)
    if _asks_an_api(system):
        # Tokens and dollars of an API, estimated as its budget is: nothing is asked of it
        from weir.services.requests import Limits, estimated

        if subject.dataset is None:
            words = subject.words[0] * subject.documents + subject.words[1] * subject.queries
            tokens = BYTES_PER_WORD / 3 * words
        else:
            corpus = subject.dataset.corpus
            columns = [corpus.text, *([] if corpus.title is None else [corpus.title])]
            tokens = float(sum(int(column.lengths().sum()) for column in columns)) / 3 + sum(
                estimated(q) for q in subject.dataset.queries.text
            )
        notes.append("an embedding API is not probed; texts that are stored already cost nothing")
        dollars = Limits.of(settings()).cost(int(tokens))
        return replace(plan, tokens=tokens, dollars=dollars, notes=tuple(notes))
    if prompted := [part for part in pipelines if isinstance(part.reranker, LLMReranker)]:
        return _prompted(subject, plan, system, prompted, k, notes)
    services = [part.service for part in parts_of(system) if isinstance(part, Remote)]
    if services or not (precise or any(of == str(system) for _, of in quick)):
        notes += [f"{service} is asked {subject.queries:,} queries; it is not probed" for service in services]
        if not services:
            notes.append(
                f"no probe ended within {PROBING_SECONDS:g} seconds; --precise takes the time that it needs"
            )
        return replace(plan, notes=tuple(notes))
    if precise:
        probes = _probes(subject, system, k)
    elif (subject.name, str(system)) in quick:
        probes = quick[subject.name, str(system)][-2:]
    else:
        other = next(name for name, of in quick if of == str(system))
        probes = quick[other, str(system)][-2:]
        notes.append(f"as {other}, document for document: no time was left for a probe")
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
    for what, value, measured, whole in grown:
        if precise and value == measured and last.documents < whole:
            notes.append(
                f"{what} is that of {last.documents} documents, in which no growth could be seen: at least"
            )
    rankings_bytes = RUN_LINE_BYTES * subject.queries * min(k, subject.documents)
    size = last.bytes / last.documents * subject.documents + rankings_bytes
    # The index of a small collection holds more for each document than that of a large one.
    least = size
    if last.documents != subject.documents:
        step = last.documents - first.documents
        slope = (last.bytes - first.bytes) / step if step else 0.0
        least = last.bytes + max(0.0, slope) * (subject.documents - last.documents) + rankings_bytes
    home = next(p for p in (settings().home, *settings().home.parents) if p.exists())
    free = shutil.disk_usage(home).free
    if size > free:
        notes.append(f"more disk than is free at {home}: {free / 1e9:.1f} GB")
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if 1e6 * peak > memory:
            notes.append(f"more memory than this machine has: {memory / 1e9:.1f} GB")
    low, high = _between(searched, probes, "search")
    return replace(
        plan,
        probed=(first.documents, last.documents),
        index_seconds=_extended(
            subject.documents, (first.documents, first.index), (last.documents, last.index)
        ),
        search_seconds=search * subject.queries,
        disk_bytes=size,
        peak_mb=peak,
        notes=tuple(notes),
        index_range=_between(subject.documents, probes, "index"),
        search_range=(low * subject.queries, high * subject.queries),
        disk_range=(min(least, size), max(least, size)),
        peak_range=_between(subject.documents, probes, "peak_mb"),
    )


def _shown_of_words(subject: _Subject, system: Pipeline, k: int) -> tuple[int, int]:
    """(documents that a query gives a re-ranker, those of them that it scores), of a collection that is not here."""
    depth, first, room = system.reranker.depth, system.first, max(k, system.reranker.depth or DEPTH)
    if depth is None and isinstance(first, CandidateSource):
        room = first.pool_depth(k, subject.documents) or room
    candidates = min(room if subject.pool is None else subject.pool, subject.documents)
    whole = depth is None and (subject.pool is not None or has_candidates(system))
    return candidates, candidates if whole else min(candidates, depth or DEPTH)


def _between(documents: int, probes: Sequence[_Probe], name: str) -> tuple[float, float]:
    """Between which values a time or a peak of memory lies for so many documents, by a line through two probes.

    Either probe may be off by what two runs of the same differ; the line rises, at most in proportion. Of one probe,
    and where the larger took less, as when the first loads what is compiled: from what it took to that in proportion.
    """
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
    if first.documents < last.documents and v1 <= v2:
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
    """Prompts, tokens and dollars of the language models within a system: nothing is asked, and no time known."""
    from weir.services.requests import Limits

    limits, dataset = Limits.of(settings()), subject.dataset
    notes = [
        "not on this machine: lengths are those published" if note == _NOT_HERE else note for note in notes
    ]
    models = {part.reranker.service for part in prompted if isinstance(part.reranker, LLMReranker)}
    remote = [part.service for part in parts_of(system) if isinstance(part, Remote)]
    notes += [
        f"{service} is asked {subject.queries:,} queries; it is not probed"
        for service in remote
        if service not in models
    ]
    asks, longest = [], list[int]()
    for pipeline in prompted:
        part = pipeline.reranker
        assert isinstance(part, LLMReranker)  # those that ask a language model were chosen before
        if dataset is None:
            document, query = (BYTES_PER_WORD * words for words in subject.words)
            _, depth = _shown_of_words(subject, pipeline, k)
            estimate = plan_of_words(part, depth, subject.queries, document, query)
        else:
            adapted = adapted_to(pipeline, subject.name, dataset.instruction)
            part, metadata = adapted.reranker, dataset.queries.metadata
            assert isinstance(part, LLMReranker)  # it is adapted to what it was
            own = None if metadata is None or metadata.instruction is None else metadata.instruction.lengths()
            if not (part.prompts.task or (own is not None and bool(own.any()))):
                part = replace(part, prompts=replace(part.prompts, objective=False))  # nothing here has one
                adapted = replace(adapted, reranker=part)
            estimate = prompt_plan(part, dataset, shown_candidates(adapted, dataset, k)[1])
        price = None if part.chat.local else limits.cost(estimate.tokens, estimate.answer_tokens)
        described = {**part.describe(), "first": str(pipeline.first)}
        if part.method in ("score", "reason", "subtask") or (
            part.method == "pairwise" and described.get("sort") == "all"
        ):
            del described["depth"]
        text = json.dumps(described, sort_keys=True, default=str)
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
    """Runs of growing size, until what a document takes stands out from what starting takes."""
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
    """What each system takes on so many documents of each collection, in a process and a home of their own.

    seconds: after which it ends with what is finished, None for never. Raises BadValue where it fails.
    """
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
    """Linear extrapolation through two probes to so many documents; in proportion where the larger took less."""
    (n1, v1), (n2, v2) = small, large
    if n2 == n1:
        return v2
    return v2 + (v2 - v1) / (n2 - n1) * (documents - n2) if v2 >= v1 else v2 / n2 * documents


def _asks_an_api(system: object) -> bool:
    """Whether a part of a system asks a service that may want to be paid."""
    from weir.models.hosted import Hosted

    if isinstance(system, Hosted):
        return True
    if isinstance(system, tuple):
        return any(map(_asks_an_api, system))
    parts = (getattr(system, f.name) for f in fields(system)) if is_dataclass(system) else ()
    return any(_asks_an_api(part) for part in parts if is_dataclass(part) or isinstance(part, tuple))


# ----------
# Tables.


@result("plan", Planned)
def plan_tables(results: Sequence[Planned]) -> tuple[Table, ...]:
    """A line for each system on each collection.

    Time, disk and memory as ranges where any system is probed; prompts, tokens and dollars where any asks for them,
    with a line for all systems together.
    """

    def between(
        written: Callable[[float | None], str], value: float | None, ends: tuple[float, float] | None
    ) -> str:
        """A range, or the value where there is none or its ends read alike."""
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
                between(size, one.disk_bytes, one.disk_range),
                between(size, peak, peaks),
            ]
        lines.append([*line, *(calls(one.prompts, one.tokens, one.dollars) if called else [])])
    if total is not None and len(results) > 1:
        blank = [""] * (2 + len(costs))
        lines.append(
            ["in all, what is shared once", "", *blank, *calls(total.prompts, total.tokens, total.dollars)]
        )
    return (table_of(lines, right=len(head) - 2, keys=2),)


@result("stages", Node)
def stage_tables(nodes: Sequence[Node]) -> tuple[Table, ...]:
    """The stages of the grid on each collection, in the order they are made, and how many systems share each."""
    lines = []
    for node in nodes:
        made_from = f"  from {', '.join(node.inputs)}" if node.inputs else ""
        shared = f"  for {len(node.systems)} systems" if len(node.systems) > 1 else ""
        lines.append(f"  {node}{made_from}{shared}")
    return (sentences("stages on each collection, each made once:", *lines),)


def plan_notes(results: Sequence[Planned]) -> list[Note]:
    """Notes on the figures: how they were estimated, and what holds for single systems."""
    probed = [one.probed for one in results if one.probed is not None]
    notes = []
    if probed:
        least, most = min(p[0] for p in probed), max(p[1] for p in probed)
        notes.append(
            f"extended along a line from runs on {count(least)} to {count(most)} documents, one after the other "
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
        notes.append(f"{duration(sum(seconds))} in all, less what systems share: each stage is made once")
    return [Note(note) for note in notes]


# ----------
# A grid on a cluster.


def cluster_note(plans: Sequence[Planned], capacity: Capacity, machine_price: float | None = None) -> Note:
    """How long a grid takes on a cluster, and what its machines cost; cells start in the grid's order.

    machine_price: dollars for an hour of a machine.
    """

    def whole(seconds: Sequence[float]) -> float:
        ends = [0.0] * capacity.cells
        for one in seconds:
            heapq.heapreplace(ends, ends[0] + one)
        return max(ends)

    probed = [one for one in plans if one.index_seconds is not None or one.search_seconds is not None]
    middle = [(one.index_seconds or 0.0) + (one.search_seconds or 0.0) for one in probed]
    ends = [
        [
            _end(one.index_seconds, one.index_range, end) + _end(one.search_seconds, one.search_range, end)
            for one in probed
        ]
        for end in (0, 1)
    ]
    times = [whole(middle), *map(whole, ends)]
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


# ----------
# The file of a job array that shares a grid.


LEAST_MINUTES = 10
"""Of a job: what takes seconds still has to start."""
TIME_RESERVE, MEMORY_RESERVE = 1.5, 1.25
"""What jobs ask for is this many times the upper end of an estimate."""


def slurm_script(plans: Sequence[Planned], command: Sequence[str], jobs: int) -> str:
    """A script for sbatch: an array of jobs of which each runs its share of a grid on a folder that all of them see.

    command: `weir run` and its arguments, without --share; jobs: how many. A job asks for the time of an equal part of
    the work, and of its longest cell at least, and for the memory of the largest cell; what a plan cannot tell is left
    to the cluster. Raises BadValue for less than one job.
    """
    if jobs < 1:
        raise BadValue(f"{jobs} jobs; expected a whole number from 1")
    seconds = [
        _end(one.index_seconds, one.index_range) + _end(one.search_seconds, one.search_range) for one in plans
    ]
    peaks = [_end(one.peak_mb, one.peak_range) for one in plans if one.peak_mb is not None]
    lines = ["#!/bin/bash", f"#SBATCH --job-name=weir --array=1-{jobs} --requeue"]
    if any(seconds):
        minutes = max(LEAST_MINUTES, math.ceil(TIME_RESERVE * max(*seconds, sum(seconds) / jobs) / 60))
        lines.append(f"#SBATCH --time={minutes // 60}:{minutes % 60:02}:00")
    if peaks:
        lines.append(f"#SBATCH --mem={math.ceil(MEMORY_RESERVE * max(peaks) / 1024) + 1}G")
    lines += [
        "# Each job begins with its part of the grid, then helps the others. A killed job may be started again.",
        f'{shlex.join(command)} -q --share "$SLURM_ARRAY_TASK_ID/{jobs}"',
    ]
    return "\n".join(lines) + "\n"


def _end(value: float | None, between: tuple[float, float] | None, end: int = 1) -> float:
    """The lower (0) or upper (1) end of an estimate, 0 where there is none."""
    return (value or 0.0) if between is None else between[end]
