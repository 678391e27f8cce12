"""What was seen while scores were made is said wherever they are shown: other data, ties, warnings of rankings."""

from __future__ import annotations

import json
import random
import re
import warnings
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import weir
from tests.unit.brooklet import SMALL_RUN, write_collection, written_files
from weir.cli import main
from weir.datasets import catalogue
from weir.errors import BadValue, RankingWarning
from weir.plugins.bridges.export import write_hub_results, write_mteb_results
from weir.stats.score_rows import result_rows, row_notes

OTHER = (
    "this is not scifact as it was published: documents: 6, published 5,183; judged queries: 4, published 300"
)
QUERIES, DOCUMENTS = 8, 6


@pytest.fixture(scope="module")
def partly(tmp_path_factory) -> Path:
    """Results on a collection that bears a published name and has a few of its documents."""
    place = tmp_path_factory.mktemp("partly")
    data = write_collection(place / "scifact")
    weir.benchmark(str(data), ["bm25"], ["nDCG@10"], place / "results")
    return place / "results"


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Path:
    """Results of two files of rankings: of equal scores with a document that is not there, and of distances."""
    place = tmp_path_factory.mktemp("odd")
    documents = {f"d{n}": ("", f"weir {n}") for n in range(DOCUMENTS)}
    data = write_collection(place / "mine", documents)
    queries = [json.dumps({"_id": f"q{n}", "text": f"weir {n}"}) for n in range(QUERIES)]
    (data / "queries.jsonl").write_text("\n".join(queries) + "\n")
    judged = "".join(f"q{n}\td{n % DOCUMENTS}\t1\n" for n in range(QUERIES))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    for name, score in (("tied", lambda n: 1.0), ("distances", float)):
        found = [(f"q{q}", f"d{n}", n + 1, score(n)) for q in range(QUERIES) for n in range(DOCUMENTS)]
        found += [("q0", "nobody", DOCUMENTS + 1, score(DOCUMENTS))] * (name == "tied")
        text = "".join(f"{q} Q0 {d} {rank} {value} t\n" for q, d, rank, value in found)
        (place / f"{name}.trec").write_text(text)
    systems = [f'run("{place}/tied.trec", unknown="drop")', f'run("{place}/distances.trec")']
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        weir.benchmark(str(data), systems, ["nDCG@10"], place / "results")
    return place / "results"


def said(capsys, *arguments: object) -> str:
    """What a command says on both outputs."""
    assert main(list(map(str, arguments))) in (0, 1, 3)
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_another_collection_than_the_published_one_is_said_wherever_its_scores_stand(partly, capsys):
    data = partly.parent / "scifact"
    (cell,) = (path.parent for path in partly.glob("*/*/run.trec"))
    for command in (
        ("run", "-d", data, "-s", "bm25", "-m", "nDCG@10", "-o", partly),
        ("results", partly),
        ("results", partly, "--published", "BEIR paper"),
        ("report", partly, "--published", "BEIR paper"),
        ("report", partly, "--markdown", "-o", "-"),
        ("study", "reproduce", partly),
        ("why", cell, "--published", "Anserini BM25 flat"),
        ("audit", partly),
        ("study", "cite", partly),
        ("study", "efficiency", partly),
        ("gate", partly, partly),
    ):
        assert OTHER in said(capsys, *command), command
    assert {one.outcome for one in weir.reproduce(partly) if one.published} == {"other data"}

    # On a leaderboard it has a name of its own, and no task, domain or licence of the published one.
    weir.pack_results(partly, partly.parent / "packs" / "own.zip")
    site = weir.leaderboard(partly.parent / "packs", partly.parent / "site", places={"scifact": data})
    assert {row.dataset for row in site.rows} == {"scifact (not as published)"}
    assert all(board.filter.endswith(("all collections", "not in the catalogue")) for board in site.boards)
    shown = said(capsys, "report", partly, "--published", "BEIR paper")
    [column] = [line.rstrip() for line in shown.splitlines() if line.startswith("scifact")]
    assert column.endswith(" other data")


