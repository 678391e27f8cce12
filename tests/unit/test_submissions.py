"""Submissions: a good pack verifies elsewhere; whatever is changed in it is named, also by who writes a new manifest."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.cli.main import main
from weir.core.scores import Row
from weir.errors import BadValue, WeirError
from weir.experiment.stages import Record, read_record, write_record
from weir.files.integrity import Checksum, write_sealed
from weir.plugins.report.paper import trained_on
from weir.plugins.submissions.site import _boards, rank_ranges

SYSTEMS = ("bm25", "rrf(bm25, rm3)")


@pytest.fixture(scope="module")
def mine(tmp_path_factory) -> Path:
    """A collection of one's own, in BEIR's layout."""
    folder = tmp_path_factory.mktemp("collection") / "mine"
    (folder / "qrels").mkdir(parents=True)
    words = ["weir", "river", "dam", "flow", "water", "gauge", "bridge", "mill", "stream", "lake"]
    documents = [{"_id": f"d{n}", "text": " ".join(words[n % 7 : n % 7 + 3])} for n in range(20)]
    queries = [{"_id": f"q{n}", "text": words[n]} for n in range(10)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(f"q{n}\td{(n + m) % 20}\t1\n" for n in range(10) for m in (0, 7))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    return folder


@pytest.fixture(scope="module")
def packed(mine, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("packed")
    weir.benchmark(["brook-facts", str(mine)], SYSTEMS, ["nDCG@10", "RR"], out=place / "results")
    weir.pack_results(place / "results", place / "mine.weir.zip", note="by nobody")
    return place / "mine.weir.zip"


def unpack(packed: Path, to: Path) -> Path:
    shutil.unpack_archive(packed, to, "zip")
    return to


def sealed(folder: Path, out: Path) -> Path:
    """A pack of these files with a manifest that is right, as somebody who knows the format writes it."""
    manifest = json.loads((folder / "manifest.json").read_text())
    files = {
        p.relative_to(folder).as_posix(): p
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != "manifest.json"
    }
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    manifest["files"] = {
        name: {"sha256": h, "bytes": files[name].stat().st_size} for name, h in hashes.items()
    }
    manifest["content"] = hashlib.sha256(
        "".join(f"{h}  {n}\n" for n, h in sorted(hashes.items())).encode()
    ).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with zipfile.ZipFile(out, "w") as archive:
        for path in (folder / "manifest.json", *files.values()):
            archive.write(path, path.relative_to(folder))
    return out


def test_a_good_pack_verifies_where_the_collection_lies_elsewhere(packed, mine, tmp_path, capsys):
    assert weir.verify_pack(packed)
    moved = shutil.copytree(mine, tmp_path / "elsewhere")
    hidden = mine.rename(mine.parent / "hidden")
    try:
        found = weir.verify_pack(packed)
        assert (found.sound, bool(found)) == (True, False)
        assert all(one.startswith("mine/") for one in found.unchecked)
        assert main(["submit", "verify", "-q", str(packed)]) == 3
        assert weir.verify_pack(packed, places={"mine": moved})
        assert main(["submit", "verify", "-q", str(packed), "--collection", f"mine={moved}"]) == 0
        assert "verified: 4 cells" in capsys.readouterr().out
    finally:
        hidden.rename(mine)


def test_stages_in_another_folder_are_not_packed(mine, tmp_path, capsys):
    run = ["run", "-q", "-d", str(mine), "-s", "bm25", "-m", "RR"]
    assert main([*run, "-o", str(tmp_path / "first")]) == 0
    assert main([*run, "-o", str(tmp_path / "second"), "--stages", str(tmp_path / "first")]) == 0
    weir.pack_results(tmp_path / "second", tmp_path / "second.zip")
    assert weir.verify_pack(tmp_path / "second.zip")
    capsys.readouterr()
    assert main(["results", str(tmp_path / "second"), "--provenance"]) == 0
    assert "index  ../../first/mine/indexes/bm25-" in capsys.readouterr().out


def test_a_pack_and_its_verification_name_and_count_the_result_of_each_split(mine, tmp_path):
    copy = shutil.copytree(mine, tmp_path / "mine")
    (copy / "qrels" / "dev.tsv").write_text("q0\t0\td0\t1\n")
    for split in ("dev", "test"):
        weir.benchmark([f"{copy}:{split}"], ["bm25"], ["RR"], out=tmp_path / "results")
    pack = weir.pack_results(tmp_path / "results", tmp_path / "mine.weir.zip")
    verified = weir.verify_pack(tmp_path / "mine.weir.zip")
    assert verified.cells == pack.cells == (("mine:dev", "bm25"), ("mine:test", "bm25"))
    assert "verified: 2 cells" in repr(verified)


def test_the_same_folder_gives_the_same_bytes_without_texts_or_judgments(packed, tmp_path):
    weir.pack_results(packed.parent / "results", tmp_path / "again.zip", note="by nobody")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
    assert {Path(name).suffix for name in names} == {".json", ".jsonl", ".trec"}
    assert all(name.endswith("/stage.json") for name in names if "/indexes/" in name)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("score edited", "not what its scores give|is not what"),
        ("score and mean edited", "RR|nDCG@10"),
        ("run cut", "run.trec"),
        ("run cut and recorded", "score|rankings"),
        ("other judgments", "judgments of .* are not those"),
        ("other collection", "documents of .* are not those"),
        ("provenance", "folder is that of another stage|name|declared"),
        ("cell removed", "manifest names bm25 on mine, which no whole record holds"),
    ],
)
def test_what_is_changed_is_refused_with_the_reason(change, reason, packed, mine, tmp_path, capsys):
    folder = unpack(packed, tmp_path / "unpacked")
    cell = next(
        path for path in sorted((folder / "results" / "mine").iterdir()) if path.name.startswith("bm25-")
    )
    [values], [scores] = cell.glob("scores-*.jsonl"), cell.glob("scores-*.json")
    places = {}
    if change.startswith("score"):
        lines = [json.loads(line) for line in values.read_text().splitlines()]
        for line in lines:
            for name in list(line):
                if isinstance(line[name], float) and line[name] < 1:
                    line[name] = 1.0
        values.write_text("".join(json.dumps(line) + "\n" for line in lines))
        record = json.loads(scores.read_text())
        if change == "score and mean edited":
            rewritten = read_record(scores)
            facts = {
                **rewritten.facts,
                "rows": [row | {"mean": 1.0, "low": 1.0, "high": 1.0} for row in record["facts"]["rows"]],
            }
            resealed(scores, cell, facts)
        else:
            resealed(scores, cell, None)
    elif change.startswith("run cut"):
        lines = (cell / "run.trec").read_text().splitlines(keepends=True)
        (cell / "run.trec").write_text("".join(lines[: len(lines) // 2]))
        if change == "run cut and recorded":
            resealed(cell / "stage.json", cell, None)
    elif change in ("other judgments", "other collection"):
        other = places["mine"] = shutil.copytree(mine, tmp_path / "other")
        name = "qrels/test.tsv" if change == "other judgments" else "corpus.jsonl"
        text = (other / name).read_text()
        (other / name).write_text(
            text.replace("d7\t1", "d8\t1") if "qrels" in name else text.replace("weir", "mill")
        )
    elif change == "provenance":
        record = json.loads((cell / "stage.json").read_text())
        record["declared"]["system"]["k1"] = 1.2
        (cell / "stage.json").write_text(json.dumps(record))
        resealed(cell / "stage.json", cell, None, loose=True)
    else:
        shutil.rmtree(cell)
    found = weir.verify_pack(sealed(folder, tmp_path / "changed.zip"), places=places)
    assert not found.sound, found
    assert re.search(reason, "\n".join(found.problems)), found.problems
    assert (
        main(
            [
                "submit",
                "verify",
                "-q",
                str(tmp_path / "changed.zip"),
                *(f"--collection=mine={p}" for p in places.values()),
            ]
        )
        == 1
    )
    assert "refused" in capsys.readouterr().out


def resealed(path: Path, folder: Path, facts: object, loose: bool = False) -> None:
    """Write a record anew over the files as they are now, with a seal that is right."""

    raw = json.loads(path.read_text())
    raw.pop("check", None)
    if loose:
        write_sealed(path, raw)
        return
    try:
        record = read_record(path)
    except WeirError:
        record = Record.of(raw)
    files = {name: Checksum.of(folder / name) for name in record.files}
    write_record(path, replace(record, files=files, facts=record.facts if facts is None else facts))


def test_without_a_new_manifest_the_file_is_named(packed, tmp_path):
    folder = unpack(packed, tmp_path / "unpacked")
    run = next(folder.rglob("run.trec"))
    run.write_text(run.read_text().replace("Q0", "q0", 1))
    (folder / "results" / "more.txt").write_text("more")
    with zipfile.ZipFile(tmp_path / "changed.zip", "w") as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(path, path.relative_to(folder))
    assert set(weir.verify_pack(tmp_path / "changed.zip").problems) == {
        "results/more.txt is not in the manifest",
        f"{run.relative_to(folder).as_posix()} is not what the manifest says",
    }


@pytest.mark.parametrize("kind", ["no zip", "no manifest", "outside", "another format", "none"])
def test_what_is_no_pack_is_one_line(kind, packed, tmp_path, capsys):
    file = tmp_path / "bad.zip"
    if kind == "no zip":
        file.write_bytes(b"PK nothing")
    elif kind != "none":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(
                "../manifest.json"
                if kind == "outside"
                else "manifest.json"
                if kind == "another format"
                else "a/b.txt",
                '{"weir submission": 9}',
            )
            archive.writestr("results/x/y/run.trec", "")
    assert main(["submit", "verify", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@given(st.integers(0, 10**9), st.integers(1, 255))
@settings(max_examples=25)
def test_a_changed_byte_is_never_verified(packed, place, change):
    data = bytearray(packed.read_bytes())
    data[place % len(data)] ^= change
    file = packed.parent / "changed.zip"
    file.write_bytes(data)
    try:
        with zipfile.ZipFile(packed) as good, zipfile.ZipFile(file) as bad:
            same = {n: good.read(n) for n in good.namelist()} == {n: bad.read(n) for n in bad.namelist()}
    except (
        zipfile.BadZipFile,
        OSError,
        ValueError,
        KeyError,
        EOFError,
        zlib.error,
        NotImplementedError,
        RuntimeError,
    ):
        same = False
    try:
        verified = bool(weir.verify_pack(file))
    except WeirError:
        verified = False
    assert verified <= same


@pytest.fixture(scope="module")
def site(packed, mine, tmp_path_factory):
    """A leaderboard of a good pack, a pack of one system on one collection, and a bad one."""
    place = tmp_path_factory.mktemp("site")
    packs = place / "packs"
    packs.mkdir()
    shutil.copy(packed, packs / "first.weir.zip")
    weir.benchmark("brook-facts", ["rm3"], ["nDCG@10"], out=place / "more")
    weir.pack_results(place / "more", packs / "second.weir.zip")
    folder = unpack(packed, place / "unpacked")
    next(folder.rglob("run.trec")).unlink()
    sealed(folder, packs / "bad.weir.zip")
    return weir.leaderboard(packs, place / "site", places={"mine": mine})


def test_a_leaderboard_ranks_by_verdicts_and_names_what_it_refuses(site):
    assert [name for name, _ in site.refused] == ["bad.weir.zip"]
    everything = site.boards[0]
    assert everything.filter == "all collections"
    assert all(b.filter != "training: zero-shot" for b in site.boards)  # no system here holds a model
    by_name = {one.system: one for one in everything.places}
    partial = by_name["rm3 (second)"]
    assert (partial.there, partial.mean) == (1, None)  # no average over what is there
    assert all(one.best <= one.worst for one in everything.places)
    shared = {
        one.system for board in site.boards if board.datasets == ("brook-facts",) for one in board.places
    }
    assert shared == set(by_name)
    for board in site.boards:
        for one in board.places:
            if one.mean is not None:
                means = [
                    row.mean
                    for row in site.rows
                    if row.system == one.system and row.dataset in board.datasets
                ]
                assert one.mean == sum(means) / len(board.datasets)


def test_pages_and_their_json_say_the_same(site):
    root = Path(site.folder)
    index = json.loads((root / "api" / "index.json").read_text())
    page = (root / "index.html").read_text()
    for board in index["boards"]:
        for one in board["systems"]:
            assert f"{one['there']} of {len(board['datasets'])}" in page
            assert one["mean"] is None or f'data-value="{one["mean"]!r}"' in page
    pages = sorted(root.rglob("*.html"))
    assert len(pages) == 2 + 3 + 2  # index, reported, three systems, two collections
    for file in pages:
        text = file.read_text()
        links = re.findall(r'(?:href|src)="([^"#]+)"', text)
        assert all((file.parent / link).exists() for link in links), file
        assert "http" not in "".join(links)
    for file in (root / "api" / "systems").iterdir():
        of = json.loads(file.read_text())
        shown = (root / "systems" / f"{file.stem}.html").read_text()
        assert all(f'data-value="{row["mean"]!r}"' in shown for row in of["rows"])
        assert of["provenance"]["content"] in shown


def test_ranges_of_ranks_follow_the_verdicts():
    from weir.stats.compare import compare_scores, table, verdicts_across

    qrels = {f"q{n}": {"d": 1} for n in range(40)}
    good, poor = (
        {f"q{n}": {"d": 1.0} for n in range(40)},
        {f"q{n}": {"x": 2.0, "d": 1.0} for n in range(40)},
    )
    scores = {name: weir.evaluate(qrels, run, ["RR"]) for name, run in {"good": good, "poor": poor}.items()}
    comparison = compare_scores(scores, "one")[0]
    rows = [Row("one", name, "RR", mean, mean, mean, 40, 40) for name, mean in (("good", 1.0), ("poor", 0.5))]
    rows.append(Row("two", "alone", "RR", 0.9, 0.9, 0.9, 40, 40))
    verdicts = verdicts_across({"one": [table("one", "RR", scores)]})
    found = rank_ranges(["one", "two"], rows, [comparison], verdicts)
    placed = {one.system: (one.best, one.worst) for one in found}
    assert placed == {"good": (1, 2), "poor": (2, 3), "alone": (1, 3)}


def test_a_board_ranks_as_compare_does_and_says_which_rankings_are_short(tmp_path):
    """Of a system with two depths the longer counts; a system without the measure, and a short one, are named."""
    for systems, k, measures in (
        (["bm25", "rm3"], 100, ["AP", "RR"]),
        (["bm25", "bm25(k1=2.0)"], 3, ["AP"]),
        (["bm25(b=0.0)"], 9, ["RR"]),
    ):
        weir.benchmark("brook-facts", systems, measures, k=k, out=tmp_path / "results")
    pack = tmp_path / "packs" / "one.zip"
    pack.parent.mkdir()
    weir.pack_results(tmp_path / "results", pack)
    site = weir.leaderboard(pack.parent, tmp_path / "site", measure="AP")
    [board] = [one for one in site.boards if one.filter == "all collections"]
    compared = weir.compare(tmp_path / "results", measures="AP")
    ranks = {f"{one.system} (one)": (one.best, one.worst) for one in compared[0].standings}
    assert {one.system: (one.best, one.worst) for one in board.places} == ranks
    said = " ".join(note.text for note in site.notes())
    assert "bm25 on brook-facts is compared with k=100 alone, not 3" in said
    assert "bm25(b=0.0) on brook-facts is left out, not having been scored by AP" in said
    assert "AP looks at whole rankings, which hold at most 3 documents of bm25(k1=2.0) (one)" in said
    assert json.loads((tmp_path / "site/api/index.json").read_text())["notes"] == [
        note.text for note in site.notes()
    ]


def test_a_folder_without_packs_is_one_line(tmp_path, capsys):
    assert main(["submit", "leaderboard", str(tmp_path), "-o", str(tmp_path / "site")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "site").exists()


def test_a_pack_of_any_name_is_on_the_leaderboard(packed, mine, tmp_path):
    (tmp_path / "packs" / "inner").mkdir(parents=True)
    shutil.copy(packed, tmp_path / "packs" / "r7.pack")
    (tmp_path / "packs" / "notes.txt").write_text("no pack")
    with zipfile.ZipFile(tmp_path / "packs" / "sheet.xlsx", "w") as archive:
        archive.writestr("sheet.xml", "<a/>")
    made = weir.leaderboard(tmp_path / "packs", tmp_path / "site", places={"mine": mine})
    assert (made.refused, bool(made.rows)) == ((), True)


def test_a_measure_without_a_direction_ranks_nothing(tmp_path, capsys):
    assert main(["submit", "leaderboard", str(tmp_path), "-o", str(tmp_path / "o"), "-m", "Judged@10"]) == 2
    assert "neither better nor worse" in capsys.readouterr().err


def test_packs_of_other_judgments_and_of_one_name_are_kept_apart(packed, mine, tmp_path):
    packs = tmp_path / "packs"
    packs.mkdir()
    shutil.copy(packed, packs / "a.weir.zip")
    shutil.copy(packed, packs / "a.zip")
    other = shutil.copytree(mine, tmp_path / "other" / "mine")
    judged = other / "qrels" / "test.tsv"
    judged.write_text(judged.read_text().replace("d7\t1", "d8\t1"))
    weir.benchmark(str(other), ["bm25"], ["nDCG@10"], out=tmp_path / "results")
    weir.pack_results(tmp_path / "results", packs / "b.zip")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "notes.txt").write_text("mine")
    with pytest.raises(BadValue, match=r"holds 'notes\.txt', which weir submit leaderboard did not write"):
        weir.leaderboard(packs, tmp_path / "site")
    assert (tmp_path / "site" / "notes.txt").read_text() == "mine"
    (tmp_path / "site" / "notes.txt").unlink()
    for _ in range(2):  # an older one is replaced
        made = weir.leaderboard(packs, tmp_path / "site")
    assert made.refused == (("b.zip", "the judgments of mine are not those of a.weir.zip"),)
    assert {row.system for row in made.rows if row.system.startswith("bm25")} == {"bm25 (a.weir.zip, a.zip)"}


def test_a_leaderboard_asks_no_system_for_a_dataset_that_does_not_count(tmp_path):
    """As of `weir results`: of datasets with equal queries and judgments one counts in the mean."""
    documents, queries = (
        {f"d{n}": f"word{n} word{n + 1}" for n in range(9)},
        {f"q{n}": f"word{n}" for n in range(6)},
    )
    for name, systems in (("kb", ["bm25", "bm25(b=0.0)"]), ("copy", ["bm25"])):
        (tmp_path / name / "qrels").mkdir(parents=True)
        for file, texts in (("corpus", documents), ("queries", queries)):
            lines = [json.dumps({"_id": one, "text": text}) + "\n" for one, text in texts.items()]
            (tmp_path / name / f"{file}.jsonl").write_text("".join(lines))
        judged = "".join(f"q{n}\td{n}\t1\n" for n in range(6))
        (tmp_path / name / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
        weir.benchmark(str(tmp_path / name), systems, ["nDCG@10"], out=tmp_path / "results")
    (tmp_path / "packs").mkdir()
    weir.pack_results(tmp_path / "results", tmp_path / "packs" / "one.zip")
    board = weir.leaderboard(tmp_path / "packs", tmp_path / "site").boards[0]
    assert len(board.datasets) == 2
    assert all(place.mean is not None for place in board.places)


def test_splits_and_collections_of_one_name_are_datasets_of_their_own_and_a_collection_counts_once(tmp_path):
    """Of one pack, of several packs; a mean is of collections, of which a split is a part."""
    for place, more in ((tmp_path / "kb", 0), (tmp_path / "other" / "kb", 1)):
        (place / "qrels").mkdir(parents=True)
        lines = [json.dumps({"_id": f"d{n}", "text": f"word{n} word{n + 1 + more}"}) for n in range(20)]
        (place / "corpus.jsonl").write_text("\n".join(lines) + "\n")
        lines = [json.dumps({"_id": f"q{n}", "text": f"word{n}"}) for n in range(20)]
        (place / "queries.jsonl").write_text("\n".join(lines) + "\n")
        for split, first in (("test", 0), ("dev", 10)):
            rows = [f"q{n}\td{n if n % (3 + more) else n - 1}\t1" for n in range(first + 1, first + 10)]
            (place / "qrels" / f"{split}.tsv").write_text(
                "query-id\tcorpus-id\tscore\n" + "\n".join(rows) + "\n"
            )
    parts = [str(tmp_path / "kb"), f"{tmp_path}/kb:dev", str(tmp_path / "other" / "kb")]
    for number, part in enumerate(parts):
        weir.benchmark(part, ["bm25", "bm25(b=0.0)"], ["nDCG@10"], out=tmp_path / "together")
        weir.benchmark(part, ["bm25", "bm25(b=0.0)"], ["nDCG@10"], out=tmp_path / f"apart{number}")
    for packs, folders in (("one", ["together"]), ("several", [f"apart{number}" for number in range(3)])):
        (tmp_path / packs).mkdir()
        for folder in folders:
            weir.pack_results(tmp_path / folder, tmp_path / packs / f"{folder}.zip")
        made = weir.leaderboard(tmp_path / packs, tmp_path / f"{packs}-site")
        assert made.refused == ()
        board = made.boards[0]
        assert [re.sub(r"\[\w+\]", "[]", name) for name in board.datasets] == [
            "kb []:test",
            "kb []:dev",
            "kb []",
        ]
        one, two, three = board.datasets
        for place in board.places:
            mean = {row.dataset: row.mean for row in made.rows if row.system == place.system}
            whole = ((mean[one] + mean[two]) / 2 + mean[three]) / 2 if packs == "one" else None
            assert place.mean == pytest.approx(whole)


@pytest.mark.parametrize("cells", [["ab"], [["mine", "bm25"], "ab"], [["mine"]], 5, [[1, 2]]])
def test_a_manifest_of_another_layout_is_one_line(cells, packed, tmp_path, capsys):
    folder = unpack(packed, tmp_path / "unpacked")
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"cells": cells}))
    assert main(["submit", "verify", str(sealed(folder, tmp_path / "bad.zip"))]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_zero_shot_keeps_only_cells_of_models_that_have_not_seen_the_collection():
    """minilm was trained on nq: it is missing there, and nothing is known of a folder's model."""
    seen, unknown = 'dense("minilm")', 'dense("a/folder")'
    means = {
        ("nq", "bm25"): 0.3,
        ("nq", seen): 0.4,
        ("nq", unknown): 0.5,
        ("fiqa", "bm25"): 0.2,
        ("fiqa", seen): 0.4,
    }
    rows = [Row(d, s, "nDCG@10", mean, mean, mean, 9, 9) for (d, s), mean in means.items()]
    trained = {system: trained_on(system) for system in ("bm25", seen, unknown)}
    board = next(b for b in _boards(rows, [], trained, {}) if b.filter == "training: zero-shot")
    assert {place.system: place.mean for place in board.places} == {"bm25": 0.25, seen: None}
    assert board.datasets == ("nq", "fiqa")
    assert all(b.filter != "training: zero-shot" for b in _boards(rows[:1], [], trained, {}))


