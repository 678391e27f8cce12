"""References to real collections: the same documents, queries and judgments by whatever name they come."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

import weir

pytest.importorskip("pyarrow", reason="Parquet files take pyarrow")
pytestmark = pytest.mark.real


def test_nfcorpus_by_ir_datasets_is_nfcorpus(shared, tmp_path, home):
    pytest.importorskip("ir_datasets", reason="ir_datasets is not installed (the extra irds)")
    place = tmp_path / "irds" / "beir" / "nfcorpus"
    place.mkdir(parents=True)
    shutil.copy(
        shared / "data" / "nfcorpus" / "nfcorpus.zip", place / "source.zip"
    )  # its own archive, by md5
    code = "import weir; d = weir.load('irds:beir/nfcorpus/test'); print(d.fingerprint, d.corpus.fingerprint)"
    environment = os.environ | {"IR_DATASETS_HOME": str(tmp_path / "irds")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    own = weir.load(shared / "data" / "nfcorpus")
    assert done.stdout.split()[1] == own.corpus.fingerprint
    brought = weir.load("irds:beir/nfcorpus/test")  # what was brought is read without the package's files
    assert brought.queries.to_dict() == own.queries.to_dict()
    assert brought.qrels.to_dict() == own.qrels.to_dict()


def test_folders_of_the_hub_s_layouts(shared):
    interop = shared / "data" / "interop"
    new, old, nano = (
        weir.load(interop / one)
        for one in ("mteb/hub_layout/LIMITSmall", "mteb/hub_layout_old", "nanobeir/NanoLIMIT")
    )
    assert new.corpus.fingerprint == old.corpus.fingerprint
    assert new.queries.to_dict() == old.queries.to_dict()
    assert (new.qrels.to_dict(), nano.qrels.to_dict()) == (old.qrels.to_dict(), new.qrels.to_dict())
    assert (new.split, nano.split, len(nano.corpus)) == ("test", "train", 46)
    followir = weir.load(interop / "followir/hub_layout")
    assert len(followir.queries) == 10
    assert '"instruction"' in followir.layout.need_queries().path.read_text()


@pytest.mark.parametrize("name", ["scifact", "nfcorpus"])
def test_the_catalogue_knows_the_content_of_real_collections(shared, name):
    from weir.datasets.catalogue import get
    from weir.datasets.fetch import content_of

    assert content_of(weir.load(shared / "data" / name)) == get(name).content
