"""Results as a command prints them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any

from weir.api.result_set import KINDS, ResultSet


def shown(
    kind: str, results: Iterable[Any], form: str = "text", width: int | None = None, **options: bool
) -> str:
    """Results of a kind in a form; options: of the function that makes their tables."""
    return ResultSet(KINDS.get(kind), tuple(results)).shown(form, width, options=options)


def drawings(shown: str, theme: str = "light") -> list[str]:
    """Return the charts within the HTML of a notebook as SVG, as a page of that theme shows them."""
    images = re.findall(f'<img class="weir-{theme}"[^>]* src="data:image/svg\\+xml;base64,([^"]+)"/>', shown)
    return [base64.b64decode(one).decode() for one in images]
