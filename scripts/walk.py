"""The walk of a command through the house: which files of Weir it passes, in the order of first arrival.

    python scripts/walk.py eval tests/.../qrels run.trec -m nDCG@10

Prints the files with how often the walk comes back to each, the number of files and of functions, in every thread that
the command starts; code that runs while modules are imported is left out, and so are compiled kernels, which a profiler
does not see.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

SOURCE = Path(__file__).resolve().parents[1] / "src" / "weir"


def walked(action: Callable[[], object], source: Path = SOURCE) -> tuple[list[str], Counter[str], int]:
    """(files in the order of first arrival, how often each was entered from another, functions called)."""
    entered: Counter[str] = Counter()
    functions: set[tuple[str, str]] = set()
    order: dict[str, None] = {}
    last = ""

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal last
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(source)) or code.co_name == "<module>":
            return
        if _importing(frame):
            return
        name = Path(code.co_filename).relative_to(source).as_posix()
        order.setdefault(name)
        functions.add((name, code.co_qualname))
        if name != last:
            entered[name] += 1
        last = name

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # None ends it, which the stub does not know
    return list(order), entered, len(functions)


def _importing(frame: FrameType) -> bool:
    """Whether a frame runs because a module is being imported."""
    above = frame.f_back
    while above is not None:
        if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(str(SOURCE)):
            return True
        above = above.f_back
    return False


if __name__ == "__main__":
    from weir.cli.main import main

    main(sys.argv[1:])  # once beforehand, so that registries are filled and modules imported
    files, times, functions = walked(lambda: main(sys.argv[1:]))
    print("\n".join(f"{times[name]:4} {name}" for name in files), file=sys.stderr)
    print(f"{len(files)} files, {functions} functions", file=sys.stderr)
