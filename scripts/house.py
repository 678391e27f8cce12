"""The size of the house and the walks through it: what is printed beside the gates and never enforced.

    python scripts/house.py                  sizes of this checkout
    python scripts/house.py --walks          and the walks of the commands below, which need the extra `run`

Sizes: packages, floors, files, lines, the median file, public functions and classes, modules that one other module
imports, private functions that their module names once; words of the pages below docs/, and of these those that
scripts write. Modules that a stub names have every user as a client. Walks: files and functions inside Weir on the
second run of a command in this process; imports and compiled kernels are left out. Prints JSON lines.
"""

from __future__ import annotations

import ast
import contextlib
import http.server
import io
import json
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "weir"
RING = "plugins"
GENERATED = ("calibration", "certificates", "claims", "conformance", "rerankings")
"""Pages below docs/ that scripts write whole; of others they write the parts between marks and outputs of examples."""
Walk = tuple[list[str], Counter[str], int]


def sizes(source: Path = SOURCE) -> dict[str, float]:
    """Sizes of the package under `source`; shares as parts of one."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    dotted = {path: _dotted(path, source) for path in texts}
    clients: dict[str, set[str]] = defaultdict(set)
    public = functions = once = 0
    for path, tree in trees.items():
        uses = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        uses.update(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        for target in _imported(tree, set(dotted.values())):
            if target != dotted[path]:
                clients[target].add(dotted[path])
        public += sum(
            isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
            for node in tree.body
        )
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                once += bool(re.match(r"_[^_]", node.name)) and uses[node.name] == 1
    public_modules: set[str] = set()
    for stub in source.rglob("__init__.pyi"):
        public_modules |= _imported(ast.parse(stub.read_text(encoding="utf-8")), set(dotted.values()))
    modules = [
        name for path, name in dotted.items() if path.name != "__init__.py" and name not in public_modules
    ]
    lines = [text.count("\n") for text in texts.values()]
    packages = {
        path.relative_to(source).parts[0] for path in texts if len(path.relative_to(source).parts) > 1
    }
    return {
        "packages": len(packages - {RING}),
        "floors": _floors(),
        "files": len(texts),
        "files of the ring": sum(path.relative_to(source).parts[0] == RING for path in texts),
        "lines": sum(lines),
        "lines of the ring": sum(
            n for n, path in zip(lines, texts, strict=True) if path.relative_to(source).parts[0] == RING
        ),
        "median file": statistics.median(lines),
        "public names": public,
        "modules with one client": round(sum(len(clients[name]) == 1 for name in modules) / len(texts), 3),
        "functions": functions,
        "private and used once": round(once / functions, 3),
    }


def _made(text: str) -> list[str]:
    """Return the parts of a page that scripts write: measured tables, and outputs of examples."""
    marked = r"<!-- measured: .*?<!-- end -->"
    made = re.findall(marked, text, re.DOTALL)
    rest = re.sub(marked, "", text, flags=re.DOTALL)
    for kind, body in re.findall(r"^```(text|console)\n(.*?)^```$", rest, re.DOTALL | re.MULTILINE):
        made += [line for line in body.split("\n") if kind == "text" or not line.startswith("$ ")]
    return made


def words(docs: Path = ROOT / "docs") -> dict[str, int]:
    """Words of all pages, as white space parts them, and how many of them scripts write."""
    count = generated = 0
    for page in docs.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        count += len(text.split())
        made = [text] if page.stem in GENERATED else _made(text)
        generated += len(" ".join(made).split())
    return {"words of docs": count, "of these generated": generated}


def _floors() -> int:
    """Rows of the gates' table; the outer ring is no floor."""
    from gates import LAYERS

    return sum(RING not in row for row in LAYERS)


def _dotted(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.AST, known: set[str]) -> set[str]:
    """The modules of the house that a module imports anywhere, but for a type checker alone."""
    targets: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            targets |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        targets |= _imported(node, known)
    return targets & known


def walks() -> dict[str, dict[str, int]]:
    """Files, functions and depth of each walk, on its second run."""
    import numpy as np
    from walk import walked

    import weir
    from weir.cli.main import main
    from weir.systems import Context

    qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1}}
    run = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d3": 2.0, "d1": 1.5}}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "qrels").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 1\n")
        (folder / "run").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d2 2 1 x\nq2 Q0 d3 1 2 x\nq2 Q0 d1 2 1.5 x\n")
        collection = weir.load("brook-news")
        index = weir.system("bm25").index(collection.corpus)
        question = collection.queries.take(np.array([0]))
        address = stack.enter_context(chat_server())
        pipeline = weir.system(f'bm25 >> llm("score", model="{address}/v1#model", depth=2)')
        reranking = pipeline.index(collection.corpus)

        def command(*words: str) -> Callable[[], object]:
            return lambda: main(list(words))

        actions: dict[str, Callable[[], object]] = {
            "weir eval QRELS RUN -m nDCG@10": command(
                "eval", f"{folder}/qrels", f"{folder}/run", "-m", "nDCG@10"
            ),
            "weir.evaluate(dicts)": lambda: weir.evaluate(qrels, run, ["nDCG@10"]),
            "a query of BM25": lambda: index.search(question, 10),
            'a query of bm25 >> llm("score", depth=2)': lambda: reranking.search(
                question, 10, Context(reuse=False)
            ),
        }
        measured = {title: _walk(action, walked) for title, action in actions.items()}
        for number in range(2):
            cell = command("run", "-d", "brook-news", "-s", "bm25", "-o", f"{folder}/results{number}")
            measured["weir run -d brook-news -s bm25"] = _walk(cell, walked, warm=False)
        measured["weir audit brook-news"] = _walk(command("audit", "brook-news"), walked)
        return measured


class ChatHandler(http.server.BaseHTTPRequestHandler):
    """Answers every prompt as OpenAI's API does: a score of 7 in the line that the prompt asks for."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        line = f"{re.findall(r'^([a-z]{8}): ', prompt, re.MULTILINE)[-1]}: 7"
        choice = {"message": {"role": "assistant", "content": line}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        answer = json.dumps({"model": "model", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def chat_server() -> Iterator[str]:
    """The address of a chat model on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), ChatHandler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _walk(action: Callable[[], object], walked: Callable[..., Walk], warm: bool = True) -> dict[str, int]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if warm:
            action()
        files, _, functions = walked(action)
    return {"files": len(files), "functions": functions}


if __name__ == "__main__":
    print(json.dumps(sizes() | words()))
    if "--walks" in sys.argv[1:]:
        for title, figures in walks().items():
            print(json.dumps({"walk": title, **figures}))
