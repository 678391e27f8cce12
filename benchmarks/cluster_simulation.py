"""How long 20 collections x 30 encoders take on 1, 8 and 64 workers, by discrete events from measured costs of stages.

    python benchmarks/cluster_simulation.py [--speed 400]

Collections: 20 of the catalogue with their documents, queries and words. Encoders: 10 of MiniLM's size, 15 of
BERT-base's, 5 of BERT-large's. Each stands in two systems, alone and fused with BM25, so there are 1,200 cells. Measured
on one core: the documents of SciFact that MiniLM (35.4) and mpnet (4.2) encode in a second in fp32, their tokens, BM25's
index of a million documents and exact search. Assumed: a large encoder takes 3.1 times a base one's arithmetic; every
collection has SciFact's tokens for each word; how long a model takes to load and a cell to score; and --speed, how many
times as fast as that core a worker encodes.

Tasks start in the order of the grid as soon as what they need is made and a worker is free (as Ray starts them). Compared:
every cell makes its own stages; stages are shared; shared ones with documents encoded in shards; and these with documents
also searched in shards of a million, whose rankings are merged by one task (MERGE_SECONDS for each of them).
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass

import common

COLLECTIONS = [
    "msmarco",
    "trec-covid",
    "nfcorpus",
    "bioasq",
    "nq",
    "hotpotqa",
    "fiqa",
    "signal1m",
    "trec-news",
    "robust04",
    "arguana",
    "webis-touche2020",
    "quora",
    "dbpedia-entity",
    "scidocs",
    "fever",
    "climate-fever",
    "scifact",
    "birco-clinical-trial",
    "birco-relic",
]
TOKENS_PER_WORD = 1.57
MOST_TOKENS = {"small": 256, "base": 384, "large": 384}
"""Tokens for each word of SciFact's 5,183 documents by BERT's vocabulary; what the encoders read of a text at most."""
TOKENS_PER_SECOND = {"small": 35.4 * 240, "base": 4.2 * 303, "large": 4.2 * 303 / 3.1}
"""Documents a second by their mean number of tokens, cut at 256 and at 384."""
ENCODERS = ["small"] * 10 + ["base"] * 15 + ["large"] * 5
LOADING_SECONDS = {"small": 0.8, "base": 2.0, "large": 6.0}
INDEX_SECONDS, SEARCH_SECONDS, SCORING_SECONDS = 7e-6, 0.002, 0.5
"""BM25's index, for each document (scale.jsonl); a search, for each query; what a cell takes besides."""
EXACT_SECONDS = 4e-9
"""Exact search, for each pair of a query and a document of 384 numbers: 64 s for 1,000 x 15 million (dense_scale.jsonl)."""
SHARD_DOCUMENTS, SEARCH_DOCUMENTS = 250_000, 1_000_000
MERGE_SECONDS = 0.4e-6
"""To read one ranked document of a shard from arrays and to merge it, measured with 4 shards of 1,000 x 1,000."""


@dataclass(frozen=True)
class Task:
    """Work for one worker, which begins when the tasks of these numbers are finished."""

    seconds: float
    needs: tuple[int, ...] = ()


def tasks_of(shared: bool, shard: int | None, search_shard: int | None, speed: float) -> Iterator[Task]:
    """The tasks of the grid in its order."""
    from weir.datasets import catalogue

    number = 0
    for name in COLLECTIONS:
        entry = catalogue.get(name)
        documents, queries = entry.documents, entry.queries
        bm25 = Task(INDEX_SECONDS * documents + SEARCH_SECONDS * queries)
        bm25_number = number
        if shared:
            yield bm25
            number += 1
        for size in ENCODERS:
            tokens = min(MOST_TOKENS[size], entry.words_per_document * TOKENS_PER_WORD)
            encoding = documents * tokens / TOKENS_PER_SECOND[size] / speed
            search = EXACT_SECONDS * documents * queries + SCORING_SECONDS
            if not shared:
                yield Task(LOADING_SECONDS[size] + encoding + search)
                yield Task(LOADING_SECONDS[size] + encoding + search + bm25.seconds)
                number += 2
                continue
            shards = max(1, -(-documents // shard)) if shard else 1
            for _ in range(shards):
                yield Task(LOADING_SECONDS[size] + encoding / shards)
            encoded = tuple(range(number, number + shards))
            number += shards
            parts = max(1, documents // search_shard) if search_shard else 1
            if parts > 1:
                for _ in range(parts):
                    yield Task((search - SCORING_SECONDS) / parts + LOADING_SECONDS[size], encoded)
                encoded = tuple(range(number, number + parts))
                number += parts
                search = SCORING_SECONDS + MERGE_SECONDS * 1000 * queries * parts
            yield Task(search, encoded)
            yield Task(SCORING_SECONDS, (number, bm25_number))
            number += 2


def simulated(tasks: list[Task], workers: int) -> tuple[float, float]:
    """(hours until all is finished, share of the workers' time in which they wait)."""
    queue = [n for n, task in enumerate(tasks) if not task.needs]
    waiting = {n: len(task.needs) for n, task in enumerate(tasks) if task.needs}
    users: dict[int, list[int]] = {}
    for n, task in enumerate(tasks):
        for need in task.needs:
            users.setdefault(need, []).append(n)
    free, running, clock = workers, list[tuple[float, int]](), 0.0
    while queue or running:
        while queue and free:
            n = heapq.heappop(queue)
            heapq.heappush(running, (clock + tasks[n].seconds, n))
            free -= 1
        clock, n = heapq.heappop(running)
        free += 1
        for user in users.get(n, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(queue, user)
    busy = sum(task.seconds for task in tasks)
    return clock / 3600, 1 - busy / (clock * workers)


def main() -> None:
    """Print and record a line for each way and number of workers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--speed", type=float, default=400)
    options = parser.parse_args()
    for label, shared, shard, search_shard in (
        ("each cell makes its own stages", False, None, None),
        ("stages are shared", True, None, None),
        ("stages are shared, encoded in shards", True, SHARD_DOCUMENTS, None),
        ("stages are shared, encoded and searched in shards", True, SHARD_DOCUMENTS, SEARCH_DOCUMENTS),
    ):
        tasks = list(tasks_of(shared, shard, search_shard, options.speed))
        for workers in (1, 8, 64):
            hours, idle = simulated(tasks, workers)
            record = {"stages": label, "workers": workers, "tasks": len(tasks), "speed": options.speed}
            record |= {"hours": round(hours, 3), "idle": round(idle, 4)}
            print(json.dumps(record))
            common.append("cluster_simulation", record)


if __name__ == "__main__":
    main()
