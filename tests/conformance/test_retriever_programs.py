"""The programs that docs/retrievers.md shows, each asked by `command` where its language is installed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from weir.core.corpus import Corpus, Queries
from weir.core.strings import Ids, Strings
from weir.systems.remote.command import Command

PAGE = Path(__file__).resolve().parents[2] / "docs" / "retrievers.md"
DOCS = {"d1": "A weir is a low dam across a river", "d2": "The river floods the meadow", "d3": "Bread rises"}
PROGRAMS = {
    "sh": ("search.sh", "sh search.sh"),
    "js": ("search.mjs", "node search.mjs"),
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_of_the_page_answers(language, tmp_path, monkeypatch):
    name, line = PROGRAMS[language]
    if shutil.which(line.split()[0]) is None:
        pytest.skip(f"{line.split()[0]} is not installed")
    monkeypatch.chdir(tmp_path)
    Path("docs.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in DOCS.items()), encoding="utf-8")
    shown = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    Path(name).write_text(shown[1], encoding="utf-8")
    corpus = Corpus(Ids.of(DOCS), Strings.of(DOCS.values()))
    queries = Queries(Ids.of(["q1", "q2", "q3"]), Strings.of(["river dam", "bread", "xylophone"]))
    run = Command(line).index(corpus).search(queries, 2).to_dict()
    assert {query: sorted(ranking) for query, ranking in run.items()} == {
        "q1": ["d1", "d2"],
        "q2": ["d3"],
        "q3": [],
    }
