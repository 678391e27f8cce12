"""Asking services: answers are kept before they are used, nothing is asked twice, whatever fails is counted."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from weir.errors import ServiceError, StoreError, StoreWarning
from weir.files.network import KeptConnection
from weir.services import answers
from weir.services.answers import (
    Outcome,
    Request,
    RequestCounts,
    RequestPolicy,
    answer_key,
    answer_store,
    run_requests,
)
from weir.services.requests import (
    ABSENT_ATTEMPTS,
    AttemptError,
    Clock,
    HttpRequest,
    Ledger,
    Limits,
    Spent,
    exchange,
    retry,
)

ABOUT = {"system": "echo", "version": "1"}
KEYS = [answer_key({"n": n}) for n in range(700)]


def the_file(home: Path) -> Path:
    return next(home.glob("answers/echo-*/answers.jsonl"))


def test_answers_are_found_by_another_process_and_read_by_any_tool(home):
    with answer_store("echo", ABOUT) as store:
        for n in range(3):
            store.add(KEYS[n], {"answer": f"ü{n}\n\udc80"})
        assert (KEYS[1] in store, KEYS[3] in store, len(store)) == (True, False, 3)
    with answer_store("echo", ABOUT) as store:
        assert [store.answer(KEYS[n]) for n in (2, 3)] == [{"answer": "ü2\n\udc80"}, None]
    lines = [json.loads(line) for line in the_file(home).read_text(encoding="utf-8").splitlines()]
    assert [line["value"]["answer"] for line in lines] == [f"ü{n}\n\udc80" for n in range(3)]
    assert json.loads(the_file(home).with_name("about.json").read_text(encoding="utf-8")) == ABOUT


def test_half_a_line_is_cut_off_and_a_damaged_one_forgotten(home):
    with answer_store("echo", ABOUT) as store:
        for n in range(4):
            store.add(KEYS[n], n)
    path = the_file(home)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b":1}", b":7}") + lines[2] + lines[3][:-9])
    with ExitStack() as stack:
        with pytest.warns(StoreWarning, match="an answer is damaged and is asked for again"):
            store = stack.enter_context(answer_store("echo", ABOUT))
        assert [store.answer(KEYS[n]) for n in range(4)] == [0, None, 2, None]
        store.add(KEYS[1], "again")
        path.write_bytes(path.read_bytes().replace(b":2}", b":9}"))
        with pytest.raises(StoreError, match="is damaged; ask again"):
            store.answer(KEYS[2])
        assert store.answer(KEYS[1]) == "again"


def test_many_answers_keep_their_places_however_they_are_sorted(home, monkeypatch):
    monkeypatch.setattr(answers, "RECENT_ANSWERS", 256)
    with answer_store("echo", ABOUT) as store:
        for n, key in enumerate(KEYS):
            store.add(key, n)
        assert [store.answer(KEYS[n]) for n in (0, 255, 256, 699)] == [0, 255, 256, 699]
    with answer_store("echo", ABOUT) as store:
        assert len(store) == len(KEYS)
        assert all(store.answer(KEYS[n]) == n for n in range(len(KEYS)))


def test_what_declares_no_version_leaves_nothing_behind(home):
    with answer_store("echo", {"session": "f00"}) as store:
        store.add(KEYS[0], "here")
        assert store.answer(KEYS[0]) == "here"
    assert not (home / "answers").exists()


def test_a_full_disk_is_one_line_and_the_file_stays_whole(home):
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from weir.services.answers import answer_key, answer_store\n"
        "from weir.errors import StoreError\n"
        "with answer_store('echo', {'system': 'echo', 'version': '1'}) as store:\n"
        "    store.add(answer_key({'n': 0}), 'kept')\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "    try: store.add(answer_key({'n': 1}), 'x' * 500)\n"
        "    except StoreError as error: print(error)\n"
        "    store.add(answer_key({'n': 2}), 'too')\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "cannot write" in said
    with answer_store("echo", ABOUT) as store:
        assert [store.answer(KEYS[n]) for n in range(3)] == ["kept", None, "too"]


def requests(count: int) -> Iterator[Request]:
    return (Request(n, KEYS[n], {"n": n}) for n in range(count))


SENT: Counter[int] = Counter()
"""How often each request was asked."""


class Echo:
    """Answers with the number; of every fourth batch it fails the first request."""

    def __init__(self, slow: float = 0.0, broken: bool = False) -> None:
        self.slow, self.broken = slow, broken

    def ask(self, batch: Sequence[Request]) -> Iterator[Outcome]:
        for request in reversed(batch):
            SENT[request.number] += 1
            time.sleep(self.slow)
            if self.broken or request.number % 8 == 7:
                yield Outcome(request, error=AttemptError("failed", f"{request.number} is odd"))
            else:
                yield Outcome(request, request.number, 0.004)

    def close(self) -> None:
        pass


def asked(count: int, terms: RequestPolicy, **how: object) -> RequestCounts:
    SENT.clear()
    with answer_store("echo", ABOUT) as store:
        return run_requests(requests(count), lambda _: Echo(**how), store, terms)


def test_every_answer_is_counted_once_and_the_second_time_only_failures_are_asked(home):
    terms = RequestPolicy(concurrency=4, batch=3)
    found = asked(40, terms)
    assert (found.answered, found.stored, found.failed, found.stopped) == (35, 0, 5, False)
    assert found.unanswered == {"failed": 5}
    assert found.first is not None
    assert found.first[1].endswith("is odd")
    again = asked(40, terms)
    assert (again.answered, again.stored, again.failed) == (0, 35, 5)
    assert sorted(SENT) == [7, 15, 23, 31, 39]
    with answer_store("echo", ABOUT) as store:
        kept = store.answer(KEYS[5])
    assert kept == {"asked": {"n": 5}, "answer": 5, "ms": 4.0, "at": 12, "time": kept["time"]}


def test_the_same_request_twice_is_asked_once(home):
    with answer_store("echo", ABOUT) as store:
        twice = [Request(n, KEYS[n // 2], {}) for n in range(6)]
        found = run_requests(twice, lambda _: Echo(slow=0.02), store, RequestPolicy(concurrency=6))
    assert found.answered == 3


def test_a_service_that_only_fails_is_not_asked_to_the_end(home):
    found = asked(1000, RequestPolicy(concurrency=2, failures=10), broken=True)
    assert found.stopped
    assert 10 <= sum(SENT.values()) <= 12


def test_an_error_of_the_worker_ends_all_and_what_was_answered_stays(home):
    class Ends(Echo):
        def ask(self, batch: Sequence[Request]) -> Iterator[Outcome]:
            if batch[0].number == 5:
                raise ValueError("no budget")
            yield from super().ask(batch)

    with pytest.raises(ValueError, match="no budget"), answer_store("echo", ABOUT) as store:
        run_requests(requests(1000), lambda _: Ends(), store, RequestPolicy(concurrency=1))
    with answer_store("echo", ABOUT) as store:
        assert len(store) == 5


def test_a_killed_process_loses_no_answer_and_repeats_no_request(tmp_path, home):
    """The service notes each request in a file before it answers; the process kills itself in the middle."""
    script = (
        "import os, sys\n"
        "from tests.unit.test_services import ABOUT, Echo, answer_store, run_requests, requests, RequestPolicy\n"
        "class Noted(Echo):\n"
        "    def ask(self, batch):\n"
        "        for outcome in super().ask(batch):\n"
        "            with open(sys.argv[1], 'a') as file: file.write(f'{outcome.request.number}\\n')\n"
        "            noted = open(sys.argv[1]).read().count('\\n')\n"
        "            if noted >= int(sys.argv[2]): os.kill(os.getpid(), 9)\n"
        "            yield outcome\n"
        "with answer_store('echo', ABOUT) as store:\n"
        "    run_requests(requests(400), lambda _: Noted(), store, RequestPolicy(concurrency=4, failures=1000))\n"
    )
    log = tmp_path / "asked"
    command = [sys.executable, "-c", script, str(log)]
    root = Path(__file__).parents[2]
    assert subprocess.run([*command, "150"], cwd=root, check=False).returncode == -9
    subprocess.run([*command, "1000"], cwd=root, check=True)
    asked_of = Counter(log.read_text().split())
    assert len(asked_of) == 400
    repeated = [n for n, count in asked_of.items() if count > 1 and int(n) % 8 != 7]
    assert len(repeated) <= 4  # those whose answers were on their way, one for each thread


def test_attempts_end_with_what_was_met_and_wait_as_asked():
    slept: list[float] = []
    clock = Clock(sleep=slept.append, chance=lambda: 0.5)
    errors = [
        AttemptError("refused", "429 busy", 7.0),
        AttemptError("failed", "500"),
        AttemptError("failed", "500"),
    ]
    met: list[str] = []

    def once() -> str:
        raise errors[len(slept)]

    with pytest.raises(AttemptError, match=r"500 \(3 attempts\)") as caught:
        retry(once, Limits(attempts=3), clock, lambda error, _: met.append(error.kind))
    assert (slept, met, caught.value.attempts) == ([7.0, 2.0], ["refused", "failed"], 3)


def test_a_server_that_never_answered_is_soon_given_up_and_one_that_did_is_waited_for():
    slept: list[float] = []
    clock = Clock(sleep=slept.append)
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    host, port = server.server_address
    server.server_close()

    def attempt() -> bytes:
        request = HttpRequest("GET", f"http://{host}:{port}/v1", {})
        return exchange(KeptConnection(), request, 1 << 10, (5.0, 5.0), str, clock)

    absent = f"http://{host}:{port}: Connection refused, nothing listens there; start the server, or correct"
    with pytest.raises(ServiceError, match=absent):
        retry(attempt, Limits(), clock, lambda *_: None)
    assert len(slept) == ABSENT_ATTEMPTS - 1
    server = HTTPServer((host, port), BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    with pytest.raises(AttemptError, match="501"):  # an answer, if a poor one
        attempt()
    thread.join()
    server.server_close()
    slept.clear()
    with pytest.raises(AttemptError, match=r"Connection refused \(6 attempts\)"):
        retry(attempt, Limits(), clock, lambda *_: None)
    assert len(slept) == 5


def test_a_reservation_that_nobody_settles_counts_as_used_after_twice_the_time_of_an_answer():
    seconds = [0.0]
    ledger = Ledger(Spent(), Clock(now=lambda: seconds[0]))
    limits = Limits(tokens=150, whole=10.0)
    ledger.reserve("service", limits, 100)
    seconds[0] = 20.0
    kept, _ = ledger.reserve("service", limits, 10)  # the first may still be answered
    assert ledger.spent.tokens == 0
    seconds[0] = 20.5
    last, _ = ledger.reserve("service", limits, 20)
    assert ledger.spent.tokens == 100
    ledger.settle(kept, (10, 0))
    ledger.settle(last, (20, 0))
    with pytest.raises(ServiceError, match="budget"):
        ledger.reserve("service", limits, 30)
    assert (ledger.spent.requests, ledger.spent.tokens) == (3, 130)
