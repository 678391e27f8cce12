"""Judging that says when it is decided which system is best: by a model, and by people on a page."""

from __future__ import annotations

import json

import pytest

import weir
from tests.unit.judge_place import DOCUMENTS, grade_of, lines
from weir.cli import main
from weir.errors import BadValue
from weir.files.label_files import read_labels
from weir.stats.sequential import by_lot

QUERIES = {f"q{n:02}": f"weir {n} metres" for n in range(40)}


@pytest.fixture
def two_systems(tmp_path):
    """A collection of 40 queries of which one is judged, a run that finds what the judge likes, and one that does not."""
    mine = tmp_path / "mine"
    (mine / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        rows = (json.dumps({"_id": i, "text": text}) for i, text in texts.items())
        (mine / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    weir.Qrels.of({name: {"d00": 0} for name in QUERIES}).save(mine / "qrels" / "test.tsv")
    ranked = sorted(set(DOCUMENTS) - {"d00"}, key=lambda name: grade_of(DOCUMENTS[name]))
    for name, docs in (("good", ranked[::-1][:3]), ("bad", ranked[:3])):
        weir.Run.of(dict.fromkeys(QUERIES, docs)).save(tmp_path / f"{name}.trec")
    return [mine / "qrels" / "test.tsv", tmp_path / "bad.trec", tmp_path / "good.trec"]


def test_a_judge_stops_when_it_is_decided_and_the_same_command_goes_on(
    judge_server, two_systems, tmp_path, capsys
):
    model, manners = judge_server
    out = tmp_path / "labels"
    arguments = ["judge", *map(str, two_systems), "--collection", str(tmp_path / "mine"), "--model", model]
    arguments += ["-o", str(out), "-k", "3", "--probes", "0", "-q"]
    assert main([*arguments, "--until-decided"]) == 0
    shown = capsys.readouterr().out
    told = json.loads((out / "judge.json").read_text())
    decided = told["decision"]["decided"]
    assert (told["decision"]["best"], told["decision"]["measure"]) == ("good", "nDCG@3")
    assert 0 < decided < 40
    assert f"decided after {decided} of 40 queries: good is best by nDCG@3 (+" in shown
    asked = {one["query"] for one in lines(out / "judgments.jsonl")}
    assert asked == set(by_lot(QUERIES)[: len(asked)])  # whole queries, in drawn order
    assert decided <= len(asked) < decided + 8
    assert told["spared"] == 6 * 40 - told["labelled"] == 6 * (40 - len(asked))
    assert f"; {told['spared']} pairs were not asked" in shown
    before = len(manners.asked)
    assert main([*arguments, "--until-decided"]) == 0
    assert len(manners.asked) == before
    assert main(arguments) == 0  # the rest
    assert len(read_labels(out).doc) == 6 * 40


def test_a_judge_of_one_system_has_nothing_to_decide(judge_server, two_systems, tmp_path):
    model, _ = judge_server
    for targets, more in (
        (two_systems[:2], {}),
        (two_systems, {"limit": 5}),
        (two_systems, {"judged": True}),
    ):
        with pytest.raises(BadValue, match="among two systems or more"):
            weir.judge(*targets, model=model, out=tmp_path / "labels", until_decided=True,
                       collection=tmp_path / "mine", **more)  # fmt: skip
    assert not (tmp_path / "labels").exists()


def test_a_pool_by_lot_is_decided_by_a_model_too(judge_server, two_systems, tmp_path):
    model, _ = judge_server
    pool = tmp_path / "pool"
    weir.labels.judging_pool(*two_systems, out=pool, k=3, collection=tmp_path / "mine", by_lot=True)
    order = [line.split("\t")[0] for line in (pool / "to_judge.tsv").read_text().splitlines()[1:]]
    assert list(dict.fromkeys(order)) == by_lot(QUERIES)
    for sheet in (pool, pool / "to_judge.tsv"):
        [report] = weir.judge(sheet, model=model, out=tmp_path / "labels", until_decided=True)
        assert (report.decision.best, report.decision.measure) == ("good", "nDCG@3")
        assert report.spared > 0


def test_a_page_says_when_it_is_decided_and_not_to_judges_which_is_best(tmp_path, two_systems):
    pytest.importorskip("starlette", reason="needs the `app` extra")
    from tests.unit.judging_place import TOKENS, Visitor
    from weir.plugins.app.judging.room import Answer
    from weir.plugins.app.judging.rooms import Rooms

    weir.labels.judging_pool(
        *two_systems, out=tmp_path / "pool", k=3, collection=tmp_path / "mine", by_lot=True
    )
    rooms = Rooms.of_pools(tmp_path / "pool", judges=("ann", "ben", "cyd"))
    owner, ann, *_ = (Visitor(rooms, token) for token in TOKENS)
    [room] = rooms
    assert (ann.read()["decided"], owner.read("progress")["decision"]) == (False, None)
    for pair in room.tasks.of_query[by_lot(QUERIES)[1]]:  # not the first by lot: it does not count yet
        room.answer("ann", pair, Answer("graded", 0))
    assert owner.read("progress")["decision"] is None
    first = room.tasks.of_query[by_lot(QUERIES)[0]]
    for pair in first:  # deferred: nobody knows its grade
        room.answer("ann", pair, Answer("graded", 0) if pair is not first[0] else Answer("later"))
    assert owner.read("progress")["decision"] is None
    for number, query in enumerate(by_lot(QUERIES), 1):
        for pair in room.tasks.of_query[query]:
            room.answer("ann", pair, Answer("graded", grade_of(DOCUMENTS[pair.document])))
        decision = owner.read("progress")["decision"]
        assert decision["judged"] == max(number, 2)
        assert ann.read()["decided"] == (decision["decided"] is not None)
        if decision["decided"] is not None:
            break
    assert decision["best"] == "good"
    assert "good is best by nDCG@3" in owner.get("progress").text
    page = ann.get().text
    assert "It is decided which system is best" in page
    assert "good" not in page
    rooms.close()
