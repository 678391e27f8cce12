"""Submissions: results packed for others, who compute every score again."""
