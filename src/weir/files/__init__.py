"""From bytes to values and back: files, archives, downloads, stores."""
