"""An encoder behind an embedding API, as a value and ready to be asked."""

from __future__ import annotations

import hashlib
import json
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from weir.core.strings import Strings
from weir.encode.api.client import Client, TooMuchError
from weir.encode.api.providers import PROVIDERS, Ask, Provider, UnusableError, rows
from weir.encode.encoder import Float32, Kind, Progress
from weir.encode.recipes.encoder_recipe import filled_prompt
from weir.errors import BadValue, ServiceError, StoreError
from weir.io.storage.atomic import locked, write_json
from weir.services.http import check_base, check_key
from weir.services.keys import Key
from weir.services.limits import Clock, Limits, Spent, estimated, paid
from weir.settings import secret, settings

__all__ = ["Hosted", "LoadedHosted", "is_hosted"]

PROBE = "A weir is a low dam across a river; the water that runs over it can be measured."
"""The text whose vector tells whether the model behind an address is still the same."""
TOLERANCE = 1e-3
"""Cosine distance up to which two answers to the probe count as the same model's; precisions differ by less."""

_SETTINGS: list[tuple[str, Callable[[object], bool], str]] = [
    ("similarity", lambda v: v in ("cosine", "dot"), "cosine or dot"),
    ("query_prompt", lambda v: isinstance(v, str), "a text"),
    ("document_prompt", lambda v: isinstance(v, str), "a text"),
    ("dimensions", lambda v: type(v) is int and v > 0, "a whole number from 1"),
    ("max_length", lambda v: type(v) is int and v > 0, "a whole number from 1"),
]


def is_hosted(model: str) -> bool:
    """Whether a model's name is of the form provider:model, as in openai:text-embedding-3-small."""
    return re.match(r"[A-Za-z][\w-]+:[^\\/]", model) is not None


@dataclass(frozen=True)
class Hosted:
    """How an embedding API turns texts into vectors.

    model: provider:model, where the provider is openai (or any server that speaks its language, by `base`),
    cohere or voyage. base: the address up to the version, such as "http://localhost:8080/v1"; None for the
    provider's own. dimensions: asked of the provider, None for the model's own. similarity: cosine (vectors have
    length 1) or dot (as they come). query_prompt, document_prompt: put before a text. max_length: tokens of a
    text at most, estimated as a third of its bytes; what is longer is cut; None leaves it to the provider.
    key: the environment variable that holds the key, WEIR_KEY_ and a name, so that no experiment file sends
    another secret of this machine away; None for the provider's usual one at its own address, and for none at any
    other. Plain http reaches this machine only. Raises UnknownName for an unknown provider, BadValue for settings.
    """

    model: str
    base: str | None = None
    dimensions: int | None = None
    similarity: str = "cosine"
    query_prompt: str = ""
    document_prompt: str = ""
    max_length: int | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not is_hosted(self.model):
            raise BadValue(
                f"model is {self.model!r}; expected provider:model, such as openai:text-embedding-3-small"
            )
        PROVIDERS.get(self.model.partition(":")[0])
        if self.base is not None:
            check_base(self.base)
        for name, fits, expected in _SETTINGS:
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise BadValue(f"{name} is {value!r}; expected {expected}")
        if self.key is not None:
            check_key(self.key, self.provider.variable, self.base)

    @property
    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """How a system that takes these settings prints them: the model, and what is not by default."""
        given = [f for f in fields(self) if f.name != "model" and getattr(self, f.name) != f.default]
        return [self.model], {f.name: getattr(self, f.name) for f in given}

    @property
    def provider(self) -> Provider:
        """The API that is asked."""
        return PROVIDERS.get(self.model.partition(":")[0])

    @property
    def address(self) -> str:
        """The address up to the version."""
        return (self.base or self.provider.base).rstrip("/")

    def describe(self, device: str = "auto") -> dict[str, object]:
        """Everything that decides the vectors; asks the API once for the probe where that was never done."""
        return self.load(device).identity()

    def fetch(self) -> None:
        """Ask the API once for the probe, where that was never done; `describe` then asks nothing."""
        self.load()

    def adapted_to(self, collection: str, instruction: str) -> Hosted:
        """The encoder with {task} in its prompts filled in; see Encoder.adapted_to."""
        query, document = (
            filled_prompt(prompt, instruction) for prompt in (self.query_prompt, self.document_prompt)
        )
        return replace(self, query_prompt=query, document_prompt=document)

    def load(
        self, device: str = "auto", limits: Limits | None = None, clock: Clock | None = None
    ) -> LoadedHosted:
        """The encoder, ready: the vector of a probe text is known from before, or asked for now.

        device: taken for the sake of other encoders, and of no effect. limits: None for the environment's, which
        bound what all encoders of this process spend together; others bound this one alone.
        Raises ServiceError where the key is missing or the API does not answer as it should.
        """
        used = purse() if limits is None else SharedBudget()
        key = Key(*self._key())
        name = (self.model, self.address, key.variable)
        if name not in used.clients:
            bounds, url = limits or Limits.of(settings()), self.address + self.provider.path
            used.clients[name] = Client(self.provider, url, key, bounds, clock or Clock(), used.spent)
        client, path = used.clients[name], self._memory()
        client.key = key  # it may have been set, or changed, since
        if path not in used.probes:
            used.probes[path] = _remembered(path) or self._first(path, client)
        return LoadedHosted(self, client, used.probes[path])

    def _key(self) -> tuple[str | None, str | None]:
        variable = self.key or (self.provider.variable if self.base is None else None)
        return variable, secret(variable) if variable else None

    def _first(self, path: Path, client: Client) -> ProbeVector:
        """The probe, asked for and kept; processes that begin together keep the same."""
        with locked(path.with_suffix(".lock")):
            if (known := _remembered(path)) is not None:
                return known
            vector = _asked(self, client)
            seen = time.strftime("%Y-%m-%d", time.gmtime(client.clock.wall()))
            kept = {"probe": PROBE, "model": self.model, "base": self.address, "seen": seen}
            write_json(path, kept | {"vector": vector.tolist()})
        return ProbeVector(path, vector, seen, moved=0.0)

    def _memory(self) -> Path:
        seen = json.dumps([self.model, self.address, self.dimensions, PROBE])
        name = hashlib.blake2b(seen.encode("utf-8"), digest_size=8).hexdigest()
        return settings().home / "encoders" / f"api-{name}.json"


