"""Records of anybody's: whatever stands in one, sealed rightly, every command that reads it ends well or in one line."""

from __future__ import annotations

import copy
import json
import random
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba", reason="needs the `run` extra (numba)")

import weir
from weir.cli.main import main
from weir.errors import BadValue, StoreError
from weir.experiment.stages import Stage, _digest
from weir.files.integrity import SEAL, Checksum, _checksum
from weir.models.checkpoints import read_checkpoint
from weir.models.weights import supported

pytestmark = pytest.mark.filterwarnings("ignore::weir.errors.LossWarning")  # records that are left out

WRONG = (None, True, False, 0, -1, 7, 0.5, -1e308, float("nan"), float("inf"), 10**90, "", "a", "\ud800", "a\0b", "\n",
         "../../../../etc/passwd", "/etc/passwd", "1" * 5000, [], {}, [[]], [None], {"a": None}, {"": {}}, "x" * 70_000)  # fmt: skip
COMMANDS = (
    "results {}", "results {} --per-query", "compare {}", "audit {}", "verify {}", "report {} -o {}.html",
    "labels pool {} -o {}.pool", "study efficiency {}", "submit pack {} -o {}.zip", "data export {} --to hub -o {}.out",
    "data export {} --to mteb -o {}.out", "data export {} --to ranx -o {}.out", "study reproduce {}", "gate {} {} -s bm25", "study factors {}",
    "study cite {}",
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) within a JSON value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in list(entries):
        yield value, key
        yield from places(inner)


def mutated(value: Any, rng: random.Random) -> Any:
    """A value with an entry replaced, removed or renamed."""
    value = copy.deepcopy(value)
    parts = [key for key in value if key not in ("format", "check", "seal")]
    part = rng.choice(parts)
    inside, key = rng.choice([(value, part), *places(value[part])])
    what = rng.random()
    if what < 0.15:
        del inside[key]
    elif what < 0.25 and isinstance(inside, dict):
        inside[rng.choice(("\ud800", "a\0b", "", "../x", "x" * 5000))] = inside.pop(key)
    else:
        inside[key] = rng.choice(WRONG)
    return value


def resealed(path: Path, value: Any) -> None:
    """Write a record with the checksums that it should have, as somebody does who forges one."""
    if isinstance(value, dict) and "check" in value:
        value = {name: one for name, one in value.items() if name != "check"}
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            value["key"] = Stage(value["stage"], value["name"], value["declared"]).key
            value["check"] = _digest(value)
    elif isinstance(value, dict) and SEAL in value:
        value = {name: one for name, one in value.items() if name != SEAL}
        value[SEAL] = _checksum(value) if "\ud800" not in str(value) else "0"
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mine") / "results"
    weir.benchmark(["brook-facts"], ["bm25", "rm3"], ["nDCG@10", "RR"], out=folder)
    return folder


@pytest.mark.parametrize("seed", range(5))
def test_a_mutated_record_ends_no_command_as_a_bug(results, tmp_path, seed, capsys):
    rng = random.Random(seed)
    for number in range(2):
        folder = tmp_path / f"{number}" / "results"
        shutil.copytree(results, folder)
        path = rng.choice(sorted(path for path in folder.rglob("*.json") if path.name != "index.json"))
        resealed(path, mutated(json.loads(path.read_text(encoding="utf-8")), rng))
        for command in rng.sample(COMMANDS, 3):
            assert main(command.format(*[folder] * 3).split()) in (0, 1, 2, 3), (seed, number, command)
            assert "unexpected" not in capsys.readouterr().err


def without_cost(record: dict[str, Any]) -> None:
    record["cost"] = {}


def with_a_name_of_no_file(record: dict[str, Any]) -> None:
    record["files"] = dict.fromkeys(["a\0b"], *record["files"].values())


def with_an_input_of_no_folder(record: dict[str, Any]) -> None:
    record["inputs"] = [["index", "a\0b"]]


@pytest.mark.parametrize("change", [without_cost, with_a_name_of_no_file, with_an_input_of_no_folder])
@pytest.mark.parametrize("command", COMMANDS[8:12])
def test_a_record_of_another_layout_is_said_in_a_line(results, tmp_path, change, command, capsys):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    path = next(folder.glob("*/bm25-*/stage.json"))
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    resealed(path, record)
    assert main(command.format(*[folder] * 3).split()) in (0, 1, 2, 3)
    assert "unexpected" not in capsys.readouterr().err


