"""What commands claim beside their numbers: self-matches, older tie rules, small collections, few queries."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import weir
from weir.api.collection_notes import collection_notes
from weir.cli import main
from weir.core.run import Run
from weir.datasets.load import load, self_matches
from weir.errors import FormatError, RankingWarning
from weir.files.runs import read_run

BROOK = Path(weir.__file__).parent / "datasets" / "brook"


def lines(path: Path, *rows: str) -> str:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path)


def own(folder: Path, documents: dict[str, str], queries: dict[str, str]) -> Path:
    """A collection whose every query is judged on the document 'x'."""
    folder.mkdir()
    lines(folder / "corpus.jsonl", *(json.dumps({"_id": d, "text": t}) for d, t in documents.items()))
    lines(folder / "queries.jsonl", *(json.dumps({"_id": q, "text": t}) for q, t in queries.items()))
    lines(folder / "qrels.txt", *(f"{q} 0 x 1" for q in queries))
    return folder


TEXTS = {str(n): f"Weir number {n} measures flow." for n in range(10)}


def test_queries_that_are_documents_are_recognised_by_identifier_and_text(tmp_path):
    same = own(tmp_path / "same", TEXTS | {"x": "other"}, {q: TEXTS[q].lower() for q in "01234"})
    assert self_matches(load(same)) == 1.0
    titled = own(tmp_path / "partly", TEXTS, {"0": TEXTS["0"], "1": "another text", "q": TEXTS["2"]})
    assert self_matches(load(titled)) == pytest.approx(1 / 3)
    numbered = own(tmp_path / "numbered", TEXTS, {q: f"question {q}" for q in "0123"})  # CISI, Cranfield
    assert self_matches(load(numbered)) == 0.0
    lines(numbered / "qrels.txt", "unknown 0 x 1")
    assert self_matches(load(numbered)) == 0.0  # no query is judged


@pytest.mark.parametrize(("name", "share"), [("arguments", 1.0), ("questions", 0.25), ("facts", 0.0)])
def test_the_embedded_collections_as_folders_of_ones_own(tmp_path, name, share):
    shutil.copytree(BROOK / name, tmp_path / name)
    dataset = load(tmp_path / name)
    assert self_matches(dataset) == share
    assert bool([n for n in collection_notes(dataset, ()) if "drop-self" in n.text]) == (share > 0)
    assert collection_notes(load(f"brook-{name}"), ()) == []  # the catalogue has said it


def test_a_toml_file_says_what_becomes_of_self_matches(tmp_path):
    folder = own(tmp_path / "same", TEXTS | {"x": "other"}, {q: TEXTS[q] for q in "01234"})
    assert load(folder).self_match == "keep"
    (note,) = collection_notes(load(folder), ())
    assert "100.0% of the queries of same are documents of it" in note.text
    assert "self_match = 'drop'" in note.details
    assert collection_notes(load(folder), (), dropped=True) == []
    head = 'documents = "same/corpus.jsonl"\nqueries = "same/queries.jsonl"\nqrels = "same/qrels.txt"\n'
    for said in ("keep", "drop"):
        toml = Path(lines(tmp_path / f"{said}.toml", head + f'self_match = "{said}"'))
        assert load(toml).self_match == said
        assert collection_notes(load(toml), ()) == []
    with pytest.raises(FormatError, match="self_match = 'yes'; expected self_match = 'keep' or 'drop'"):
        load(Path(lines(tmp_path / "yes.toml", head + 'self_match = "yes"')))


def test_eval_says_what_the_collection_makes_of_scores(tmp_path, capsys):
    folder = own(tmp_path / "same", TEXTS | {"x": "other"}, {q: TEXTS[q] for q in "01234"})
    run = lines(tmp_path / "run", *(f"{q} Q0 {d} 1 {2 - (d != q)} t" for q in "01234" for d in (q, "x")))
    command = ["eval", str(folder / "qrels.txt"), run, "-m", "R@100", "-m", "R@10", "-m", "nDCG@100"]
    assert main([*command, "--collection", str(folder)]) == 0
    err = capsys.readouterr().err
    assert "note: 100.0% of the queries of same are documents of it" in err
    assert "note: R@100 is 1 by construction for whatever returns all 11 documents on same" in err
    assert "note: R@10 " not in err
    assert "note: nDCG" not in err
    assert main([*command, "--collection", str(folder), "--drop-self"]) == 0
    assert "documents of it" not in capsys.readouterr().err
    assert main(["data", "stats", str(folder)]) == 0
    assert "note: 100.0% of the queries of same are documents of it" in capsys.readouterr().err


@pytest.fixture
def selfish(tmp_path) -> list[str]:
    """Judgments and two runs; each query finds itself first in the first run."""
    queries = [f"q{n}" for n in range(8)]
    return [
        lines(tmp_path / "qrels", *(f"{q} 0 x 1" for q in queries)),
        lines(
            tmp_path / "a", *(f"{q} Q0 {d} 1 {s} t" for q in queries for d, s in ((q, 3), ("x", 2), ("y", 1)))
        ),
        lines(
            tmp_path / "b",
            *(f"{q} Q0 {d} 1 {s} t" for q in queries for d, s in (("x", 3), ("y", 2), ("z", 1))),
        ),
    ]


def test_every_command_that_scores_run_files_drops_self_matches(selfish, tmp_path, capsys):
    qrels, a, b = selfish
    assert main(["compare", qrels, a, b, "-m", "RR"]) == 0
    assert re.search(r"b - a +\+0\.5000", capsys.readouterr().out)
    assert main(["compare", qrels, a, b, "-m", "RR", "--drop-self"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"b - a +\+0\.0000", out)
    assert "self_matches=drop" in err
    for drop, difference in (((), "0.5000"), (("--drop-self",), "0.0000")):
        assert main(["gate", qrels, a, b, "-m", "RR", *drop]) == 0
        assert f"RR: candidate - baseline +{difference}" in capsys.readouterr().out
        assert main(["power", qrels, a, b, "-m", "RR", *drop]) == 0
        assert f"RR: 8 queries, b minus a +{difference}" in capsys.readouterr().out
        assert main(["diff", qrels, a, b, "-m", "RR", *drop]) == 0
        assert f"(+{difference}) on 8 queries" in capsys.readouterr().out
    assert main(["fuse", "rrf", a, b, "-o", str(tmp_path / "fused.trec"), "--drop-self"]) == 0
    assert "q0" not in read_run(tmp_path / "fused.trec").to_dict()["q0"]
    with pytest.raises(SystemExit):
        raise SystemExit(main(["diff", a, b, "--drop-self"]))


def test_one_sign_in_compare_gate_power_and_diff(selfish, capsys):
    """The second run is better by 0.5 in all four, however its difference is called."""
    qrels, a, b = selfish
    for command in ("compare", "gate", "power", "diff"):
        assert main([command, qrels, a, b, "-m", "RR"]) == 0
        first = capsys.readouterr().out
        assert "+0.5000" in first
        assert "-0.5000" not in first
        assert main([command, "--help"]) == 0
        assert re.search(r"minus\s+(the\s+)?(first|baseline|FIRST)", capsys.readouterr().out)
    assert [c.pairs[0].difference for c in weir.compare(qrels, [a, b], "RR")] == [0.5]


def test_gate_names_what_it_gates_which_queries_lost_and_when_it_cannot_tell(tmp_path, capsys):
    queries = [f"q{n:02}" for n in range(16)]
    qrels = lines(tmp_path / "qrels", *(f"{q} 0 x 1" for q in queries))
    a = lines(tmp_path / "a", *(f"{q} Q0 {d} 1 {s} t" for q in queries for d, s in (("x", 2), ("y", 1))))
    even = {q: ("x", "y") if n else ("y", "x") for n, q in enumerate(queries)}
    b = lines(
        tmp_path / "b", *(f"{q} Q0 {d} 1 {-k} t" for q, docs in even.items() for k, d in enumerate(docs))
    )
    assert main(["gate", qrels, a, b, "--max-drop", "0.05", "--allow-undecided"]) == 0
    capsys.readouterr()
    assert main(["gate", qrels, a, b, "--max-drop", "0.05"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("UNDECIDED  nDCG@10: candidate - baseline -0.0231")
    assert "R@100" not in out
    assert "within the allowed drop, but the true change may be as low as -0.063" in out
    assert "      q00      1.0000     0.6309  -0.3691\n" in out
    assert main(["gate", qrels, a, b, "--allow-undecided"]) == 3
    assert "but it may be chance: p 0.1666 against no drop" in capsys.readouterr().out


def test_eval_says_what_trec_eval_9_would_say_and_only_where_it_says_otherwise(tmp_path, capsys):
    qrels = lines(tmp_path / "qrels", "q1 0 a 1", "q2 0 a 1")
    near = lines(tmp_path / "near", "q1 Q0 a 1 100.0000011 t", "q1 Q0 b 2 100.000001 t", "q2 Q0 a 1 1 t")
    assert main(["eval", qrels, near, "-m", "RR", "-m", "P@2"]) == 0
    out, err = capsys.readouterr()
    assert "1.0000" in out
    assert "note: RR is 0.7500 under trec_eval 9, which compares scores as floats (ties=trec9)\n" in err
    assert "note: P@2" not in err
    assert main(["eval", qrels, near, "-m", "RR", "--ties", "trec9"]) == 0
    out, err = capsys.readouterr()
    assert "0.7500" in out
    assert "trec_eval 9, which" not in err
    (tmp_path / "near.json").write_text(json.dumps(read_run(near).to_dict()))
    assert main(["eval", qrels, str(tmp_path / "near.json"), "-m", "RR"]) == 0
    assert "note: RR is 0.7500 under trec_eval 9" in capsys.readouterr().err
    # The float order agrees (b stands behind a either way), or the scores are far apart, or equal as doubles.
    for rows in (("q1 Q0 b 1 100.0000011 t", "q1 Q0 a 2 100.000001 t"), ("q1 Q0 a 1 2 t", "q1 Q0 b 2 1 t"),
                 ("q1 Q0 a 1 2 t", "q1 Q0 b 2 2 t")):  # fmt: skip
        assert main(["eval", qrels, lines(tmp_path / "other", *rows), "-m", "RR"]) == 0
        assert "under trec_eval 9, which" not in capsys.readouterr().err


def test_whoever_scores_a_run_says_once_what_trec_eval_9_would_say(tmp_path, capsys):
    """eval, compare, power, gate and diff, as commands, as functions of files and as functions of dicts."""
    qrels = lines(tmp_path / "qrels", "q1 0 a 1", "q2 0 a 1", "q3 0 a 1")
    near = lines(tmp_path / "near", "q1 Q0 a 1 100.0000011 t", "q1 Q0 b 2 100.000001 t", "q2 Q0 a 1 1 t")
    far = lines(tmp_path / "far", "q1 Q0 b 1 3 t", "q1 Q0 a 2 2 t", "q2 Q0 a 1 1 t")
    note, shown = "RR is 0.5000 under trec_eval 9, which compares scores as floats (ties=trec9)", {}
    for command in (["eval", qrels, near], ["eval", qrels, near, far], ["compare", qrels, near, far],
                    ["power", qrels, near, far], ["gate", qrels, near, far, "--max-drop", "0.9"],
                    ["diff", qrels, near, far], ["diff", qrels, near, far, "--drop-self"]):  # fmt: skip
        main([*command, "-m", "RR"])
        shown[" ".join(command)] = " ".join("".join(capsys.readouterr()).split())
    grades, one, other = (
        {f"q{n}": {"a": 1} for n in (1, 2, 3)},
        read_run(near).to_dict(),
        read_run(far).to_dict(),
    )
    for kind, given in (("files", (qrels, near, far)), ("dicts", (grades, one, other))):
        shown |= {
            f"weir.evaluate of {kind}": repr(weir.evaluate(*given[:2], "RR")),
            f"weir.compare of {kind}": repr(weir.compare(*given, "RR")),
            f"weir.power of {kind}": repr(weir.power(*given, "RR")),
            f"weir.gate of {kind}": repr(weir.gate(*given, "RR", max_drop=0.9)),
            f"weir.diff of {kind}": repr(weir.diff(*given, measure="RR")),
        }
    assert {name: text.count(note) for name, text in shown.items()} == dict.fromkeys(shown, 1)
    by_floats = repr(weir.diff(qrels, near, far, measure="RR", conventions="ties=trec9"))
    assert by_floats.startswith("RR: near 0.5000 -> far 0.5000 (+0.0000) on 3 queries")
    assert {
        name: text.count("self_matches=drop") for name, text in shown.items() if "--drop-self" in name
    } == {f"diff {qrels} {near} {far} --drop-self": 1}


def test_compare_names_a_bad_run_file_and_compares_the_others(tmp_path, capsys):
    qrels = lines(tmp_path / "qrels", *(f"q{n} 0 a 1" for n in range(6)))
    good = [
        lines(tmp_path / f"run{k}", *(f"q{n} Q0 {'ab'[n % k == 0]} 1 1 t" for n in range(6))) for k in (2, 3)
    ]
    bad = lines(tmp_path / "bad", "q1 Q0 a 1 high t")
    assert main(["compare", qrels, *good, "-m", "RR"]) == 0
    alone = capsys.readouterr()
    for several in ([good[0], bad, good[1]], [*good, bad, lines(tmp_path / "worse", "no run")]):
        assert main(["compare", qrels, *several, "-m", "RR"]) == 2
        out, err = capsys.readouterr()
        assert out == alone.out
        left_out = [line for line in err.splitlines() if line.startswith("weir: left out: ")]
        named = [bad, "worse"][: len(several) - 2]
        assert all(name in line for name, line in zip(named, left_out, strict=True))
    assert main(["compare", qrels, *good, bad, "-m", "RR", "--baseline", "bad"]) == 2
    assert f"the baseline 'bad' cannot be scored: {bad}" in capsys.readouterr().err
    assert main(["compare", qrels, good[0], bad, "-m", "RR"]) == 2  # one is left, and nothing to compare
    out, err = capsys.readouterr()
    assert (out, "left out" in err, bad in err) == ("", False, True)


def test_a_cut_off_that_no_ranking_reaches_is_told():
    qrels = {f"q{n}": {"a": 1} for n in range(5)}
    cut = weir.evaluate(qrels, {q: {"a": 2.0, "b": 1.0} for q in qrels}, ["nDCG@10", "P@2", "Accuracy@10"])
    texts = [note.text for note in cut.notes()]
    assert "rankings have at most 2 documents, and Accuracy@10, nDCG@10 look no deeper" in texts
    assert any(text.endswith("call so is Success@10") for text in texts)
    with pytest.warns(
        RankingWarning, match="no document that was returned is judged"
    ):  # means alone hide notes
        other = weir.evaluate(qrels, {q: {"z": 1.0} for q in qrels}, ["RR"])
    high = [note.text for note in weir.evaluate(qrels, {"q1": {"a": 1.0}}, ["AP(rel=2)", "AP"]).notes()]
    assert [text for text in high if "construction" in text] == [
        "AP(rel=2) is 0 by construction: the highest grade is 1"
    ]
    assert any(note.text.startswith("no document that was returned is judged") for note in other.notes())
    uneven = {q: dict.fromkeys("abcde"[: n + 1], 1.0) for n, q in enumerate(qrels)}
    assert not any("at most" in note.text for note in weir.evaluate(qrels, uneven, ["nDCG@10"]).notes())
    cells = weir.benchmark("brook-news", ["bm25"], ["nDCG@10", "R@100"], k=5)
    texts = [note.text for note in cells.notes()]
    assert "rankings have at most 5 documents, and R@100, nDCG@10 look no deeper" in texts
    assert not any("by construction" in text for text in texts)


def test_scores_are_close_as_floats_within_queries_alone():
    rankings = {"q": {"a": 1e8 + 1, "b": 1e8, "c": 1e8, "d": 1.0}, "r": {"a": 1.00000001}, "s": {"a": 1.0}}
    assert Run.of(rankings).float_ranks().tolist() == [3, 1, 2, 4, 1, 1]  # in the order a, c, b, d of "trec"
    assert Run.of({"r": rankings["r"], "s": rankings["s"]}).float_ranks() is None
    assert Run.of(rankings, ties="trec9").float_ranks() is None


def test_few_queries_are_said_once(tmp_path, capsys):
    for queries, said in ((1, 1), (2, 1), (5, 1), (6, 0)):
        qrels = lines(tmp_path / "qrels", *(f"q{n} 0 a {n % 2}" for n in range(queries)))
        run = lines(tmp_path / "run", *(f"q{n} Q0 a 1 1 t" for n in range(queries)))
        assert main(["eval", qrels, run, "-m", "RR"]) == 0
        assert "".join(capsys.readouterr()).count("fewer than 6 queries") == said
        assert str(weir.evaluate(qrels, run, ["RR"])).count("fewer than 6 queries") == said


def test_a_run_in_the_place_of_the_judgments(selfish, capsys):
    qrels, a, _ = selfish
    assert main(["eval", a, qrels]) == 2
    assert "this looks like a run, and judgments come first" in capsys.readouterr().err


def test_what_is_said_of_float_ties_is_what_pytrec_eval_says(tmp_path, capsys):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = {
        f"q{n}": {"a": 100 + 1e-6 * (n % 3), "b": 100.0, "c": 50 + n * 1e-9, "d": 50.0} for n in range(1, 9)
    }
    judged = {q: {"a": 1, "c": n % 3} for n, q in enumerate(run)}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recip_rank"}).evaluate(run)
    means = {m: sum(row[m] for row in theirs.values()) / len(run) for m in ("ndcg_cut_10", "recip_rank")}
    qrels = lines(
        tmp_path / "qrels", *(f"{q} 0 {d} {g}" for q, row in judged.items() for d, g in row.items())
    )
    file = lines(
        tmp_path / "run", *(f"{q} Q0 {d} 1 {s!r} t" for q, row in run.items() for d, s in row.items())
    )
    assert main(["eval", qrels, file, "-m", "nDCG@10", "-m", "RR"]) == 0
    err = capsys.readouterr().err
    assert f"note: nDCG@10 is {means['ndcg_cut_10']:.4f} under trec_eval 9" in err
    assert f"note: RR is {means['recip_rank']:.4f} under trec_eval 9" in err
