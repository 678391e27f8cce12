"""Machines share stages in S3: moto's server on loopback, processes that are killed, objects that are damaged."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.kills import killed_when

from weir.cli.main import main
from weir.errors import StoreError
from weir.experiment.verify import verified
from weir.files.leases import renewed, taken
from weir.plugins.cluster.object_store import ObjectStore
from weir.settings import settings

pytest.importorskip("moto.moto_server", reason="needs moto[server], as make test-slow installs it")
pytest.importorskip("s3fs", reason="needs the `cloud` extra (s3fs)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SECRET = "not-a-secret-of-anybody-0123456789"
GRID = ["-d", "brook-facts", "-s", "bm25", "-s", "rm3", "-s", "rrf(bm25, rm3)", "-m", "nDCG@10"]
WHERE = "s3://bucket/weir"
SLOWLY = """
import sys, time
from weir.experiment import stage_store
from weir.cli.main import main
built = stage_store.indexed
def slowly(*arguments):
    print("building", arguments[0], flush=True)
    time.sleep(float(sys.argv[1]))
    return built(*arguments)
stage_store.indexed = slowly
sys.exit(main(sys.argv[2:]))
"""
"""Weir with an index that takes SECONDS longer."""


class Server:
    """A server, its requests, and a client of its bucket."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "requests"
        with self.log.open("wb") as log:
            script = Path(__file__).parents[1] / "s3_server.py"
            self.process = subprocess.Popen(
                [sys.executable, script, *arguments], stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.port = self.process.stdout.readline().strip()

    def requests(self) -> list[tuple[str, str]]:
        return re.findall(r'"[^A-Z]*([A-Z]+) (\S+) HTTP', self.log.read_text(encoding="utf-8"))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def served(folder, monkeypatch, *arguments):
    import s3fs

    server = Server(folder, *arguments)
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "2",
        "WEIR_LEASE": "2",
    }.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("bucket")
    return server


@pytest.fixture(params=["86400", "-86400"], ids=["a-day-ahead", "a-day-behind"])
def server(request, tmp_path, monkeypatch):
    """A server whose clock is a day off; others have that of the machine."""
    server = served(tmp_path, monkeypatch, request.param)
    yield server
    server.end()


@pytest.fixture
def plain(tmp_path, monkeypatch):
    server = served(tmp_path, monkeypatch, "0")
    yield server
    server.end()


