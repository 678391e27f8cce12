"""What a system declares: without torch imported, without torch installed, without a network, without foreign code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the `torch` extra")
pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")

from tests.neural.conftest import sentence_transformer
from tests.neural.t5_small import write_t5
from weir.errors import BadValue, DownloadError, StoreError
from weir.models import Encoder
from weir.models.checkpoints import fetch, locate

pytestmark = pytest.mark.filterwarnings("default")

HEAVY = ("torch", "transformers", "tokenizers", "huggingface_hub", "safetensors", "openvino", "nncf")
SOURCE = Path(__file__).resolve().parents[2] / "src"
DESCRIBE = """
import json, sys
from weir.systems import parse_system
found = [parse_system(name).describe() for name in json.loads(sys.argv[1])]
print(json.dumps([found, sorted(set(sys.modules) & set(json.loads(sys.argv[2])))]))
"""


@pytest.fixture
def bert(checkpoint_of, tmp_path):
    return sentence_transformer(shutil.copytree(checkpoint_of("bert"), tmp_path / "bert"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A folder of packages as an installation of the `run` extra has it: what is installed here without HEAVY."""
    folder = tmp_path_factory.mktemp("site")
    for place in {Path(p) for p in sys.path if p.endswith("site-packages")}:
        for path in place.iterdir():
            left_out = any(path.name.lower().startswith(name) for name in HEAVY)
            if (
                not left_out
                and path.suffix not in (".pth", ".egg-link")
                and not (folder / path.name).exists()
            ):
                (folder / path.name).symlink_to(path)
    return folder


def described(systems, home, options=(), packages=""):
    """(what the systems declare, which of HEAVY were imported for that) in a process of its own."""
    environment = os.environ | {"WEIR_HOME": str(home), "PYTHONPATH": f"{SOURCE}{os.pathsep}{packages}"}
    command = [sys.executable, *options, "-c", DESCRIBE, json.dumps(systems), json.dumps(HEAVY)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def without_engines(declared):
    if isinstance(declared, dict):
        return {name: without_engines(value) for name, value in declared.items() if name != "engine"}
    return [without_engines(v) for v in declared] if isinstance(declared, list) else declared


def test_it_is_the_same_without_the_extra_and_imports_nothing_of_it(bert, checkpoint_of, tmp_path, plain):
    t5 = write_t5(tmp_path / "t5")
    systems = [
        f'dense("{bert}")',
        f'dense("{bert}", dtype="int8", engine="openvino")',
        f'bm25 >> monot5("{t5}")',
        f'doc2query(model="{t5}")',
        f'splade("{checkpoint_of("bert")}", query="tokens")',
    ]
    here, imported = described(systems, tmp_path / "home")
    assert imported == []
    assert here[0]["encoder"]["engine"].startswith("openvino ")
    assert here[2]["reranker"]["engine"].startswith("transformers ")
    there, imported = described(systems, tmp_path / "another home", ("-S",), plain)
    assert imported == []
    assert there[0]["encoder"]["engine"] is None
    assert there[2]["reranker"]["engine"] is None
    assert without_engines(there) == without_engines(here)


def test_what_cannot_move_a_number_is_not_declared(bert, tmp_path, monkeypatch):
    from weir.settings import settings
    from weir.systems import parse_system

    moved = shutil.copytree(bert, tmp_path / "elsewhere")
    first = parse_system(f'dense("{bert}")').describe()
    assert parse_system(f'dense("{moved}", batch_tokens=77)').describe() == first
    monkeypatch.setenv("WEIR_THREADS", "7")
    settings.cache_clear()
    assert parse_system(f'dense("{bert}")').describe() == first
    assert str(tmp_path) not in json.dumps(first)
    for other in (
        "max_length=30",
        'pooling="cls"',
        'dtype="bf16"',
        'store="int8"',
        'view="text"',
        'engine="transformers"',
    ):
        assert parse_system(f'dense("{bert}", {other})').describe() != first


def in_cache(cache, bert, name="some--one"):
    """The hub's cache with a checkpoint in it, laid out as the hub's own library does."""
    place = cache / f"models--{name}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0123abc")
    return shutil.copytree(bert, place / "snapshots" / "0123abc")


def test_the_hubs_cache_is_read_without_the_hubs_library(bert, tmp_path, monkeypatch, plain):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        DownloadError, match=r"the checkpoint 'some/one' is not here; `weir list models some/one`"
    ):
        Encoder("some/one").describe()
    snapshot = in_cache(tmp_path / "cache", bert)
    assert locate("some/one") == snapshot
    fetch("some/one")  # asks nothing of the network
    assert Encoder("some/one").describe() == Encoder(str(bert)).describe()
    ([found], _) = described(['dense("some/one")'], tmp_path / "home", ("-S",), plain)
    assert without_engines(found["encoder"]) == without_engines(Encoder(str(bert)).describe())
    for name in ("../some/one", "some/one/more", "so me/one", "/some"):
        with pytest.raises((DownloadError, StoreError)):
            locate(name)


