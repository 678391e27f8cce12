"""From what readers found in several files to one collection: identifiers, texts, judgments and runs that agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from weir.errors import BadValue
from weir.plugins.importing.answer_words import MatchCounts, Matcher, as_judgments
from weir.plugins.importing.click_models import ClickShare
from weir.plugins.importing.document_shelf import DocumentShelf
from weir.plugins.importing.found import (
    ByWords,
    Document,
    FoundQuery,
    Item,
    ItemKey,
    Judgment,
    Ranking,
    Refused,
    number,
)
from weir.plugins.importing.identifiers import MadeNames
from weir.plugins.importing.names import fold
from weir.plugins.importing.policies import Choices, agreed, chosen_grade

__all__ = ["FileCounts", "FileFound", "Imported", "keep_document", "merged"]

_JOINED = {"candidates", "excluded"}
_KEPT = 100  # refused rows of a file that are told one by one


@dataclass
class FileCounts:
    """What became of a file's items. refused: the first rows, with the reasons; left_out: how many in all."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    left_out: int = 0

    def refuse(self, where: str, reason: str) -> None:
        """Leave out a row."""
        self.left_out += 1
        if len(self.refused) < _KEPT:
            self.refused.append(Refused(where, reason))


@dataclass(frozen=True)
class FileFound:
    """What a reader found in a file.

    name: as the user gave it; stem: what its runs are called; items: but for documents with an identifier, which are
    shelved while they are read; counts: what became of those; split: where its judgments go that name no other.
    """

    name: str
    stem: str
    items: tuple[Item, ...]
    counts: FileCounts
    split: str = "test"


@dataclass
class Imported:
    """A collection as it will be written.

    documents: id -> (title, text); queries: id -> text; metadata: id -> fields; qrels: split -> query -> document ->
    grade; origins: split -> (query, document) -> where the judgment comes from, if files say it; clicks: likewise, what
    a model of clicks made the grade of; runs: name -> query ->
    document -> score; notes: sentences about the whole; files: in the order given.
    """

    documents: DocumentShelf
    queries: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    qrels: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    origins: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    clicks: dict[str, dict[tuple[str, str], ClickShare]] = field(default_factory=dict)
    runs: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    files: list[FileCounts] = field(default_factory=list)
    unanswerable: set[str] = field(default_factory=set)


def keep_document(item: Document, name: str, told: FileCounts, shelf: DocumentShelf) -> None:
    """Put a document of a file on the shelf under its name; one that is there with another text is refused."""
    known = shelf.add(name, item)
    if known == "other":
        told.refuse(item.where, f"document '{name[:60]}' has another text elsewhere; the first is kept")
    else:
        told.counts["documents" if known == "new" else "repeated documents"] += 1


def merged(found: Sequence[FileFound], shelf: DocumentShelf, choices: Choices) -> Imported:
    """Join what was found; shelf: the documents of the files that have identifiers, and what the user gave beside them.

    Raises BadValue where one identifier has two texts of a query, for grades beyond ±16384, and where queries,
    judgments and runs have nothing in common.
    """
    whole_of = Imported(shelf, files=[file.counts for file in found])
    queries = MadeNames("query", _query_keys(found))
    docs = MadeNames("document", _document_keys(found), shelf)
    for file in found:
        _take_named_by_text(file, docs, shelf)
        _take_queries(file, file.counts, queries, whole_of)
    _take_judgments(found, whole_of, (queries, docs), choices)
    for file, told in zip(found, whole_of.files, strict=True):
        _take_rankings(file, told, (queries, docs), whole_of)
    if not choices.allow_disjoint:
        _refuse_disjoint(whole_of)
    whole_of.notes += queries.notes() + docs.notes() + _absent(whole_of)
    return whole_of


def _query_keys(found: Sequence[FileFound]) -> Iterator[tuple[ItemKey, str]]:
    for file in found:
        for item in file.items:
            if isinstance(item, FoundQuery):
                yield item.key, f"{file.name}, {item.where}"
            elif isinstance(item, (Judgment, ByWords, Ranking)):
                yield item.query, f"{file.name}, {item.where}"


def _document_keys(found: Sequence[FileFound]) -> Iterator[tuple[ItemKey, str]]:
    for file in found:
        for item in file.items:
            if isinstance(item, Judgment) and item.doc.id:
                yield item.doc, ""


def _take_named_by_text(file: FileFound, docs: MadeNames, shelf: DocumentShelf) -> None:
    """Documents without an identifier."""
    for item in file.items:
        if isinstance(item, Document):
            try:
                keep_document(item, docs.of(item.key), file.counts, shelf)
            except ValueError as error:
                file.counts.refuse(item.where, str(error))


