"""What is fuzzed: a table of functions, each of which gives one input to the code that reads it.

An input is a line that says how the body behind it is read, such as the name of a file, and that body. A target may end
in an answer or in an error of Weir's; any other exception, a warning of NumPy's and a failed assertion is a finding.
To add one, decorate a function here and lay nearly valid inputs in `fuzz/seeds/NAME/`.
"""

from __future__ import annotations

import contextlib
import gzip
import http.server
import io
import json
import math
import random
import re
import shlex
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests import peers, strategies
from tests.property import test_document_filter, test_late_search, test_search_exact, test_vectors_search
from tests.unit import (
    brooklet,
    search_servers,
    test_bm25,
    test_http_system,
    test_import_formats,
)
from tests.unit.model_servers import LocalHandler

import weir
from fuzz.mutations import altered
from weir.cli.main import INTERNAL, SHORTAGE, main
from weir.core.corpus import Corpus, Queries
from weir.core.filters import parse_filter
from weir.core.judged import Judged
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.scores import JudgedScores, SystemScores
from weir.datasets.load import Dataset
from weir.errors import RankingWarning, WeirError
from weir.experiment.experiment import Experiment
from weir.experiment.results import finished_cells
from weir.experiment.stages import _digest as record_digest
from weir.experiment.verify import verified
from weir.files.formats import file_source, format_of
from weir.files.frames import qrels_from, run_from
from weir.files.integrity import Checksum
from weir.files.intents import read_intents
from weir.files.journal_labels import read_judges, read_preferences
from weir.files.label_files import read_labels, read_raters
from weir.files.network import KeptConnection
from weir.files.pickles import read_pickle
from weir.files.query_files import read_groups, read_weights
from weir.files.runs import join_run_file, judgments_of, read_qrels, read_repeating_run, read_run
from weir.files.score_files import read_baseline, read_scores, read_scores_value
from weir.measures import parse_measure, score_run
from weir.models.batching import Ragged
from weir.models.checkpoints import read_checkpoint
from weir.models.hosted import Hosted
from weir.plugins.encoders.maxsim_search import search_tokens
from weir.plugins.importing import import_files
from weir.plugins.llm.chat import ChatModel
from weir.plugins.llm.panel import judge_prompt, judge_prompts, read_grade, verdict_form
from weir.plugins.llm.prompts import ChatPrompt, prompt_template
from weir.plugins.llm.verdicts import (
    ChatReply,
    VerdictForm,
    choice_chances,
    expected_score,
    read_choice,
    read_order,
    read_requirements,
    read_score,
)
from weir.plugins.questions.document_rules import read_document_rules
from weir.plugins.questions.spans import read_spans
from weir.plugins.servers.elasticsearch import read_elastic_settings
from weir.plugins.servers.endpoint import Http, read_template
from weir.plugins.servers.postgres import read_postgres_settings
from weir.plugins.servers.service_reranker import ServiceReranker
from weir.services.answers import answer_key, answer_store
from weir.services.requests import AttemptError, Clock, Limits, MeteredClient, Spent
from weir.systems import BM25, parse_system
from weir.systems.expression import parse_systems
from weir.systems.lexical.passages import Chunked
from weir.systems.remote.command import Command
from weir.systems.vectors.exact_search import ArraySource, search

