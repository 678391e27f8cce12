"""Run the fuzzers: so many inputs from a seed, as many as time allows, guided by coverage, or one input again.

    python -m fuzz.run                         the fixed-seed run of the tests
    python -m fuzz.run --seconds 600 --seed 7  other inputs, as long as that for each target
    python -m fuzz.run --coverage 600 rankings with atheris (make fuzz)
    python -m fuzz.run --replay FILE rankings  one input

Without coverage inputs that are answered or end as none before are changed further. Findings are written into
build/fuzz, one for each place in the code; what was tried when a process died is build/fuzz/current-....
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzz.targets import Target

ROOT = Path(__file__).resolve().parents[1]
FINDINGS = ROOT / "build" / "fuzz"
HANG_SECONDS = 120
"""After which the process ends with the places where its threads stand; the input stays in build/fuzz/current-...."""
MEMORY_BYTES = 1 << 30
"""What one input may add to the largest memory of the process."""
KEPT = 200
"""Inputs that were answered, and such that ended as none before, which are kept to be changed further."""


@dataclass
class Tally:
    """What became of the inputs of a target. places: findings by where they arose."""

    target: str
    inputs: int = 0
    refused: int = 0
    places: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@contextlib.contextmanager
def quiet_place() -> Iterator[Path]:
    """An empty folder, with WEIR_HOME in it, a key to be kept secret, and warnings other than Weir's as errors."""
    from fuzz.targets import KEY  # which is imported late, so that coverage is seen
    from weir.settings import settings

    memory = Path("/dev/shm")  # a file system in memory spares the disk millions of files
    base = tempfile.mkdtemp(prefix="weir-fuzz-", dir=memory if memory.is_dir() else None)
    place = Path(base) / "place"
    place.mkdir()
    os.environ |= {
        "WEIR_HOME": str(place / "home"),
        "WEIR_KEY_FUZZ": KEY,
        "WEIR_KEY_ALGOLIA": KEY,
        "WEIR_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": base,
    }
    settings.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for kind in (UserWarning, ResourceWarning, SyntaxWarning, DeprecationWarning):
                warnings.simplefilter("ignore", kind)
            yield place
    finally:
        shutil.rmtree(base, ignore_errors=True)


def emptied(place: Path) -> None:
    """Nothing of an input before."""
    for path in place.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def largest_memory() -> int:
    """The most bytes of memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def tried(target: Target, data: bytes, place: Path, timed: bool = True) -> str:
    """How an input ended: "" for an answer, else the kind of refusal; raises what is a finding.

    timed: whether its seconds count, as they do not while functions are compiled.
    """
    from weir.errors import WeirError, printable

    peak = largest_memory()
    began = time.process_time()
    ending = ""
    try:
        target.run(data, place)
    except WeirError as error:
        message = str(error)
        assert message == printable(message), "a message that moves the cursor"
        ending = type(error).__name__ + re.sub(r"'.*?'|\".*?\"|\d+", "_", message)[:200]
    spent = time.process_time() - began
    more = largest_memory() - peak
    assert spent < target.seconds or not timed, f"{spent:.1f} s"
    assert more < MEMORY_BYTES, f"{more / 1e6:.0f} MB more"
    left = [path.name for path in place.iterdir() if path.name.startswith(".")]
    assert not left, f"half-written: {left}"
    return ending


def place_of(error: BaseException) -> str:
    """Where an error arose: its type and the last place in Weir's code, or in the target's."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = (
        [f for f in frames if "/src/weir/" in f.filename]
        or [f for f in frames if "/fuzz/targets" in f.filename]
        or frames[-1:]
    )
    return f"{type(error).__name__} at {Path(inside[-1].filename).name}:{inside[-1].lineno} {inside[-1].name}"


