"""What makes one BM25 differ from another: presets by the name of the tool they reproduce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["PRESETS", "BM25Preset", "Lengths"]

Lengths: TypeAlias = Literal["byte", "exact"]


@dataclass(frozen=True)
class BM25Preset:
    """Everything that moves a BM25 score.

    analyzer: see weir.text; k1, b: saturation and length normalisation; lengths: "byte" stores document
    lengths in one byte as Lucene does, "exact" keeps them; fields: the views that are indexed, each with
    statistics of its own; tie_breaker: None adds the scores of the fields; a number takes the best field
    and that share of the others (Elasticsearch's best_fields). In all of them the idf is
    ln(1 + (N - df + 0.5) / (df + 0.5)) and a term adds idf * tf / (tf + k1 * (1 - b + b * length / average)).
    """

    reproduces: str
    analyzer: str = "lucene-english"
    k1: float = 0.9
    b: float = 0.4
    lengths: Lengths = "byte"
    fields: tuple[str, ...] = ("title text",)
    tie_breaker: float | None = None


PRESETS: dict[str, BM25Preset] = {
    "lucene": BM25Preset("Anserini, flat index: title and text as one field"),
    "lucene-multifield": BM25Preset(
        "Anserini, multifield index: title and text apart, added (the BEIR paper's BM25)",
        fields=("text", "title"),
    ),
    "elastic": BM25Preset(
        "Elasticsearch multi_match best_fields with its english analyzer",
        k1=1.2,
        b=0.75,
        fields=("text", "title"),
        tie_breaker=0.5,
    ),
    "bm25s": BM25Preset(
        "the bm25s library with its defaults and an English stemmer",
        analyzer="bm25s-english",
        k1=1.5,
        b=0.75,
        lengths="exact",
    ),
}
