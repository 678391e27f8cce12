"""weir data import on the real files of other tools: each is read, or refused in one line by name."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import weir
from weir.errors import WeirError
from weir.files.layouts import find_layout
from weir.files.runs import read_qrels, read_run
from weir.plugins.importing import Choices, import_files

pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")
pytest.importorskip("yaml", reason="YAML files take PyYAML")
# Each reading of an imported folder tells again what the import left out.
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")]

TABLE = Path(__file__).with_name("import_expected.tsv")
ROWS = list(
    csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
)


@pytest.fixture(scope="session")
def interop(shared):
    folder = shared / "data" / "interop"
    if not folder.is_dir():
        pytest.skip("../shared/data/interop is not there: files of other tools are not part of the project")
    return folder


def outcome(path, out):
    """Kind, counts and the first words of a refusal, as the table holds them."""
    try:
        report = import_files([path], out, choices=Choices(allow_loss=True))
    except WeirError as error:
        said = str(error)
    else:
        return read(report, out)
    return {
        "kind": "refused",
        "counts": said.replace(f"{path.parents[1]}/", "").replace(f"{path}", path.name),
        "written": out.exists(),
    }


def read(report, out):
    told = report.files[0]
    if any(report.whole[part] for part in ("queries", "documents", "judgments")):
        find_layout(out)
    counts = {name: told["counts"].get(name, 0) for name in ("queries", "judgments", "documents", "rankings")}
    return {
        "kind": told["kind"],
        "counts": " ".join(f"{count}" for count in counts.values()) + f" -{told['rows_refused']}",
    }


def test_the_table_has_every_file(interop):
    here = {path.relative_to(interop).as_posix() for path in interop.rglob("*") if path.is_file()}
    assert here - {"README.md", "PROVENANCE.md"} == {row["file"] for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_every_file_is_read_or_refused_by_name(interop, tmp_path, row):
    found = outcome(interop / row["file"], tmp_path / "out")
    assert found["kind"] == row["kind"]
    if row["kind"] == "refused":
        assert row["counts"] in found["counts"]
        assert "\n" not in found["counts"]
        assert not found["written"]
    else:
        assert found["counts"] == row["counts"]


class Import:
    """One import of some files: judgments, runs, queries and texts as dictionaries."""

    def __init__(self, tmp_path, paths, name="out", **options):
        out = tmp_path / name
        self.report = import_files(paths, out, **options)
        queries = out / "queries.jsonl"
        rows = [json.loads(line) for line in queries.read_text().splitlines()] if queries.exists() else []
        self.queries = {row["_id"]: row["text"] for row in rows}
        self.metadata = {row["_id"]: row.get("metadata", {}) for row in rows}
        self.qrels = {path.stem: read_qrels(path).to_dict() for path in out.glob("qrels/*")}
        self.runs = {path.stem: read_run(path).to_dict() for path in out.glob("runs/*")}

    @property
    def judged(self):
        """The judgments of the only split, queries by their text where there is one."""
        (judged,) = self.qrels.values()
        return {self.queries.get(query, query): row for query, row in judged.items()}

    @property
    def ranked(self):
        """The documents of the only run in order, queries by their text where there is one."""
        (run,) = self.runs.values()
        return {self.queries.get(query, query): list(row) for query, row in run.items()}


def test_one_case_of_quepid_in_every_export(interop, tmp_path):
    quepid = interop / "quepid"
    given = {
        one["query"]: {doc: int(g) for doc, g in one["ratings"].items()}
        for one in json.loads((quepid / "case_ratings.json").read_text())["queries"]
    }
    names = (
        "case_ratings.json",
        "case_basic.csv",
        "case_basic.browser.csv",
        "case_rre.json",
        "snapshot.json",
    )
    for name in names:
        assert Import(tmp_path, [quepid / name]).judged == given, name
    for name in ("case_trec.txt", "case_ltr.txt"):
        assert (
            Import(tmp_path, [quepid / name, quepid / "snapshot.csv", quepid / "snapshot.json"]).judged
            == given
        ), name


def test_one_run_in_every_form(interop, tmp_path):
    ranx = json.loads((interop / "ranx/bm25.json").read_text())
    order = {query: sorted(row, key=row.get, reverse=True) for query, row in ranx.items()}
    for name in ("ranx/bm25.json", "ranx/bm25.parquet", "ranx/bm25.trec", "pyterrier/results.parquet", "pyterrier/results.res.gz",
                 "pyterrier/results.trec"):  # fmt: skip
        (run,) = Import(tmp_path, [interop / name]).runs.values()
        assert {query: sorted(row, key=row.get, reverse=True) for query, row in run.items()} == order, name
    minimal = Import(tmp_path, [interop / "pyterrier/results.minimal"], as_kind="run-ranks")
    assert minimal.ranked == order
    numbers = {query: [doc.removeprefix("CACM-") for doc in docs] for query, docs in order.items()}
    assert Import(tmp_path, [interop / "colbert/ranking.tsv"]).ranked == numbers
    for name in ("run.3col.tsv", "run.3col.no_rank_gap.tsv"):
        found = Import(tmp_path, [interop / "msmarco" / name], as_kind="run-ranks").ranked
        assert found == {query: numbers[query] for query in found}, name
        assert len(found) > 1
    frame = Import(tmp_path, [interop / "pyterrier/results.csv"])
    assert frame.queries["1"] == "query text of 1"
    (run,) = frame.runs.values()
    assert {query: list(row) for query, row in run.items()}["1"] == order["1"]


def test_one_set_of_judgments_in_every_form(interop, tmp_path):
    given = json.loads((interop / "ranx/qrels.json").read_text())
    for name in ("ranx/qrels.json", "ranx/qrels.parquet", "ranx/qrels.trec", "ranx/cacm.qrels.trec"):
        assert Import(tmp_path, [interop / name]).judged == given, name


@pytest.mark.parametrize("name", ["tira/ranking-outputs/run.txt", "tira/wows26/run.txt.gz", "ir_metadata/cacm-bm25.annotated.txt",
                                  "trec-rag/run.rag25.bm25.txt", "pyserini/simple_trec_run_msmarco_doc1.txt", "ranx/cacm.trec"])  # fmt: skip
def test_trec_runs_are_those_that_weir_reads_itself(interop, tmp_path, name):
    (run,) = Import(tmp_path, [interop / name]).runs.values()
    assert run == read_run(interop / name).to_dict()


@pytest.mark.parametrize("name", ["miracl/qrels.miracl-v1.0-ja-dev.tsv", "bright/qrels.bright-biology.txt", "trec-rag/qrels.rag24.test.txt",
                                  "msmarco/qrels.5k-eval.tsv", "tira/dataset/qrels.txt"])  # fmt: skip
def test_trec_judgments_are_those_that_weir_reads_itself(interop, tmp_path, name):
    assert Import(tmp_path, [interop / name]).judged == read_qrels(interop / name).to_dict()


def test_tables_and_json_of_one_evaluator_agree(interop, tmp_path):
    for one, other in (
        ("ragas/evaluation_dataset.jsonl", "ragas/evaluation_dataset.csv"),
        ("deepeval/goldens.json", "deepeval/goldens.csv"),
    ):
        first, second = (Import(tmp_path, [interop / name], name=Path(name).suffix) for name in (one, other))
        assert (first.queries, first.judged, first.ranked) == (second.queries, second.judged, second.ranked)
    rows = [
        json.loads(line) for line in (interop / "ragas/evaluation_dataset.jsonl").read_text().splitlines()
    ]
    ragas = Import(tmp_path, [interop / "ragas/evaluation_dataset.jsonl"])
    assert ragas.ranked == {
        row["user_input"]: list(dict.fromkeys(row["retrieved_context_ids"])) for row in rows
    }
    assert ragas.judged == {row["user_input"]: dict.fromkeys(row["reference_context_ids"], 1) for row in rows}


def test_spans_in_every_form_hold_one_run(interop, tmp_path):
    spans = interop / "openinference"
    first = Import(tmp_path, [spans / "langchain_retriever_spans.otel-sdk.jsonl"])
    assert first.ranked["Who likes Joshua Trees?"] == [
        "Geneva Durben",
        "Dorathea Bastress",
        "Pate Lindley",
        "Shelvia Goike",
    ]
    assert Import(tmp_path, [spans / "langchain_retriever_spans.otlp.json"]).ranked == first.ranked
    both = Import(
        tmp_path, [spans / "langchain_retriever_spans.otlp.json", spans / "phoenix_retrieved_documents.csv"]
    )
    one, two = both.runs.values()
    assert one == two  # Phoenix's texts got the identifiers of the same texts
    genai = Import(tmp_path, [interop / "otel-genai/retrieval_spans.otlp.json"])
    assert genai.ranked["What articles exist which deal with TSS"] == ["CACM-1938", "CACM-2036", "CACM-0637"]
    assert genai.ranked["a query that finds nothing"] == []


def test_search_engines(interop, tmp_path):
    request = Import(tmp_path, [interop / "rank-eval/recall.request.json"])
    listed = Import(tmp_path, [interop / "elastic-labs/recall_judgments.json"])
    assert (request.queries, request.judged) == (listed.queries, listed.judged)
    response = Import(tmp_path, [interop / "rank-eval/basic.mrr.response.json"])
    assert response.ranked["amsterdam_query"] == ["doc2", "doc3", "doc4"]
    assert response.judged["amsterdam_query"] == {"doc4": 1}
    rre = Import(tmp_path, [interop / "rre/ratings_example.elasticsearch.json"])
    assert rre.judged["Fender bass"] == {"1": 3, "2": 3}
    assert next(iter(rre.metadata.values())) == {"topic": "Fender basses", "group": "Brand search"}
    given = json.loads((interop / "opensearch-srw/ImportJudgments.json").read_text())["judgmentRatings"]
    scaled = Import(
        tmp_path, [interop / "opensearch-srw/ImportJudgments.json"], choices=Choices(grades="scale=10")
    )
    assert scaled.judged == {
        one["query"]: {r["docId"]: round(10 * float(r["rating"])) for r in one["ratings"]} for one in given
    }


def test_hub_layouts_old_and_new_are_one_collection(interop, tmp_path):
    folders = ("mteb/hub_layout/LIMITSmall", "mteb/hub_layout_old", "nanobeir/NanoLIMIT")
    found = [
        Import(tmp_path, sorted((interop / one).rglob("*.parquet")), name=str(n))
        for n, one in enumerate(folders)
    ]
    assert found[0].judged == found[1].judged == found[2].judged
    assert len(weir.load(tmp_path / "0").corpus) == 46
    assert found[0].metadata["query_0"]["candidates"][0] == "Geneva Durben"
    predictions = interop / "mteb/local_run/predictions/LIMITSmallRetrieval_predictions.json"
    (run,) = Import(tmp_path, [predictions]).runs.values()
    results = json.loads(
        (interop / "mteb/local_run/mteb__baseline-random-encoder/2/LIMITSmallRetrieval.json").read_text()
    )
    (mean,) = weir.evaluate(found[0].qrels["test"], run, ["nDCG@10"]).means().values()
    assert mean == pytest.approx(results["scores"]["test"][0]["ndcg_at_10"], abs=1e-4)
    bright = Import(
        tmp_path, [interop / "bright/examples.leetcode.jsonl", interop / "bright/exclude.bright-leetcode.txt"]
    )
    assert bright.metadata["0"]["excluded"][0] == "leetcode/leetcode_1996.txt"
    followir = Import(
        tmp_path, [p for p in sorted((interop / "followir").rglob("*.parquet")) if "diff" not in str(p)]
    )
    assert followir.metadata["300-og"]["instruction"].startswith("Find people")


def test_golden_sets_of_teams(interop, tmp_path):
    golden = interop / "golden"
    decree = Import(tmp_path, [golden / "decree.queries.yaml"])
    assert (
        sum(more.get("unanswerable", False) for more in decree.metadata.values())
        == decree.report.whole["unanswerable"]
        == 6
    )
    zhanggui = Import(tmp_path, [golden / "zhanggui-zhiku.golden_queries.jsonl"])
    assert zhanggui.qrels["test"]["q001"] == {"c_101": 2}
    columns = {"query": "2", "doc": "3", "grade": "4"}
    vespa = Import(
        tmp_path, [golden / "vespa-docs.qrels.tsv"], columns=columns, choices=Choices(judges="max")
    )
    assert vespa.judged["perf record proton"]["/en/performance/profiling.html#cpu-profiling-using-perf"] == 2
    with pytest.raises(WeirError, match="'VESPA_25' is 'how to tune post filter thresholds'"):
        import_files([golden / "vespa-docs.qrels.tsv"], tmp_path / "x", columns={"query_id": "1", **columns})
    cookbook = Import(
        tmp_path, [golden / "claude-cookbooks.evaluation_set.jsonl"], columns={"doc": "golden_doc_uuids"}
    )
    assert all(len(row) == 1 for row in cookbook.judged.values())
    dpr = Import(
        tmp_path, [interop / "pyserini/simple_topics_dpr.txt", interop / "pyserini/jsonl.documents.jsonl"]
    )
    assert dpr.judged == {
        "what is in document three": {"doc3": 1},
        "what is document two": {"doc1": 1, "doc2": 1},
    }


def test_logs_of_clicks_become_judgments_by_a_model(interop, tmp_path):
    choices = Choices(clicks="ctr", impressions=1)
    found = Import(tmp_path, [interop / "clicks/click_log_sample.tsv"], choices=choices)
    assert found.judged["QUERY1"] == {f"http://{n}": float(n in (3, 4)) for n in range(1, 11)}
    other = Import(
        tmp_path, [interop / "clicks/click_log_sample_extended_format.tsv"], "other", choices=choices
    )
    assert other.judged == found.judged
    ubi = Import(tmp_path, [interop / "ubi/ubi_events.json"], "ubi", choices=choices)
    rows = [json.loads(line) for line in (interop / "ubi/ubi_events.json").read_text().splitlines()]
    clicked = {
        (row["user_query"], row["event_attributes"]["object"]["object_id"])
        for row in rows
        if row["action_name"] == "click"
    }
    judged = {(query, doc) for query, row in ubi.judged.items() for doc in row}
    assert {(q, d) for q, row in ubi.judged.items() for d, grade in row.items() if grade} == clicked & judged
    assert len(clicked & judged) > 5


def test_many_files_at_once(interop, tmp_path):
    ragas, spans = (
        interop / "ragas/evaluation_dataset.jsonl",
        interop / "openinference/langchain_retriever_spans.otlp.json",
    )
    found = Import(tmp_path, [interop / "clicks/click_log_sample.tsv", spans, ragas])
    assert len(found.report.refused) == 1
    assert "none of 30 pairs of query and document was shown 10 times" in found.report.refused[0]
    assert set(found.runs) == {"evaluation_dataset", "langchain_retriever_spans.otlp"}
    scores = weir.evaluate(found.qrels["test"], found.runs["langchain_retriever_spans.otlp"], ["RR"])
    assert max(scores.means().values()) > 0.4