def test_scores_of_another_collection_are_not_exported_under_the_published_name(partly, tmp_path):
    for write in (write_mteb_results, write_hub_results):
        with pytest.raises(BadValue, match=OTHER):
            write(partly, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert write_hub_results(partly, tmp_path / "own", "me/part:Part")


def test_a_copy_is_held_to_the_collection_that_it_is_a_copy_of():
    assert catalogue.original("hf:mteb/scifact@0123abc") == "scifact"
    entry = catalogue.get("scifact")
    assert catalogue.other_counts("hf:mteb/scifact", entry.queries, entry.documents, {1.0: 339}) == ()
    assert catalogue.other_counts("hf:mteb/scifact", None, 7) == (("documents", 7, 5183),)


@given(
    st.sampled_from(["scifact", "nfcorpus", "arguana"]),
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
)
def test_counts_differ_exactly_where_they_are_not_the_published_ones(name, queries, documents, known):
    entry = catalogue.get(name)
    found = catalogue.other_counts(
        name, entry.queries + queries, entry.documents + documents if known else None, {}
    )
    named = [what for what, *_ in found]
    assert named == ["documents"] * bool(documents and known) + ["judged queries"] * bool(queries)
    assert all(here - there == {"documents": documents}.get(what, queries) for what, here, there in found)
    assert catalogue.other_counts("nobody's", queries, documents) == ()


def test_ties_and_warnings_are_said_wherever_the_scores_of_a_folder_stand(odd, capsys):
    data = odd.parent / "mine"
    ties = f"{QUERIES} of {QUERIES} queries could score otherwise by the order of ties: nDCG@10 0."
    rising = f"scores rise from rank to rank, as distances do, in {QUERIES} of {QUERIES} rankings"
    dropped = f"1 of {QUERIES * DOCUMENTS + 1} answers are documents that the collection does not have"
    systems = [
        f'run("{odd.parent}/{name}.trec"{more})'
        for name, more in (("tied", ', unknown="drop"'), ("distances", ""))
    ]
    for command in (
        ("run", "-d", data, "-s", systems[0], "-s", systems[1], "-m", "nDCG@10", "-o", odd),
        ("results", odd),
        ("compare", odd),
        ("gate", odd, odd),
        ("report", odd, "--markdown", "-o", "-"),
    ):
        text = said(capsys, *command)
        for sentence in (ties, rising, dropped):
            assert sentence in text, (command, sentence)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        notes = "\n".join(note.text for note in weir.benchmark(str(data), systems, ["nDCG@10"]).notes())
    assert all(sentence in notes for sentence in (ties, rising, dropped))


def test_a_warning_of_this_very_run_is_said_once(odd, tmp_path, capsys):
    data, place = odd.parent / "mine", odd.parent / "distances.trec"
    with warnings.catch_warnings():
        warnings.simplefilter("always", RankingWarning)
        text = said(capsys, "run", "-d", data, "-s", f'run("{place}")', "-m", "nDCG@10", "-o", tmp_path / "r")
    assert text.count("scores rise from rank to rank") == 1


class Embedder:
    """Vectors of one's own, as BEIR's models give them; texts longer than others have longer ones."""

    def __init__(self, row: object = None):
        self.row = row

    def vectors(self, texts: list[str]) -> np.ndarray:
        rows = [
            self.row if self.row is not None else np.bincount([ord(c) % 8 for c in t], minlength=8)
            for t in texts
        ]
        return np.array(rows, np.float32)

    def encode_queries(self, queries, batch_size, show_progress_bar, convert_to_tensor, **kwargs):
        assert (batch_size > 0, show_progress_bar, convert_to_tensor) == (True, False, False)
        return self.vectors(queries)

    def encode_corpus(self, corpus, batch_size, *, convert_to_tensor):
        assert (batch_size > 0, convert_to_tensor) == (True, False)
        return self.vectors([one["title"] + " " + one["text"] for one in corpus])


@pytest.mark.parametrize("row", [[0] * 8, [1] * 8])
def test_an_encoder_that_tells_no_texts_apart_is_warned_of(row, odd):
    with pytest.warns(RankingWarning, match=f"dense.Embedder.: all documents of each of {QUERIES} rankings"):
        weir.benchmark(str(odd.parent / "mine"), [Embedder(row)], ["nDCG@10"])


def test_a_similarity_that_nobody_chose_is_said_where_it_decides(odd, tmp_path):
    data = str(odd.parent / "mine")
    with pytest.warns(RankingWarning, match="compared by cosine, as it declares no similarity"):
        weir.benchmark(data, [Embedder()], ["nDCG@10"])
    both = [data, str(write_collection(tmp_path / "other"))]
    with pytest.warns(RankingWarning) as warned:
        table = weir.benchmark(both, [Embedder()], ["nDCG@10"])
    said = [str(one.message) for one in warned] + [note.text for note in table.notes()]
    assert sum("compared by cosine" in one for one in said) == 2  # while it runs, and below the table
    documents = {"d1": "a", "d2": "b b b"}
    with pytest.warns(RankingWarning) as direct:
        weir.Dense(Embedder()).index(documents).search({"q": "a"}, 1)
    assert {one.filename for one in [*warned, *direct]} == {__file__}  # the user's line, and no part of Weir
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankingWarning)
        for similarity in ("dot", "cosine"):
            weir.benchmark(data, [weir.Dense(weir.encoder(Embedder(), similarity=similarity))], ["nDCG@10"])


