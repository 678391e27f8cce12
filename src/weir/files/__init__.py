"""Read and write files: rankings, judgments, collections, archives, downloads, stores."""