def test_a_query_renamed_in_stored_scores_is_named_by_the_gate(results, tmp_path, capsys):
    folder = tmp_path / "results"
    shutil.copytree(results, folder)
    path = next(folder.glob("*/bm25-*/scores-*.jsonl"))
    name = json.loads(path.read_text(encoding="utf-8").split("\n")[0])["query"]
    path.write_text(path.read_text(encoding="utf-8").replace(json.dumps(name), '"renamed"'), encoding="utf-8")
    record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    record["files"][path.name] = Checksum.of(path).to_json()
    resealed(path.with_suffix(".json"), record)
    for first, second in ((results, folder), (folder, results), (folder, folder)):
        assert main(["gate", str(first), str(second), "-s", "bm25"]) == 2
        assert "renamed" in capsys.readouterr().err


def changed(manifest: dict[str, Any], place: str, value: object) -> None:
    """Set an entry of a manifest; of its files that of the first."""
    if place in ("name", "sha256"):
        first = next(iter(manifest["files"]))
        entry = manifest["files"].pop(first) if place == "name" else manifest["files"][first]
        if place == "name":
            manifest["files"][value] = entry
        else:
            entry["sha256"] = value
    else:
        manifest[place] = value


@pytest.mark.parametrize(
    ("place", "value"),
    [*(("name", one) for one in ("\ud800", "a\0b", "")),
     *((key, one) for key in ("sha256", "content", "cells", "files", "weir submission")
       for one in ("\ud800", None, {}, 10**400, [["\ud800", "a"]]))],
)  # fmt: skip
def test_a_bad_pack_is_refused_in_a_line(results, tmp_path, place, value, capsys):
    weir.pack_results(results, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "good.zip") as good, zipfile.ZipFile(tmp_path / "bad.zip", "w") as bad:
        manifest = json.loads(good.read("manifest.json"))
        changed(manifest, place, value)
        bad.writestr("manifest.json", json.dumps(manifest))
        for name in set(good.namelist()) - {"manifest.json"}:
            bad.writestr(name, good.read(name))
    assert main(["submit", "verify", str(tmp_path / "bad.zip"), "-q"]) in (1, 2)
    assert "unexpected" not in capsys.readouterr().err


def test_a_bad_pack_stops_no_leaderboard(results, tmp_path, capsys):
    (tmp_path / "packs").mkdir()
    weir.pack_results(results, tmp_path / "packs" / "good.zip")
    with zipfile.ZipFile(tmp_path / "packs" / "bad.zip", "w") as bad:
        bad.writestr("manifest.json", '{"files": {"\\ud800": 1}}')
    assert main(["submit", "leaderboard", str(tmp_path / "packs"), "-o", str(tmp_path / "site")]) == 0
    assert "refused: bad.zip: bad.zip/manifest.json: found half a surrogate pair" in capsys.readouterr().out


CONFIG = {
    "model_type": "bert", "hidden_act": "gelu", "architectures": ["BertModel"], "vocab_size": 64, "hidden_size": 48,
    "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 80, "pad_token_id": 0,
    "layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "prompts": {"query": "query: "},
    "default_prompt_name": "query", "similarity_fn_name": "cosine", "max_seq_length": 128, "model_max_length": 512,
    "pooling_mode_mean_tokens": True,
}  # fmt: skip
FILES = ("config.json", "sentence_bert_config.json", "tokenizer_config.json", "1_Pooling/config.json",
         "config_sentence_transformers.json", "modules.json")  # fmt: skip
STEPS = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_configuration_of_a_checkpoint_is_read_or_refused(name, tmp_path):
    (tmp_path / "1_Pooling").mkdir()
    whole = {file: STEPS if file == "modules.json" else CONFIG for file in FILES}
    for file, content in whole.items():
        (tmp_path / file).write_text(json.dumps(content), encoding="utf-8")
    rng = random.Random(name)
    for number in range(150):
        content = mutated({"x": whole[name]}, rng)
        text = json.dumps(content.get("x") if number % 9 else content)
        (tmp_path / name).write_text(text, encoding="utf-8")
        with suppress(BadValue, StoreError):
            checkpoint = read_checkpoint(tmp_path)
            supported(checkpoint)
            assert checkpoint.limit > 0
            assert isinstance(checkpoint.trained + checkpoint.architecture, str)
