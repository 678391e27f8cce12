"""Arrays in files of numpy's format, read so that whatever such a file holds ends in an array or in a StoreError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from weir.errors import StoreError, is_shortage

__all__ = ["read_array"]


def read_array(path: Path, dtype: DTypeLike | None = None, shape: tuple[int, ...] = (-1,)) -> NDArray[Any]:
    """An array in a .npy file, memory-mapped and read-only, contiguous and never of Python objects.

    dtype: the one expected, None: any numbers; shape: the one expected, -1 where an axis may have any length.
    Raises StoreError, naming the file, where it is missing, damaged, or holds another kind of array.
    """
    try:
        # A plain array: slicing a memmap costs more than searching a short list.
        found = np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except Exception as error:
        if is_shortage(error):
            raise
        raise StoreError(f"{path}: damaged ({type(error).__name__}: {str(error)[:80]})") from None
    fits = found.ndim == len(shape) and all(w in (-1, n) for w, n in zip(shape, found.shape, strict=True))
    numbers = found.dtype.kind in "iuf" if dtype is None else found.dtype == np.dtype(dtype)
    if not (fits and numbers and found.flags.c_contiguous):
        raise StoreError(f"{path}: damaged (it holds {found.dtype} of shape {found.shape})")
    return found
