"""What is known and holds nothing to import: measures, logs of clicks, settings; refused by name with what to do."""

from __future__ import annotations

import re
from typing import Any

from weir.plugins.importing.contents import Contents
from weir.plugins.importing.formats.engines import sources
from weir.plugins.importing.readers import Detect, refuses

_MEASURES = "it holds values of measures; give the run and the judgments that they were computed from"


def _columns(*needed: str, without: tuple[str, ...] = ()) -> Detect:
    def detect(contents: Contents) -> str:
        known = set(needed) <= set(contents.columns) and not set(without) & set(contents.columns)
        return ", ".join(needed) if known else ""

    return detect


def _keys(*needed: str) -> Detect:
    def detect(contents: Contents) -> str:
        value = contents.rows[0].fields if len(contents.rows) == 1 else contents.value
        return ", ".join(needed) if isinstance(value, dict) and set(needed) <= set(value) else ""

    return detect


def _any_of(*detects: Detect) -> Detect:
    def detect(contents: Contents) -> str:
        return next((evidence for one in detects if (evidence := one(contents))), "")

    return detect


_NAMED = re.compile(
    r"(map|ap|ndcg|dcg|p|r|rr|mrr|recall|precision|success|bpref|rprec|set|num|err|rbp|judged|avg|max)\w*",
    re.I,
)


def _measure_lines(contents: Contents) -> str:
    """Lines of measure and value, query and measure and value, or run, query, measure and value."""
    if contents.shape != "lines":
        return ""
    if re.match(r"name,(.*,)?(map|ndcg|recip_rank|P_|AP|RR|nDCG)|#\s+Model\s", contents.text):
        return "a table of systems and measures"
    rows = [line.split("\t") for line in contents.text.split("\n") if line.strip()][:200]
    for column in (0, 1, 2):
        if all(len(row) == column + 2 for row in rows):
            names = [re.split(r"[@(.]", row[column])[0] for row in rows]
            known = all(_NAMED.fullmatch(name) or re.fullmatch("[A-Z_]+", name) for name in names)
            if known and all(re.fullmatch(r"-?[\d.]+(e-?\d+)?|nan", row[-1].strip()) for row in rows):
                return f"lines of a measure such as {rows[0][column][:20]} and its value"
    return ""


_REPORT = _any_of(_keys("stat_test", "metrics", "model_names"), _keys("ev_keys", "lines"))
refuses(
    "measures",
    "values of measures (ir_measures, PyTerrier, ranx, TIRA)",
    _any_of(
        _REPORT,
        _columns("measure", "value", without=("doc_id",)),
        _columns("metric", "value"),
        _columns("name", "map"),
        _columns("metric", "evaluation_id"),
        _measure_lines,
    ),
    _MEASURES,
)


def _mteb(contents: Contents) -> str:
    value = contents.value if isinstance(contents.value, dict) else {}
    if "mteb_model_meta" in value:
        return ""
    named = next((name for name in ("mteb_version", "mteb_dataset_name", "task_name") if name in value), "")
    if named:
        return named
    if {"revision", "n_parameters", "release_date"} <= set(value):
        return "model_meta.json"
    return "run_settings.jsonl" if {"task", "version", "encode_kwargs"} <= set(contents.columns) else ""


refuses("mteb-results", "results or settings of an MTEB run", _mteb, f"{_MEASURES} (MTEB: the predictions)")

_SEARCH_SETTINGS = _any_of(
    _keys("querySetId", "searchConfigurationList"),
    _keys("index", "query", "searchPipeline"),
    lambda contents: (
        "results of an experiment" if any("querySetId" in one for one in sources(contents.value)) else ""
    ),
    lambda contents: "a mapping" if _is_mapping(contents.value) else "",
)


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"properties"} and isinstance(value["properties"], dict)


refuses(
    "srw-settings",
    "settings of the Search Relevance Workbench",
    _SEARCH_SETTINGS,
    "give its query sets, judgments and evaluation results",
)


def _schema(contents: Contents) -> str:
    value = contents.value
    known = isinstance(value, dict) and ("$schema" in value or "$defs" in value)
    return "$schema or $defs" if known else ""


refuses("json-schema", "a JSON schema", _schema, "give files that it describes")
refuses(
    "conversations",
    "conversations of DeepEval",
    _columns("scenario", "turns"),
    "give goldens of single questions (input, expected_output, context)",
)
refuses(
    "trulens-feedback",
    "feedback results of TruLens",
    _any_of(_keys("calls", "feedback_definition_id"), _columns("expected_response", "expected_score")),
    "give its retrieval events; expected_response is an answer, and no document",
)
refuses(
    "nuggets",
    "nuggets, answers or preferences of TREC RAG and TIRA",
    _any_of(
        _columns("nuggets"),
        _columns("nugget_bank"),
        _columns("answer", "references", "topic_id"),
        _columns("run_id", "run_id2"),
        _columns("metadata", "responses"),
        _columns("strict_vital_score"),
    ),
    "give its qrels and runs; nuggets with documents are judgments: weir eval NUGGETS RUN -m NuggetRecall@10",
)
refuses(
    "rerank-response",
    "a response of a re-ranking API",
    _keys("results", "meta", "id"),
    "its indexes point into a request; give the ranking with identifiers",
)
refuses(
    "facts",
    "facts instead of documents (DIAL)",
    _columns("facts", "documents"),
    "give documents by identifier: --columns relevant=documents",
)
refuses(
    "qrel-diff",
    "documents whose relevance changed (FollowIR)",
    lambda contents: (
        "corpus-ids, and 'diff' in its name"
        if contents.says("diff", "qrel_diff") and "corpus-ids" in contents.columns
        else ""
    ),
    "the two judgments, -og and -changed, stand in qrels",
)
refuses(
    "ir-metadata",
    "a record of a run (ir_metadata)",
    _keys("implementation", "research goal"),
    "give the run beside it",
)
refuses(
    "ranking-meta",
    "what ColBERT writes beside a ranking",
    _keys("metadata", "provenance"),
    "give the ranking itself",
)


def _without_queries(contents: Contents) -> str:
    first = contents.text.partition("\n")[0] if contents.shape == "lines" else ""
    return "features without qid" if re.match(r"-?[\d.]+(\s+\d+:-?[\d.eE+-]+){3,}\s*$", first) else ""


refuses(
    "svm-features",
    "features without queries (LightGBM's format)",
    _without_queries,
    "write qid:QUERY behind each grade and # DOCUMENT at the end of each line",
)


def _group_sizes(contents: Contents) -> str:
    lines = contents.text.split("\n") if contents.shape == "lines" else []
    sizes = [line.strip() for line in lines if line.strip()]
    return "one whole number on each line" if sizes and all(one.isdigit() for one in sizes) else ""


refuses(
    "group-sizes", "sizes of groups", _group_sizes, "write qid:QUERY behind each grade of the features' file"
)


def _ubi_searches(contents: Contents) -> str:
    """Searches without what was shown and clicked."""
    rows: list[Any] = [row.fields for row in contents.rows]
    rows = [row for row in rows if isinstance(row, dict)]
    if any("action_name" in row and "query_id" in row for row in rows):
        return ""
    searches = sum({"query_id", "user_query", "client_id"} <= set(row) for row in rows)
    extras = [row.get("ext", row.get("params")) for row in rows]
    searches += sum(isinstance(one, dict) and "ubi" in one for one in extras)
    return f"{searches} searches" if searches else ""


refuses(
    "ubi-queries",
    "searches of User Behavior Insights, without what was shown and clicked",
    _ubi_searches,
    "give its events (ubi_events), which name the query too",
)
