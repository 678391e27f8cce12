"""Files beyond each bound, for docs/security.md."""

import gzip
import os
import pathlib
import zipfile


def sparse(name: str, size: int, begin: bytes = b"") -> None:
    """A file of so many bytes that takes no room."""
    with pathlib.Path(name).open("wb") as file:
        file.write(begin)
        file.truncate(size)


pathlib.Path("qrels.txt").write_text("q1 0 d1 1\n")
pathlib.Path("run.txt").write_text("q1 Q0 d1 1 2.5 x\n")
pathlib.Path("long.txt").write_text("q1 Q0 " + "d" * 5000 + " 1 2.5 x\n")
pathlib.Path("line.txt").write_text("q1 Q0 d1 1 2.5 " + "x" * 2_000_000 + "\n")
with gzip.open("bomb.json.gz", "wb") as file:
    for _ in range(150):
        file.write(b" " * (1 << 20))
sparse("zeros.txt", 1 << 30)
pathlib.Path("deep.json").write_text("[" * 100_000)
pathlib.Path("digits.txt").write_text("q1 0 d1 99999999999999999999\n")
pathlib.Path("corpus").mkdir()
pathlib.Path("corpus/corpus.jsonl").write_text('{"_id": "d1", "text": "' + "x" * (65 << 20) + '"}\n')
sparse("set.pkl", (1 << 26) + 8, b"\x80\x04")
sparse("golden.csv", (1 << 30) + 8, b"question,answer\n")
with zipfile.ZipFile("many.zip", "w") as archive:
    for number in range(10_001):
        archive.writestr(f"{number}", "")
sparse("large.json", 200 << 20, b'{"q1"')
pathlib.Path("=cmd.trec").write_text("q1 Q0 d1 1 2.5 x\n")
