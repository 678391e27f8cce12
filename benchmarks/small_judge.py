"""A small real model as a judge beside NIST: tables of its kept answers, made without the model.

A sample of TREC DL 2019's judged passages, as many of each grade, was judged by Qwen2.5-Coder-1.5B-Instruct (GGUF, Q4_K_M)
under llama.cpp:

    python benchmarks/remote/llama_server.py qwen-coder/model.gguf --port 8391 --context 4096 --threads 1
    python benchmarks/small_judge.py --sample sample.tsv
    weir judge sample.tsv --judged --collection DL19 --model "http://127.0.0.1:8391/v1#qwen2.5-coder-1.5b-instruct" -o labels/
    python benchmarks/small_judge.py --pack labels/ [another/ ...]
    weir run -d TOPICS -s bm25 -s 'bm25 >> llm("score", model="http://...", depth=10)' -m nDCG@10 -o results/
    python benchmarks/small_judge.py --rankings dl19 bm25=results/.../run.trec llm=results/.../run.trec

and the unjudged documents among the first 10 of bm25 and dense("minilm") for 15 queries of NFCorpus, drawn at random:

    weir judge nf15.tsv bm25.trec minilm.trec --collection NFCORPUS --model "http://..." --twice 0 --probes 0 -o holes/
    python benchmarks/small_judge.py --pack holes/
    python benchmarks/small_judge.py --rankings nfcorpus bm25=bm25.trec minilm=minilm.trec --only nf15.tsv

Without these options it prints a JSON line for each table: how many answers have a grade, what they say by NIST's grade,
agreement (also with each grade weighted to its share of all of DL19's judgments), self-agreement, probes, the gate, and
what the labels add to an estimate, what re-ranking does, and what the model says of the unjudged documents. For the
estimate: in each of --draws draws, --queries topics with three sampled passages are drawn with replacement, --judged of
them judged by NIST; the interval should hold the mean over all topics in 95%.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import weir
from common import HERE, append, data_folder, say
from weir.stats.calibration import calibration, parse_least
from weir.stats.label_agreement import binary_table, bounds, cohen_kappa, drawn_tables, label_tables
from weir.stats.resampling import share_bounds

ANSWERS = HERE / "results" / "small_judge_answers.jsonl.gz"
RANKINGS = HERE / "results" / "small_judge_rankings.jsonl.gz"
FIELDS = (
    "query",
    "document",
    "probe",
    "sample",
    "grade",
    "verdict",
    "text",
    "model",
    "prompt",
    "digest",
    "time",
)
SEED = 24
DEPTH = 10
SHOWN, MIN_TOPICS = 3, 20
"""Passages of a topic, and topics that have so many, for the estimate."""
QRELS = {
    "dl19": Path("trec-dl", "judged-pool", "dl19", "qrels", "test.tsv"),
    "birco-relic": Path("birco", "beir", "relic", "qrels", "test.tsv"),
    "birco-wtb": Path("birco", "beir", "wtb", "qrels", "test.tsv"),
    "nfcorpus": Path("nfcorpus", "qrels", "test.tsv"),
}
"""The judgments of each collection, below --data."""
HOLES = "nfcorpus"
"""The collection whose rankings are not compared: what the model says of their unjudged documents is."""
Labels = dict[str, dict[str, float]]


def sampled(people: Labels, each: int) -> Labels:
    """So many pairs of every grade, drawn at random."""
    rng, sample = np.random.default_rng(SEED), Labels()
    for grade in sorted({g for docs in people.values() for g in docs.values()}):
        pairs = sorted((q, d) for q, docs in people.items() for d, g in docs.items() if g == grade)
        for at in rng.permutation(len(pairs))[:each]:
            query, doc = pairs[at]
            sample.setdefault(query, {})[doc] = grade
    return sample


def pack(folders: list[Path]) -> None:
    """Put every answer of folders of weir judge into the file of answers, behind those that it has."""
    files = (folder / name for folder in folders for name in ("judgments.jsonl", "probes.jsonl"))
    answers = (json.loads(line) for file in files if file.exists() for line in file.read_bytes().splitlines())
    new = [{f: answer[f] for f in FIELDS if f in answer} for answer in answers]
    write(ANSWERS, {key(answer): answer for answer in [*read(ANSWERS), *new]}.values())


def key(answer: dict[str, Any]) -> tuple[object, ...]:
    """What one prompt was about: two answers with the same stand for one."""
    return tuple(answer.get(f) for f in ("model", "digest", "query", "document", "probe", "sample"))


def pack_rankings(collection: str, runs: list[str], only: Path | None) -> None:
    """Put the first DEPTH documents of some systems into the file of rankings, beside those of other systems.

    only: judgments whose queries alone are taken.
    """
    queries = None if only is None else weir.Qrels.load(only).to_dict().keys()
    named = dict(run.split("=", 1) for run in runs)
    rows = {(row["collection"], row["query"]): row for row in read(RANKINGS)}
    for name, path in named.items():
        for query, ranking in weir.Run.load(Path(path)).to_dict().items():
            if queries is not None and query not in queries:
                continue
            empty = {"collection": collection, "query": query, "rankings": {}}
            rows.setdefault((collection, query), empty)["rankings"][name] = list(ranking)[:DEPTH]
    write(RANKINGS, rows.values())


def write(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records as compressed JSON lines, the same bytes for the same records."""
    path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in records).encode(), mtime=0))


