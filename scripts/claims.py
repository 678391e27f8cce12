"""The claims of README.md: each sentence, its figures, what they are read from, and the command that shows them.

    python scripts/claims.py    # writes the figures into README.md, and docs/claims.md

tests/conformance/test_claims.py holds both against this table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from front_picture import BASELINE, CLAIM, FUSIONS, NUMBERS

from weir.core.tables import html_escaped
from weir.datasets import catalogue
from weir.experiment.published import comparable, published
from weir.plugins.conform.vectors import vectors

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
EVALUATOR = "pytrec_eval-terrier"


@dataclass(frozen=True)
class Claim:
    """A sentence of README.md, or a part of one, with {} where its figures stand.

    figures: what stands there now; source: what they are read from; command: what shows them, run in a checkout.
    """

    sentence: str
    figures: Callable[[], tuple[str, ...]]
    source: str
    command: str

    def text(self) -> str:
        """The sentence with its figures."""
        return self.sentence.format(*self.figures())

    def match(self, page: str) -> re.Match[str]:
        """Where it stands in a page, its figures as groups; raises ValueError where it does not stand there once."""
        pattern = r"(.+?)".join(
            r"\s+".join(map(re.escape, part.split(" "))) for part in self.sentence.split("{}")
        )
        found = list(re.finditer(pattern, page))
        if len(found) != 1:
            raise ValueError(f"README.md has {len(found)} times: {self.sentence}")
        return found[0]

    def written_into(self, page: str) -> str:
        """A page with the figures of now; raises as `match`."""
        match = self.match(page)
        for number, figure in reversed(list(enumerate(self.figures(), 1))):
            page = page[: match.start(number)] + figure + page[match.end(number) :]
        return page


def in_words(number: int) -> str:
    """A number up to ten as a word."""
    return WORDS[number] if number < len(WORDS) else f"{number:,}"


def picture_words() -> tuple[str, ...]:
    """What the picture shows: queries, and the means of the fusions and of their parts."""
    record = json.loads(NUMBERS.read_text(encoding="utf-8"))
    said = []
    for name, found in record.items():
        means = {system: f"{row[0]:.4f}" for system, row in found["systems"].items()}
        rank = found["systems"][FUSIONS[0]][3]
        fused = " and ".join(means[system] for system in FUSIONS)
        said.append(
            f"{name}, {found['queries']} queries: fusions {fused} (ranks {rank}), {BASELINE} {means[BASELINE]}"
        )
    return CLAIM, "; ".join(said)


def certified_runs() -> tuple[str, ...]:
    """How many runs pytrec_eval's values are equal on; raises ValueError where one is further away than 1e-12."""
    page = (ROOT / "docs" / "certificates.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| pytrec_eval[^|]*\| (\d+) \|[^|]*\| (\S+) \|$", page, re.MULTILINE)
    if max(float(difference) for _, difference in rows) > 1e-12:
        raise ValueError("docs/certificates.md has a difference above 1e-12")
    return (max((runs for runs, _ in rows), key=int),)


def exact_inputs() -> tuple[str, ...]:
    """How many inputs have exact answers, and how many tools but Weir were asked."""
    tools = json.loads((ROOT / "docs" / "conformance.json").read_text(encoding="utf-8"))["tools"]
    return str(len(vectors())), in_words(sum(tool["tool"] != "weir" for tool in tools))


def scifact_score() -> tuple[str, ...]:
    """The published score, which the picture's own run has too; raises ValueError where it has not."""
    [score] = published("scifact", "BM25 flat [Anserini]", "nDCG@10")
    ours = json.loads(NUMBERS.read_text(encoding="utf-8"))["scifact"]["systems"][BASELINE][0]
    if not score.agrees(ours):
        raise ValueError(f"bm25 on scifact is {ours}, published is {score.printed}")
    return (score.printed,)


def compared_scores() -> tuple[str, ...]:
    """How many published scores there are, and how many a system of Weir claims to be."""
    return f"{len(published()):,}", f"{len(comparable()):,}"


def demo_size() -> tuple[str, ...]:
    """How many systems `make demo` runs, and on how many collections that come with Weir."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [systems] = re.findall(r"^SYSTEMS = (.*)$", makefile, re.MULTILINE)
    return in_words(systems.count("-s ")), in_words(len(catalogue.members("brook")))


def needed_packages() -> tuple[str, ...]:
    """The packages of the base install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = dict.fromkeys(re.split(r"[<>=;]", line)[0] for line in project["dependencies"])
    return (" and ".join(names),)


