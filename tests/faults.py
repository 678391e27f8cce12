"""Single faults in files, drawn from a seed, as disks and careless hands make them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

KINDS = ("flipped bit", "zeroed block", "truncation", "deletion", "swap")
BLOCK = 512


@dataclass(frozen=True)
class Fault:
    """What happens to one file below a folder. at: the bit, the block or the length; other: the file swapped with it."""

    kind: str
    file: str
    at: int = 0
    other: str = ""

    def __str__(self) -> str:
        return f"{self.kind} of {self.file}" + (f" with {self.other}" if self.other else f" at {self.at}")

    @staticmethod
    def drawn(rng: np.random.Generator, folder: Path) -> Fault:
        """A fault that changes what is there: kind and file evenly, the place anywhere in the file."""
        files = {
            p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
        }
        while True:
            kind, file, other = KINDS[int(rng.integers(len(KINDS)))], *rng.choice(list(files), 2).tolist()
            data = files[file]
            if kind == "swap" and data != files[other]:
                return Fault(kind, file, other=other)
            if kind == "deletion":
                return Fault(kind, file)
            if kind == "truncation" and data:
                return Fault(kind, file, int(rng.integers(len(data))))
            if kind == "flipped bit" and data:
                return Fault(kind, file, int(rng.integers(8 * len(data))))
            if kind == "zeroed block" and data:
                at = int(rng.integers(-(-len(data) // BLOCK)))
                if any(data[at * BLOCK : (at + 1) * BLOCK]):
                    return Fault(kind, file, at)

    def strike(self, folder: Path) -> None:
        """Do it."""
        path = folder / self.file
        data = bytearray(path.read_bytes())
        if self.kind == "swap":
            path.write_bytes((folder / self.other).read_bytes())
            (folder / self.other).write_bytes(data)
        elif self.kind == "deletion":
            path.unlink()
        elif self.kind == "truncation":
            path.write_bytes(data[: self.at])
        elif self.kind == "flipped bit":
            data[self.at // 8] ^= 1 << self.at % 8
            path.write_bytes(data)
        else:
            piece = slice(self.at * BLOCK, min((self.at + 1) * BLOCK, len(data)))
            data[piece] = bytes(piece.stop - piece.start)
            path.write_bytes(data)