def read(path: Path) -> list[dict[str, Any]]:
    """The records of compressed JSON lines."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def reranked(judgments: Callable[[str], Labels]) -> Iterator[dict[str, Any]]:
    """What re-rankings do to nDCG@10, beside the first system of each collection."""
    rows = read(RANKINGS)
    for collection in dict.fromkeys(row["collection"] for row in rows if row["collection"] != HOLES):
        whole = {row["query"]: row["rankings"] for row in rows if row["collection"] == collection}
        people = judgments(collection)
        first, *others = next(iter(whole.values()))
        for other in others:
            own = {query: ranks for query, ranks in whole.items() if other in ranks}
            runs = {
                name: {q: {d: float(-i) for i, d in enumerate(ranks[name])} for q, ranks in own.items()}
                for name in (first, other)
            }
            [compared] = weir.compare({q: people[q] for q in own}, runs, measures=[f"nDCG@{DEPTH}"])
            [pair] = compared.pairs
            means = {standing.system: standing.mean for standing in compared.standings}
            yield {"table": "re-ranking", "collection": collection, "topics": len(own), "nDCG@10": means,
                   "difference": pair.difference, "low": pair.low, "high": pair.high, "p": pair.p,
                   "won": pair.won, "lost": pair.lost, "tied": pair.tied}  # fmt: skip


def holes(answers: list[dict[str, Any]], people: Labels) -> Iterator[dict[str, Any]]:
    """What the model says of documents that nobody judged, and what that would do to nDCG@10."""
    rows = [row for row in read(RANKINGS) if row["collection"] == HOLES]
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        for name, ranks in row["rankings"].items():
            runs.setdefault(name, {})[row["query"]] = {d: float(-i) for i, d in enumerate(ranks)}
    own, rankings = {row["query"] for row in rows}, [weir.Run.of(run, name) for name, run in runs.items()]
    labels = Labels()
    for answer in answers:
        if answer["query"] in own and answer["grade"] is not None:
            labels.setdefault(answer["query"], {})[answer["document"]] = answer["grade"]
    qrels = {query: people.get(query, {}) for query in own}
    for rel in (1, 2):
        [study] = weir.labels.holes(qrels, *rankings, model=labels, measure=f"nDCG@{DEPTH}", rel=rel)
        for one in study.found:
            missed = one.missed_by_model
            yield {"table": "holes", "collection": HOLES, "queries": study.queries, "rel": rel, "system": one.system,
                   "holes": one.holes, "relevant": missed.count, "share": missed.value, "low": missed.low,
                   "high": missed.high, "before": one.before if one.system else None,
                   "after": [filled.mean for filled in one.filled]}  # fmt: skip


def of_one_prompt(
    answers: list[dict[str, Any]], people: Labels, all_people: Labels, given: Any
) -> Iterator[dict[str, Any]]:
    """The tables of the answers to one version of a prompt."""
    plain = [a for a in answers if "probe" not in a]
    graded = sum(a["grade"] is not None for a in plain)
    low, high = share_bounds(graded, len(plain))
    texts = Counter(a["text"] for a in plain if a["grade"] is None)
    yield {"table": "answers", "answers": len(plain), "graded": graded, "share": graded / len(plain), "low": low,
           "high": high, "verdicts": Counter(a["verdict"] for a in plain), "without": texts.most_common(3)}  # fmt: skip
    labels, again = Labels(), Labels()
    # "relevant" of a prompt that knows no grades stands for 2, from where NIST calls a passage relevant
    unit = 2 if max((answer["grade"] or 0 for answer in plain), default=0) == 1 else 1
    for answer in plain:
        if answer["grade"] is not None:
            turn = again if answer["sample"] else labels
            turn.setdefault(answer["query"], {})[answer["document"]] = answer["grade"] * unit
    if sum(map(len, labels.values())) < 30:
        return
    [agreed] = weir.labels.agree(people, labels)
    yield {"table": "agreement", "pairs": agreed.pairs, "queries": agreed.queries, "grades": agreed.labels,
           "confusion": agreed.confusion, "values": agreed.values, "binary": agreed.binary}  # fmt: skip
    yield {"table": "agreement at the shares of all judgments"} | weighted(people, labels, all_people)
    twice = [(d, labels[q][d]) for q, docs in again.items() for d in docs if d in labels.get(q, {})]
    same = sum(again[q][d] == labels[q][d] for q in again for d in again[q] if d in labels.get(q, {}))
    yield {"table": "judged twice", "pairs": len(twice), "same": same}
    for name in dict.fromkeys(a["probe"] for a in answers if "probe" in a):
        pairs = [(labels[a["query"]][a["document"]], a["grade"]) for a in answers if a.get("probe") == name]
        read = [(before, after) for before, after in pairs if after is not None]
        rose = sum(after > before for before, after in read)
        low, high = share_bounds(rose, len(read))
        fell = sum(after < before for before, after in read)
        yield {"table": "probe", "probe": name, "pairs": len(read), "rose": rose, "low": low, "high": high,
               "fell": fell, "without": len(pairs) - len(read)}  # fmt: skip
    for least in ("binary kappa 0.4", "binary kappa from 2 0.4"):
        verdict = calibration(weir.Qrels.of(people), weir.Qrels.of(labels), parse_least(least))
        yield {"table": "gate", "least": least, "passed": verdict.passed, "sentence": verdict.sentence()}
    if sum(len(docs) >= SHOWN for docs in labels.values()) >= MIN_TOPICS:
        yield {"table": "estimate"} | estimated(people, labels, given)


def weighted(people: Labels, labels: Labels, all_people: Labels) -> dict[str, Any]:
    """Agreement with each of people's grades weighted to its share of all judgments, intervals over queries."""
    tables = label_tables(weir.Qrels.of(people), weir.Qrels.of(labels))
    whole = Counter(g for docs in all_people.values() for g in docs.values())
    sample = tables.table.sum(axis=(0, 2))
    weight = np.array([whole[g] / max(1, n) for g, n in zip(tables.labels.tolist(), sample, strict=True)])
    by_query = tables.table * weight[:, None]
    found: dict[str, Any] = {}
    cut = int(np.searchsorted(tables.labels, 2))
    statistics = {
        "accuracy": lambda t: float(np.trace(t) / t.sum()),
        "kappa": cohen_kappa,
        "accuracy from 2": lambda t: float(np.trace(binary_table(t, cut)) / t.sum()),
        "kappa from 2": lambda t: cohen_kappa(binary_table(t, cut)),
    }
    for name, statistic in statistics.items():
        low, high = bounds([statistic(t) for t in drawn_tables(by_query)])
        found[name] = [statistic(by_query.sum(axis=0)), low, high]
    return found


