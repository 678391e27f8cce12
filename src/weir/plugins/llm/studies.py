"""How re-ranking by a language model depends on order, chance, positions in prompts and depth."""

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
from weir.argument_types import named_arguments
from weir.core.corpus import Corpus, Queries
from weir.core.frames import json_value, rebuilt
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.strings import Float64
from weir.datasets.load import Dataset
from weir.errors import BadValue, RankingWarning, StoreError
from weir.files.atomic import make_folder, own_file
from weir.files.integrity import read_sealed, write_sealed
from weir.files.text_files import Watch
from weir.measures.evaluate import score_run
from weir.measures.measure import Measure
from weir.plugins.llm.chat import cached_chat
from weir.plugins.llm.prompts import ChatPrompt
from weir.plugins.llm.reordering import ReorderRules, order_changes
from weir.plugins.llm.rerank import METHODS, LLMReranker, LLMScorer, PromptRunner, RerankTask
from weir.plugins.llm.verdicts import ChatReply, VerdictKind
from weir.registry import check_whole
from weir.services.answers import SCORED_KINDS, ServiceUsage
from weir.stats.distributions import binomial_tail
from weir.stats.resampling import SEED, interval, ratio_interval
from weir.stats.significance import adjusted, defined_mean
from weir.systems.compose import Pipeline
from weir.systems.composite import adapted_to, rankings
from weir.systems.protocol import ANSWERS, IN_MEMORY, Context, Costs, Progress, Retriever, only_time
from weir.systems.rerank.reranking import RerankingSearcher, fill_unscored, rerank_room, reranked_rows

# ----------
# The passages that a language model reads and its verdicts, answer by answer, while it re-ranks.


_SHOWN = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)
"""A passage within its fence, which no passage can close (`prompts.py`)."""


@dataclass(frozen=True)
class HeardAnswer:
    """A model's answer to a prompt: query, passages shown, and verdict."""

    query: str
    prompt: bytes
    """Hash of the request without its sample number."""
    shown: tuple[bytes, ...]
    """Hashes of the passages, in the prompt's order."""
    kind: VerdictKind
    value: object
    """A score, the best passage's number, or an order of numbers; None without a verdict."""

    @property
    def clear(self) -> bool:
        """True if the whole verdict could be read."""
        return self.kind in SCORED_KINDS and self.value is not None

    @property
    def first(self) -> int | None:
        """Position in the prompt, from 1, of the passage put first; None for a single passage or without a
        verdict."""
        if not self.clear or len(self.shown) < 2:
            return None
        if isinstance(self.value, list):
            return int(self.value[0]) if self.value and isinstance(self.value[0], int) else None
        return self.value if isinstance(self.value, int) else None


@dataclass(frozen=True)
class AskedTotals:
    """The prompts, tokens, dollars and seconds of a re-ranking without stored answers; equal prompts count once."""

    prompts: int
    tokens: int
    """Tokens of prompts and answers; 0 if not counted."""
    answer_tokens: int
    """0 if not counted."""
    dollars: float
    """NaN without a price."""
    seconds: float
    """Sum over answers, which may overlap."""
    unclear: int
    """Answers without a whole verdict."""


@dataclass(eq=False)
class _LoggedScorer:
    """A language model's scorer that records every answer in `answers`."""

    scorer: LLMScorer
    sample: int = 0
    """Number, from 0, of the answer to take for each prompt."""
    answers: list[HeardAnswer] = field(default_factory=list)
    use: ServiceUsage = field(default_factory=lambda: ServiceUsage(""))

    def scores(self, queries: Queries, candidates: Run, context: Context = IN_MEMORY) -> Float64:
        if len(candidates.doc) == 0:
            return np.empty(0)
        reranker = self.scorer.reranker
        with cached_chat(reranker.chat, reranker.concurrency, self.use, context.reuse) as runner:
            log = _LoggedRunner(runner, self.sample)
            task = RerankTask(self.scorer, log, queries, candidates, context.progress, log.record_verdict)
            log.current_query = lambda: task.query_shown
            values = task.candidate_values()
        names = queries.ids.tolist()
        self.answers += [
            HeardAnswer(names[query], prompt, passages, kind, value)
            for (query, prompt, passages), (kind, value) in zip(log.prompts, log.verdicts, strict=True)
        ]
        return fill_unscored(values, candidates.ptr)

    def costs(self) -> Costs:
        return Costs(services=(self.use.named(self.scorer.reranker.chat.model),))

    def totals(self) -> AskedTotals:
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
        self.verdicts.append((kind, value))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


