"""What re-ranking by a language model depends on."""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np

from weir.algorithms import algorithm
from weir.core.corpus import Corpus, Queries
from weir.core.frames import plain, rebuilt
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.datasets.load import Dataset
from weir.errors import BadValue, RankingWarning, StoreError
from weir.files.atomic import make_folder, own_file
from weir.files.integrity import read_sealed, write_sealed
from weir.measures.evaluate import score_run
from weir.measures.measure import Measure
from weir.models.chat import cached_chat
from weir.models.prompts import ChatPrompt
from weir.models.verdicts import SCORED_KINDS, ChatReply, VerdictKind
from weir.plugins.sensitivity.reordering import ReorderRules, order_changes
from weir.registry import check_whole
from weir.services.answers import ServiceUsage
from weir.stats.distributions import incomplete_beta
from weir.stats.resampling import SEED, interval, ratio_interval
from weir.stats.significance import adjusted, defined_mean
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, rankings
from weir.systems.protocol import IN_MEMORY, Context, Costs, Retriever
from weir.systems.rerank.llm_methods import METHODS, LLMReranker, LLMScorer, PromptRunner, RerankTask
from weir.systems.rerank.reranking import RerankingSearcher, fill_unscored, rerank_room, reranked_rows

# ----------
# The passages that a language model reads and its verdicts, answer by answer, while it re-ranks.


_SHOWN = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)
"""A passage within its fence, which no passage can close (models/prompts.py)."""


@dataclass(frozen=True)
class HeardAnswer:
    """An answer. query: the identifier of the query that was asked about; prompt: a hash of all that was asked but for
    the sample; shown: hashes of the passages in their order; value: what the verdict says, None for nothing."""

    query: str
    prompt: bytes
    shown: tuple[bytes, ...]
    kind: VerdictKind
    value: object

    @property
    def clear(self) -> bool:
        """Whether the answer holds a verdict that is whole."""
        return self.kind in SCORED_KINDS and self.value is not None

    @property
    def first(self) -> int | None:
        """The place from 1 of the passage that a verdict over several puts first, None where there is none."""
        if not self.clear or len(self.shown) < 2:
            return None
        if isinstance(self.value, list):
            return int(self.value[0]) if self.value and isinstance(self.value[0], int) else None
        return self.value if isinstance(self.value, int) else None


@dataclass(frozen=True)
class AskedTotals:
    """What re-ranking took, answers from before among it: a prompt that is asked twice counts once.

    prompts; tokens, answer_tokens of them, 0 where they are not counted; dollars: NaN without a price; seconds: sum
    over answers, which may overlap; unclear: answers without a whole verdict.
    """

    prompts: int
    tokens: int
    answer_tokens: int
    dollars: float
    seconds: float
    unclear: int


@dataclass(eq=False)
class LoggedScorer:
    """A scorer by a language model that logs its answers; sample: which of several answers to a prompt, from 0."""

    scorer: LLMScorer
    sample: int = 0
    answers: list[HeardAnswer] = field(default_factory=list)
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        """As LLMScorer.scores, which raises the same; without warnings, since what is unclear is counted."""
        if len(candidates.doc) == 0:
            return np.empty(0)
        reranker = self.scorer.reranker
        with cached_chat(reranker.chat, reranker.concurrency, self.use, context.reuse) as runner:
            log = _LoggedRunner(runner, self.sample)
            task = RerankTask(self.scorer, log, queries, candidates, context.progress, log.record_verdict)
            log.current_query = lambda: task.query_shown
            values = task.values()
        names = queries.ids.tolist()
        self.answers += [
            HeardAnswer(names[query], prompt, passages, kind, value)
            for (query, prompt, passages), (kind, value) in zip(log.prompts, log.verdicts, strict=True)
        ]
        return fill_unscored(values, candidates.ptr)

    def costs(self) -> Costs:
        """The use of the model."""
        return Costs(services=(self.use.named(self.scorer.reranker.chat.model),))

    def totals(self) -> AskedTotals:
        """The use of the model as totals."""
        return AskedTotals(
            len({answer.prompt for answer in self.answers}),
            self.use.tokens,
            self.use.answer_tokens,
            math.nan if self.use.dollars is None else self.use.dollars,
            math.fsum(math.fsum(one) for one in self.use.milliseconds.values()) / 1000,
            sum(not answer.clear for answer in self.answers),
        )