def estimated(people: Labels, labels: Labels, given: Any) -> dict[str, Any]:
    """How often intervals hold the mean, and how wide they are, with people alone and with the model's labels."""
    rng, k = np.random.default_rng(SEED), SHOWN
    shown = {q: sorted(docs) for q, docs in labels.items() if len(docs) >= k}
    topics = sorted(shown)
    shown = {q: [shown[q][i] for i in rng.permutation(len(shown[q]))[:k]] for q in topics}
    score = {
        who: {q: float(np.mean([source[q][d] >= 2 for d in shown[q]])) for q in topics}
        for who, source in (("people", people), ("model", labels))
    }
    truth = float(np.mean([score["people"][q] for q in topics]))
    held, widths, weights = Counter[str](), {"people": [], "corrected": []}, []
    for _ in range(given.draws):
        drawn = {f"{n}": topics[i] for n, i in enumerate(rng.integers(0, len(topics), given.queries))}
        judged = {n: {d: people[q][d] for d in shown[q]} for n, q in list(drawn.items())[: given.judged]}
        model = {n: {d: labels[q][d] for d in shown[q]} for n, q in drawn.items()}
        run = {n: {d: float(k - i) for i, d in enumerate(shown[q])} for n, q in drawn.items()}
        [one] = weir.labels.estimate(judged, model, run, measure=f"P(rel=2)@{k}")
        for who, value in (("people", one.human), ("corrected", one.corrected)):
            held[who] += value.low <= truth <= value.high
            widths[who].append(value.high - value.low)
        weights.append(one.corrected.weight)
    correlation = np.corrcoef([score["people"][q] for q in topics], [score["model"][q] for q in topics])[0, 1]
    return {"topics": len(topics), "queries": given.queries, "judged": given.judged, "draws": given.draws,
            "mean by people": truth, "mean by the model": float(np.mean(list(score["model"].values()))),
            "correlation": float(correlation),
            "held by people": held["people"] / given.draws, "held corrected": held["corrected"] / given.draws,
            "width by people": float(np.mean(widths["people"])), "width corrected": float(np.mean(widths["corrected"])),
            "weight": float(np.mean(weights))}  # fmt: skip


