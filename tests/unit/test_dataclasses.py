"""Classes made by weir.values behave as Python's own dataclasses."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, field
from itertools import product

import pytest

import weir
from weir.errors import WeirError
from weir.values import dataclass

SETTINGS = [
    dict(zip(("frozen", "eq", "repr"), flags, strict=True)) for flags in product([False, True], repeat=3)
]


def plain() -> type:
    class Plain:
        """A class of each kind of field."""

        name: str
        count: int = 3
        hidden: str = field(default="secret", repr=False)
        aside: float = field(default=0.5, compare=False)
        found: list[int] = field(default_factory=list)
        later: int = field(init=False, default=7)

    return Plain


def empty() -> type:
    class Empty:
        pass

    return Empty


def single() -> type:
    class Single:
        part: object

    return Single


def with_own() -> type:
    class Own:  # noqa: PLW1641  the decorator adds it
        size: int
        area: int = field(init=False)
        shelf: list[int] = field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            object.__setattr__(self, "area", self.size**2)

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    return Own


def with_hash() -> type:
    class Hashed:
        size: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    return Hashed


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or the class and text of its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  whatever it is, both have to raise it
        return type(error), str(error)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(
    ("make", "given"),
    [
        (plain, [("a",), ("b", 4), ("a", 3, "other", 0.1), ("a", 3, "secret", 0.25), ()]),
        (empty, [(), (1,)]),
        (single, [(1,), (2,), ("x",), ([],)]),
        (with_own, [(2,), (3,)]),
        (with_hash, [(2,), (3,)]),
    ],
)
def test_as_pythons_own(
    settings: dict[str, bool], make: Callable[[], type], given: list[tuple[object, ...]]
) -> None:
    ours, python = (wrap(**settings)(make()) for wrap in (dataclass, dataclasses.dataclass))
    assert str(inspect.signature(ours)) == str(inspect.signature(python))
    assert ours.__init__.__annotations__ == python.__init__.__annotations__
    assert ours.__match_args__ == python.__match_args__
    assert str(ours.__dataclass_params__) == str(python.__dataclass_params__)
    for name in ("__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__"):
        assert (name in vars(ours)) == (name in vars(python)), name
    assert (ours.__hash__ is None) == (python.__hash__ is None)
    pairs = [[outcome(lambda c=c, a=a: c(*a)) for c in (ours, python)] for a in given]
    made = [pair for pair in pairs if isinstance(pair[0], ours)]
    assert [pair[0] for pair in pairs if pair not in made] == [pair[1] for pair in pairs if pair not in made]
    for mine, theirs in made:
        assert vars(mine) == vars(theirs)
        if "__repr__" in vars(ours):
            assert repr(mine) == repr(theirs)
        assert dataclasses.asdict(mine) == dataclasses.asdict(theirs)
        for name in [*vars(mine), "new"]:
            assert outcome(lambda n=name, o=mine: setattr(o, n, 1)) == outcome(
                lambda n=name, o=theirs: setattr(o, n, 1)
            )
            assert outcome(lambda n=name, o=mine: delattr(o, n)) == outcome(
                lambda n=name, o=theirs: delattr(o, n)
            )
    if settings["frozen"]:
        for (one, other), (first, second) in product(made, repeat=2):
            assert (one == first) == (other == second)
            assert (one == other) is (make in (with_own, with_hash))
            if "__hash__" in vars(ours):
                assert outcome(lambda o=one: hash(o)) == outcome(lambda o=other: hash(o))


def test_what_is_made_anew() -> None:
    made = dataclass(frozen=True)(plain())
    first, second = made("a"), made("a")
    assert first == second
    assert first.found is not second.found
    assert dataclasses.replace(first, count=4).count == 4


def test_a_ring_of_values_is_written() -> None:
    one = dataclass(single())(None)
    one.part = one
    assert repr(one) == "single.<locals>.Single(part=...)"


def test_a_field_without_default_after_one_that_has_one() -> None:
    class Misordered:
        first: int = 1
        second: int

    with pytest.raises(TypeError, match="without a default"):
        dataclass(Misordered)


def test_inheritance() -> None:
    @dataclasses.dataclass(frozen=True)
    class Longer(dataclass(frozen=True)(single())):
        size: int = 1

    assert Longer(2) == Longer(2, 1)

    class Open(dataclass(frozen=True)(single())):
        pass

    value = Open(1)
    value.free = 2
    with pytest.raises(FrozenInstanceError):
        value.part = 2


@dataclass(frozen=True)
class Kept:
    """A value that is pickled."""

    number: int
    text: str = ""


def test_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, "a"))) == Kept(1, "a")


def every_class() -> Iterator[type]:
    for found in pkgutil.walk_packages(weir.__path__, "weir.", onerror=lambda _: None):
        if found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except (ImportError, WeirError):
            continue  # of an optional package
        yield from (
            one for one in vars(module).values() if isinstance(one, type) and one.__module__ == found.name
        )


def test_classes_of_weir_have_pythons_signature() -> None:
    seen = 0
    for ours in every_class():
        own = vars(ours)
        if "__dataclass_fields__" not in own or own["__init__"].__code__.co_filename != "<string>":
            continue
        python = dataclasses.make_dataclass(
            ours.__name__,
            [(f.name, f.type, dataclasses.field(default=f.default, init=f.init)
              if f.default_factory is dataclasses.MISSING
              else dataclasses.field(default_factory=f.default_factory, init=f.init)) for f in dataclasses.fields(ours)],
        )  # fmt: skip
        assert str(inspect.signature(ours)) == str(inspect.signature(python)), ours
        seen += 1
    assert seen > 500