def test_rankings_that_answer_no_query_in_common_and_another_collections_are_said(odd, tmp_path, capsys):
    judged = odd.parent / "mine" / "qrels" / "test.tsv"
    rows = [(q, f"Q0 d{q % DOCUMENTS} 1 2.0 t\n") for q in range(QUERIES)]
    for name, of in (("low", lambda q: q < 4), ("high", lambda q: q >= 4)):
        (tmp_path / f"{name}.trec").write_text("".join(f"q{q} {row}" for q, row in rows if of(q)))
    files = [tmp_path / "low.trec", tmp_path / "high.trec"]
    assert "low and high answer no query in common" in said(capsys, "compare", judged, *files)
    (tmp_path / "all.trec").write_text("".join(f"q{q} {row}" for q, row in rows))
    (tmp_path / "other.trec").write_text(
        "".join(f"q{q} Q0 x{n} {n} {-n} t\n" for q in range(QUERIES) for n in range(9))
    )
    text = said(capsys, "compare", judged, tmp_path / "all.trec", tmp_path / "other.trec")
    assert "other may be a ranking of another collection" in text
    assert "no query in common" not in text
    text = said(capsys, "compare", judged, tmp_path / "all.trec", files[0])
    assert "no query in common" not in text
    assert "another collection" not in text


def test_a_judged_rate_says_of_which_queries_it_is(odd, tmp_path, capsys):
    judged, run = odd.parent / "mine" / "qrels" / "test.tsv", tmp_path / "half.trec"
    run.write_text("".join(f"q{q} Q0 d{n} {n} {-n} t\n" for q in range(4) for n in range(DOCUMENTS)))
    text = said(capsys, "eval", judged, run, "-m", "Judged@10")
    assert "0.0833" in text  # one of six documents of half of the queries
    assert "16.7% of the first 10 documents of answered queries are judged" in text


@given(st.data(), st.sampled_from(["default", "missing=answered-only", "empty=left-out"]))
def test_a_judged_rate_is_of_the_queries_that_it_names(data, conventions):
    grades = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=6))
    lengths = [data.draw(st.integers(0, 12)) for _ in grades]
    counted = [n for n, grade in enumerate(grades) if grade or conventions != "empty=left-out"]
    answered = [n for n in counted if lengths[n]]
    assume(any(grades) and (answered or (any(lengths) and conventions != "missing=answered-only")))
    run = {f"q{n}": {f"d{r}": -float(r) for r in range(size)} for n, size in enumerate(lengths) if size}
    judged = {f"q{n}": {"d0": grade} for n, grade in enumerate(grades)}
    scores = weir.evaluate(judged, run, ["AP"], conventions=conventions)
    rates = [1 / min(lengths[n], 10) for n in answered]
    mean = sum(rates) / max(len(rates), 1)
    whole = replace(scores, judged=None)  # as a file of scores keeps them
    for notes in (str(scores), str(whole)):
        said = re.findall(r"([\d.]+)% of the first 10 documents( of answered queries)? are judged", notes)
        assert [float(rate) for rate, _ in said] == [pytest.approx(100 * mean, abs=0.051)] * (0 < mean < 0.9)
        assert all(bool(whose) == (not scores.answered.all()) for _, whose in said)
    if conventions == "empty=left-out":  # a row does not say which of the queries in the mean are answered
        rates += [0.0] * (len(counted) - len(answered))
    mean = sum(rates) / max(len(rates), 1)
    notes = [note.text for note in row_notes(result_rows(scores, "mine", "bm25"))]
    said = re.findall(r"([\d.]+)% of the first 10 documents( of [\w ]+)? are judged", "\n".join(notes))
    whose = {"empty=left-out": " of the queries in the mean"}.get(conventions, " of answered queries")
    of = "" if scores.answered.all() else whose
    assert said == ([(f"{100 * mean:.1f}", of)] if scores.answered.any() and mean < 0.9 else [])


