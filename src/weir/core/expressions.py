"""Python expressions as text, parsed but never evaluated."""

from __future__ import annotations

import ast

from weir.settings import NUMBER_DIGITS


def syntax_tree(text: str) -> ast.expr:
    """Return the syntax tree of a Python expression. Raises ValueError for invalid or deeply nested syntax and
    integers beyond NUMBER_DIGITS digits.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no expression ({error})") from None
    # Python refuses to print whole numbers of thousands of digits.
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= 10**NUMBER_DIGITS:
            raise ValueError(f"a whole number of more than {NUMBER_DIGITS} digits")
    return tree