# ----------
# Candidates that are found once and re-ranked many times: in other orders, to other depths, asked again.


RESULT_DEPTH = 1000
"""Documents of a ranking that are scored, as in `weir run`."""
SAMPLE_SEED = 20_231_107


@dataclass(frozen=True, eq=False)
class _RerankedOnce:
    """One re-ranking of the candidates, with its scores and answers."""

    run: Run
    values: Float64
    """The measure by query, float64[queries] in order of identifiers."""
    answers: tuple[HeardAnswer, ...]
    totals: AskedTotals


@dataclass(frozen=True, eq=False)
class _StudiedCandidates:
    """A first stage's candidates for the judged queries, and the language model that re-ranks them."""

    pipeline: Pipeline
    reranker: LLMReranker
    corpus: Corpus
    queries: Queries
    qrels: Qrels
    measure: Measure
    found: Run
    """Deep enough for `depth` and for the results."""
    shown: int
    """Most candidates of a query that the declared re-ranker takes."""
    depth: int
    """Most candidates of a query in any study."""
    drop_self: bool

    def reranked(
        self, reranker: LLMReranker, sample: int = 0, progress: Progress | None = None
    ) -> _RerankedOnce:
        """Re-rank the candidates; raises BadValue for a depth beyond them.

        sample: number, from 0, of the answer to take for each prompt.
        """
        if reranker.depth is not None and reranker.depth > self.depth:
            raise BadValue(f"candidates were found to {self.depth}; a depth of {reranker.depth} needs more")
        scorer = _LoggedScorer(reranker.ready(self.corpus), sample)
        system = replace(self.pipeline, reranker=reranker)
        searcher = RerankingSearcher(system, self.corpus, _FixedRun(self.found), scorer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)  # what is unclear is counted
            run = searcher.search(self.queries, max(RESULT_DEPTH, self.depth) + 1, Context(progress=progress))
        run = run.without_self() if self.drop_self else run
        run = run.top(RESULT_DEPTH) if len(run.doc) else run
        values = score_run(self.qrels, run, [self.measure]).in_id_order(str(self.measure))
        return _RerankedOnce(run, values, tuple(scorer.answers), scorer.totals())


@dataclass(frozen=True, eq=False)
class _FixedRun:
    run: Run

    def search(self, queries: Queries, k: int = ANSWERS, context: Context = IN_MEMORY) -> Run:
        return self.run.top(k)

    search_restricted = search
    costs = only_time


