"""weir judge against a local server: which pairs, which labels, and what is written."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

import weir
from tests.unit.judge_place import DOCUMENTS, JUDGED, PASSAGES, QUERIES, RUN_GRADES, grade_of, lines, unjudged
from weir.cli import main
from weir.errors import BadValue, FormatError
from weir.files.label_files import read_labels
from weir.plugins.llm.panel import judge_prompt, judge_prompts


def test_the_labels_are_the_judges_grades_and_say_whose_they_are(judge_server, judge_pool, tmp_path):
    model, manners = judge_server
    [report] = weir.judge(judge_pool, model=model, out=tmp_path / "labels")
    labels = read_labels(tmp_path / "labels")
    expected = {(q, d): grade_of(DOCUMENTS[d]) for q, d in unjudged()}
    assert {(q, d): g for q, docs in labels.to_dict().items() for d, g in docs.items()} == expected
    assert labels.origin.names == (f"llm:small:umbrela-{report.digest}",)
    assert (report.pairs, report.queries, report.labelled, report.unanswered) == (24, 6, 24, 0)
    assert dict(report.grades) == Counter(map(float, expected.values()))
    answers = lines(tmp_path / "labels" / "judgments.jsonl")
    assert len(answers) == 24 + 3  # three of 24 are judged twice
    assert {(a["query"], a["document"]): a["grade"] for a in answers} == expected
    first = answers[0]
    assert (first["model"], first["answered_by"], first["prompt"]) == ("small", "small-0613", "umbrela")
    assert (first["verdict"], first["temperature"], first["digest"]) == ("ok", 0.0, report.digest)
    assert re.fullmatch(rf"[a-z]{{8}}: {first['grade']}", first["text"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first["time"])
    assert Counter(a["sample"] for a in answers) == {0: 24, 1: 3}
    told = json.loads((tmp_path / "labels" / "judge.json").read_text())
    assert told["verdicts"] == {"ok": 27}
    assert told["complete"]
    assert told["settings"]["seed"] == 11
    consistency = report.consistency
    assert (consistency.pairs, consistency.equal, consistency.rose) == (3, 1.0, 0.0)
    assert report.tokens == 13 * report.answers == 13 * len(manners.asked)
    weir.judge(judge_pool, model=model, out=tmp_path / "labels").save(tmp_path / "report.json")
    assert str(weir.ResultSet.load(tmp_path / "report.json")[0]) == str(report)
    assert len(manners.asked) == report.answers


def test_the_same_command_asks_nothing_again_and_another_does_not_write_over_it(
    judge_server, judge_pool, tmp_path
):
    model, manners = judge_server
    weir.judge(judge_pool, model=model, out=tmp_path / "labels")
    before = len(manners.asked), (tmp_path / "labels" / "labels.tsv").read_bytes()
    weir.judge(judge_pool, model=model, out=tmp_path / "labels")
    assert before == (len(manners.asked), (tmp_path / "labels" / "labels.tsv").read_bytes())
    for change in ({"prompt": "basic"}, {"limit": 5}, {"settings": weir.labels.JudgeSettings(twice=0.5)}):
        with pytest.raises(BadValue, match="is there already, and not from this command"):
            weir.judge(judge_pool, model=model, out=tmp_path / "labels", **change)
    assert len(manners.asked) == before[0]
    weir.judge(judge_pool, model=model, out=tmp_path / "more", settings=weir.labels.JudgeSettings(twice=0.5))
    assert len(manners.asked) == before[0] + 12 - 3


@pytest.mark.parametrize("prompt", judge_prompts())
def test_every_prompt_judges_what_people_judged(judge_server, judged_place, tmp_path, prompt):
    model, manners = judge_server
    found = weir.judge(
        judged_place / "mine", model=model, prompt=prompt, judged=True, out=tmp_path / "labels"
    )
    [report] = found
    labels = read_labels(tmp_path / "labels").to_dict()
    grades = {(q, d): grade_of(DOCUMENTS[d]) for q, docs in JUDGED.items() for d in docs}
    graded = judge_prompt(prompt).scale.highest > 1
    if not graded:
        grades = {pair: int(grade > 1) for pair, grade in grades.items()}
    assert {(q, d): g for q, docs in labels.items() for d, g in docs.items()} == grades
    assert sum("Find heights." in p for p in manners.prompts()) == sum(
        "weir 1" in p or "weir 3" in p or "weir 5" in p for p in manners.prompts()
    )
    people = {(q, d): g for q, docs in JUDGED.items() for d, g in docs.items()}
    equal = [grades[p] == people[p] if graded else grades[p] == (people[p] > 0) for p in people]
    assert report.people.equal == pytest.approx(np.mean(equal), abs=1e-12)
    assert report.people.by == ("grade" if graded else "relevant or not")
    assert report.people.pairs == 18
    if prompt == "elastic-pairwise":
        best = {q: max(docs, key=lambda d: docs[d]) for q, docs in JUDGED.items()}
        shown = [PASSAGES.findall(body["messages"][-1]["content"])[0] for _, _, body in manners.asked]
        assert {DOCUMENTS[d] for d in best.values()} < set(
            shown
        )  # beside the best itself stands the second best


def test_without_a_relevant_document_there_is_nothing_to_set_beside(
    judge_server, judge_pool, judged_place, tmp_path
):
    model, _ = judge_server
    with pytest.raises(BadValue, match="elastic-pairwise shows a document that people found relevant"):
        weir.judge(judge_pool, model=model, prompt="elastic-pairwise", out=tmp_path / "labels")
    people = {q: docs for q, docs in JUDGED.items() if q != "q0"}
    [report] = weir.judge(
        judge_pool,
        model=model,
        prompt="elastic-pairwise",
        out=tmp_path / "labels",
        people=people,
        collection=judged_place / "mine",
    )
    assert (report.left_out, report.labelled) == (4, 20)
    assert any("4 pairs were not asked" in line for line in report.warnings)


def test_several_samples_are_asked_each_and_combined(judge_server, judge_pool, tmp_path):
    model, manners = judge_server
    turns = Counter()

    def sampled(_, user):
        turns[user] += 1
        return f"##final score: {(3, 0, 0, 1)[(turns[user] - 1) % 4]}"

    manners.say = sampled
    settings = weir.labels.JudgeSettings(samples=4, temperature=0.7, twice=0, probes=0, concurrency=1)
    [report] = weir.judge(judge_pool, model=model, out=tmp_path / "mode", settings=settings)
    assert set(read_labels(tmp_path / "mode").grade.tolist()) == {0}
    assert len(manners.asked) == 4 * 24
    assert all(body["temperature"] == 0.7 for _, _, body in manners.asked)
    mean = weir.labels.JudgeSettings(samples=4, combine="mean", temperature=0.7, twice=0, probes=0)
    weir.judge(judge_pool, model=model, out=tmp_path / "mean", settings=mean)
    assert set(read_labels(tmp_path / "mean").grade.tolist()) == {1.0}
    assert len(manners.asked) == 4 * 24
    two = weir.labels.JudgeSettings(samples=2, temperature=0.7, twice=0, probes=0)
    [report] = weir.judge(judge_pool, model=model, out=tmp_path / "two", settings=two)
    assert (report.tied, set(read_labels(tmp_path / "two").grade.tolist())) == (24, {0})


def test_the_command_says_what_its_equal_says(judge_server, judged_place, judge_pool, tmp_path, capsys):
    model, _ = judge_server
    out = str(tmp_path / "labels")
    asked = [
        "judge",
        str(judge_pool),
        "--model",
        model,
        "-o",
        out,
        "-q",
        "--samples",
        "2",
        "--temperature",
        "none",
    ]
    assert main(asked) == 0
    text = capsys.readouterr()
    settings = weir.labels.JudgeSettings(samples=2, temperature=None)
    found = weir.judge(judge_pool, model=model, out=out, settings=settings)
    assert text.out.strip() == repr(found)
    assert f"labels: {out}" in text.err
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labelled"] == 24
    assert found.to_frame()["probe"].tolist() == ["position", "padding", "keywords", "instruction"]
    assert main(["judge", str(judged_place / "people.tsv"), str(judged_place / "ranker.trec"), "--collection", str(judged_place / "mine"),
                 "--model", model, "-o", str(tmp_path / "runs"), "-q"]) == 0  # fmt: skip
    assert len(read_labels(tmp_path / "runs").doc) == 24


def test_settings_that_are_wrong_are_one_line_and_leave_nothing(judge_server, judge_pool, tmp_path, capsys):
    model, _ = judge_server
    for arguments, said in (
        (["--temperature", "hot"], "--temperature is 'hot'"),
        (["--temperature", "3"], "temperature is 3.0"),
        (["--samples", "0"], "samples is 0"),
        (["--twice", "2"], "twice is 2.0"),
        (["--prompt", "umbrella"], "did you mean umbrela"),
        (["--limit", "0"], "limit is 0"),
        (["--judged"], "none of its 24 pairs is with a grade"),
        (["--model", "gpt"], "model is 'gpt'"),
    ):
        by = [] if "--model" in arguments else ["--model", model]
        assert main(["judge", str(judge_pool), *by, "-o", str(tmp_path / "x"), "-q", *arguments]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_sheet_gets_its_texts_from_the_collection_and_its_grades_are_peoples(
    judge_server, judged_place, tmp_path
):
    model, _ = judge_server
    weir.labels.judging_pool(judged_place / "people.tsv", judged_place / "ranker.trec", out=tmp_path / "pool")
    with pytest.raises(BadValue, match="name the `collection`"):
        weir.judge(tmp_path / "pool", model=model, out=tmp_path / "labels")
    sheet = tmp_path / "pool" / "to_judge.tsv"
    head, *rows = sheet.read_text().splitlines()
    graded = [row.split("\t") for row in rows]
    filled = ["\t".join([*cells[:2], str(grade_of(DOCUMENTS[cells[1]])), *cells[3:]]) for cells in graded[:4]]
    sheet.write_text("\n".join([head, *filled, *rows[4:]]) + "\n")
    [report] = weir.judge(sheet, model=model, out=tmp_path / "labels", collection=judged_place / "mine")
    assert (report.pairs, report.people) == (20, None)
    [report] = weir.judge(
        sheet, model=model, out=tmp_path / "check", collection=judged_place / "mine", judged=True
    )
    assert (report.pairs, report.people.pairs, report.people.equal) == (4, 4, 1.0)
    with pytest.raises(BadValue, match=r"has the sheets of 1 collections \(pool\); judge one at a time"):
        weir.judge(tmp_path, model=model, out=tmp_path / "none")
    sheet.write_bytes(f"{head}\nq1\td1\t\t\t\tB".encode() + b"\xe4\n")
    with pytest.raises(FormatError, match="bytes that are not UTF-8"):
        weir.judge(sheet, model=model, out=tmp_path / "none")
    sheet.write_text(f"{head}\nq1\td1\n")
    with pytest.raises(FormatError, match="line 2: found 2 cells; expected query-id, corpus-id"):
        weir.judge(sheet, model=model, out=tmp_path / "none")


@pytest.mark.parametrize("other", [False, True])
def test_people_who_judged_another_text_of_a_document_are_told_whoever_names_them(
    judge_server, judged_place, tmp_path, other
):
    model, _ = judge_server
    rows = ["query-id\tcorpus-id\tgrade\tquery\ttitle\ttext"]
    for query, docs in JUDGED.items():
        asked = QUERIES[query]["text"] if isinstance(QUERIES[query], dict) else QUERIES[query]
        rows += [
            f"{query}\t{d}\t{g}\t{asked}\t\t{DOCUMENTS[d].replace('River', 'Lake' if other else 'River')}"
            for d, g in docs.items()
        ]
    sheet, mine = tmp_path / "sheet.tsv", judged_place / "mine"
    sheet.write_text("\n".join(rows) + "\n")
    found = [
        weir.judge(sheet, model=model, out=tmp_path / "a", collection=mine, judged=True),
        weir.judge(mine, model=model, out=tmp_path / "b", people=sheet, judged=True),
        weir.judge(
            sheet, judged_place / "ranker.trec", model=model, out=tmp_path / "c", collection=mine, judged=True
        ),
    ]
    said = [[one.text for one in report.notes() if "another text than in" in one.text] for report in found]
    assert list(map(len, said)) == [int(other)] * 3
    assert not weir.judge(sheet, model=model, out=tmp_path / "d", judged=True).notes()


def test_agreement_with_people_is_that_of_weir_agree(judge_server, judge_pool, tmp_path, capsys):
    model, _ = judge_server
    people = {q: {d: int(d[1:]) % 4 for d in docs} for q, docs in RUN_GRADES.items()}
    weir.Qrels.of(people).save(tmp_path / "people.tsv")
    command = ["judge", str(judge_pool), "--model", model, "-o", str(tmp_path / "labels"), "-q", "--json"]
    assert main([*command, "--qrels", str(tmp_path / "people.tsv")]) == 0
    told = json.loads(capsys.readouterr().out)["people"]
    [found] = weir.labels.agree(str(tmp_path / "people.tsv"), str(tmp_path / "labels"))
    values = {name: bounds for name, *bounds in found.values}
    assert [told["equal"], told["equal_low"], told["equal_high"]] == pytest.approx(
        values["accuracy"], abs=1e-12
    )
    assert [told["kappa"], told["kappa_low"], told["kappa_high"]] == pytest.approx(values["kappa"], abs=1e-12)
    pairs = [(people[q][d], grade_of(DOCUMENTS[d])) for q, d in unjudged()]
    assert told["pairs"] == len(pairs) == 24
    assert told["equal"] == pytest.approx(sum(one == other for one, other in pairs) / 24, abs=1e-12)
    assert told["rose"] == pytest.approx(sum(other > one for one, other in pairs) / 24, abs=1e-12)


def test_labels_of_models_are_nobodys_judgments(judge_server, judged_place, tmp_path):
    model, _ = judge_server
    people, machine = (
        weir.Qrels.of(JUDGED).labelled("human"),
        weir.Qrels.of(RUN_GRADES).labelled("llm:other:basic-1"),
    )
    weir.labels.merge_qrels(people, machine).save(tmp_path / "both.tsv")
    [report] = weir.judge(
        tmp_path / "both.tsv",
        model=model,
        judged=True,
        collection=judged_place / "mine",
        out=tmp_path / "labels",
    )
    assert report.pairs == report.people.pairs == 18
    machine.save(tmp_path / "machine.tsv")
    with pytest.raises(BadValue, match="people judged nothing"):
        weir.judge(
            tmp_path / "machine.tsv",
            model=model,
            judged=True,
            collection=judged_place / "mine",
            out=tmp_path / "x",
        )


def collection_of(folder, documents, queries):
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
    at = collection_of(
        tmp_path, {"d1": "weir one", "d2": "", "d3": unseen, "d4": "dam"}, {"q1": "weir", "q2": " "}
    )
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
    at = collection_of(tmp_path, {"d1": ""}, {"q1": "weir"})
    with pytest.raises(BadValue, match="each pair misses the text of its query or document"):
        weir.judge(at, model=judge_server[0], judged=True, out=tmp_path / "labels")
    assert not (tmp_path / "labels").exists()
