"""Files of other tools, and golden sets of any shape, as a collection in Weir's own layout."""

from __future__ import annotations

from weir.plugins.importing.importer import ImportReport, import_files
from weir.plugins.importing.items import Choices

__all__ = ["Choices", "ImportReport", "import_files"]
