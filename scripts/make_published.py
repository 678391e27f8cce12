"""Writes src/weir/experiment/facts/: scores that others have published, each with its source.

    python scripts/make_published.py FACTS SCORES

FACTS: a folder with results-beir.csv (model, family, dataset, split, metric, value, value_as_printed, source, note);
and birco-results.csv (system, method, task_objective_O, dataset, metric, mean_x100, source), what BIRCO's program
prints of the rank files that its authors publish; and efficiency.csv and bias.csv, tables 3 and 4 of the BEIR paper and
table 2 of Elastic's study;
SCORES: a folder with pyserini.msmarco-v1-passage.csv (condition, topics, measure, value, source). Only numbers, names
and sources are taken. Left out is what nobody can look up: values from recollection, values that were derived rather
than printed, and values of unpublished reproductions. What is changed: per cent become shares of 1, more than six
decimals are rounded to six, measures get Weir's names (recall that is capped is R_cap; binary measures of the Deep
Learning track count grades from 2), a source's file of each collection is written as one pattern with a star, and zeros
at the end that tables of numbers lose are put back where the publisher prints as many decimals of every number.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

OUT = Path(__file__).resolve().parents[1] / "src" / "weir" / "experiment" / "facts"
PYSERINI = "castorini/pyserini@0a0be2960d:pyserini/2cr/msmarco-v1-passage.yaml"
BIRCO = "BIRCO-benchmark/BIRCO@84b2b05"
BIRCO_MEASURES = {"MAP": "AP", "MRR@10": "RR@10"}  # the sets here have grades 0 and 1, whose best is 1
DECIMALS = 6
PRINTED_DECIMALS = {"Anserini": 4, "Pyserini 2CR": 4, "BEIR paper": 3}
"""Decimals of every score of a publisher, by the first words in a model's brackets; Anserini's files declare theirs."""
MEASURES = {"MAP@10": "AP@10", "MAP@1000": "AP@1000", "MAP": "AP@1000", "MRR@10": "RR@10", "R@1K": "R@1000"}
TOPICS = {
    "msmarco-v1-passage.dev": ("msmarco", "dev"),
    "dl19-passage": ("trec-dl-2019", "test"),
    "dl20-passage": ("trec-dl-2020", "test"),
}
UNCITABLE = ("memory", "derived", "seed")
SOURCES = [
    (r"^BEIR paper (Table \d+)[^;]*re-printed in Contriever paper.*",
     r"BEIR paper (arXiv:2104.08663v4), \1, as reprinted in the Contriever paper (arXiv:2112.09118), Table 10"),
    (r"^BEIR paper (Table \d+).*", r"BEIR paper (arXiv:2104.08663v4), \1"),
    (r"^Contriever paper \(arXiv 2112.09118\) (Table \d+).*", r"Contriever paper (arXiv:2112.09118), \1"),
    (r" \(issues corpus\)$", ""),
    (r"(configs/(?:beir-v1\.0\.0-)?)(?:[a-z0-9-]+?)\.", r"\1*."),
    (r"(results/[^/]+/[^/]+/)[^/]+\.json$", r"\1*.json"),
]  # fmt: skip
NOTES = [
    (r"^MTEB task [^,]+, mteb None; ", ""),
    (r"^MTEB task [^,]+, mteb None$", ""),
    (r"^MTEB task [^,]+, ", ""),
    (r'^value implies capped recall.*?; see README prose ?', "capped recall "),
    (r'^capped recall R_cap@100 \(the paper marks it with a star\)', "capped recall"),
    (r"\$\{(\w+)\}", r"<\1>"),
]  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """One published number."""

    model: str
    family: str
    dataset: str
    split: str
    measure: str
    value: str
    source: str
    note: str


def beir(path: Path) -> Iterator[Fact]:
    """The citable rows of results-beir.csv."""
    for row in read(path):
        if row["value_as_printed"] and not row["source"].startswith(UNCITABLE):
            note = replaced(row["note"], NOTES).strip()
            measure = named(row["metric"], row["dataset"], note)
            source = replaced(row["source"], SOURCES)
            value = printed(row["value"], row["value_as_printed"])
            yield Fact(
                row["model"], row["family"], row["dataset"], row["split"], measure, value, source, note
            )


def passages(path: Path) -> Iterator[Fact]:
    """Pyserini's reproductions on the passages of MS MARCO."""
    for row in read(path):
        dataset, split = TOPICS[row["topics"]]
        measure = named(row["measure"], dataset, "")
        model = f"{row['condition']} [Pyserini 2CR]"
        family = "lexical" if row["condition"].startswith("bm25") else "other"
        yield Fact(model, family, dataset, split, measure, row["value"], PYSERINI, "")


