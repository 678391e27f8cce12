"""A small checkpoint of ColBERT's own layout with random weights, for the encoder's tests and the system's."""

from __future__ import annotations

import json
import shutil
import string

import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
safetensors = pytest.importorskip("safetensors.torch", reason="needs the `neural` extra (safetensors)")

from tests.neural.conftest import COMMON, SPECIAL, WORDS  # noqa: E402 - behind the skip
from weir.settings import settings  # noqa: E402 - behind the skip

load, save = safetensors.load_file, safetensors.save_file
TOKENS = [*SPECIAL, "[unused0]", "[unused1]", *WORDS, *string.punctuation]
NUMBER = {token: number for number, token in enumerate(TOKENS)}
D = 16


def write_tokenizer(folder):
    tokenizers = pytest.importorskip("tokenizers", reason="needs the `neural` extra (tokenizers)")
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(NUMBER, unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.Lowercase()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.add_special_tokens([*SPECIAL])
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(t, NUMBER[t]) for t in ("[CLS]", "[SEP]")]
    )
    inner.save(str(folder / "tokenizer.json"))
    named = {f"{n.strip('[]').lower()}_token": n for n in SPECIAL}
    facts = named | {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))


def saved(folder, prefix="", extra=None):
    """A small BERT with random weights, norms and biases too, and a projection."""
    torch.manual_seed(5)
    model = transformers.BertModel(transformers.BertConfig(**COMMON | {"vocab_size": len(TOKENS)})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    matrix = 0.3 * torch.randn(D, 48)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    if prefix:
        state = {prefix + name: t.contiguous() for name, t in model.state_dict().items()}
        save(state | {"linear.weight": matrix}, folder / "model.safetensors", metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    return model, matrix


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(folder in ColBERT's own layout, the model in it, its projection)."""
    folder = tmp_path_factory.mktemp("colbert")
    model, matrix = saved(folder, "bert.")
    facts = {"query_maxlen": 12, "doc_maxlen": 40, "attend_to_mask_tokens": False, "mask_punctuation": True}
    facts |= {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "dim": D, "similarity": "cosine"}
    (folder / "artifact.metadata").write_text(json.dumps(facts))
    return folder, model, matrix


@pytest.fixture
def colbert(made, tmp_path):
    """A function: the folder with settings changed, the model, its projection."""

    def changed(**facts):
        folder = shutil.copytree(made[0], tmp_path / f"colbert-{len(list(tmp_path.iterdir()))}")
        said = json.loads((folder / "artifact.metadata").read_text())
        (folder / "artifact.metadata").write_text(json.dumps(said | facts))
        return folder, made[1], made[2]

    return changed


@pytest.fixture(autouse=True)
def one_thread(home, monkeypatch):
    """The models are tiny: several threads would only wait for each other."""
    monkeypatch.setenv("WEIR_THREADS", "1")
    settings.cache_clear()
    torch.set_num_threads(1)