def _take_queries(file: FileFound, told: FileCounts, queries: MadeNames, whole_of: Imported) -> None:
    seen: set[str] = set()
    for item in file.items:
        if not isinstance(item, FoundQuery):
            continue
        try:
            name = queries.of(item.key)
        except ValueError as error:
            told.refuse(item.where, str(error))
            continue
        seen.add(name)
        if item.key.text:
            whole_of.queries.setdefault(name, item.key.text)
        known = whole_of.metadata.setdefault(name, {})
        for field_name, value in item.metadata.items():
            if field_name in _JOINED and field_name in known:  # several files may list them
                known[field_name] = list(dict.fromkeys([*known[field_name], *value]))
            else:
                known.setdefault(field_name, value)
        if item.unanswerable:
            whole_of.unanswerable.add(name)
    told.counts["queries"] = len(seen)


@dataclass
class _Pair:
    """The judgments of one pair."""

    grades: list[float]
    where: str
    told: FileCounts
    origins: dict[str, None] = field(default_factory=dict)
    clicks: ClickShare | None = None


def _take_judgments(
    found: Sequence[FileFound], whole_of: Imported, named: tuple[MadeNames, MadeNames], choices: Choices
) -> None:
    pairs: dict[tuple[str, str, str], _Pair] = {}
    match, matched = Matcher(whole_of.documents, choices.words), MatchCounts()
    match.refuse_endless(item for file in found for item in file.items)
    for file, told in zip(found, whole_of.files, strict=True):
        words = Counter(item.field for item in file.items if isinstance(item, ByWords))
        for item in as_judgments(file.items, match, told.refuse, matched):
            _add_pair(
                item if item.split != "test" else replace(item, split=file.split),
                file.name,
                told,
                named,
                pairs,
            )
        if words and whole_of.documents:
            told.counts["judgments by words"] = sum(words.values())
    if matched.asked and whole_of.documents:
        whole_of.notes.append(matched.sentence())
    changed = 0
    for (split, query, doc), pair in pairs.items():
        grade = agreed(pair.grades, choices)
        if grade is None:
            shown = ", ".join(f"{one:g}" for one in pair.grades[:5])
            pair.told.refuse(
                pair.where.partition(": ")[2],
                f"grades {shown} for query '{query[:40]}', document '{doc[:40]}'; --judges max, min, mean or majority",
            )
            continue
        made = chosen_grade(grade, choices, pair.where.replace(": ", ", ", 1))
        changed += made != grade
        whole_of.qrels.setdefault(split, {}).setdefault(query, {})[doc] = made
        if any(pair.origins):
            whole_of.origins.setdefault(split, {})[query, doc] = ", ".join(filter(None, pair.origins))
        if pair.clicks is not None:
            whole_of.clicks.setdefault(split, {})[query, doc] = pair.clicks
        pair.told.counts["judgments"] += 1
    _say_choices(whole_of, choices, changed, pairs)


def _say_choices(
    whole_of: Imported, choices: Choices, changed: int, pairs: Mapping[tuple[str, str, str], _Pair]
) -> None:
    several = sum(len(set(pair.grades)) > 1 for pair in pairs.values())
    grades = [g for split in whole_of.qrels.values() for row in split.values() for g in row.values()]
    if fractions := sum(isinstance(grade, float) for grade in grades):
        whole_of.notes.append(
            f"grades: {fractions} of {len(grades)} have fractions and are kept; --grades round, scale=N or threshold=X "
            "would make them whole"
        )
    if choices.grades:
        whole_of.notes.append(f"grades: {choices.grades}, which changed {changed} of {len(pairs)}")
    if choices.words and any(told.counts["judgments by words"] for told in whole_of.files):
        whole_of.notes.append(f"words: a document counts where it holds {choices.words} of several")
    if choices.judges and several:
        whole_of.notes.append(f"judges: the {choices.judges} of the grades of {several} pairs with several")
    split_rows = (split.items() for split in whole_of.qrels.values())
    answered = {query for rows in split_rows for query, row in rows if max(row.values()) > 0}
    whole_of.unanswerable -= answered  # a flag beside relevant documents is about something else


def _add_pair(
    item: Judgment,
    name: str,
    told: FileCounts,
    named: tuple[MadeNames, MadeNames],
    pairs: dict[tuple[str, str, str], _Pair],
) -> None:
    grade = number(item.grade)
    try:
        if grade is None:
            raise ValueError(f"the grade {str(item.grade)[:40]!r} is no finite number")
        if not re.fullmatch(r"[\w.-]{1,64}", item.split) or item.split.startswith("."):
            raise ValueError(f"the split '{item.split[:40]}'; expected a name of letters, digits, - and _")
        place = (item.split, named[0].of(item.query), named[1].of(item.doc))
    except ValueError as error:
        told.refuse(item.where, str(error))
        return
    pair = pairs.setdefault(place, _Pair([], f"{name}: {item.where}", told))
    if grade in pair.grades:
        told.counts["repeated judgments"] += 1
    pair.grades.append(grade)
    pair.origins[item.origin] = None
    pair.clicks = item.clicks or pair.clicks