@dataclass(eq=False)
class _LoggedRunner:
    """A runner of prompts that logs each prompt and each verdict, in the order of prompts."""

    runner: PromptRunner
    sample: int
    current_query: Callable[[], int] = field(default=lambda: -1)
    prompts: list[tuple[int, bytes, tuple[bytes, ...]]] = field(default_factory=list)
    verdicts: list[tuple[VerdictKind, object]] = field(default_factory=list)

    def replies(
        self,
        count: int,
        prompt_of: Callable[[int], ChatPrompt],
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ChatReply]:
        """The answers to so many prompts, in order."""
        log: dict[int, tuple[int, bytes, tuple[bytes, ...]]] = {}

        def sampled(number: int) -> ChatPrompt:
            prompt = prompt_of(number)
            passages = tuple(map(_digest, _SHOWN.findall(prompt.user)))
            log[number] = (self.current_query(), _digest(repr(prompt)), passages)
            return replace(prompt, sample=self.sample)

        replies = self.runner.replies(
            count, sampled, progress
        )  # every prompt has been made when this returns
        self.prompts += [log[number] for number in range(count)]
        return replies

    def record_verdict(self, kind: VerdictKind, value: object) -> None:
        """Log the verdict of an answer."""
        self.verdicts.append((kind, value))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


# ----------
# Candidates that are found once and re-ranked many times: in other orders, to other depths, asked again.


RESULT_DEPTH = 1000
"""Documents of a ranking that are scored, as `weir run` has it."""
SAMPLE_SEED = 20_231_107

Progress = Callable[[int, int], None]
"""Called with how many prompts are done, of how many."""


@dataclass(frozen=True, eq=False)
class RerankedOnce:
    """A re-ranking. values: float64[Q], the measure by query in the order of their identifiers; answers: what the model
    was shown and said; totals: what it took."""

    run: Run
    values: Float64
    answers: tuple[HeardAnswer, ...]
    totals: AskedTotals


@dataclass(frozen=True, eq=False)
class StudiedCandidates:
    """What a first stage found for the judged queries, and the language model that re-ranks it.

    found: the first stage's rankings, deep enough for `depth` and for the results; shown: the most candidates of a
    query that the re-ranker takes as it is declared; depth: the most candidates asked about.
    """

    pipeline: Pipeline
    reranker: LLMReranker
    corpus: Corpus
    queries: Queries
    qrels: Qrels
    measure: Measure
    found: Run
    shown: int
    depth: int
    drop_self: bool

    def reranked(
        self, reranker: LLMReranker, sample: int = 0, progress: Progress | None = None
    ) -> RerankedOnce:
        """The candidates as a re-ranker orders them, the answers of that sample asked for and kept.

        Raises BadValue for a depth beyond the candidates, ServiceError where the budget ends or a prompt stays without
        an answer; the same call continues.
        """
        if reranker.depth is not None and reranker.depth > self.depth:
            raise BadValue(f"candidates were found to {self.depth}; a depth of {reranker.depth} needs more")
        scorer = LoggedScorer(reranker.ready(self.corpus), sample)
        system = replace(self.pipeline, reranker=reranker)
        searcher = RerankingSearcher(system, self.corpus, _FixedRun(self.found), scorer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)  # what is unclear is counted
            run = searcher.search(self.queries, max(RESULT_DEPTH, self.depth) + 1, Context(progress=progress))
        run = run.without_self() if self.drop_self else run
        run = run.top(RESULT_DEPTH) if len(run.doc) else run
        values = score_run(self.qrels, run, [self.measure]).in_id_order(str(self.measure))
        return RerankedOnce(run, values, tuple(scorer.answers), scorer.totals())


