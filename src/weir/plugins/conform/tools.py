"""Ask other tools for their answers, each in its own process and Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from weir.errors import BadValue, FormatError, UnknownName
from weir.plugins.conform.vectors import Vector, as_questions

_SECONDS = 1800
_CLOSE = 1e-9


@dataclass(frozen=True)
class ToolValue:
    """A tool's values for a measure on a test vector, or its refusal."""

    mean: float | None = None
    per_query: tuple[tuple[str, float], ...] = ()
    decimals: int | None = None
    """Decimals given; None if values are not rounded."""
    refused: str | None = None
    """Why it refuses."""

    def values(self) -> list[float]:
        """Return the values of the queries, then the mean if given."""
        return [*(v for _, v in self.per_query), *([] if self.mean is None else [self.mean])]

    def agrees(self, value: float, exact: float) -> bool:
        """Return True if a value is near the exact one: within a unit of its last printed decimal, else
        within 1e-9 (relative above 1)."""
        if self.decimals is not None:
            return abs(value - exact) <= 1.000001 * 10.0**-self.decimals
        return abs(value - exact) <= _CLOSE * max(1.0, abs(exact))


@dataclass(frozen=True)
class VectorReply:
    """A tool's values for a test vector, by name of the measure."""

    measures: Mapping[str, ToolValue]
    not_applicable: str | None = None
    """Why the vector cannot be asked."""
    died: str | None = None
    """How the tool's process ended."""


@dataclass(frozen=True)
class Answers:
    """A tool's answers, by identifier of the test vector."""

    tool: str
    package: str
    version: str
    replies: Mapping[str, VectorReply]


def tools() -> tuple[str, ...]:
    """Return the names of the tools with an adapter, sorted."""
    return tuple(sorted(path.stem for path in _script().with_name("adapters").glob("*.py")))


def _script() -> Path:
    return Path(str(resources.files("weir.plugins.conform") / "run_adapter.py"))


def ask(
    tool: str,
    vectors: Sequence[Vector],
    python: str | Path | None = None,
    checkout: str | Path | None = None,
) -> Answers:
    """Run a tool on test vectors in its own process, and return its answers.

    python: the Python of the environment that has the tool, by default this one.
    checkout: the folder of a tool that is no package: birco.

    A vector that kills the process gets no values. Raises UnknownName for a tool without an adapter, BadValue
    if it is not installed or silent.
    """
    if tool not in tools():
        raise UnknownName("tool", tool, tools())
    command = [str(python or sys.executable), str(_script()), tool]
    command += [] if checkout is None else [str(Path(checkout).resolve())]
    head: dict[str, str] = {"package": tool, "version": ""}
    replies: dict[str, VectorReply] = {}
    rest = list(vectors)
    while rest:
        head, lines, end = _run(tool, rest, command)
        replies |= {line["id"]: _reply(line) for line in lines}
        rest = rest[len(lines) :]
        if rest:
            replies[rest.pop(0).id] = VectorReply({}, died=end)
    return Answers(tool, head["package"], head["version"], replies)


def _run(tool: str, vectors: Sequence[Vector], command: list[str]) -> tuple[Any, list[Any], str]:
    python, text = command[0], json.dumps({"vectors": as_questions(vectors)})
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=_SECONDS, check=False
        )
    except OSError as error:
        raise BadValue(f"{python}: {error.strerror}; expected the Python of an environment") from None
    except subprocess.TimeoutExpired:
        raise BadValue(f"{tool} did not answer within {_SECONDS} seconds") from None
    # Text after the last line end is half a line of a process that died.
    lines = [json.loads(line) for line in done.stdout.decode("utf-8").split("\n")[:-1]]
    if lines and "not_installed" in lines[0]:
        reason = lines[0]["not_installed"]
        raise BadValue(
            f"{tool} is not installed for {python} ({reason}); install it there, or name another with `python`"
        )
    if not lines:
        last = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise BadValue(f"{tool} did not start in {python}: {last[:200]}")
    end = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return lines[0], lines[1:], f"its process died ({end})"


def _reply(line: Mapping[str, Any]) -> VectorReply:
    if "died" in line:
        return VectorReply({}, died=str(line["died"]))
    if "not_applicable" in line:
        return VectorReply({}, str(line["not_applicable"]))
    measures = {}
    for name, value in line["measures"].items():
        mean = value.get("mean")
        pairs = value.get("per_query", {}).items()
        per_query = tuple((str(q), float("nan" if v is None else v)) for q, v in pairs)
        measures[name] = (
            ToolValue(refused=str(value["refused"]))
            if "refused" in value
            else ToolValue(None if mean is None else float(mean), per_query, value.get("decimals"))
        )
    return VectorReply(measures)


def read_answers(path: Path) -> Answers:
    """Return the answers in a file of JSON lines (docs/conformance.md).

    Raises FormatError for other content and without any answer, OSError if unreadable.
    """
    expected = 'a line {"id": ..., "measures": {...}}'
    head: dict[str, Any] = {"tool": path.stem}
    replies: dict[str, VectorReply] = {}
    for number, text in enumerate(path.read_bytes().split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if "id" in line:
                replies[line["id"]] = _reply(line)
            else:
                head |= dict(line)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FormatError(path, f"{type(error).__name__} ({error})", expected, number) from None
    if not replies:
        raise FormatError(path, "no answer", expected)
    name = str(head["tool"])
    return Answers(name, str(head.get("package", name)), str(head.get("version", "")), replies)


def answers_text(answers: Answers, vectors: Iterable[Vector]) -> str:
    """Return answers as JSON lines for `read_answers`, in the order of the vectors, without unanswered ones."""
    lines: list[dict[str, Any]] = [
        {"tool": answers.tool, "package": answers.package, "version": answers.version}
    ]
    for vector in vectors:
        reply = answers.replies.get(vector.id)
        if reply is None:
            continue
        if reply.died is not None:
            lines.append({"id": vector.id, "died": reply.died})
        elif reply.not_applicable is not None:
            lines.append({"id": vector.id, "not_applicable": reply.not_applicable})
        else:
            measures: dict[str, dict[str, Any]] = {}
            for name, value in reply.measures.items():
                per_query = {q: json_number(v) for q, v in value.per_query}
                parts = {"mean": json_number(value.mean), "per_query": per_query, "decimals": value.decimals}
                filled = {key: part for key, part in parts.items() if part not in (None, {})}
                measures[name] = filled if value.refused is None else {"refused": value.refused}
            lines.append({"id": vector.id, "measures": measures})
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def json_number(number: float | None) -> float | str | None:
    """Return a number for JSON: NaN and infinity as text."""
    return number if number is None or number - number == 0 else str(number)