KEY = "sk-fuzzed-9f8e7d6c5b4a"
"""The key that servers are sent: it may stand in no file and in no message."""
Check = Callable[[str, bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """A kind of input.

    check: gives (the first line, the body, an empty folder) to Weir; inputs: how many the fixed-seed run tries; words:
    of the format, which are put into bodies; seconds: of processor time that one may take; made: seeds beside those in
    files; drawn: whether bodies are no text, but bytes from which values are drawn.
    """

    name: str
    check: Check
    inputs: int
    words: tuple[bytes, ...]
    seconds: float
    made: Callable[[], Iterable[bytes]]
    drawn: bool

    def seeds(self) -> list[bytes]:
        """The inputs that are changed: those in files, by name, and those that are made."""
        folder = Path(__file__).parent / "seeds" / self.name
        return [path.read_bytes() for path in sorted(folder.glob("*"))] + list(self.made())

    def run(self, data: bytes, folder: Path) -> object:
        """Try one input; raises WeirError for what is refused, and anything else for a finding."""
        head, _, body = data.partition(b"\n")
        return self.check(head.decode("utf-8", "replace"), body, folder)


TARGETS: dict[str, Target] = {}


def target(
    inputs: int,
    words: str = "",
    seconds: float = 5.0,
    made: Callable[[], Iterable[bytes]] = tuple,
    drawn: bool = False,
) -> Callable[[Check], Check]:
    """Register a function as a target under its own name; arguments as `Target`."""

    def registered(check: Check) -> Check:
        name = check.__name__
        TARGETS[name] = Target(name, check, inputs, tuple(words.encode().split()), seconds, made, drawn)
        return check

    return registered


# ----------
# Files.


def written(head: str, body: bytes, folder: Path) -> Path | None:
    """The body as a file of that name, packed where the name says so; None for a name that no test needs."""
    name, _, packed = head.partition(" ")
    if not re.fullmatch(r"[\w-]{0,8}(\.\w{1,8}){0,3}", name) or not name.strip("."):
        return None
    path = folder / name
    path.write_bytes(gzip.compress(body, 1) if packed == "packed" else body)
    return path


def outcome(action: Callable[[], object]) -> object:
    """What an action returns, or the type and the text of its error."""
    try:
        return action()
    except WeirError as error:
        return type(error).__name__, str(error)


def same(one: object, other: object, body: bytes) -> bool:
    """Whether two engines ended alike; of a cell whose quotation marks do not end either line may be named."""
    if isinstance(one, tuple) and isinstance(other, tuple) and b'"' in body:
        return bool(one[0] == other[0])
    return one == other


def values_of(table: Qrels | Run | Judged) -> list[object]:
    """What a table holds, comparable."""
    if isinstance(table, Judged):
        columns = (table.query, table.rank, table.grade, table.retrieved, table.tied, table.first, table.last)
        return [table.ignored, table.stranger, *(column.tolist() for column in columns)]
    return [list(map(repr, table.to_dict().items()))]


COLUMNS = (
    "qid query_id query-id docno doc_id corpus-id score rank grade rel relevance label origin rater "
    "judge Q0 iter 0 {} [] : , null"
)
TABLE = {"query_id": ["q1", "q1", "q2"], "doc_id": ["d1", "d2", "d1"], "score": [2.5, 1.0, 0.5]}


def tables() -> Iterator[bytes]:
    """Rankings in the formats that are no text."""
    import pickle

    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table(TABLE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        for codec in ("none", "snappy"):
            parquet.write_table(table, path, compression=codec)
            yield b"x.parquet\n" + path.read_bytes()
        feather.write_feather(table, str(path), compression="uncompressed")
        yield b"x.arrow\n" + path.read_bytes()
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
        yield b"x.arrow\n" + path.read_bytes()
    nested = {"q1": {"d1": 2.5, "d2": 1.0}, "q2": {"d1": 0.5}}
    for value in (
        nested,
        {"q1": ["d1", "d2"]},
        {"q1": dict.fromkeys("ab", np.float32(0.5))},
        {"q1": np.array([1.0, 2.0])},
    ):
        for protocol in (2, 4):
            yield b"x.pkl\n" + pickle.dumps(value, protocol)


JUDGED = Qrels.of({"q1": {"d1": 2, "d2": 0, "d3": -1}, "q2": {"d1": 1}, "1": {"d1": 1}})


@target(750, COLUMNS, made=tables)
def rankings(head: str, body: bytes, folder: Path) -> None:
    """A run of any format: both engines read it alike, and joining it while it is read is joining what was read."""
    path = written(head, body, folder)
    if path is None:
        return
    read = [
        outcome(lambda engine=engine: values_of(read_run(path, engine=engine)))
        for engine in ("numpy", "numba")
    ]
    assert same(*read, body), read
    joined = [
        outcome(lambda engine=engine: values_of(join_run_file(path, JUDGED, engine=engine)))
        for engine in ("numpy", "numba")
    ]
    assert same(*joined, body), joined
    held = outcome(lambda: values_of(Judged.of(read_run(path), JUDGED)))
    if isinstance(held, tuple):  # of two documents that stand twice either may be named
        assert isinstance(joined[0], tuple), (joined[0], held)
        assert joined[0][0] == held[0], (joined[0], held)
    else:
        assert joined[0] == held, (joined[0], held)
    read_repeating_run(path)


@target(750, COLUMNS, made=tables)
def judgments(head: str, body: bytes, folder: Path) -> None:
    """Judgments of any format, and of intents: both engines read them alike."""
    path = written(head, body, folder)
    if path is None:
        return
    with contextlib.suppress(WeirError):
        values_of(read_intents(path).numbered)
    form = format_of(path, "qrels")
    if form.rows:
        source = file_source(path, form, "qrels")
        small, large = (
            outcome(lambda size=size: values_of(judgments_of(replace(source, size=size))[0]))
            for size in (0, 1 << 40)
        )
        assert same(small, large, body), (small, large)
    values_of(read_qrels(path))


@target(750, COLUMNS + " relevant irrelevant yes no partly weight group", made=tables)
def labels(head: str, body: bytes, folder: Path) -> None:
    """Labels of people and of other judges, groups and weights of queries."""
    path = written(head, body, folder)
    if path is None:
        return
    for read in (read_raters, read_groups, read_weights, read_labels):
        with contextlib.suppress(WeirError):
            read(path)
    read_labels(path)


def journals() -> Iterator[bytes]:
    """A journal of judgments, without and with its log."""
    from weir.plugins.app.judging.journal import Event, Journal

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        journal = Journal.open(path)
        yield b"x.sqlite\n" + path.read_bytes()
        for n in range(6):
            journal.append(
                Event("ann", "graded", "q", f"d{n}", grade=n % 3), Event("ben", "unable", "q", f"d{n}")
            )
            journal.append(
                Event("ben", "graded", "q", f"d{n}", ("judge", "again", "decide")[n % 3], grade=n % 2)
            )
        journal.close()
        yield b"x.sqlite\n" + path.read_bytes()


@target(200, "judge query document grade accepted labels settled events", made=journals)
def judging_journals(_: str, body: bytes, folder: Path) -> None:
    """The journal of people's judgments, which SQLite reads."""
    path = folder / "x.sqlite"
    path.write_bytes(body)
    for read in (read_qrels, read_raters, read_judges, read_preferences):
        with contextlib.suppress(WeirError, RankingWarning):
            read(path)


def written_scores() -> Iterator[bytes]:
    """The three files that hold scores."""
    from weir.files.score_files import write_baseline, write_scores, write_scores_value

    scores = weir.evaluate(
        {"q1": {"d1": 1}, "q2": {"d2": 2}}, {"q1": {"d1": 1.0}, "q2": {"d1": 1.0}}, ["nDCG@10", "gmAP"]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        write_scores(scores, path)
        yield b"rows\n" + path.read_bytes()
        write_scores_value(scores, path)
        yield b"value\n" + path.read_bytes()
        write_baseline(SystemScores("bm25", {"data": JudgedScores(scores, {"q1": "a1", "q2": "b2"})}), path)
        yield b"baseline\n" + path.read_bytes()


@target(600, "query measure value mean geometric null NaN nDCG@10 # weir baseline", made=written_scores)
def scores(head: str, body: bytes, folder: Path) -> None:
    """Scores by query, a Scores as it is saved, and a baseline."""
    path = folder / "x"
    path.write_bytes(body)
    {"rows": read_scores, "value": read_scores_value}.get(head, read_baseline)(path)


@target(400, made=tables)
def pickles(head: str, body: bytes, folder: Path) -> None:
    """A pickle, which is read as data."""
    path = folder / "x.pkl"
    path.write_bytes(body)
    read_pickle(path)


COLLECTION = (
    "corpus.jsonl",
    "queries.jsonl",
    "qrels/test.tsv",
    "collection.toml",
    "corpus.tsv",
    "queries.tsv",
)


def collection_files() -> Iterator[bytes]:
    """The files of a small collection."""
    with tempfile.TemporaryDirectory() as folder:
        root = brooklet.write_collection(Path(folder) / "c")
        files = sorted(root.rglob("*.*"))
        for path in files:
            yield f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as zipped:
            for path in files:
                zipped.write(path, f"c/{path.relative_to(root).as_posix()}")
        yield b"c.zip\n" + archive.getvalue()


@target(
    150,
    "_id title text metadata candidates excluded instruction filter lang documents queries qrels split fields null",
    made=collection_files,
)
def collections(head: str, body: bytes, folder: Path) -> None:
    """A collection one of whose files is another: read, then searched."""
    if head == "c.zip":
        (folder / head).write_bytes(body)
        searched(weir.load(folder / head))
    if head not in COLLECTION:
        return
    root = brooklet.write_collection(folder / "c")
    if head.endswith(".tsv") and "/" not in head:
        (root / head).with_suffix(".jsonl").unlink()
    (root / head).write_bytes(body)
    searched(weir.load(root))


def searched(dataset: Dataset) -> None:
    """Read everything of a collection, and search it."""
    run = BM25().index(dataset.corpus).search(dataset.queries, 3)
    values_of(Judged.of(run, dataset.qrels))
    fields = dataset.corpus.metadata
    for name in fields.names()[:5] if fields is not None else ():
        fields.column(name)


BERT = {"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}
CHECKPOINT: dict[str, object] = {
    "modules.json": [
        {"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
        {"type": "sentence_transformers.models.Dense", "path": "2_Dense"},
        {"type": "sentence_transformers.models.Normalize", "path": "3_Normalize"},
    ],
    "config.json": BERT,
    "sentence_bert_config.json": {"max_seq_length": 128},
    "tokenizer_config.json": {"model_max_length": 512},
    "config_sentence_transformers.json": {
        "prompts": {"query": "q: "},
        "default_prompt_name": "query",
        "similarity_fn_name": "dot",
    },
    "1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    "2_Dense/config.json": {"activation_function": "torch.nn.modules.activation.Tanh"},
}


def checkpoint_files() -> Iterator[bytes]:
    """The files that say how a checkpoint encodes."""
    for name, value in CHECKPOINT.items():
        yield f"{name}\n{json.dumps(value)}".encode()


@target(
    600,
    "models.Pooling models.Transformer path pooling_mode lasttoken query passage roberta null",
    made=checkpoint_files,
)
def checkpoints(head: str, body: bytes, folder: Path) -> None:
    """The description of an encoder, one of whose files is another."""
    if head not in CHECKPOINT:
        return
    for name, value in CHECKPOINT.items():
        path = folder / "c" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body if name == head else json.dumps(value).encode())
    read_checkpoint(folder / "c")


TOML = (
    "url key [limits] attempts pause_s [answer] results id score [values] index fields = ' \" [[ ]] "
    "{query} {k} extends true datasets systems measures k prefix table"
)


@target(750, TOML)
def settings_files(head: str, body: bytes, folder: Path) -> None:
    """TOML: experiments, templates and settings of servers, prompts."""
    path = folder / "x.toml"
    path.write_bytes(body)
    prompt_template.cache_clear()
    judge_prompt.cache_clear()
    readers: dict[str, Callable[[Path], object]] = {
        "experiment": Experiment.read,
        "template": read_template,
        "elasticsearch": read_elastic_settings,
        "postgres": read_postgres_settings,
        "prompt": lambda path: prompt_template(str(path), ("query", "passage")),
        "judge": lambda path: judge_prompt(str(path)),
    }
    readers.get(head, Experiment.read)(path)


RULED = weir.Qrels.of({"q1": ["d1"], "q2": ["d2"]})
ASKED = weir.Queries.of({"q1": "what is one", "q2": "what is five"})
PASSAGES = weir.Corpus.of({"d1": "one two  three\u0085four", "d2": "five"})


@target(
    400,
    "rule document for value forbidden superseded valid-from valid-until asked is query:q1 user:u group:g * d1 d2 "
    '2026-11-30 2026-11-30T09:00+01:00 \t {"query": "document": "text": "start": "end": one two } 0 3 -1 1e3',
)
def rules(head: str, body: bytes, folder: Path) -> None:
    """Rules of documents beside judgments, and gold passages of documents."""
    path = folder / "document-rules.tsv"
    path.write_bytes(body)
    if head == "spans":
        read_spans(path, PASSAGES, ASKED).cut_by(Chunked(words=2, overlap=0), PASSAGES, RULED.queries)
        return
    found = replace(RULED, beside=read_document_rules(path, RULED))
    score_run(found, weir.Run.of({"q1": ["d2", "d1"], "q2": ["d1"]}), ["Leak@1", "Stale", "Superseded"])


def foreign_files() -> Iterator[bytes]:
    """The files of other tools that the tests read."""
    for name, content, *_ in test_import_formats.CASES.values():
        yield f"{name}\n".encode() + (content if isinstance(content, bytes) else content.encode())


@target(
    250,
    "query queries qrel corpus docs details requests relevant retrieved results hits ratings query-id score grade id",
    made=foreign_files,
)
def imports(head: str, body: bytes, folder: Path) -> None:
    """A file of another tool: a whole folder is written, or nothing."""
    path = written(head, body, folder)
    if path is None:
        return
    try:
        import_files([path], folder / "out")
    except WeirError:
        assert not (folder / "out").exists()
        raise
    json.loads((folder / "out" / "import.json").read_text(encoding="utf-8"))


@target(750, "q1 d1 score query_id doc_id relevance")
def values(head: str, body: bytes, folder: Path) -> None:
    """Rankings and judgments as values of Python, both ways of joining alike."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return
    if head == "frame" and isinstance(value, list):
        value = dict(zip(("query_id", "doc_id", "score"), value, strict=False))
    with contextlib.suppress(WeirError):
        values_of(qrels_from(value))
    values_of(run_from(value))


# ----------
# Expressions.


SYSTEM_WORDS = (
    "bm25 rm3 rrf dense splade colbert rerank llm score fuse command http >> ( ) , = { } [ ] k1 b "
    "depth k fields analyzer lambda ** * : not if else ' \" \\ 0x1 1j b'' f'' ..."
)


@target(2000, SYSTEM_WORDS)
def system_names(head: str, body: bytes, folder: Path) -> None:
    """Names of systems and of grids: what is built prints a name that builds it again."""
    for system in parse_systems(body.decode("utf-8", "replace")):
        again = parse_system(str(system))
        assert str(again) == str(system)


MEASURE_WORDS = (
    "nDCG AP RR P R ERR RBP bpref condensed gain exp rel max_grade @ ( ) = ' ndcg_cut_10 map "
    "recall_100 MRR@10 ties=expected , inf nan 1e9"
)


@target(1500, MEASURE_WORDS)
def measure_names(head: str, body: bytes, folder: Path) -> None:
    """Measures and conventions: they print and parse back, and their values are numbers within their bounds."""
    text = body.decode("utf-8", "replace")
    if head == "conventions":
        weir.measures.evaluate.parse_conventions(text)
        return
    measure = parse_measure(text)
    assert parse_measure(str(measure)) == measure
    found = score_run(JUDGED, Run.of({"q1": {"d1": 1.0, "d4": 0.5, "d2": 0.5}, "q2": {"d3": 1.0}}), [measure])
    assert not np.isinf(found.values).any()


@target(1500, "lang year tags day and or not in == != < >= ( ) [ ] ' \" field( true 2020 1e400 _id")
def filters(head: str, body: bytes, folder: Path) -> None:
    """Filters of documents."""
    parsed = parse_filter(body.decode("utf-8", "replace"))
    mask = parsed.mask(test_document_filter.CORPUS)
    assert parse_filter(str(parsed)).mask(test_document_filter.CORPUS).tolist() == mask.tolist()


# ----------
# Answers of models and of servers.


VERDICT_WORDS = (
    'kofabimo: kofabimo score: Answer: [1] > [2] > [3] {"score": } ```json ``` <think> </think> yes '
    "no 7/10 ** I cannot 评分 10 0"
)


@target(2000, VERDICT_WORDS)
def verdicts(head: str, body: bytes, folder: Path) -> None:
    """Answers of language models: scores, choices, orders, requirements and grades within their bounds."""
    text, rng = body.decode("utf-8", "replace"), np.random.default_rng(list(body[:64]))
    logs = [float(x) for x in rng.choice([0.0, -0.1, -1.0, -50.0, 700.0, -1e308], 3)]
    odds = tuple(
        (piece, {piece: logs[0], "1": logs[1], "10": logs[2]}) for piece in re.findall(r"\s*\S+", text)
    )
    form = VerdictForm(
        "kofabimo" if head != "json" else "", head == "json", "score:" if head == "line" else ""
    )
    reply = ChatReply(text, "length" if head == "cut" else "stop", choices=odds if len(text) < 500 else ())
    scored = read_score(reply, form)
    assert scored.score is None or 0 <= scored.score <= 10
    order = read_order(reply, form, 3)
    assert sorted(order.order) == [0, 1, 2]
    choice, _ = read_choice(reply, form, 3)
    assert choice in (None, 1, 2, 3)
    expected = expected_score(reply, scored.written)
    assert expected is None or 0 <= expected <= 10
    chances = choice_chances(reply, choice or 1, 3)
    assert chances is None or abs(sum(chances) - 1) < 1e-9
    read_requirements(reply)
    prompt = judge_prompt(judge_prompts()[len(body) % len(judge_prompts())])
    grade, _ = read_grade(reply, verdict_form(prompt, "kofabimo"), prompt.scale)
    assert grade is None or grade in prompt.scale.grades


ANSWERS: dict[str, Any] = {}
"""What the server answers next: status, body and headers."""
QUICK = Limits(attempts=1, pause=0.0, timeout=10.0, whole=10.0)


class FuzzedHandler(LocalHandler):
    """Answers every request as ANSWERS says."""

    def do_GET(self) -> None:
        """Answer, whatever was asked."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with contextlib.suppress(OSError):
            self.reply(ANSWERS["status"], ANSWERS["body"], ANSWERS["headers"])

    do_POST = do_PUT = do_DELETE = do_GET


class QuietServer(http.server.ThreadingHTTPServer):
    """A server that prints nothing where a client hangs up."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing to say."""


def served(handler: type[LocalHandler]) -> str:
    """The address of a server that runs as long as this process."""
    httpd = QuietServer(("127.0.0.1", 0), handler)
    httpd.daemon_threads = True
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{httpd.server_port}"


@cache
def server() -> str:
    """The address of a server that answers as ANSWERS says."""
    return served(FuzzedHandler)


def answering(head: str, body: bytes) -> tuple[str, str]:
    """(what is asked, the address of a server that answers with the body) of a first line such as "openai 200"."""
    kind, _, status = head.partition(" ")
    code = int(status) if re.fullmatch(r"[2-5]\d\d", status) and status not in ("204", "304") else 200
    ANSWERS.update(status=code, body=body, headers={"Content-Type": "application/json"})
    if code in (429, 503):
        ANSWERS["headers"]["Retry-After"] = body[:20].decode("latin-1").replace("\n", " ").replace("\r", " ")
    return kind, server()


def without_key(folder: Path, *messages: object) -> None:
    """The key stands nowhere."""
    for message in messages:
        assert KEY not in str(message), message
    for path in folder.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


@contextlib.contextmanager
def secretly(folder: Path) -> Iterator[None]:
    """A block after which the key stands in no file and in no error."""
    try:
        yield
    except (WeirError, AttemptError) as error:
        without_key(folder, error)
        if isinstance(error, WeirError):
            raise
    without_key(folder)


JSON_WORDS = (
    "choices message content finish_reason usage error index embedding results relevance_score hits "
    f"_id _score {KEY} data text score id logprobs"
)


@target(350, JSON_WORDS)
def chat_answers(head: str, body: bytes, folder: Path) -> None:
    """Answers of chat services in each provider's format."""
    kind, url = answering(head, body)
    model = {"anthropic": "anthropic:m", "gemini": "gemini:m"}.get(kind, "openai:m")
    with secretly(folder), contextlib.closing(KeptConnection()) as connection:
        client = ChatModel(model, base=f"{url}/v1", key="WEIR_KEY_FUZZ").load(QUICK)
        asked = client.request_body(ChatPrompt("s", "u", 10, log_probabilities=5))
        reply = client.reply(connection, asked, 10, lambda _: None)
        without_key(folder, reply)
        assert ChatReply.of(json.loads(json.dumps(reply.to_json()))) == reply


@target(350, JSON_WORDS)
def vectors_answers(head: str, body: bytes, folder: Path) -> None:
    """Answers of services of embeddings."""
    kind, url = answering(head, body)
    model = {"cohere": "cohere:m", "voyage": "voyage:m"}.get(kind, "openai:m")
    with secretly(folder):
        found = Hosted(model, base=f"{url}/v1", key="WEIR_KEY_FUZZ").load(limits=QUICK).encode(["a"])
        assert np.isfinite(found).all()


@target(350, JSON_WORDS)
def rerank_answers(head: str, body: bytes, folder: Path) -> None:
    """Answers of re-ranking services."""
    kind, url = answering(head, body)
    kind = kind if kind in ("cohere", "voyage", "jina", "tei", "vllm") else "cohere"
    with secretly(folder), contextlib.closing(KeptConnection()) as connection:
        client = ServiceReranker(f"{kind}:m", base=f"{url}/v1", key="WEIR_KEY_FUZZ").client()
        client = replace(client, metered=MeteredClient(client.metered.key, QUICK, Clock(), Spent()))
        assert np.isfinite(client.scores(connection, "q", ["a", "b"], lambda _: None)).all()


DOCUMENTS = Corpus.of({f"d{n}": f"text {n}" for n in range(20)})


@target(
    350,
    JSON_WORDS
    + " docs response root children points payload Get _additional objectID _shards total failed timed_out",
)
def search_answers(head: str, body: bytes, folder: Path) -> None:
    """Answers of search servers, through each template: rankings of documents that are there, with finite scores."""
    kind, url = answering(head, body)
    kind = kind if kind in test_http_system.VALUES else "elasticsearch"
    path = folder / "x.toml"
    auth = "" if kind == "algolia" else '[headers]\nAuthorization = "Bearer ${WEIR_KEY_FUZZ}"\n'
    path.write_text(
        f'extends = "{kind}"\nurl = "{url}"\n[limits]\nattempts = 1\n{auth}[values]\n{test_http_system.VALUES[kind]}\n',
        "utf-8",
    )
    with secretly(folder):
        run = Http(str(path)).index(DOCUMENTS).search(Queries.of({"q": "text"}), 5)
        assert np.isfinite(run.score).all()
        assert len(run.doc) <= 5


class AlteredHandler(search_servers.ElasticHandler):
    """A server that holds to Elasticsearch's API, of whose answers some are altered as ALTERED says."""

    def reply(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        """Answer rightly, or with another value, status or cut."""
        rng: random.Random = ANSWERS["rng"]
        if rng.random() < ANSWERS["share"]:
            body = altered(json.loads(json.dumps(body)), rng, JSON_WORDS.encode().split())
        if rng.random() < ANSWERS["share"] / 5:
            status = rng.choice((201, 400, 403, 404, 409, 413, 429, 500, 503))
        super().reply(status, body, headers)


@cache
def elastic_server() -> tuple[str, search_servers.ElasticManners]:
    """(address, what it holds) of a server that runs as long as this process."""
    manners = search_servers.ElasticManners()
    return served(type("Altered", (AlteredHandler,), {"manners": manners})), manners


@target(30, drawn=True, seconds=10.0)
def elasticsearch(head: str, body: bytes, folder: Path) -> None:
    """An index that Weir fills, on a server some of whose answers are altered."""
    url, manners = elastic_server()
    manners.indexes.clear()
    ANSWERS.update(rng=random.Random(body), share=(0.05, 0.15, 0.4)[len(body) % 3])
    path = folder / "x.toml"
    path.write_text(f'url = "{url}"\nkey = "WEIR_KEY_FUZZ"\n', "utf-8")
    with secretly(folder):
        run = parse_system(f'elasticsearch("{path}")').index(DOCUMENTS).search(Queries.of({"q": "text 1"}), 5)
        assert np.isfinite(run.score).all()


@target(75, JSON_WORDS, seconds=10.0)
def program_answers(head: str, body: bytes, folder: Path) -> None:
    """Answers of a program, on its standard output."""
    path = folder / "x.jsonl"
    path.write_bytes(body)
    run = (
        Command(f"cat {path}", timeout_s=5.0).index(DOCUMENTS).search(Queries.of({"q": "text", "r": "1"}), 5)
    )
    assert np.isfinite(run.score).all()


@target(350, JSON_WORDS)
def kept_answers(head: str, body: bytes, folder: Path) -> None:
    """A damaged file of kept answers: what is read is what was written, or is asked for again."""
    keys = [answer_key({"n": n}) for n in range(3)]
    with answer_store("fuzz", {"a": 1}) as store:
        for n, key in enumerate(keys):
            store.add(key, {"answer": n})
    path = next(folder.rglob("answers.jsonl"))
    whole = path.read_bytes()
    at = len(body) * 7919 % (len(whole) + 1)
    path.write_bytes(whole[:at] + body + whole[at + len(head) :])
    with answer_store("fuzz", {"a": 1}) as store:
        for n, key in enumerate(keys):
            assert store.answer(key) in (None, {"answer": n})


# ----------
# Results folders.


@cache
def finished() -> dict[str, bytes]:
    """The files of a small results folder, and of its collection."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        collection = brooklet.write_collection(root / "data")
        Experiment((str(collection),), ("bm25", "rm3", "rrf(bm25, rm3)"), ("nDCG@10", "AP")).execute(
            root / "results"
        )
        files = sorted(path for path in (root / "results").rglob("*") if path.is_file())
        return {path.relative_to(root / "results").as_posix(): path.read_bytes() for path in files}


def finished_seeds() -> Iterator[bytes]:
    """Each of its files that are text."""
    for name, data in finished().items():
        if name.endswith((".json", ".jsonl", ".trec")):
            yield f"{name}\n".encode() + data


def resealed(root: Path, path: Path) -> None:
    """Let a record's checksums be those of what it says, and of what its files hold, as somebody would who forges."""
    for record in (path, *path.parent.glob("*.json")):
        try:
            value = json.loads(record.read_bytes())
            for name in value["files"] if record != path else ():
                value["files"][name] = Checksum.of(record.parent / name).to_json()
            value.pop("check", None)
            value["check"] = record_digest(value)
        except (ValueError, TypeError, KeyError, OSError, AttributeError, RecursionError):
            continue
        record.write_text(json.dumps(value, ensure_ascii=False), "utf-8", "surrogatepass")


@target(
    40,
    "rows mean low high declared made cost facts files inputs measures nDCG@10 system k 0.5 NaN",
    seconds=20.0,
    made=finished_seeds,
)
def results_folders(head: str, body: bytes, folder: Path) -> None:
    """A results folder one of whose files was changed, with its checksums or without: verified, shown, compared."""
    files = finished()
    if head not in files:
        return
    root = folder / "results"
    for name, data in (files | {head: body}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    if len(body) % 2:
        resealed(root, root / head)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    for one in verified(root):
        str(one)
    actions: tuple[Callable[[], object], ...] = (
        lambda: str(weir.results(root)),
        lambda: str(weir.verify(root)),
        lambda: str(weir.compare(root)),
        lambda: [list(cell.named_rows()) for cell in finished_cells(root)],
    )
    for action in actions:
        with contextlib.suppress(WeirError):
            action()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


# ----------
# Commands.


COMMAND_FILES = {
    "qrels": "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\nq3 0 d3 1\n",
    "labels": "q1 0 d1 1\nq1 0 d2 1\nq2 0 d1 1\n",
    "run": "q1 Q0 d1 1 2.5 a\nq1 Q0 d4 2 1 a\nq2 Q0 d2 1 1 a\nq3 Q0 d3 1 1 a\n",
    "other": "q1 Q0 d2 1 2.5 b\nq1 Q0 d1 2 2.5 b\nq2 Q0 d1 1 1 b\n",
    "groups": "q1\ta\nq2\tb\nq3\tb\n",
}
OPTIONS = (
    "qrels run other labels groups -m -o --json --csv --per-query --by --ties --level --correction --samples --seed "
    "-k nDCG@10 AP RR 0 1 -1 0.05 1e9 nan inf --help --markdown --latex --rel --groups --missing --test --measure 10 "
    "100 out.json out.trec rrf combsum --weights 1,2 --raw"
)


@target(150, OPTIONS, seconds=20.0)
def commands(head: str, body: bytes, folder: Path) -> None:
    """Command lines: none ends as a bug, and a refusal says why."""
    text = body.decode("utf-8", "replace")
    if re.search(
        r"\.\.|/|~|\0|\$|fetch|judge|doctor|adapt", text
    ):  # nothing outside the folder, no network, no compiler
        return
    try:
        arguments = shlex.split(text)
    except ValueError:
        return
    for name, content in COMMAND_FILES.items():
        (folder / name).write_text(content, "utf-8")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    assert code not in (INTERNAL, SHORTAGE), err.getvalue()
    assert code != 2 or err.getvalue().strip(), "no word"


# ----------
# Two ways to one number.


EASY = hypothesis_settings(database=None, deadline=None, max_examples=1)


def values_drawn(test: Any) -> Callable[[bytes], object]:  # noqa: ANN401  hypothesis types what it decorates as a function
    """A test of hypothesis as a function of the bytes from which its values are drawn."""
    one: Callable[[bytes], object] = EASY(test).hypothesis.fuzz_one_input
    return one


Trial: TypeAlias = tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]


def zeros(trial: Trial) -> Trial:
    """A judged zero for queries that are judged below 0 alone, of which trec_eval 9 reads memory it never wrote."""
    run, qrels = trial
    return run, {q: row if max(row.values()) >= 0 else row | {next(iter(row)): 0} for q, row in qrels.items()}


MODERATE = strategies.trials(st.integers(-1, 4), strategies.scores.filter(lambda s: abs(s) < 1e30)).map(zeros)


@values_drawn
@given(MODERATE, st.lists(strategies.measure_texts().filter(peers.has_peer), min_size=1, max_size=5))
def _trec_eval(trial: Trial, measures: list[str]) -> None:
    run, qrels = trial
    known = [text for text in measures if not re.search(r"rel=(0|-|\d+\.)|\de-?\d", text)]
    if not known:
        return
    theirs = peers.by_trec_eval(qrels, run, known)
    ours = score_run(Qrels.of(qrels), Run.of(run, ties="trec9"), known)
    for measure in map(str, ours.measures):
        for query, value in ours[measure].items():
            assert abs(value - theirs[measure].get(query, 0.0)) <= 1e-12, (
                measure,
                query,
                value,
                theirs[measure].get(query),
            )


@target(200, drawn=True)
def trec_eval(head: str, body: bytes, folder: Path) -> None:
    """Measures are those of pytrec_eval to 1e-12."""
    _trec_eval(body)


WORDS = st.lists(
    st.sampled_from([*"abcdefgh", "weir", "weirs", "river", "the", "of", "Dam", "élan", "x1", "漢字"]),
    max_size=12,
).map(" ".join)


@values_drawn
@given(
    st.dictionaries(strategies.identifiers, WORDS, min_size=1, max_size=25),
    st.lists(WORDS, min_size=1, max_size=4),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.4, 0.9, 1.2, 3.0]),
    st.sampled_from([0.0, 0.4, 0.75, 1.0]),
)
def _bm25(texts: dict[str, str], asked: list[str], k: int, k1: float, b: float) -> None:
    system = BM25(k1=k1, b=b)
    searcher = system.index(Corpus.of(texts))
    found = searcher.search(Queries.of({f"q{n}": text for n, text in enumerate(asked)}), k).to_dict()
    for n, text in enumerate(asked):
        expected: dict[str, float] = {}
        with contextlib.suppress(ZeroDivisionError):  # no document has a word
            expected = test_bm25.bm25_by_hand(texts, text, system)
        expected = {document: score for document, score in expected.items() if score > 0}
        ranking = found[f"q{n}"]
        assert len(ranking) == min(k, len(expected)), (ranking, expected)
        best = sorted(expected.values(), reverse=True)[: len(ranking)]
        for (document, score), other in zip(ranking.items(), best, strict=True):
            assert math.isclose(score, expected[document], rel_tol=1e-5), (
                document,
                score,
                expected[document],
            )
            assert math.isclose(score, other, rel_tol=1e-5)


@target(150, drawn=True)
def bm25(head: str, body: bytes, folder: Path) -> None:
    """BM25 finds what the formula in doubles finds."""
    _bm25(body)


@target(125, drawn=True)
def postings(head: str, body: bytes, folder: Path) -> None:
    """The compiled search, with bounds, with bytes and without, finds what adding everything up finds."""
    rng = np.random.default_rng(list(body))
    documents = int(rng.choice([1, 2, 7, 63, 64, 500, 4097, 9000]))
    lists = test_search_exact.random_lists(rng, documents, 12, int(rng.choice([0, 1, 2, 5, 100])))
    index = test_search_exact.impact_index(lists, documents)
    asked = test_search_exact.random_queries(rng, 12, 4, int(rng.choice([1, 4, 9, 60])), real_weights=False)
    k = int(rng.choice([1, 2, 10, 100, 1001]))
    test_search_exact.check(index, asked, k)
    test_search_exact.check_one(test_search_exact.with_columns(index), asked, k, 1)


SCALES = (1e-42, 1e-38, 1e-30, 1e-20, 1e-10, 1e-3, 1.0, 1e3, 1e10, 1e18, 1e30)


def scaled(rng: np.random.Generator, rows: int, width: int) -> np.ndarray:
    """Vectors of any scale, some zero, some twice, some apart by what floats can just tell."""
    found = rng.standard_normal((rows, width))
    found *= rng.choice(SCALES, (rows, 1)) if rng.random() < 0.5 else rng.choice(SCALES)
    if rng.random() < 0.2:
        found *= rng.choice(SCALES[2:], width)
    if rng.random() < 0.2:
        found = np.round(found)
    if rng.random() < 0.2:
        found[:] = found[:1] * (1 + 1e-7 * rng.standard_normal(found.shape))
    found[rng.random(rows) < rng.choice([0.0, 0.1, 0.9])] = 0
    copies = rng.random(rows) < rng.choice([0.0, 0.3])
    found[copies] = found[rng.integers(0, rows, int(copies.sum()))]
    return np.clip(found, -3e38, 3e38).astype(np.float32)


@target(150, drawn=True)
def vectors(head: str, body: bytes, folder: Path) -> None:
    """Exact search through bytes and through floats finds what doubles find; what overflows is refused by all."""
    rng = np.random.default_rng(list(body))
    n, width = int(rng.integers(1, 400)), int(rng.choice([1, 2, 7, 31, 32, 33, 64, 130]))
    documents, asked = scaled(rng, n, width), scaled(rng, int(rng.integers(1, 20)), width)
    ranks, k = rng.permutation(n).astype(np.int32), int(rng.choice([1, 3, 10, 100, 1000]))
    similarity = str(rng.choice(["dot", "cosine"]))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = test_vectors_search.naive(documents, asked, k, similarity, ranks)
    source = ArraySource(documents)
    for way in ("auto", "int8", "fp32"):
        found = outcome(lambda way=way: search(source, asked, k, similarity, ranks, way))
        if isinstance(found, tuple):
            assert "not finite" in found[1], found
            assert not np.isfinite(expected[1]).all() or np.abs(expected[1]).max() > 1e38, (way, found)
            continue
        assert found.doc.tolist() == expected[0].tolist(), way
        assert found.score.tolist() == expected[1].tolist(), way


@target(50, drawn=True)
def tokens(head: str, body: bytes, folder: Path) -> None:
    """MaxSim over token vectors, with a first pass in bytes and without, finds what brute force finds."""
    rng = np.random.default_rng(list(body))
    lengths = rng.integers(0, 12, int(rng.integers(1, 30))).astype(np.int64)
    sizes = rng.integers(1, 12, int(rng.integers(1, 4)))
    width, k = int(rng.choice([8, 32, 64])), int(rng.integers(1, 35))
    rows = Ragged(test_late_search.ptr_of(lengths), scaled(rng, int(lengths.sum()) + 1, width)[1:])
    asked = Ragged(test_late_search.ptr_of(sizes), scaled(rng, int(sizes.sum()), width))
    ranks = rng.permutation(len(lengths)).astype(np.int32)
    ways = [
        outcome(lambda first=first: search_tokens(rows, asked, k, ranks, first_pass=first))
        for first in (True, False)
    ]
    if isinstance(ways[0], tuple) or isinstance(ways[1], tuple):
        assert ways[0] == ways[1]
        return
    expected = outcome(lambda: test_late_search.brute(rows, asked, ranks, k))
    for found in ways:
        test_late_search.assert_same(found, expected)
