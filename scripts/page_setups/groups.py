from pathlib import Path

forms = [(q, form) for q in range(8) for form in ("plain", "typo")]
Path("qrels.tsv").write_text("".join(f"{q}-{form}\tdoc{q}\t1\n" for q, form in forms))
lines = [f"{q}-typo Q0 other 1 9 mine\n" for q in (1, 3, 5, 7)]
lines += [f"{q}-{form} Q0 doc{q} 2 8 mine\n" for q, form in forms]
Path("run.trec").write_text("".join(lines))
