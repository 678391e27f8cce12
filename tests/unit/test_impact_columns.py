"""An index with columns on disk: written, opened and searched as the one in memory."""

from __future__ import annotations

import numpy as np

from weir.core.strings import Strings
from weir.kernels.inverted import byte_bounds as module
from weir.kernels.inverted.packed import packed
from weir.kernels.inverted.search import Impacts
from weir.systems.lexical.inversion import index_in_files, work_files
from weir.systems.lexical.inverted_index import ImpactIndex, load_index, save_index, top_documents


def postings(n_docs, n_terms):
    rng = np.random.default_rng(4)
    lists = [np.flatnonzero(rng.random(n_docs) < share) for share in np.linspace(0.01, 0.5, n_terms)]
    ptr = np.concatenate([[0], np.cumsum([len(docs) for docs in lists])]).astype(np.int64)
    impact = rng.gamma(1.2, 0.5, int(ptr[-1])).astype(np.float32)
    return ptr, np.concatenate(lists).astype(np.int32), impact, n_docs


def test_columns_are_kept_and_change_nothing(tmp_path, monkeypatch):
    arrays = postings(20000, 30)
    plain = Impacts(20000, arrays[0], packed(*arrays))
    assert plain.with_columns().columns is None  # too few documents to gain anything
    monkeypatch.setattr(module, "_LEAST_DOCUMENTS", 1)
    with_columns = plain.with_columns()
    columns = with_columns.columns
    assert columns is not None
    order = np.random.default_rng(1).permutation(20000).astype(np.int32)
    save_index(
        (ImpactIndex(with_columns, (Strings.of([f"t{i}" for i in range(30)]),), order),),
        tmp_path / "index",
        {"documents": 20000},
    )
    (opened,), _ = load_index(tmp_path / "index")
    assert opened.impacts.columns is not None
    np.testing.assert_array_equal(opened.impacts.columns.values, columns.values)
    asked = np.array([0, 20, 30]), np.arange(30, dtype=np.int32), np.linspace(0.1, 2, 30).astype(np.float32)
    expected = top_documents(ImpactIndex(plain, (), order), *asked, 50)
    found = top_documents(opened, *asked, 50)
    for name in ("ptr", "doc", "score"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_columns_made_on_disk_are_those_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_DOCUMENTS", 1)
    ptr, _, _, n_docs = arrays = postings(40000, 12)  # three windows, the last one short
    order = np.arange(n_docs, dtype=np.int32)
    lists = packed(*arrays)
    memory = ImpactIndex(Impacts(n_docs, ptr, lists).with_columns(), (), order)
    save_index((memory,), tmp_path / "memory", {"documents": n_docs})
    with work_files(tmp_path / "disk", 0, {}) as files:
        for name, array in lists._asdict().items():
            files.append_to_array(f"{name}.npy", array)
        files.append_to_array("columns.npy", np.ones(5, np.uint8))  # of a process that was killed
        files.close()
    with work_files(tmp_path / "disk", 0, {}) as files:
        for name, array in lists._asdict().items():
            files.append_to_array(f"{name}.npy", array)
        disk = index_in_files(files, ptr, (), order, learned=True)
        assert isinstance(disk.impacts.columns.values, np.memmap)
        save_index((disk,), tmp_path / "disk", {"documents": n_docs})
    names = sorted(path.name for path in (tmp_path / "memory").iterdir())
    assert "0-columns-values.npy" in names
    assert names == sorted(path.name for path in (tmp_path / "disk").iterdir())
    assert all(
        (tmp_path / "memory" / name).read_bytes() == (tmp_path / "disk" / name).read_bytes() for name in names
    )
    assert [path.name for path in tmp_path.iterdir() if "blocks" in path.name] == []


def test_an_index_without_columns_has_no_files_of_them(tmp_path):
    arrays = postings(500, 5)
    index = ImpactIndex(Impacts(500, arrays[0], packed(*arrays)), (), np.arange(500, dtype=np.int32))
    save_index((index,), tmp_path / "index", {"documents": 500})
    assert not list((tmp_path / "index").glob("*columns*"))
    assert load_index(tmp_path / "index")[0][0].impacts.columns is None
