"""Published scores, and results checked against them by the rules of their publishers."""
