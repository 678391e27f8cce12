"""PostgreSQL as a system, killed anywhere: what is on the server is gone on with, and nothing is asked twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.kills import killed_when
from tests.unit.brooklet import write_collection

pytestmark = pytest.mark.xdist_group("postgres")


def many(folder: Path, documents: int) -> Path:
    """A collection of many documents."""
    rng = np.random.default_rng(2)
    words = ["river", "dam", "weir", "meadow", "flood"]
    return write_collection(
        folder, {f"d{i}": ("", " ".join(rng.choice(words, 60))) for i in range(documents)}
    )


def started(tmp_path: Path, system: str, collection: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "weir", "run", "-d", str(collection), "-s", system, "-m", "AP"]
    return subprocess.Popen(
        [*command, "-o", str(tmp_path / "out"), "-q"], env=os.environ, stdout=subprocess.DEVNULL
    )


def test_indexing_goes_on_where_it_was_killed(shop, shop_system, tmp_path):
    collection, system = many(tmp_path / "many", 20_000), str(shop_system())

    def copied() -> int:
        tables = shop.ask(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'weir' AND tablename LIKE 'text_%%'"
        )
        return shop.ask(f"SELECT count(*) FROM weir.{tables[0][0]}")[0][0] if tables else 0

    killed_when(started(tmp_path, system, collection), lambda: copied() >= 4000)
    while shop.ask("SELECT 1 FROM pg_stat_activity WHERE application_name = 'weir'"):
        time.sleep(0.01)
    before = copied()
    [(table,)] = shop.ask(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'weir' AND tablename LIKE 'text_%%'"
    )
    first = shop.ask(f"SELECT doc, xmin::text FROM weir.{table} ORDER BY doc LIMIT %s", before)
    assert 4000 <= before < 20_000
    assert shop.ask("SELECT complete FROM weir.indexes") == [(None,)]
    assert started(tmp_path, system, collection).wait(60) == 0
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
    shop.ask("CREATE FUNCTION shop.slowly(text) RETURNS text LANGUAGE sql AS 'SELECT $1 FROM pg_sleep(0.02)'")
    shop.ask("CREATE VIEW shop.slow AS SELECT id, shop.slowly(body) AS body FROM shop.items")
    settings = '[table]\nname = "shop.slow"\nid = "id"\ntext = ["body"]\n[text]\nquery = "or"\n'
    system = str(shop_system("concurrency = 2\n" + settings, ', version="1"'))

    def kept() -> list[str]:
        files = list(home.rglob("answers.jsonl"))
        lines = files[0].read_bytes().split(b"\n")[:-1] if files else []
        return [json.loads(line)["value"]["asked"]["text"] for line in lines]

    killed_when(started(tmp_path, system, collection), lambda: len(kept()) >= 6)
    before, since = kept(), shop.log.stat().st_size
    assert 6 <= len(before) < 40
    time.sleep(0.5)  # what was being asked when it was killed is shop_system down
    since = shop.log.stat().st_size
    assert started(tmp_path, system, collection).wait(60) == 0
    again = shop.searched(since)
    assert set(again) == set(asked.values()) - set(before)
    assert len(again) == len(set(again))
    assert sorted(kept()) == sorted(asked.values())
