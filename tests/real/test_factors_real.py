"""The factorial study of re-ranking by a language model on two sets of BIRCO: one command runs it, one analyses it."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.unit.model_servers import chat_serving

import weir
from weir.cli import main
from weir.services.requests import Limits

pytestmark = pytest.mark.real
QUERIES = 20
DEPTHS = (4, 16)
OBJECTIVE = "Find the one text that the query is about."
_PASSAGE = re.compile(r"<passage>\n(.*?)\n</passage>", re.DOTALL)


def text_of(line: dict) -> str:
    return f"{line.get('title', '')} {line['text']}".strip()


def shortened(folder: Path, at: Path) -> tuple[Path, set[str]]:
    """A collection of the first queries of a set, as a TOML file, and the texts of their relevant documents."""
    at.mkdir()
    queries = (folder / "queries.jsonl").read_text(encoding="utf-8").split("\n")[:QUERIES]
    (at / "queries.jsonl").write_text("\n".join(queries) + "\n")
    names = {json.loads(line)["_id"] for line in queries}
    [qrels] = (folder / "qrels").iterdir()
    head, *rows = qrels.read_text().splitlines()
    kept = [row for row in rows if row.split("\t")[0] in names]
    (at / "qrels.tsv").write_text("\n".join([head, *kept]) + "\n")
    pooled = {row.split("\t")[1] for row in kept}
    every = (folder / "corpus.jsonl").read_text(encoding="utf-8").split("\n")
    lines = [line for line in every if line and json.loads(line)["_id"] in pooled]
    (at / "corpus.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    right = {row.split("\t")[1] for row in kept if float(row.split("\t")[2]) > 0}
    toml = at.with_suffix(".toml")
    toml.write_text(
        f'documents = "{at}/corpus.jsonl"\nqueries = "{at}/queries.jsonl"\nqrels = "{at}/qrels.tsv"\n'
        f'candidates = "judged"\ninstruction = "{OBJECTIVE}"\n'
    )
    texts = {" ".join(text_of(one).split()) for one in map(json.loads, lines) if one["_id"] in right}
    return toml, texts


def stand_in(right: set[str]):
    """A scorer whose effects are known: it likes what is relevant only when it is told what the search is for."""

    def worth(passage: str, told: bool) -> int:
        text = " ".join(passage.split())
        chance = hashlib.blake2b(text.encode(), digest_size=1).digest()[0] % 6
        return 9 if told and text in right else chance

    def say(_: str, user: str) -> str:
        found = [worth(passage, OBJECTIVE in user) for passage in _PASSAGE.findall(user)]
        if "passages in order" in user:  # real texts have "in order", too
            return " > ".join(f"[{i + 1}]" for i in sorted(range(len(found)), key=lambda i: -found[i]))
        return str(found[0])

    return say


def mean(scores: dict, dataset: str, wanted) -> float:
    """The mean over the systems that are wanted, and over all queries."""
    return float(
        np.mean([s.of("nDCG@10").mean() for (d, name), s in scores.items() if d == dataset and wanted(name)])
    )


def test_objective_method_and_depth_on_two_sets(shared, tmp_path, monkeypatch, capsys):
    folder = shared / "data" / "birco" / "beir"
    if not folder.is_dir():
        pytest.skip("../shared/data/birco is not there: its texts are not part of the project")
    monkeypatch.setattr(Limits, "of", staticmethod(lambda _: Limits(attempts=3, pause=0.001, timeout=20)))
    sets = [shortened(folder / name, tmp_path / name) for name in ("relic", "wtb")]
    with chat_serving() as (url, manners):
        manners.say = stand_in(set().union(*(right for _, right in sets)))
        grid = (
            f'bm25 >> llm({{"score", "listwise"}}, model="{url}/v1#m", depth={{{DEPTHS[0]}, {DEPTHS[1]}}}, '
            "objective={True, False})"
        )
        places = [argument for toml, _ in sets for argument in ("-d", str(toml))]
        main(["run", *places, "-s", grid, "-m", "nDCG@10", "-o", str(tmp_path / "results"), "-q"])
    capsys.readouterr()
    main(["compare", str(tmp_path / "results"), "--factors"])
    table = capsys.readouterr().out
    assert "8 systems (2 method × 2 depth × 2 objective), 40 queries" in table
    main(["compare", str(tmp_path / "results"), "--factors", "method,depth,objective", "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["dataset"] for one in found] == ["relic", "wtb", "2 collections"]
    scores = {
        (c.dataset, c.system): c.values()
        for c in weir.experiment.results.finished_cells(tmp_path / "results")
    }
    assert len(scores) == 16
    told, deep = (lambda name: "objective=False" not in name), (lambda name: f"depth={DEPTHS[1]}" in name)
    for one in found[:2]:
        effects = {tuple(e["factors"]): e for e in one["effects"]}
        by_loops = mean(scores, one["dataset"], told) - mean(scores, one["dataset"], lambda n: not told(n))
        assert effects["objective",]["difference"] == pytest.approx(by_loops)
        corners = [
            sign * mean(scores, one["dataset"], lambda n, t=t, d=d: told(n) == t and deep(n) == d)
            for (t, d), sign in zip(itertools.product((True, False), repeat=2), (1, -1, -1, 1), strict=True)
        ]
        assert effects["depth", "objective"]["difference"] == pytest.approx(sum(corners))
        assert sum(source["share"] for source in one["sources"]) == pytest.approx(1)
    verdicts = {tuple(e["factors"]): e["verdict"] for e in found[2]["effects"]}
    assert verdicts["objective",] == "better"
    assert verdicts["depth", "objective"] == "better"
    assert verdicts["method",] == "not separable"
    both = next(e for e in found[2]["effects"] if e["factors"] == ["objective"])
    assert 0 < both["low"] < both["difference"] < both["high"]
    assert (
        weir.compare(tmp_path / "results", factors=True)[2].effects[0].difference
        == found[2]["effects"][0]["difference"]
    )
