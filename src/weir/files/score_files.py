"""Read and write scores by query, and baselines for gates."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.core.origin import Origin
from weir.core.rounding import counted
from weir.core.scores import READ_SCORES, WRITE_SCORES, JudgedScores, LabelUse, Note, Scores, SystemScores
from weir.core.strings import Float64, Ids
from weir.core.tables import cell_text, csv_text
from weir.errors import BadValue, FormatError, LossWarning, give_warning
from weir.files.atomic import write_text
from weir.files.column_names import fold, part_columns, say_left_out
from weir.files.formats import number_records, table_head
from weir.files.json_files import orjson_loads
from weir.files.json_record import parse_json
from weir.files.parsers import parse_slowly
from weir.files.paths import path_of
from weir.files.text_files import first_bytes, read_bytes

# Per-query scores on disk: one JSON object per line at full precision.


def score_lines(scores: Scores) -> list[str]:
    """Return a JSON line for each measure and query: query, measure, value (null if undefined); with ties=bounds also
    lowest and highest.

    "mean": "geometric" marks logarithms.
    """
    queries, ends = scores.queries.tolist(), _with_bounds(scores)
    names = ("value", "lowest", "highest")[: len(ends)]
    return [
        json.dumps(
            {"query": query, "measure": measure}
            | {name: None if math.isnan(v) else v for name, v in zip(names, values, strict=True)}
            | ({"mean": "geometric"} if measure in scores.geometric else {})
        )
        for measure, *rows in zip(scores.measures, *(end.tolist() for end in ends), strict=True)
        for query, *values in zip(queries, *rows, strict=True)
    ]


def _with_bounds(scores: Scores) -> list[Float64]:
    if "ties=bounds" in scores.conventions and scores.low is not None and scores.high is not None:
        return [scores.values, scores.low, scores.high]
    return [scores.values]


VALUE_COLUMNS = ("dataset", "system", "measure", "query", "value")
"""The header of values by query as CSV."""


def values_csv(placed: Iterable[tuple[tuple[str, ...], Scores]]) -> str:
    """Return CSV with a row for each result, measure and query, with lowest and highest if a result has ties=bounds; an
    empty cell is undefined.

    placed: ((dataset, system), scores) of each result.
    """
    scored = [(place, scores, _with_bounds(scores)) for place, scores in placed]
    widest = max((len(ends) for *_, ends in scored), default=1)
    lines: list[Sequence[object]] = [(*VALUE_COLUMNS, *("lowest", "highest")[: widest - 1])]
    for place, scores, ends in scored:
        for measure, *rows in zip(scores.measures, *map(np.ndarray.tolist, ends), strict=True):
            for query, *values in zip(scores.queries.tolist(), *rows, strict=True):
                cells = [None if math.isnan(v) else v for v in values]
                lines.append((*place, measure, query, *cells, *[None] * (widest - len(cells))))
    return csv_text(lines)


def values_json(placed: Iterable[tuple[tuple[str, ...], Scores]]) -> list[str]:
    """Return the JSON lines of `score_lines` for several results, with dataset and system.

    placed: (names, scores) of each; names are (), (system,) or (dataset, system).
    """
    lines = list[str]()
    for place, scores in placed:
        names = dict(zip(("dataset", "system")[2 - len(place) :], place, strict=True))
        for line in score_lines(scores):
            lines.append(json.dumps(names | json.loads(line), ensure_ascii=False) if place else line)
    return lines


def values_lines(placed: Iterable[tuple[tuple[str, ...], Scores]]) -> list[list[str]]:
    """Return a row for each value: names, measure, query, value ("nan" if undefined), with ties=bounds lowest and
    highest.

    placed: (names, scores) of each result; names may be ().
    """
    lines = list[list[str]]()
    for place, scores in placed:
        for measure, *rows in zip(
            scores.measures, *map(np.ndarray.tolist, _with_bounds(scores)), strict=True
        ):
            for query, *values in zip(scores.queries.tolist(), *rows, strict=True):
                lines.append([*place, measure, query, *map(repr, values)])
    return lines


def read_values(path: Path) -> dict[str, Scores]:
    """Return {system: scores} from CSV with columns of dataset, system, measure, query and value (empty if
    undefined).

    Omits other columns and rows of means, with a LossWarning. Raises FormatError for other content, repeated values,
    several datasets, and queries that not all systems and measures have.
    """
    head = table_head(path)
    header = [next((one for one in VALUE_COLUMNS if fold(one) == fold(name)), name) for name in head.cells]
    expected = f"a header with {', '.join(VALUE_COLUMNS)}"
    if not set(VALUE_COLUMNS[1:]) <= set(header):
        raise FormatError(path, f"the columns {', '.join(header)[:80]}", expected)
    values: dict[str, dict[str, dict[str, float]]] = {}
    datasets = dict[str, None]()
    if twice := next((name for name in header if header.count(name) > 1), ""):
        raise FormatError(path, f"two columns named {twice}", expected, 1)
    origins = [header[at] for at, _ in part_columns(header, "qrels")]
    say_left_out(path, [name for name in header if name not in (*VALUE_COLUMNS, *origins)])
    first, odd = list[str](), list[tuple[str, str, str, int, str]]()
    for number, row in number_records(path, head.separator, (header.index("value"),)):
        if not row:
            continue
        if len(row) != len(header):
            found = f"{counted(len(row), 'cell')} in '{head.separator.join(row)[:60]}'"
            raise FormatError(path, found, f"{len(header)} cells: {', '.join(header)}", number)
        cells = dict(zip(header, row, strict=True))
        datasets[cells.get("dataset", "")] = None
        own = [cells.get(name, "") for name in origins]
        first = first or own
        if other := next(
            (name for name, one, was in zip(origins, own, first, strict=True) if one != was), ""
        ):
            found = f"a second {other}, {cells[other]}"
            raise FormatError(path, found, f"the values of one {other} in a file of their own", number)
        system, measure, query, text = (cell_text(cells[name]) for name in VALUE_COLUMNS[1:])
        if blank := next((name for name in VALUE_COLUMNS[1:4] if not cells[name].strip()), ""):
            raise FormatError(path, f"an empty {blank}", "a name in every row", number)
        value = parse_slowly(text.strip().encode("utf-8", "replace"))
        if math.isnan(value) and text.strip().casefold() not in ("", "nan"):
            odd.append((system, measure, query, number, text))
        of = values.setdefault(system, {}).setdefault(measure, {})
        if query in of:
            raise FormatError(
                path, f"{measure} of query '{query}' twice for {system}", "one value each", number
            )
        of[query] = value
    _leave_out_means(path, values)
    for system, measure, query, number, text in odd:
        if query in values[system].get(measure, {}):
            raise FormatError(path, f"'{text[:60]}'", "a finite number as the value, or nothing", number)
    try:
        origin = Origin(collection=next(iter(datasets), "") or path.name)
        return {system: replace(Scores.from_dict(of), origin=origin) for system, of in values.items()}
    except BadValue as error:
        raise FormatError(path, str(error), "values as weir results --per-query --csv writes them") from None


def _leave_out_means(path: Path, values: Mapping[str, dict[str, dict[str, float]]]) -> None:
    for name in _MEANS:
        tables = [
            of for measures in values.values() for of in measures.values() if name in of and len(of) > 1
        ]
        means = [math.fsum(v for q, v in of.items() if q != name) / (len(of) - 1) for of in tables]
        if not all(abs(of[name] - mean) <= _ROUNDED for of, mean in zip(tables, means, strict=True)):
            continue
        alone = [(of, one) for of in values.values() for one in list(of) if set(of[one]) == {name}]
        if alone and not tables:
            expected = "values by query, as trec_eval prints them when asked"
            raise FormatError(path, f"rows of the query '{name}' alone", expected)
        for of in tables:
            del of[name]
        for measures, one in alone:
            del measures[one]
        if tables:
            rows = counted(len(tables) + len(alone), "row")
            said = f"{path}: not read: {rows} of the means over '{name}' queries"
            give_warning(LossWarning(said))


_ROUNDED = 5e-4  # of means with three digits or more
_MEANS = ("all", "amean", "mean", "average")
"""What tools call the query of the means."""


def write_scores(scores: Scores, path: Path) -> None:
    """Write a JSON line for each measure and query, atomically."""
    write_text(path, "\n".join(score_lines(scores)) + "\n")


def read_scores(path: Path) -> Scores:
    """Return the scores that `write_scores` wrote; every query counts as answered.

    Raises FormatError for damage, OSError if unreadable.
    """
    rows: dict[str, dict[str, float]] = {}
    geometric: dict[str, None] = {}
    lines = path.read_bytes().rstrip(b"\n").split(b"\n")
    for number, (line, record) in enumerate(zip(lines, _parsed(lines), strict=True), 1):
        try:
            measure, query, value = record["measure"], record["query"], record["value"]
            rows.setdefault(measure, {})[query] = math.nan if value is None else float(value)
            if record.get("mean") == "geometric":
                geometric[measure] = None
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            expected = "a score as weir writes it; delete the file"
            shown = line[:60].decode("utf-8", "replace")
            raise FormatError(path, f"'{shown}'", expected, number) from None
    first = next(iter(rows.values()), {})
    queries = Ids.of(first)
    if any(row.keys() != first.keys() for row in rows.values()):
        raise FormatError(path, "measures on different queries", "a file written by weir; delete it")
    values = np.array([list(row.values()) for row in rows.values()])
    answered = np.ones(len(queries), np.bool_)
    return Scores(tuple(rows), queries, values, answered, geometric=tuple(geometric))


_ORJSON_BYTES = 1 << 18
"""Size of a file from which orjson is worth its import."""


def _parsed(lines: Sequence[bytes]) -> list[Any]:
    data = b"[" + b",".join(lines) + b"]"  # all at once, which takes a third of the time
    for loads in (
        orjson_loads() if len(data) >= _ORJSON_BYTES else None,
        lambda text: json.loads(text.decode("utf-8")),
    ):
        with suppress(ValueError, RecursionError):
            values: list[Any] = [] if loads is None else loads(data)
            if len(values) == len(lines):
                return values
    return [_value(line) for line in lines]


def _value(line: bytes) -> Any:  # noqa: ANN401  any JSON
    try:
        return json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


# Scores as a JSON file that reads back as the same values, bit for bit.

_EXPECTED = "scores as Scores.save writes them, or scores-*.jsonl of a results folder"
_OF_ORIGIN = ("digest", "collection", "split", "system", "texts", "depth", "whole")


def write_scores_value(scores: Scores, path: str | os.PathLike[str]) -> None:
    """Write scores with all metadata as JSON, atomically."""
    use = scores.labels
    labels = use and {
        "said": use.sentence,
        "calibrated": use.calibrated,
        "share": None if math.isnan(use.share) else use.share,
        "people": _numbers(use.people),
    }
    fields = {
        "weir": "scores",
        "measures": list(scores.measures),
        "queries": scores.queries.tolist(),
        "values": _numbers(scores.values),
        "answered": scores.answered.tolist(),
        "tied": scores.tied,
        "ignored": scores.ignored,
        "geometric": list(scores.geometric),
        "conventions": scores.conventions,
        "low": _numbers(scores.low),
        "high": _numbers(scores.high),
        "asked": [list(pair) for pair in scores.asked],
        "labels": labels,
        "judged_at_10": None if math.isnan(scores.judged_at_10) else scores.judged_at_10,
        "remarks": [[note.text, note.details] for note in scores.remarks],
        "origin": {
            "judgments": dict(scores.origin.marks),
            **{name: getattr(scores.origin, name) for name in _OF_ORIGIN},
            "digest": scores.origin.fingerprint,
            "algorithms": dict(scores.origin.algorithms),
        },
    }
    write_text(path_of(path), json.dumps(fields, ensure_ascii=False) + "\n")


WRITE_SCORES.register(write_scores_value)


def read_scores_value(path: str | os.PathLike[str]) -> Scores:
    """Return scores that `write_scores_value` wrote, or scores-*.jsonl of a results folder; raises FormatError for
    anything else.
    """
    if path_of(path).suffix == ".jsonl":
        return _stored_scores(path_of(path))
    try:
        fields: dict[str, Any] = parse_json(read_bytes(path_of(path)), path)
        labels = fields.get("labels")  # none in files of before there were labels, nor what follows
        if labels is not None:
            share = math.nan if labels["share"] is None else float(labels["share"])
            labels = LabelUse(
                str(labels["said"]), bool(labels["calibrated"]), share, _array(labels["people"])
            )
        scores = Scores(
            tuple(map(str, fields["measures"])),
            Ids.of(fields["queries"]),
            np.array(fields["values"], np.float64),
            np.array(fields["answered"], np.bool_),
            float(fields["tied"]),
            int(fields["ignored"]),
            tuple(map(str, fields["geometric"])),
            str(fields["conventions"]),
            _array(fields["low"]),
            _array(fields["high"]),
            tuple((str(theirs), str(ours)) for theirs, ours in fields["asked"]),
            judged_at_10=math.nan if fields.get("judged_at_10") is None else float(fields["judged_at_10"]),
            labels=labels,
            remarks=tuple(Note(str(text), str(details)) for text, details in fields.get("remarks", ())),
            origin=_origin(fields.get("origin", {})),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise FormatError(path, "something else", _EXPECTED) from None
    shape = (len(scores.measures), len(scores.queries))
    tables = [table for table in (scores.values, scores.low, scores.high) if table is not None]
    if any(table.shape != shape for table in tables) or scores.answered.shape != shape[1:]:
        raise FormatError(path, "values of another number of measures or queries", _EXPECTED)
    return scores


READ_SCORES.register(read_scores_value)


def _origin(fields: dict[str, Any]) -> Origin:
    depth = fields.get("depth")
    digest, collection, split, system, texts = (str(fields.get(name, "")) for name in _OF_ORIGIN[:-2])
    saved, algorithms = (
        {str(key): str(value) for key, value in fields.get(of, {}).items()}
        for of in ("judgments", "algorithms")
    )
    depth, whole = None if depth is None else int(depth), fields.get("whole") is True
    return Origin(None, digest, saved, collection, split, system, depth, texts, algorithms, whole)


def self_match_rule(recorded: str) -> str:
    """Return the conventions that a recorded rule for self-matches implies: "default" for "keep", self_matches=drop
    for "drop".
    """
    return "default" if recorded == "keep" else f"self_matches={recorded}"


def _stored_scores(path: Path) -> Scores:
    try:
        scores = read_scores(path)
        record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        facts = record["facts"]
        origin = {
            "digest": record["declared"]["qrels"],
            "collection": facts["dataset"],
            "system": record["name"],
        }
        origin |= {"split": facts["split"], "depth": facts.get("longest") or facts["k"]}
        origin |= {"whole": facts.get("whole"), "algorithms": record["declared"]["measures"]}
        return replace(
            scores, origin=_origin(origin), conventions=self_match_rule(facts.get("self_match", "keep"))
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(path, "no values with their record beside them", _EXPECTED) from None


def _numbers(values: Float64 | None) -> list[list[float | None]] | None:
    if values is None:
        return None
    cells: NDArray[np.object_] = values.astype(object)
    cells[np.isnan(values)] = None
    rows: list[list[float | None]] = cells.tolist()
    return rows


def _array(rows: list[list[float | None]] | None) -> Float64 | None:
    return None if rows is None else np.array(rows, np.float64)  # NaN for None


# A baseline as a file to commit: the scores of a system by query, as tab-separated text that diffs line by line.
#
#     # weir baseline     1
#     # version   0.2.0
#     # system    bm25
#     # conventions       default
#     # judgments golden  35 queries      1f0c6b2f9d3e4a51
#     # depth     golden  1000
#     # texts     golden  6b0f43c2... 0b1c77de...
#     dataset     query   judgments       nDCG@10
#     golden      q01     9c1d02aa        0.6309297535714575
#
# Lines stand in the order of datasets and queries, values at full precision, `-` where a measure is undefined. The
# third column is a hash of the judgments of the query, so that a query that was judged anew since is found. The depth
# is the length of the longest ranking, before "whole" if rankings have every relevant document; the texts are hashes
# of documents and queries.

_FIRST = "# weir baseline\t1"
_BASELINE_EXPECTED = "a baseline that weir gate --save wrote; save it again"
_UNSAFE = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_COLUMNS = ("dataset", "query", "judgments")


def is_baseline(path: Path) -> bool:
    """Return True if a file begins as a baseline of scores for gates; raises FormatError if unreadable."""
    return first_bytes(path, len(_FIRST)).startswith(_FIRST.rpartition("\t")[0].encode())


def write_baseline(scores: SystemScores, path: Path) -> None:
    """Write a system's scores as a baseline for gates, atomically; raises BadValue if its datasets differ in measures
    or conventions.
    """
    first = next(iter(scores.datasets.values())).scores
    for name, one in scores.datasets.items():
        if (one.scores.measures, one.scores.conventions) != (first.measures, first.conventions):
            raise BadValue(f"{name} has other measures or conventions than the datasets before it")
    from importlib.metadata import version  # it takes longer to import than the rest

    lines = [_FIRST, f"# version\t{version('weir-ir')}", f"# system\t{_cell(scores.system)}"]
    lines.append(f"# conventions\t{first.conventions}")
    if first.geometric:
        lines.append("\t".join(["# geometric", *first.geometric]))
    for name, one in sorted(scores.datasets.items()):
        size = f"{len(one.scores.queries)} queries"
        lines.append(f"# judgments\t{_cell(name)}\t{size}\t{one.fingerprint}")
    for name, one in sorted(scores.datasets.items()):
        origin = one.scores.origin
        if origin.depth is not None:
            lines.append("\t".join(["# depth", _cell(name), str(origin.depth), *["whole"] * origin.whole]))
        if origin.texts:
            lines.append("\t".join(["# texts", _cell(name), origin.texts]))
    lines.append("\t".join([*_COLUMNS, *first.measures]))
    for name, one in sorted(scores.datasets.items()):
        queries = one.scores.queries.tolist()
        for query, values in sorted(zip(queries, one.scores.values.T.tolist(), strict=True)):
            cells = ["-" if math.isnan(value) else repr(value).removesuffix(".0") for value in values]
            lines.append("\t".join([_cell(name), _cell(query), one.marks[query], *cells]))
    write_text(path, "\n".join(lines) + "\n")


def read_baseline(path: Path) -> SystemScores:
    """Return the scores that `write_baseline` wrote; every query counts as answered.

    Raises FormatError if missing, damaged or edited.
    """
    try:
        lines = path.read_text(encoding="utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")
    except FileNotFoundError:
        raise FormatError(path, "no such file", _BASELINE_EXPECTED) from None
    except UnicodeDecodeError:
        raise FormatError(path, "bytes that are not UTF-8", _BASELINE_EXPECTED) from None
    if lines[0] != _FIRST:
        raise FormatError(path, f"'{lines[0][:60]}'", _BASELINE_EXPECTED, 1)
    header = [line[2:].split("\t") for line in lines if line.startswith("# ")]
    fields = {cells[0]: cells[1:] for cells in header if cells[0] != "judgments"}
    try:
        marks = {
            _text(cells[1]): cells[-1] for cells in header if cells[0] == "judgments" and len(cells) == 4
        }
        origins = _baseline_origins(header)
        writer, system, conventions = (
            fields["version"][0],
            _text(fields["system"][0]),
            fields["conventions"][0],
        )
    except (ValueError, LookupError):
        raise FormatError(path, "a header that is damaged", _BASELINE_EXPECTED) from None
    measures, rows = _baseline_rows(path, lines)
    datasets: dict[str, JudgedScores] = {}
    for name, queries in rows.items():
        columns, answered = np.array([one for _, one in queries.values()]).T, np.ones(len(queries), np.bool_)
        scores = Scores(
            measures, Ids.of(queries), columns, answered, geometric=tuple(fields.get("geometric", ())),
            conventions=conventions, origin=origins.get(name, Origin()),
        )  # fmt: skip
        datasets[name] = JudgedScores(scores, {query: mark for query, (mark, _) in queries.items()})
    for name in dict.fromkeys([*datasets, *marks]):
        if name not in datasets or datasets[name].fingerprint != marks.get(name):
            shown = f"queries of {name} that differ from those its header lists"
            raise FormatError(path, shown, _BASELINE_EXPECTED)
    return SystemScores(system, datasets, writer)


def _baseline_origins(header: list[list[str]]) -> dict[str, Origin]:
    origins = {
        _text(cells[1]): Origin(depth=int(cells[2]), whole="whole" in cells[3:])
        for cells in header
        if cells[0] == "depth"
    }
    for cells in header:
        if cells[0] == "texts":
            name = _text(cells[1])
            origins[name] = replace(origins.get(name, Origin()), texts=cells[2])
    return origins


def _baseline_rows(
    path: Path, lines: list[str]
) -> tuple[tuple[str, ...], dict[str, dict[str, tuple[str, list[float]]]]]:
    table = [(n, line.split("\t")) for n, line in enumerate(lines, 1) if not line.startswith("# ")]
    if not table or tuple(table[0][1][:3]) != _COLUMNS or len(table[0][1]) < 4:
        raise FormatError(path, "no header of columns", _BASELINE_EXPECTED)
    measures = tuple(table[0][1][3:])
    rows: dict[str, dict[str, tuple[str, list[float]]]] = {}
    for number, cells in table[1:]:
        try:
            values = [math.nan if cell == "-" else float(cell) for cell in cells[3:]]
            if len(values) != len(measures):
                raise ValueError
            dataset, query = _text(cells[0]), _text(cells[1])
        except ValueError:
            raise FormatError(path, f"'{' '.join(cells)[:60]}'", _BASELINE_EXPECTED, number) from None
        if query in rows.setdefault(dataset, {}):
            raise FormatError(path, f"query '{query}' a second time", _BASELINE_EXPECTED, number)
        rows[dataset][query] = (cells[2], values)
    if not rows:
        raise FormatError(path, "no query", _BASELINE_EXPECTED)
    return measures, rows


def _cell(text: str) -> str:
    return json.dumps(text) if _UNSAFE.intersection(text) or text[:1] in ("", '"', "#") else text


def _text(cell: str) -> str:
    if not cell.startswith('"'):
        return cell
    text = json.loads(cell)
    if not isinstance(text, str):
        raise ValueError(cell)
    text.encode("utf-8")  # raises for half of a surrogate pair, a ValueError too
    return text
