"""Train encoders further on pairs, by sentence-transformers, with a record."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from weir.argument_types import checked, named_arguments
from weir.core import frames
from weir.core.results import result_html, result_text
from weir.core.rounding import counted
from weir.core.scores import Note
from weir.core.tables import Table, table_of
from weir.datasets.load import Dataset, load
from weir.errors import BadValue, StoreError, require
from weir.files.atomic import atomic_dir
from weir.files.integrity import open_folder, seal_folder
from weir.files.leases import locked
from weir.files.paths import path_of
from weir.files.text_files import Watch
from weir.models.checkpoints import (
    TRAINING_RECORD,
    checkpoint_fingerprint,
    fetch,
    locate,
    open_checkpoint,
    trained_on,
)
from weir.models.hardware import declared_device, package_version
from weir.models.tokens import quiet
from weir.plugins.training.pairs import (
    VIEW,
    PairSource,
    TrainingPairs,
    answers_of,
    known_pairs,
    with_margins,
    with_negatives,
)
from weir.registry import check_whole
from weir.settings import settings

FORMAT = 1
DTYPES = ("fp32", "bf16")
SIMILARITIES = ("cosine", "dot")
SCALES = {"cosine": 20.0, "dot": 1.0}
"""Factors of similarities before the softmax, as in sentence-transformers and DPR."""
SAVE_SECONDS = 60.0
"""Seconds between checkpoints: the work that a kill costs."""
LOSSES_KEPT = 50
"""Points of the loss curve in a record."""
WARM_SHARE = 0.1
"""Share of the steps in which the rate rises from 0."""
PACKAGES = ("sentence-transformers", "transformers", "torch", "tokenizers")


@named_arguments
@dataclass(frozen=True)
class AdaptRules:
    """Settings of a training; raises BadValue out of range."""

    base: str = "minilm"
    """The checkpoint to begin from: a name of weir list models, of the hub, or a folder."""
    similarity: Literal["cosine", "dot"] = "cosine"
    """How vectors are compared; with dot their length counts."""
    negatives: int = 1
    """Negative documents of each pair, from BM25's ranking."""
    depth: int = 100
    """Negatives are drawn from this many of BM25's first documents."""
    margins: str = ""
    """A cross-encoder whose differences of scores are learned (MarginMSE); "" learns by a softmax over a batch's
    positives and negatives.
    """
    epochs: int = 1
    """Passes over the pairs."""
    batch: int = 32
    """Pairs of a step."""
    rate: float = 2e-5
    """The largest learning rate of AdamW."""
    dtype: Literal["fp32", "bf16"] = "fp32"
    """What products are computed in; weights and steps stay in fp32."""
    max_length: int = 0
    """Tokens of a text; 0 takes the checkpoint's."""
    most: int = 0
    """Pairs at most, drawn; 0 takes all."""
    seed: int = 0
    """Seed of all draws."""
    drop_known: bool = False
    """Leave out pairs whose query is evaluated, instead of stopping."""

    def __post_init__(self) -> None:
        if self.similarity not in SIMILARITIES:
            raise BadValue(f"similarity is {self.similarity!r}; expected {' or '.join(SIMILARITIES)}")
        if self.dtype not in DTYPES:
            raise BadValue(f"dtype is {self.dtype!r}; expected {' or '.join(DTYPES)}")
        least = {"negatives": 0, "depth": 1, "epochs": 1, "batch": 2, "max_length": 0, "most": 0, "seed": 0}
        for name, bound in least.items():
            check_whole(name, getattr(self, name), bound)
        if not 0 < self.rate <= 1:
            raise BadValue(f"rate is {self.rate!r}; expected a number above 0, such as 2e-5")
        if self.margins and not self.negatives:
            raise BadValue("margins are of negatives: take negatives from 1")


