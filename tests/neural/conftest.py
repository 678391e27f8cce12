"""Small checkpoints with random weights and the true shape of each architecture, made on the spot."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weir.models.engine import Declared, build
from weir.models.hardware import ComputePlace
from weir.models.heads import TokenHead
from weir.models.tokens import Tokens

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "fish",
    "river",
    "weir",
    "water",
    "stone",
    "bridge",
    "flows",
    "over",
    "under",
]
WORDS += ["red", "blue", "green", "one", "two", "three"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

COMMON = dict(
    vocab_size=64,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=80,
)


def configs():
    """Every architecture of the engine torch, in the true shape but small."""
    t = pytest.importorskip("transformers", reason="needs the `neural` extra")
    roberta = COMMON | {"max_position_embeddings": 82, "pad_token_id": 1, "type_vocab_size": 1}
    return {
        "bert": t.BertConfig(**COMMON),
        "bert-tanh": t.BertConfig(**COMMON, hidden_act="gelu_new"),
        "roberta": t.RobertaConfig(**roberta, layer_norm_eps=1e-5),
        "xlm-roberta": t.XLMRobertaConfig(**roberta),
        "camembert": t.CamembertConfig(**roberta),
        "mpnet": t.MPNetConfig(**(COMMON | {"max_position_embeddings": 82, "pad_token_id": 1})),
        "electra": t.ElectraConfig(**COMMON, embedding_size=24),
        "dpr": t.DPRConfig(**COMMON, projection_dim=0),
        "distilbert": t.DistilBertConfig(
            vocab_size=64, dim=48, n_layers=3, n_heads=4, hidden_dim=96, max_position_embeddings=80
        ),
    }


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory):
    """A function: the folder of a small checkpoint of an architecture."""
    torch = pytest.importorskip("torch", reason="needs the `torch` extra")
    transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    made = {}

    def make(name):
        if name not in made:
            torch.manual_seed(7)
            model = (
                transformers.DPRContextEncoder(configs()[name])
                if name == "dpr"
                else transformers.AutoModel.from_config(configs()[name])
            )
            with torch.no_grad():  # norms and biases too: fresh ones are all 1 and 0 and would hide mistakes
                for parameter in model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
            made[name] = tmp_path_factory.mktemp(name)
            model.eval().save_pretrained(made[name])
            write_tokenizer(made[name])
        return made[name]

    return make


def write_tokenizer(folder):
    tokenizers = pytest.importorskip("tokenizers", reason="needs the `neural` extra (tokenizers)")
    vocabulary = {w: i for i, w in enumerate([*SPECIAL, *WORDS])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    inner.save(str(folder / "tokenizer.json"))


def sentence_transformer(folder, pooling="mean", normalise=True, prompts=None, limit=40):
    """The files by which sentence-transformers says how a checkpoint encodes."""
    steps = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    steps.append({"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})
    if normalise:
        steps.append({"idx": 2, "name": "2", "path": "", "type": "sentence_transformers.models.Normalize"})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    key = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens", "last": "lasttoken"}[pooling]
    facts = {"word_embedding_dimension": 48, f"pooling_mode_{key}": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(facts))
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    if prompts is not None:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return folder


@pytest.fixture
def batch():
    """Texts of many lengths: random words, a text of one token, two of equal length, the longest there may be."""
    rng = np.random.default_rng(3)
    lengths = np.array([5, 17, 1, 80, 17, 33, 2])
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(rng.integers(5, 64, ptr[-1]).astype(np.int32), ptr)


@pytest.fixture
def words():
    """Texts of the small tokenizer's words."""
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, n)) for n in rng.integers(0, 60, 40)]


def built(checkpoint, engine, dtype="fp32"):
    """An engine on the processor whose rows are the hidden states of tokens."""
    return build(checkpoint, Declared(engine, ComputePlace("cpu", dtype), "a test"), TokenHead())


def states(engine, batch):
    """float32[T, H]: the hidden states of a batch."""
    return engine.array([engine.rows(batch)]).copy()


def padded_attention(batch, heads, bias, cuda_attention):
    """A GPU's attention, of rows that a processor's batch has behind its last token too."""
    torch = pytest.importorskip("torch", reason="needs the `torch` extra")
    attend, count = cuda_attention(batch, heads, bias, False, torch.device("cpu")), int(batch.ptr[-1])
    return lambda qkv: torch.nn.functional.pad(attend(qkv[:count]), (0, 0, 0, len(qkv) - count))
