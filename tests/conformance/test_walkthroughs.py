"""The walk-throughs of CONTRIBUTING.md: all seven, typed in literally in one fresh copy, pass what a newcomer runs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("walk-throughs")  # of one copy
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDITIONS = {
    "a check of an audit",
    "a measure",
    "a collection",
    "a system",
    "a method of llm(...)",
    "a prompt of a judge",
    "a format of weir data import",
}


def blocks() -> list[tuple[str, str, str, str]]:
    """(addition, path, language, content) of each block that a newcomer types."""
    sections = re.split(r"^## Add (.*)$", TEXT, flags=re.MULTILINE)[1:]
    typed = []
    for addition, body in zip(sections[::2], sections[1::2], strict=True):
        named = re.findall(r"^`(\S+)`:\n\n```(\w+)\n(.*?)^```$", body, re.DOTALL | re.MULTILINE)
        typed += [(addition, *one) for one in named]
    return typed


def changed(text: str, diff: str) -> str:
    """A text after a block of lines that stay (behind a blank) and new ones (behind a plus)."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] == " ")
    after = "".join(line[1:] for line in lines)
    if after in text:  # the addition stands in this checkout already
        return text
    assert text.count(before) == 1, f"found {text.count(before)} times:\n{before}"
    return text.replace(before, after)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the checkout with everything typed in."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout, whose files git lists")
    place = tmp_path_factory.mktemp("copy") / "weir"
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    for made in (
        ".mypy_cache",
        "src/weir/kernels/__pycache__",
    ):  # what is as it was isn't checked or compiled again
        if (ROOT / made).is_dir():
            shutil.copytree(ROOT / made, place / made)
    for _, name, language, content in blocks():
        path = place / name
        text = changed(path.read_text(encoding="utf-8"), content) if language == "diff" else content
        path.write_text(text, encoding="utf-8")
    for program in re.findall(r"`python (tests/\S+\.py)` writes", TEXT):
        run(place, program)
    return place


def run(copy: Path, *arguments: str) -> str:
    """What Python prints in the copy; fails with its output where the exit code is not 0."""
    own = {"PYTHONPATH": str(copy / "src"), "WEIR_HOME": str(copy.parent / "home"), "PYTEST_ADDOPTS": ""}
    env = os.environ | own
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=copy, env=env, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def test_every_addition_has_its_walk_through():
    assert {addition for addition, *_ in blocks()} == ADDITIONS
    headings = re.findall(r"^## Add (.*)$", TEXT, re.MULTILINE)
    assert set(headings) == ADDITIONS
    assert len(blocks()) == TEXT.count("\n```") // 2 - 1  # the system that nothing registers is no file


@pytest.mark.parametrize("gate", ["ruff check", "ruff format --check", "mypy", "gates"])
def test_make_check_passes(copy, gate):
    if gate == "gates":
        run(copy, "scripts/gates.py")
        return
    tool, *arguments = gate.split()
    if not importlib.util.find_spec(tool):
        pytest.skip(f"{tool} is in the extra dev")
    run(copy, "-m", tool, *arguments, *(["."] if tool == "ruff" else []))


CONFORMANCE = {
    "measure": ("tests/conformance/test_measures.py", "FirstPlace"),
    "loops": ("tests/property/test_measures_against_reference.py", "plain_loops or slow_reference"),
    "certificates": ("tests/conformance/test_certificates.py", "named"),
    "system": ("tests/conformance/test_system_protocol.py", ""),
    "pages": ("tests/conformance/test_docs.py", "pictures or every_public_name or FirstPlace or links"),
    "prompt": ("tests/conformance/test_judge_prompts.py", "example"),
    "judge": ("tests/unit/test_judge.py", "example"),
    "collection": ("tests/unit/test_catalogue.py", "example or every_collection or groups"),
    "check": ("tests/unit/test_audit.py", ""),
    "format": ("tests/unit/test_import_formats.py", "starred"),
    "kinds": ("tests/unit/test_import.py", "every_kind"),
    "method": ("tests/unit/test_llm_reranker.py", "aspect"),
    "settings": ("tests/unit/test_llm_settings.py", ""),
    "study": ("tests/unit/test_sensitivity.py", "every_method"),
    "order": ("tests/property/test_llm_methods.py", "aspect"),
    "kept": ("tests/golden/test_algorithms.py", "FirstPlace or bootstrap or every"),
    "family": ("tests/golden/test_golden_family.py", "plain_loops"),
    "names": ("tests/unit/test_imports.py", "measure or public_names"),
}


def test_the_conformance_suite_passes(copy):
    """The tests of what was added, selected by its name; all of them in one process."""
    files = sorted({file for file, _ in CONFORMANCE.values()})
    chosen = [
        f"({Path(file).stem} and ({words}))" if words else f"{Path(file).stem}"
        for file, words in CONFORMANCE.values()
    ]
    options = ["-q", "-rA", "--tb=short", "-p", "no:cacheprovider", "-k", " or ".join(chosen)]
    out = run(copy, "-m", "pytest", *options, *files)
    for file, words in CONFORMANCE.values():
        assert re.search(rf"^PASSED {re.escape(file)}::", out, re.MULTILINE), (file, words)
    for name in ("FirstPlace", "longest", "example", "starred documents", "aspect"):
        assert f"[{name}" in out or f"-{name}]" in out, name


def test_the_command_line_and_python_know_all_of_it(copy):
    assert "long queries" in run(copy, "-m", "weir", "audit", "--list")
    assert "1 where the first document returned is relevant" in run(
        copy, "-m", "weir", "list", "measures", "FirstPlace"
    )
    assert "longest" in run(copy, "-m", "weir", "list", "systems", "longest")
    assert "example" in run(copy, "-m", "weir", "list", "datasets")
    program = """
import weir
qrels, run = {"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 2.0, "y": 1.0}, "b": {"y": 1.0}}
scores = weir.evaluate(qrels, run, [weir.FirstPlace, weir.FirstPlace(rel=2), "FirstPlace"])
print(scores.measures, scores.values.tolist())
print(weir.benchmark("brook-facts", "longest", weir.FirstPlace).rows[0].system)
"""
    assert run(copy, "-c", program).splitlines() == [
        "('FirstPlace', 'FirstPlace(rel=2)') [[1.0, 0.0], [0.0, 0.0]]",
        "longest",
    ]


def test_try_a_system_of_your_own(tmp_path):
    section = TEXT.partition("## Try a system of your own")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    tail = """
corpus = weir.Corpus.of({"d1": "a dam", "d2": "a weir in a river", "d3": "a meadow with a weir"})
queries = weir.Queries.of({"q1": "weir", "q2": "dam"})
print(weir.system(longest).index(corpus).search(queries, 2).to_dict())
fused = weir.rrf(weir.BM25(), longest)
print(fused, list(fused.index(corpus).search(queries, 1).to_dict()["q1"]))
"""
    (tmp_path / "program.py").write_text(code[1] + tail, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "{'q1': {'d3': 2.0, 'd2': 1.0}, 'q2': {'d3': 2.0, 'd2': 1.0}}",
        "rrf(bm25, longest) ['d3']",
    ], done.stderr


def test_every_file_of_the_map_is_there():
    named = re.findall(r"\| `(src/weir/\S+)` \|$", TEXT, re.MULTILINE)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_file_that_the_architecture_names_is_there():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|tsv|toml))`", text))
    assert len(named) > 30
    places = (ROOT, ROOT / "src", ROOT / "src" / "weir")
    assert sorted(name for name in named if not any((place / name).is_file() for place in places)) == []
