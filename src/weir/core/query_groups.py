"""Queries in groups: slices of a collection, paraphrases of one question, one query under several instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weir.core.ids import Ids
from weir.core.strings import Int32, Int64
from weir.errors import BadValue

__all__ = ["RULES", "QueryGroups"]

RULES = ("prefix:", "stem:")
"""How rules on identifiers begin."""


@dataclass(frozen=True, eq=False, repr=False)
class QueryGroups:
    """Which group each query is in: one, or none.

    name: what the groups are, such as "topic" or "prefix:_"; queries: Ids[Q]; labels: the groups' names in order;
    group: int32[Q], numbers in `labels`, -1 for a query without a group.
    """

    name: str
    queries: Ids
    labels: tuple[str, ...]
    group: Int32

    @staticmethod
    def of(groups: Mapping[str, object], name: str = "group") -> QueryGroups:
        """Groups from {query: label}; a query whose label is None or "" has no group. Raises BadValue as `Ids.of`."""
        texts = ["" if label is None else str(label) for label in groups.values()]
        labels = tuple(sorted(set(texts) - {""}))
        number = {label: n for n, label in enumerate(labels)} | {"": -1}
        return QueryGroups(name, Ids.of(groups), labels, np.array([number[t] for t in texts], np.int32))

    @staticmethod
    def by_identifier(queries: Ids, rule: str) -> QueryGroups:
        """Groups that stand in the identifiers of queries: "prefix:_" up to the first _, "stem:-" up to the last -.

        A query without the sign has no group. Raises BadValue for another rule and where no query has a group.
        """
        kind, _, sign = rule.partition(":")
        if not (sign and rule.startswith(RULES)):
            raise BadValue(f"--by {rule}: expected a sign behind it, such as prefix:_ or stem:-")
        names = queries.tolist()
        found = {q: (q.partition(sign) if kind == "prefix" else q.rpartition(sign))[0] for q in names}
        groups = QueryGroups.of({q: label if sign in q else "" for q, label in found.items()}, rule)
        if not groups.labels:
            example = f"; one is '{names[0]}'" if names else ""
            raise BadValue(f"--by {rule}: no query identifier has '{sign}' in it{example}")
        return groups

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<QueryGroups by {self.name}: {len(self.queries):,} queries in {len(self.labels):,} groups>"

    def rows(self, queries: Ids) -> dict[str, Int64]:
        """The places of the members of each group among these queries, int64; groups without a member are left out."""
        codes = self.queries.codes(queries.strings)
        at = np.where(codes >= 0, self.group[codes], -1) if len(self.queries) else codes
        found = {label: np.flatnonzero(at == number) for number, label in enumerate(self.labels)}
        return {label: rows for label, rows in found.items() if len(rows)}