@dataclass(frozen=True, eq=False)
class _FixedRun:
    """A searcher that always answers with one run."""

    run: Run

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The first k of it."""
        return self.run.top(k)

    def search_restricted(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The same: it holds only what may be ranked."""
        return self.run.top(k)

    def costs(self) -> Costs:
        """None."""
        return Costs(repeatable=True)


def candidates_of(
    dataset: Dataset, system: Retriever, measure: Measure, depths: tuple[int, ...], limit: int | None
) -> StudiedCandidates:
    """Search a collection with the first stage of `first >> llm(...)`, once.

    depths: others than the re-ranker's own that will be asked about; limit: judged queries at most, a sample by a fixed
    seed; None for all. Raises BadValue for another system and a limit below 1, and the WeirErrors of searching.
    """
    adapted = adapted_to(system, dataset.name, dataset.instruction)
    if not (isinstance(adapted, Pipeline) and isinstance(adapted.reranker, LLMReranker)):
        raise BadValue(
            f"{system} ends in no language model; give such as 'bm25 >> llm(\"listwise\", model=...)'"
        )
    queries = dataset.queries
    if limit is not None and limit < 1:
        raise BadValue(f"{limit} queries are none; expected a whole number from 1")
    if limit is not None and limit < len(queries):  # drawn at random, in the order in which they stand
        names = sorted(queries.ids.tolist())
        chosen = np.random.default_rng(SAMPLE_SEED).permutation(len(names))[:limit]
        queries = queries.take(np.sort(queries.ids.codes([names[i] for i in chosen.tolist()])))
    room = rerank_room(adapted, queries, max(RESULT_DEPTH, *depths, 1) + 1, dataset.corpus)
    searcher = adapted.first.index(dataset.corpus)
    run = rankings(searcher, queries, room, adapted.first, dataset.name)
    rows = reranked_rows(adapted, run, queries, dataset.corpus)
    longest = int(np.bincount(run.query_of_row()[rows], minlength=1).max())
    qrels = dataset.qrels.only(np.flatnonzero(queries.ids.codes(dataset.qrels.queries.strings) >= 0))
    return StudiedCandidates(
        adapted,
        adapted.reranker,
        dataset.corpus,
        queries,
        qrels,
        measure,
        run,
        longest,
        max(longest, adapted.reranker.depth or 1, *depths, 1),
        dataset.self_match == "drop",
    )


# ----------
# Whether verdicts depend on what should not matter: on the place in a prompt, on the order of two, on asking again.


@dataclass(frozen=True)
class FirstPlace:
    """How often the document at a place of a prompt, from 1, is put first.

    share: of `times` prompts; low, high: its 95% interval over queries; p: of the exact binomial test that the share is
    that of an even chance, corrected for all places (Holm).
    """

    place: int
    times: int
    share: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class PromptPlaces:
    """The first prompts of re-rankings of shuffled candidates: places of what was put first.

    size: documents of a prompt; prompts: with a whole verdict, of `shown`; even: the share of each place, if places do
    not matter; places: see FirstPlace. Candidates stand in random order, so a model that is blind to places puts each
    place first equally often, whatever the documents are.
    """

    size: int
    shown: int
    prompts: int
    even: float
    places: tuple[FirstPlace, ...]


@dataclass(frozen=True)
class OrderFlips:
    """Pairs of documents that were compared in both orders, of those with a whole verdict on both.

    compared: pairs asked about in both orders; pairs: those decided both times; flipped: share of these in which the
    verdict is on the place and not on the document, with its 95% interval over queries; first: share of the flipped
    pairs in which the document named first won both times.
    """

    compared: int
    pairs: int
    flipped: float
    low: float
    high: float
    first: float


