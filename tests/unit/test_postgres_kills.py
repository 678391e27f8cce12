"""PostgreSQL as a system, killed anywhere: what is on the server is gone on with, and nothing is asked twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.kills import ANSWER_KEPT, struck, until
from tests.unit.brooklet import write_collection

pytestmark = pytest.mark.xdist_group("postgres")


def many(folder: Path, documents: int) -> Path:
    """A collection of many documents."""
    rng = np.random.default_rng(2)
    words = ["river", "dam", "weir", "meadow", "flood"]
    return write_collection(
        folder, {f"d{i}": ("", " ".join(rng.choice(words, 60))) for i in range(documents)}
    )


def weir_run(tmp_path: Path, system: str, collection: Path) -> list[str]:
    command = [sys.executable, "-m", "weir", "run", "-d", str(collection), "-s", system, "-m", "AP"]
    return [*command, "-o", str(tmp_path / "out"), "-q"]


def ended(command: list[str]) -> int:
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def test_indexing_goes_on_where_it_was_killed(shop, shop_system, tmp_path):
    collection, system = many(tmp_path / "many", 20_000), str(shop_system())

    def copied() -> int:
        tables = shop.ask(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'weir' AND tablename LIKE 'text_%%'"
        )
        return shop.ask(f"SELECT count(*) FROM weir.{tables[0][0]}")[0][0] if tables else 0

    command = weir_run(tmp_path, system, collection)
    assert ended(struck(command, "weir.plugins.servers.postgres:_batch", 4)) == -9
    until(lambda: not shop.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'weir'"))
    before = copied()
    [(table,)] = shop.ask(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'weir' AND tablename LIKE 'text_%%'"
    )
    first = shop.ask(f"SELECT doc, xmin::text FROM weir.{table} ORDER BY doc LIMIT %s", before)
    assert before == 6000
    assert shop.ask("SELECT complete FROM weir.indexes") == [(None,)]
    assert ended(command) == 0
    assert copied() == 20_000
    assert shop.ask(f"SELECT doc, xmin::text FROM weir.{table} ORDER BY doc LIMIT %s", before) == first
    dataset = weir.load(collection)
    found, ours = (
        one.index(dataset.corpus).search(dataset.queries, 20_000).to_dict()
        for one in (weir.parse_system(system), weir.BM25())
    )
    assert {query: set(ranking) for query, ranking in found.items()} == {q: set(r) for q, r in ours.items()}
    assert len(found["q1"]) > 10_000


def test_no_question_is_asked_twice_after_a_kill(shop, shop_system, tmp_path, home):
    """The server's own log says what it was asked."""
    collection = write_collection(tmp_path / "mine")
    asked = {f"q{i}": f"river number {i}" for i in range(40)}
    lines = [json.dumps({"_id": i, "text": text}) for i, text in asked.items()]
    (collection / "queries.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{q}\td1\t1" for q in asked]
    (collection / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    shop.ask("CREATE SCHEMA shop")
    shop.ask(
        "CREATE TABLE shop.items AS SELECT 'd' || i AS id, 'the river ' || i AS body FROM generate_series(1, 6) i"
    )
    settings = '[table]\nname = "shop.items"\nid = "id"\ntext = ["body"]\n[text]\nquery = "or"\n'
    system = str(shop_system("concurrency = 2\n" + settings, ', version="1"'))

    def kept() -> list[str]:
        files = list(home.rglob("answers.jsonl"))
        lines = files[0].read_bytes().split(b"\n")[:-1] if files else []
        return [json.loads(line)["value"]["asked"]["text"] for line in lines]

    command = weir_run(tmp_path, system, collection)
    assert ended(struck(command, ANSWER_KEPT, 7)) == -9
    before = kept()
    assert len(before) == 6
    until(lambda: not shop.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'weir'"))
    since = shop.log.stat().st_size
    assert ended(command) == 0
    again = shop.searched(since)
    assert set(again) == set(asked.values()) - set(before)
    assert len(again) == len(set(again))
    assert sorted(kept()) == sorted(asked.values())
