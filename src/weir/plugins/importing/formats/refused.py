"""Formats without anything to import, such as measures, refused with advice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from weir.errors import BadValue
from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.engines import sources
from weir.plugins.importing.items import Choices, Item, table_at
from weir.plugins.importing.readers import Detect, any_of, has_columns, has_keys, reader, when

_MEASURES = "it holds values of measures; give the run and the judgments that they were computed from"
_MEASURE_NAME = re.compile(
    r"(map|ap|ndcg|dcg|p|r|rr|mrr|recall|precision|success|bpref|rprec|set|num|err|rbp|judged|avg|max)\w*",
    re.I,
)

_TREC_EVAL = re.compile(
    r"runid|num_(q|ret|rel|rel_ret|nonrel_judged_ret)|(gm_)?(map|bpref)|Rprec|recip_rank|11pt_avg|infAP|utility|set_\w+"
    r"|(P|recall|success|ndcg_cut|map_cut|ndcg_rel|Rprec_mult|relative_P|relstring|iprec_at_recall|rbp\w*)_[\d.]+|ndcg|Rndcg|binG|G",
)


def refuses(name: str, title: str, detect: Detect, instead: str) -> None:
    """Register a format that has nothing to import: its reader raises BadValue with `title` and the advice
    `instead`."""

    @reader(name, title, detect)
    def read_refused(contents: Contents, _: Choices) -> Iterator[Item]:
        raise BadValue(f"{contents.path}: {title}; {instead}")


def _measure_lines(contents: Contents) -> str:
    if contents.shape != "lines":
        return ""
    if re.match(r"name,(.*,)?(map|ndcg|recip_rank|P_|AP|RR|nDCG)|#\s+Model\s", contents.text):
        return "a table of systems and measures"
    rows = [line.split("\t") for line in contents.text.split("\n") if line.strip()][:200]
    if rows and all(len(row) == 3 and _TREC_EVAL.fullmatch(row[0].strip()) for row in rows):
        return f"a measure of trec_eval such as {rows[0][0].strip()}, a query and a value on each line"
    for column in (0, 1, 2):
        if all(len(row) == column + 2 for row in rows):
            names = [re.split(r"[@(.]", row[column])[0] for row in rows]
            are_measures = all(
                _MEASURE_NAME.fullmatch(name) or re.fullmatch("[A-Z_]+", name) for name in names
            )
            if are_measures and all(re.fullmatch(r"-?[\d.]+(e-?\d+)?|nan", row[-1].strip()) for row in rows):
                return f"lines of a measure such as {rows[0][column][:20]} and its value"
    return ""


refuses(
    "measures",
    "values of measures (ir_measures, PyTerrier, ranx, TIRA)",
    any_of(
        has_keys("stat_test", "metrics", "model_names"),
        has_keys("ev_keys", "lines"),
        has_columns("measure", "value", without=("doc_id",)),
        has_columns("metric", "value"),
        has_columns("name", "map"),
        has_columns("metric", "evaluation_id"),
        _measure_lines,
    ),
    _MEASURES,
)


def _mteb(contents: Contents) -> str:
    value = table_at(contents.value)
    if "mteb_model_meta" in value:
        return ""
    if name := next((n for n in ("mteb_version", "mteb_dataset_name", "task_name") if n in value), ""):
        return name
    if {"revision", "n_parameters", "release_date"} <= set(value):
        return "model_meta.json"
    return "run_settings.jsonl" if {"task", "version", "encode_kwargs"} <= set(contents.columns) else ""


refuses(
    "mteb-results",
    "results or settings of an MTEB run",
    _mteb,
    f"{_MEASURES} (MTEB: the predictions); weir results RESULTS --published FILE lays its means beside yours",
)
refuses(
    "srw-settings",
    "settings of the Search Relevance Workbench",
    any_of(
        has_keys("querySetId", "searchConfigurationList"),
        has_keys("index", "query", "searchPipeline"),
        when(
            "results of an experiment",
            lambda contents: any("querySetId" in one for one in sources(contents.value)),
        ),
        when(
            "a mapping",
            lambda contents: (
                set(table_at(contents.value)) == {"properties"}
                and isinstance(contents.value["properties"], dict)
            ),
        ),
    ),
    "give its query sets, judgments and evaluation results",
)
refuses(
    "json-schema",
    "a JSON schema",
    when("$schema or $defs", lambda contents: {"$schema", "$defs"} & set(table_at(contents.value))),
    "give files that it describes",
)
refuses(
    "conversations",
    "conversations of DeepEval",
    has_columns("scenario", "turns"),
    "give goldens of single questions (input, expected_output, context)",
)
refuses(
    "trulens-feedback",
    "feedback results of TruLens",
    any_of(has_keys("calls", "feedback_definition_id"), has_columns("expected_response", "expected_score")),
    "give its retrieval events; expected_response is an answer, and no document",
)
refuses(
    "trulens-records",
    "records of TruLens (get_records_and_feedback), without the documents retrieved",
    has_columns("record_id", "app_id", "input", "output"),
    "give its events, rows with record_attributes; its questions alone are read with `columns='query=input'`",
)
refuses(
    "nuggets",
    "nuggets, answers or preferences of TREC RAG and TIRA",
    any_of(
        has_columns("nuggets"),
        has_columns("nugget_bank"),
        has_columns("answer", "references", "topic_id"),
        has_columns("run_id", "run_id2"),
        has_columns("metadata", "responses"),
        has_columns("strict_vital_score"),
    ),
    "give its qrels and runs; nuggets with documents are judgments: weir eval NUGGETS RUN -m NuggetRecall@10",
)
_ANSWERS: dict[str, list[tuple[str, ...]]] = {
    "Solr": [("responseHeader",), ("response", "docs")],
    "Milvus": [("code",), ("cost",), ("data",)],
    "Weaviate": [("data", "Get")],
    "Azure AI Search": [("@odata.context",), ("value",)],
    "Typesense": [("request_params",), ("hits",), ("found",)],
}
"""{engine: paths of fields that its answers have}."""


def _answers_of(engine: str) -> Detect:
    paths = _ANSWERS[engine]

    def found(contents: Contents) -> bool:
        whole = table_at(contents.value)
        answers = [whole, *whole.values(), contents.rows[0].fields if contents.rows else {}]
        return any(isinstance(one, dict) and all(_has(one, path) for path in paths) for one in answers)

    return when(".".join(paths[-1]), found)


def _has(table: dict[str, Any], path: tuple[str, ...]) -> bool:
    *above, name = path
    return name in table_at(table, *above)


for _engine in _ANSWERS:
    refuses(
        f"{_engine.lower().replace(' ', '-')}-answer",
        f"an answer of {_engine}, which says neither the query's identifier nor which field is the document's",
        _answers_of(_engine),
        "write a table of query_id, doc_id and score, a row for each document returned (distances negated)",
    )
refuses(
    "rerank-response",
    "a response of a re-ranking API",
    has_keys("results", "meta", "id"),
    "its indexes point into a request; give the ranking with identifiers",
)
refuses(
    "facts",
    "facts instead of documents (DIAL)",
    has_columns("facts", "documents"),
    "give documents by identifier: `columns={'relevant': 'documents'}`",
)
refuses(
    "qrel-diff",
    "documents whose relevance changed (FollowIR)",
    when(
        "corpus-ids, and 'diff' in its name",
        lambda contents: contents.says("diff", "qrel_diff") and "corpus-ids" in contents.columns,
    ),
    "the two judgments, -og and -changed, stand in qrels",
)
refuses(
    "ir-metadata",
    "a record of a run (ir_metadata)",
    has_keys("implementation", "research goal"),
    "give the run beside it",
)
refuses(
    "ranking-meta",
    "what ColBERT writes beside a ranking",
    has_keys("metadata", "provenance"),
    "give the ranking itself",
)
refuses(
    "svm-features",
    "features without queries (LightGBM's format)",
    when(
        "features without qid",
        lambda contents: (
            contents.shape == "lines"
            and re.match(r"-?[\d.]+(\s+\d+:-?[\d.eE+-]+){3,}\s*$", contents.text.partition("\n")[0])
        ),
    ),
    "write qid:QUERY behind each grade and # DOCUMENT at the end of each line",
)


def _group_sizes(contents: Contents) -> str:
    lines = contents.text.split("\n") if contents.shape == "lines" else []
    sizes = [line.strip() for line in lines if line.strip()]
    return "one whole number on each line" if sizes and all(map(str.isdigit, sizes)) else ""


refuses(
    "group-sizes", "sizes of groups", _group_sizes, "write qid:QUERY behind each grade of the features' file"
)


def _ubi_searches(contents: Contents) -> str:
    rows = [row.fields for row in contents.rows]
    if any("action_name" in row and "query_id" in row for row in rows):
        return ""
    searches = sum({"query_id", "user_query", "client_id"} <= set(row) for row in rows)
    searches += sum("ubi" in table_at(row.get("ext", row.get("params"))) for row in rows)
    return f"{searches} searches" if searches else ""


refuses(
    "ubi-queries",
    "searches of User Behavior Insights, without what was shown and clicked",
    _ubi_searches,
    "give its events (ubi_events), which name the query too",
)
