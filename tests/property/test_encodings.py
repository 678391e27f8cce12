"""Every reader of foreign files takes the same encodings and packings, and refuses the same others in the same words."""

import gzip
import importlib
import io
import zipfile
from pathlib import Path

import pytest

import weir
from weir.errors import FormatError
from weir.files.intents import read_intents
from weir.files.journal_labels import is_journal
from weir.files.label_files import read_labels
from weir.files.parents import read_parents
from weir.files.pickles import is_pickle
from weir.files.query_files import read_groups
from weir.files.runs import read_qrels, read_run
from weir.plugins.labels.pools import open_sheet
from weir.systems.lexical.analyzer import read_stopwords

RUN = "q1 Q0 d1 1 2.5 t\nq1 Q0 dé 2 1.5 t\nq2 Q0 d3 1 1 t\n"
TABLE = "query_id,doc_id,score\nq1,d1,2\nq1,dé,1\nq2,d3,0\n"
NESTED = '{"q1": {"d1": 2.5,\n "dé": 1.5},\n "q2": {"d3": 1.0}}\n'
LINES = '{"query_id": "q1", "doc_id": "d1", "score": 2}\n{"query_id": "q1", "doc_id": "dé", "score": 1}\n'
DOCUMENTS = '{"_id": "d1", "text": "one"}\n{"_id": "dé", "text": "dé"}\n'


def imported(path: Path) -> object:
    weir.import_files(path, path.with_name("out"))
    return weir.load(path.with_name("out")).qrels.to_dict()


def collection(path: Path) -> object:
    folder = path.with_name("c")
    folder.mkdir()
    (folder / f"corpus{''.join(path.suffixes)}").write_bytes(path.read_bytes())
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}\n')
    (folder / "qrels.tsv").write_text("q1\t0\td1\t1\n")
    return {name: dict(document) for name, document in weir.load(folder).corpus.items()}


def sheet(path: Path) -> object:
    return [(line.query, line.doc, line.grade, line.text) for line in open_sheet(path)]


READERS = {
    "a run in TREC's format": ("r.trec", RUN, lambda path: read_run(path).to_dict()),
    "a run as CSV": ("r.csv", TABLE, lambda path: read_run(path).to_dict()),
    "a run as CSV with quotes": ("r.csv", TABLE.replace("d1", '"d""1"'), lambda path: read_run(path).to_dict()),
    "a run as TSV": ("r.tsv", TABLE.replace(",", "\t"), lambda path: read_run(path).to_dict()),
    "a run as JSON": ("r.json", NESTED, lambda path: read_run(path).to_dict()),
    "a run as JSON lines": ("r.jsonl", LINES, lambda path: read_run(path).to_dict()),
    "judgments in TREC's format": ("q.txt", "q1 0 d1 1\nq1 0 dé 2\n", lambda path: read_qrels(path).to_dict()),
    "judgments as BEIR has them": ("q.tsv", TABLE.replace(",", "\t"), lambda path: read_qrels(path).to_dict()),
    "judgments of intents": ("q.txt", "q1 1 d1 1\nq1 2 dé 2\n", lambda path: read_intents(path).numbered.to_dict()),
    "groups": ("g.tsv", "q1\tone\nq2\tdé\n", lambda path: list(read_groups(path).labels)),
    "parents": ("p.tsv", "d1#1\td1\ndé#1\tdé\n", read_parents),
    "labels": ("l.csv", TABLE.replace("score", "label"), lambda path: read_labels(path).to_dict()),
    "a sheet": ("s.tsv", "query-id\tcorpus-id\tgrade\tquery\ttitle\ttext\nq1\td1\t1\tone\t\tdé\n", sheet),
    "a sheet as CSV": ("s.csv", "query-id,corpus-id,grade,query,title,text\nq1,d1,1,one,,dé\n", sheet),
    "stop words": ("s.txt", "one\ndé\n", lambda path: sorted(read_stopwords(str(path)))),
    "an imported table": ("t.csv", TABLE.replace("score", "grade"), imported),
    "imported JSON lines": ("t.jsonl", LINES.replace("score", "grade"), imported),
    "documents as JSON lines": ("d.jsonl", DOCUMENTS, collection),
    "documents as TSV": ("d.tsv", "d1\tone\ndé\tdé\n", collection),
}  # fmt: skip
readers = pytest.mark.parametrize(("name", "text", "read"), READERS.values(), ids=list(READERS))


