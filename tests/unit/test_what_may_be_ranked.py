"""Candidates, exclusions and queries without an answer, from a collection to its scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.brooklet import QRELS, QUERIES, write_collection
from weir import load
from weir.api.collection_notes import restriction_notes
from weir.cli.main import main
from weir.core.corpus import Queries
from weir.core.run import Run
from weir.errors import BadValue, FormatError
from weir.experiment.experiment import Experiment
from weir.experiment.stage_store import index_stage
from weir.systems.expression import parse_system
from weir.systems.protocol import IN_MEMORY, Context, Costs
from weir.systems.restricted import restricted_search

MORE = {"q9": "the river"}
UNANSWERABLE: dict[str, object] = {"unanswerable": True}
SAID: dict[str, dict[str, object]] = {
    "q1": {"candidates": ["d4", "d2", "absent", "d1"], "excluded": ["d1"]},
    "q2": {"excluded": ["d3"]},
    "q3": UNANSWERABLE,
    "d4": UNANSWERABLE,
    "q9": {"unanswerable": True, "lang": "en"},
}


def collection(folder: Path, said: dict[str, dict[str, object]], about: str = "") -> Path:
    """The brooklet with metadata of its queries, of which q3 has no relevant document and q9 no judgment."""
    write_collection(folder)
    rows = [{"_id": q, "text": text, "metadata": said.get(q, {})} for q, text in (QUERIES | MORE).items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = (folder / "qrels" / "test.tsv").read_text()
    (folder / "qrels" / "test.tsv").write_text(judged.replace("q3\td5\t1", "q3\td5\t0"))
    if about:
        (folder / "collection.toml").write_text(about)
    return folder


def made(folder: Path, results: Path, system: str) -> tuple[dict[str, list[str]], dict[str, float]]:
    """The ranking of each query as it stands on disk, and the queries' scores."""
    grid = Experiment((str(folder),), (system,), ("R@3",), k=3)
    grid.execute(results)
    [cell] = grid.cells(results)
    at = cell.stages.root / cell.stage.folder_name
    run = Run.load(next(path for path in at.iterdir() if path.name in ("run.trec", "run.json")))
    [scores] = at.glob("scores-*.jsonl")
    lines = [json.loads(line) for line in scores.read_text().splitlines()]
    return {q: list(row) for q, row in run.to_dict().items()}, {
        line["query"]: line["value"] for line in lines
    }


def test_relevant_documents_that_no_ranking_may_have_are_counted(tmp_path):
    """d1 is excluded for q1, d3 for q2; d4 is a candidate of q1, d1 none of d4."""
    said = SAID | {"d4": {"candidates": ["d2"]}}
    [note] = [
        n.text for n in restriction_notes(load(collection(tmp_path / "mine", said))) if "barred" in n.text
    ]
    assert note.startswith("mine: 3 of 4 relevant documents are barred from the rankings")
    assert note.endswith("the first 'd1' for query 'q1'")
    fair = {"q1": {"candidates": ["d4", "d2", "d1"], "excluded": ["d2"]}}
    assert not [n for n in restriction_notes(load(collection(tmp_path / "fair", fair))) if "barred" in n.text]


def keys(folder: Path) -> tuple[str, str]:
    """Those of an index and of its rankings."""
    [cell] = Experiment((str(folder),), ("bm25",), ("R@3",), k=3).cells(folder / "results")
    return index_stage(cell.adapted, cell.stages.dataset.corpus).key, cell.stage.key


def test_a_run_holds_what_may_be_ranked_and_the_mean_who_can_be_answered(tmp_path: Path) -> None:
    folder = collection(tmp_path / "mine", SAID)
    rankings, scores = made(folder, tmp_path / "results", "bm25")
    plain, all_scores = made(collection(tmp_path / "plain", {}), tmp_path / "results", "bm25")
    assert rankings["q1"] == [d for d in plain["q1"] if d in ("d4", "d2")]
    assert (plain["q2"], rankings.get("q2", [])) == (["d3"], [])
    assert rankings["d4"] == plain["d4"]
    assert rankings["q9"][0] == "d4"  # asked, for whoever wants to know how sure a system is
    assert "q9" not in plain
    assert set(all_scores) == set(QUERIES)
    assert set(scores) == {"q1", "q2", "d4"}  # d4 has a relevant document: its flag is about something else
    dataset = load(folder)
    assert dataset.queries.metadata is not None
    assert dataset.queries.metadata.unanswerable is not None
    assert dataset.queries.metadata.unanswerable.tolist() == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("said", "moved"),
    [
        ({"q1": {"lang": "en"}}, False),
        ({"q9": {"excluded": ["d1"]}}, False),
        ({"q1": {"excluded": ["d1"]}}, True),
        ({"q1": {"candidates": ["d1"]}}, True),
        ({"q1": {"instruction": "only dams"}}, True),
        ({"q9": UNANSWERABLE}, True),
    ],
)
def test_the_key_of_rankings_is_moved_by_what_decides_them(
    tmp_path: Path, said: dict[str, dict[str, object]], moved: bool
) -> None:
    plain, found = keys(collection(tmp_path / "plain", {})), keys(collection(tmp_path / "mine", said))
    assert found[0] == plain[0]
    assert (found[1] != plain[1]) == moved


