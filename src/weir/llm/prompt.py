"""Prompts as files: what a model is told, with places for the query, its objective and the passages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from weir.errors import BadValue
from weir.io.storage.toml_file import read_toml

__all__ = ["PromptTemplate", "checked_template", "prompt_digest", "prompt_template"]

PLACES = ("query", "objective", "passage", "passages", "count", "requirement", "scale", "positive")
_ENTRIES = {"system": str, "user": str, "objective": str, "max_tokens": int, "json": bool}
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt as its file says.

    name: of the file; digest: of what it holds, its version; system, user: texts with places such as {query};
    objective: what stands at {objective} where there is one, with a place {instruction}; max_tokens: of an answer,
    where nothing else is set; json: whether the answer is held to be JSON.
    """

    name: str
    digest: str
    system: str
    user: str
    objective: str
    max_tokens: int
    json: bool = False

    def texts(self, given: Mapping[str, str], instruction: str) -> tuple[str, str]:
        """(system, user) with everything in its place; what stands in a text that is put in is never a place."""
        told = self.objective.replace("{instruction}", instruction) if instruction else ""
        said = {**given, "objective": told}
        return _filled(self.system, said), _filled(self.user, said)

    def describe(self) -> dict[str, object]:
        """Its name and version."""
        return {"name": self.name, "version": self.digest}


def _filled(text: str, given: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda match: given.get(match[1], match[0]), text)


@cache
def prompt_template(name: str, needed: tuple[str, ...]) -> PromptTemplate:
    """The prompt of that name, or in a TOML file of that path; needed: places that its user text must have.

    Raises FormatError for no file or no TOML, BadValue for entries or places that are wrong or missing.
    """
    own = Path(__file__).parent / "prompts" / f"{name}.toml"
    path = own if re.fullmatch(r"\w+", name) else Path(name)
    return checked_template(
        path, read_toml(path, "a prompt, with system, user, objective and max_tokens"), needed
    )


def checked_template(path: Path, entries: Mapping[str, Any], needed: tuple[str, ...]) -> PromptTemplate:
    """The prompt that the entries of a file give; needed as `prompt_template`, which raises the same BadValue."""
    for entry, kind in _ENTRIES.items():
        if entry != "json" and type(entries.get(entry)) is not kind:
            raise BadValue(f"{path}: {entry} is {entries.get(entry)!r}; expected {_named(kind)}")
    if strange := sorted(set(entries) - set(_ENTRIES)):
        raise BadValue(f"{path}: '{strange[0]}' is no entry of a prompt; expected {', '.join(_ENTRIES)}")
    user = entries["user"]
    if lacking := [place for place in needed if f"{{{place}}}" not in user]:
        raise BadValue(f"{path}: user has no place {{{lacking[0]}}}, which this method fills")
    known = set(PLACES)
    if odd := [m[1] for m in _PLACE.finditer(entries["system"] + user) if m[1] not in known]:
        raise BadValue(f"{path}: {{{odd[0]}}} is no place; expected {', '.join(PLACES)}")
    if entries["max_tokens"] < 1 or type(entries.get("json", False)) is not bool:
        raise BadValue(f"{path}: max_tokens is a whole number from 1, json true or false")
    return PromptTemplate(path.stem, prompt_digest(entries), **entries)


def prompt_digest(entries: Mapping[str, Any]) -> str:
    """The version of a prompt: the hash of what decides its answers."""
    return hashlib.blake2b(repr(sorted(entries.items())).encode(), digest_size=6).hexdigest()


def _named(kind: type) -> str:
    return "a text" if kind is str else "a whole number"