@dataclass(frozen=True)
class SameVerdicts:
    """Prompts that were asked several times.

    samples: answers to each; prompts: asked in each sample; others: asked in some only, since what windows and sorts
    ask depends on the answers before; equal: the share of pairs of answers to one prompt that say the same, no
    verdict being one, with its 95% interval over queries; deviation: mean standard deviation (n - 1) of the scores of a
    prompt, NaN where verdicts are no scores.
    """

    samples: int
    prompts: int
    others: int
    equal: float
    low: float
    high: float
    deviation: float


def prompt_places(runs: Sequence[Sequence[HeardAnswer]]) -> tuple[PromptPlaces, ...]:
    """The places of what was put first, for each size of prompt; runs: the answers of each shuffled order.

    The first prompt about each query counts: its documents were drawn without regard to any answer.
    """
    by_size: dict[int, list[HeardAnswer]] = defaultdict(list)
    for answers in runs:
        queries: set[str] = set()
        for answer in answers:
            if answer.query not in queries and len(answer.shown) > 1:
                by_size[len(answer.shown)].append(answer)
            queries.add(answer.query)
    return tuple(_places(size, by_size[size]) for size in sorted(by_size))


def _places(size: int, answers: Sequence[HeardAnswer]) -> PromptPlaces:
    clear = [answer for answer in answers if answer.first is not None]
    queries = sorted({answer.query for answer in clear})
    number = {query: i for i, query in enumerate(queries)}
    table = np.zeros((size, len(queries)))
    for answer in clear:
        assert answer.first is not None  # those without were left out
        table[answer.first - 1, number[answer.query]] += 1
    total = table.sum(axis=0)
    times = table.sum(axis=1).astype(int).tolist()
    p = adjusted(np.array([_even_p(n, len(clear), 1 / size) for n in times])).tolist()
    bounds = [_interval(row, total) for row in table]
    places = tuple(
        FirstPlace(place, n, n / len(clear) if clear else math.nan, *ends, one)
        for place, (n, ends, one) in enumerate(zip(times, bounds, p, strict=True), 1)
    )
    return PromptPlaces(size, len(answers), len(clear), 1 / size, places)


def _even_p(successes: int, trials: int, chance: float) -> float:
    """Twice the smaller tail of the binomial distribution, at most 1."""
    if trials == 0:
        return 1.0
    above = 1.0 if successes == 0 else incomplete_beta(successes, trials - successes + 1, chance)
    below = 1.0 if successes == trials else incomplete_beta(trials - successes, successes + 1, 1 - chance)
    return min(1.0, 2 * min(above, below))


def _interval(numerator: Float64, denominator: Float64) -> tuple[float, float]:
    if not denominator.any():
        return math.nan, math.nan
    return ratio_interval((numerator, denominator))


def order_flips(answers: Sequence[HeardAnswer]) -> OrderFlips | None:
    """Verdicts on two documents that were shown in both orders; None where no two were."""
    by_pair = {(a.query, a.shown): a for a in answers if len(a.shown) == 2 and a.shown[0] != a.shown[1]}
    both = [
        (answer, by_pair[query, pair[::-1]])
        for (query, pair), answer in by_pair.items()
        if pair < pair[::-1] and (query, pair[::-1]) in by_pair
    ]
    if not both:
        return None
    decided = [(a.query, a.first, b.first) for a, b in both if a.first is not None and b.first is not None]
    flips = [(query, one) for query, one, other in decided if one == other]
    pairs, flipped = Counter(query for query, _, _ in decided), Counter(query for query, _ in flips)
    queries = sorted(pairs)
    counts = [np.array([float(counts_of[query]) for query in queries]) for counts_of in (flipped, pairs)]
    return OrderFlips(
        len(both),
        len(decided),
        len(flips) / len(decided) if decided else math.nan,
        *(_interval(counts[0], counts[1]) if decided else (math.nan, math.nan)),
        sum(one == 1 for _, one in flips) / len(flips) if flips else math.nan,
    )


