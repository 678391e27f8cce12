"""Writes tests/tool_files: what other tools write for the same few queries, each by the tool itself.

    python scripts/make_tool_files.py [TOOL ...]

Run it in an environment that has the tools (ranx, ir-measures, pandas, pyarrow, opentelemetry-sdk, ragas, deepeval,
llama-index-core 0.12, python-terrier); one that is not installed keeps the files that are there. versions.json says
what made them.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HOME = Path(__file__).resolve().parents[1] / "tests" / "tool_files"
TEXTS = {"q1": "what measures flow", "q2": "who keeps the weir"}
DOCUMENTS = {"d1": "a weir measures flow", "d2": "the keeper of the weir", "d3": "a dam"}
JUDGED = {"q1": {"d1": 2, "d3": 0}, "q2": {"d2": 1}}
RANKED = {"q1": {"d1": 3.5, "d3": 1.25}, "q2": {"d3": 2.5, "d2": 0.5}}


def ranx(to: Path) -> None:
    from ranx import Qrels, Run

    Qrels(JUDGED).save(str(to / "qrels.json"))
    Qrels(JUDGED).save(str(to / "qrels.trec"), kind="trec")
    Run(RANKED, name="bm25").save(str(to / "run.json"))
    Run(RANKED, name="bm25").save(str(to / "run.trec"), kind="trec")
    Run(RANKED, name="bm25").save(str(to / "run.parquet"))


def ir_measures(to: Path) -> None:
    import ir_measures as tool

    rows = tool.iter_calc([tool.nDCG @ 10], JUDGED, RANKED)
    text = "".join(f"{row.query_id}\t{row.measure}\t{row.value:.4f}\n" for row in rows)
    (to / "per_query.txt").write_text(text)


def pandas(to: Path) -> None:
    import pandas as tool

    rows = [(q, TEXTS[q], d, g) for q, row in JUDGED.items() for d, g in row.items()]
    frame = tool.DataFrame(rows, columns=["qid", "query", "docno", "label"])
    frame.to_csv(to / "qrels.csv")  # with the index, which has no name
    frame.to_json(to / "qrels.jsonl", orient="records", lines=True)
    frame.to_json(to / "qrels.records.json", orient="records")
    frame.to_parquet(to / "qrels.parquet")
    rows = [(q, d, n, s) for q, row in RANKED.items() for n, (d, s) in enumerate(row.items())]
    frame = tool.DataFrame(rows, columns=["qid", "docno", "rank", "score"])
    frame.to_csv(to / "run.tsv", sep="\t", index=False)


def pyterrier(to: Path) -> None:
    import pandas
    import pyterrier as tool

    rows = [(q, d, n, s) for q, row in RANKED.items() for n, (d, s) in enumerate(row.items())]
    frame = pandas.DataFrame(rows, columns=["qid", "docno", "rank", "score"])
    tool.io.write_results(frame, str(to / "run.trec"), format="trec", run_name="bm25")
    tool.io.write_results(frame, str(to / "run.minimal"), format="minimal")


def opentelemetry(to: Path) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    for convention in ("openinference", "genai"):
        kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(kept))
        for query, row in RANKED.items():
            with provider.get_tracer("made").start_as_current_span("retrieve") as span:
                for name, value in _attributes(convention, TEXTS[query], row).items():
                    span.set_attribute(name, value)
        lines = [span.to_json(indent=None) for span in kept.get_finished_spans()]
        (to / f"{convention}.jsonl").write_text("\n".join(lines) + "\n")


def _attributes(convention: str, query: str, row: dict[str, float]) -> dict[str, str | float]:
    if convention == "genai":
        listed = json.dumps([{"id": d, "score": s} for d, s in row.items()])
        return {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.query.text": query,
            "gen_ai.retrieval.documents": listed,
        }
    found: dict[str, str | float] = {"openinference.span.kind": "RETRIEVER", "input.value": query}
    for n, (document, score) in enumerate(row.items()):
        found[f"retrieval.documents.{n}.document.id"] = document
        found[f"retrieval.documents.{n}.document.content"] = DOCUMENTS[document]
        found[f"retrieval.documents.{n}.document.score"] = score
    return found


def ragas(to: Path) -> None:
    from ragas import EvaluationDataset, SingleTurnSample

    samples = [
        SingleTurnSample(
            user_input=TEXTS[query],
            retrieved_contexts=[DOCUMENTS[d] for d in row],
            retrieved_context_ids=list(row),
            reference_contexts=[DOCUMENTS[d] for d, g in JUDGED[query].items() if g > 0],
            reference_context_ids=[d for d, g in JUDGED[query].items() if g > 0],
            response="an answer",
            reference="the answer",
        )
        for query, row in RANKED.items()
    ]
    EvaluationDataset(samples=samples).to_jsonl(str(to / "evaluation.jsonl"))
    EvaluationDataset(samples=samples).to_csv(str(to / "evaluation.csv"))


def deepeval(to: Path) -> None:
    from deepeval.dataset import EvaluationDataset, Golden

    goldens = [
        Golden(
            input=TEXTS[query],
            expected_output="the answer",
            context=[DOCUMENTS[d] for d, g in JUDGED[query].items() if g > 0],
            retrieval_context=[DOCUMENTS[d] for d in row],
        )
        for query, row in RANKED.items()
    ]
    for kind in ("json", "csv"):
        EvaluationDataset(goldens=goldens).save_as(file_type=kind, directory=str(to), file_name="goldens")


def llama_index(to: Path) -> None:
    from llama_index.core.llama_dataset.legacy.embedding import EmbeddingQAFinetuneDataset

    relevant = {query: [d for d, g in row.items() if g > 0] for query, row in JUDGED.items()}
    made = EmbeddingQAFinetuneDataset(queries=TEXTS, corpus=DOCUMENTS, relevant_docs=relevant)
    made.save_json(str(to / "pairs.json"))


TOOLS = {
    "ranx": (ranx, "ranx"),
    "ir_measures": (ir_measures, "ir-measures"),
    "pandas": (pandas, "pandas"),
    "pyterrier": (pyterrier, "python-terrier"),
    "opentelemetry": (opentelemetry, "opentelemetry-sdk"),
    "ragas": (ragas, "ragas"),
    "deepeval": (deepeval, "deepeval"),
    "llama_index": (llama_index, "llama-index-core"),
}


def main(names: list[str]) -> None:
    made = HOME / "versions.json"
    versions = json.loads(made.read_text()) if made.exists() else {}
    for name in names or TOOLS:
        write, package = TOOLS[name]
        try:
            versions[name] = f"{package} {version(package)}"
        except PackageNotFoundError:
            print(f"{name}: not installed, its files stay as they are")
            continue
        (HOME / name).mkdir(parents=True, exist_ok=True)
        write(HOME / name)
        print(f"{name}: {', '.join(sorted(path.name for path in (HOME / name).iterdir()))}")
    made.write_text(json.dumps(versions, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
