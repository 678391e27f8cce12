"""Systems of a grid that ask and read exactly the same: told, and no levels of a factor."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from tests.unit.brooklet import write_collection
from tests.unit.embedding_place import forget_spending
from tests.unit.model_servers import chat_serving
from weir.cli import main
from weir.errors import BadValue

GRID = 'bm25 >> llm({"score", "listwise"}, model="URL/v1#m", depth=6, %s)'


@pytest.fixture
def server(tmp_path, monkeypatch):
    """(address, a collection without an instruction, one with one)."""
    monkeypatch.setenv("WEIR_HOME", str(tmp_path / "home"))
    weir.settings.settings.cache_clear()
    forget_spending()
    plain, told = (write_collection(tmp_path / name) for name in ("plain", "told"))
    lines = [json.loads(line) for line in (told / "queries.jsonl").read_text().splitlines()]
    rows = [json.dumps({**line, "instruction": f"Find {line['text']}."}) for line in lines]
    (told / "queries.jsonl").write_text("\n".join(rows) + "\n")
    with chat_serving() as (url, _):
        yield url, plain, told
    forget_spending()
    weir.settings.settings.cache_clear()


@pytest.mark.parametrize(
    ("varied", "levels"),
    [
        ("objective={True, False}", "objective=False and objective=True"),
        ("max_length={800, 900}", "max_length=800 and max_length=900"),
    ],
)
def test_levels_that_ask_and_read_the_same_are_refused_and_told(server, tmp_path, capsys, varied, levels):
    url, plain, _ = server
    grid = GRID.replace("URL", url) % varied
    out = tmp_path / "out"
    assert main(["run", "-d", str(plain), "-s", grid, "-m", "nDCG@10", "-o", str(out), "-q"]) == 0
    assert capsys.readouterr().err.count("ask and read exactly the same on plain") == 2
    assert main(["compare", str(out)]) == 0
    assert capsys.readouterr().err.count("ask and read exactly the same on plain") == 2
    assert main(["compare", str(out), "--factors"]) == 2
    assert f"{levels} are no levels of a factor on plain" in capsys.readouterr().err
    with pytest.raises(BadValue, match="are no levels of a factor on plain"):
        weir.compare(out, factors=True)
    with pytest.raises(BadValue, match="are no levels of a factor on plain"):
        weir.benchmark(str(plain), grid, "nDCG@10", out=out).factors()
    assert weir.benchmark(str(plain), grid, "nDCG@10", out=out).factors("method")


def test_an_objective_that_some_queries_have_is_a_factor(server, tmp_path, capsys):
    url, plain, told = server
    found = weir.benchmark(
        str(told), GRID.replace("URL", url) % "objective={True, False}", "nDCG@10", out=tmp_path / "out"
    )
    assert found.twins == {}
    assert ("objective",) in {effect.factors for study in found.factors() for effect in study.effects}
    assert weir.benchmark(str(plain), "bm25(k1={1.2, 1.3})", "nDCG@10", out=tmp_path / "two").twins == {}


@pytest.mark.filterwarnings("default")
def test_equal_systems_are_one(tmp_path, capsys):
    folder = write_collection(tmp_path / "c")
    arguments = ["-s", "bm25", "-s", "BM25", "-s", "bm25(k1=0.9)", "-m", "nDCG@10", "-o", str(tmp_path / "r")]
    assert main(["run", "-q", "-d", str(folder), *arguments]) == 0
    out, err = capsys.readouterr()
    assert "BM25 and bm25 are one system, bm25: it runs once" in err
    assert out.count("bm25") == 1
    assert "differ" not in err
    assert "exactly the same" not in err