def same_verdicts(samples: Sequence[Sequence[HeardAnswer]]) -> SameVerdicts:
    """How far answers to the same prompts agree; samples: the answers of each, two or more."""
    values = [{answer.prompt: answer for answer in answers} for answers in samples]
    common = [prompt for prompt in values[0] if all(prompt in one for one in values)]
    others = len({prompt for one in values for prompt in one}) - len(common)
    pairs, equal, deviations = Counter[str](), Counter[str](), []
    for prompt in common:
        answers = [one[prompt] for one in values]
        verdicts = [answer.value if answer.clear else None for answer in answers]
        pairs[answers[0].query] += len(verdicts) * (len(verdicts) - 1) // 2
        equal[answers[0].query] += sum(a == b for a, b in combinations(verdicts, 2))
        scores = [float(one) for one in verdicts if isinstance(one, (int, float))]
        if len(answers[0].shown) == 1 and len(scores) > 1:
            deviations.append(float(np.std(scores, ddof=1)))
    queries = sorted(pairs)
    counts = [np.array([float(counts_of[query]) for query in queries]) for counts_of in (equal, pairs)]
    return SameVerdicts(
        len(samples),
        len(common),
        others,
        sum(equal.values()) / sum(pairs.values()) if pairs else math.nan,
        *(_interval(counts[0], counts[1]) if pairs else (math.nan, math.nan)),
        math.fsum(deviations) / len(deviations) if deviations else math.nan,
    )


# ----------
# What re-ranking by a language model depends on: the order of its candidates, chance, places in prompts, depth.
#
# <folder>/ orders.json candidates in other orders, and places in their prompts samples.json the same prompts asked
# again, and pairs in both orders depths.json what more candidates cost and bring
#
# Each holds what it was declared from and what was found, sealed; one of the same declaration is read, not made
# again. The answers are kept in Weir's home, so a study that was interrupted asks for nothing twice.


T = TypeVar("T")
Watch = Callable[[str, int, int], None]
"""Called with (what is done, how much of it, of how much)."""


@dataclass(frozen=True)
class StudyRules:
    """What is studied. orders, samples: how many, 0 leaves the study out; depths: () leaves it out; queries: judged
    queries at most, None for all. Raises BadValue for numbers out of range."""

    orders: int = 5
    samples: int = 5
    depths: tuple[int, ...] = (5, 10, 20, 50)
    queries: int | None = None

    def __post_init__(self) -> None:
        for name in ("orders", "samples"):
            value = getattr(self, name)
            if type(value) is not int or value < 0 or value == 1:
                raise BadValue(f"{name} is {value!r}; expected a whole number from 2, or 0 for none")
        if not all(type(depth) is int and depth >= 1 for depth in self.depths):
            raise BadValue(f"depths are {self.depths!r}; expected whole numbers from 1")
        if self.queries is not None:
            check_whole("queries", self.queries)


@dataclass(frozen=True)
class Spread:
    """A measure over several re-rankings of the same candidates for the same queries.

    mean: over re-rankings and queries; low, high: its 95% interval over queries; means: of each re-ranking; deviation:
    the standard deviation of such a mean with the queries held fixed, estimated from that of each query, which knows
    it better than `means` do; error: the standard error of `mean` by the queries alone; tau, rbo: mean agreement of two
    of the re-rankings on the documents that were re-ranked, over pairs and queries.
    """

    measure: str
    queries: int
    mean: float
    low: float
    high: float
    means: tuple[float, ...]
    deviation: float
    error: float
    tau: float
    rbo: float


