"""What axe finds on a page in both themes."""

from __future__ import annotations

from typing import Any

LIGHT_AND_DARK = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]},
}
"""Options by theme: the rules of colours are asked in both, the others once."""


def violations(page: Any) -> list[tuple[str, str, str]]:
    """Return rule, impact and the first element of each violation, in light and in dark."""
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for theme, options in LIGHT_AND_DARK.items():
        page.emulate_media(color_scheme=theme)
        found += Axe().run(page, options=options).response["violations"]
    return [(one["id"], one["impact"], one["nodes"][0]["html"][:200]) for one in found]