def run_target(name: str, seed: int, inputs: int | None, seconds: float | None) -> Tally:
    """Try so many inputs of a target, or as many as time allows; the target's own number by default."""
    from fuzz.mutations import mutated
    from fuzz.targets import TARGETS

    target, rng = TARGETS[name], random.Random(f"{seed} {name}")
    seeds = target.seeds() or [b"\n"]
    waiting, good, odd = list(seeds), list(seeds), list[bytes]()
    known: set[str] = set()
    tally, began = Tally(name), time.monotonic()
    wanted = inputs or target.inputs
    FINDINGS.mkdir(parents=True, exist_ok=True)
    current_path = FINDINGS / f"current-{name}-{os.getpid()}"
    with quiet_place() as place, current_path.open("wb", buffering=0) as current:
        while time.monotonic() - began < seconds if seconds else tally.inputs < wanted:
            if waiting:
                data = waiting.pop(0)
            elif target.drawn:
                data = b"\n" + rng.randbytes(rng.choice((16, 100, 1000, 4000)))
            else:
                data = mutated(
                    rng.choice(odd if odd and rng.random() < 0.2 else good), rng, seeds, target.words
                )
            os.pwrite(current.fileno(), data, 0)
            os.ftruncate(current.fileno(), len(data))
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            tally.inputs += 1
            try:
                ending = tried(target, data, place, tally.inputs > len(seeds))
                tally.refused += bool(ending)
                if not ending and len(good) < len(seeds) + KEPT:
                    good.append(data)
                elif not ending:
                    good[rng.randrange(len(seeds), len(good))] = data
                elif ending not in known and len(odd) < KEPT:
                    known.add(ending)
                    odd.append(data)
            except (Exception, SystemExit) as error:  # noqa: BLE001  a finding
                where = place_of(error)
                tally.places[where] += 1
                if tally.places[where] == 1:
                    path = FINDINGS / f"{name}-{hashlib.blake2b(data, digest_size=6).hexdigest()}"
                    path.write_bytes(data)
                    print(f"{name}: {where}: {path}", file=sys.stderr)
                    traceback.print_exc()
            emptied(place)
        faulthandler.cancel_dump_traceback_later()
    current_path.unlink()
    tally.seconds = time.monotonic() - began
    return tally


def guided(name: str, seconds: int, seed: int) -> None:
    """Fuzz one target by coverage until time is up or something is found; ends the process."""
    import atheris  # of `make fuzz`

    with atheris.instrument_imports(include=["weir"], exclude=["weir.kernels"]):
        from fuzz.targets import TARGETS
    from fuzz.mutations import mutated

    target = TARGETS[name]
    corpus, seeds = FINDINGS / f"corpus-{name}", target.seeds() or [b"\n"]
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(data)

    def changed(data: bytes, most: int, number: int) -> bytes:
        rng = random.Random(number)
        new = (
            atheris.Mutate(data, most)
            if target.drawn or rng.random() < 0.2
            else mutated(data, rng, seeds, target.words)
        )
        return bytes(new[:most])

    with quiet_place() as place:

        def one(data: bytes) -> None:
            tried(target, data, place)
            emptied(place)

        options = [
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            "-max_len=100000",
            f"-timeout={HANG_SECONDS}",
            "-rss_limit_mb=6000",
            f"-artifact_prefix={FINDINGS}/{name}-",
            str(corpus),
        ]
        atheris.Setup([sys.argv[0], *options], one, custom_mutator=changed)
        atheris.Fuzz()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for; 1 where anything was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", help="names of targets, all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=int, help="inputs of each target")
    parser.add_argument("--seconds", type=float, help="for each target, instead of a number of inputs")
    parser.add_argument("--coverage", type=int, help="seconds for each target, guided by atheris")
    parser.add_argument("--replay", type=Path, help="a file with one input")
    given = parser.parse_args(arguments)
    faulthandler.enable()  # says where, should the process die
    if given.coverage and len(given.targets) == 1:
        guided(given.targets[0], given.coverage, given.seed)
    from fuzz.targets import TARGETS

    names = given.targets or list(TARGETS)
    if given.coverage:  # each in a process of its own, which libFuzzer ends
        command = [
            sys.executable,
            "-m",
            "fuzz.run",
            "--coverage",
            str(given.coverage),
            "--seed",
            str(given.seed),
        ]
        return max(subprocess.run([*command, name], check=False, cwd=ROOT).returncode != 0 for name in names)
    if given.replay:
        with quiet_place() as place:
            print(tried(TARGETS[names[0]], given.replay.read_bytes(), place) or "an answer")
        return 0
    tallies = [run_target(name, given.seed, given.inputs, given.seconds) for name in names]
    for one in tallies:
        print(
            f"{one.target:16}{one.inputs:>9,} inputs{one.refused:>9,} refused"
            f"{len(one.places):>4} findings{one.seconds:>8.1f} s"
        )
    print(f"{'in all':16}{sum(one.inputs for one in tallies):>9,} inputs")
    return int(any(one.places for one in tallies))


if __name__ == "__main__":
    sys.exit(main())
