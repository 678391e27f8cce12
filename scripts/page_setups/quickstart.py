from pathlib import Path

Path("qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1\nq3 0 d7 1\n")
Path("run.trec").write_text("q1 Q0 d1 1 2.5 run\nq1 Q0 d2 2 1.5 run\nq2 Q0 d1 1 1.0 run\n")
