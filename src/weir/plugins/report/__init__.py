"""Reports: a results folder as one page, as tables and figures of a paper, and as a short text."""