@dataclass(frozen=True, repr=False)
class Adaptation:
    """The outcome of training an encoder."""

    folder: str
    """The checkpoint's folder."""
    collection: str
    base: str
    """The checkpoint it began with."""
    pairs: int
    dropped: int
    """Pairs left out because their query is evaluated."""
    steps: int
    losses: tuple[tuple[int, float], ...]
    """(step, mean loss since the previous point)."""
    seconds: float
    similarity: str
    reused: bool = False
    """It was trained before this call."""

    def tables(self) -> tuple[Table, ...]:
        facts = [
            ["", ""],
            ["base", self.base],
            ["collection", self.collection],
            ["similarity", self.similarity],
            ["pairs", f"{self.pairs:,}"],
            ["steps", f"{self.steps:,}"],
            ["seconds", f"{self.seconds:,.0f}"],
        ]
        points = self.losses[:: max(1, len(self.losses) // 10)]
        curve = [["step", "loss"], *([f"{step:,}", f"{loss:.4f}"] for step, loss in points)]
        return table_of(facts, title=self.folder), table_of(curve, title="loss")

    to_frame = frames.to_frame

    def columns(self) -> dict[str, list[object]]:
        return frames.columns_of({"step": step, "loss": loss} for step, loss in self.losses)

    def notes(self) -> tuple[Note, ...]:
        notes = []
        if self.dropped:
            notes.append(Note(f"{counted(self.dropped, 'pair')} left out: their queries are evaluated"))
        if self.reused:
            notes.append(Note("it was trained already; nothing was done"))
        notes.append(Note(f"search with it: weir run -d {self.collection} -s 'dense(\"{self.folder}\")'"))
        return tuple(notes)

    __repr__ = result_text
    _repr_html_ = result_html


@checked
def adapt(
    source: PairSource,
    dataset: Dataset | str | Path,
    out: str | Path,
    rules: AdaptRules | None = None,
    evaluated: Sequence[Dataset | str | Path] = (),
    progress: Watch | None = None,
) -> Adaptation:
    """Train an encoder further on pairs of a collection; write a checkpoint with a record, and return the
    outcome.

    source: Crops(), GivenPairs() or WrittenQuestions().
    dataset: collection of the pairs. Its queries count as evaluated.
    out: a new folder, or the folder of the same finished training.
    rules: settings of the training.
    evaluated: further collections whose queries must not be learned.
    progress: called with (step, done, total).

    The same call continues an interrupted training. Raises BadValue for pairs whose query is evaluated
    (unless dropped), fewer than 2 pairs and a folder of something else, MissingExtra without the extra
    `torch`, and the errors of loading and models.
    """
    rules, progress, out = rules or AdaptRules(), progress or _silent, path_of(out)
    require("sentence_transformers", extra="torch")
    collection = dataset if isinstance(dataset, Dataset) else load(dataset)
    fetch(rules.base)
    others = [one if isinstance(one, Dataset) else load(one) for one in evaluated]
    about = _about(source, collection, rules, others)
    if (out / TRAINING_RECORD).exists():
        return _reused(out, about)
    if out.exists():
        raise BadValue(f"{out} is there already and no training wrote it; give a new folder")
    pairs = source.pairs(collection, rules.seed, progress)
    answers = answers_of(pairs)
    pairs, dropped = _unknown(pairs, [collection, *others], rules.drop_known)
    if rules.most and len(pairs) > rules.most:
        generator = np.random.default_rng(rules.seed)
        pairs = pairs.take(sorted(generator.choice(len(pairs), rules.most, replace=False).tolist()))
    if len(pairs) < 2:
        raise BadValue(f"{counted(len(pairs), 'pair')} cannot be learned from; expected 2 or more")
    pairs = with_negatives(pairs, answers, collection, rules.negatives, rules.depth, rules.seed, progress)
    if rules.margins:
        pairs = with_margins(pairs, collection.corpus, rules.margins, progress)
    key = hashlib.blake2b(
        json.dumps([about, pairs.content_hash()], sort_keys=True).encode("utf-8"), digest_size=16
    ).hexdigest()
    work = settings().home / "training" / key
    work.mkdir(parents=True, exist_ok=True)
    with locked(work / "lock"):
        if (out / TRAINING_RECORD).exists():  # another process has trained it meanwhile
            return _reused(out, about)
        model, losses, seconds = _train(pairs, collection, rules, work, progress)
        result = Adaptation(
            str(out), collection.name, rules.base, len(pairs), dropped, losses[-1][0] if losses else 0,
            _thinned(losses), round(seconds, 1), rules.similarity,
        )  # fmt: skip
        known = sorted({*(trained_on(rules.base) or ()), collection.name})
        facts = {
            "about": about, "base": rules.base, "pairs": len(pairs), "digest": pairs.content_hash(), "dropped": dropped,
            "steps": result.steps, "losses": result.losses, "seconds": result.seconds, "trained_on": known,
            "base_known": trained_on(rules.base) is not None,
        }  # fmt: skip
        with atomic_dir(out) as folder:
            with _silent_libraries():
                model.save_pretrained(str(folder), create_model_card=False)
            seal_folder(folder, TRAINING_RECORD, facts)
        shutil.rmtree(work, ignore_errors=True)
    return result


@contextmanager
def _silent_libraries() -> Iterator[None]:
    data = require("datasets", extra="torch")
    bars = data.are_progress_bars_disabled()
    data.disable_progress_bars()
    try:
        with quiet(require("transformers", extra="torch")):
            yield
    finally:
        if not bars:
            data.enable_progress_bars()


def _silent(what: str, done: int, total: int) -> None: ...


def _about(
    source: PairSource, dataset: Dataset, rules: AdaptRules, others: Sequence[Dataset]
) -> dict[str, object]:
    given = {f.name: getattr(rules, f.name) for f in fields(rules)}
    about = {
        "format": FORMAT,
        "source": source.describe(),
        "collection": dataset.name,
        "documents": dataset.corpus.fingerprint,
        "evaluated": {one.name: one.queries_fingerprint for one in (dataset, *others)},
        "rules": given | {"base": checkpoint_fingerprint(open_checkpoint(rules.base))},
        "device": declared_device(settings().device).partition(":")[0],
        "packages": {name: package_version(name) for name in PACKAGES},
    }
    if rules.margins:
        about["margins"] = checkpoint_fingerprint(open_checkpoint(rules.margins))
    return json.loads(json.dumps(about, default=str))  # type: ignore[no-any-return]  # as it reads back


def _reused(out: Path, about: dict[str, object]) -> Adaptation:
    facts = open_folder(out, TRAINING_RECORD)
    try:
        stored: dict[str, Any] = facts["about"]
        if stored != about:
            other = [name for name in about if stored.get(name) != about[name]]
            raise BadValue(
                f"{out} holds another training (its {', '.join(other) or 'record'} differ); give another folder"
            )
        losses = tuple((int(step), float(loss)) for step, loss in facts["losses"])
        return Adaptation(
            str(out), stored["collection"], facts["base"], facts["pairs"], facts["dropped"], facts["steps"],
            losses, facts["seconds"], stored["rules"]["similarity"], True,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{out / TRAINING_RECORD}: not a record of a training ({error})") from None


def _unknown(pairs: TrainingPairs, evaluated: Sequence[Dataset], drop: bool) -> tuple[TrainingPairs, int]:
    out: set[int] = set()
    for dataset in evaluated:
        rows, queries = known_pairs(pairs, dataset)
        if rows and not drop:
            raise BadValue(
                f"{queries:,} of the {len(dataset.qrels.queries):,} evaluated queries of {dataset.name} are among the "
                f"training pairs ({len(rows):,} of {len(pairs):,} pairs, such as {pairs.queries[rows[0]][:60]!r}); "
                "train on others, or leave them out with `drop_known=True`"
            )
        out.update(rows)
    if not out:
        return pairs, 0
    return pairs.take([row for row in range(len(pairs)) if row not in out]), len(out)


def _thinned(losses: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    size = max(1, -(-len(losses) // LOSSES_KEPT))
    parts = [losses[i : i + size] for i in range(0, len(losses), size)]
    return tuple((part[-1][0], round(sum(loss for _, loss in part) / len(part), 6)) for part in parts)


def _train(
    pairs: TrainingPairs, dataset: Dataset, rules: AdaptRules, work: Path, progress: Watch
) -> tuple[Any, list[tuple[int, float]], float]:
    library = require("sentence_transformers.sentence_transformer", extra="torch")
    torch, transformers = require("torch", extra="torch"), require("transformers", extra="torch")
    data = require("datasets", extra="torch")
    losses = require("sentence_transformers.sentence_transformer.losses", extra="torch")
    arguments = require("sentence_transformers.sentence_transformer.training_args", extra="torch")
    device = declared_device(settings().device)
    if device == "cpu":
        torch.set_num_threads(settings().threads)
    transformers.set_seed(rules.seed)
    with _silent_libraries():
        model = _model(library, rules, device)
        loss = _loss(losses, model, rules)
        rows = _columns(pairs, dataset)
        told = _callback(transformers, work, progress)
        trainer = library.SentenceTransformerTrainer(
            model=model,
            args=arguments.SentenceTransformerTrainingArguments(
                output_dir=str(work), num_train_epochs=rules.epochs, per_device_train_batch_size=rules.batch,
                learning_rate=rules.rate, warmup_steps=WARM_SHARE, seed=rules.seed, data_seed=rules.seed,
                logging_steps=1, save_strategy="no", save_total_limit=2, report_to="none", disable_tqdm=True,
                use_cpu=device == "cpu", bf16=rules.dtype == "bf16", logging_nan_inf_filter=False,
                batch_sampler="batch_sampler" if rules.margins else "no_duplicates",
            ),
            train_dataset=data.Dataset.from_dict(rows),
            loss=loss,
            callbacks=[told],
        )  # fmt: skip
        trainer.remove_callback(transformers.PrinterCallback)
        begun = time.monotonic()
        whole = [path.parent for path in work.glob("checkpoint-*/whole")]
        last = max(whole, key=lambda path: int(path.name.partition("-")[2]), default=None)
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    curve = [(int(e["step"]), float(e["loss"])) for e in trainer.state.log_history if "loss" in e]
    if any(math.isnan(loss) for _, loss in curve):
        raise BadValue("the loss is no number any more; take a smaller rate")
    return model, curve, time.monotonic() - begun


def _model(library: Any, rules: AdaptRules, device: str) -> Any:  # noqa: ANN401 - a model of sentence-transformers
    modules = require("sentence_transformers.base.modules.normalize", extra="torch")
    model = library.SentenceTransformer(str(locate(rules.base)), device=device, local_files_only=True)
    if rules.similarity == "dot":
        kept = [module for module in model if not isinstance(module, modules.Normalize)]
        model = library.SentenceTransformer(modules=kept, device=device)
    model.similarity_fn_name = rules.similarity
    model.model_card_data.widget = [{}]  # else examples for a page that is not written are chosen, with a bar
    if rules.max_length:
        model.max_seq_length = rules.max_length
    return model


def _loss(losses: Any, model: Any, rules: AdaptRules) -> Any:  # noqa: ANN401 - modules and models of a library
    util = require("sentence_transformers.util", extra="torch")
    if rules.margins:
        pairwise = util.pairwise_cos_sim if rules.similarity == "cosine" else util.pairwise_dot_score
        return losses.MarginMSELoss(model, similarity_fct=pairwise)
    compared = util.cos_sim if rules.similarity == "cosine" else util.dot_score
    return losses.MultipleNegativesRankingLoss(model, scale=SCALES[rules.similarity], similarity_fct=compared)


def _columns(pairs: TrainingPairs, dataset: Dataset) -> dict[str, list[Any]]:
    corpus = dataset.corpus
    rows: dict[str, list[Any]] = {"anchor": list(pairs.queries), "positive": list(pairs.positives)}
    texts = corpus.view(VIEW, 0, len(corpus)) if pairs.negatives.size else None
    for place in range(pairs.negatives.shape[1]):
        assert texts is not None
        rows[f"negative_{place + 1}"] = texts.take(pairs.negatives[:, place]).tolist()
    if pairs.margins is not None:
        margins = pairs.margins.tolist()
        rows["label"] = [row[0] for row in margins] if pairs.margins.shape[1] == 1 else margins
    return rows


def _callback(transformers: Any, work: Path, progress: Watch) -> Any:  # noqa: ANN401 - of a library's class
    class ProgressCallback(transformers.TrainerCallback):  # type: ignore[misc]  # the library takes no others
        saved = time.monotonic()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:  # noqa: ANN401 - the library's
            progress("training", state.global_step, state.max_steps)
            if time.monotonic() - self.saved >= SAVE_SECONDS and state.global_step < state.max_steps:
                control.should_save, self.saved = True, time.monotonic()
            return control

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401 - the library's
            (work / f"checkpoint-{state.global_step}" / "whole").touch()

    return ProgressCallback()
