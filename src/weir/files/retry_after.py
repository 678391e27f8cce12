"""How long a server asks to wait before the next request."""

from __future__ import annotations

import math
from contextlib import suppress
from email.utils import parsedate_to_datetime


def seconds_asked(retry_after: str | None, now: float) -> float:
    """The seconds that a server asks to wait by Retry-After, a number or a date (RFC 9110); 0 for none, and for others.

    now: seconds since 1970.
    """
    wait = 0.0
    with suppress(ValueError, TypeError):
        wait = parsedate_to_datetime(retry_after or "").timestamp() - now
    with suppress(ValueError, TypeError):
        wait = float(retry_after or "")
    return max(0.0, wait) if math.isfinite(wait) else 0.0
