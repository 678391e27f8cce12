"""Every stored run, judgment and topic file: both engines agree, and each odd one behaves as its notes say."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from weir.core.judged import Judged
from weir.errors import BadRanking, FormatError
from weir.files.runs import join_run_file, read_qrels, read_run, read_run_against
from weir.files.write import write_run

pytestmark = pytest.mark.real

RUNS = (
    "trec-dl/runs/*/*.trec.gz",
    "trec-dl/runs-official-dl19/*.trec.gz",
    "lucene-golden/*.trec.gz",
    "vaswani/runs/*.gz",
    "trec_eval-tests/*/results*",
    "trec_eval-tests/v10.0/prefs.results.test",
    "eval-fixtures/anserini/*",
    "eval-fixtures/ir_measures/*.run",
    "eval-fixtures/ranx/results.test",
    "eval-fixtures/pyserini/simple_*",
)
NOT_RUNS = {"simple_trec_run_unjudged_keep.txt", "simple_trec_run_unjudged_remove.txt"}  # trec_eval's output
SEVERAL_JUDGES = {"qrels.123", "qrels.comments.123"}  # a grade of each, for trec_eval -R qrels_jg
QRELS = (
    "trec-dl/qrels/*.txt",
    "trec-dl/judged-pool/*/qrels/*.tsv",
    "trec_eval-tests/*/qrels*",
    "eval-fixtures/*/*qrels*",
    "beir-topics-qrels/*/qrels/*.tsv",
    "*/qrels/*.tsv",
    "small-beir-layout/*/qrels/*.tsv",
    "llm-judgments/llmjudge/*dev_qrel*.txt",
    "llm-judgments/llmjudge/*_idx.txt",
)


def files(shared: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in (shared / "data").glob(pattern)})


def by_hand(path: Path) -> dict[str, list[tuple[str, float]]]:
    """The rankings of a well-formed file, with Python's own split, float and sort."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    found: dict[str, list[tuple[str, float]]] = {}
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            query, _, doc, _, score = line.split()[:5]
            found.setdefault(query, []).append((doc, float(score)))
    return {q: sorted(r, key=lambda p: (p[1], p[0].encode()), reverse=True) for q, r in found.items()}


def test_every_run_is_read_alike_by_both_engines(shared: Path) -> None:
    read = 0
    for path in files(shared, RUNS):
        if path.name in NOT_RUNS:
            continue
        runs = [read_run(path, engine=engine) for engine in ("numpy", "numba")]
        assert runs[0].queries.tolist() == runs[1].queries.tolist(), path
        assert runs[0].docs.tolist() == runs[1].docs.tolist(), path
        for name in ("ptr", "doc", "score"):
            a, b = getattr(runs[0], name), getattr(runs[1], name)
            assert a.dtype == b.dtype
            assert np.array_equal(a, b), path
        expected = by_hand(path)
        assert {q: list(r.items()) for q, r in runs[0].to_dict().items()} == expected, path
        read += 1
    assert read > 70


def test_what_is_no_run_is_refused(shared: Path) -> None:
    for name in sorted(NOT_RUNS):
        with pytest.raises(FormatError, match="line 1: found 3 columns"):
            read_run(shared / "data/eval-fixtures/pyserini" / name)
    with pytest.raises(FormatError, match="line 1: found 4 columns"):
        read_run(shared / "data/trec-dl/qrels/qrels.dl19-passage.txt")


def test_runs_survive_writing_and_shuffling(shared: Path, tmp_path: Path) -> None:
    for name in ("runs/dl19/REP_LLAMA.trec.gz", "runs-official-dl19/ICT-CKNRM_B50.trec.gz"):
        path = shared / "data/trec-dl" / name
        run = read_run(path)
        write_run(run, tmp_path / "copy.trec")
        assert read_run(tmp_path / "copy.trec").to_dict() == run.to_dict()
        lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
        np.random.default_rng(3).shuffle(lines)
        (tmp_path / "shuffled").write_bytes(b"".join(lines))
        for engine in ("numpy", "numba"):
            shuffled, ignored = read_run_against(tmp_path / "shuffled", run.queries, run.docs, engine=engine)
            assert ignored == 0
            assert np.array_equal(shuffled.doc, run.doc)
            assert np.array_equal(shuffled.score, run.score)


def test_every_judgment_file_is_read(shared: Path) -> None:
    read = 0
    for path in files(shared, QRELS):
        if path.name in SEVERAL_JUDGES or path.suffix == ".md":
            continue
        qrels = read_qrels(path)
        assert (len(qrels) > 0) == (path.parts[-3] != "pg"), path  # one collection has no judgments
        read += 1
    assert read > 60


def test_judgments_are_what_their_notes_say(shared: Path) -> None:
    dl19 = read_qrels(shared / "data/trec-dl/qrels/qrels.dl19-passage.txt")
    assert (len(dl19), len(dl19.doc)) == (43, 9260)
    assert np.bincount(dl19.grade).tolist() == [5158, 1601, 1804, 697]
    plain = read_qrels(shared / "data/trec_eval-tests/v10.0/qrels.test")
    remarks = read_qrels(shared / "data/trec_eval-tests/v10.0/qrels.test.with-comments")
    assert len(plain) == 3
    assert set(plain.to_dict()) == set(remarks.to_dict())
    for name in sorted(SEVERAL_JUDGES):
        with pytest.raises(FormatError, match=r"found grade 3 for a pair that line \d gives grade 0"):
            read_qrels(shared / "data/trec_eval-tests/v10.0" / name)
    with pytest.raises(FormatError, match="found 'q49 0 p3659'; expected 4 columns"):
        read_qrels(shared / "data/llm-judgments/llmjudge/llm4eval_test_qrel_2024.txt")


def test_files_judge_as_runs_do(shared: Path) -> None:
    for year in ("dl19", "dl20"):
        qrels = read_qrels(shared / f"data/trec-dl/qrels/qrels.{year}-passage.txt")
        for path in files(shared, (f"trec-dl/runs/{year}/*.trec.gz",)):
            want = Judged.of(read_run(path), qrels)
            got = join_run_file(path, qrels)
            for name in ("retrieved", "tied", "query", "rank", "grade", "ideal"):
                assert np.array_equal(getattr(got, name), getattr(want, name)), (path, name)


def test_a_joined_file_is_refused_with_its_line(shared: Path, tmp_path: Path) -> None:
    """Two runs in one file rank documents twice."""
    path = shared / "data/eval-fixtures/anserini/run1"
    (tmp_path / "both").write_text(path.read_text() + "\n" + path.read_text())
    with pytest.raises(BadRanking, match="line 7: query 'query1' ranks document 'doc1' twice"):
        read_run(tmp_path / "both")