def started(out: Path, *more: str, seconds: float = 0.0, grid: list[str] = GRID) -> subprocess.Popen:
    command = [sys.executable, "-W", "ignore", "-c", SLOWLY, str(seconds)]
    command += ["run", *grid, "--stages", WHERE, "-o", str(out), *more]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def ended(*processes: subprocess.Popen) -> list[str]:
    """What processes said on standard error; each ended well."""
    said = [process.communicate(timeout=600)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


def stages(folder: Path) -> dict[str, bytes]:
    """The records of indexes and rankings: who made each and when stands in them."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("stage.json")}


def values(folder: Path) -> dict[str, bytes]:
    """Rankings and values by query."""
    paths = [path for name in ("run.trec", "scores-*.jsonl") for path in folder.rglob(name)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def objects() -> list[str]:
    import s3fs

    files = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    return [str(path) for path in files.find("bucket")]


def sizes() -> dict[str, tuple[int, str]]:
    import s3fs

    files = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    return {name: (one["size"], one["ETag"]) for name, one in files.find("bucket", detail=True).items()}


def test_machines_make_each_stage_once(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_LEASE", "8")
    outs = [tmp_path / f"out{n}" for n in range(2)]
    ended(*(started(out, seconds=10) for out in outs))  # longer than a lease: it is renewed
    assert stages(outs[0]) == stages(outs[1])
    assert len(stages(outs[0])) == 5  # two indexes, three rankings
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "alone")]) == 0
    assert values(outs[0]) == values(outs[1]) == values(tmp_path / "alone")
    assert len(values(outs[0])) == 6
    for out in outs:
        assert all(one.status == "sound" if one.kind == "cell" else one.sound for one in verified(out))
    assert not [name for name in objects() if ".leases" in name or "/." in name]
    for out in outs:  # neither leases nor records nor messages hold what opens the store
        assert not [path for path in out.rglob("*") if path.is_file() and SECRET in path.read_text("latin-1")]
    for path in outs[1].rglob("run.trec"):
        path.write_bytes(path.read_bytes()[:100])
    ended(started(outs[1]))
    assert values(outs[1]) == values(outs[0])


def test_a_machine_reads_what_it_needs(plain, tmp_path):
    ended(started(tmp_path / "first"))
    before, out = len(plain.requests()), tmp_path / "second"
    ended(started(out, grid=["-d", "brook-facts", "-s", "rrf(bm25, rm3)", "-m", "nDCG@10"]))
    reads = [name for verb, name in plain.requests()[before:] if verb == "GET" and "stage.json" not in name]
    assert len([name for name in reads if "run.trec" in name]) == 1
    assert not [name for name in reads if "/indexes/" in name and "list-type" not in name]
    assert not [verb for verb, name in plain.requests()[before:] if verb == "PUT" and ".probe" not in name]
    assert stages(out) == stages(tmp_path / "first")  # with the records of what is behind it
    assert [path.parent.name[:3] for path in out.rglob("run.trec")] == ["rrf"]
    remarks = {one.kind: one for one in verified(out)}
    assert remarks["cell"].status == "sound"
    assert remarks["index"].sound
    assert not remarks["index"].fully_checked
    assert main(["run", *GRID, "-q", "-o", str(out), "--stages", WHERE]) == 0
    assert values(out) == values(tmp_path / "first")
    ended(started(out, grid=[*GRID, "-s", "rrf(bm25, rm3, k=10)"]))
    assert all(one.fully_checked for one in verified(out) if one.kind == "cell")


def test_a_machine_that_dies_in_the_middle_of_a_stage(server, tmp_path):
    dead = started(tmp_path / "dead", seconds=600)
    assert dead.stdout.readline().startswith("building ")
    other = started(tmp_path / "out")
    assert any("makes it, waiting" in line for line in iter(other.stderr.readline, ""))
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    ended(other)
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "alone")]) == 0
    assert values(tmp_path / "out") == values(tmp_path / "alone")
    assert not [name for name in objects() if ".leases" in name]
    ended(started(tmp_path / "dead"))  # and the machine that died comes back
    assert stages(tmp_path / "dead") == stages(tmp_path / "out")


def test_a_machine_that_was_suspended_goes_on(plain, tmp_path):
    """Another took over and finished meanwhile; what the first one makes is equal and replaces nothing."""
    slow = started(tmp_path / "slow", seconds=2)
    assert slow.stdout.readline().startswith("building ")
    slow.send_signal(signal.SIGSTOP)
    ended(started(tmp_path / "out"))
    records = {name: size for name, size in sizes().items() if name.endswith("stage.json")}
    slow.send_signal(signal.SIGCONT)
    ended(slow)
    assert records.items() <= sizes().items()
    assert values(tmp_path / "slow") == values(tmp_path / "out")
    ended(started(tmp_path / "third"))
    assert stages(tmp_path / "third") == stages(tmp_path / "out")
    assert not [name for name in objects() if ".leases" in name]


def test_an_interrupted_machine_lets_go_at_once(plain, tmp_path):
    process = started(tmp_path / "out", seconds=600)
    assert process.stdout.readline().startswith("building ")
    assert [name for name in objects() if ".leases" in name]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=600)
    assert process.returncode not in (0, -signal.SIGINT)
    assert not objects()


def test_empty_files_travel(plain, tmp_path):
    store, path = ObjectStore.open(WHERE), tmp_path / "empty"
    path.touch()
    store.upload(path, "empty", lambda count: None)
    assert store.download("empty", tmp_path / "here", lambda count: None)
    assert (tmp_path / "here").read_bytes() == b""
    assert not store.download("nothing", tmp_path / "there", lambda count: None)


def test_a_damaged_object_is_noticed_and_made_again(plain, tmp_path):
    import s3fs

    ended(started(tmp_path / "first"))
    files = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    runs = [name for name in objects() if "run.trec" in name]
    assert len(runs) == 3
    for name in runs:
        data = bytearray(files.cat_file(name))
        data[len(data) // 2] ^= 1
        files.pipe_file(name, bytes(data))
    index = next(name for name in objects() if "/indexes/" in name and "stage.json" not in name)
    files.rm_file(index)
    said = ended(started(tmp_path / "second"))[0]
    assert said.count("is damaged in s3://bucket/weir") >= 4
    assert values(tmp_path / "second") == values(tmp_path / "first")
    before = len(plain.requests())
    assert "is damaged" not in ended(started(tmp_path / "third"))[0]
    assert values(tmp_path / "third") == values(tmp_path / "first")
    assert not [verb for verb, name in plain.requests()[before:] if verb == "PUT" and ".probe" not in name]
    record = next(name for name in objects() if name.endswith("stage.json") and "/indexes/" not in name)
    files.pipe_file(record, b"{}")
    assert "is damaged in s3://bucket/weir" in ended(started(tmp_path / "fourth"))[0]
    assert values(tmp_path / "fourth") == values(tmp_path / "first")


def test_an_upload_that_ends_in_the_middle_shows_nothing(plain, tmp_path):
    """Of a large file in parts, and of a stage whose record would come next."""
    large = tmp_path / "large"
    large.write_bytes(bytes(150_000_000))
    code = f"from pathlib import Path\nfrom weir.plugins.cluster.object_store import ObjectStore\nObjectStore.open({WHERE!r}).upload(Path({str(large)!r}), 'large', lambda n: None)"
    process = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ))
    killed_when(process, lambda: any("partNumber" in name for _, name in plain.requests()))
    assert [name for _, name in plain.requests() if "large" in name]
    assert not objects()
    code = "import os\nfrom weir.plugins.cluster.shared_stages import ObjectStore\nwrite = ObjectStore.create\nObjectStore.create = lambda self, name, data: os.kill(os.getpid(), 9) if 'stage.json' in name else write(self, name, data)\n"
    process = subprocess.run(
        [sys.executable, "-c", code + SLOWLY, "0", "run", *GRID, "--stages", WHERE, "-q",
         "-o", str(tmp_path / "dead")], env=dict(os.environ), check=False)  # fmt: skip
    assert process.returncode == -9
    assert [name for name in objects() if "/indexes/" in name]
    assert not [name for name in objects() if "stage.json" in name]
    ended(started(tmp_path / "out"))
    ended(started(tmp_path / "dead"))
    assert values(tmp_path / "out") == values(tmp_path / "dead")


def test_what_was_made_without_a_connection_is_published_later(plain, tmp_path):
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "out")]) == 0
    assert not objects()
    ended(started(tmp_path / "out", grid=[*GRID, "-s", "rrf(bm25, rm3, k=10)"]))
    published = {name.split("/")[3] for name in objects() if "/indexes/" not in name}
    assert any(name.startswith("bm25-") for name in published)
    assert any(name.startswith("rm3-") for name in published)
    ended(started(tmp_path / "second", grid=[*GRID[:6], *GRID[-2:]]))
    assert stages(tmp_path / "second").items() <= stages(tmp_path / "out").items()


def test_of_many_machines_one_holds_a_lease(server, monkeypatch):
    monkeypatch.setenv("WEIR_LEASE", "6")  # within which eight threads have looked at a lease, on any machine
    settings.cache_clear()
    store, numbers, barrier = ObjectStore.open(WHERE), [], threading.Barrier(8)

    def work():
        barrier.wait()
        numbers.append(taken(store, "lease"))

    def all_at_once():
        numbers.clear()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(number for number in numbers if number is not None)

    assert all_at_once() == [1]
    with renewed(store, "lease", 1):
        time.sleep(7)
        assert not all_at_once()
    assert all_at_once() == [1]
    time.sleep(7)
    assert all_at_once() == [2]


def test_a_store_that_ignores_conditions_is_refused(tmp_path, monkeypatch, capsys):
    server = served(tmp_path, monkeypatch, "0", "unconditional")
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "out"), "--stages", WHERE]) == 2
    said = capsys.readouterr().err
    assert "ignores conditional writes" in said
    assert len(said.splitlines()) == 1
    assert not objects()
    server.end()


def test_a_store_out_of_reach_is_one_line(plain, tmp_path, capsys):
    plain.end()
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "out"), "--stages", WHERE]) == 2
    said = capsys.readouterr().err
    assert WHERE in said
    assert len(said.splitlines()) == 1
    assert SECRET not in said
    assert not (tmp_path / "out").exists()


def test_a_store_that_goes_away_in_the_middle(plain, tmp_path):
    process = started(tmp_path / "out", "-q", seconds=10)
    assert process.stdout.readline().startswith("building ")
    plain.end()
    _, said = process.communicate(timeout=600)
    assert process.returncode == 2
    assert len(said.splitlines()) == 1
    assert WHERE in said
    assert len(list((tmp_path / "out").rglob("indexes/*/stage.json"))) == 1  # nothing that was made is lost


def test_a_missing_bucket_is_one_line(plain, tmp_path, capsys):
    assert main(["run", *GRID, "-q", "-o", str(tmp_path / "out"), "--stages", "s3://no-such-bucket/x"]) == 2
    assert "The specified bucket does not exist" in capsys.readouterr().err


def test_records_that_lead_elsewhere(plain, tmp_path):
    """A record of somebody else that names a file outside its folder is damaged, not followed."""
    import s3fs

    from weir.experiment.stages import _digest

    ended(started(tmp_path / "first"))
    files = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    for name in [name for name in objects() if name.endswith("stage.json")]:
        record = json.loads(files.cat_file(name))
        record["files"] = {f"../../../../stolen-{file}": one for file, one in record["files"].items()}
        record["check"] = _digest({key: value for key, value in record.items() if key != "check"})
        files.pipe_file(name, json.dumps(record).encode())
    said = ended(started(tmp_path / "second"))[0]
    assert "leads out of its folder" in said
    assert values(tmp_path / "second") == values(tmp_path / "first")
    assert not list(tmp_path.rglob("stolen*"))


def test_errors_hide_what_opens_the_store(monkeypatch):
    class Files:
        def size(self, path):
            return 1

        def cat_file(self, path):
            raise OSError(f"signature of {SECRET} is wrong")

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with pytest.raises(StoreError, match=r"signature of \*\*\* is wrong"):
        ObjectStore(WHERE, Files(), "bucket").read("x")
