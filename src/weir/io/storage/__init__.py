"""Files on disk: atomic writes, checksums, sealed records, compression, blocks of lines."""
