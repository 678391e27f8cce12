"""A pool of a small shop with two systems, open for judging, and visitors of its pages."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="needs the `app` extra")

from starlette.testclient import TestClient

from weir.core.corpus import Corpus, Queries
from weir.core.qrels import Qrels
from weir.core.run import Run
from weir.core.subject import Subject
from weir.files.write import write_qrels, write_run
from weir.plugins.app.folder import Folder
from weir.plugins.app.judging import pages
from weir.plugins.app.judging.rooms import Rooms
from weir.plugins.app.server import Access, application, csrf_of
from weir.plugins.labels.api import judging_pool

SYSTEMS = ("zebrafinch", "quokkadeep")
TOKENS = {"o" * 32: "", "a" * 32: "ann", "b" * 32: "ben", "c" * 32: "cyd"}
QUERIES = {f"q{n}": f"red boots number {n}" for n in range(8)}
DOCS = {f"p{n}": f"These boots come in red\n\nand in {n}  other colours." for n in range(12)}
QRELS = {name: {"p0": 3, "p1": 0} for name in QUERIES}
RUNS = {
    SYSTEMS[0]: {name: [f"p{(n + i) % 12}" for i in range(6)] for n, name in enumerate(QUERIES)},
    SYSTEMS[1]: {name: [f"p{(3 * n + 2 * i) % 12}" for i in range(6)] for n, name in enumerate(QUERIES)},
}


def shop(tmp_path, docs=DOCS):
    """Judgments, rankings and a collection on the disk: the targets of `weir labels pool`, and the collection."""
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    lines = [
        json.dumps({"_id": name, "title": f"Boot {name}", "text": text}) + "\n" for name, text in docs.items()
    ]
    (folder / "corpus.jsonl").write_text("".join(lines))
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in QUERIES.items())
    )
    write_qrels(Qrels.of(QRELS), tmp_path / "qrels.tsv")
    for name, run in RUNS.items():
        write_run(Run.of(run), tmp_path / f"{name}.trec")
    return [tmp_path / "qrels.tsv", *(tmp_path / f"{name}.trec" for name in SYSTEMS)], folder


def pool_of(tmp_path, texts=True):
    """The folder of a pool of the shop; without texts its collection is not known."""
    targets, collection = shop(tmp_path)
    judging_pool(
        *map(str, targets), collection=str(collection) if texts else None, out=tmp_path / "pool", k=5
    )
    return tmp_path / "pool"


class Visitor:
    """Somebody with a token."""

    def __init__(self, rooms, token, *, read_only=False):
        app = application(
            Folder(rooms.folder),
            pages.PAGES,
            Access(TOKENS, read_only=read_only),
            rooms=rooms,
        )
        self.token, self.client = (
            token,
            TestClient(
                app, base_url="http://localhost:4747", follow_redirects=False, cookies={"weir": token}
            ),
        )
        [self.room] = [room.name for room in rooms]

    def get(self, *names, **asked):
        return self.client.get("/".join(("/judge", self.room, *names)), params=asked)

    def read(self, *names, **asked):
        found = (
            self.get(*names[:-1], f"{names[-1]}.json", **asked)
            if names
            else self.client.get(f"/judge/{self.room}.json")
        )
        assert found.status_code == 200, found.text
        return found.json()

    def post(self, *names, **fields):
        fields = {name: str(value) for name, value in fields.items()}
        path = "/".join(("/judge", self.room, *names))
        return self.client.post(path, data={"csrf": csrf_of(self.token), **fields})

    def answer(self, page, **fields):
        pair = page["pair"]
        found = self.post("answer", number=pair["number"], key=pair["key"], back=page["back"], **fields)
        assert found.status_code == 303, found.text
        return found


def subject_with_texts(docs=DOCS):
    """The shop as a subject, with these documents."""
    corpus = Corpus.of({name: {"title": f"Boot {name}", "text": text} for name, text in docs.items()})
    return Subject("shop", corpus, Queries.of(QUERIES))


def visitors(tmp_path, **more):
    """The rooms of a pool, and its owner, ann, ben and cyd."""
    rooms = Rooms.of_pools(pool_of(tmp_path), judges=("ann", "ben", "cyd"), **more)
    return rooms, *(Visitor(rooms, token) for token in TOKENS)
