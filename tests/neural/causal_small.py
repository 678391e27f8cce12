"""Small causal models with random weights, and tokenizers of bytes with and without a chat template."""

from __future__ import annotations

import pytest

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|end|>", "<|im_start|>", "<|im_end|>"]
"""The end of a text is token 0, that of a turn token 2."""
SHAPE = dict(
    vocab_size=320,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=64,
    max_position_embeddings=2048,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
)


def causal_configs():
    """Configurations that differ in what padding could spoil: positions, windows, slopes, states."""
    t = pytest.importorskip("transformers", reason="needs the `neural` extra")
    gpt2 = dict(vocab_size=320, n_embd=32, n_layer=2, n_head=4, n_positions=2048)
    tokens = dict(bos_token_id=0, eos_token_id=0, pad_token_id=0)
    return {
        "llama": t.LlamaConfig(**SHAPE),
        "gpt2": t.GPT2Config(**gpt2, **tokens),
        "mistral": t.MistralConfig(**SHAPE, sliding_window=16),
        "bloom": t.BloomConfig(vocab_size=320, hidden_size=32, n_layer=2, n_head=4, **tokens),
        "mamba": t.MambaConfig(vocab_size=320, hidden_size=32, num_hidden_layers=2, state_size=4, **tokens),
    }


def write_causal(folder, name="llama", template=CHATML, seed=7, ends=True):
    """A checkpoint in a folder, its weights wide enough that answers differ; ends: whether texts end by themselves."""
    torch = pytest.importorskip("torch", reason="needs the `torch` extra")
    transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    torch.manual_seed(seed)
    config = causal_configs()[name]
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    if ends is False:
        model.generation_config.eos_token_id = None
    model.save_pretrained(folder)
    write_byte_tokenizer(folder, template)
    return folder


def write_byte_tokenizer(folder, template=CHATML):
    tokenizers = pytest.importorskip("tokenizers", reason="needs the `neural` extra (tokenizers)")
    transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *letters])}
    merges = [("Ġ", digit) for digit in "0123456789"] + [("1", "0"), ("e", "r"), ("i", "n"), ("t", "h")]
    vocabulary |= {a + b: len(vocabulary) + i for i, (a, b) in enumerate(merges)}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    inner.add_special_tokens(SPECIAL)
    told = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<|end|>", eos_token="<|im_end|>", pad_token="<|end|>"
    )
    told.chat_template = template
    told.save_pretrained(folder)
    return folder


def write_chain(folder, follows, sharpness=4.0):
    """A model of which each token depends on the one before it alone, likely the one that `follows` names for it.

    Attention and layers add nothing; the head points from each token's embedding to the one that follows.
    """
    torch = pytest.importorskip("torch", reason="needs the `torch` extra")
    transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
    write_causal(folder)
    told = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.norm.weight.fill_(1.0)
        table = model.model.embed_tokens.weight
        for before, after in follows.items():
            [first], [then] = (told.encode(text, add_special_tokens=False) for text in (before, after))
            model.lm_head.weight[then] = sharpness * table[first] / table[first].norm()
    model.generation_config.eos_token_id = 2
    model.save_pretrained(folder)
    return folder


def write_published(path):
    """A prompt that is sent as published, for models that say one thing whatever they are asked."""
    text = 'verbatim = true\nmax_tokens = 16\nsystem = "You judge."\nobjective = ""\n'
    path.write_text(f'{text}user = "{{query}} {{passage}} {{passages}} {{count}}. Answer with a number."\n')
    return path