def zstd(data: bytes) -> bytes:
    return importlib.import_module("pyarrow").compress(data, "zstd", asbytes=True)


def halves(pack, data: bytes) -> bytes:
    return pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :])


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("it", data)
    return file.getvalue()


@readers
@pytest.mark.parametrize(
    ("suffix", "written"),
    [
        ("", lambda text: text.encode("utf-8-sig")),
        ("", lambda text: text.replace("\n", "\r\n").encode("utf-16")),
        ("", lambda text: b"\xfe\xff" + text.encode("utf-16-be")),
        ("", lambda text: text.encode("utf-32")),
        (".gz", lambda text: halves(gzip.compress, text.encode())),
        (".gz", lambda text: gzip.compress(text.encode("utf-16"))),
        (".zst", lambda text: halves(zstd, text.encode())),
    ],
    ids=["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "two members", "utf-16 in gzip", "two frames"],
)
def test_each_reader_takes_each_encoding_as_utf_8(tmp_path, name, text, read, suffix, written):
    (tmp_path / "plain").mkdir()
    plain, other = tmp_path / "plain" / name, tmp_path / f"{name}{suffix}"
    plain.write_text(text, encoding="utf-8")
    other.write_bytes(written(text))
    if suffix == ".zst" and read is collection:
        return  # folders of collections hold .gz alone
    if suffix and name.startswith("s."):
        return  # sheets and stop words lie unpacked
    assert read(other) == read(plain)


@readers
@pytest.mark.parametrize(
    ("suffix", "written", "said"),
    [
        ("", lambda text: text.encode("latin-1"), r"line \d: found bytes that are not UTF-8 \(0xe9\); expected text in UTF-8; save it again in UTF-8"),
        ("", lambda text: text.encode("utf-16-le"), "found text in UTF-16 without a byte order mark; expected text in UTF-8"),
        ("", lambda text: text.encode("utf-16")[:-1], "found damaged text in UTF-16"),
        ("", lambda text: zipped(text.encode()), "found a zip or an Excel workbook; expected each sheet saved as CSV, or one"),
        ("", lambda text: gzip.compress(text.encode()), "found gzip data; expected its name to end in .gz"),
        (".gz", lambda text: gzip.compress(text.encode())[:-9], "a damaged file "),
        (".gz", lambda text: gzip.compress(text.encode()) + b"xx", "a damaged file "),
    ],
    ids=["latin-1", "no mark", "damaged utf-16", "zip", "another name", "cut", "more behind it"],
)  # fmt: skip
def test_each_reader_refuses_what_it_cannot_read_in_the_same_words(
    tmp_path, name, text, read, suffix, written, said
):
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(written(text))
    if suffix and name.startswith("s."):
        return
    with pytest.raises(weir.WeirError, match=said) as refusal:
        read(path)
    assert isinstance(refusal.value, FormatError) or said in str(refusal.value)


def test_a_large_run_in_utf_16_is_read_by_the_general_reader(tmp_path, monkeypatch):
    monkeypatch.setattr("weir.files.json_files._LARGE_BYTES", (0, 0))
    (tmp_path / "r.json").write_bytes(NESTED.encode("utf-16"))
    assert read_run(tmp_path / "r.json", engine="numba").to_dict() == {
        "q1": {"d1": 2.5, "dé": 1.5},
        "q2": {"d3": 1.0},
    }


def test_bytes_of_a_later_block_are_named_by_their_line(tmp_path):
    rows = "".join(f"q{n:06d} Q0 d\u00e9 1 1 t\n" for n in range(60_000))
    (tmp_path / "r.trec").write_bytes(rows.encode() + b"q Q0 d\xe9 1 1 t\n")
    with pytest.raises(FormatError, match=r"line 60001: found bytes that are not UTF-8 \(0xe9\)"):
        read_run(tmp_path / "r.trec")


@pytest.mark.parametrize(
    "written", [zipped, gzip.compress, lambda _: b"\x93NUMPY" + bytes(200), lambda _: b"%PDF-1.7"]
)
def test_whether_a_file_is_a_pickle_or_a_journal_is_told_of_any_kind_of_file(tmp_path, written):
    path = tmp_path / "archive"
    path.write_bytes(written(b"text"))
    assert (is_pickle(path), is_journal(path)) == (False, False)
