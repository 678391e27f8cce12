"""The 323 queries of NFCorpus through bm25, run, command and http: one engine, the same rankings, killed and continued."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kills import ANSWER_KEPT, struck

from weir.experiment.results import finished_cells

pytest.importorskip("numba", reason="needs the `run` extra (numba)")
pytestmark = pytest.mark.real

K = 100
ENGINE = '''
"""Weir's own BM25 behind pipes, or behind HTTP where a port is given; notes each query that it is asked."""
import http.server, json, sys, threading
import numpy as np
import weir
from weir.core.corpus import Queries
from weir.core.strings import Ids, Strings

data, notes, port = [*sys.argv[1:], None][:3]
searcher, log, turn = weir.BM25().index(weir.load(data).corpus), open(notes, "a"), threading.Lock()

def answer(id, text, k):
    with turn:
        log.write(id + "\\n"); log.flush()
        run = searcher.search(Queries(Ids.of([id]), Strings.of([text])), k)
    return {"id": id, "results": [{"id": d, "score": s} for d, s in run.to_dict()[id].items()]}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(**asked)).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)

if port is None:
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), flush=True)
else:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
'''


class Place:
    """An engine in a folder, a collection, and a results folder."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data, self.notes = folder, data, folder / "notes"
        (folder / "engine.py").write_text(ENGINE, encoding="utf-8")
        self.notes.touch()

    @property
    def line(self) -> str:
        return shlex.join([sys.executable, str(self.folder / "engine.py"), str(self.data), str(self.notes)])

    @contextmanager
    def serving(self) -> Iterator[str]:
        process = subprocess.Popen([*shlex.split(self.line), "0"], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            (self.folder / "search.toml").write_text(
                f'url = "http://127.0.0.1:{int(process.stdout.readline())}"\n'
                'body = {id = "{id}", text = "{query}", k = "{k}"}\n'
                'answer = {results = "results", id = "id", score = "score"}\n'
            )
            yield f'http("{self.folder / "search.toml"}", version="1")'
        finally:
            process.kill()
            process.communicate()

    def asked(self) -> Counter[str]:
        return Counter(self.notes.read_text().split())

    def run(self, system: str, kill_after: int = 0) -> None:
        """`weir run`, killed before it keeps so many answers."""
        command = [sys.executable, "-m", "weir", "run", "-d", str(self.data), "-s", system, "-k", str(K)]
        command += ["-m", "nDCG@10", "-q", "-o", str(self.folder / "results")]
        command = struck(command, ANSWER_KEPT, kill_after)  # the 0th never comes
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == (-9 if kill_after else 0), done.stderr

    def rankings(self, system: str) -> list[list[str]]:
        """The rows of a cell's run, but for the name in the last column."""
        (cell,) = [c for c in finished_cells(self.folder / "results") if c.ranked.name == system]
        return [line.split()[:5] for line in (cell.folder / "run.trec").read_text().splitlines()]


def test_one_engine_is_the_same_whichever_way_it_is_asked(shared, tmp_path, home):
    place = Place(tmp_path, shared / "data" / "nfcorpus")
    place.run("bm25")
    wanted = place.rankings("bm25")
    stored = tmp_path / "first.trec"
    stored.write_text("".join(" ".join([*row, "bm25"]) + "\n" for row in wanted))
    place.run(f'run("{stored}")')
    with place.serving() as served:
        for system in (f'command({json.dumps(place.line)}, version="1", batch=8)', served):
            place.notes.write_text("")
            place.run(system, kill_after=120)
            before = place.asked()
            place.run(system)
            assert place.rankings(system) == wanted
            assert len(place.asked()) == 323
            assert (place.asked() - before).total() < 323 - 100
            assert sum(count - 1 for count in place.asked().values()) <= 8  # on their way when it was killed
    assert place.rankings(f'run("{stored}")') == wanted
