"""Every setting of every system that needs a checkpoint moves its key, or cannot move a number."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'weir-ir[neural]'")
transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'weir-ir[neural]'")

from tests.neural.conftest import configs  # noqa: E402 - behind the skip
from tests.neural.late_checkpoint import made  # noqa: E402, F401 - a fixture
from tests.neural.t5_small import write_t5  # noqa: E402 - behind the skip
from tests.neural.test_cross import written  # noqa: E402 - behind the skip
from tests.neural.test_sparse_systems import folders  # noqa: E402, F401 - a fixture
from tests.perturbed import IDLE, key_of, settings_of  # noqa: E402 - behind the skip
from tests.unit.test_stage_keys import CHECKPOINTS  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend


@pytest.fixture(scope="module")
def models(tmp_path_factory, folders, made) -> dict[str, str]:  # noqa: F811 - fixtures
    """A small checkpoint for each system."""
    t5 = write_t5(tmp_path_factory.mktemp("t5"))
    cross = written(tmp_path_factory.mktemp("cross"), configs()["bert"])
    found = {**folders, "colbert": made[0], "cross": cross, "monot5": t5, "doc2query": t5}
    assert found.keys() == CHECKPOINTS
    return {name: str(folder) for name, folder in found.items()}


def another(model: str, place: Path) -> str:
    """A copy of a checkpoint with one bit of one weight changed."""
    folder = Path(shutil.copytree(model, place / "another"))
    [weights] = folder.glob("*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    return str(folder)


def written_questions(place: Path, word: str) -> str:
    """A file of questions that documents answer."""
    path = place / f"{word}.jsonl"
    path.write_text(json.dumps({"id": "d1", "predicted_queries": [word]}) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "setting",
    [s for s in settings_of(CHECKPOINTS) if s.setting != "model"],
    ids=lambda s: f"{s.name}.{s.setting}",
)
def test_every_setting_moves_the_key_or_cannot_move_a_number(setting, models, tmp_path):
    given, values = {"model": models[setting.name]}, ()
    if setting.name == "deepct":
        given["max_length"] = 64
    if setting.setting == "query":  # the model of queries
        values = (another(models["splade"], tmp_path),)
    if setting.setting == "expansions":
        given, values = (
            {"expansions": written_questions(tmp_path, "dam")},
            (written_questions(tmp_path, "river"),),
        )
    before, after = setting.pair(given, values)
    assert (key_of(before) == key_of(after)) == (setting.setting in IDLE)


@pytest.mark.parametrize("name", sorted(CHECKPOINTS))
def test_another_checkpoint_is_another_key(name, models, tmp_path):
    [setting] = [s for s in settings_of(frozenset({name})) if s.setting == "model"]
    given = {"model": models[name]} | ({"max_length": 64} if name == "deepct" else {})
    before, after = setting.pair(given, (another(models[name], tmp_path),))
    assert key_of(before) != key_of(after)
