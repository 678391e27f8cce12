"""Files of other tools, and golden sets of any shape, as a collection in Weir's own layout.

Begin with `importer.py` (`weir.import_files`).
"""

from __future__ import annotations

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