def test_documents_that_were_judged_may_be_the_candidates(tmp_path: Path) -> None:
    folder = collection(tmp_path / "mine", {}, 'candidates = "judged"\nself_match = "drop"\n')
    dataset = load(folder)
    assert dataset.self_match == "drop"
    metadata = dataset.queries.metadata
    assert metadata is not None
    assert metadata.candidates is not None
    judged = {q: sorted(QRELS[q], reverse=True) for q in QUERIES}
    assert dict(zip(dataset.queries.ids, metadata.candidates.tolist(), strict=True)) == judged
    rankings, _ = made(folder, tmp_path / "results", "pool")
    assert {q: sorted(row, reverse=True) for q, row in rankings.items()} == judged
    (folder / "collection.toml").write_text('candidates = "some"')
    with pytest.raises(
        FormatError, match=r"collection\.toml: found candidates = 'some'; expected candidates = 'jud"
    ):
        load(folder)


def test_pool_says_what_a_collection_without_candidates_lacks(tmp_path: Path) -> None:
    dataset = load(collection(tmp_path / "mine", {}))
    some = collection(tmp_path / "some", {"q1": {"candidates": ["d4"]}})
    _, scores = made(some, tmp_path / "results", "pool")  # others are timed alone, without candidates
    assert scores == {"q1": 0.5, "q2": 0.0, "q3": 0.0, "d4": 0.0}
    with pytest.raises(
        BadValue,
        match=r'collection.toml in its folder the line: candidates = "judged"; others .*"metadata": \{"cand',
    ):
        parse_system("pool >> score(bm25)").index(dataset.corpus).search(dataset.queries, 3)


def test_a_card_and_a_run_say_what_is_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = collection(tmp_path / "mine", SAID)
    assert main(["data", "stats", str(folder)]) == 0
    card = " ".join(capsys.readouterr().out.split())
    assert "candidates 4.0 on average for 1 of 5 queries, 1 of them no documents of the collection" in card
    assert "excluded documents 1.0 on average for 2 of 5 queries" in card
    assert "without an answer 2 queries groups of queries lang (1)" in card
    arguments = ["run", "-d", str(folder), "-s", "bm25", "-m", "R@4", "-o", str(tmp_path / "results")]
    assert main(arguments) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "note: mine: only candidates are ranked: 4.0 on average for 1 of 5 queries" in said
    assert "note: mine: 2 queries without an answer are asked, and are in no mean" in said
    assert (
        main(["run", "-d", str(collection(tmp_path / "all", {}, 'candidates = "judged"')), *arguments[3:]])
        == 0
    )
    assert "R@4 is 1 by construction for whatever returns all 3 candidates on all" in capsys.readouterr().err


def test_what_is_1_by_construction_is_said_wherever_scores_are(tmp_path, capsys):
    """By the folder's own collection; of results that are not to be scored again nothing is read."""
    Experiment(["brook-news"], ["bm25", "rm3"], ["R@100", "R@10"]).execute(tmp_path / "r")
    runs = sorted(str(path) for path in (tmp_path / "r" / "brook-news").glob("*/run.trec"))
    for command in (
        *(["results", str(tmp_path / "r")], ["compare", str(tmp_path / "r")]),
        *(["compare", "brook-news", *runs, "-m", "R@100"], ["eval", "brook-news", *runs, "-m", "R@100"]),
    ):
        assert main(command) == 0
        said = capsys.readouterr().err
        assert "R@100 is 1 by construction for whatever returns all 80 documents on brook-news" in said, (
            command
        )
        assert "R@10 is 1" not in said
    assert main(["results", str(tmp_path / "r"), "-m", "R@10"]) == 0
    assert "by construction" not in capsys.readouterr().err


def test_a_run_file_is_scored_by_what_its_collection_lets_be_ranked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = collection(
        tmp_path / "mine",
        {"q1": {"candidates": ["d3", "d1"]}, "q2": {"excluded": ["d1"]}, "q3": UNANSWERABLE},
    )
    run = tmp_path / "run.trec"
    Run.of({"q1": ["d2", "d4", "d1", "d3"], "q2": ["d1", "d3"], "strange": ["d1"]}).save(run)
    arguments = ["eval", str(folder / "qrels" / "test.tsv"), str(run), "-m", "RR", "--per-query"]
    found = []
    for more in ([], ["--collection", str(folder)]):
        assert main([*arguments, *more]) == 0
        found.append([line.split("\t")[1:] for line in capsys.readouterr().out.splitlines()])
    assert [row[:2] for row in found[0][:2]] == [["q1", "0.5"], ["q2", "0.5"]]
    assert [row[:2] for row in found[1][:2]] == [["q1", "1.0"], ["q2", "1.0"]]
    assert "q3" in dict(found[0])
    assert "q3" not in dict(found[1])


class AskedOnce:
    """Another's server, in small: it may not be asked twice."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def search(self, queries: Queries, k: int, context: Context = IN_MEMORY) -> Run:
        """The same documents for every query."""
        self.asked.append(k)
        return Run.of({query: [f"d{n}" for n in range(9)] for query in queries.ids}).top(k)

    def costs(self) -> Costs:
        """Nobody knows."""
        return Costs()


@pytest.mark.parametrize(
    ("said", "asked", "answer"),
    [
        ({}, 2, ["d0", "d1"]),
        ({"excluded": ["d1", "d3", "d99"]}, 5, ["d0", "d2"]),
        ({"candidates": ["d7", "d4", "d8"]}, 1000, ["d4", "d7"]),
        ({"candidates": ["d7", "d4"], "excluded": ["d4"]}, 1000, ["d7"]),
    ],
)
def test_what_may_be_asked_once_is_asked_once(
    said: dict[str, list[str]], asked: int, answer: list[str]
) -> None:
    server = AskedOnce()
    run = restricted_search(server, Queries.of({"q": {"text": "a", **said}}), 2)
    assert list(run.to_dict()["q"]) == answer
    assert server.asked == [asked]
