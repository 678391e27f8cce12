"""Build the documentation site from the pages: build/site, whole or not at all.

    python scripts/make_site.py

The pages stay plain Markdown that reads well where the code is hosted: they are staged in build/pages in the layout of
the repository, so that every link between them holds, README.md being the front page. The reference pages are made
there (scripts/make_docs.py); in api.md the summary of each public name gives way to its documentation, which
mkdocstrings reads from the source. A link that leads nowhere, or an anchor that no page has, fails the build.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

from make_docs import PAGES

import weir

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build" / "pages"
BESIDE = (
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "benchmarks/README.md",
)
"""Pages outside docs/ that belong to the site."""


def stage() -> None:
    """Copy the pages and make the reference pages beside them."""
    shutil.rmtree(STAGE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGE / "docs")
    for name in BESIDE:
        (STAGE / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, STAGE / name)
    for name, page in PAGES.items():
        text = with_directives(page()) if name == "api.md" else page()
        (STAGE / "docs" / name).write_text(text, encoding="utf-8")


def with_directives(page: str) -> str:
    """The API page with a directive of mkdocstrings in the place of each name's heading and summary.

    The directive names the module that defines the name: `weir.measure` alone could be the module of that name.
    """

    def directive(section: re.Match[str]) -> str:
        module, name = section[1], section[2]
        found = attrgetter(f"{module}.{name}".removeprefix("weir."))(weir)
        place = f"{found.__module__}.{found.__qualname__}"
        if "<locals>" in place:  # made by a function when it is imported: nothing in the source has its name
            head = section[0].split("\n\n")[:2]
            return "\n\n".join([*head, inspect.getdoc(found) or "", ""])
        return f"::: {place}\n    options:\n      heading: {module}.{name}\n      toc_label: {name}\n\n"

    sections = re.compile(r"^### \w+\n\n`(weir(?:\.\w+)?)\.(\w+).*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)
    return sections.sub(directive, page)


def main() -> int:
    stage()
    shutil.rmtree(ROOT / "build" / "site", ignore_errors=True)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(ROOT / "mkdocs.yml")]
    done = subprocess.run(build, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        print(plain.split("Traceback")[0], file=sys.stderr)
        return 1
    print(f"build/site: {sum(1 for _ in (ROOT / 'build' / 'site').rglob('*.html'))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