@given(st.integers(2, 9), st.integers(0, 9), st.booleans())
def test_rankings_that_begin_with_their_own_query_are_said_however_they_are_given(own, others, interleaved):
    """Of files, their join with judgments, runs and dicts alike; not where self-matches were left out."""
    rankings = {f"q{n}": {f"q{n}" if n < own else "x": 3.0, f"d{n}": 2.0} for n in range(own + others)}
    judged = {query: {f"d{query[1:]}": 1} for query in rankings}
    rows = [(q, d, s) for q, of in rankings.items() for d, s in of.items()]
    rows = sorted(rows, key=lambda row: -row[2]) if interleaved else rows
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.trec"
        path.write_text("".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in rows))
        for given_run in (rankings, weir.Run.of(rankings), str(path)):
            notes = [note.text for note in weir.evaluate(judged, given_run).notes()]
            said_so = f"{own} of {own + others} rankings begin with the query itself; `conventions='self_matches=drop'` leaves it out"
            assert (said_so in notes) == (own >= others), (notes, type(given_run))
            dropped = weir.evaluate(judged, given_run, conventions="self_matches=drop").notes()
            assert not any("query itself" in note.text for note in dropped)


def test_a_collection_without_documents_serves_stored_rankings_alone(odd, tmp_path, capsys):
    """Cells, comparison, report and verification; the scores are those of weir eval."""
    data, judged = tmp_path / "bare", odd.parent / "mine" / "qrels" / "test.tsv"
    (data / "qrels").mkdir(parents=True)
    (data / "qrels" / "test.tsv").write_bytes(judged.read_bytes())
    good = tmp_path / "good.trec"
    good.write_text(
        "".join(f"q{q} Q0 d{q % DOCUMENTS} 1 9 t\nq{q} Q0 elsewhere 2 8 t\n" for q in range(QUERIES))
    )
    poor = tmp_path / "poor.trec"
    poor.write_text(
        "".join(f"q{q} Q0 elsewhere 1 9 t\nq{q} Q0 d{q % DOCUMENTS} 2 8 t\n" for q in range(QUERIES))
    )
    systems = [word for path in (good, poor) for word in ("-s", f'run("{path}")')]
    said(capsys, "run", "-d", data, *systems, "-m", "nDCG@10", "-o", tmp_path / "r")
    means = {row.system: row.mean for row in weir.results(tmp_path / "r", "nDCG@10")}
    for path in (good, poor):
        assert means[f'run("{path}")'] == weir.evaluate(judged, path, "nDCG@10").mean("nDCG@10")
    assert "poor - good" in said(capsys, "compare", tmp_path / "r")
    said(capsys, "report", tmp_path / "r", "-o", tmp_path / "r.html")
    assert "2 sound, 0 not" in said(capsys, "verify", tmp_path / "r")
    assert "could not be checked" not in said(capsys, "verify", tmp_path / "r")
    assert main(["run", "-d", str(data), "-s", "bm25", "-o", str(tmp_path / "r")]) == 2
    assert "found no documents, which bm25 searches" in capsys.readouterr().err


def test_a_report_of_run_files_says_what_makes_one(capsys):
    assert main(["report", "qrels.txt", "a.trec", "b.trec"]) == 2
    error = capsys.readouterr().err
    assert "found qrels.txt and 2 more paths; expected one results folder" in error
    assert "weir run -d JUDGMENTS/ -s 'run(\"x.trec\")' -o results/" in error


def test_judged_queries_without_a_relevant_document_are_counted(tmp_path, capsys):
    qrels, run = written_files(tmp_path, qrels="q1 0 d1 1\nq2 0 d3 0\n", run__trec=SMALL_RUN)
    note = "note: 1 of 2 judged queries have no relevant document and score 0"
    assert main(["eval", str(qrels), str(run), "-m", "RR"]) == 0
    assert note in capsys.readouterr().err
    assert main(["eval", str(qrels), str(run), "-m", "RR", "--empty", "left-out"]) == 0
    assert note not in capsys.readouterr().err


def test_results_count_judged_queries_without_a_relevant_document(tmp_path, capsys):
    data = write_collection(tmp_path / "mine")
    judged = data / "qrels" / "test.tsv"
    judged.write_text("query-id\tcorpus-id\tscore\nq1\td1\t-1\nq2\td2\t0\n")
    note = "2 of 2 judged queries have no relevant document and score 0"
    results = tmp_path / "results"
    assert note in said(capsys, "run", "-d", data, "-s", "bm25", "-o", results)
    assert note in said(capsys, "results", results)
    assert note in [one.text for one in weir.results(results).notes()]
    said(capsys, "report", results, "-o", tmp_path / "report.html")
    assert note in (tmp_path / "report.html").read_text()


