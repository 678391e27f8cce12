"""Run the examples of README.md and of the pages below docs/, and hold the pages to what they print.

    python scripts/examples.py [PAGE ...]            # says what differs, exit code 1
    python scripts/examples.py --write [PAGE ...]    # writes into the pages what was printed

The blocks of a page run from top to bottom in one folder of their own. `python` blocks share their names; a `text`
block right after one is what it prints and, as in a notebook, the repr of its last expression. `console` blocks run
the lines after `$ `; progress is not part of their output. In output, `...` stands for anything.
A comment before a block says more:

    <!-- examples: needs scifact nfcorpus -->   runs where ../shared/data has these collections, else is skipped
    <!-- examples: fetches nfcorpus -->         likewise; a mirror on this machine serves its archive
    <!-- examples: packages mteb ranx -->       runs where these packages are installed, else is skipped
    <!-- examples: not run: why -->             is not run
    <!-- examples: elsewhere: script -->        the whole page is run by another script
    <!-- examples: fresh -->                    begins a new folder; what is skipped before it is no longer missed
    <!-- examples: setup name -->               scripts/page_setups/name.py runs unseen, in the names of the page
    <!-- examples: setup
    code                                        Python that runs unseen
    -->
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from weir.settings import settings

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("WEIR_SHARED", ROOT.parent / "shared")) / "data"
_PARTS = re.compile(
    r"^<!-- examples: (?P<said>.*?)-->\n|^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
_SPOKEN = ("note: ", "warning: ", "weir: ")  # what a command says to standard error besides its progress


@dataclass(frozen=True)
class Part:
    """A block or a comment of a page: its kind, its text, and where that text stands."""

    kind: str
    text: str
    start: int
    end: int


@dataclass
class Found:
    """What running a page brought: places to be written anew, what went wrong, what was skipped."""

    edits: list[tuple[int, int, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    ran: int = 0


def pages() -> list[Path]:
    """Every page with examples."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page for page in found if _kinds(page) & {"python", "console"} and "<elsewhere:>" not in _kinds(page)
    ]


def parts_of(text: str) -> list[Part]:
    """The blocks and the comments of a page in order; a comment has its first word as kind."""
    found = []
    for match in _PARTS.finditer(text):
        if match["said"] is None:
            found.append(Part(match["kind"], match["body"], match.start("body"), match.end("body")))
        else:
            kind, _, rest = match["said"].strip().partition("\n" if "\n" in match["said"].strip() else " ")
            found.append(Part(f"<{kind.strip()}>", rest, match.start(), match.end()))
    return found


def run_page(page: Path) -> Found:
    """Run a page's examples in folders of their own."""
    found = Found()
    text = _read(page)
    names: dict[str, object] = {"__name__": "__main__"}
    parts = parts_of(text)
    missing = ""  # why the blocks from here on cannot run; the next block alone for "not run"
    with tempfile.TemporaryDirectory() as home:
        os.environ["WEIR_HOME"] = home
        settings.cache_clear()
        _enter(Path(home) / "0")
        for number, part in enumerate(parts):
            if part.kind == "<fresh>":
                missing = ""
                _enter(Path(home) / str(number))
            elif part.kind == "<needs>":
                missing = _provide(part.text.split(), Path(home))
            elif part.kind == "<fetches>":
                missing = _serve(part.text.strip())
            elif part.kind == "<packages>":
                missing = missing or _absent(part.text.split())
            elif part.kind == "<setup>" and not missing:
                _python(setup_code(part.text), names, f"{page.name}, setup", shown=False)
            elif part.kind in ("python", "console"):
                _run_part(found, page, (text, parts, number), names, missing)
        os.chdir(ROOT)
    return found


def setup_code(text: str) -> str:
    """The code of a setup comment, which stands in it or in the file that it names."""
    if re.fullmatch(r"\w+", text):
        return (ROOT / "scripts" / "page_setups" / f"{text}.py").read_text(encoding="utf-8")
    return text


def _run_part(
    found: Found, page: Path, place: tuple[str, list[Part], int], names: dict[str, object], missing: str
) -> None:
    text, parts, number = place
    part = parts[number]
    where = f"{_short(page)}:{text.count(chr(10), 0, part.start)}"
    before = parts[number - 1] if number else None
    if before and before.kind == "<not>":
        missing = before.text
    if missing:
        found.skipped.append(f"{where}: {missing.strip()}")
        return
    found.ran += 1
    try:
        if part.kind == "console":
            shown = (part, _console(part.text))
        else:
            after = _output_block(text, parts, number)
            printed = _python(part.text, names, f"{where} ({page.name})", after is not None)
            shown = (after, printed) if after else (part, part.text)
    except Exception as error:  # noqa: BLE001 - whatever an example raises is what is wrong with it
        found.problems.append(f"{where}: {type(error).__name__}: {error}")
        return
    if not _matches(shown[0].text, shown[1]):
        found.problems.append(f"{where}: the page says\n{shown[0].text}--- but this is printed:\n{shown[1]}")
        found.edits.append((shown[0].start, shown[0].end, shown[1]))


