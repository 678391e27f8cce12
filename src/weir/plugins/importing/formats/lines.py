"""Readers of lines with unnamed columns, of {query: {document: number}}, and of lists by query."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any

from weir.errors import BadValue
from weir.files.column_names import field_names, fold, names_rows
from weir.files.formats import BLANKS, TREC_COLUMNS, columns_of, say_remarks, second_column, trec_fault
from weir.files.one_system import mixed_row
from weir.files.pickles import is_pickle
from weir.plugins.importing.cells import is_identifier, listed, number, plain_text, take_whole
from weir.plugins.importing.contents import BEYOND, Contents
from weir.plugins.importing.items import (
    ByWords,
    Choices,
    Document,
    FileRemark,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    LeftOut,
    Member,
    Ranking,
    Refused,
    id_of,
    member_of,
    names_document,
    number_of,
    objects,
    query_items,
    ranking_item,
    table_at,
    text_of,
)
from weir.plugins.importing.readers import has_keys, reader, when

# ----------
# Lines of columns without names: judgments, runs and topics of TREC, and similar files.


Cells = tuple[str, list[str]]  # where a line stands, and its columns

_SAMPLE_LINES = 2000  # lines by which a format is recognised
_ITERATIONS = {"0", "1", "2", "Q0", "q0", "q", "iter"}
_TOPICS = ("queries", "query", "topics", "topic", "questions")
_DOCUMENTS = ("corpus", "docs", "documents", "collection", "passages")


def _cells(contents: Contents, most: int = 0, blanks: bool = False) -> list[Cells]:
    if contents.shape != "lines":
        raise BadValue(f"{contents.path}: its fields have names; expected lines of columns without names")
    if contents.rows and not blanks and "\t" not in contents.text.partition("\n")[0]:
        table = contents.rows[: most or None]
        return [(row.where, [v for n, v in row.fields.items() if n != BEYOND]) for row in table]
    lines = [(n, text) for n, text in enumerate(contents.text.split("\n"), 1) if text.strip()]
    own = [(n, text) for n, text in lines if not text.startswith("#")][: most or None]
    tabs = not blanks and bool(own) and "\t" in own[0][1]

    def cells(text: str) -> list[str]:
        return [cell.strip(BLANKS) for cell in text.strip("\r\n").split("\t")] if tabs else columns_of(text)

    rows = [(f"line {n}", cells(text)) for n, text in own]
    if not most:
        remarks, widths = (cells(text) for _, text in lines if text[0] == "#"), {len(row) for _, row in rows}
        told = [row for row in remarks if len(row) in widths or not widths]
        say_remarks(contents.path, sum(number(row[-1]) is not None or not trec_fault(row) for row in told))
    return rows


def _sample(contents: Contents) -> list[list[str]]:
    return [cells for _, cells in _cells(contents, _SAMPLE_LINES)] if contents.shape == "lines" else []


def _mostly(rows_fit: Iterable[bool]) -> bool:
    fits = list(rows_fit)
    return bool(fits) and fits[0] and sum(fits) >= 0.8 * len(fits)


def _counts(rows: list[list[str]], column: int) -> bool:
    longest = 0
    for _, group in groupby(rows, key=lambda cells: cells[0]):
        ranks = [number(cells[column]) for cells in group]
        values = [rank for rank in ranks if rank is not None and rank.is_integer()]
        if len(values) < len(ranks) or any(b <= a for a, b in pairwise(values)):
            return False
        longest = max(longest, len(values))
    return longest > 2


def _rankings(
    rows: list[Cells], widths: Collection[int], expected: str, doc: int, rank: int = 0, score: int = 0
) -> Iterator[Item]:
    rankings: dict[str, list[tuple[float, str, float]]] = {}
    more = Counter[int]()
    for where, cells in rows:
        fits = len(cells) in widths
        place = (number(cells[rank]) if rank else 0.0) if fits else None
        value = (number(cells[score]) if score else 0.0) if fits else None
        if place is None or value is None:
            yield Refused(where, f"found {len(cells)} columns; expected {expected}, with finite numbers")
        else:
            rankings.setdefault(cells[0], []).append((place, cells[doc], value))
            more.update(range(max(doc, rank, score) + 2, len(cells) + 1))
    yield from (LeftOut(f"column {n}", count) for n, count in more.items())
    for query, row in rankings.items():
        row.sort(key=lambda one: one[0])
        scores = tuple(value for _, _, value in row) if score else ()
        ranks = tuple(place for place, _, _ in row) if rank else ()
        docs = tuple(ItemKey(name) for _, name, _ in row)
        yield Ranking(ItemKey(query), docs, f"query {query}", scores, ordered=bool(rank), ranks=ranks)


def _run_rows(contents: Contents) -> str:
    if contents.shape != "lines":
        return ""
    rows = [cells for _, cells in _cells(contents, _SAMPLE_LINES, blanks=True)]
    fits = [not trec_fault(cells) and cells[1] in _ITERATIONS for cells in rows]
    return TREC_COLUMNS if fits and 2 * sum(fits) >= len(fits) else ""


@reader("trec-run", "a run in TREC's format", _run_rows)
def read_trec_run(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings, to be ordered by score as by trec_eval, from a run in TREC's format."""
    if "ir_metadata.start" in contents.text[:1000]:
        header = [line for line in contents.text.split("\n") if line.startswith("#")]
        yield FileRemark(f"a header of ir_metadata, {len(header)} lines, describes the run")
    yield from run_lines(contents)


