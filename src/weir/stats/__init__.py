"""From per-query scores to inference: intervals now, tests and corrections beside them."""
