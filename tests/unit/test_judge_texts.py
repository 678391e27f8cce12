"""A judge is asked of pairs alone whose query and document have a text; the others are counted and said."""

from __future__ import annotations

import json

import pytest

import weir
from weir.errors import BadValue
from weir.files.label_files import read_labels


def place(folder, documents, queries):
    """A collection of which every pair is judged."""
    (folder / "c" / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [{"_id": key, "text": text} for key, text in texts.items()]
        (folder / "c" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = "".join(f"{query}\t{document}\t1\n" for query in queries for document in documents)
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "c" / "qrels" / "test.tsv").write_text(head + rows, encoding="utf-8")
    return folder / "c"


def test_pairs_without_a_text_are_not_asked_and_are_counted(judge_server, tmp_path):
    model, manners = judge_server
    unseen = "\u200b\u00a0\ufeff\x00"  # zero width, no-break blank, byte order mark, a control character
    at = place(tmp_path, {"d1": "weir one", "d2": "", "d3": unseen, "d4": "dam"}, {"q1": "weir", "q2": " "})
    [report] = weir.judge(at, model=model, judged=True, out=tmp_path / "labels")
    assert set(read_labels(tmp_path / "labels").to_dict()) == {"q1"}
    assert set(read_labels(tmp_path / "labels").to_dict()["q1"]) == {"d1", "d4"}
    assert (report.pairs, report.labelled, report.empty_queries, report.empty_passages) == (8, 2, 4, 2)
    assert report.left_out == 0
    told = json.loads((tmp_path / "labels" / "judge.json").read_text(encoding="utf-8"))
    assert (told["empty_queries"], told["empty_passages"]) == (4, 2)
    for sentence in ("4 pairs were not asked: their query has", "2 pairs were not asked: their document has"):
        assert any(one.startswith(sentence) for one in report.warnings)
    assert "<passage>\n\n</passage>" not in "".join(manners.prompts())


def test_nothing_to_judge_is_one_line(judge_server, tmp_path):
    at = place(tmp_path, {"d1": ""}, {"q1": "weir"})
    with pytest.raises(BadValue, match="each pair misses the text of its query or document"):
        weir.judge(at, model=judge_server[0], judged=True, out=tmp_path / "labels")
    assert not (tmp_path / "labels").exists()
