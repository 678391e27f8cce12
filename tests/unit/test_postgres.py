"""PostgreSQL as a system, on a real server: full-text search, pgvector, tables of Weir's own and of others."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import DOCUMENTS, QUERIES, write_collection
from weir.cli.main import main
from weir.core.corpus import Corpus, Queries
from weir.errors import BadRanking, BadValue, FormatError, ServiceError, StoreError, StoreWarning, UnknownName
from weir.experiment.experiment import Experiment
from weir.systems import Context

pytestmark = pytest.mark.xdist_group("postgres")

CORPUS = Corpus.of({i: {"title": title, "text": text} for i, (title, text) in DOCUMENTS.items()})
ASKED = Queries.of(QUERIES)


def answers(system, queries=ASKED, corpus=CORPUS, k=10):
    return system.index(corpus).search(queries, k).to_dict()


class Words:
    """An encoder: how often some words occur, of no particular length."""

    def encode(self, texts):
        words = ("river", "dam", "dough", "meadow", "rise")
        return np.array([[text.lower().count(word) + 0.1 for word in words] for text in texts], np.float32)


def words():
    return weir.Dense(weir.encoder(Words(), similarity="cosine", version="1"))


@pytest.mark.parametrize(
    ("query", "function"),
    [("plain", "plainto_tsquery"), ("websearch", "websearch_to_tsquery"), ("phrase", "phraseto_tsquery")],
)
@pytest.mark.parametrize(("rank", "mask"), [("ts_rank", 0), ("ts_rank_cd", 1)])
def test_full_text_is_what_the_server_itself_answers(shop, shop_system, query, function, rank, mask):
    system = shop_system(f'[text]\nquery = "{query}"\nrank = "{rank}"\nnormalization = {mask}\n')
    found = answers(system)
    shop.ask("CREATE SCHEMA shop")
    shop.ask("CREATE TABLE shop.documents (id text, content text)")
    for name, (title, text) in DOCUMENTS.items():
        shop.ask("INSERT INTO shop.documents VALUES (%s, %s)", name, f"{title} {text}".strip())
    for name, text in QUERIES.items():
        vector, asked = "to_tsvector('english', content)", f"{function}('english', %s)"
        rows = shop.ask(
            f"SELECT id, {rank}({vector}, {asked}, {mask}) FROM shop.documents WHERE {vector} @@ {asked}",
            text,
            text,
        )
        assert found[name] == pytest.approx(dict(rows)), (query, name)
    assert found["d4"]["d4"] > 0
    assert str(weir.parse_system(str(system))) == str(system)


def test_any_word_is_enough_and_ties_are_in_weirs_order(shop, shop_system):
    found = answers(shop_system())
    assert list(found["q1"]) == list(
        dict(sorted(found["q1"].items(), key=lambda row: (row[1], row[0]), reverse=True))
    )
    assert set(found["q1"]) == {"d1", "d2", "d4", "d6"}  # a river, a dam, or both
    assert found["q1"]["d2"] == found["q1"]["d6"]
    assert list(found["q1"]).index("d6") < list(found["q1"]).index("d2")
    best = answers(shop_system(), k=3)["q1"]
    assert list(best) == list(found["q1"])[:3]  # the same where the cut goes through a tie
    assert found["q3"] == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "'; DROP TABLE x; --",
        "a & b | !c:*",
        "it''s \\' \\ \\\\",
        "nul\0l",
        '"unclosed',
        "%(text)s %s",
        "🏞 \u202ex",
        "the of",
    ],
)
@pytest.mark.parametrize("query", ["or", "websearch", "phrase"])
def test_no_query_is_read_as_anything_but_words(shop, shop_system, text, query):
    corpus = Corpus.of({"odd": text + " x", "other": "nothing"})
    found = answers(shop_system(f'[text]\nquery = "{query}"\n'), Queries.of({"q": text}), corpus)
    assert set(found["q"]) <= {"odd"}


def test_vectors_are_found_as_weir_finds_them(shop, shop_system, home):
    exact = shop_system(beside="")
    system = weir.systems.SYSTEMS.get("postgres")(exact.file, encoder=words())
    ours = words().index(CORPUS).search(ASKED, 4)
    theirs = system.index(CORPUS).search(ASKED, 4)
    assert [list(row) for row in theirs.to_dict().values()] == [list(row) for row in ours.to_dict().values()]
    assert theirs.score == pytest.approx(ours.score, rel=1e-6)
    near = weir.systems.SYSTEMS.get("postgres")(exact.file, encoder=words(), index="hnsw")
    assert near.index(CORPUS).search(ASKED, 4).to_dict().keys() == ours.to_dict().keys()
    [(built,)] = shop.ask("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%%hnsw%%vector_ip_ops%%'")
    assert built == 1
    assert str(system) == f'postgres("{exact.file}", encoder=dense(Words))'


def test_hnsw_goes_on_until_it_has_found_as_many_as_are_asked_for(shop, shop_system):
    rng = np.random.default_rng(4)
    corpus = Corpus.of(
        {f"d{i}": " ".join(rng.choice(["river", "dam", "dough", "meadow"], 9)) for i in range(1500)}
    )
    made = weir.systems.SYSTEMS.get("postgres")
    settings = shop_system("[vector]\nef_search = 10\n").file
    asked = Queries.of({"q": "dam", "r": "river dough"})
    searcher = made(settings, encoder=words(), index="hnsw").index(corpus)
    assert len(searcher.search(asked, 1200).doc) == 2400
    exact = made(settings, encoder=words()).index(corpus)
    best, near = (one.search(asked, 20).to_dict() for one in (exact, searcher))
    lost = np.mean([len(best[q].keys() - near[q].keys()) / 20 for q in best])
    assert searcher.loss(asked, 20).total == pytest.approx(lost)
    with pytest.raises(BadValue, match="searches exactly"):
        exact.loss(asked, 20)


def test_a_table_of_ones_own_is_searched_and_never_changed(shop, shop_system):
    shop.ask("CREATE SCHEMA shop")
    shop.ask('CREATE TABLE shop."Odd ""Items" (sku text, name text, body text, words tsvector)')
    for name, (title, text) in DOCUMENTS.items():
        shop.ask(
            """INSERT INTO shop."Odd ""Items" VALUES (%s, %s, %s, to_tsvector('english', %s))""",
            name,
            title or None,
            text,
            f"{title} {text}",
        )
    own = answers(shop_system())
    table = """[table]\nname = 'shop.Odd "Items'\nid = "sku"\n"""
    by_columns = answers(
        shop_system(table + 'text = ["name", "body"]\n[text]\nquery = "or"\n', ', version="1"')
    )
    by_tsvector = answers(shop_system(table + 'tsvector = "words"\n[text]\nquery = "or"\n', ', version="1"'))
    assert by_columns == by_tsvector == own
    shop.ask(
        """INSERT INTO shop."Odd ""Items" VALUES ('new', 'A river', '', to_tsvector('english', 'river'))"""
    )
    with pytest.raises(BadRanking, match="the first 'new' to query"):
        answers(shop_system(table + 'tsvector = "words"\n[text]\nquery = "or"\n', ', version="2"'))
    assert answers(shop_system(table + 'tsvector = "words"\n[text]\nquery = "or"\n', ', version="1"')) == own
    [(count,)] = shop.ask("""SELECT count(*) FROM shop."Odd ""Items" """)
    assert count == len(DOCUMENTS) + 1


@pytest.mark.parametrize("distance", ["inner", "cosine", "l2"])
def test_vectors_of_ones_own_are_searched(shop, shop_system, distance):
    shop.ask("CREATE EXTENSION IF NOT EXISTS vector")
    shop.ask("CREATE SCHEMA shop")
    shop.ask("CREATE TABLE shop.items (sku text, embedding vector(5))")
    vectors = Words().encode([f"{title} {text}".strip() for title, text in DOCUMENTS.values()])
    for name, vector in zip(DOCUMENTS, vectors, strict=True):
        shop.ask("INSERT INTO shop.items VALUES (%s, %s::vector)", name, str(vector.tolist()))
    table = '[table]\nname = "shop.items"\nid = "sku"\nvector = "embedding"\n'
    file = shop_system(f'{table}[vector]\ndistance = "{distance}"\n', ', encoder="minilm"').file
    system = weir.systems.SYSTEMS.get("postgres")(file, encoder=words(), version="1")
    found = answers(system, k=6)
    for name, raw in zip(QUERIES, Words().encode(list(QUERIES.values())), strict=True):
        query = raw / np.linalg.norm(raw)  # as the encoder gives it
        scores = {
            "inner": vectors @ query,
            "cosine": vectors @ query / np.linalg.norm(vectors, axis=1),
            "l2": -np.linalg.norm(vectors - query, axis=1),
        }[distance]
        expected = sorted(zip(np.float32(scores).tolist(), DOCUMENTS, strict=True), reverse=True)
        assert found[name] == pytest.approx({doc: score for score, doc in expected}, rel=1e-5), distance


def test_what_a_server_refuses_is_one_line(shop, shop_system, monkeypatch):
    lines = {
        (
            '[table]\nname = "shop.gone"\nid = "sku"\ntext = ["name"]\n',
            "",
        ): 'relation "shop.gone" does not exist',
        ('[text]\nconfig = "klingon"\n', ""): 'text search configuration "klingon" does not exist',
    }
    for (settings, beside), said in lines.items():
        with pytest.raises(ServiceError, match=said) as caught:
            answers(shop_system(settings, beside))
        assert "\n" not in str(caught.value)
    with pytest.raises(ServiceError, match="environment variable PGGONE"):
        answers(shop_system(dsn="${PGGONE}"))
    monkeypatch.setenv("PGURL", "postgresql://me:very-secret@127.0.0.1:1/gone")
    with pytest.raises(ServiceError) as caught:
        answers(shop_system())
    assert "very-secret" not in str(caught.value)
    monkeypatch.setenv("PGURL", "AKIA-no-address-but-a-secret")
    with pytest.raises(ServiceError) as caught:
        answers(shop_system())
    assert "AKIA" not in str(caught.value)


def test_what_a_file_says_wrongly_is_one_line(shop_system, tmp_path):
    wrong = {
        "rank = 1": (UnknownName, "no setting in the file of .* named 'rank'"),
        '[text]\nquery = "any"': (FormatError, "query is 'any'; expected websearch, plain, phrase, or"),
        "[text]\nnormalization = 99": (FormatError, "normalization is 99"),
        '[table]\nname = "a"\n': (FormatError, "without"),
        '[table]\nname = "a"\nid = "b"\n': (FormatError, "a table names text"),
        "[vector]\nm = 1": (FormatError, "m is 1; expected a whole number from 2"),
        "table = 5": (FormatError, r"\[table\] is int"),
        'on_failure = "zero"': (FormatError, "expected 'refuse' or 'missing'"),
    }
    for settings, (kind, said) in wrong.items():
        with pytest.raises(kind, match=said):
            shop_system(settings)
    for dsn in ("host=a password=b", "postgresql://me:secret@host/db"):
        with pytest.raises(FormatError, match="a password, which belongs into the environment"):
            shop_system(dsn=dsn)
    with pytest.raises(FormatError, match="names the environment variable AWS_SECRET"):
        shop_system(dsn="${AWS_SECRET}")
    with pytest.raises(BadValue, match="index does not apply to a search of full text"):
        shop_system(beside=', index="hnsw"')
    with pytest.raises(BadValue, match="rank does not apply to a search of vectors"):
        shop_system(beside=', encoder="minilm", rank="ts_rank"')
    with pytest.raises(FormatError, match="no such file"):
        weir.parse_system(f'postgres("{tmp_path}/gone.toml")')


def test_one_table_serves_every_way_of_asking_and_is_dropped(shop, shop_system, tmp_path, capsys):
    folder = write_collection(tmp_path / "mine")
    names = [str(shop_system(beside=b)) for b in ("", ', rank="ts_rank_cd"', ', query="plain"')]
    Experiment([folder], names, ["AP"]).execute(tmp_path / "out")
    assert len(list((tmp_path / "out" / "mine" / "indexes").iterdir())) == 1
    records = [json.loads(p.read_text()) for p in (tmp_path / "out").rglob("stage.json")]
    used = [record["facts"]["services"][0] for record in records if record["stage"] == "run"]
    assert {use["answered"] for use in used} == {4}
    assert all(use["versions"]["PostgreSQL"] and use["latency"][0]["concurrency"] == 8 for use in used)
    assert next(r for r in records if r["stage"] == "index")["facts"]["bytes"] > 10_000
    assert main(["data", "drop", names[0]]) == 0
    assert len(capsys.readouterr().out.split()) == 1
    assert shop.ask("SELECT 1 FROM pg_namespace WHERE nspname = 'weir'") == []
    assert main(["data", "drop", names[0]]) == 0
    assert main(["data", "drop", "bm25"]) == 2
    # The table is gone: it is noticed, and made again.
    Experiment([folder], [names[0]], ["RR"], k=3).execute(tmp_path / "out")
    assert len(shop.ask("SELECT name FROM weir.indexes WHERE complete IS NOT NULL")) == 1


def test_a_connection_that_breaks_is_opened_again(shop, shop_system):
    searcher = shop_system("concurrency = 1\n").index(CORPUS)
    shop.ask("ALTER ROLE postgres SET statement_timeout = 0")
    from weir.plugins.servers.postgres import PostgresAsker
    from weir.services.answers import Request

    broken = []
    asker = PostgresAsker(searcher.table, None, broken.append)
    asked = {"id": "q", "text": "river", "k": 3}
    [first] = asker.ask([Request(0, (0, 0), asked)])
    shop.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weir'")
    [second] = asker.ask([Request(0, (0, 0), asked)])
    asker.close()
    assert first.answer == second.answer
    assert second.error is None
    assert [error.kind for error in broken] == ["failed"]


def test_an_index_is_opened_while_the_server_has_it(shop, shop_system, tmp_path):
    system = shop_system()
    made = system.index(CORPUS, Context(tmp_path / "index"))
    opened = system.open(CORPUS, Context(tmp_path / "index"))
    assert opened.table == made.table
    assert opened.search(ASKED, 3).to_dict() == made.search(ASKED, 3).to_dict()


def test_a_table_that_lost_rows_is_made_again_and_its_answers_are_asked_again(shop, shop_system, tmp_path):
    system = shop_system(beside=', version="1"')
    made = system.index(CORPUS, Context(tmp_path / "index"))
    right = made.search(ASKED, 3).to_dict()
    again = system.open(CORPUS, Context(tmp_path / "index"))
    assert again.search(ASKED, 3).to_dict() == right
    assert again.costs().services[0].facts()["stored"] == len(ASKED)
    shop.ask(f"DELETE FROM weir.{made.table.name[1]} WHERE id = 'd1'")
    with pytest.raises(StoreError, match="no complete table"):
        system.open(CORPUS, Context(tmp_path / "index"))
    with pytest.warns(
        StoreWarning, match=rf"has {len(CORPUS) - 1} rows for {len(CORPUS)} documents; it is made again"
    ):
        whole = system.index(CORPUS)
    assert whole.search(ASKED, 3).to_dict() == right
    assert whole.costs().services[0].facts()["stored"] == 0
    assert system.index(CORPUS).costs().reused_documents == len(CORPUS)


def test_a_key_says_the_server_the_database_and_the_schema_and_no_password(shop_system, monkeypatch):
    monkeypatch.setenv("PGURL", "postgresql://me:very-secret@db.example:5433/shop?sslmode=require")
    described = shop_system().describe()
    place = {"host": "db.example", "port": "5433", "dbname": "shop"}
    assert described["place"] == {**place, "schema": "weir"}
    assert "very-secret" not in str(described)
    assert shop_system('schema = "mine"\n').describe()["place"] == {**place, "schema": "mine"}
    table = '[table]\nname = "shop.products"\nid = "sku"\ntext = ["name"]\n'
    assert shop_system(table, ', version="1"').describe()["place"] == place
    monkeypatch.setenv("PGURL", "host=other dbname=shop user=me password=another-secret")
    assert shop_system().describe()["place"] == {
        "host": "other",
        "port": "",
        "dbname": "shop",
        "schema": "weir",
    }
