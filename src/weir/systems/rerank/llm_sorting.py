"""Sorting by choices: which groups of documents a judge is shown, who picks the best of each, until the top is known.

A sorting is a generator over places 0 to n - 1 of an initial order. It yields groups of places, all those that can be
judged side by side, is sent the best place of each, and returns the top places, best first. Nothing here knows who
judges: whoever answers every group by one order gets the top of that order.

Source: Zhuang et al. 2024 (set-wise heap sort and bubble sort); Chen et al. 2025 (tournaments).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeAlias

__all__ = ["Groups", "Sorting", "most_groups", "sorting"]

Groups: TypeAlias = list[tuple[int, ...]]
"""Groups of places of which the best is asked for, two or more in each."""
Sorting: TypeAlias = Generator[Groups, list[int], list[int]]


def sorting(sort: str, count: int, width: int, top: int) -> Sorting:
    """The sorting of so many documents by groups of at most `width`, until the `top` best are known.

    sort: "heapsort", "bubblesort" or "tournament".
    """
    known = {"heapsort": _heapsort, "bubblesort": _bubblesort, "tournament": _tournament}
    return known[sort](count, width, min(top, count))


def most_groups(sort: str, count: int, width: int, top: int) -> int:
    """How many groups a sorting asks about at most; for "all", every two documents."""
    top = min(top, count)
    if sort == "all":
        return count * (count - 1) // 2
    if count < 2:
        return 0
    if sort == "heapsort":
        built = sum(_height(place, count, width) for place in range(count))
        sunk = sum(_height(0, count - out, width) for out in range(1, top))
        return (built + sunk) * (2 if width == 2 else 1)
    if sort == "bubblesort":
        return sum(-(-(count - done - 1) // (width - 1)) for done in range(top))
    levels = list(_levels(count, width))
    return sum(nodes for nodes, _ in levels) + (top - 1) * len(levels)


def _best(groups: list[list[int]]) -> Generator[Groups, list[int], list[int]]:
    """The best of each group, of which those of a single place are not asked about."""
    asked = [tuple(group) for group in groups if len(group) > 1]
    found = iter((yield asked) if asked else [])
    return [next(found) if len(group) > 1 else group[0] for group in groups]


def _children(width: int) -> int:
    """Children of a parent in a heap: one group holds a family, or two of two in turn."""
    return max(2, width - 1)


def _height(place: int, count: int, width: int) -> int:
    """Levels below a place of a heap."""
    levels = 0
    while (place := _children(width) * place + 1) < count:
        levels += 1
    return levels


def _heapsort(count: int, width: int, top: int) -> Sorting:
    """A heap whose parents are compared with all their children at once, by twos with the better of two children; the
    trees of one level side by side."""
    heap = list(range(count))
    by_height: dict[int, list[int]] = {}
    for place in range(count):
        by_height.setdefault(_height(place, count, width), []).append(place)
    for height in range(1, max(by_height, default=0) + 1):
        yield from _sift(heap, by_height.get(height, []), width)
    found: list[int] = []
    while len(found) < top:
        found.append(heap[0])
        last = heap.pop()
        if heap and len(found) < top:
            heap[0] = last
            yield from _sift(heap, [0], width)
    return found


def _sift(heap: list[int], roots: list[int], width: int) -> Generator[Groups, list[int], None]:
    """Let what stands at the roots of disjoint trees sink to where no child is better."""
    active = roots
    while active:
        families = [_family(heap, root, width) for root in active]
        best = yield from _best_of_families([[heap[at] for at in family] for family in families], width)
        following = []
        for root, family, chosen in zip(active, families, best, strict=True):
            at = family[[heap[place] for place in family].index(chosen)]
            if at != root:
                heap[root], heap[at] = heap[at], heap[root]
                following.append(at)
        active = following


def _best_of_families(families: list[list[int]], width: int) -> Generator[Groups, list[int], list[int]]:
    """The best of a parent, which stands first, and its children, in groups of at most `width`."""
    if width > 2:
        return (yield from _best(families))
    several = [number for number, family in enumerate(families) if len(family) > 1]
    better = yield from _best([families[number][1:] for number in several])
    best = yield from _best(
        [[families[number][0], child] for number, child in zip(several, better, strict=True)]
    )
    found = [family[0] for family in families]
    for number, chosen in zip(several, best, strict=True):
        found[number] = chosen
    return found


def _family(heap: list[int], root: int, width: int) -> list[int]:
    first = _children(width) * root + 1
    return [root, *range(first, min(first + _children(width), len(heap)))]


def _bubblesort(count: int, width: int, top: int) -> Sorting:
    """Groups from the last documents to the first, each with the best of the one before; once for each place."""
    order = list(range(count))
    for done in range(min(top, count - 1)):
        stop = count
        while stop - done > 1:
            start = max(done, stop - width)
            [best] = yield from _best([order[start:stop]])
            order.remove(best)
            order.insert(start, best)
            stop = start + 1
    return order[:top]


def _levels(count: int, width: int) -> Iterator[tuple[int, int]]:
    """(groups, members to share among them) of each round of a tournament."""
    while count > 1:
        groups = -(-count // width)
        yield groups, count
        count = groups


def _tournament(count: int, width: int, top: int) -> Sorting:
    """The best of each group goes on to the next round; for the next place the groups that the winner won are asked
    again without it. Documents are seeded: those that stand one behind the other meet late."""
    rounds: list[list[int | None]] = [list(range(count))]
    sizes = [groups for groups, _ in _levels(count, width)]
    for groups in sizes:
        members = [[m for m in rounds[-1][g::groups] if m is not None] for g in range(groups)]
        rounds.append(list((yield from _best(members))))
    found: list[int] = []
    while len(found) < top:
        winner = rounds[-1][0]
        assert winner is not None  # fewer were taken out than there are
        found.append(winner)
        if len(found) < top:
            yield from _without(rounds, sizes, winner)
    return found


def _without(
    rounds: list[list[int | None]], sizes: list[int], winner: int
) -> Generator[Groups, list[int], None]:
    """Take the winner out of every round, and let those whom it beat play for its places."""
    place = winner
    rounds[0][place] = None
    for number, groups in enumerate(sizes):
        place %= groups
        members = [m for m in rounds[number][place::groups] if m is not None]
        rounds[number + 1][place] = (yield from _best([members]))[0] if members else None
