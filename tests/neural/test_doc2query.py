"""Questions that a T5 writes: drawn as they should be, always the same, and never written twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the `torch` extra")
transformers = pytest.importorskip("transformers", reason="needs the `torch` extra (transformers)")
pytest.importorskip("numba", reason="needs the `run` extra (numba)")

from tests.neural.conftest import WORDS  # noqa: E402 - behind the skip
from tests.neural.t5_small import write_t5  # noqa: E402 - behind the skip
from weir.core.corpus import Corpus, Queries  # noqa: E402 - behind the skip
from weir.plugins.encoders.t5 import QuestionWriter, _drawn  # noqa: E402 - behind the skip
from weir.settings import settings  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip
from weir.systems.protocol import Context  # noqa: E402 - behind the skip

pytestmark = pytest.mark.filterwarnings("default")  # what torch and transformers deprecate is theirs to mend

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def one_thread(home, monkeypatch):
    """Models of toys' size gain nothing from several threads, and lose much where other work goes on."""
    monkeypatch.setenv("WEIR_THREADS", "1")
    settings.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_t5(tmp_path_factory.mktemp("t5"))


@pytest.fixture
def texts():
    rng = np.random.default_rng(6)
    return ["", *(" ".join(rng.choice(WORDS, n)) for n in rng.integers(1, 70, 20))]


def written(folder, texts, **given):
    loaded = QuestionWriter(str(folder), **({"n": 6, "max_words": 12} | given)).load("cpu")
    return [questions for block in loaded.questions(iter(texts)) for questions in block]


def test_the_same_text_gets_the_same_questions_whatever_is_beside_it(folder, texts):
    found = written(folder, texts)
    assert [len(questions) for questions in found] == [6] * len(texts)
    assert len({tuple(questions) for questions in found}) == len(texts)
    assert written(folder, texts[::-1])[::-1] == found
    assert [written(folder, [text])[0] for text in texts[:4]] == found[:4]
    assert written(folder, texts, seed=1) != found


def test_in_batches_only_a_draw_at_a_border_can_turn(folder, texts):
    alone = [q for questions in written(folder, texts) for q in questions]
    for budget in (200, 100_000):
        together = [q for questions in written(folder, texts, batch_tokens=budget) for q in questions]
        assert sum(a != b for a, b in zip(alone, together, strict=True)) <= 1


def test_each_word_is_drawn_from_the_likeliest_by_its_share(folder, texts):
    """The first words of many questions against transformers' own shares."""
    n, k = 4000, 5
    loaded = QuestionWriter(str(folder), n=n, top_k=k, max_words=1).load("cpu")
    batch = loaded.tokenizer([texts[3]])
    [found] = loaded._written(batch)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    ids = torch.from_numpy(batch.ids.astype(np.int64))[None]
    with torch.inference_mode():
        logits = model(input_ids=ids, decoder_input_ids=torch.zeros(1, 1, dtype=torch.long)).logits[0, 0]
    best = logits.topk(k)
    expected = torch.softmax(best.values, 0).numpy()
    counts = Counter(question[0] if question else 1 for question in found)
    assert set(counts) <= set(best.indices.tolist())
    share = np.array([counts[i] / n for i in best.indices.tolist()])
    assert (np.abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n)).all()
    assert expected.max() < 0.9


def test_with_one_word_to_choose_it_writes_as_transformers_does(folder, texts):
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    loaded = QuestionWriter(str(folder), n=2, top_k=1, max_words=20).load("cpu")
    for text in texts[:6]:
        batch = loaded.tokenizer([text])
        ids = torch.from_numpy(batch.ids.astype(np.int64))[None]
        expected = model.generate(ids, max_new_tokens=20, do_sample=False)[0, 1:].tolist()
        expected = expected[: expected.index(1)] if 1 in expected else expected
        assert loaded._written(batch) == [[expected, expected]]


