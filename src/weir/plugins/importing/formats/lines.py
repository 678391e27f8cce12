"""Lines of columns without names, numbers by query and document, listed rankings."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from weir.errors import BadValue
from weir.files.pickles import is_pickle
from weir.plugins.importing.contents import Contents, fold, names
from weir.plugins.importing.formats.engines import members
from weir.plugins.importing.items import (
    ByWords,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    number,
    plain,
    ranking,
)
from weir.plugins.importing.readers import ReadRequest, reader

# ----------
# Lines of columns without names: judgments, runs and topics of TREC, and similar files.


Cells = tuple[str, list[str]]  # where a line stands, and its columns
_LOOKED_AT = 2000  # lines by which a format is known


def _cells(contents: Contents, most: int = 0) -> list[Cells]:
    """The columns of each line that is neither blank nor a comment: cut at tabs where the first line has some."""
    rows: list[Cells] = []
    tabs: bool | None = None
    for line, text in enumerate(contents.text.split("\n"), 1):
        if not text.strip() or text.startswith("#"):
            continue
        if tabs is None:
            tabs = text.count("\t") >= 1
        cells = [cell.strip() for cell in text.strip("\r\n").split("\t")] if tabs else text.split()
        rows.append((f"line {line}", cells))
        if most and len(rows) >= most:
            break
    return rows


def _looked_at(contents: Contents) -> list[list[str]]:
    return [cells for _, cells in _cells(contents, _LOOKED_AT)] if contents.shape == "lines" else []


def _mostly(rows: list[list[str]], good: list[bool]) -> bool:
    """Whether the first rows are of a kind; single odd ones are refused later, by their line."""
    return bool(rows) and good[0] and sum(good) >= 0.8 * len(good)


def _counts(rows: list[list[str]], column: int) -> bool:
    """Whether a column counts 0, 1, 2 ... or 1, 2, 3 ... (or rises) within each query, over more than two lines."""
    longest = 0
    for _, group in groupby(rows, key=lambda cells: cells[0]):
        ranks = [number(cells[column]) for cells in group]
        if any(r is None or not r.is_integer() for r in ranks):
            return False
        values = [r for r in ranks if r is not None]
        if any(b <= a for a, b in pairwise(values)):
            return False
        longest = max(longest, len(values))
    return longest > 2


_ITERATIONS = {"0", "1", "2", "Q0", "q0", "q", "iter"}


def _trec_run(contents: Contents) -> str:
    rows = _looked_at(contents)
    good = [
        len(c) in (5, 6) and number(c[3]) is not None and number(c[4]) is not None and c[1] in _ITERATIONS
        for c in rows
    ]
    return "query Q0 document rank score" if _mostly(rows, good) else ""


@reader("trec-run", "a run in TREC's format", _trec_run)
def read_trec_run(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings by score; the rank column is ignored, as by trec_eval."""
    if "ir_metadata.start" in contents.text[:1000]:
        header = [line for line in contents.text.split("\n") if line.startswith("#")]
        yield FileRemark(f"a header of ir_metadata, {len(header)} lines, describes the run")
    yield from run_lines(contents)


def run_lines(contents: Contents) -> Iterator[Item]:
    """Rankings of lines `query Q0 document rank score [tag]`; a line that is none is refused."""
    expected = "columns, or no finite score; expected query Q0 document rank score tag"
    rows = [(where, cells, cells[2:5:2] if len(cells) in (5, 6) else []) for where, cells in _cells(contents)]
    yield from _scored([(where, cells[0], pair, f"{len(cells)} {expected}") for where, cells, pair in rows])