def birco(path: Path) -> Iterator[Fact]:
    """What BIRCO's rank2metric prints of each published rank file without resampling: per cent with three decimals."""
    for row in read(path):
        method = row["method"].partition(" (")[0].removeprefix("scoring + ")
        model = f"{row['system']}, {method}{' +O' if row['task_objective_O'] == 'yes' else ''} [BIRCO]"
        ranks = re.search(r"evaluation/ranks/[^/]+/(\S+)", row["source"])
        assert ranks is not None, row
        source = f"{BIRCO}:evaluation/rank2metric.py of evaluation/ranks/*/{ranks[1]}"
        family = "dense" if method == "embedding" else "re-ranking"
        family = "learned-sparse" if model.startswith("SPLADE") else family
        value = f"{Decimal(row['mean_x100']).scaleb(-2):.5f}"
        measure = BIRCO_MEASURES.get(row["metric"], row["metric"].replace("Recall", "R"))
        yield Fact(model, family, f"birco-{row['dataset']}", "test", measure, value, source, "")


def named(metric: str, dataset: str, note: str) -> str:
    """Weir's name of a measure."""
    name = MEASURES.get(metric, metric)
    if note.startswith("capped recall"):
        name = name.replace("R@", "R_cap@")
    if dataset.startswith("trec-dl") and not name.startswith("nDCG"):
        name = name.replace("@", "(rel=2)@")
    return name


def printed(value: str, as_printed: str) -> str:
    """The printed number as a share of 1, with as many decimals as were printed."""
    number = Decimal(as_printed)
    if abs(number - Decimal(value)) > Decimal("0.001"):
        number = number.scaleb(-2)
    assert abs(number - Decimal(value)) <= Decimal("0.000001"), (value, as_printed)
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -DECIMALS:
        number = round(number, DECIMALS)
    return f"{number:f}"


def padded(value: str, model: str) -> str:
    """The number with the zeros at its end that its publisher prints."""
    publisher = model.rpartition("[")[2]
    decimals = next((n for name, n in PRINTED_DECIMALS.items() if publisher.startswith(name)), 0)
    whole, _, fraction = value.partition(".")
    return f"{whole}.{fraction.ljust(decimals, '0')}" if decimals else value


def replaced(text: str, rules: list[tuple[str, str]]) -> str:
    for pattern, by in rules:
        text = re.sub(pattern, by, text)
    return text


def write(facts: list[Fact]) -> None:
    """Three tables: scores by model, collection and origin; models with their family; origins with their note."""
    origins: dict[tuple[str, str], int] = {}
    rows: dict[tuple[str, str, str, int], dict[str, str]] = {}
    for fact in facts:
        origin = origins.setdefault((fact.source, fact.note), len(origins) + 1)
        values = rows.setdefault((fact.model, fact.dataset, fact.split, origin), {})
        value = padded(fact.value, fact.model)
        assert values.setdefault(fact.measure, value) == value, fact
    OUT.mkdir(parents=True, exist_ok=True)
    lines = [
        [model, dataset, split, str(origin), " ".join(f"{m}={v}" for m, v in values.items())]
        for (model, dataset, split, origin), values in rows.items()
    ]
    table("scores.tsv", ["model", "dataset", "split", "origin", "scores"], lines)
    families = sorted({fact.model: fact.family for fact in facts}.items())
    table("models.tsv", ["model", "family"], [list(pair) for pair in families])
    table("origins.tsv", ["origin", "source", "note"], [[str(n), *pair] for pair, n in origins.items()])
    print(f"{len(facts)} scores of {len(families)} models in {len(lines)} lines, {len(origins)} origins")


def table(name: str, header: list[str], lines: list[list[str]]) -> None:
    text = "".join("\t".join(line) + "\n" for line in [header, *lines])
    assert all(line.count("\t") == len(header) - 1 for line in text.rstrip("\n").split("\n")), name
    (OUT / name).write_text(text, encoding="utf-8", newline="\n")


def printed_tables(facts: Path) -> None:
    """Tables of the BEIR paper and of Elastic's study that hold no scores of one measure: cells as they are printed."""
    lines = []
    for row in read(facts / "efficiency.csv"):
        if row["group"] == "beir-table3":
            column = row["metric"].replace("query latency ", "") + ", " + row["unit"]
            lines.append(
                ["BEIR table 3", row["system"], column.replace("index size per", "index of"), row["value"]]
            )
    for row in read(facts / "bias.csv"):
        if row["study"] == "hole-study":
            unit = ", %" if row["unit"] == "%" else ""
            lines.append(["BEIR table 4", row["system"], row["metric"] + unit, row["value"]])
        if row["study"] == "elastic-judge-rate":
            lines.append(["Elastic table 2", row["dataset"], row["system"], row["value"]])
    table("printed-tables.tsv", ["table", "row", "column", "value"], lines)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit((__doc__ or "").split("\n")[2].strip())
    facts, scores = map(Path, sys.argv[1:])
    printed_tables(facts)
    beirs = beir(facts / "results-beir.csv")
    write(
        [*beirs, *passages(scores / "pyserini.msmarco-v1-passage.csv"), *birco(facts / "birco-results.csv")]
    )


if __name__ == "__main__":
    main()
