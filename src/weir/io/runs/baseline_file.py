"""A baseline as a file to commit: the scores of a system by query, as tab-separated text that diffs line by line.

    # weir baseline	1
    # version	0.2.0
    # system	bm25
    # conventions	default
    # judgments	golden	35 queries	1f0c6b2f9d3e4a51
    dataset	query	judgments	nDCG@10
    golden	q01	9c1d02aa	0.6309297535714575

Lines stand in the order of datasets and queries, values at full precision, `-` where a measure is undefined. The third
column is a hash of the judgments of the query, so that a query that was judged anew since is found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from weir.core.ids import Ids
from weir.core.scores import Scores
from weir.core.system_scores import JudgedScores, SystemScores
from weir.errors import BadValue, FormatError
from weir.io.storage.atomic import atomic_file

__all__ = ["is_baseline", "read_baseline", "write_baseline"]

_FIRST = "# weir baseline\t1"
_EXPECTED = "a baseline as weir gate --save writes it; write it anew"
_UNSAFE = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_COLUMNS = ("dataset", "query", "judgments")


def is_baseline(path: Path) -> bool:
    """Whether a file begins as baselines do; raises OSError where it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(_FIRST)).startswith(_FIRST.rpartition("\t")[0].encode())


def write_baseline(scores: SystemScores, path: Path) -> None:
    """Write a baseline; the file appears when it is complete.

    Raises BadValue for datasets with other measures or conventions than the first, StoreError.
    """
    first = next(iter(scores.datasets.values())).scores
    for name, one in scores.datasets.items():
        if (one.scores.measures, one.scores.conventions) != (first.measures, first.conventions):
            raise BadValue(f"{name} has other measures or conventions than the datasets before it")
    lines = [_FIRST, f"# version\t{version('weir-ir')}", f"# system\t{_cell(scores.system)}"]
    lines.append(f"# conventions\t{first.conventions}")
    if first.geometric:
        lines.append("\t".join(["# geometric", *first.geometric]))
    for name, one in sorted(scores.datasets.items()):
        size = f"{len(one.scores.queries)} queries"
        lines.append(f"# judgments\t{_cell(name)}\t{size}\t{one.fingerprint}")
    lines.append("\t".join([*_COLUMNS, *first.measures]))
    for name, one in sorted(scores.datasets.items()):
        lines += _lines(name, one)
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def read_baseline(path: Path) -> SystemScores:
    """Read what `write_baseline` wrote; who answered is not in the file, so `answered` is all true.

    Raises FormatError, with the line, for a file that is damaged or was edited so that its header no longer fits.
    """
    try:
        lines = path.read_text(encoding="utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")
    except FileNotFoundError:
        raise FormatError(path, "no such file", _EXPECTED) from None
    except UnicodeDecodeError:
        raise FormatError(path, "bytes that are not UTF-8", _EXPECTED) from None
    if lines[0] != _FIRST:
        raise FormatError(path, f"'{lines[0][:60]}'", _EXPECTED, 1)
    try:
        head = _header(lines)
    except (ValueError, LookupError):
        raise FormatError(path, "a header that is damaged", _EXPECTED) from None
    table = _table(path, lines)
    found = {name: table.scores(name, head.conventions, head.geometric) for name in table.rows}
    for name in dict.fromkeys([*found, *head.judgments]):
        if name not in found or found[name].fingerprint != head.judgments.get(name):
            raise FormatError(path, f"queries of {name} that are not those its header tells of", _EXPECTED)
    return SystemScores(head.system, found, head.version)


@dataclass(frozen=True)
class _Header:
    """What the lines above the table tell; judgments: the fingerprint of each dataset's."""

    version: str
    system: str
    conventions: str
    geometric: tuple[str, ...]
    judgments: Mapping[str, str]


def _header(lines: Sequence[str]) -> _Header:
    """Raises ValueError and LookupError for lines that are damaged or missing."""
    head = [line[2:].split("\t") for line in lines if line.startswith("# ")]
    told = {cells[0]: cells[1:] for cells in head if cells[0] != "judgments"}
    judgments = {_text(cells[1]): cells[-1] for cells in head if cells[0] == "judgments" and len(cells) == 4}
    geometric = tuple(told.get("geometric", ()))
    return _Header(told["version"][0], _text(told["system"][0]), told["conventions"][0], geometric, judgments)


@dataclass(frozen=True, eq=False)
class _Table:
    """The lines of a baseline: {dataset: {query: (mark, values)}}."""

    measures: tuple[str, ...]
    rows: Mapping[str, Mapping[str, tuple[str, list[float]]]]

    def scores(self, name: str, conventions: str, geometric: tuple[str, ...]) -> JudgedScores:
        """The scores on a dataset."""
        rows = self.rows[name]
        values = np.array([values for _, values in rows.values()]).T
        everyone = np.ones(len(rows), np.bool_)
        scores = Scores(
            self.measures, Ids.of(rows), values, everyone, geometric=geometric, conventions=conventions
        )
        return JudgedScores(scores, {query: mark for query, (mark, _) in rows.items()})


def _table(path: Path, lines: Sequence[str]) -> _Table:
    numbered = [(n, line.split("\t")) for n, line in enumerate(lines, 1) if not line.startswith("# ")]
    if not numbered or tuple(numbered[0][1][:3]) != _COLUMNS or len(numbered[0][1]) < 4:
        raise FormatError(path, "no header of columns", _EXPECTED)
    measures = tuple(numbered[0][1][3:])
    rows: dict[str, dict[str, tuple[str, list[float]]]] = {}
    for number, cells in numbered[1:]:
        try:
            values = [math.nan if cell == "-" else float(cell) for cell in cells[3:]]
            if len(values) != len(measures):
                raise ValueError
            dataset, query = _text(cells[0]), _text(cells[1])
        except ValueError:
            raise FormatError(path, f"'{' '.join(cells)[:60]}'", _EXPECTED, number) from None
        if query in rows.setdefault(dataset, {}):
            raise FormatError(path, f"query '{query}' a second time", _EXPECTED, number)
        rows[dataset][query] = (cells[2], values)
    if not rows:
        raise FormatError(path, "no query", _EXPECTED)
    return _Table(measures, rows)


def _lines(dataset: str, one: JudgedScores) -> list[str]:
    names = one.scores.queries.tolist()
    found = []
    for q in sorted(range(len(names)), key=lambda q: names[q]):
        values = ["-" if v != v else repr(v).removesuffix(".0") for v in one.scores.values[:, q].tolist()]  # noqa: PLR0124 - NaN
        found.append("\t".join([_cell(dataset), _cell(names[q]), one.marks[names[q]], *values]))
    return found


def _cell(text: str) -> str:
    """A text as a cell: as it is, or as a JSON string where it would break the line or look like one."""
    return json.dumps(text) if _UNSAFE.intersection(text) or text[:1] in ("", '"', "#") else text


def _text(cell: str) -> str:
    if not cell.startswith('"'):
        return cell
    found = json.loads(cell)
    if not isinstance(found, str):
        raise ValueError(cell)
    return found
