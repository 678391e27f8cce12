"""A PostgreSQL server, its settings, and a table with the documents of the page's collection."""

import atexit
import contextlib
import os
import sys
from pathlib import Path

import weir

sys.path.insert(0, str(Path(weir.__file__).parents[2]))
from tests.unit.postgres_place import postgres_running

dataset = weir.load("brook-medical")
stack = contextlib.ExitStack()
place = stack.enter_context(postgres_running())
atexit.register(stack.close)
os.environ["PGURL"] = place.url
Path("shop.toml").write_text('dsn = "${PGURL}"\n')
place.ask("CREATE TABLE products (sku text, name text, body text)")
for name, title, text in zip(dataset.corpus.ids, dataset.corpus.title, dataset.corpus.text, strict=True):
    place.ask("INSERT INTO products VALUES (%s, %s, %s)", name, title, text)
Path("products.toml").write_text("""dsn = "${PGURL}"
[table]
name = "products"
id = "sku"
text = ["name", "body"]
""")
