"""Labels by language models in Python: `weir judge`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.api.auditing import Places, places_of
from weir.api.result_set import ResultSet
from weir.errors import BadValue

if TYPE_CHECKING:
    from weir.core.qrels import Qrels
    from weir.core.subject import Subject
    from weir.labels.judge_report import JudgeReport
    from weir.labels.panel import JudgeSettings, JudgingPairs
    from weir.models.chat import ChatModel


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
    settings: JudgeSettings | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> ResultSet[JudgeReport]:
    """Let a language model judge pairs of query and document, and write its labels to a folder: `weir judge`.

    targets: a folder or sheet of `judging_pool`, a results folder, judgments and run files, or a collection; out: the
    folder of the labels, which the same call continues; model: such as "http://localhost:8000/v1#name" or
    "openai:gpt-4o", or a ChatModel, None for that of WEIR_LLM; prompt: a name, or a path of a TOML file; budget, price:
    as WEIR_API_BUDGET and WEIR_API_PRICE; collection: the documents and queries; people: judgments of people to compare
    with, where the targets have none; judged: judge what people judged instead of what nobody did; k: ranks of each
    system that are looked at; limit: pairs at most; progress: told what is being done, how much of it, of how much.
    Raises ServiceError where the budget ends or answers are missing, after writing the labels that are there; BadValue
    for settings, and for a folder that holds other labels; and the WeirErrors of reading.
    """
    from weir.files.frames import qrels_from
    from weir.labels.judge import Judge, judge_pairs
    from weir.labels.panel import JudgeSettings, judge_prompt
    from weir.models.chat import ChatModel, default_model
    from weir.services.requests import Limits
    from weir.settings import settings as environment

    chosen = default_model() if model is None else model
    chat = ChatModel(chosen) if isinstance(chosen, str) else chosen
    set_limits = environment()
    limits = Limits.of(
        replace(
            set_limits, api_budget=budget or set_limits.api_budget, api_price=price or set_limits.api_price
        )
    )
    judge = Judge(chat, judge_prompt(str(prompt)), settings or JudgeSettings(), limits)
    people_labels = None if people is None else qrels_from(people)
    pairs = _pairs(targets, collection, people_labels, judged, (k, limit))
    return ResultSet("judge", (judge_pairs(pairs, judge, Path(out), progress),))


def _pairs(
    targets: Sequence[str | Path],
    collection: Places,
    people: Qrels | None,
    judged: bool,
    ranks: tuple[int, int | None],
) -> JudgingPairs:
    """The pairs that targets name; ranks: how many are looked at, and pairs at most.

    Raises BadValue for targets of several collections.
    """
    from weir.experiment.audit_subjects import subjects_of
    from weir.labels.panel import is_sheet, pairs_of_sheet, pairs_of_subject

    k, limit = ranks
    if limit is not None and limit < 1:
        raise BadValue(f"limit is {limit}; expected a whole number from 1")
    if len(targets) == 1 and is_sheet(Path(targets[0])):
        about = None if not (places := places_of(collection)) else _only(subjects_of(places))
        about = replace(about, qrels=people) if about is not None and people is not None else about
        pairs = pairs_of_sheet(Path(targets[0]), about, judged, limit)
    else:
        pairs = pairs_of_subject(_only(subjects_of(targets, places_of(collection))), judged, k, limit)
    return pairs if people is None else replace(pairs, people=people)


def _only(subjects: Sequence[Subject]) -> Subject:
    if len(subjects) != 1:
        names = ", ".join(one.name for one in subjects[:5])
        raise BadValue(
            f"found {len(subjects)} collections ({names}); judge one at a time, each into a folder of its own"
        )
    return subjects[0]