def run_lines(contents: Contents) -> Iterator[Item]:
    """Yield rankings from lines in TREC's format, to be ordered by score; a Refused for a malformed line.

    Tags that show several systems become a run each.
    """
    rankings: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    remarks, lines = 0, _cells(contents, blanks=True)
    several = mixed_row((where, c[0], c[5], c[3]) for where, c in lines if len(c) > 5) is not None
    for where, cells in lines:
        if fault := trec_fault(cells):
            yield Refused(where, f"found {fault}; expected {TREC_COLUMNS}")
        else:
            place = number(cells[3])
            row = (cells[2], math.nan if place is None else place, float(cells[4]))
            run = cells[5] if several and len(cells) > 5 else ""
            rankings.setdefault((run, cells[0]), []).append(row)
            remarks += len(cells) > 6
    if remarks:
        yield LeftOut("remarks after the tag", remarks)
    tags = dict.fromkeys(cells[5] for _, cells in lines if len(cells) > 5)
    if not several and tags.keys() - {contents.stem}:
        shown = ", ".join([*tags][:4]) + ", ..." * (len(tags) > 4)
        yield FileRemark(f"the run is called {contents.stem}, as its file, not by its tag ({shown})")
    for (run, query), rows in rankings.items():
        docs, ranks, scores = zip(*rows, strict=True)
        keys = tuple(map(ItemKey, docs))
        yield Ranking(ItemKey(query), keys, f"query {query}", scores, run, ordered=False, ranks=ranks)


def _trec_qrels(contents: Contents) -> str:
    rows = _sample(contents)
    fits = [len(c) == 4 and c[1] in _ITERATIONS and number(c[3]) is not None for c in rows]
    return f"query {rows[0][1]} document grade" if _mostly(fits) and not _colbert(contents) else ""