def _output_block(text: str, parts: list[Part], number: int) -> Part | None:
    """The text block right after a block, which holds its output."""
    if number + 1 == len(parts) or parts[number + 1].kind != "text":
        return None
    between = text[parts[number].end : parts[number + 1].start]
    return parts[number + 1] if not between.replace("```text", "").replace("```", "").strip() else None


def _python(code: str, names: dict[str, object], where: str, shown: bool) -> str:
    """What a block prints, and its last expression by its repr where output is shown."""
    tree = ast.parse(code)
    last = tree.body.pop() if shown and tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            if value is not None:
                print(repr(value))
    return _clean(out.getvalue())


def _console(body: str) -> str:
    """A console block with what its commands print now; where none was shown, none is."""
    from weir.cli import main

    pieces = re.split(r"^(?=\$ )", body, flags=re.MULTILINE)
    whole = pieces[0]
    for piece in pieces[1:]:
        command, expected = re.match(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", piece, re.DOTALL).groups()  # type: ignore[union-attr]  # every piece begins with a command
        words = _words(command[2:].replace("\\\n", " "))
        if words[0] != "weir":
            raise ValueError(f"an example runs weir alone, found '{command.strip()}'")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words[1:])
        said = "".join(line for line in err.getvalue().splitlines(True) if line.startswith(_SPOKEN))
        printed = _clean(out.getvalue() + said)
        if code and not expected:
            raise ValueError(f"'{command.strip()}' ended with {code}: {err.getvalue()}")
        whole += command + (expected if not expected or _matches(expected, printed) else printed)
    return whole


def _words(command: str) -> list[str]:
    """The words of a command line, comments left out, names with * expanded as a shell would."""
    words: list[str] = []
    for word in shlex.split(command, comments=True):
        words += sorted(map(str, Path().glob(word))) or [word] if "*" in word else [word]
    return words


def _matches(expected: str, printed: str) -> bool:
    """Whether the output shown is what is printed; `...` stands for anything, trailing blanks count for nothing."""
    pattern = re.escape(_clean(expected)).replace(r"\.\.\.", ".*?")
    return re.fullmatch(pattern, _clean(printed), re.DOTALL) is not None


def _clean(text: str) -> str:
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    return "\n".join(lines) + "\n" if text.strip() else ""


def _provide(names: list[str], home: Path) -> str:
    """Link collections from ../shared/data to where a download would have put them; says what is not there."""
    absent = [name for name in names if not (SHARED / name / "corpus.jsonl").is_file()]
    if absent:
        return f"needs {', '.join(absent)} in ../shared/data"
    for name in names:
        folder = home / "datasets" / name
        folder.mkdir(parents=True, exist_ok=True)
        for part in ("corpus.jsonl", "queries.jsonl", "qrels"):
            if not (folder / part).exists():
                (folder / part).symlink_to(SHARED / name / part)
    return ""


def _serve(name: str) -> str:
    """Serve the archive of a collection in ../shared/data as the mirror asked first; says if it is not there."""
    if not (SHARED / name / f"{name}.zip").is_file():
        return f"needs {name}.zip in ../shared/data/{name}"
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(SHARED / name))
    )
    Thread(target=server.serve_forever, daemon=True).start()
    os.environ["WEIR_MIRROR"] = f"http://127.0.0.1:{server.server_port}"
    settings.cache_clear()
    return ""


def _absent(packages: list[str]) -> str:
    """Says which of the packages are not installed."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    return f"needs {', '.join(absent)}" if absent else ""


def _enter(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.chdir(folder)


def _kinds(page: Path) -> set[str]:
    return {part.kind for part in parts_of(_read(page))}


def _short(page: Path) -> str:
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("pages", nargs="*", type=Path)
    asked.add_argument("--write", action="store_true", help="write into the pages what was printed")
    given = asked.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    for name in ("COLUMNS", "NO_COLOR"):  # pages show what a pipe gets
        os.environ.pop(name, None)
    wrong = 0
    for page in [p.resolve() for p in given.pages] or pages():
        found = run_page(page)
        print(f"{_short(page)}: {found.ran} run, {len(found.skipped)} skipped")
        print("".join(f"  skipped {one}\n" for one in found.skipped), end="")
        if given.write and found.edits:
            text = _read(page)
            for start, end, new in reversed(found.edits):
                text = text[:start] + new + text[end:]
            page.write_text(text, encoding="utf-8")
            print(f"  {len(found.edits)} written anew")
        problems = found.problems if not given.write else [p for p in found.problems if "--- but" not in p]
        print("".join(f"  {one}\n" for one in problems), end="")
        wrong += len(problems)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