def test_draws_at_the_ends_stay_inside():
    best = torch.tensor([[2.0, 1.0, -90.0]] * 3).topk(3)
    found = _drawn(best, np.array([0.0, 0.9999999999999999, 0.7310]))
    assert found.tolist() == [0, 1, 0]


def test_without_memory_the_batch_is_halved(folder, texts):
    loaded = QuestionWriter(str(folder), n=6, max_words=12, batch_tokens=100_000).load("cpu")
    sizes = []

    class Small:
        """The engine on a device that holds a few texts."""

        def __getattr__(self, name):
            return getattr(loaded.engine, name)

        def encoded(self, batch):
            sizes.append(len(batch))
            if len(batch) > 4:
                raise MemoryError
            return loaded.engine.encoded(batch)

    found = [
        q for block in replace(loaded, engine=Small()).questions(iter(texts)) for qs in block for q in qs
    ]
    expected = [q for questions in written(folder, texts) for q in questions]
    assert max(sizes) > 4
    assert sum(a != b for a, b in zip(found, expected, strict=True)) <= 1


def test_documents_are_enlarged_once(folder, texts, tmp_path):
    corpus = Corpus.of({f"d{n}": {"title": "weir" if n % 2 else "", "text": t} for n, t in enumerate(texts)})
    asked = Queries.of({"q1": "river water", "q2": "stone", "q3": "three"})
    system = parse_system(f'doc2query(model="{folder}", n=6, max_words=12)')
    told = []
    index = system.index(corpus, Context(tmp_path / "index", lambda done, total: told.append(done / total)))
    assert told == sorted(told)
    assert len(set(told)) > 5
    assert index.costs().reused_documents == 0
    run = index.search(asked, 10)
    questions = written(folder, corpus.view("title text").tolist())
    enlarged = Corpus.of(
        {
            f"d{n}": {"title": "weir" if n % 2 else "", "text": f"{text} {' '.join(asked)}"}
            for n, (text, asked) in enumerate(zip(texts, questions, strict=True))
        }
    )
    assert run.to_dict() == parse_system("bm25").index(enlarged).search(asked, 10).to_dict()
    again = parse_system(f'doc2query(rm3, model="{folder}", n=6, max_words=12)').index(corpus)
    assert again.costs().reused_documents == len(texts)
    assert system.open(corpus, Context(tmp_path / "index")).search(asked, 10).to_dict() == run.to_dict()
    more = Corpus.of({"new": "a red fish", "old": texts[4]})
    assert system.index(more).costs().reused_documents == 1


SCRIPT = """
import os, signal, sys
from tests.neural.test_doc2query import MANY  # noqa: E402 - behind the skip
from weir.plugins.encoders.t5 import LoadedWriter  # noqa: E402 - behind the skip
from weir.systems import parse_system  # noqa: E402 - behind the skip

plain, windows, dies = LoadedWriter._written, [0], int(sys.argv[2])

def written(self, batch):
    windows[0] += 1
    if windows[0] == dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self, batch)

LoadedWriter._written = written
parse_system(sys.argv[1]).index(MANY)
print(windows[0])
"""
MANY = Corpus.of({f"d{n}": f"river {n} water flows over stone {n % 7}" for n in range(100)})


def test_killed_it_loses_the_texts_it_was_at_and_nothing_else(folder, tmp_path, home):
    system = f'doc2query(model="{folder}", n=3, max_words=6)'

    def ran(dies):
        environment = os.environ | {"WEIR_HOME": str(tmp_path)}
        command = [sys.executable, "-c", SCRIPT, system, str(dies)]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def kept(folder):
        return {p.name: p.read_bytes() for p in (folder / "questions").rglob("*") if p.suffix == ".bin"}

    assert ran(60).returncode == -9
    assert ran(0).stdout == f"{100 - 48}\n"  # three windows of 16 were whole
    parse_system(system).index(MANY)
    assert kept(tmp_path) == kept(home)