@reader("trec-qrels", "judgments in TREC's format", _trec_qrels)
def read_trec_qrels(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield a judgment for each line: query, iteration, document, grade."""
    yield from qrels_lines(contents)


def qrels_lines(contents: Contents) -> Iterator[Item]:
    """Yield the judgment of each line "query [iteration] document grade"; "query document" has grade 1, with a
    remark.

    Other lines give a Refused, iterations that hold data a LeftOut.
    """
    pairs, second = False, Counter[str]()
    for n, (where, cells) in enumerate(_cells(contents)):
        if n == 0 and len(cells) == 2 and names_rows(cells):
            continue  # a header
        second.update(cells[1:2] if len(cells) == 4 else ())
        if len(cells) == 2:
            pairs = True
            yield Judgment(ItemKey(cells[0]), ItemKey(cells[1]), 1, where)
        elif len(cells) not in (3, 4):
            yield Refused(where, f"found {len(cells)} columns; expected query 0 document grade")
        else:
            yield Judgment(ItemKey(cells[0]), ItemKey(cells[-2]), cells[-1], where)
    if pairs:
        yield FileRemark("no column of grades: every document counts as relevant, grade 1")
    if lost := second_column(second):
        yield LeftOut(lost, second.total())


def _is_tabbed(contents: Contents) -> bool:
    return contents.shape == "lines" and "\t" in contents.text.partition("\n")[0]


def _colbert(contents: Contents) -> str:
    rows = _sample(contents)
    if not _is_tabbed(contents) or not rows or {len(c) for c in rows} - {4, 5} or not _counts(rows, 2):
        return ""
    falls = all((number(b[3]) or 0) <= (number(a[3]) or 0) for a, b in pairwise(rows) if a[0] == b[0])
    return "query, document, rank that counts, score that falls" if falls else ""


@reader("colbert", "a ranking of ColBERT", _colbert)
def read_colbert(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings by rank from ColBERT's lines: query, document, rank, perhaps score and label."""
    yield from _rankings(_cells(contents), (4, 5), "query, document, rank and score", doc=1, rank=2, score=3)


def _three(contents: Contents) -> str:
    rows = _sample(contents)
    if not _mostly([len(c) == 3 and number(c[2]) is not None for c in rows]):
        return ""
    rises = _counts([c for c in rows if len(c) == 3], 2)
    raise BadValue(
        f"{contents.path}: the third column{', which rises within each query as ranks do,' if rises else ''} may be a "
        "rank, a grade or a score; add `as_kind='run-ranks'`, `as_kind='qrels'` or `as_kind='run-scores'`"
    )


@reader("three-columns", "query, document and a number", _three, general=True)
def read_three(contents: Contents, _: Choices) -> Iterator[Item]:
    """Raise BadValue, when first iterated, to ask whether the third column is a rank, grade or score."""
    yield from ()
    _three(contents)


def rank_lines(contents: Contents) -> Iterator[Item]:
    """Yield rankings by rank, from lines of query, document and rank, or in TREC's format; ranks may have gaps."""
    rows = _cells(contents)
    if _mostly(len(cells) > 3 and cells[1].upper() == "Q0" for cells in _sample(contents)):
        yield from _rankings(rows, range(4, 1 << 20), "query Q0 document rank", doc=2, rank=3)
    else:
        yield from _rankings(rows, range(3, 1 << 20), "query, document and rank", doc=1, rank=2)


@reader("run-scores", "query, document, score")
def read_scores(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings, to be ordered by score, from lines of query, document and score."""
    yield from _rankings(_cells(contents), (3,), "query, document and score", doc=1, score=2)


def _excluded(contents: Contents) -> str:
    word = contents.says("exclude", "excluded")
    fits = bool(word) and _mostly([len(c) == 2 for c in _sample(contents)])
    return f"two columns, and '{word}' in its name" if fits else ""


@reader("exclude", "documents to leave out, query and document", _excluded)
def read_excluded(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries with the documents that must not be ranked for each, as metadata."""
    excluded: dict[str, list[str]] = {}
    for where, cells in _cells(contents):
        if len(cells) != 2:
            yield Refused(where, f"found {len(cells)} columns; expected query and document")
        else:
            excluded.setdefault(cells[0], []).append(cells[1])
    for query, docs in excluded.items():
        yield FoundQuery(ItemKey(query), f"query {query}", {"excluded": docs})


def _answers(cells: list[str]) -> list[str]:
    try:
        answers = listed(cells[1]) if len(cells) == 2 else None
    except ValueError:
        return []
    return [one for one in answers or [] if isinstance(one, str)]


@reader(
    "dpr-topics",
    "topics of DPR: question and answers",
    when(
        "question, tab, a list of answers",
        lambda contents: _mostly(bool(_answers(c)) and c[1].startswith("[") for c in _sample(contents)),
    ),
)
def read_dpr(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, identified by their texts, with answers; a document that holds an answer is relevant."""
    for where, cells in _cells(contents):
        if answers := _answers(cells):
            query = ItemKey(text=cells[0])
            yield FoundQuery(query, where, {"answers": answers})
            yield ByWords(query, tuple(answers), "answers", where, "any", tokens=True)
        else:
            yield Refused(where, "expected a question, a tab and a list of answers")


def _two(contents: Contents) -> str:
    if not _is_tabbed(contents) or not _mostly([len(c) == 2 for c in _sample(contents)]):
        return ""
    for kind, words in (("queries", _TOPICS), ("corpus", _DOCUMENTS)):
        if word := contents.says(*words):
            return f"two columns, and '{word}' in its name: {kind}"
    pairs = all(is_identifier(cell) for cells in _sample(contents) for cell in cells)
    judged = ", or `as_kind='qrels'` for relevant documents of queries" if pairs else ""
    raise BadValue(
        f"{contents.path}: identifiers and texts may be queries or documents; add `as_kind='queries'` or "
        f"`as_kind='corpus'`{judged}"
    )


@reader("two-columns", "identifier and text between a tab", _two, general=True)
def read_two(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield documents, or queries if the file's name says so, from lines of identifier, tab and text."""
    yield from two_columns(contents, documents=not contents.says(*_TOPICS))


def two_columns(contents: Contents, documents: bool) -> Iterator[Item]:
    """Yield a document, or else a query, from each line of identifier, tab and text; a Refused for another line."""
    for where, cells in _cells(contents):
        if len(cells) != 2 or not all(cells):
            yield Refused(where, "expected an identifier, a tab and a text")
        else:
            yield (Document if documents else FoundQuery)(ItemKey(*cells), where)


_TOP = re.compile(r"<top\b[^>]*>(.*?)(?:</top>|(?=<top\b)|\Z)", re.DOTALL | re.I)
_TOPIC = re.compile(r"<topic\b[^>]*\bnumber\s*=\s*[\"']([^\"']+)[\"'][^>]*>(.*?)</topic>", re.DOTALL | re.I)
_FIELD = re.compile(  # to its own end, to the next field, or to a tag that begins a line
    r"<(\w+)\b[^>]*>(.*?)(?=</\1\s*>|<(?:num|title|query|desc|narr|question|narrative)\b|\n\s*</?[a-z]|\Z)",
    re.DOTALL | re.I,
)
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative)\s*:", re.I)


def _topics(contents: Contents) -> str:
    begins = contents.text[:4000]
    return next((f"<{tag}>" for tag in ("top", "topic", "topics") if re.search(rf"<{tag}[\s>]", begins)), "")


@reader("trec-topics", "topics in TREC's tags or XML", _topics)
def read_topics(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries from TREC topics: the title (or query) as text; desc, narr, question, narrative as metadata."""
    topics = _TOPIC.findall(contents.text) or [("", body) for body in _TOP.findall(contents.text)]
    for n, (own, body) in enumerate(topics, 1):
        fields = {
            name.lower(): " ".join(html.unescape(_LABEL.sub("", value)).split())
            for name, value in _FIELD.findall(body)
        }
        name, text = own or fields.get("num", ""), fields.get("title") or fields.get("query") or ""
        if not name or not text:
            yield Refused(f"topic {name or n}", "no number, or neither title nor query")
            continue
        more = {key: fields[key] for key in ("desc", "narr", "question", "narrative") if fields.get(key)}
        yield FoundQuery(ItemKey(name, text), f"topic {n}", more)


_DOC_OF_COMMENT = re.compile(r"(?:(?:docid|docno)\s*[=:]\s*)?(\S+)\s*(.*)", re.I)
_LETOR = re.compile(r"(-?\d+(?:\.\d+)?)\s+qid:(\S+)\s*([^#]*)(?:#\s*(.*))?")
_TITLE = re.compile(r"#\s*qid:([^:\s]+):\s*(.*)")


def _letor(contents: Contents) -> str:
    lines = contents.text.split("\n")[:400] if contents.shape == "lines" else []
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return "grade qid:query" if _LETOR.match(first.strip()) else ""


@reader("letor", "LETOR or SVMrank", _letor)
def read_letor(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries from LETOR's comments with titles, judgments of rows whose comment names a document, and other
    rows as Refused; last, counts of the features.

    The iterator raises BadValue at once if every grade is 0.
    """
    lines = [line for line in contents.text.split("\n") if line.strip() and not line.startswith("#")]
    if lines and all(re.match(r"\s*0(\.0*)?\s", line) for line in lines):
        raise BadValue(
            f"{contents.path}: every grade is 0, as PyTerrier writes where it has no labels; import the run and its "
            "judgments instead"
        )
    features = remarks = 0
    for n, text in enumerate(contents.text.split("\n"), 1):
        if titled := _TITLE.match(text):
            title = re.sub(r"\*[\d.]+$", "", titled[2].strip())
            yield FoundQuery(ItemKey(titled[1], title), f"line {n}")
        elif text.strip() and not text.startswith("#"):
            row = _LETOR.match(text.strip())
            comment = _DOC_OF_COMMENT.fullmatch((row[4] or "").strip()) if row else None
            if row is None or comment is None:
                yield Refused(f"line {n}", "expected grade qid:query features # document")
                continue
            features += bool(row[3].strip())
            remarks += bool(comment[2])
            yield Judgment(ItemKey(row[2]), ItemKey(comment[1]), row[1], f"line {n}")
    lost = {"features": features, "what follows the document in comments": remarks}
    yield from (LeftOut(name, count) for name, count in lost.items() if count)


# ----------
# Numbers by query and document (ranx, MTEB), and requests to re-rankers.


Nested = Mapping[str, Mapping[str, float]]


def is_nested(value: object) -> bool:
    """Return True for a non-empty {query: {document: number}}."""
    return (
        isinstance(value, dict)
        and any(value.values())
        and all(
            isinstance(row, dict) and all(isinstance(v, (int, float)) for v in row.values())
            for row in value.values()
        )
    )


def _nested(contents: Contents) -> Nested:
    if not is_nested(contents.value):
        raise BadValue(f"{contents.path}: no object of objects; expected {{query: {{document: number}}}}")
    take_whole(contents.value)
    nested: Nested = contents.value
    return nested


@reader(
    "nested",
    "{query: {document: number}} as ranx and pytrec_eval hold it",
    when("{query: {document: number}}", lambda contents: is_nested(contents.value)),
    general=True,
)
def read_nested(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield judgments from {query: {document: number}} if the file's name says so, rankings if a number is a
    fraction.

    The iterator raises BadValue if neither holds.
    """
    numbers = [value for row in _nested(contents).values() for value in row.values()]
    if contents.says("qrels", "qrel"):
        yield from read_nested_qrels(contents, choices)
    elif any(isinstance(value, float) and not value.is_integer() for value in numbers):
        yield from read_nested_run(contents, choices)
    else:
        raise BadValue(
            f"{contents.path}: whole numbers by query and document may be grades or scores; add "
            "`as_kind='nested-qrels'` "
            "or `as_kind='nested-run'`"
        )


@reader("nested-run", "a run as {query: {document: score}}")
def read_nested_run(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings, to be ordered by score, from {query: {document: score}}."""
    yield from nested_rankings(_nested(contents), "")


@reader("nested-qrels", "judgments as {query: {document: grade}}")
def read_nested_qrels(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield judgments from {query: {document: grade}}."""
    for query, row in _nested(contents).items():
        for doc, grade in row.items():
            yield Judgment(ItemKey(query), ItemKey(doc), grade, f"query {query}")


def nested_rankings(nested: Nested, run: str) -> Iterator[Item]:
    """Yield each query's ranking, to be ordered by score, from {query: {document: score}}.

    run: name of the run.

    A document without a finite score is left out, with a Refused.
    """
    take_whole(nested)
    for query, row in nested.items():
        scores: dict[ItemKey, float] = {}
        for doc, value in row.items():
            score = number(value)
            if score is None:
                yield Refused(f"query {query}", f"the score of document '{doc}' is no finite number")
            else:
                scores[ItemKey(doc)] = score
        docs, values = tuple(scores), tuple(scores.values())
        yield Ranking(ItemKey(query), docs, f"query {query}", values, run, ordered=False)


@reader("mteb-predictions", "predictions of MTEB", has_keys("mteb_model_meta"))
def read_predictions(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield rankings from predictions of MTEB, a run for each subset and split."""
    model = table_at(contents.value, "mteb_model_meta")
    name = text_of(model, "model_name").replace("/", "__") or contents.stem
    if revision := text_of(model, "revision"):
        yield FileRemark(f"revision {revision} of the model")
    whole = table_at(contents.value)
    names = [key for key, one in whole.items() if isinstance(one, dict) and key != "mteb_model_meta"]
    subsets = {key: whole[key] for key in names}
    parts = _parts(subsets)
    if len(parts) > 1:
        yield FileRemark("a run for each subset and split: " + ", ".join(path for path, _ in parts))
    for path, nested in parts:
        yield from nested_rankings(nested, name if len(parts) == 1 else f"{name}.{path}")


def _parts(value: Mapping[str, Any], path: str = "") -> list[tuple[str, Nested]]:
    if is_nested(value):
        return [(path, value)]
    inner = [name for name, one in value.items() if isinstance(one, dict)]
    return [part for name in inner for part in _parts(value[name], f"{path}.{name}".strip("."))]


@reader(
    "rerank-requests",
    "requests to Anserini's re-rankers",
    when(
        "query and candidates",
        lambda contents: any(
            table_at(row.fields, "query") and objects(row.fields, "candidates") for row in contents.rows[:1]
        ),
    ),
)
def read_requests(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield queries, documents, and first-stage rankings from requests to Anserini's re-rankers."""
    for row in contents.rows:
        query, docs = table_at(row.fields, "query"), []
        candidates = objects(row.fields, "candidates")
        for one in candidates:
            inner = one.get("doc")
            text = (
                text_of(inner, "contents", "text", "segment")
                if isinstance(inner, dict)
                else plain_text(inner)
            )
            docs.append(ItemKey(id_of(one, "docid"), text))
        key = ItemKey(id_of(query, "qid"), text_of(query, "text"))
        scores = [number_of(one, "score") for one in candidates]
        yield from query_items(key, row.where, "no query", docs=docs, scores=scores)


# ----------
# Lists of documents by query, as identifiers, pairs or objects.


def _is_lists(value: object) -> bool:
    if not isinstance(value, dict) or not any(value.values()):
        return False
    known = field_names().every() | field_names().containers
    return all(
        isinstance(row, list) and fold(query) not in known and all(map(names_document, row))
        for query, row in value.items()
    )


def _lists(contents: Contents) -> dict[str, list[Member]]:
    if not _is_lists(contents.value):
        raise BadValue(f"{contents.path}: no lists by query; expected {{query: [document, ...]}}")
    members = {
        query: [member_of(one, contents.roles) for one in row] for query, row in contents.value.items()
    }
    for row in contents.rows:
        row.fields.take(*contents.value)
    return {query: [one for one in row if one is not None] for query, row in members.items()}


@reader(
    "lists",
    "lists of documents by query",
    when("{query: [document, ...]}", lambda contents: contents.shape == "json" and _is_lists(contents.value)),
    general=True,
)
def read_lists(contents: Contents, choices: Choices) -> Iterator[Item]:
    """Yield rankings or judgments from {query: [document, ...]}, as the file's name says; a fraction or a pickle
    means rankings.

    The iterator raises BadValue if nothing says which.
    """
    lists = _lists(contents)
    numbers = [one.number for row in lists.values() for one in row]
    is_run = bool(contents.says("run", "runs", "rank", "ranks")) or is_pickle(contents.path)
    if is_run or any(n is not None and not n.is_integer() for n in numbers):
        if len(lists) == 1:  # which may be an answer under a word, such as "value", that names no query
            yield FileRemark(f"its only query is called '{next(iter(lists))[:40]}', as the list is")
        yield from read_list_run(contents, choices)
    elif contents.says("qrels", "qrel", "judgments"):
        yield from read_list_qrels(contents, choices)
    else:
        raise BadValue(
            f"{contents.path}: lists of documents by query may be relevant or returned; add `as_kind='list-qrels'` "
            "or `as_kind='list-run'`"
        )


@reader("list-run", "rankings as lists by query")
def read_list_run(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield documents with texts, and each query's ranking in the list's order, from {query: [document, ...]}.

    Scores are kept where given.
    """
    for query, row in _lists(contents).items():
        for one in row:
            yield from one.document(f"query {query}")
        yield ranking_item(
            ItemKey(query), [one.key for one in row], f"query {query}", [one.number for one in row]
        )


@reader("list-qrels", "relevant documents as lists by query")
def read_list_qrels(contents: Contents, _: Choices) -> Iterator[Item]:
    """Yield documents with texts, and judgments, from {query: [document, ...]}; a document's number is its grade,
    else 1.

    A query without documents, and a distance, gives a Refused.
    """
    for query, row in _lists(contents).items():
        for one in row:
            yield from one.document(f"query {query}")
            fraction = one.grade is None and one.score is not None and not one.has_distance
            try:
                grade = one.score if fraction else one.relevance()
                yield Judgment(ItemKey(query), one.key, grade, f"query {query}")
            except ValueError as error:
                yield Refused(f"query {query}", str(error))
        if not row:
            yield Refused(f"query {query}", "no relevant document")
