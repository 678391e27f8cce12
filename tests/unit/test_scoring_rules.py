"""A collection's rules reach every command and function that is told of it: one number everywhere."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest

import weir
from weir.api.collection_notes import collection_notes
from weir.cli import main
from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.datasets.load import self_matches
from weir.experiment.results import finished_cells
from weir.files.records import write_collection
from weir.files.write import write_qrels, write_run

WORDS = [
    "river",
    "weir",
    "dam",
    "flood",
    "meadow",
    "oven",
    "bread",
    "dough",
    "flour",
    "yeast",
    "bank",
    "bridge",
]
DRAWN = random.Random(7)
DOCUMENTS = {f"d{n:02}": " ".join(DRAWN.choices(WORDS, k=8)) for n in range(24)}
QUERIES = {name: DOCUMENTS[name] for name in list(DOCUMENTS)[:16]}
QRELS = {
    query: {doc: DRAWN.randint(0, 2) for doc in DRAWN.sample(sorted(DOCUMENTS), 12) if doc != query}
    for query in list(QUERIES)[:11]
} | {
    query: {doc: 0 for doc in DRAWN.sample(sorted(DOCUMENTS), 12) if doc != query}
    for query in list(QUERIES)[11:]
}
LABELS = {query: {doc: int(doc != query) for doc in DOCUMENTS} for query in QUERIES}
ORDERS = {query: DRAWN.sample(sorted(DOCUMENTS), 20) for query in QUERIES}
SURE = {query: DRAWN.random() for query in QUERIES}


def falling(ranked):
    """The same in the order of scores, as systems list what they find."""
    return dict(sorted(ranked.items(), key=lambda row: -row[1]))


RUNS = {
    name: {
        query: falling(
            {doc: SURE[query] + sign * place for place, doc in enumerate(order, 1)}
            | {query: 40 + DRAWN.random() if name == "one" else SURE[query] + 11.5}
        )
        for query, order in ORDERS.items()
    }
    for name, sign in (("one", 1), ("two", -1))
}
BY_HAND = {
    name: {
        query: {doc: score for doc, score in ranked.items() if doc != query} for query, ranked in run.items()
    }
    for name, run in RUNS.items()
}
FILES = ["qrels.trec", "one.trec", "two.trec"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A collection that drops self-matches by its own word, its judgments and run files, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    write_collection(tmp_path / "mine", Corpus.of(DOCUMENTS), Queries.of(QUERIES), Qrels.of(QRELS))
    (tmp_path / "mine" / "collection.toml").write_text('self_match = "drop"\n')
    for name, judgments in (("qrels", QRELS), ("labels", LABELS)):
        write_qrels(Qrels.of(judgments), tmp_path / f"{name}.trec")
    few = {query: QRELS[query] for query in list(QRELS)[:8]}
    write_qrels(Qrels.of(few), tmp_path / "few.trec")
    for name, run in RUNS.items():
        write_run(Run.of(run), tmp_path / f"{name}.trec")
    return tmp_path


def means(runs, measure="nDCG@10"):
    """The mean of each run as it is given."""
    return [weir.evaluate(QRELS, run, measure).means()[measure] for run in runs.values()]


def difference(runs):
    one, two = means(runs)
    return [two - one]


def judged_shares(runs):
    return [weir.evaluate(QRELS, run, "Judged@10").means()["Judged@10"] for run in runs.values()]


def of_labels(runs):
    return [weir.evaluate(LABELS, run, "DCG@10").means()["DCG@10"] for run in runs.values()]


def separations(runs):
    silent = [query for query, judged in QRELS.items() if not any(judged.values())]
    return [weir.threshold(QRELS, runs["one"], unanswerable=silent)[0].separation]


def areas(runs):
    return [weir.abstention(run, weir.evaluate(QRELS, run, "nDCG@10"))[0].nauc for run in runs.values()]


def numbers(found, name):
    return [one["numbers"][name] for one in found if name in one["numbers"]]


# Each command: its arguments, where its JSON has the numbers, and what they are of runs given without any collection.
COMMANDS = {
    "eval": (["eval", *FILES, "-m", "nDCG@10"], lambda out: [row["mean"] for row in out], means),
    "eval --abstention": (
        ["eval", *FILES, "-m", "nDCG@10", "--abstention", "max"],
        lambda out: [row["nauc"] for row in out if "nauc" in row],
        areas,
    ),
    "compare": (
        ["compare", *FILES, "-m", "nDCG@10"], lambda out: [s["mean"] for s in sorted(out[0]["standings"],
        key=lambda s: s["system"])], means),
    "diff": (["diff", *FILES], lambda out: [out[0]["first_mean"], out[0]["second_mean"]], means),
    "gate": (["gate", *FILES], lambda out: [out[0]["before"], out[0]["after"]], means),
    "power": (["power", *FILES, "-m", "nDCG@10"], lambda out: [out[0]["difference"]], difference),
    "why": (["why", *FILES], lambda out: [out[0]["first_mean"], out[0]["second_mean"]], means),
    "audit": (["audit", *FILES], lambda out: numbers(out, "ir-measures' Judged@10"), judged_shares),
    "holes": (
        ["labels", "holes", *FILES, "--human-labels", "labels.trec", "--model-labels", "labels.trec"],
        lambda out: [one["before"] for one in out[0]["found"][1:]],
        means,
    ),
    "relabel": (["labels", "relabel", "labels.trec", *FILES], lambda out: [one["before"] for one in out], means),
    "estimate": (
        ["labels", "estimate", "few.trec", "labels.trec", *FILES[1:], "-m", "DCG@10"],
        lambda out: [one["model"] for one in out],
        of_labels,
    ),
    "reranking": (
        ["study", "reranking", "one.trec", "two.trec", "--qrels", "qrels.trec"],
        lambda out: [out[0]["gain"]["before"], out[0]["gain"]["after"]],
        means,
    ),
    "threshold": (["study", "threshold", "qrels.trec", "one.trec"], lambda out: [out[0]["separation"]], separations),
}  # fmt: skip

OWN = {"collection": "mine"}
FUNCTIONS = {
    "evaluate": (lambda a, b: [weir.evaluate(QRELS, run, "nDCG@10", **OWN).means()["nDCG@10"] for run in (a, b)], means),
    "compare": (
        lambda a, b: [s.mean for s in sorted(weir.compare(QRELS, {"1": a, "2": b}, measures="nDCG@10", **OWN)[0].standings,
                                             key=lambda s: s.system)], means),
    "diff": (lambda a, b: [(m := weir.diff(QRELS, a, b, **OWN)[0]).first_mean, m.second_mean], means),
    "gate": (lambda a, b: [(g := weir.gate(QRELS, a, b, measures="nDCG@10", **OWN)[0]).before, g.after], means),
    "power": (lambda a, b: [weir.power(QRELS, a, b, "nDCG@10", **OWN)[0].difference], difference),
    "why": (lambda a, b: [(w := weir.why(QRELS, a, b, **OWN)[0]).first_mean, w.second_mean], means),
    "holes": (
        lambda a, b: [h.before for h in weir.labels.holes(QRELS, a, b, human=LABELS, model=LABELS, **OWN)[0].found[1:]], means),
    "estimate": (
        lambda a, b: [e.model for e in weir.labels.estimate({q: QRELS[q] for q in list(QRELS)[:8]}, LABELS, a, b,
                                                     measure="DCG@10", **OWN)], of_labels),
    "reranking": (
        lambda a, b: [(r := weir.reranking(a, b, qrels=QRELS, **OWN)[0].gain).before, r.after], means),
    "threshold": (lambda a, b: [weir.threshold(QRELS, a, **OWN)[0].separation], separations),
}  # fmt: skip


def said(capsys, arguments):
    code = main([*arguments, "--json"])
    told = capsys.readouterr()
    assert code in (0, 1, 3), told.err
    return [json.loads(line) for line in told.out.splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_scores_by_what_the_collection_says(place, capsys, name):
    arguments, read, of_runs = COMMANDS[name]
    assert main([*arguments, "--collection", "mine", "--json"]) in (0, 3)
    told = capsys.readouterr()
    assert read([json.loads(line) for line in told.out.splitlines()]) == pytest.approx(
        of_runs(BY_HAND), abs=1e-12
    )
    if name not in ("audit", "relabel"):
        assert "self_matches=drop" in told.err + told.out
    assert read(said(capsys, arguments)) == pytest.approx(of_runs(RUNS), abs=1e-12)
    assert of_runs(BY_HAND) != pytest.approx(of_runs(RUNS), abs=1e-3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_scores_by_what_the_collection_says(place, name):
    ask, of_runs = FUNCTIONS[name]
    assert ask(RUNS["one"], RUNS["two"]) == pytest.approx(of_runs(BY_HAND), abs=1e-12)


def test_a_baseline_is_saved_by_what_the_collection_says(place, capsys):
    """What was saved says its rule, which the next gate follows without being told."""
    assert main(["gate", *FILES[:2], "--save", "one.json", "--collection", "mine"]) == 0
    weir.save_baseline("two.json", "qrels.trec", "two.trec", collection="mine")
    [found] = said(capsys, ["gate", "qrels.trec", "one.json", "two.trec"])
    assert [found["before"], found["after"]] == pytest.approx(means(BY_HAND), abs=1e-12)
    [found] = said(capsys, ["gate", "one.json", "two.json"])
    assert [found["before"], found["after"]] == pytest.approx(means(BY_HAND), abs=1e-12)


def test_results_folders_agree_with_run_files_of_the_same_systems(place, capsys):
    """Rankings of `weir run` have lost their self-matches; every reading of the folder prints the same numbers."""
    pytest.importorskip("numba", reason="needs the `run` extra (numba)")
    systems = ['bm25("lucene")', 'bm25("bm25s")']
    run = [
        "run",
        "-d",
        "mine",
        *(part for one in systems for part in ("-s", one)),
        "-m",
        "nDCG@10",
        "-o",
        "out",
        "-k",
        "12",
    ]
    wanted = [row["mean"] for row in said(capsys, run)]
    cells = [cell.folder for cell in finished_cells(place / "out")]
    dataset = weir.load(place / "mine")
    for cell, system, mean in zip(cells, systems, wanted, strict=True):
        whole = weir.parse_system(system).index(dataset.corpus).search(dataset.queries, 24).to_dict()
        by_hand = {q: [d for d in ranked if d != q][:12] for q, ranked in whole.items()}
        assert mean == pytest.approx(means({"": by_hand})[0], abs=1e-12)
        write_run(Run.of({q: list(ranked) for q, ranked in whole.items()}), place / f"{cell.name}.trec")
        [again] = said(
            capsys, ["eval", "qrels.trec", f"{cell.name}.trec", "-m", "nDCG@10", "--collection", "mine"]
        )
        assert again["mean"] == pytest.approx(mean, abs=1e-12)
    files = [f"{cell.name}.trec" for cell in cells]
    [found] = said(
        capsys, ["gate", "qrels.trec", str(cells[0]), files[1]]
    )  # the folder's rule is that of the file
    assert [found["before"], found["after"]] == pytest.approx(wanted, abs=1e-12)
    [found] = said(capsys, ["diff", *map(str, cells)])
    assert [found["first_mean"], found["second_mean"]] == pytest.approx(wanted, abs=1e-12)
    [found] = said(capsys, ["why", *map(str, cells)])
    assert [found["first_mean"], found["second_mean"]] == pytest.approx(wanted, abs=1e-12)
    assert "not on this machine" not in json.dumps(found)
    found = said(capsys, ["labels", "relabel", "labels.trec", "out"])
    assert [one["before"] for one in found] == pytest.approx(wanted, abs=1e-12)


def test_candidates_and_silent_queries_of_the_collection_hold_everywhere(tmp_path, monkeypatch, capsys):
    """The other rules go the same way: what may be ranked, of every split, and queries that are in no mean."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    write_collection(tmp_path / "mine", Corpus.of(DOCUMENTS), Queries.of(QUERIES), Qrels.of(QRELS))
    rows = [
        {
            "_id": query,
            "text": text,
            "metadata": {"excluded": [query], "unanswerable": not any(QRELS[query].values())},
        }
        for query, text in QUERIES.items()
    ]
    (tmp_path / "mine" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_qrels(Qrels.of(QRELS), tmp_path / "qrels.trec")
    for name, run in RUNS.items():
        write_run(Run.of(run), tmp_path / f"{name}.trec")
    answerable = {query: judged for query, judged in QRELS.items() if any(judged.values())}
    wanted = [weir.evaluate(answerable, run, "nDCG@10").means()["nDCG@10"] for run in BY_HAND.values()]
    for name in ("eval", "compare", "diff", "gate", "why", "relabel", "reranking"):
        arguments, read, _ = COMMANDS[name]
        if name == "relabel":
            arguments = ["labels", "relabel", "qrels.trec", *FILES]
        assert read(said(capsys, [*arguments, "--collection", "mine"])) == pytest.approx(wanted, abs=1e-12), (
            name
        )


def test_silent_queries_are_in_no_mean_of_intents_either(place, capsys):
    rows = [json.loads(line) for line in (place / "mine" / "queries.jsonl").read_text().splitlines()]
    rows = [row | {"metadata": {"unanswerable": not any(QRELS[row["_id"]].values())}} for row in rows]
    (place / "mine" / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    intents = {q: {i: {d: g * (n % 2 == i) for n, (d, g) in enumerate(sorted(judged.items()))} for i in (0, 1)}
               for q, judged in QRELS.items()}  # fmt: skip
    intents = dict(reversed(intents.items()))  # the silent ones first
    weir.labels.IntentQrels.of(intents).save(place / "intents.trec")
    answerable = {q: judged for q, judged in intents.items() if any(QRELS[q].values())}
    measures = ["StRecall@3", "alpha_nDCG@10", "ERR_IA@5", "nDCG@10"]
    wanted = weir.evaluate(weir.labels.IntentQrels.of(answerable), BY_HAND["one"], measures).means()
    arguments = ["intents.trec", "one.trec", "--collection", "mine", *(f"-m{m}" for m in measures)]
    assert {row["measure"]: row["mean"] for row in said(capsys, ["eval", *arguments])} == pytest.approx(
        wanted
    )
    found = weir.evaluate("intents.trec", RUNS["one"], measures, collection="mine")
    assert (found.means(), len(found.queries)) == (pytest.approx(wanted), 11)
    bank = weir.labels.IntentQrels.of(intents)
    some = bank.only(np.arange(1, 16, 3))
    assert some.to_dict() == {q: bank.to_dict()[q] for q in list(bank.to_dict())[1:16:3]}


@pytest.mark.parametrize("missing", ["corpus.jsonl", "qrels", "queries.jsonl"])
def test_rules_hold_where_a_part_of_the_collection_is_not_here(place, capsys, missing):
    (place / "mine" / missing).rename(place / "away")
    for name in (
        ("eval", "compare", "gate", "audit") if missing != "queries.jsonl" else ("eval", "compare", "gate")
    ):
        arguments, read, of_runs = COMMANDS[name]
        assert read(said(capsys, [*arguments, "--collection", "mine"])) == pytest.approx(
            of_runs(BY_HAND), abs=1e-12
        )


def test_one_collection_is_not_taken_for_all_of_a_folder(place, capsys):
    """A column of one, asked for by --by, is not looked for among the queries of another."""
    pytest.importorskip("numba", reason="needs the `run` extra (numba)")
    (place / "other").mkdir()
    queries = Queries.of({f"other-{query}": text for query, text in QUERIES.items()})
    qrels = Qrels.of({f"other-{query}": judged for query, judged in QRELS.items()})
    write_collection(place / "other", Corpus.of(DOCUMENTS), queries, qrels)
    for name in ("mine", "other"):
        rows = [json.loads(line) for line in (place / name / "queries.jsonl").read_text().splitlines()]
        rows = [row | {"metadata": {"kind": name + str(n % 2)}} for n, row in enumerate(rows)]
        (place / name / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    weir.benchmark(["mine", "other"], ["bm25", "bm25(b=0.0)"], ["nDCG@10"], place / "both")
    plain = said(capsys, ["compare", "both", "--by", "kind", "-m", "nDCG@10"])
    assert {"mine0", "mine1", "other0", "other1"} <= {one["group"] for one in plain}
    arguments = ["both", "--by", "kind", "-m", "nDCG@10"]
    assert said(capsys, ["compare", *arguments, "--collection", "mine"]) == plain
    for name in ("mine", "other"):
        (place / name).rename(place / f"{name}-moved")
    places = [word for name in ("other", "mine") for word in ("--collection", f"{name}={name}-moved")]
    assert said(capsys, ["compare", *arguments, *places]) == plain
    assert main(["gate", "both", *arguments, "-s", "bm25", *places]) in (0, 3)
    assert "other1" in capsys.readouterr().out
    for command in ("compare", "results"):
        rows = said(capsys, [command, *arguments, "--collection", "other-moved"])
        assert {row["dataset"] for row in rows} == {"other"}
        main([command, *arguments, "--collection", "other-moved"])
        assert "left out: mine: the collection is not at" in capsys.readouterr().err
    shutil.copytree(place / "other-moved", place / "stranger")
    (place / "stranger" / "corpus.jsonl").write_text('{"_id": "d1", "text": "another"}\n')
    (place / "stranger" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nother-q1\td1\t1\n")
    for collection, message in (
        ("stranger", "is none of mine, other by its name"),
        ("three=mine-moved", "known: mine, other"),
    ):
        assert main(["results", *arguments, "--collection", collection]) == 2
        assert message in capsys.readouterr().err


def test_the_share_of_queries_that_are_documents_is_of_all_queries(tmp_path):
    """A sample of the first 1,000 saw none of those behind them, and one share for all."""
    documents = {f"d{n}": f"text number {n}" for n in range(3000)}
    later = {f"d{n}" if n >= 2400 else f"q{n}": f"text number {n}" for n in range(3000)}
    found = weir.Dataset.of(documents, later, {query: {"d1": 1} for query in later})
    assert self_matches(found) == 600 / 3000
    assert "20.0% of the queries" in collection_notes(found, ())[0].text
    first = {f"d{n}" if n < 1000 else f"q{n}": f"text number {n}" for n in range(3000)}
    judged = {query: {"d2999": 1} for query in first}
    assert self_matches(weir.Dataset.of(documents, first, judged)) == 1000 / 3000
    relevant = {query: {query: 1} if query == "d7" else {"d2999": 1} for query in first}
    assert self_matches(weir.Dataset.of(documents, first, relevant)) == 999 / 3000


def test_the_folder_of_a_collection_stands_for_its_judgments_and_its_rules(tmp_path, capsys):
    """Queries are documents here: the folder's own rule drops them, its file of judgments alone knows none."""
    folder = tmp_path / "c"
    documents = {f"d{n}": f"text number {n}" for n in range(6)}
    made = weir.Dataset.of(documents, documents, {f"d{n}": {f"d{(n + 1) % 6}": 1} for n in range(6)})
    shutil.copytree(made.layout.root, folder)
    (folder / "collection.toml").write_text("self_match = 'drop'\n")
    for name, score in (("one", 0.5), ("other", 0.4)):
        run = weir.Run.of({f"d{n}": {f"d{n}": 1.0, f"d{(n + 1) % 6}": score} for n in range(6)})
        run.save(tmp_path / f"{name}.trec")
    runs = [str(tmp_path / f"{name}.trec") for name in ("one", "other")]
    assert main(["eval", str(folder), *runs, "-m", "RR", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["c", name, "RR", "1.0"] for name in ("one", "other")
    ]
    for command in ("compare", "power", "diff"):
        assert main([command, str(folder), *runs, "-m", "RR"]) == 0
        assert "0.5000" not in capsys.readouterr().out
    assert main(["eval", str(folder / "qrels" / "test.tsv"), runs[0], "-m", "RR"]) == 0
    assert "0.5000" in capsys.readouterr().out
