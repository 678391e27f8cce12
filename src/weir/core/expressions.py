"""Texts that are written as expressions of Python, read as syntax trees and never evaluated."""

from __future__ import annotations

import ast

from weir.settings import NUMBER_DIGITS


def syntax_tree(text: str) -> ast.expr:
    """The syntax tree of an expression.

    Raises ValueError for what is none, what is nested too deeply, and a whole number of more than NUMBER_DIGITS digits:
    of those with thousands Python prints none.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no expression ({error})") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 10**NUMBER_DIGITS:
            raise ValueError(f"a whole number of more than {NUMBER_DIGITS} digits")
    return tree