def _scored(rows: list[tuple[str, str, list[str], str]]) -> Iterator[Item]:
    """Rankings by score of (where, query, [document, score], why the row is refused where there is no score)."""
    rankings: dict[str, list[tuple[str, float]]] = {}
    for where, query, pair, reason in rows:
        score = number(pair[1]) if pair else None
        if score is None:
            yield Refused(where, reason)
        else:
            rankings.setdefault(query, []).append((pair[0], score))
    for query, pairs in rankings.items():
        docs, scores = tuple(ItemKey(doc) for doc, _ in pairs), tuple(score for _, score in pairs)
        yield Ranking(ItemKey(query), docs, f"query {query}", scores, ordered=False)


def _trec_qrels(contents: Contents) -> str:
    rows = _looked_at(contents)
    good = [len(c) == 4 and c[1] in _ITERATIONS and number(c[3]) is not None for c in rows]
    if not _mostly(rows, good) or _colbert(contents):
        return ""
    return f"query {rows[0][1]} document grade"


@reader("trec-qrels", "judgments in TREC's format", _trec_qrels)
def read_trec_qrels(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments."""
    yield from qrels_lines(contents)


def qrels_lines(contents: Contents) -> Iterator[Item]:
    """Judgments of lines of four columns, or of query, document and grade."""
    for where, cells in _cells(contents):
        if len(cells) not in (3, 4):
            yield Refused(where, f"{len(cells)} columns; expected query 0 document grade")
        else:
            yield Judgment(ItemKey(cells[0]), ItemKey(cells[-2]), cells[-1], where)


def _colbert(contents: Contents) -> str:
    rows = _looked_at(contents)
    tabbed = contents.shape == "lines" and "\t" in contents.text.partition("\n")[0]
    if not tabbed or not rows or {len(c) for c in rows} - {4, 5} or not _counts(rows, 2):
        return ""
    falls = all((number(b[3]) or 0) <= (number(a[3]) or 0) for a, b in pairwise(rows) if a[0] == b[0])
    return "query, document, rank that counts, score that falls" if falls else ""


@reader("colbert", "a ranking of ColBERT", _colbert)
def read_colbert(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings in the order of their ranks; a fifth column of labels is passed over."""
    rows = _cells(contents)
    if any(len(cells) == 5 for _, cells in rows):
        yield FileRemark("the fifth column, a label, was passed over")
    yield from _ranked(rows, 3)


def _ranked(rows: list[Cells], score_column: int = 0) -> Iterator[Item]:
    """Rankings of query, document, rank, and perhaps a score."""
    held: dict[str, list[tuple[float, str, float]]] = {}
    for where, cells in rows:
        rank = number(cells[2]) if len(cells) >= 3 else None
        score = number(cells[score_column]) if score_column and len(cells) > score_column else 0.0
        if rank is None or score is None:
            yield Refused(where, "no number for the rank (or the score)")
        else:
            held.setdefault(cells[0], []).append((rank, cells[1], score))
    for query, ranked in held.items():
        ranked.sort(key=lambda one: one[0])
        docs = tuple(ItemKey(doc) for _, doc, _ in ranked)
        scores = tuple(score for _, _, score in ranked) if score_column else ()
        yield Ranking(ItemKey(query), docs, f"query {query}", scores)


def _three(contents: Contents) -> str:
    rows = _looked_at(contents)
    good = [len(c) == 3 and number(c[2]) is not None for c in rows]
    if not _mostly(rows, good):
        return ""
    counted = (
        ", which rises within each query as ranks do" if _counts([c for c in rows if len(c) == 3], 2) else ""
    )
    raise BadValue(
        f"{contents.path}: the third column{counted} may be a rank, a grade or a score; "
        "say --as run-ranks, --as qrels or --as run-scores"
    )


@reader("three-columns", "query, document and a number", _three, general=True)
def read_three(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Lines whose query, document and number were told apart by --columns are rows; these never are."""
    yield from ()
    _three(contents)


@reader("run-ranks", "query, document, rank (MS MARCO's run, PyTerrier's minimal)")
def read_ranks(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings by rank, from 0 or 1, with or without gaps."""
    yield from _ranked(_lines_only(contents))


@reader("run-scores", "query, document, score")
def read_scores(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings by score."""
    rows = _lines_only(contents)
    expected = "expected query, document and score"
    yield from _scored(
        [(where, cells[0], cells[1:] if len(cells) == 3 else [], expected) for where, cells in rows]
    )


def _lines_only(contents: Contents) -> list[Cells]:
    if contents.shape != "lines":
        raise BadValue(f"{contents.path}: its fields have names; expected lines of three columns")
    return _cells(contents)


def _excluded(contents: Contents) -> str:
    rows = _looked_at(contents)
    named = contents.says("exclude", "excluded")
    return (
        f"two columns, and '{named}' in its name"
        if named and _mostly(rows, [len(c) == 2 for c in rows])
        else ""
    )


@reader("exclude", "documents to leave out, query and document", _excluded)
def read_excluded(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Excluded documents, as metadata of the queries."""
    held: dict[str, list[str]] = {}
    for where, cells in _lines_only(contents):
        if len(cells) != 2:
            yield Refused(where, f"{len(cells)} columns; expected query and document")
        else:
            held.setdefault(cells[0], []).append(cells[1])
    for query, docs in held.items():
        yield FoundQuery(ItemKey(query), f"query {query}", {"excluded": docs})


def _answers(text: str) -> list[str]:
    try:
        parsed = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [one for one in parsed if isinstance(one, str)] if isinstance(parsed, (list, tuple)) else []


def _dpr(contents: Contents) -> str:
    rows = _looked_at(contents)
    good = [len(c) == 2 and c[1].startswith("[") and bool(_answers(c[1])) for c in rows]
    return "question, tab, a list of answers" if _mostly(rows, good) else ""


@reader("dpr-topics", "topics of DPR: question and answers", _dpr)
def read_dpr(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries by their text; a document that holds one of the answers is relevant."""
    for where, cells in _lines_only(contents):
        answers = _answers(cells[1]) if len(cells) == 2 else []
        if answers:
            yield FoundQuery(ItemKey(text=cells[0]), where, {"answers": answers})
            yield ByWords(ItemKey(text=cells[0]), tuple(answers), "answers", where, "any", tokens=True)
        else:
            yield Refused(where, "expected a question, a tab and a list of answers")


def _two(contents: Contents) -> str:
    if contents.shape != "lines":
        return ""
    rows = _looked_at(contents)
    tabbed = "\t" in contents.text.partition("\n")[0]
    if not tabbed or not _mostly(rows, [len(c) == 2 for c in rows]):
        return ""
    for kind, words in (("queries", _TOPICS), ("corpus", _DOCUMENTS)):
        if named := contents.says(*words):
            return f"two columns, and '{named}' in its name: {kind}"
    raise BadValue(
        f"{contents.path}: identifiers and texts may be queries or documents; say --as queries or --as corpus"
    )


_TOPICS = ("queries", "query", "topics", "topic", "questions")
_DOCUMENTS = ("corpus", "docs", "documents", "collection", "passages")


@reader("two-columns", "identifier and text between a tab", _two, general=True)
def read_two(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries or documents, as the file's name says."""
    yield from two_columns(contents, documents=not contents.says(*_TOPICS))


def two_columns(contents: Contents, documents: bool) -> Iterator[Item]:
    """Identifiers and texts between tabs."""
    for where, cells in _lines_only(contents):
        if len(cells) != 2 or not all(cells):
            yield Refused(where, "expected an identifier, a tab and a text")
        elif documents:
            yield Document(ItemKey(*cells), where)
        else:
            yield FoundQuery(ItemKey(*cells), where)


_TOP = re.compile(r"<top\b[^>]*>(.*?)(?:</top>|(?=<top\b)|\Z)", re.DOTALL | re.I)
_TOPIC = re.compile(r"<topic\b[^>]*\bnumber\s*=\s*[\"']([^\"']+)[\"'][^>]*>(.*?)</topic>", re.DOTALL | re.I)
_FIELD = re.compile(r"<(\w+)\b[^>]*>([^<]*)")
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative)\s*:", re.I)


def _topics(contents: Contents) -> str:
    begins = contents.text[:4000]
    return next((f"<{tag}>" for tag in ("top", "topic", "topics") if re.search(rf"<{tag}[\s>]", begins)), "")


@reader("trec-topics", "topics in TREC's tags or XML", _topics)
def read_topics(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries: the title (or query) is the text, description, question and narrative are kept beside it."""
    topics = [(name, dict(_fields(body))) for name, body in _TOPIC.findall(contents.text)]
    topics = topics or [("", dict(_fields(body))) for body in _TOP.findall(contents.text)]
    for n, (number_, fields) in enumerate(topics, 1):
        name, text = number_ or fields.get("num", ""), fields.get("title") or fields.get("query") or ""
        if not name or not text:
            yield Refused(f"topic {name or n}", "no number, or neither title nor query")
            continue
        more = {key: fields[key] for key in ("desc", "narr", "question", "narrative") if fields.get(key)}
        yield FoundQuery(ItemKey(name, text), f"topic {n}", more)


def _fields(body: str) -> Iterator[tuple[str, str]]:
    for name, value in _FIELD.findall(body):
        yield name.lower(), " ".join(html.unescape(_LABEL.sub("", value)).split())


_LETOR = re.compile(r"(-?\d+(?:\.\d+)?)\s+qid:(\S+)\s*([^#]*)(?:#\s*(.*))?")
_TITLE = re.compile(r"#\s*qid:([^:\s]+):\s*(.*)")


def _letor(contents: Contents) -> str:
    if contents.shape != "lines":
        return ""
    lines = [line for line in contents.text.split("\n")[:400] if line.strip() and not line.startswith("#")]
    return "grade qid:query" if lines and _LETOR.match(lines[0].strip()) else ""


@reader("letor", "LETOR or SVMrank", _letor)
def read_letor(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments of the documents that comments name; texts of queries stand in comments above; features are dropped.

    Raises BadValue where every grade is 0.
    """
    lines = [line for line in contents.text.split("\n") if line.strip() and not line.startswith("#")]
    if lines and all(re.match(r"\s*0(\.0*)?\s", line) for line in lines):
        reason = (
            "every grade is 0, as PyTerrier writes where it has no labels; give the run and its judgments"
        )
        raise BadValue(f"{contents.path}: {reason}")
    features = 0
    for line, text in enumerate(contents.text.split("\n"), 1):
        if titled := _TITLE.match(text):
            title = titled[2].strip()
            yield FoundQuery(ItemKey(titled[1], re.sub(r"\*[\d.]+$", "", title)), f"line {line}")
        elif text.strip() and not text.startswith("#"):
            row = _LETOR.match(text.strip())
            comment = (row[4] or "").split() if row else []
            if row is None or not comment:
                yield Refused(f"line {line}", "expected grade qid:query features # document")
                continue
            features += bool(row[3].strip())
            yield Judgment(
                ItemKey(row[2]), ItemKey(comment[0].removeprefix("docno=")), row[1], f"line {line}"
            )
    if features:
        yield FileRemark(f"the features of {features} lines were dropped")


# ----------
# Numbers by query and document (ranx, MTEB), and requests to re-rankers.


def _is_nested(value: object) -> bool:
    """Whether it is {query: {document: number}}."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(row, dict) and all(isinstance(v, (int, float)) for v in row.values())
            for row in value.values()
        )
        and any(value.values())
    )


def _is_run(contents: Contents) -> bool:
    """Whether nested numbers are scores; raises BadValue where whole numbers leave it open."""
    if contents.says("qrels", "qrel"):
        return False
    if any(
        isinstance(v, float) and not v.is_integer() for row in contents.value.values() for v in row.values()
    ):
        return True
    raise BadValue(
        f"{contents.path}: whole numbers by query and document, which may be grades or scores; "
        "say which with --as nested-qrels or --as nested-run"
    )


@reader(
    "nested",
    "{query: {document: number}} as ranx and pytrec_eval hold it",
    lambda contents: "{query: {document: number}}" if _is_nested(contents.value) else "",
    general=True,
)
def read_nested(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """Judgments where the file's name says so, else a run where a number is a fraction; else asked."""
    yield from (read_nested_run if _is_run(contents) else read_nested_qrels)(contents, asked)


@reader("nested-run", "a run as {query: {document: score}}")
def read_nested_run(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings by score."""
    yield from _rankings(_checked(contents), "")


@reader("nested-qrels", "judgments as {query: {document: grade}}")
def read_nested_qrels(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments."""
    for query, row in _checked(contents).items():
        for doc, grade in row.items():
            yield Judgment(ItemKey(query), ItemKey(doc), grade, f"query {query}")


def _checked(contents: Contents) -> Mapping[str, Mapping[str, float]]:
    if not _is_nested(contents.value):
        raise BadValue(
            f"{contents.path}: found no object of objects; expected {{query: {{document: number}}}}"
        )
    nested: Mapping[str, Mapping[str, float]] = contents.value
    return nested


def _rankings(nested: Mapping[str, Mapping[str, float]], run: str) -> Iterator[Item]:
    for query, row in nested.items():
        odd = [doc for doc, score in row.items() if number(score) is None]
        for doc in odd:
            yield Refused(f"query {query}", f"the score of document '{doc}' is no finite number")
        scores = {doc: float(score) for doc, score in row.items() if doc not in odd}
        docs = tuple(ItemKey(doc) for doc in scores)
        yield Ranking(ItemKey(query), docs, f"query {query}", tuple(scores.values()), run, ordered=False)


@reader(
    "mteb-predictions",
    "predictions of MTEB",
    lambda contents: (
        "mteb_model_meta" if isinstance(contents.value, dict) and "mteb_model_meta" in contents.value else ""
    ),
)
def read_predictions(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """A run for each subset and split, by score: the file is not sorted."""
    model = contents.value["mteb_model_meta"]
    name = plain(model.get("model_name")).replace("/", "__") if isinstance(model, dict) else ""
    parts = _parts({k: v for k, v in contents.value.items() if k != "mteb_model_meta"})
    if len(parts) > 1:
        yield FileRemark("a run for each subset and split: " + ", ".join(path for path, _ in parts))
    for path, nested in parts:
        alone = len(parts) == 1
        yield from _rankings(nested, (name or contents.stem) + ("" if alone else f".{path}"))


def _parts(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Mapping[str, Mapping[str, float]]]]:
    if _is_nested(value):
        return [(path, value)]
    inner = [(f"{path}.{name}".strip("."), one) for name, one in value.items() if isinstance(one, dict)]
    return [part for name, one in inner for part in _parts(one, name)]


def _requests(contents: Contents) -> str:
    first = contents.rows[0].fields if contents.rows else {}
    known = isinstance(first.get("query"), dict) and bool(members(first, "candidates"))
    return "query and candidates" if known else ""


@reader("rerank-requests", "requests to Anserini's re-rankers", _requests)
def read_requests(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Queries, documents, and the first stage's run."""
    for row in contents.rows:
        query = row.fields.get("query")
        key = (
            ItemKey(plain(query.get("qid")), plain(query.get("text")))
            if isinstance(query, dict)
            else ItemKey()
        )
        if not key.id and not key.text:
            yield Refused(row.where, "no query")
            continue
        yield FoundQuery(key, row.where)
        candidates = members(row.fields, "candidates")
        docs = [ItemKey(plain(one.get("docid")), _text(one.get("doc"))) for one in candidates]
        yield from (Document(doc, row.where) for doc in docs if doc.text)
        yield ranking(key, docs, row.where, [number(one.get("score")) for one in candidates])


def _text(document: object) -> str:
    if not isinstance(document, dict):
        return plain(document)
    return next(
        (plain(document[name]) for name in ("contents", "text", "segment") if plain(document.get(name))), ""
    )


# ----------
# Lists of documents by query, as identifiers, pairs or objects.


@dataclass(frozen=True)
class ListedDocument:
    """A member of a list: its identifier, and the number beside it, None where there is none."""

    id: str
    number: float | None = None


def listed_document(one: object) -> ListedDocument | None:
    """The document that a member of a list names: as identifier, [identifier, number] or an object; None for none."""
    if isinstance(one, dict):
        return _object(one)
    if isinstance(one, list):
        value = number(one[1]) if len(one) == 2 and isinstance(one[1], (int, float)) else None
        return ListedDocument(plain(one[0]), value) if value is not None and plain(one[0]) else None
    return ListedDocument(plain(one)) if plain(one) else None


def _object(one: Mapping[str, Any]) -> ListedDocument | None:
    roles = names().roles
    docs = {name for tier in roles["doc"] for name in tier} | {"id", "corpusid"}
    numbers = {name for role in ("score", "grade") for tier in roles[role] for name in tier}
    name_of = next((plain(value) for name, value in one.items() if fold(name) in docs and plain(value)), "")
    value = next((number(value) for name, value in one.items() if fold(name) in numbers), None)
    return ListedDocument(name_of, value) if name_of else None


def _is_lists(value: object) -> bool:
    """Whether it is {query: [document, ...]}, and no list under a name that says what it holds."""
    if not isinstance(value, dict) or not any(value.values()):
        return False
    known = names().containers | {name for tiers in names().roles.values() for tier in tiers for name in tier}
    return all(
        isinstance(row, list) and fold(query) not in known and all(map(listed_document, row))
        for query, row in value.items()
    )


@reader(
    "lists",
    "lists of documents by query",
    lambda contents: (
        "{query: [document, ...]}" if contents.shape == "json" and _is_lists(contents.value) else ""
    ),
    general=True,
)
def read_lists(contents: Contents, asked: ReadRequest) -> Iterator[Item]:
    """A run where a number is a fraction or the file's name says so, or a pickle; judgments where its name says that.

    Raises BadValue where neither is so.
    """
    numbers = [one.number for row in contents.value.values() for one in map(listed_document, row) if one]
    named = contents.says("run", "runs", "rank", "ranks") or is_pickle(contents.path)
    if named or any(n is not None and not n.is_integer() for n in numbers):
        yield from read_list_run(contents, asked)
    elif contents.says("qrels", "qrel", "judgments"):
        yield from read_list_qrels(contents, asked)
    else:
        raise BadValue(
            f"{contents.path}: lists of documents by query, which may be relevant or returned; "
            "say which with --as list-qrels or --as list-run"
        )


@reader("list-run", "rankings as lists by query")
def read_list_run(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Rankings in the order of the lists."""
    for query, row in _checked_rankings(contents).items():
        documents = [one for one in map(listed_document, row) if one]
        keys = [ItemKey(one.id) for one in documents]
        yield ranking(ItemKey(query), keys, f"query {query}", [one.number for one in documents])


@reader("list-qrels", "relevant documents as lists by query")
def read_list_qrels(contents: Contents, _: ReadRequest) -> Iterator[Item]:
    """Judgments: the number beside a document is its grade, and 1 where there is none."""
    for query, row in _checked_rankings(contents).items():
        for one in filter(None, map(listed_document, row)):
            grade = 1 if one.number is None else one.number
            yield Judgment(ItemKey(query), ItemKey(one.id), grade, f"query {query}")
        if not row:
            yield Refused(f"query {query}", "no relevant document")


def _checked_rankings(contents: Contents) -> Mapping[str, list[Any]]:
    if not _is_lists(contents.value):
        raise BadValue(f"{contents.path}: found no lists by query; expected {{query: [document, ...]}}")
    lists: Mapping[str, list[Any]] = contents.value
    return lists