@dataclass(frozen=True)
class OrderStudy:
    """Candidates in several random orders. own: the mean of the measure in the first stage's order; lead: own less the
    mean over orders, with its 95% interval over queries: what the first stage's order is worth to the model; places:
    what is put first in prompts of each size."""

    spread: Spread
    own: float
    lead: float
    low: float
    high: float
    places: tuple[PromptPlaces, ...]
    totals: AskedTotals


@dataclass(frozen=True)
class SampleStudy:
    """The same candidates in the same order, every prompt asked several times; flips: of pairs, in the first sample."""

    spread: Spread
    verdicts: SameVerdicts
    flips: OrderFlips | None
    totals: AskedTotals


@dataclass(frozen=True)
class DepthStudy:
    """The first `depth` candidates re-ranked. efficient: no other depth of the study is as good for as few tokens
    (prompts, where tokens are not counted) and better in one of both."""

    depth: int
    mean: float
    low: float
    high: float
    totals: AskedTotals
    efficient: bool


@dataclass(frozen=True)
class Sensitivity:
    """What was studied of a system on a collection; None and () for what was left out. notes: why, where the system and
    not the rules left it out."""

    dataset: str
    system: str
    measure: str
    orders: OrderStudy | None
    samples: SampleStudy | None
    depths: tuple[DepthStudy, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Depths:
    """As the file of a study holds it."""

    depths: tuple[DepthStudy, ...]


def sensitivity(
    dataset: Dataset,
    system: Retriever,
    measure: Measure,
    rules: StudyRules,
    out: Path | None,
    watch: Watch = lambda what, done, total: None,
) -> Sensitivity:
    """Study a system such as bm25 >> llm("listwise", ...), whose records go to the folder `out`; None keeps none.

    Raises BadValue for another system, ServiceError where the budget ends or a prompt stays without an answer (the
    same call continues), StoreError where the folder cannot be written, and the WeirErrors of searching.
    """
    depths = tuple(sorted(set(rules.depths)))
    candidates = candidates_of(dataset, system, measure, depths, rules.queries)
    declared: dict[str, object] = {
        "system": candidates.pipeline.describe(),
        "collection": dataset.fingerprint,
        "measure": str(candidates.measure),
        "queries": rules.queries,
        "seed": SEED,
        "algorithms": [algorithm("measures"), algorithm("bootstrap interval")],
    }
    study, method = _Studies(candidates, declared, out, watch), candidates.reranker.method
    notes = []
    orders = samples = None
    if rules.orders and "order" in METHODS[method].takes:
        orders = study.record(
            "orders", OrderStudy, {"orders": rules.orders}, lambda: study.orders(rules.orders)
        )
    elif rules.orders:
        prompts = "every two documents in both orders" if method == "pairwise" else "one document at a time"
        notes.append(
            f'"{method}" shows {prompts}: the order of candidates decides nothing but what no answer decides'
        )
    if rules.samples:
        samples = study.record(
            "samples", SampleStudy, {"samples": rules.samples}, lambda: study.samples(rules.samples)
        )
    deep: tuple[DepthStudy, ...] = ()
    if depths:
        deep = study.record("depths", _Depths, {"depths": list(depths)}, lambda: study.depths(depths)).depths
    return Sensitivity(dataset.name, str(system), str(measure), orders, samples, deep, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Studies:
    """The studies of some candidates. out: the folder of their records."""

    candidates: StudiedCandidates
    declared: dict[str, object]
    out: Path | None
    watch: Watch

    def record(self, name: str, kind: type[T], own: dict[str, object], make: Callable[[], T]) -> T:
        """The study in the record of that name, where its declaration is the same; else it is made and written."""
        declared = json.loads(json.dumps({**self.declared, **own}, default=str))
        path = None if self.out is None else self.out / f"{name}.json"
        if path is not None and path.exists():
            try:
                record = read_sealed(path)
                if record.get("declared") == declared:
                    return rebuilt(kind, record["found"])
            except (StoreError, BadValue, KeyError) as error:
                self.watch(f"{name}: made again ({error})", 0, 0)
        study = make()
        if path is not None:
            make_folder(path.parent)
            write_sealed(own_file(path), {"study": name, "declared": declared, "found": plain(study)})
        return study

    def orders(self, count: int) -> OrderStudy:
        """The candidates in the first stage's order, and in `count` others by the seeds 1, 2, ..."""
        own = replace(self.candidates.reranker.ordering, order="first stage", seed=0)
        orders = [own, *(replace(own, order="shuffled", seed=seed) for seed in range(1, count + 1))]
        rerankers = [replace(self.candidates.reranker, ordering=one) for one in orders]
        first, *runs = [
            self.candidates.reranked(one, progress=self._progress("orders", number, len(rerankers)))
            for number, one in enumerate(rerankers)
        ]
        spread = self._spread(runs)
        lead = first.values - np.mean([one.values for one in runs], axis=0)
        return OrderStudy(
            spread,
            defined_mean(first.values),
            defined_mean(lead),
            *interval(lead),
            prompt_places([one.answers for one in runs]),
            _together([first, *runs]),
        )

    def samples(self, count: int) -> SampleStudy:
        """Each prompt asked `count` times."""
        reranker = self.candidates.reranker
        runs = [
            self.candidates.reranked(reranker, sample, self._progress("samples", sample, count))
            for sample in range(count)
        ]
        verdicts = same_verdicts([one.answers for one in runs])
        return SampleStudy(self._spread(runs), verdicts, order_flips(runs[0].answers), _together(runs))

    def depths(self, depths: Sequence[int]) -> _Depths:
        """The candidates to several depths."""
        runs = []
        for number, depth in enumerate(depths):
            reranker = replace(self.candidates.reranker, depth=depth)
            runs.append(
                self.candidates.reranked(reranker, progress=self._progress("depths", number, len(depths)))
            )
        worth = [(defined_mean(run.values), -(run.totals.tokens or run.totals.prompts)) for run in runs]
        rows = []
        for depth, run, own in zip(depths, runs, worth, strict=True):
            beaten = any(other != own and other[0] >= own[0] and other[1] >= own[1] for other in worth)
            bounds = interval(run.values)
            rows.append(DepthStudy(depth, own[0], *bounds, run.totals, not beaten))
        return _Depths(tuple(rows))

    def _progress(self, what: str, number: int, count: int) -> Callable[[int, int], None]:
        return lambda done, total: self.watch(f"{what} {number + 1}/{count}", done, total)

    def _spread(self, runs: Sequence[RerankedOnce]) -> Spread:
        values = np.array([one.values for one in runs])
        defined = values[:, ~np.isnan(values).any(axis=0)]
        count = defined.shape[1]
        if count == 0:
            raise BadValue(f"{self.candidates.measure} is defined for no query of all re-rankings")
        by_query = defined.mean(axis=0)
        rules, depth = ReorderRules(), self.candidates.shown
        pairs = [order_changes(a.run, b.run, rules, depth) for a, b in combinations(runs, 2)]
        return Spread(
            str(self.candidates.measure),
            count,
            defined_mean(by_query),
            *interval(by_query),
            tuple(defined_mean(row) for row in defined),
            math.sqrt(float(defined.var(axis=0, ddof=1).sum())) / count,
            float(by_query.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
            defined_mean(np.concatenate([one.tau for one in pairs])),
            defined_mean(np.concatenate([one.rbo for one in pairs])),
        )


def _together(runs: Sequence[RerankedOnce]) -> AskedTotals:
    """What several re-rankings took together, each as if it were asked alone."""
    parts = [one.totals for one in runs]
    return AskedTotals(
        sum(one.prompts for one in parts),
        sum(one.tokens for one in parts),
        sum(one.answer_tokens for one in parts),
        math.fsum(one.dollars for one in parts),
        math.fsum(one.seconds for one in parts),
        sum(one.unclear for one in parts),
    )
