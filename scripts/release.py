"""Say whether the checkout may be released as a tag, and print what its release notes are: its part of CHANGELOG.md.

    python scripts/release.py v0.3.0

Exits with 1 where the version of pyproject.toml is another, or where the changelog does not begin with it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GROUPS = ["Numbers that change", "New", "Mended"]


def faults(tag: str, version: str, changes: str) -> list[str]:
    """What has to be done before this tag is a release."""
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag} and the version of pyproject.toml {version}; expected v{version}")
    heading = changes.partition("\n## ")[2].partition("\n")[0]
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        found.append(f"CHANGELOG.md begins with '{heading}'; expected '{version} (date of the release)'")
    groups = re.findall(r"^### (.*)$", notes(changes), re.MULTILINE)
    if groups != GROUPS:
        found.append(f"its groups are {', '.join(groups)}; expected {', '.join(GROUPS)}")
    return found


def notes(changes: str) -> str:
    """The text below the first heading of the changelog, up to the next."""
    return changes.partition("\n## ")[2].partition("\n")[2].partition("\n## ")[0].strip() + "\n"


if __name__ == "__main__":
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wrong = faults(sys.argv[1], project["version"], changelog)
    print("\n".join(wrong) or notes(changelog))
    sys.exit(bool(wrong))