@dataclass(eq=False)
class ProbeVector:
    """The vector of the probe text when it was first asked for; moved: how far it lies from today's, once known."""

    path: Path
    vector: Float32
    seen: str
    moved: float | None = None

    @property
    def fingerprint(self) -> str:
        """What stands for the model in names of what is kept."""
        return hashlib.blake2b(self.vector.tobytes(), digest_size=8).hexdigest()


@dataclass
class SharedBudget:
    """What encoders that are paid for together share: what they spent, their clients, the probes they know."""

    spent: Spent = field(default_factory=Spent)
    clients: dict[tuple[str, str, str | None], Client] = field(default_factory=dict)
    probes: dict[Path, ProbeVector] = field(default_factory=dict)


@cache
def purse() -> SharedBudget:
    """What the encoders of this process share; what they spent counts with all that the process pays for."""
    return SharedBudget(paid())


@dataclass(frozen=True, eq=False)
class LoadedHosted:
    """An embedding API ready to be asked; nothing is asked before a text is."""

    encoder: Hosted
    client: Client = field(repr=False)
    probe: ProbeVector

    @property
    def dimensions(self) -> int:
        """The dimension of a vector."""
        return len(self.probe.vector)

    def identity(self) -> dict[str, object]:
        """Everything that can move a number, the same before and after anything is asked."""
        encoder, kinds = self.encoder, self.encoder.provider.kinds
        found: dict[str, object] = {
            "model": encoder.model,
            "base": encoder.address,
            "revision": self.probe.fingerprint,
            "dimensions": self.dimensions,
            "similarity": encoder.similarity,
            "normalised": encoder.similarity == "cosine",
            "query": filled_prompt(encoder.query_prompt, "") + "{text}",
            "document": filled_prompt(encoder.document_prompt, "") + "{text}",
            "max_length": self._longest(),
        }
        return found | {f"{kind} type": name for kind, name in sorted(kinds.items()) if name}

    def describe(self) -> dict[str, object]:
        """The identity, how far the model moved since it was first seen, and what this process spent."""
        spent, cost = self.client.spent, self.client.limits.cost(self.client.spent.tokens)
        use = {f.name: getattr(spent, f.name) for f in fields(spent)}
        return self.identity() | {"moved": self.probe.moved} | {"spent": use | {"dollars": cost}}

    def estimate(self, texts: Iterable[str], kind: Kind = "document") -> Spent:
        """What encoding these texts would take, without asking anything."""
        source, waiting, total = iter(texts), deque[str](), Spent()
        while batch := self._batch(source, waiting, kind, self.encoder.provider.texts):
            total.requests += 1
            total.texts += len(batch)
            total.tokens += sum(map(estimated, batch))
        return total

    def encode(
        self, texts: Strings | Sequence[str], kind: Kind = "document", progress: Progress | None = None
    ) -> Float32:
        """One vector for each text, in their order: float32[N, d], of length 1 where similarity is cosine.

        Raises ServiceError as `stream` does; what was answered before is then lost to the caller.
        """
        total = len(texts)
        done = None if progress is None else partial(_report, progress, total)
        given = texts.tolist() if isinstance(texts, Strings) else texts
        blocks = list(self.stream(given, kind, done))
        return np.concatenate([np.zeros((0, self.dimensions), np.float32), *blocks])

    def stream(
        self, texts: Iterable[str], kind: Kind = "document", done: Callable[[int], None] | None = None
    ) -> Iterator[Float32]:
        """The vectors of a stream of texts in order, one block for each answer.

        The next request goes out when the next block is asked for, so whoever keeps a block before asking on
        never pays for a text twice. Requests that a server finds too large are halved. done: told the number of
        texts finished so far. Warns where the model has changed since it was first seen. Raises ServiceError
        where the budget ends, the provider refuses, or no attempt brings a usable answer.
        """
        source, waiting, finished = iter(texts), deque[str](), 0
        most = self.encoder.provider.texts
        while batch := self._batch(source, waiting, kind, most):
            if self.probe.moved is None:
                self._check_probe()
                waiting.extendleft(reversed(batch))  # the probe took its share of the budget
                continue
            try:
                vectors = self.client.ask(_ask(self.encoder, batch, kind), self.dimensions)
            except TooMuchError as error:
                if len(batch) == 1:
                    raise _refused(error, batch[0]) from None
                waiting.extendleft(reversed(batch))
                most = (len(batch) + 1) // 2
                continue
            except ServiceError as error:
                begins = f"the {kind} that begins {batch[0][:60]!r}"
                asked = begins if len(batch) == 1 else f"{len(batch)} {kind} texts, the first {begins}"
                raise ServiceError(f"{self.encoder.model}, asked for {asked}: {error}") from None
            finished += len(batch)
            if done is not None:
                done(finished)
            yield _unit(vectors) if self.encoder.similarity == "cosine" else vectors

    def _batch(self, source: Iterator[str], waiting: deque[str], kind: Kind, most: int) -> list[str]:
        """The next texts as they are sent, as many as fit; one at least, where there is one."""
        budget = self.client.room()
        batch: list[str] = []
        while len(batch) < most:
            if not waiting:
                given = next(source, None)
                if given is None:
                    break
                waiting.append(self._sent(given, kind))
            budget -= estimated(waiting[0])
            if batch and budget < 0:
                break
            batch.append(waiting.popleft())
        return batch

    def _sent(self, text: str, kind: Kind) -> str:
        """A text as it is sent: behind its prompt, cut, and a space where it is empty, which providers refuse."""
        encoder, longest = self.encoder, self._longest()
        text = filled_prompt(encoder.query_prompt if kind == "query" else encoder.document_prompt, "") + text
        if longest is not None and estimated(text) > longest:
            text = text.encode("utf-8", "replace")[: 3 * longest - 1].decode("utf-8", "ignore")
        return text or " "

    def _longest(self) -> int | None:
        return self.encoder.max_length or self.encoder.provider.longest

    def _check_probe(self) -> None:
        """Compare the model with the one first seen, once in a process and before anything is paid for."""
        probe = self.probe
        today = _asked(self.encoder, self.client).astype(np.float64)
        first = probe.vector.astype(np.float64)
        if len(today) != len(first):
            raise ServiceError(
                f"{self.encoder.model} now answers with {len(today)} dimensions, on {probe.seen} with "
                f"{len(first)}; remove {probe.path} to begin anew with the new model"
            )
        length = float(np.linalg.norm(today) * np.linalg.norm(first))
        probe.moved = max(0.0, 1.0 - float(today @ first) / length) if length else 0.0
        if probe.moved > TOLERANCE:
            warnings.warn(
                f"{self.encoder.model} has changed since {probe.seen}: the vector of the probe text lies "
                f"{probe.moved:.2g} (cosine distance; {TOLERANCE:g} is allowed) from where it lay; vectors kept "
                f"from then and asked for now do not belong together; remove {probe.path} to begin anew",
                stacklevel=3,
            )


