"""Results as people read them; the only place where numbers are rounded."""
