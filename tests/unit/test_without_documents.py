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


def test_a_folder_of_judgments_alone_stands_wherever_a_file_of_them_does(tmp_path, monkeypatch, capsys):
    """With and without queries and documents beside the judgments, alone and in a results folder of several."""
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name / "qrels").mkdir(parents=True)
        judged = [f"q{n} 0 d{n % 3} {n % 2}" for n in range(12)]
        (tmp_path / name / "qrels/test.tsv").write_text("\n".join(judged) + "\n")
    for name, step in (("a", 2), ("b", 3)):
        lines = [f"q{n} Q0 d{(n + r) % step} {r + 1} {9 - r} {name}" for n in range(12) for r in range(2)]
        (tmp_path / f"{name}.trec").write_text("\n".join(lines) + "\n")
    file, folder = "one/qrels/test.tsv", "one/"
    for command in ("eval", "compare", "diff", "audit", "gate", "power", "why"):
        shown = []
        for judgments in (file, folder):
            main([command, judgments, "a.trec", "b.trec"])
            shown.append(capsys.readouterr().out.replace("test.tsv", "one").replace("one/", "one"))
        assert [line.split() for line in shown[0].splitlines() if "---" not in line] == [
            line.split() for line in shown[1].splitlines() if "---" not in line
        ], command
    assert (
        main(
            ["run", "-q", "-d", "one/", "-d", "two/", "-s", 'run("a.trec")', "-s", 'run("b.trec")', "-o", "r"]
        )
        == 0
    )
    assert [one.subject for one in weir.audits("r")] == ["one", "two"]


def test_a_collection_without_judgments_is_judged_from_its_start(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/corpus.jsonl").write_text(
        "".join(f'{{"_id": "d{n}", "text": "{text}"}}\n' for n, text in enumerate(TEXTS.values()))
    )
    (tmp_path / "shop/queries.jsonl").write_text(
        '{"_id": "q1", "text": "river"}\n{"_id": "q2", "text": "none"}\n'
    )
    (tmp_path / "a.json").write_text('{"q1": ["d0", "d2"]}')
    assert main(["labels", "pool", "shop/", "a.json", "-o", "pool"]) == 0
    said = capsys.readouterr().err
    assert "weir labels relabel pool/to_judge.tsv shop/ a.json" in said
    assert (
        "no system returns a document for 1 of 2 queries, which are not on the sheet; the first is 'q2'"
        in said
    )
    sheet = (tmp_path / "pool/to_judge.tsv").read_text()
    assert "old river dam" in sheet
    header, *rows = [line.split("\t") for line in sheet.splitlines()]
    rows = [[cell or "1" for cell in row] for row in rows]
    (tmp_path / "pool/to_judge.tsv").write_text("\n".join("\t".join(row) for row in [header, *rows]) + "\n")
    assert main(["labels", "relabel", "pool/to_judge.tsv", "shop/", "a.json", "-o", "judged.tsv"]) == 0
    assert weir.evaluate("judged.tsv", "a.json", ["P@2"]).means() == {"P@2": 1.0}
