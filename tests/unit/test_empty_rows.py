"""Rows of separators alone, which spreadsheets write for empty rows, are skipped by every reader of tables."""

from __future__ import annotations

import pytest

import weir
from weir.files.label_files import read_raters
from weir.files.runs import read_qrels, read_run


@pytest.mark.parametrize("empty", [",,", ",,,", " , ,", '"",,', ""])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("place", [1, 2, 3])
def test_rows_of_separators_alone_are_skipped_by_every_reader(tmp_path, empty, separator, place):
    def written(name: str, head: str) -> str:
        lines = [head, "q1,d1,1", "q2,d2,1"]
        text = "\n".join([*lines[:place], empty, *lines[place:]]) + "\n"
        path = tmp_path / f"{name}{'.tsv' if separator == chr(9) else '.csv'}"
        path.write_text(text.replace(",", separator))
        return str(path)

    judged, run = written("judged", "query_id,doc_id,relevance"), written("run", "query_id,doc_id,score")
    labels = written("labels", "query_id,doc_id,label")
    expected = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    assert read_qrels(judged).to_dict() == read_run(run).to_dict() == expected
    assert [one.to_dict() for one in read_raters(labels).values()] == [expected]
    assert weir.evaluate(judged, run, ["RR"]).means() == {"RR": 1.0}
