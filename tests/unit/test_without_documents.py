"""Systems with documents of their own need queries and judgments alone; all else is refused by name."""

from __future__ import annotations

import sys

import pytest

import weir
from tests.unit import search_servers as ss
from tests.unit.remote_place import expected
from weir.cli import main
from weir.errors import BadValue, FormatError, ServiceError

TEXTS = {"a": "river", "b": "dam", "c": "old river dam"}


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """What `weir data import` makes of a CSV of judgments, in a folder without documents."""
    monkeypatch.chdir(tmp_path)
    found = expected(list(TEXTS.values()), 10)
    rows = [f"{text},{next(iter(found[query]))},1" for query, text in zip(found, TEXTS.values(), strict=True)]
    (tmp_path / "judged.csv").write_text("\n".join(["query,document,grade", *rows]))
    assert main(["data", "import", "judged.csv", "-o", "mine"]) == 0
    return tmp_path / "mine"


ECHO = """import json, sys
for line in sys.stdin:
    q = json.loads(line)
    print(json.dumps({"id": q["id"], "results": FOUND[q["text"]]}), flush=True)
"""


def test_a_server_a_program_a_function_and_a_file_score_alike(imported, tmp_path):
    found = dict(
        zip(TEXTS.values(), (list(one) for one in expected(list(TEXTS.values()), 10).values()), strict=True)
    )
    (tmp_path / "echo.py").write_text(ECHO.replace("FOUND", repr(found)))

    def shop(queries: dict[str, str], k: int) -> dict[str, list[str]]:
        return {query: found[text][:k] for query, text in queries.items()}

    with ss.searching("opensearch") as (url, _):
        (tmp_path / "search.toml").write_text(
            f'extends = "opensearch"\nurl = "{url}"\n[values]\nindex = "shop"\nfields = ["title^2", "body"]\n'
        )
        program = f'command("{sys.executable} echo.py")'
        table = weir.benchmark(
            "mine", ['http("search.toml")', program, shop, f'rrf(http("search.toml"), {program}, depth=10)'],
            ["RR", "R@10"], "results", k=10,
        )  # fmt: skip
        answers = weir.system('http("search.toml")').index({}).search({"q": "river"}, k=10)
    assert [row.mean for row in table.rows] == [1.0] * 8
    assert list(answers.to_dict()["q"]) == found["river"]
    again = weir.benchmark(
        "mine", ['run("' + str(next(tmp_path.glob("results/mine/shop-*/run.trec"))) + '")'], ["RR"]
    )
    assert [row.mean for row in again.rows] == [1.0]
    assert main(["verify", "results"]) == 0


def test_what_reads_documents_is_refused_by_name(imported, tmp_path):
    for system in ("bm25", 'command("true") >> score(bm25)', 'rrf(command("true"), bm25)'):
        with pytest.raises(FormatError, match=r"found no documents, which .* need none"):
            weir.benchmark("mine", [system], ["RR"])
    (imported / "queries.jsonl").unlink()
    with pytest.raises(FormatError, match=r"found no queries, which command"):
        weir.benchmark("mine", ['command("true")'], ["RR"])


def test_where_no_answer_has_the_shape_few_are_asked_for_again(imported, tmp_path):
    with ss.searching("opensearch") as (url, manners):
        (tmp_path / "search.toml").write_text(
            f'extends = "opensearch"\nurl = "{url}"\n[answer]\nresults = "nowhere"\n[limits]\npause_s = 0.01\nconcurrency = 1\n'
            '[values]\nindex = "shop"\nfields = ["title^2", "body"]\n'
        )
        with pytest.raises(ServiceError, match="no list at nowhere"):
            weir.benchmark("mine", ['http("search.toml")'], ["RR"], k=10)
        assert manners.asked.total() == 4 + len(TEXTS) - 1


def test_an_address_in_place_of_a_system_is_told_how_a_server_is_named():
    with pytest.raises(BadValue, match=r'a server is described in a file: http\("search.toml"\)'):
        weir.system("http://localhost:8123/search")