def test_of_a_pack_of_one_result_the_changed_file_is_named_though_all_hashes_are_made_anew(mine, tmp_path):
    weir.benchmark([str(mine)], ["bm25"], ["RR"], out=tmp_path / "results")
    weir.pack_results(tmp_path / "results", tmp_path / "mine.zip")
    cell = Path("results") / next((tmp_path / "results").glob("mine/bm25-*")).relative_to(
        tmp_path / "results"
    )
    names = [path.name for path in (tmp_path / cell).iterdir()]
    assert len(names) == 4
    for name in names:
        for number, change in enumerate((b"", b"{}\n", None)):
            folder = unpack(tmp_path / "mine.zip", tmp_path / f"{name}-{number}")
            changed_file = folder / cell / name
            changed_file.unlink() if change is None else changed_file.write_bytes(change)
            found = weir.verify_pack(sealed(folder, tmp_path / "changed.zip"))
            assert any(name.partition(".")[0] in problem for problem in found.problems), found.problems


@pytest.mark.parametrize(
    "words",
    [
        *(
            "results {}",
            "compare {}",
            "audit {}",
            "report {} -o x.html",
            "diff {} {}",
            "gate {} {}",
            "why {} {}",
        ),
        *("verify {}", "open {}", "submit pack {}", "labels pool {} -o x", "eval brook-facts {}"),
        *("run -d {} -s bm25 -o x", "fuse rrf {} {} -o x"),
    ],
)
def test_a_pack_in_place_of_results_is_refused_with_how_it_is_opened(
    words, packed, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(words.format(packed, packed).split()) == 2
    assert (
        f"{packed}: found a pack of results; expected it unzipped: its folder results/"
        in capsys.readouterr().err
    )
    assert not list(tmp_path.iterdir())
    assert len(weir.results(unpack(packed, tmp_path / "here") / "results")) == 8


def test_a_pack_says_which_paths_its_readers_see_and_holds_the_newest_version_alone(mine, tmp_path):
    copy = shutil.copytree(mine, tmp_path / "mine")
    for _ in range(2):
        weir.benchmark([str(copy), "brook-facts"], ["bm25"], ["RR"], out=tmp_path / "results")
        (copy / "corpus.jsonl").write_text("".join((copy / "corpus.jsonl").read_text().splitlines(True)[:-1]))
    shutil.copy(mine / "corpus.jsonl", copy / "corpus.jsonl")
    pack = weir.pack_results(tmp_path / "results", tmp_path / "mine.zip")
    assert sorted(dataset for dataset, _ in pack.cells) == ["brook-facts", "mine"]
    assert any("[older " in said and "left out" in said for said in pack.left_out)
    assert str(copy) in pack.places
    assert any(str(copy) in note.text for note in pack.notes())


def test_a_leaderboard_says_that_it_replaced_an_older_one(packed, tmp_path):
    (tmp_path / "packs").mkdir()
    shutil.copy(packed, tmp_path / "packs" / "one.zip")
    for replaced in (False, True):
        notes = weir.leaderboard(tmp_path / "packs", tmp_path / "site").notes()
        assert any("older leaderboard" in str(note) for note in notes) == replaced