def main() -> None:
    """Write the sample, pack answers, or print and append the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="The folder of collections.")
    parser.add_argument("--qrels", type=Path, help="People's judgments, if not those of --data.")
    parser.add_argument("--each", type=int, default=40, help="Pairs of each grade in the sample.")
    parser.add_argument("--sample", type=Path)
    parser.add_argument("--pack", type=Path, nargs="+")
    parser.add_argument("--rankings", nargs="+", help="COLLECTION NAME=RUN ..., the first stage first.")
    parser.add_argument("--only", type=Path, help="Judgments whose queries alone are put into the rankings.")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--judged", type=int, default=40)
    given = parser.parse_args()
    if given.pack:
        return pack(given.pack)
    if given.rankings:
        return pack_rankings(given.rankings[0], given.rankings[1:], given.only)

    def judgments(collection: str) -> Labels:
        return weir.Qrels.load(given.qrels or data_folder(given.data) / QRELS[collection]).to_dict()

    people = judgments("dl19")
    if given.sample:
        return weir.Qrels.of(sampled(people, given.each)).save(given.sample)
    every = read(ANSWERS)
    answers = [a for a in every if a["document"] in people.get(a["query"], {})]
    pairs = {(a["query"], a["document"]) for a in answers}
    sample = {q: {d: g for d, g in docs.items() if (q, d) in pairs} for q, docs in people.items()}
    sample = {q: docs for q, docs in sample.items() if docs}
    for model, prompt, digest in dict.fromkeys((a["model"], a["prompt"], a["digest"]) for a in answers):
        own = [a for a in answers if (a["model"], a["digest"]) == (model, digest)]
        for table in of_one_prompt(own, sample, people, given):
            line = {"prompt": f"{prompt}-{digest}", "model": model, **table}
            append("small_judge", line)
            say(json.dumps(line))
    for line in (*reranked(judgments), *holes(every, judgments(HOLES))):
        append("small_judge", line)
        say(json.dumps(line))


if __name__ == "__main__":
    main()