def _candidates_of(
    dataset: Dataset, system: Retriever, measure: Measure, depths: tuple[int, ...], limit: int | None
) -> _StudiedCandidates:
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
    return _StudiedCandidates(
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
# Dependence of verdicts on the place in a prompt, the order of two documents, and asking again.


@dataclass(frozen=True)
class FirstPlace:
    """How often answers rank first the document that stands at one place of the prompt."""

    place: int
    times: int
    share: float
    """Of the prompts, with a 95% interval over queries."""
    low: float
    high: float
    p: float
    """Exact binomial test against an even share, Holm-corrected over all positions."""


@dataclass(frozen=True)
class PromptPlaces:
    """In prompts of `size` documents, how often the document at each position is ranked first."""

    size: int
    """Documents in a prompt."""
    shown: int
    """All prompts of this size."""
    prompts: int
    """Prompts with a whole verdict."""
    even: float
    """Expected share of each position for a model that ignores positions."""
    places: tuple[FirstPlace, ...]


@dataclass(frozen=True)
class OrderFlips:
    """How often a model's verdict followed the order of two documents, asked about in both orders."""

    compared: int
    """Pairs asked about in both orders."""
    pairs: int
    """Of these, pairs with a whole verdict both times."""
    flipped: float
    """Share of `pairs` decided by position instead of document, with a 95% interval over queries; NaN without
    pairs."""
    low: float
    high: float
    first: float
    """Share of the flipped pairs in which the document named first won both times; NaN without any."""


@dataclass(frozen=True)
class SameVerdicts:
    """Agreement of several answers to the same prompts."""

    samples: int
    """Answers to each prompt."""
    prompts: int
    """Prompts asked in every sample."""
    others: int
    """Prompts of some samples only."""
    equal: float
    """Share of equal pairs of answers to a prompt ("no verdict" is a value), with a 95% interval over queries."""
    low: float
    high: float
    deviation: float
    """Mean standard deviation (n - 1) of a prompt's scores; NaN if verdicts are no scores."""


def prompt_places(runs: Sequence[Sequence[HeardAnswer]]) -> tuple[PromptPlaces, ...]:
    """Return how often answers rank the passage at each position first, by number of passages in the prompt.

    Only the first prompt about a query counts, if it has two passages or more.
    """
    # Only the first prompt about each query counts, as its order does not follow from answers.
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
    above = binomial_tail(successes, trials, chance)
    below = binomial_tail(trials - successes, trials, 1 - chance)
    return min(1.0, 2 * min(above, below))


def _interval(numerator: Float64, denominator: Float64) -> tuple[float, float]:
    if not denominator.any():
        return math.nan, math.nan
    return ratio_interval((numerator, denominator), share=True)


def _share_bounds(found: Counter[str], of: Counter[str]) -> tuple[float, float]:
    queries = sorted(of)
    return _interval(*(np.array([float(one[query]) for query in queries]) for one in (found, of)))


def order_flips(answers: Sequence[HeardAnswer]) -> OrderFlips | None:
    """Return how often verdicts on two documents change with their order in the prompt; None if no two were shown in
    both."""
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
    return OrderFlips(
        len(both),
        len(decided),
        len(flips) / len(decided) if decided else math.nan,
        *_share_bounds(flipped, pairs),
        sum(one == 1 for _, one in flips) / len(flips) if flips else math.nan,
    )


def same_verdicts(samples: Sequence[Sequence[HeardAnswer]]) -> SameVerdicts:
    """Return how often two samples of answers give a prompt the same verdict; NaN without a prompt that all samples
    have.

    Answers without a clear verdict equal one another.
    """
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
    return SameVerdicts(
        len(samples),
        len(common),
        others,
        sum(equal.values()) / sum(pairs.values()) if pairs else math.nan,
        *_share_bounds(equal, pairs),
        math.fsum(deviations) / len(deviations) if deviations else math.nan,
    )


# ----------
# The studies and their records.
#
# FOLDER/orders.json    candidates in other orders, and places in their prompts
#        samples.json   the same prompts asked again, and pairs in both orders
#        depths.json    cost and quality of more candidates
#
# Each is sealed and holds its declaration and its result; one of the same declaration is read instead of made. The
# answers are kept in Weir's home, so an interrupted study asks for nothing twice.


T = TypeVar("T")


@named_arguments
@dataclass(frozen=True)
class StudyRules:
    """Settings of a sensitivity study. Raises BadValue for numbers out of range."""

    orders: int = 5
    """Random orders of the candidates; 0: none."""
    samples: int = 5
    """Answers to each prompt; 0: none."""
    depths: tuple[int, ...] = (5, 10, 20, 50)
    """Candidates to re-rank; () skips this study."""
    queries: int | None = None
    """Judged queries at most, drawn at random; by default all."""

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
    """Statistics of several re-rankings of the same candidates."""

    measure: str
    queries: int
    mean: float
    """Mean over re-rankings and queries, with its 95% interval over queries."""
    low: float
    high: float
    means: tuple[float, ...]
    """Mean of each re-ranking."""
    deviation: float
    """Standard deviation of a re-ranking's mean with queries fixed, estimated from the variance of each query."""
    error: float
    """Standard error of `mean` over queries."""
    tau: float
    """Mean Kendall correlation of two re-rankings on the re-ranked documents."""
    rbo: float
    """Mean rank-biased overlap of two re-rankings."""


@dataclass(frozen=True)
class OrderStudy:
    """Scores when the candidates are shown in several random orders."""

    spread: Spread
    own: float
    """Mean of the measure in the first stage's order."""
    lead: float
    """`own` minus the mean over random orders, with its 95% interval over queries."""
    low: float
    high: float
    places: tuple[PromptPlaces, ...]
    """One for each size of prompt."""
    totals: AskedTotals


@dataclass(frozen=True)
class SampleStudy:
    """Re-rankings of the same candidates in the same order, each prompt asked several times."""

    spread: Spread
    verdicts: SameVerdicts
    flips: OrderFlips | None
    """Pairs in both orders, of the first sample."""
    totals: AskedTotals


@dataclass(frozen=True)
class DepthStudy:
    """Mean score and cost when only the first `depth` candidates are re-ranked."""

    depth: int
    mean: float
    low: float
    """95% interval over queries, to `high`."""
    high: float
    totals: AskedTotals
    efficient: bool
    """Pareto-optimal: no other depth is better at no more tokens (prompts, if tokens are not counted)."""


@dataclass(frozen=True)
class Sensitivity:
    """Studies of order, chance and depth for a system on a collection; None or () for any left out."""

    dataset: str
    system: str
    measure: str
    orders: OrderStudy | None
    samples: SampleStudy | None
    depths: tuple[DepthStudy, ...]
    notes: tuple[str, ...]
    """Reasons for studies that the system, not the rules, left out."""


@dataclass(frozen=True)
class _Depths:
    depths: tuple[DepthStudy, ...]


def sensitivity(
    dataset: Dataset,
    system: Retriever,
    measure: Measure,
    rules: StudyRules,
    out: Path | None,
    watch: Watch = lambda what, done, total: None,
) -> Sensitivity:
    """Return how a system such as bm25 >> llm("listwise", ...) depends on order, chance and depth.

    out: folder of records, from which the same call continues; None keeps none.

    Raises BadValue for another system, ServiceError if the budget ends or a prompt gets no answer.
    """
    depths = tuple(sorted(set(rules.depths)))
    candidates = _candidates_of(dataset, system, measure, depths, rules.queries)
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
    candidates: _StudiedCandidates
    declared: dict[str, object]
    out: Path | None
    watch: Watch

    def record(self, name: str, kind: type[T], own: dict[str, object], make: Callable[[], T]) -> T:
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
            write_sealed(own_file(path), {"study": name, "declared": declared, "found": json_value(study)})
        return study

    def orders(self, count: int) -> OrderStudy:
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
        reranker = self.candidates.reranker
        runs = [
            self.candidates.reranked(reranker, sample, self._progress("samples", sample, count))
            for sample in range(count)
        ]
        verdicts = same_verdicts([one.answers for one in runs])
        return SampleStudy(self._spread(runs), verdicts, order_flips(runs[0].answers), _together(runs))

    def depths(self, depths: Sequence[int]) -> _Depths:
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

    def _spread(self, runs: Sequence[_RerankedOnce]) -> Spread:
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


def _together(runs: Sequence[_RerankedOnce]) -> AskedTotals:
    parts = [one.totals for one in runs]
    return AskedTotals(
        sum(one.prompts for one in parts),
        sum(one.tokens for one in parts),
        sum(one.answer_tokens for one in parts),
        math.fsum(one.dollars for one in parts),
        math.fsum(one.seconds for one in parts),
        sum(one.unclear for one in parts),
    )
