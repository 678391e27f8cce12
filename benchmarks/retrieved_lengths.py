"""How long the documents are that systems return, beside those of the collection and the relevant ones.

    python benchmarks/retrieved_lengths.py COLLECTION SYSTEM=RUN ... [--json out.jsonl]

Words of title and text by Lucene's StandardAnalyzer, of the first ten documents of each ranking: quartiles, share with
a title alone, and the mean over queries of Spearman's correlation of score and length, as `weir audit` says them.
Source of the picture: Thakur et al. 2021, figure 4 and appendix H.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from weir.audit.texts import document_lengths, length_profile
from weir.datasets.load import load
from weir.files.runs import read_run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collection")
    parser.add_argument("runs", nargs="+", metavar="SYSTEM=RUN")
    parser.add_argument("--json", type=Path, help="Lines are added to this file.")
    given = parser.parse_args()
    dataset = load(given.collection)
    lengths = document_lengths(dataset.corpus)
    qrels = dataset.qrels
    relevant = dataset.corpus.ids.codes(qrels.docs.strings)[qrels.doc[qrels.grade > 0]]
    rows: list[dict[str, object]] = [
        {"of": "all documents", "quartiles": np.quantile(lengths, [0.25, 0.5, 0.75]).tolist()},
        {
            "of": "relevant",
            "quartiles": np.quantile(lengths[relevant[relevant >= 0]], [0.25, 0.5, 0.75]).tolist(),
        },
    ]
    for said in given.runs:
        name, _, path = said.partition("=")
        profile = length_profile(read_run(Path(path)), dataset.corpus, lengths)
        if profile is not None:
            quartiles, correlation, title_only = profile
            rows.append(
                {
                    "of": name,
                    "quartiles": list(quartiles),
                    "title_only": title_only,
                    "correlation": round(correlation, 4),
                }
            )
    lines = "".join(json.dumps({"collection": dataset.name} | row) + "\n" for row in rows)
    print(lines, end="")
    if given.json:
        with given.json.open("a", encoding="utf-8") as out:
            out.write(lines)


if __name__ == "__main__":
    main()
