"""Where texts and keys may go: what an experiment may name as address and as key of an embedding API."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from weir.encode.api.http import is_this_machine
from weir.errors import BadValue
from weir.settings import KEY_VARIABLE

__all__ = ["check_base", "check_key"]


def check_key(key: object, usual: str, base: str | None) -> None:
    """Raise BadValue for an environment variable that is not there to be sent to that address."""
    if not isinstance(key, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key):
        raise BadValue(f"key must name an environment variable, such as {usual}, not be the key itself")
    if key == usual and base is None:
        return
    if not re.fullmatch(KEY_VARIABLE, key):
        goes = (
            f"{usual} goes to the provider's own address" if key == usual else f"'{key}' is not sent anywhere"
        )
        raise BadValue(f"key: {goes}; put the key for this one into WEIR_KEY_NAME and name that variable")


def check_base(base: object) -> None:
    """Raise BadValue for what is no address, and for plain http to another machine."""
    try:
        parts = urlsplit(base) if isinstance(base, str) else urlsplit("")
        odd = parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc
        odd = odd or bool(parts.query or parts.fragment) or parts.port == 0
        odd = odd or not re.fullmatch(r"[\x21-\x7e]+", str(base))
    except ValueError:
        odd = True
    if odd:
        raise BadValue(
            "base is not an address such as http://localhost:8080/v1, without user, key or question mark"
        )
    if parts.scheme == "http" and not is_this_machine(parts.hostname or ""):
        raise BadValue(f"base is {base}: plain http reaches this machine only; expected an https address")