def test_a_run_with_ties_is_told_from_judgments(tmp_path, capsys):
    rows = "".join(f"q1 Q0 d{n} {n} {9.5 - n // 2 * 2 * (n < 3) - n * (n > 2)} x\n" for n in range(20))
    (run,) = written_files(tmp_path, run__trec=rows)
    table = tmp_path / "run.csv"
    assert main(["data", "convert", str(run), str(table)]) == 0
    assert main(["eval", str(table), str(run), "-m", "nDCG@10"]) == 0
    assert "nearly all grades of each query differ, as scores do" in capsys.readouterr().err


def test_an_unknown_measure_is_one_short_line(capsys):
    assert main(["eval", "brook-news", "x.trec", "-m", "nope@3"]) == 2
    error = capsys.readouterr().err
    assert "weir list measures shows all" in error
    assert len(error) < 200


OWN = {f"con-0{n}": {f"pro-0{n}": 1} for n in range(8)}
NUMBERED = {str(n): {str(n + 9): 1} for n in range(8)}


@pytest.mark.parametrize(
    ("judged", "own", "said"),
    [
        (OWN, 0, False),
        (OWN, 1, True),
        (NUMBERED, 3, False),  # numbers that queries and documents may have by chance
        (OWN | {"con-00": {"con-00": 1}}, 3, False),  # they are answers
    ],
)
@pytest.mark.parametrize("rank", [1, 3, 10])
def test_the_own_documents_of_queries_are_told_from_the_first(tmp_path, judged, own, said, rank):
    run = {}
    for number, query in enumerate(judged):
        found = [f"x{number}-{place}" for place in range(12)]
        found[rank - 1] = query if number < own else found[rank - 1]
        run[query] = {doc: 20.0 - place for place, doc in enumerate(found)}
    weir.Qrels.of(judged).save(tmp_path / "qrels.tsv")
    weir.Run.of(run).save(tmp_path / "run.trec")
    note = f"{own} of 8 rankings {'has' if own == 1 else 'have'} the query's own document among the first 10"
    ways = (
        (judged, run),
        (weir.Qrels.of(judged), weir.Run.of(run)),
        (tmp_path / "qrels.tsv", tmp_path / "run.trec"),
    )
    for given_judgments, given_run in ways:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)
            scores = weir.evaluate(given_judgments, given_run, "nDCG@10")
        assert any(one.text.startswith(note) for one in scores.notes()) == said
    (tmp_path / "c" / "qrels").mkdir(parents=True)
    (tmp_path / "qrels.tsv").rename(tmp_path / "c" / "qrels" / "test.tsv")
    for keep in (False, True):
        if keep:
            (tmp_path / "c" / "collection.toml").write_text("self_match = 'keep'\n")
        place = tmp_path / f"results-{keep}"
        weir.benchmark(str(tmp_path / "c"), [f'run("{tmp_path}/run.trec")'], "nDCG@10", place)
        for of_grid in (weir.results(place).notes(), weir.results(place, "nDCG@10").notes()):
            assert any(note in one.text for one in of_grid) == (said and not keep)


@pytest.mark.filterwarnings("ignore:.*ranks and scores say different orders")
@pytest.mark.parametrize("numbers", [False, True])
def test_exchanged_columns_of_a_run_are_named(tmp_path, numbers):
    """Also where identifiers of queries and documents are the same numbers, in files as in dicts."""
    draw = random.Random(1)
    query, doc = ("", "") if numbers else ("q", "d")
    qrels = {f"{query}{q}": {f"{doc}{d}": 1 for d in draw.sample(range(1, 200), 3)} for q in range(1, 30)}
    run = {q: {f"{doc}{d}": 100.0 - n for n, d in enumerate(draw.sample(range(1, 200), 60))} for q in qrels}
    turned: dict[str, dict[str, float]] = {}
    for one, ranking in run.items():
        for other, value in ranking.items():
            turned.setdefault(other, {})[one] = value
    lines = [
        f"{q} Q0 {d} {n} {s} x"
        for q, ranking in turned.items()
        for n, (d, s) in enumerate(ranking.items(), 1)
    ]
    (tmp_path / "turned.trec").write_text("\n".join(lines) + "\n")
    weir.evaluate(qrels, run, ["RR"])
    for rankings in (turned, tmp_path / "turned.trec"):
        with pytest.raises(BadValue, match="columns of queries and documents are exchanged"):
            weir.evaluate(qrels, rankings, ["RR"])


