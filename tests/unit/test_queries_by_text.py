"""Runs that name queries by their texts, beside judgments that name them by identifiers."""

from __future__ import annotations

import pytest

from weir.cli.main import main


@pytest.mark.filterwarnings("ignore::weir.errors.RankingWarning")
def test_a_tutorials_commands_run_as_they_stand_and_the_error_names_the_collection(
    tmp_path, capsys, monkeypatch
):
    """As in docs/tutorials/search-engineer.md, "No judgments yet"."""
    monkeypatch.chdir(tmp_path)
    write = {
        "articles.csv": "id,title,text\np1,Schuhe,rote schuhe\np2,Stiefel,braune stiefel\np3,Hemd,blau\n",
        "queries.csv": "query\nrote schuhe\nstiefel braun\n",
        "before.csv": "query,doc_id,score\nrote schuhe,p1,3\nrote schuhe,p2,2\nstiefel braun,p2,4\n",
        "after.csv": "query,doc_id,score\nrote schuhe,p2,3\nrote schuhe,p1,2\nstiefel braun,p3,4\n",
    }
    for name, text in write.items():
        (tmp_path / name).write_text(text)
    assert main(["data", "import", "articles.csv", "queries.csv", "-o", "shop/"]) == 0
    assert main(["labels", "pool", "shop/", "before.csv", "after.csv", "-o", "pool/"]) == 0
    sheet = tmp_path / "pool" / "to_judge.tsv"
    sheet.write_text(sheet.read_text().replace("\tp1\t\t", "\tp1\t1\t").replace("\tp2\t\t", "\tp2\t1\t"))
    relabel = [
        "labels",
        "relabel",
        "pool/to_judge.tsv",
        "shop/",
        "before.csv",
        "after.csv",
        "-o",
        "judged.tsv",
    ]
    assert main(relabel) == 0
    compare = ["compare", "judged.tsv", "before.csv", "after.csv"]
    assert main([*compare, "--collection", "shop/"]) == 0
    capsys.readouterr()
    for command in (compare, ["eval", "judged.tsv", "before.csv"], ["gate", *compare[1:]]):
        assert main(command) == 2
        assert "where one is the text of a query, --collection names the folder" in capsys.readouterr().err
