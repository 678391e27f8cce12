"""A collection from memory as files in BEIR's layout, which everything reads."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from pathlib import Path

from weir.core.corpus import Corpus, Queries
from weir.core.document_fields import records
from weir.core.qrels import Qrels
from weir.io.runs.write import write_qrels

__all__ = ["OwnFolder", "write_collection"]


class OwnFolder:
    """A temporary folder that is removed when nothing holds this any more, or the process ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="weir-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def write_collection(folder: Path, corpus: Corpus, queries: Queries, qrels: Qrels) -> None:
    """Write corpus.jsonl, queries.jsonl and qrels/test.tsv into a folder that is there."""
    titles = corpus.title.tolist() if corpus.title is not None else None
    others = records(corpus.metadata, len(corpus))
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as out:
        columns = zip(corpus.ids.tolist(), corpus.text.tolist(), others, strict=True)
        for number, (name, text, other) in enumerate(columns):
            title = {"title": titles[number]} if titles is not None else {}
            own = {"metadata": other} if other else {}
            out.write(json.dumps({"_id": name, **title, "text": text, **own}, ensure_ascii=False) + "\n")
    with (folder / "queries.jsonl").open("w", encoding="utf-8") as out:
        said = [] if queries.metadata is None else queries.metadata.rows()
        for number, (name, text) in enumerate(queries.to_dict().items()):
            more = {"metadata": said[number]} if said and said[number] else {}
            out.write(json.dumps({"_id": name, "text": text, **more}, ensure_ascii=False) + "\n")
    (folder / "qrels").mkdir()
    write_qrels(qrels, folder / "qrels" / "test.tsv")
