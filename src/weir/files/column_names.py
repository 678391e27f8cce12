"""What columns are called: the one home of the names by which rankings and judgments are recognised."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weir.errors import BadValue, FormatError, WeirError

Kind: TypeAlias = Literal["run", "qrels"]
Usual: TypeAlias = tuple[tuple[str, ...], ...]

# Best names first: where PyTerrier has `qid` and `query`, `query` is the text; its `docid` is a number of its
# own beside `docno`; BEIR's judgments call the grade `score`.
QUERY: Usual = (
    ("query_id", "query-id", "queryid", "qid", "q_id", "topic_id", "topic-id"),
    ("query", "topic"),
)
DOC: Usual = (
    ("doc_id", "doc-id", "docno", "document_id", "document-id", "corpus_id", "corpus-id", "pid"),
    ("docid",),
    ("doc", "document"),
)
SCORE: Usual = (("score",), ("similarity", "sim"))
GRADE: Usual = (("relevance", "rel", "grade", "label", "judgment", "judgement"), ("score",))

# Where a judgment comes from: a column that judgments may have besides; the place of a document, which a run may have.
ORIGIN = "origin"
RANK = "rank"

# What judges' tables call the same, besides: taken where judgments alone can be meant.
LABELLED_QUERY: Usual = (
    *QUERY,
    ("question_id", "question-id", "qidx", "query_idx", "queryidx", "topicid"),
    ("question",),
)
LABELLED_DOC: Usual = (
    *DOC,
    (
        *("passage_id", "passage-id", "passageid", "chunk_id", "chunk-id", "docidx", "doc_idx"),
        *("did", "context_id"),
    ),
    ("passage", "chunk", "url"),
)
LABEL = frozenset(
    (
        *("llm_label", "llm_relevance", "llm_score", "llm_judgment", "llm_judgement", "model_label"),
        *("predicted_label", "predicted", "prediction", "predicted_relevance", "relevance_label"),
        *("relevance_score", "rating", "verdict", "annotation", "human_label", "human_relevance"),
        *("judge_label", "judged"),
    )
)
NO_LABEL = frozenset(
    (
        *("rank", "sample", "iteration", "iter", "q0", "temperature", "seed", "time", "timestamp", "date"),
        *("tokens", "cost", "input_tokens", "output_tokens", "prompt_tokens", "latency", "confidence"),
        *("logprob", "index", "line", "id", "run", "result_status", "status", "model", "prompt", "digest"),
        *("text", "title", "explanation", "reason"),
    )
)

# What Weir itself writes; BEIR's own header is kept for tab-separated judgments.
WRITTEN: dict[Kind, tuple[str, str, str]] = {
    "run": ("query_id", "doc_id", "score"),
    "qrels": ("query_id", "doc_id", "relevance"),
}
BEIR_HEAD = ("query-id", "corpus-id", "score")


@dataclass(frozen=True)
class ColumnLayout:
    """What the lines of a table with a header hold: names of the cells, the byte between them, where to look.

    query, doc, number: which cells hold the query, the document, and the score or grade; rank: which holds the rank of
    a run's rows, None where no cell does.
    """

    separator: str
    names: tuple[str, ...]
    query: int
    doc: int
    number: int
    rank: int | None = None


def three_columns(columns: Sequence[str], kind: Kind, path: object = None) -> tuple[int, int, int]:
    """Which columns hold the query, the document and the score (of a run) or grade (of judgments).

    Raises BadValue, or for the file at `path` FormatError, where one of them is missing, naming the column that is
    probably meant, or could be either of two, and where judgments have a rank and a score, as runs do.
    """
    number = (SCORE, "score") if kind == "run" else (GRADE, "grade")
    query, doc, value = (
        _chosen(columns, usual, what, path) for usual, what in ((QUERY, "query"), (DOC, "document"), number)
    )
    if kind == "qrels" and has_ranks(columns) and _lowered(columns)[value] == "score":
        raise _refused(
            columns, "rank and score are a run's", "judgments, which come first, then the run", path
        )
    return query, doc, value


def _chosen(columns: Sequence[str], usual: Usual, what: str, path: object) -> int:
    """The one column that is called as usual for its purpose."""
    names = _lowered(columns)
    for tier in usual:
        matches = [at for at, name in enumerate(names) if name in tier]
        if len(matches) > 1:
            both = " and ".join(columns[at] for at in matches)
            raise _refused(columns, f"{both} could both be the {what}", "one of them alone", path)
        if matches:
            return matches[0]
    near = [
        column
        for column, name in zip(columns, names, strict=True)
        if name not in _every_name(QUERY, DOC, SCORE, GRADE)
        and difflib.get_close_matches(name, _every_name(usual), n=1, cutoff=0.6)
    ]
    hint = f" (rename '{near[0]}'?)" if len(near) == 1 else ""
    raise _refused(columns, f"none of them is the {what}", f"one called '{usual[0][0]}'{hint}", path)


def _every_name(*columns: Usual) -> set[str]:
    return {name for tiers in columns for tier in tiers for name in tier}


def _refused(columns: Sequence[str], reason: str, expected: str, path: object) -> WeirError:
    listed = ", ".join(columns) or "none"
    if path is None:
        return BadValue(f"columns: {listed}; {reason}; expected {expected}")
    return FormatError(path, f"the columns {listed}: {reason}", expected)


def pair_columns(columns: Sequence[str], path: object) -> tuple[int, int] | None:
    """Which columns of a table of labels hold the query and the document; None where no column is called so.

    Raises FormatError where a column could be either of two.
    """
    names = _lowered(columns)
    for usual in (LABELLED_QUERY, LABELLED_DOC):
        if _every_name(usual).isdisjoint(names):
            return None
    return _chosen(columns, LABELLED_QUERY, "query", path), _chosen(columns, LABELLED_DOC, "document", path)


def is_label(column: str) -> bool | None:
    """Whether a column of a table of labels is one, by its name; None where the name does not say."""
    name = column.strip().lower()
    if name in LABEL | _every_name(GRADE):
        return True
    return False if name in NO_LABEL else None


def is_header(cells: Sequence[str], kind: Kind) -> bool:
    """Whether the first line of a table names columns: it has a usual name and no number."""
    for cell in cells:
        with suppress(ValueError):
            float(cell)
            return False
    return not _every_name(QUERY, DOC, SCORE if kind == "run" else GRADE).isdisjoint(_lowered(cells))


def is_named(columns: Sequence[str]) -> bool:
    """Whether one of these is a usual name of a column: then all are columns, else queries, say."""
    return not _every_name(QUERY, DOC, SCORE, GRADE).isdisjoint(_lowered(columns))


def has_ranks(columns: Sequence[str]) -> bool:
    """Whether a column is called rank, as only runs have one."""
    return RANK in _lowered(columns)


def rank_column(columns: Sequence[str], kind: Kind) -> int | None:
    """Which column holds the ranks of a run; None where none does, and for judgments."""
    names = _lowered(columns)
    return names.index(RANK) if kind == "run" and RANK in names else None


def origin_column(columns: Sequence[str], kind: Kind) -> int | None:
    """Which column says where judgments come from; None where none does, and for a run."""
    names = _lowered(columns)
    return names.index(ORIGIN) if kind == "qrels" and ORIGIN in names else None


def kind_of(columns: Sequence[str], path: object) -> Kind:
    """Whether named columns hold a run or judgments, by the third; raises FormatError for neither."""
    names = _lowered(columns)
    judged = not set(GRADE[0]).isdisjoint(names) or sorted(names) == sorted(BEIR_HEAD)
    kind: Kind = "qrels" if judged else "run"
    three_columns(columns, kind, path)
    return kind


def _lowered(columns: Sequence[str]) -> list[str]:
    return [name.strip().lower() for name in columns]
