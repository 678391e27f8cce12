from pathlib import Path

Path("qrels.csv").write_text(
    "query_id,doc_id,relevance,origin\nq1,a,1,human\nq1,b,0.5,llm:judge\nq2,a,0.2,llm:judge\n"
)
Path("run.trec").write_text("q1 Q0 b 1 2.0 x\nq1 Q0 a 2 1.0 x\nq2 Q0 a 1 1.0 x\n")
