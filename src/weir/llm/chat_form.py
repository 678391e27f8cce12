"""Prompts as a local model reads them, and its tokens as text: the form of its chat template, or a plain one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from weir.core.strings import Float64, Int64
from weir.encode.models.quiet import quiet
from weir.encode.models.tokens import load_tokenizer
from weir.encode.recipes.checkpoint import Checkpoint
from weir.errors import StoreError, require
from weir.llm.chat_shapes import TokenChoice

__all__ = ["ChatForm", "chat_form"]

PLAIN_CUE = "Answer:"
TEMPLATE_DAY = {
    "%Y": "2026",
    "%y": "26",
    "%m": "01",
    "%d": "01",
    "%B": "January",
    "%b": "Jan",
    "%A": "Thursday",
}
"""Today, to templates that print the day: the same prompt is the same tokens on any day."""
CONTEXT_TOKENS = 8
"""Tokens before one that its text may depend on."""
UNFINISHED = "\ufffd"
"""What stands for bytes that the next token completes."""


@dataclass(frozen=True, eq=False)
class ChatForm:
    """How prompts become tokens.

    template: a chat template, messages to text, or None for the plain form: system text, an empty line, user text, an
    empty line, "Answer:"; folded: whether the template has no place for a system text, which then stands before the
    user's; controls: the tokens by which the model tells turns and roles apart: where a prompt has their text they are
    taken apart by a blank, so that no passage ends its turn.
    """

    inner: Any
    template: Callable[[list[dict[str, str]]], str] | None
    folded: bool = False
    controls: tuple[str, ...] = field(default=(), repr=False)

    def tokens(self, system: str, user: str) -> Int64:
        """The tokens of a prompt, int64[n]."""
        system, user = self._apart(system), self._apart(user)
        together = f"{system}\n\n{user}" if system else user
        if self.template is None:
            ids = self.inner.encode(f"{together}\n\n{PLAIN_CUE}").ids
        else:
            messages = [{"role": "user", "content": together if self.folded else user}]
            if system and not self.folded:
                messages.insert(0, {"role": "system", "content": system})
            ids = self.inner.encode(self.template(messages), add_special_tokens=False).ids
        return np.array(ids, np.int64)

    def text(self, ids: Int64) -> str:
        """What tokens say, those that end a text left out."""
        return str(self.inner.decode(ids.tolist(), skip_special_tokens=True))

    def choices(self, ids: Int64, others: Int64, odds: Float64) -> tuple[TokenChoice, ...]:
        """Each token as text with its alternatives, those of equal text as one; the token that ends a text is "".

        ids, others, odds: as in Continuation; () where that has no alternatives.
        """
        found = []
        for place in range(len(ids) if others.shape[1] else 0):
            before = ids[max(0, place - CONTEXT_TOKENS) : place].tolist()
            rows = [[*before, token] for token in [int(ids[place]), *others[place].tolist()]]
            said = self.inner.decode_batch([before, *rows], skip_special_tokens=True)
            start, *texts = [text.rstrip(UNFINISHED) for text in said]
            own, *pieces = [text[len(start) :] for text in texts]
            told = dict(
                zip(others[place].tolist(), zip(pieces, odds[place].tolist(), strict=True), strict=True)
            )
            found.append((own, _joined(list(told.values()))))
        return tuple(found)

    def _apart(self, text: str) -> str:
        for control in self.controls:
            if control in text:
                text = text.replace(control, f"{control[0]} {control[1:]}")
        return text


def _joined(pieces: list[tuple[str, float]]) -> dict[str, float]:
    """Log-probability by text: tokens of equal text are one alternative with what they have together."""
    found: dict[str, float] = {}
    for piece, value in pieces:
        before = found.get(piece, -math.inf)
        high, low = max(before, value), min(before, value)
        found[piece] = high if math.isinf(low) else high + math.log1p(math.exp(low - high))
    return found


def chat_form(checkpoint: Checkpoint) -> tuple[ChatForm, int | None]:
    """(the form that a checkpoint's files declare, the token that ends a text as its tokenizer says).

    Raises StoreError for a tokenizer or a template that cannot be read.
    """
    transformers = require("transformers", extra="neural")
    folder = checkpoint.folder
    inner = load_tokenizer(folder, checkpoint.limit).inner
    inner.no_truncation()
    try:
        with quiet(transformers):
            # Code that a checkpoint brings is never run; a template runs in the sandbox that jinja2 has.
            told = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=False
            )
    except Exception as error:  # noqa: BLE001 - the library raises errors of many families for a damaged file
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{folder}: the tokenizer cannot be read: {reason}") from None
    known = told.chat_template
    if not known or (isinstance(known, dict) and "default" not in known):
        return ChatForm(inner, None, controls=_controls(inner)), told.eos_token_id
    render = partial(
        told.apply_chat_template,
        chat_template=_on_any_day(known["default"] if isinstance(known, dict) else known),
        tokenize=False,
        add_generation_prompt=True,
        sanitize_control_tokens=False,  # done by ChatForm, the same under any version of transformers
    )
    require("jinja2", extra="neural")
    return ChatForm(inner, render, _folds(render, str(folder)), _controls(inner)), told.eos_token_id


def _on_any_day(template: str) -> str:
    """A chat template in which today is TEMPLATE_DAY: a macro of its own hides transformers' function of that name."""
    if "strftime_now" not in template:
        return template
    steps = "".join(f"|replace('{code}', '{said}')" for code, said in TEMPLATE_DAY.items())
    return f"{{% macro strftime_now(form) %}}{{{{ form{steps} }}}}{{% endmacro %}}{template}"


def _folds(render: Callable[[list[dict[str, str]]], str], folder: str) -> bool:
    """Whether a template has no place for a system text; raises StoreError for one that renders nothing at all."""
    user = {"role": "user", "content": "weir-user"}
    try:
        told = render([{"role": "system", "content": "weir-system"}, user])
        if "weir-system" in told and "weir-user" in told:
            return False
    except Exception:  # noqa: BLE001 - templates raise what they like, such as "no system role"
        told = ""
    try:
        told = render([user])
    except Exception as error:  # noqa: BLE001 - templates raise what they like, such as "no system role"
        reason = " ".join(str(error).split())[:200]
        raise StoreError(f"{folder}: the chat template cannot be rendered: {reason}") from None
    if "weir-user" not in told:
        raise StoreError(f"{folder}: the chat template leaves out what the user says")
    return True


def _controls(inner: Any) -> tuple[str, ...]:  # noqa: ANN401 - a tokenizers.Tokenizer
    """The tokens that are no text, the longest first."""
    added = inner.get_added_tokens_decoder().values()
    marks = {t.content for t in added if t.special or (t.content[:1] == "<" and t.content[-1:] == ">")}
    return tuple(sorted((mark for mark in marks if len(mark) > 1), key=lambda mark: (-len(mark), mark)))
