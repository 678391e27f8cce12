"""The page for people who judge is short, and true of the sheets that Weir writes and reads."""

from __future__ import annotations

from pathlib import Path

import pytest

import weir
from weir.errors import WeirError
from weir.plugins.labels.pools import read_sheet

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "annotators.md").read_text(encoding="utf-8")
HEAD = "query-id\tcorpus-id\tgrade\tquery\ttitle\ttext\n"


def test_the_page_is_short_and_linked():
    assert len(PAGE.split()) <= 500
    assert "(annotators.md)" in (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")
    assert "docs/annotators.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_an_empty_grade_is_unjudged_and_a_zero_is_not(tmp_path):
    sheet = tmp_path / "to_judge.tsv"
    sheet.write_text(HEAD + "q\ta\t0\tx\t\ty\nq\tb\t\tx\t\ty\nq\tc\t3\tx\t\ty\n")
    qrels, still_open = read_sheet(sheet)
    assert (qrels.to_dict(), still_open) == ({"q": {"a": 0, "c": 3}}, 1)
    assert weir.evaluate(qrels, {"q": {"b": 1.0, "a": 0.5}}, ["Judged@10"]).means()["Judged@10"] == 0.5


@pytest.mark.parametrize("line", ["q\ta\tunsure\tx\t\ty\n", "q\ta\t1\tx\t\ty\ta note\n"])
def test_words_and_further_columns_are_refused(tmp_path, line):
    sheet = tmp_path / "to_judge.tsv"
    sheet.write_text(HEAD + line)
    with pytest.raises(WeirError, match="line 2"):
        read_sheet(sheet)
