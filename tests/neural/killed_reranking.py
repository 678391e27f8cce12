"""A process that re-ranks and is killed in the middle of writing an answer."""

from __future__ import annotations

import os
import signal
import warnings

from weir.core.corpus import Corpus, Queries
from weir.services.answers import AnswerStore
from weir.systems import parse_system

ZYGOTE = """
import os, sys
import torch, transformers
import weir.plugins.llm.rerank
from tests.neural.killed_reranking import die_at_the_fifth_answer, rerank
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.environ["WEIR_HOME"], name = line.rstrip().split("\t")
        die_at_the_fifth_answer()
        rerank(name)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports once and forks before anything is computed: a process for each method, killed on its own."""
ASKED = Queries.of({f"q{n}": f"weir river {n}" for n in range(5)})
CORPUS = Corpus.of({f"d{n}": f"weir river {n} " + "dam " * (n % 4) for n in range(6)})


def rerank(name):
    """Re-rank by a system of that name: the run, and how the model was used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most answers of random weights have no verdict
        system = parse_system(name).index(CORPUS)
        run = system.search(ASKED, 6)
    return run.to_dict(), system.costs().services[-1]


def die_at_the_fifth_answer():
    """Let this process be killed (-9) when half of its fifth answer is written."""
    add, added = AnswerStore.add, []

    def add_or_die(store, key, value):
        added.append(key)
        if len(added) == 5:
            store.file.write(b'{"key":"0123')
            os.kill(os.getpid(), signal.SIGKILL)
        add(store, key, value)

    AnswerStore.add = add_or_die


def kept(home):
    """The keys of the answers in a home, of whole lines alone."""
    found = [path.read_bytes().split(b"\n")[:-1] for path in home.glob("answers/*/answers.jsonl")]
    return [line[8:40] for lines in found for line in lines]
