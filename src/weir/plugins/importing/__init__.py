"""Files of other tools, and golden sets of any shape, as a collection in Weir's own layout. Begin with `importer.py`.

- `importer.py` is `weir.import_files`; `command.py` is `weir data import`.
- `contents.py` reads a file whose format is unknown and decides the roles of its columns; `cells.py` tracks which
  cells are used.
- `readers.py` chooses a reader of `formats/`; readers yield the values of `items.py`.
- `merge.py` joins the items of all files into one collection; `click_models.py` turns clicks into grades.
- `references/` makes collections from other catalogues, such as ir-datasets and the Hugging Face hub.
"""

from __future__ import annotations

from weir.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
