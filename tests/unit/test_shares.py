"""Several processes complete one grid: each begins elsewhere, none repeats, and a killed one loses nothing of others."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from tests.kills import struck, until
from weir.cli.main import load_command, main
from weir.errors import BadValue
from weir.experiment.experiment import Capacity, Share
from weir.experiment.plan import Planned, cluster_note

pytest.importorskip("numba", reason="needs the `run` extra (numba)")
GRID = [
    "-d",
    "brook-facts",
    "-d",
    "brook-news",
    "-s",
    "bm25",
    "-s",
    "rm3",
    "-s",
    "rrf(bm25, rm3)",
    "-m",
    "nDCG@10",
]


@given(of=st.integers(1, 70), cells=st.integers(0, 100))
def test_every_share_is_of_all_cells_and_begins_elsewhere(of, cells):
    orders = [Share(number, of).order(cells) for number in range(1, of + 1)]
    assert all(sorted(order) == list(range(cells)) for order in orders)
    firsts = [order[0] for order in orders if order]
    assert len(set(firsts)) == min(of, cells)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/", "-1/2", "1/2/3"])
def test_what_is_no_share_is_one_line(text, tmp_path, capsys):
    with pytest.raises(BadValue):
        Share.parse(text)
    assert main(["run", *GRID, "-o", str(tmp_path / "out"), "--share", text]) == 2
    assert "such as 3/8" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("cluster", "line"), [("ray", "[ray]'"), ("slurm", "ray"), ("ray:x", "[ray]'")])
def test_a_cluster_that_is_not_there_is_one_line(cluster, line, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "out"), "--on", cluster]) == 2
    errors = capsys.readouterr().err
    assert line in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "out").exists()


def results_of(folder):
    """The bytes of every ranking and of all values by query."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in ("run.trec", "scores-*.jsonl")
        for path in folder.rglob(pattern)
        if "indexes" not in path.parts
    }


@pytest.mark.slow
def test_four_processes_of_which_one_is_killed(tmp_path, home):
    """Two results folders over one folder of stages; the shared grid equals that of one process byte for byte."""

    def started(number):
        command = [sys.executable, "-m", "weir", "run", *GRID, "-q", "--share", f"{number}/4", "--json",
                   "-o", str(tmp_path / f"out{(number + 1) // 2}"), "--stages", str(tmp_path / "stages")]  # fmt: skip
        if number == 1:  # it is the first that makes an index, and dies before the record of that
            command = struck(command, tmp_path / "stages", 12)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    processes = [started(1)]
    until((tmp_path / "stages").exists, processes[0])
    processes += [started(number) for number in range(2, 5)]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [-signal.SIGKILL, 0, 0, 0], errors
    for out in ("out1", "out2"):  # what the last one left to others is finished by now
        assert (
            main(["run", *GRID, "-q", "-o", str(tmp_path / out), "--stages", str(tmp_path / "stages")]) == 0
        )
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "alone")]) == 0
    expected = results_of(tmp_path / "alone")
    assert len(expected) == 12
    assert results_of(tmp_path / "out1") == expected
    assert results_of(tmp_path / "out2") == expected
    assert not list(tmp_path.rglob(".*.lock"))


def test_what_a_cluster_takes():
    plans = [
        Planned("a", "bm25", 10, 5, index_seconds=s, index_range=(s / 2, 2 * s)) for s in (3600, 3600, 7200)
    ]
    note = cluster_note(plans, Capacity(2, 2), 1.5)
    assert note.text.startswith(
        "on 2 machines, 2 cells at once: 3 cells in 3.0 h (90 min to 6.0 h), $9.00 ($4.50 to $18.00)"
    )
    assert "the longest, bm25 on a, takes 2.0 h" in note.text
    assert "1 more without an estimate" in str(
        cluster_note([*plans, Planned("a", "own", 1, 1)], Capacity(1, 8))
    )
    assert "$" not in str(cluster_note(plans, Capacity(1, 8)))
    for on, price, reason in (
        ("ray", -1.0, "from 0"),
        ("ray", float("nan"), "from 0"),
        (None, 2.0, "`on='ray'`"),
    ):
        with pytest.raises(BadValue, match=reason):
            weir.plan("brook-facts", "bm25", on=on, machine_price=price)


def test_the_recipes_of_the_page_agree_with_the_commands_and_extras():
    """Of docs/scale.md: the RayJob of Kubernetes with its image, and the user data of a machine of a cloud."""
    yaml = pytest.importorskip("yaml")
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs/scale.md").read_text(encoding="utf-8")
    [image], [manifest], [script] = (
        re.findall(rf"```{begins}(.*?)```", page, re.DOTALL)
        for begins in ("dockerfile\n", "yaml\n", "sh\n(?=#!)")
    )
    job = yaml.safe_load(manifest)["spec"]
    ray = job["rayClusterSpec"]
    assert f"FROM rayproject/ray:{ray['rayVersion']}-py" in image
    pods = [group["template"]["spec"] for group in (ray["headGroupSpec"], *ray["workerGroupSpecs"])]
    containers = [one for pod in pods for one in pod["containers"]]
    assert len({one["image"] for one in containers}) == 1
    for pod in pods:
        [volume], [container] = pod["volumes"], pod["containers"]
        [mount], [home] = container["volumeMounts"], container["env"]
        assert mount["name"] == volume["name"]
        assert home["name"] == "WEIR_HOME"
        assert home["value"].startswith(mount["mountPath"] + "/")
    assert all(
        group["minReplicas"] <= group["replicas"] <= group["maxReplicas"] for group in ray["workerGroupSpecs"]
    )

    def options(line):
        words = shlex.split(line)
        assert words[0].endswith("weir")
        assert words[1] == "run"
        return load_command("run").make_context("run", words[2:]).params

    asked = options(job["entrypoint"])
    assert asked["given__on"] == "ray"
    assert str(asked["out"]).startswith(mount["mountPath"] + "/")
    asked = options(script.splitlines()[-1])
    assert (asked["given__on"], asked["grid__stages"]) == ("ray", "s3://bucket/weir")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    extras = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for named in re.findall(r"weir-ir\[(.*?)\]", image + script):
        assert set(named.split(",")) <= extras.keys()