@pytest.mark.parametrize("lost", ["model.safetensors", "config.json", "refs"])
def test_half_a_download_is_not_here(bert, tmp_path, monkeypatch, lost):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    snapshot = in_cache(tmp_path / "cache", bert)
    if lost == "refs":
        shutil.rmtree(snapshot.parents[1] / "refs")
    else:
        (snapshot / lost).unlink()
        (snapshot / "modules.json").unlink()
    for ask in (Encoder("some/one").describe, Encoder("some/one").load):
        with pytest.raises(DownloadError, match="is not here") as found:
            ask()
        assert "\n" not in str(found.value)


def test_a_part_of_the_weights_that_is_missing_is_half_a_download(bert, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    snapshot = in_cache(tmp_path / "cache", bert)
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(DownloadError):
        locate("some/one")
    (snapshot / "model-2.safetensors").write_bytes(b"")
    assert locate("some/one") == snapshot


OWN = """
from pathlib import Path
Path({mark!r}).write_text("run")
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
class Config(BertConfig):
    model_type = "own"
class Model(BertModel):
    config_class = Config
class Tokenizer(PreTrainedTokenizerFast):
    pass
"""
LOAD = """
import sys
from weir.models.encoder import Encoder
from weir.errors import WeirError
for folder in sys.argv[2:]:
    try:
        print(Encoder(folder, pooling="mean", engine=sys.argv[1]).load("cpu").encode(["the cat"]).shape)
    except WeirError as error:
        print(f"refused: {error}")
"""


def bringing_code(folder, kind, tokenizer):
    """A checkpoint with code of its own, which leaves a file `it ran` beside the checkpoint if it runs."""
    (folder / "own.py").write_text(OWN.format(mark=f"{folder} it ran"))
    config = json.loads((folder / "config.json").read_text())
    named = {
        "AutoConfig": "own.Config",
        "AutoModel": "own.Model",
        "AutoTokenizer": ["own.Tokenizer", "own.Tokenizer"],
    }
    (folder / "config.json").write_text(json.dumps(config | {"model_type": kind, "auto_map": named}))
    settings = {
        "tokenizer_class": "Tokenizer",
        "auto_map": {"AutoTokenizer": ["own.Tokenizer", "own.Tokenizer"]},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if not tokenizer:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n")
    return folder


@pytest.mark.parametrize("engine", ["torch", "transformers"])
def test_code_that_a_checkpoint_brings_never_runs(bert, tmp_path, engine):
    """X2: transformers asked on standard input, and `yes |` ran it."""
    kinds = [(kind, tokenizer) for kind in ("bert", "own") for tokenizer in (True, False)]
    folders = [
        bringing_code(shutil.copytree(bert, tmp_path / f"{kind} {tokenizer}"), kind, tokenizer)
        for kind, tokenizer in kinds
    ]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, engine, *map(str, folders)],
        input="y\n" * 40, capture_output=True, text=True, check=False, env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert not list(tmp_path.glob("* it ran"))
    assert done.returncode == 0, done.stderr
    said = done.stdout.strip().split("\n")
    assert len(said) == len(kinds), f"it asked: {done.stdout}"
    for (kind, tokenizer), line in zip(kinds, said, strict=True):
        if kind == "bert" and tokenizer:
            assert line == "(1, 48)"  # by the class that transformers has
        else:
            assert line.startswith(("refused: ", "(1, 48)")), (kind, tokenizer)
        if kind == "own" and engine == "transformers" and tokenizer:
            assert "brings code of its own, which Weir never runs" in line


def test_lower_case_that_a_checkpoint_asks_for(bert):
    (bert / "sentence_bert_config.json").unlink()
    words = ["the cat", "THE Cat"]
    plain = Encoder(str(bert)).load("cpu").encode(words)
    assert not np.array_equal(plain[0], plain[1])
    before = Encoder(str(bert)).describe()
    (bert / "sentence_distilbert_config.json").write_text('{"do_lower_case": true, "max_seq_length": 40}')
    lowered = Encoder(str(bert)).load("cpu").encode(words)
    assert np.array_equal(lowered[0], lowered[1])
    assert Encoder(str(bert)).describe() != before


def test_a_dtype_that_no_engine_has_is_said_at_once():
    with pytest.raises(BadValue, match="does not compute in int8"):
        Encoder(engine="torch", dtype="int8")