def scoring_records() -> list[dict[str, Any]]:
    """The last record of each run file that scoring was timed on: of 50 thousand, 1 million, 7 million lines."""
    lines = (ROOT / "benchmarks" / "results" / "score_run.jsonl").read_text(encoding="utf-8").splitlines()
    last = {record["shape"]: record for record in map(json.loads, lines)}
    return [last[shape] for shape in "bca"]


def shares_of_time() -> tuple[str, ...]:
    """Weir's time as shares of the evaluator's on each run file: with numpy alone, then with numba."""
    records = scoring_records()
    shares = []
    for engine in ("weir-numpy", "weir-numba"):
        *first, last = (f"{100 / record[engine]['times_faster_cpu']:.0f}" for record in records)
        shares.append(f"{', '.join(first)} and {last}%")
    versions = records[-1]["weir-numba"]["versions"]
    return shares[0], versions[EVALUATOR], shares[1], versions["numba"]


def timed_on() -> str:
    """Where and when scoring was timed."""
    machines = dict.fromkeys(f"{r['machine']['cpu']}, {r['machine']['time'][:10]}" for r in scoring_records())
    return f"the last times in benchmarks/results/score_run.jsonl, on one core ({'; '.join(machines)})"


CLAIMS = (
    Claim(
        '<img alt="{}. nDCG@10 on {}" src="docs/front-light.svg">',
        lambda: tuple(map(html_escaped, picture_words())),
        "docs/front.json, which the command writes",
        "python scripts/front_picture.py --run results/",
    ),
    Claim("# {} systems, {} small collections", demo_size, "Makefile", "make demo"),
    Claim(
        "Measures equal trec_eval's to 1e-12 on [{} TREC runs](docs/certificates.md)",
        certified_runs,
        "docs/certificates.md, which the command writes",
        "python scripts/certify.py .venv/peers/bin/python",
    ),
    Claim(
        "and {} inputs with exact answers show [where {} other tools differ](docs/conformance.md)",
        exact_inputs,
        "docs/conformance.json",
        "weir study conform",
    ),
    Claim(
        "`bm25` gives SciFact's published {}; ",
        scifact_score,
        "the published scores that come with Weir, and docs/front.json",
        "weir run -d scifact -s bm25 -m nDCG@10",
    ),
    Claim(
        "sets results beside {} published scores, {} of them by systems that Weir has",
        compared_scores,
        "the published scores that come with Weir, and what claims them: models.toml, claims.toml",
        "weir study reproduce results/",
    ),
    Claim(
        "the same command resumes and ends with the same rankings and scores, byte for byte",
        tuple,
        "files of rankings and of scores by query; records hold times and differ",
        "python -m pytest tests/unit/test_fused_systems.py tests/unit/test_kept_scores.py -k killed",
    ),
    Claim(
        "Scoring needs {}: no Java, no server, no network", needed_packages, "pyproject.toml", "pip install ."
    ),
    Claim(
        "Run files of 50 thousand, 1 million and 7 million lines take {} of pytrec_eval-terrier {}'s time with numpy "
        "alone, {} with `[run]` (numba {})",
        shares_of_time,
        timed_on(),
        "python benchmarks/score_run.py",
    ),
)


def claims_page() -> str:
    """Every claim with the command that shows it."""
    rows = [
        "# What README.md claims",
        "",
        "Each claim, what its figures are read from, and the command that shows it, in a checkout after `make demo`;",
        "`make golden` makes `.venv/peers`. `python scripts/claims.py` writes figures into README.md and this page.",
        "",
        "| claim | figures from | command |",
        "|---|---|---|",
    ]
    for claim in CLAIMS:
        said = re.sub(r"^(and|#) |[;,\s]+$", "", claim.text())
        said = re.sub(r"<[^>]*alt=\"([^\"]*)\"[^>]*>", r"\1", said)
        said = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", said)
        rows.append(f"| {said} | {claim.source} | `{claim.command}` |")
    return "\n".join([*rows, ""])


if __name__ == "__main__":
    page = README.read_text(encoding="utf-8")
    for claim in CLAIMS:
        page = claim.written_into(page)
    README.write_text(page, encoding="utf-8")
    (ROOT / "docs" / "claims.md").write_text(claims_page(), encoding="utf-8")
