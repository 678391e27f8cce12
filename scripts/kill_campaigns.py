"""Kill Weir at random changes of its files until it ends by itself; its files must equal undisturbed ones.

    python scripts/kill_campaigns.py                        # 25 campaigns of each of four kinds of work
    python scripts/kill_campaigns.py --campaigns 20 --seed 7

Prints a line of JSON for each kind: campaigns, kills, and the seeds of campaigns whose end differs; there must be none.
Judging is killed by scripts/simulate_judging.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.unit.brooklet import write_collection  # noqa: E402  the path comes first
from tests.unit.results import contents  # noqa: E402  the path comes first

from weir.cli.main import main as weir_main  # noqa: E402  the path comes first
from weir.settings import settings  # noqa: E402  the path comes first
from weir.systems.lexical import inversion  # noqa: E402  the path comes first

CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}


@dataclass
class Work:
    """A command, its environment, and how often campaigns killed it."""

    arguments: tuple[str, ...]
    """OUT is the folder that the work writes into."""
    env: dict[str, str] = field(default_factory=dict)
    campaigns: int = 0
    kills: int = 0
    differing: list[int] = field(default_factory=list)
    """Seeds of campaigns that ended otherwise than undisturbed work."""


def works(base: Path) -> dict[str, Work]:
    """Return the kinds of work; the results folder that packs and reports read is made here."""
    words = [f"w{n}" for n in range(400)]
    draw = random.Random(3)
    texts = {f"d{i}": (f"title {i}", " ".join(draw.choices(words, k=200))) for i in range(2000)}
    collections = [
        str(write_collection(base / name, dict(list(texts.items())[first::2])))
        for first, name in enumerate("ab")
    ]
    both = [word for path in collections for word in ("-d", path)]
    grid = ("run", *both, "-s", "bm25", "-s", "rm3", "-s", "rrf(bm25, rm3)", "-m", "nDCG@10", "-o", "OUT")
    if code := ended(Work(grid), base / "made", base / "results"):
        sys.exit(f"the results to pack: exit {code}, {base / 'made.log'}")
    lines = "".join(
        json.dumps({"_id": f"x{i}", "title": t, "text": text}) + "\n"
        for i, (t, text) in enumerate(texts.values())
    )
    (base / "documents.jsonl").write_text(lines, encoding="utf-8")
    return {
        "run": Work(grid),
        "index in blocks": Work(grid, {"WEIR_MAX_RAM": "1M"}),
        "pack": Work(("submit", "pack", str(base / "results"), "-o", "OUT/p.weir.zip")),
        "import": Work(("data", "import", str(base / "documents.jsonl"), "-o", "OUT/imported")),
    }


def ended(work: Work, place: Path, out: Path, number: int = 0) -> int:
    """Return how this work ended, in a fork: its exit code, -9 if it was killed before its nth change of `place`.

    number: 0 for undisturbed work. Its output is in `place`.log.
    """
    out.mkdir(parents=True, exist_ok=True)
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    log = os.open(f"{place}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ |= work.env | {"WEIR_HOME": str(place / "home")}
    settings.cache_clear()
    inversion.COMMIT_SECONDS = (
        0  # a commit after each block, not each half minute: more states to be killed in
    )
    left = number

    def count(event: str, given: tuple[object, ...]) -> None:
        nonlocal left
        opened = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
        if (opened or event in CHANGES) and str(given[0]).startswith(str(place)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    code = 70
    try:
        code = weir_main([str(out) + a[3:] if a.startswith("OUT") else a for a in work.arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def campaign(work: Work, seed: int, place: Path, whole: dict[str, object]) -> None:
    """Kill this work until it ends by itself, and count; the kills come later and later."""
    draw = random.Random(seed)
    work.campaigns += 1
    most = draw.choice((4, 12, 40))
    while (code := ended(work, place, place / "out", draw.randint(1, most))) == -signal.SIGKILL:
        work.kills += 1
        most += most // 2
    if code != 0 or contents(place / "out") != whole:
        print(f"seed {seed}: exit {code} {Path(f'{place}.log').read_text()[-300:]}", file=sys.stderr)
        work.differing.append(seed)
    shutil.rmtree(place)


def main() -> None:
    """Run the campaigns, and print their counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=25, help="of each kind of work")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-kills-") as folder:
        base = Path(folder)
        place = base / "place"
        for kind, work in works(base).items():
            if code := ended(work, place, place / "out"):
                sys.exit(f"{kind}, undisturbed: exit {code}, {Path(f'{place}.log').read_text()}")
            whole = contents(place / "out")
            shutil.rmtree(place)
            for seed in range(asked.seed, asked.seed + asked.campaigns):
                campaign(work, seed, place, whole)
            line = {"campaigns": work.campaigns, "kills": work.kills, "differing": work.differing}
            print(json.dumps({"work": kind, **line}), flush=True)


if __name__ == "__main__":
    main()