def test_documents_that_a_query_may_not_have_are_counted(tmp_path):
    documents, queries = {f"d{n}": f"text {n}" for n in range(15)}, {f"q{n}": "text" for n in range(12)}
    candidates = {q: [f"d{n}", f"d{n + 1}"] for n, q in enumerate(queries)}
    data = weir.Dataset.of(documents, queries, {q: {"d1": 1} for q in queries}, "few", candidates=candidates)
    run = {q: {d: 15.0 - n for n, d in enumerate(documents)} for q in queries}
    found = list(map(str, weir.evaluate(data, run, ["nDCG@10"]).notes()))
    assert any("removed: 156 documents of 12 rankings" in one for one in found)
    assert any("at most 2 documents, once barred ones are removed" in one for one in found)


@pytest.mark.parametrize("harm", ["cut", "lost"])
def test_a_ranking_that_is_not_as_it_was_written_is_made_again_by_the_same_run(harm, tmp_path, capsys):
    command = [
        "run",
        "-d",
        "brook-facts",
        "-s",
        "bm25",
        "-s",
        "rm3",
        "-m",
        "nDCG@10",
        "-o",
        str(tmp_path / "out"),
    ]
    assert main(command) == 0
    [path] = tmp_path.glob("out/brook-facts/rm3-*/run.trec")
    before = path.read_bytes()
    path.unlink() if harm == "lost" else path.write_bytes(before[:500])
    assert main(["submit", "pack", str(tmp_path / "out"), "-o", str(tmp_path / "p.zip")]) == 2
    assert "the same weir run makes it again" in capsys.readouterr().err
    assert main(command) == 0
    told = capsys.readouterr().err
    assert "making it again" in told
    assert "changed since" not in told
    assert path.read_bytes() == before
    [scores] = path.parent.glob("scores-*.jsonl")
    values = scores.read_bytes()
    scores.unlink()
    assert main(["compare", str(tmp_path / "out")]) == 2
    assert "the same weir run makes it again" in capsys.readouterr().err
    assert main(command) == 0
    assert scores.read_bytes() == values
    assert main(["verify", str(tmp_path / "out")]) == 0


def test_a_warned_ranking_says_so_in_the_result_that_is_printed(tmp_path):
    """In every form in which a run is given."""
    qrels = {f"q{n}": {"d1": 1} for n in range(10)}
    listed = {query: [(f"d{n}", n + 0.5) for n in range(10)] for query in qrels}
    columns = {"query": [q for q in listed for _ in range(10)], "doc": [d for r in listed.values() for d, _ in r],
               "score": [s for r in listed.values() for _, s in r]}  # fmt: skip
    path = tmp_path / "run.trec"
    path.write_text("".join(f"{q} Q0 {d} {int(s)} {s} x\n" for q, r in listed.items() for d, s in r))
    with pytest.warns(RankingWarning):
        read = weir.Run.load(path)
    for run in (listed, {query: dict(row) for query, row in listed.items()}, columns, path, str(path), read):
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            scores = weir.evaluate(qrels, run, "nDCG@10")
        assert sum("the highest score counts as the best" in note.text for note in scores.notes()) == 1
        assert "the highest score counts as the best" in str(scores)


def test_removed_answers_are_said_wherever_a_folder_is_told_of(odd, tmp_path, capsys):
    """Also in the report itself, in tables for papers and in what is printed, not only beside them."""
    sentence = "answers are documents that the collection does not have"
    report = weir.report(odd)
    assert "so scores can rise" in report.to_html().split("Could unjudged documents decide it?")[0]
    assert "so scores can rise" in report.to_markdown()
    (question,) = (one for one in report.questions if one.question.startswith("Could unjudged"))
    assert question.answer.head == "Perhaps."
    assert sentence in question.answer.text
    (section,) = (one for one in report.sections if one.name == "judged")
    assert any("after dropping" in note for note in section.notes)
    for path in report.save_tables(tmp_path):
        if path.name in ("scores.tex", "scores.md"):
            assert sentence in path.read_text(), path
    for form in ("--latex", "--markdown"):
        assert main(["results", str(odd), form]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any(sentence in line and not line.startswith("%") for line in lines), form
