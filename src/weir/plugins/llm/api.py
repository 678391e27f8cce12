"""`weir.judge`, `weir.llm_use` and `weir.llm_trace`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.auditing import Places, places_of
from weir.api.result_set import ResultSet
from weir.api.results_folder import FolderPath, Systems, cells_of
from weir.argument_types import checked
from weir.datasets.label_texts import labels_given, text_notes
from weir.errors import BadValue
from weir.experiment.audit_subjects import subjects_of
from weir.files.frames import qrels_from
from weir.files.journal_labels import SHEET
from weir.files.paths import path_of
from weir.measures.measure import parse_measure
from weir.plugins.labels.pools import about_sheet, subject_of_pool
from weir.plugins.llm.answers_report import TRACES, USES, model_uses, query_traces
from weir.plugins.llm.chat import ChatModel, default_model
from weir.plugins.llm.judge import DecisionRule, Judge, judge_pairs
from weir.plugins.llm.judge_report import JUDGE_REPORTS
from weir.plugins.llm.panel import JudgeSettings, is_sheet, judge_prompt, pairs_of_sheet, pairs_of_subject
from weir.plugins.questions.decision import decision_of
from weir.services.requests import Limits
from weir.settings import settings as environment

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.subject import Subject
    from weir.plugins.llm.answers_report import ModelUse, QueryTrace
    from weir.plugins.llm.judge_report import JudgeReport
    from weir.plugins.llm.panel import JudgingPairs


@checked
def judge(
    *targets: str | Path,
    out: str | Path,
    model: str | ChatModel | None = None,
    prompt: str | Path = "umbrela",
    budget: str | None = None,
    price: str | None = None,
    collection: Places = None,
    people: object = None,
    judged: bool = False,
    k: int = 10,
    limit: int | None = None,
    until_decided: bool = False,
    margin: float = 0.0,
    settings: JudgeSettings | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[JudgeReport]:
    """Label (query, document) pairs by a language model into a folder, and return a report (`weir judge`).

    targets: a folder or sheet of `judging_pool`, for its ungraded pairs. Or a results folder, or judgments and run
        files, for unjudged documents among each system's first k. With `judged` also a collection.
    out: folder of the labels. The same call continues an interrupted one.
    model: such as "http://localhost:8000/v1#name" or "openai:gpt-4o", or a ChatModel. None takes WEIR_LLM.
    prompt: name of a prompt, or path of a TOML file.
    budget, price: limits in place of WEIR_API_BUDGET and WEIR_API_PRICE.
    collection: documents, queries and rules of run files, by name or path. Of a results folder where its collections
        lie now, by name.
    people: judgments of people to compare with, instead of the targets' own.
    judged: judge what people judged, to see how far the model agrees.
    k: ranks of each system that are considered.
    limit: number of pairs at most, the first of a sheet, else the pairs that narrow scores most; with `judged` a
        random sample.
    until_decided: judge queries in random order, and stop once it is certain which system is the best by nDCG@k.
    margin: how much better another system may still be than the one taken as best, for `until_decided`.
    settings: how the judge is asked. None takes the defaults.
    progress: called with (step, answers done, answers in all).

    Raises ServiceError, after writing the labels so far, if the budget ends or answers are missing, BadValue for
    settings and for a folder of other labels.
    """
    chosen = default_model() if model is None else model
    chat = ChatModel(chosen) if isinstance(chosen, str) else chosen
    set_limits = environment()
    limits = Limits.of(
        replace(
            set_limits, api_budget=budget or set_limits.api_budget, api_price=price or set_limits.api_price
        )
    )
    judge = Judge(chat, judge_prompt(str(prompt)), settings or JudgeSettings(), limits)
    people_labels = None if people is None else qrels_from(labels_given(people))
    about, known, pairs = _pairs(targets, collection, people_labels, judged, (k, limit))
    rule: DecisionRule | None = None
    if until_decided:
        if judged or limit is not None or about is None or len(about.runs) < 2:
            raise BadValue(
                "what is best is decided among two systems or more, by what nobody judged: name a results folder, "
                "judgments and run files, or a folder of weir labels pool, without `judged` and `limit`"
            )
        depth = about_sheet(_sheet(path_of(targets[0]))).get("k") or k  # of a pool its own
        measure, subject = parse_measure(f"nDCG@{depth}"), about
        rule = lambda labels, left: decision_of(subject, labels, left, measure, margin)  # noqa: E731  named for its type
    given = _sheet(path_of(targets[0]))
    told = text_notes(known or given, given if given.is_file() else None, people)
    return ResultSet(JUDGE_REPORTS, (judge_pairs(pairs, judge, path_of(out), progress, rule),), tuple(told))


def _pairs(
    targets: Sequence[str | Path],
    collection: Places,
    people: Qrels | None,
    judged: bool,
    ranks: tuple[int, int | None],
) -> tuple[Subject | None, Subject | None, JudgingPairs]:
    """Return (runs to decide between or None, collection with the texts or None, pairs to judge)."""
    k, limit = ranks
    if limit is not None and limit < 1:
        raise BadValue(f"limit is {limit}; expected a whole number from 1")
    if len(targets) == 1 and is_sheet(path_of(targets[0])):
        path = path_of(targets[0])
        about = None if not (places := places_of(collection)) else _only(subjects_of(places))
        about = replace(about, qrels=people) if about is not None and people is not None else about
        pairs = pairs_of_sheet(path, about, judged, limit)
        subject = subject_of_pool(_sheet(path)) if about_sheet(_sheet(path)).get("targets") else None
    else:
        subject = about = _only(subjects_of(targets, places_of(collection)))
        pairs = pairs_of_subject(subject, judged, k, limit)
    return subject, about or subject, pairs if people is None else replace(pairs, people=people)


def _sheet(target: Path) -> Path:
    return target / SHEET if target.is_dir() else target


def _only(subjects: Sequence[Subject]) -> Subject:
    if len(subjects) != 1:
        names = ", ".join(one.name for one in subjects[:5])
        raise BadValue(
            f"found {len(subjects)} collections ({names}); judge one at a time, each into a folder of its own"
        )
    return subjects[0]


@checked
def llm_use(folder: FolderPath, system: Systems = None, datasets: Sequence[str] = ()) -> ResultSet[ModelUse]:
    """Return counts of language models' answers, tokens, dollars and failed attempts, by model and result of a
    folder.

    system: one or several systems. None takes all.
    datasets: names of datasets or groups. () takes all.

    Empty if no system asks a model. Raises FormatError for a folder without finished results, UnknownName for an
    unknown system or dataset.
    """
    cells, damaged = cells_of(folder, system, datasets)
    return ResultSet(USES, tuple(model_uses(cells)), damaged)


@checked
def llm_trace(
    folder: FolderPath,
    query: str | None = None,
    system: Systems = None,
    verdicts: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> ResultSet[QueryTrace]:
    """Return each system's prompts about each query, with the stored answers and verdicts; no request is sent.

    folder: a results folder.
    query: only prompts about this query, by default about all.
    system: only these systems, by default all.
    verdicts: only prompts whose answers are ok, repaired, refused, missing, duplicate, "out of range" or "not kept
        here".
    datasets: only these datasets, by default all. A group means its members.

    Raises FormatError for a folder without finished results, UnknownName for an unknown system, dataset, query or
    verdict, BadValue if no system asks a language model or if collection, settings or prompts have changed.
    """
    cells, damaged = cells_of(folder, system, datasets)
    return ResultSet(TRACES, tuple(query_traces(cells, query, verdicts)), damaged)
