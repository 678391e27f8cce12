"""What a grid will take before it is started: time, disk and memory, from small runs of the same systems."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import numpy as np

from weir.core.corpus import Corpus
from weir.datasets import catalogue
from weir.datasets.load import Dataset, load
from weir.errors import BadValue, WeirError
from weir.experiment.costs import index_cost, search_cost, unscored_note
from weir.experiment.experiment import Experiment
from weir.experiment.finished import finished_cells
from weir.experiment.prompt_plan import PromptPlan, plan_of_words, prompt_plan, shown_candidates
from weir.experiment.stage_store import Watch
from weir.settings import settings
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, parts_of
from weir.systems.expression import parse_system
from weir.systems.protocol import DEPTH, CandidateSource, Remote, Retriever
from weir.systems.rerank.llm_reranker import LLMReranker
from weir.systems.rerank.reranking import has_candidates

__all__ = ["Planned", "planned"]

SEED = 20210427
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
_NOT_HERE = "not on this machine: probed with made texts of the published length"


@dataclass(frozen=True)
class Planned:
    """What a system will take on a collection; None is what a probe cannot tell.

    probed: documents of the smallest and the largest probe; index_seconds, search_seconds: of all documents and of all
    queries; disk_bytes: of the index, the vectors and the rankings; peak_mb: of memory; tokens, dollars: of an
    embedding API or a language model, which are not probed; notes: what has to be said beside them.
    """

    dataset: str
    system: str
    documents: int
    queries: int
    probed: tuple[int, int] | None
    index_seconds: float | None
    search_seconds: float | None
    disk_bytes: float | None
    peak_mb: float | None
    tokens: float | None = None
    dollars: float | None = None
    notes: tuple[str, ...] = ()


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
        (folder / "qrels").mkdir(parents=True)
        titles, texts, queries = self._taken(count, rng) if self.dataset else self._made(count, rng)
        rows = enumerate(zip(titles, texts, strict=True))
        _write_lines(folder / "corpus.jsonl", ({"_id": f"d{i}", "title": t, "text": x} for i, (t, x) in rows))
        listed = {"candidates": [f"d{i}" for i in range(min(count, self.pool or 0))]}
        _write_lines(
            folder / "queries.jsonl",
            ({"_id": f"q{i}", "text": text, "metadata": listed} for i, text in enumerate(queries)),
        )
        judged = "".join(f"q{i} 0 d0 1\n" for i in range(len(queries)))
        (folder / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")

    def _taken(self, count: int, rng: np.random.Generator) -> tuple[list[str], list[str], list[str]]:
        assert self.dataset is not None
        corpus, queries = self.dataset.corpus, self.dataset.queries
        rows = np.sort(rng.choice(len(corpus), count, replace=False))
        title = [""] * count if corpus.title is None else corpus.title.take(rows).tolist()
        some = rng.choice(len(queries), min(PROBE_QUERIES, len(queries)), replace=False)
        return title, corpus.text.take(rows).tolist(), queries.text.take(some).tolist()

    def _made(self, count: int, rng: np.random.Generator) -> tuple[list[str], list[str], list[str]]:
        words = _some_words()
        lengths = rng.poisson(self.words[0], count) + 1
        texts = [" ".join(rng.choice(words, n)) for n in lengths]
        queries = [" ".join(rng.choice(words, n)) for n in rng.poisson(self.words[1], PROBE_QUERIES) + 1]
        return [""] * count, texts, queries


@dataclass(frozen=True)
class _Probe:
    """What a run on so many documents took; search: seconds of a query."""

    documents: int
    index: float
    bytes: float
    search: float
    peak_mb: float


def planned(experiment: Experiment, watch: Watch) -> list[Planned]:
    """What each cell of a grid will take, from runs of it on a few documents, in a folder that goes afterwards.

    A collection that is not on this machine is stood in for by texts of the published length. Raises UnknownName and
    BadValue as running the grid would, BadValue where a probe fails, with the reason, and for a system that is a
    function or object.
    """
    if not experiment.datasets or not experiment.systems:
        raise BadValue("a plan needs at least one dataset and one system")
    systems = experiment.parsed_systems()
    for system in systems:
        _refuse_object(system)
    found = []
    for subject in [s for name in experiment.datasets for s in _subjects(str(name))]:
        for system in systems:
            watch(f"{subject.name}  {system}  probe", 0, 1)
            found.append(_planned(subject, system, experiment.k))
    return found


def _refuse_object(system: Retriever) -> None:
    """Raise BadValue for a system that cannot be handed to another process by its name."""
    try:
        named: Retriever | None = parse_system(str(system))
    except WeirError:
        named = None
    if named != system:
        raise BadValue(
            f"{system} holds a function or object, which a probe in a process of its own cannot be given"
        )


def _subjects(name: str) -> Iterator[_Subject]:
    for member in catalogue.members(name):
        entry = catalogue.get(member) if member in catalogue.names() else None
        if entry is not None and not entry.here:
            words = (entry.words_per_document or DOCUMENT_WORDS, entry.words_per_query or QUERY_WORDS)
            yield _Subject(member, entry.documents, entry.queries, words, None)
        else:
            dataset = load(member)
            yield _Subject(dataset.name, len(dataset.corpus), len(dataset.queries), (0.0, 0.0), dataset)


def _planned(subject: _Subject, system: Retriever, k: int) -> Planned:
    notes = [*([] if subject.dataset else [_NOT_HERE]), *_unscored(subject, system, k)]
    if _asks_an_api(system):
        return _paid(subject, system, notes)
    pipelines = [part for part in parts_of(system) if isinstance(part, Pipeline)]
    if prompted := [part for part in pipelines if isinstance(part.reranker, LLMReranker)]:
        return _prompted(subject, system, prompted, k, notes)
    if asked := [part.service for part in parts_of(system) if isinstance(part, Remote)]:
        notes += [f"{service} is asked {subject.queries:,} queries; it is not probed" for service in asked]
        cell = (subject.name, str(system), subject.documents, subject.queries)
        return Planned(*cell, None, None, None, None, None, notes=tuple(notes))
    probes = _probes(subject, system, k)
    first, last = probes[0], probes[-1]
    drawn = isinstance(system, CandidateSource) and system.is_drawn()
    searched = min(subject.documents, subject.pool or subject.documents) if drawn else subject.documents
    index = _extended(subject.documents, (first.documents, first.index), (last.documents, last.index))
    search, peak = last.search, last.peak_mb
    if last.documents < searched and _seen(first.search, last.search, NOISE_SHARE * first.search):
        search = _extended(searched, (first.documents, first.search), (last.documents, last.search))
    if _seen(first.peak_mb, last.peak_mb, NOISE_MB):
        peak = _extended(subject.documents, (first.documents, first.peak_mb), (last.documents, last.peak_mb))
    grown = (("search", search, last.search, searched), ("memory", peak, last.peak_mb, subject.documents))
    for what, value, measured, whole in grown:
        if value == measured and last.documents < whole:
            notes.append(
                f"{what} is that of {last.documents} documents, in which no growth could be seen: at least"
            )
    size = last.bytes / last.documents * subject.documents + RUN_LINE_BYTES * subject.queries * min(
        k, subject.documents
    )
    return Planned(
        subject.name,
        str(system),
        subject.documents,
        subject.queries,
        probed=(first.documents, last.documents),
        index_seconds=index,
        search_seconds=search * subject.queries,
        disk_bytes=size,
        peak_mb=peak,
        notes=(*notes, *_short_of(size, peak)),
    )


def _unscored(subject: _Subject, system: Retriever, k: int) -> Iterator[str]:
    """A note on each re-ranker that leaves documents of its first stage unscored, how many of how many at most."""
    for part in parts_of(system):
        if isinstance(part, Pipeline):
            if subject.dataset is None:
                found, shown = (subject.queries * count for count in _shown_of_words(subject, part, k))
            else:
                adapted = adapted_to(part, subject.name, subject.dataset.instruction)
                found, shown = (int(counts.sum()) for counts in shown_candidates(adapted, subject.dataset, k))
            if shown < found:
                yield unscored_note(str(part), found - shown, found, "up to ")


def _shown_of_words(subject: _Subject, system: Pipeline, k: int) -> tuple[int, int]:
    """(documents that a query gives a re-ranker, those of them that it scores), of a collection that is not here."""
    named, first, room = system.reranker.depth, system.first, max(k, system.reranker.depth or DEPTH)
    if named is None and isinstance(first, CandidateSource):
        room = first.pool_depth(k, subject.documents) or room
    found = min(room if subject.pool is None else subject.pool, subject.documents)
    whole = named is None and (subject.pool is not None or has_candidates(system))
    return found, found if whole else min(found, named or DEPTH)


def _prompted(
    subject: _Subject, system: Retriever, prompted: list[Pipeline], k: int, notes: list[str]
) -> Planned:
    """Prompts, tokens and dollars of the language models within a system: nothing is asked, and no time known."""
    from weir.services.limits import Limits

    limits = Limits.of(settings())
    notes = [
        "not on this machine: lengths are those published" if note == _NOT_HERE else note for note in notes
    ]
    remote = [part.service for part in parts_of(system) if isinstance(part, Remote)]
    rerankers = [part.reranker for part in prompted if isinstance(part.reranker, LLMReranker)]
    others = [service for service in remote if service not in {part.service for part in rerankers}]
    notes += [f"{service} is asked {subject.queries:,} queries; it is not probed" for service in others]
    total, costs = 0, list[float]()
    for pipeline, part in zip(prompted, rerankers, strict=True):
        found = _prompt_plan(subject, pipeline, part, k)
        cost, worst = (
            None if tokens is None or part.chat.local else limits.cost(tokens, found.answer_tokens)
            for tokens in (found.tokens, found.longest)
        )
        total += found.tokens
        costs += [] if cost is None else [cost]
        said = f"at most {found.prompts:,} prompts to {part.service}, {found.most:,} for a query; the tokens"
        said += " are those of documents of mean length and the longest answers"
        if found.longest is not None:
            said += f", at most {_tokens_said(found.longest, worst)} with the longest documents, by estimate"
        notes.append(f"{said}; answers that are kept already cost nothing")
    cell = (subject.name, str(system), subject.documents, subject.queries)
    dollars = sum(costs) if costs else None
    return Planned(*cell, None, None, None, None, None, total, dollars, tuple(notes))


def _prompt_plan(subject: _Subject, system: Pipeline, part: LLMReranker, k: int) -> PromptPlan:
    if subject.dataset is None:
        document, query = (BYTES_PER_WORD * words for words in subject.words)
        _, shown = _shown_of_words(subject, system, k)
        return plan_of_words(part, shown, subject.queries, document, query)
    adapted = adapted_to(system, subject.name, subject.dataset.instruction)
    assert isinstance(adapted.reranker, LLMReranker)  # it is adapted to what it was
    return prompt_plan(adapted.reranker, subject.dataset, shown_candidates(adapted, subject.dataset, k)[1])


def _tokens_said(tokens: int, dollars: float | None) -> str:
    price = "" if dollars is None else f" and {dollars:,.2f} dollars"
    return f"{tokens:,} tokens{price}"


def _paid(subject: _Subject, system: Retriever, notes: list[str]) -> Planned:
    """Tokens and dollars of an API, estimated as its budget is: nothing is asked of it."""
    from weir.services.limits import Limits, estimated

    if subject.dataset is None:
        words = subject.words[0] * subject.documents + subject.words[1] * subject.queries
        tokens = BYTES_PER_WORD / 3 * words
    else:
        corpus = subject.dataset.corpus
        tokens = _bytes(corpus) / 3 + sum(estimated(q) for q in subject.dataset.queries.text)
    notes.append("an embedding API is not probed; texts that are stored already cost nothing")
    dollars = Limits.of(settings()).cost(int(tokens))
    return Planned(
        subject.name,
        str(system),
        subject.documents,
        subject.queries,
        *(None, None, None, None, None),
        tokens=tokens,
        dollars=dollars,
        notes=tuple(notes),
    )


def _probes(subject: _Subject, system: Retriever, k: int) -> list[_Probe]:
    """Runs of growing size, until what a document takes stands out from what starting takes."""
    count = min(FIRST_PROBE_DOCUMENTS, subject.documents)
    with tempfile.TemporaryDirectory(prefix="weir-plan-") as name:
        found = [_probe(subject, system, k, count, Path(name))]
        while found[-1].documents < min(MAX_PROBE_DOCUMENTS, subject.documents):
            last = found[-1]
            if last.index - found[0].index >= ENOUGH_SECONDS or (
                last.index > MAX_PROBE_SECONDS and len(found) > 1
            ):
                break
            bearable = int(MAX_PROBE_SECONDS * last.documents / last.index)
            count = min(
                max(2 * last.documents, bearable), 16 * last.documents, MAX_PROBE_DOCUMENTS, subject.documents
            )
            found.append(_probe(subject, system, k, count, Path(name)))
            if (
                found[1].index < found[0].index
            ):  # the first one compiled kernels, or read a model from a cold disk
                del found[0]
    return found


def _probe(subject: _Subject, system: Retriever, k: int, count: int, place: Path) -> _Probe:
    """One run in a process and a home of its own: nothing is reused, and nothing but its own memory is counted."""
    home, sample, results = place / f"home-{count}", place / f"sample-{count}", place / f"results-{count}"
    subject.sample(count, sample)
    for known in ("encoders", "openvino"):  # hashes of checkpoints, and what was quantised before
        if (settings().home / known).is_dir():
            shutil.copytree(settings().home / known, home / known)
    command = [sys.executable, "-m", "weir", "run", "-d", str(sample), "-s", str(system), "-m", "P@1"]
    command += ["-k", str(min(k, count)), "-o", str(results), "--json", "-q"]
    environment = os.environ | {"WEIR_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().split("\n") or [""])[-1].removeprefix("weir: ")
        raise BadValue(f"{system}: the probe on {count} documents of {subject.name} failed: {reason}")
    (cell,) = finished_cells(results)
    index, search = index_cost(cell), search_cost(cell)
    for folder in (home, sample, results):
        shutil.rmtree(folder, ignore_errors=True)
    asked = max(1, search["queries"])
    peak = max(index["peak_mb"], search["peak_mb"])
    return _Probe(count, index["seconds"], index["bytes"], search["seconds"] / asked, peak)


def _extended(documents: int, small: tuple[int, float], large: tuple[int, float]) -> float:
    """Linear extrapolation through two probes to so many documents; in proportion where the larger took less."""
    (n1, v1), (n2, v2) = small, large
    if n2 == n1:
        return v2
    return v2 + (v2 - v1) / (n2 - n1) * (documents - n2) if v2 >= v1 else v2 / n2 * documents


def _seen(first: float, last: float, least: float) -> bool:
    """Whether a value grew by more than the noise between runs of one size, which must not be extrapolated."""
    return last - first > least


def _short_of(size: float, peak: float) -> Iterator[str]:
    """Notes on disk and memory that this machine does not have."""
    home = next(p for p in (settings().home, *settings().home.parents) if p.exists())
    free = shutil.disk_usage(home).free
    if size > free:
        yield f"more disk than is free at {home}: {free / 1e9:.1f} GB"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if 1e6 * peak > memory:
            yield f"more memory than this machine has: {memory / 1e9:.1f} GB"


def _asks_an_api(system: object) -> bool:
    """Whether a part of a system asks a service that may want to be paid."""
    from weir.encode.api import Hosted

    if isinstance(system, Hosted):
        return True
    if isinstance(system, tuple):
        return any(map(_asks_an_api, system))
    parts = (getattr(system, f.name) for f in fields(system)) if is_dataclass(system) else ()
    return any(_asks_an_api(part) for part in parts if is_dataclass(part) or isinstance(part, tuple))


def _bytes(corpus: Corpus) -> float:
    columns = [corpus.text, *([] if corpus.title is None else [corpus.title])]
    return float(sum(int(column.lengths().sum()) for column in columns))


def _some_words() -> list[str]:
    """Words of real texts, as often as they occur there."""
    return [word for member in catalogue.group("brook").members for text in load(member).corpus.text
            for word in text.split()]  # fmt: skip


def _write_lines(path: Path, rows: Iterator[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
