"""A release by the commands of the workflow and of docs/releasing.md, as far as a machine without a code host goes."""

from __future__ import annotations

import re
import shutil
import tomllib
import zipfile

import pytest
from tests.conformance.test_claims import ROOT

from weir.api.listings import EXTRAS

yaml = pytest.importorskip("yaml", reason="needs PyYAML: it is in the extra dev")

import release  # noqa: E402 - of scripts, whose folder test_claims puts on the path

WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")
}
JOBS = WORKFLOWS["release.yml"]["jobs"]
CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
CHANGES = "# Changelog\n\n## 1.2.0 (2026-11-29)\n\n### Numbers that change\n\n- a\n\n### New\n\n- b\n\n### Mended\n\n- c\n\n## 1.1\n\n- d\n"


def commands(job: str) -> list[str]:
    """The command lines of a job, each step whole."""
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_a_tag_that_may_be_released_prints_its_notes():
    assert release.faults("v1.2.0", "1.2.0", CHANGES) == []
    assert release.notes(CHANGES).startswith("### Numbers that change\n")
    assert "- d" not in release.notes(CHANGES)


@pytest.mark.parametrize(
    ("tag", "version", "changes", "said"),
    [
        ("v1.3.0", "1.2.0", CHANGES, "the tag is v1.3.0 and the version of pyproject.toml 1.2.0"),
        (
            "v1.2.0",
            "1.2.0",
            CHANGES.replace("(2026-11-29)", "(unreleased)"),
            "begins with '1.2.0 (unreleased)'",
        ),
        ("v1.2.0", "1.2.0", CHANGES.replace("### New", "### More"), "Numbers that change, More, Mended"),
    ],
)
def test_what_is_missing_before_a_release_is_said(tag, version, changes, said):
    assert said in "; ".join(release.faults(tag, version, changes))


def test_pages_install_from_a_checkout_until_there_is_a_release():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    for page in pages:
        lines = page.read_text(encoding="utf-8").splitlines()
        for before, line in zip(["", *lines], lines, strict=False):
            if re.search("pip install.*weir-ir", line) and page.name != "releasing.md":
                assert "once published" in (before + line).lower(), (page.name, line)


def test_doctor_knows_every_extra_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for_contributors = {"dev", "slow", "docs", "peers"}
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all"} - for_contributors


def test_the_changelog_has_the_groups_of_a_release():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = release.notes(changes)
    assert re.findall(r"^### (.*)$", notes, re.MULTILINE) == release.GROUPS
    numbers = notes.split("\n### ")[1]
    assert 0 < len(re.findall(r"^- ", numbers, re.MULTILINE)) <= 20
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert changes.partition("\n## ")[2].startswith(project["version"] + " (")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_steps_of_a_workflow_name_what_is_there(name):
    for job in WORKFLOWS[name]["jobs"].values():
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            for script in re.findall(r"scripts/\w+\.py", step.get("run", "")):
                assert (ROOT / script).is_file()
            for target in re.findall(r"\bmake ([\w-]+)", step.get("run", "")):
                assert re.search(rf"^{target}\b.*:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_images_are_built_of_files_that_are_there():
    for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE):
        assert all((ROOT / source).exists() for source in sources.split())
    targets = re.findall(r"--target (\w+)", "\n".join(commands("image")))
    assert targets == ["base", "run"]
    assert set(targets) <= set(re.findall(r"^FROM \S+ AS (\w+)$", CONTAINERFILE, re.MULTILINE))


def test_no_file_but_pyproject_holds_an_address_of_the_project():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "[project.urls]" in project
    assert "repo_url" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_wheel_of_the_workflow_works_where_nothing_else_is(checkout, run):
    for file in ("CHANGELOG.md", ".github", "docs", "mkdocs.yml"):
        taken = ROOT / file
        (shutil.copytree if taken.is_dir() else shutil.copy)(taken, checkout / file)
    version, (_, *steps) = next(iter(commands("wheel"))), commands("wheel")
    refused = run(version.replace("$GITHUB_REF_NAME", "v0.0.0"))
    assert refused.returncode == 1
    assert "the tag is v0.0.0" in refused.stdout
    for step in steps:
        done = run(step, network=True)
        assert done.returncode == 0, step + done.stdout + done.stderr
    assert "1/1" in done.stdout
    [wheel] = (checkout / "build" / "wheel").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"weir/py.typed", "weir/__init__.pyi"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]


@pytest.mark.slow
def test_the_recipe_of_the_image_runs_step_by_step(checkout, run):
    """The commands of the Containerfile in folders of this machine; a build itself needs an image to build on."""
    root = checkout.parent / "root"
    for place in ("opt", "wheel"):
        (root / place).mkdir(parents=True, exist_ok=True)

    def step(line: str) -> None:
        line = re.sub(r"(?<![\w.])/(opt|wheel|weir|data)\b(?!/bin/activate)", rf"{root}/\1", line)
        done = run(line, network=True)
        assert done.returncode == 0, line + done.stdout + done.stderr

    lines = re.findall(r"^RUN (.*)$", CONTAINERFILE, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        step(line)
    weir = root / "opt" / "weir" / "bin" / "weir"
    done = run(f"{weir} run -q -d brook-news -s bm25 -o {root}/results")
    assert done.returncode == 0, done.stderr
    assert "0.6654" in done.stdout