def _ask(encoder: Hosted, texts: Sequence[str], kind: Kind) -> Ask:
    return Ask(encoder.model.partition(":")[2], texts, kind, encoder.dimensions)


def _asked(encoder: Hosted, client: Client) -> Float32:
    """The probe's vector as the API gives it now; raises ServiceError where it has other dimensions than asked."""
    try:
        vector: Float32 = client.ask(_ask(encoder, [PROBE], "document"), None)[0]
    except TooMuchError as error:
        raise ServiceError(str(error)) from None
    if encoder.dimensions not in (None, len(vector)):
        raise ServiceError(
            f"{client.url}: asked for {encoder.dimensions} dimensions, got {len(vector)}; "
            f"leave dimensions out where the model has one size"
        )
    return vector


def _remembered(path: Path) -> ProbeVector | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return ProbeVector(path, rows([kept["vector"]], 1, None)[0], str(kept["seen"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError, UnusableError) as error:
        raise StoreError(f"cannot read {path}: {error}; remove it, and the probe is asked for anew") from None


def _refused(error: TooMuchError, text: str) -> ServiceError:
    return ServiceError(
        f"{error}; the text begins {text[:60]!r} and has about {estimated(text):,} tokens (max_length cuts)"
    )


def _unit(vectors: Float32) -> Float32:
    length = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1.0)).astype(np.float32)


def _report(progress: Progress, total: int, finished: int) -> None:
    progress(finished, total)