def _take_rankings(
    file: FileFound, told: FileCounts, named: tuple[MadeNames, MadeNames], whole_of: Imported
) -> None:
    rankings: dict[str, list[tuple[Ranking, str, list[str]]]] = {}
    for item in file.items:
        if isinstance(item, Ranking):
            try:
                docs = [named[1].of(doc) for doc in item.docs]
                rankings.setdefault(item.run or file.stem, []).append((item, named[0].of(item.query), docs))
            except ValueError as error:
                told.refuse(item.where, str(error))
    for run, listed in rankings.items():
        made, ordered = _one_run(listed, told)
        name = _free_name(run, whole_of.runs)
        if ordered and made:
            whole_of.notes.append(
                f"run {name}: the order of the file is kept, as scores that fall by 1 (none, or ties, in it)"
            )
        if made:
            whole_of.runs[name] = made
            told.counts["rankings"] += len(made)
            told.counts["runs"] += 1


def _one_run(
    listed: Sequence[tuple[Ranking, str, list[str]]], told: FileCounts
) -> tuple[dict[str, dict[str, float]], bool]:
    """The rankings of a run, and whether ranks stand for scores: where a file has none, or orders ties by itself."""
    by_rank = any(item.ordered and not _falling(item.scores, len(docs)) for item, _, docs in listed)
    made: dict[str, dict[str, float]] = {}
    for item, query, docs in listed:
        scores = [float(len(docs) - at) for at in range(len(docs))] if by_rank else list(item.scores)
        row: dict[str, float] = {}
        for doc, score in zip(docs, scores, strict=True):
            if doc not in row:
                row[doc] = score
            elif item.ordered:
                told.counts["repeated documents in a ranking"] += 1
            else:
                told.refuse(item.where, f"document '{doc[:60]}' twice in the ranking; the first is kept")
        if query in made and made[query] != row:
            told.refuse(
                item.where, f"query '{query[:60]}' was answered before, and otherwise; the first is kept"
            )
        else:
            made.setdefault(query, row)
    return made, by_rank


def _falling(scores: Sequence[float], count: int) -> bool:
    return len(scores) == count and all(a > b for a, b in pairwise(scores))


def _free_name(run: str, taken: Mapping[str, object]) -> str:
    """A file's name for a run that no other has."""
    plain = re.sub(r"[^\w.@+-]+", "-", run).strip("-.")[:100] or "run"
    name, n = plain, 1
    while fold(name) in map(fold, taken):
        n += 1
        name = f"{plain}-{n}"
    return name


def _refuse_disjoint(whole_of: Imported) -> None:
    """Raise BadValue where runs answer, texts are of, or documents hold none of what is judged."""
    asked = {query for split in whole_of.qrels.values() for query in split}
    judged = {doc for split in whole_of.qrels.values() for row in split.values() for doc in row}
    others = {f"run {name}: it answers none": set(rankings) for name, rankings in whole_of.runs.items()}
    others |= {"queries: there is a text for none": set(whole_of.queries)}
    advice = "so that they cannot belong together; import them apart, or say --allow-disjoint"
    for what, names in others.items():
        if asked and names and not asked & names:
            raise BadValue(
                f"{what} of the {len(asked):,} judged queries, such as '{min(asked)[:60]}' (its own are such as "
                f"'{min(names)[:60]}'), {advice}"
            )
    if judged and whole_of.documents and not any(doc in whole_of.documents for doc in judged):
        raise BadValue(
            f"documents: none of the {len(judged):,} judged documents, such as '{min(judged)[:60]}', is among them, "
            f"{advice}"
        )


def _absent(whole_of: Imported) -> list[str]:
    """What judgments and rankings name and the collection does not hold."""
    told = []
    if nameless := set(whole_of.metadata) - set(whole_of.queries):
        kept = sum(bool(whole_of.metadata[name]) for name in nameless)
        told += [f"{kept} queries without a text have metadata, which was dropped"] if kept else []
    grades = [grade for split in whole_of.qrels.values() for row in split.values() for grade in row.values()]
    if grades and max(grades) <= 0:
        told.append("every grade is 0 or less: nothing is relevant")
    judged = {doc for split in whole_of.qrels.values() for row in split.values() for doc in row}
    if whole_of.documents and (absent := sum(name not in whole_of.documents for name in judged)):
        told.append(f"{absent} of {len(judged)} judged documents are not among the documents")
    asked = {query for split in whole_of.qrels.values() for query in split}
    if whole_of.queries and (away := asked - set(whole_of.queries)):
        told.append(f"{len(away)} of {len(asked)} judged queries have no text")
    return told
