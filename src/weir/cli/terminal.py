"""Standard output as a terminal may show it: nothing that identifiers and texts hold moves its cursor."""

from __future__ import annotations

import io
import re
import sys

from weir.errors import printable

__all__ = ["protect_terminal"]

_CUT = re.compile(r"([\n\t])")


class _Shown(io.TextIOWrapper):
    """A terminal that gets lines and printable characters; a pipe or file gets what is written, byte for byte."""

    def write(self, text: str) -> int:
        """Write the text with control characters escaped."""
        super().write("".join(piece if piece in "\n\t" else printable(piece) for piece in _CUT.split(text)))
        return len(text)


def protect_terminal() -> None:
    """Let standard output show what it cannot encode as escapes, and control characters too where it is a terminal."""
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper) or isinstance(out, _Shown):
        return
    if out.isatty():
        out.flush()
        raw = open(out.fileno(), "wb", closefd=False)  # noqa: SIM115  it ends with the process
        sys.stdout = _Shown(raw, out.encoding, "backslashreplace", line_buffering=True)
    else:
        out.reconfigure(errors="backslashreplace")
