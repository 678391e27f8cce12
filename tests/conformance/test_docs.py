"""The pages say what the code does."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest

import weir
from weir.cli.main import all_commands, load_command
from weir.experiment.published import published
from weir.measures import MEASURES
from weir.plugins.conform.vectors import vectors
from weir.systems.fusion import METHODS
from weir.systems.lexical.analyzer import analyzers

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses ask for it
    spec.loader.exec_module(module)
    return module


make_docs = script("make_docs")
make_site = script("make_site")


@cache
def pages_now() -> dict[str, str]:
    """Return reference pages and pictures as a process of its own makes them: tests register measures and systems."""
    program = (
        "import json, sys; sys.path.insert(0, 'scripts'); from make_docs import PAGES, PICTURES; "
        "print(json.dumps({name: made() for name, made in (PAGES | PICTURES).items()}))"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pages: dict[str, str] = json.loads(made.stdout)
    return pages


@pytest.mark.parametrize("name", make_docs.PICTURES)
def test_pictures_are_current(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages_now()[name], (
        "run python scripts/make_docs.py --pages"
    )


def test_reference_pages_are_built_and_not_kept():
    assert not [name for name in make_docs.PAGES if (ROOT / "docs" / name).exists()]


@pytest.mark.parametrize("page", ["README.md", "docs/comparing.md", "docs/tutorials/researcher.md"])
def test_published_scores_and_golden_vectors_are_counted(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"{len(published()):,} published scores" in text
    assert "`weir conform TOOL`" not in text or f"runs {len(vectors())} inputs" in text


def test_every_command_and_option_is_documented():
    page = pages_now()["commands.md"]
    sections = dict(re.findall(r"^## weir ([a-z ]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE))
    assert set(sections) == set(all_commands())
    for name, section in sections.items():
        command = load_command(name)
        for option in command.params:
            spelled = (
                option.opts[0]
                if option.opts[0].startswith("-")
                else option.make_metavar(click.Context(command))
            )
            assert spelled in section, f"weir {name} {spelled}"
    assert "--missing [zero\\|answered-only]` |" in sections["eval"]
    assert (
        "| `--level FLOAT` | Level of the intervals; tests use 1 minus it. Default: 0.95. |"
        in sections["compare"]
    )


def test_every_public_name_is_in_the_api_page_and_documented_in_full_on_the_site():
    page = pages_now()["api.md"]
    sections = re.findall(r"^### (\w+)\n\n`weir(?:\.\w+)?\.(\w+)[`(].*?\n\n(\S.*?)\n", page, re.MULTILINE)
    measures = re.findall(r"\[`weir\.(\w+)`\]\(measures\.md#\w+\)", page)
    places = ("labels", "listings", "measures", "stats")
    beside = {*METHODS, *(name for place in places for name in getattr(weir, place).__all__)}
    top = {*weir.__all__} - {*places, "systems"}
    assert {*(name for name, _, _ in sections), *measures} == {*top, *beside}
    assert all(name == again and len(said) > 10 for name, again, said in sections)
    staged = make_site.with_directives(page)
    in_full = re.findall(r"^      toc_label: (\w+)$|^### (\w+)$", staged, re.MULTILINE)
    assert ["".join(one) for one in in_full] == [name for name, _, _ in sections]
    assert f"::: {weir.evaluate.__module__}.evaluate\n" in staged


def test_every_page_stands_in_the_navigation_of_the_site():
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    made = [f"docs/{name}" for name in make_docs.PAGES]
    assert sorted(listed) == sorted([*made, *(page.relative_to(ROOT).as_posix() for page in PAGES)])


def test_the_site_builds_where_its_packages_are():
    pytest.importorskip("zensical", reason="the site's packages are in the extra docs")
    built = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_site.py")], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    page = (ROOT / "build" / "site" / "docs" / "api.html").read_text(encoding="utf-8")
    assert "evaluate(qrels:object,run:object" in re.sub(r"<[^>]+>|\s", "", page)


@pytest.mark.parametrize("name", MEASURES.names())
def test_every_measure_has_its_page_section_and_its_source(name):
    section = make_docs.measures_page().split(f"## {name}\n")[1].split("\n## ")[0]
    assert "Source: " in section


def test_every_analyzer_is_documented():
    page = (ROOT / "docs" / "analyzers.md").read_text(encoding="utf-8")
    languages = [n for n in analyzers.names() if n.startswith("snowball-")]
    assert len(languages) > 10
    assert "snowball-" in page
    for name in set(analyzers.names()) - set(languages):
        assert name in page


def test_the_front_page_is_read_to_its_end():
    assert len(README.split()) <= 900


def anchors(text):
    """Return the anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(text):
    """Return the links of a page without code, which may only look like one."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return [found for found in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for link in links(page.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in anchors(other.read_text(encoding="utf-8")), f"{page.name}: {link}"


@pytest.mark.parametrize("name", make_docs.PAGES)
def test_links_of_reference_pages_lead_somewhere(name):
    for link in links(pages_now()[name]):
        target, _, anchor = link.partition("#")
        other = pages_now().get(target or name)
        text = (ROOT / "docs" / target).read_text(encoding="utf-8") if other is None else other
        assert not anchor or anchor in anchors(text), f"{name}: {link}"
