"""The page's cache: it fits its bytes, drops what was not used for longest, and makes nothing twice that it holds."""

from __future__ import annotations

import sys
from threading import Barrier, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.plugins.app.kept import Kept, held_bytes

BOUND = 1_000_000
SHAPES = {
    "bytes": bytes,
    "array": lambda size: np.zeros(size, np.uint8),
    "view": lambda size: np.zeros(size, np.uint8)[::2],
    "texts": lambda size: [f"{n:040d}" for n in range(size // 100)],
    "nested": lambda size: {
        "scores": (np.zeros(size // 8),),
        "places": {n: str(n) for n in range(size // 2000)},
    },
}
ASKED = st.tuples(
    st.integers(0, 7),
    st.sampled_from([0, 1_000, 200_000, 300_000, 400_000]),
    st.sampled_from(["refused", "huge", *SHAPES]),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ASKED, min_size=8, max_size=40))
def test_values_fit_the_bytes_and_the_least_recently_used_are_dropped(asked):
    kept, used = Kept(BOUND), list[int]()
    for key, size, shape in asked:
        before = {one: future.result() for one, future in kept.values.items() if not future.exception()}
        made = list[object]()

        def make(size=size, shape=shape, made=made):
            if shape == "refused":
                raise ValueError
            made.append(bytes(2 * BOUND) if shape == "huge" else SHAPES[shape](size))
            return made[0]

        if shape == "refused" and key not in before:
            with pytest.raises(ValueError):  # noqa: PT011  it has no words
                kept.value_of(key, make)
        else:
            assert kept.value_of(key, make) is (before[key] if key in before else made[0])
        assert bool(made) == (key not in before and shape != "refused")
        used = [*(one for one in used if one != key), key]
        dropped = used[: len(used) - len(kept.values)]
        used = used[len(dropped) :]
        assert list(kept.values) == used
        values = {one: future.result() for one, future in kept.values.items() if not future.exception()}
        assert sum(held_bytes(pair) for pair in values.items()) <= BOUND or used == [key]
        if dropped and dropped[-1] in before:  # for which there is no room
            values[dropped[-1]] = before[dropped[-1]]
            assert sum(held_bytes(pair) for pair in values.items()) + 100 * len(used) > BOUND


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [100_000, 10_000_000])
def test_the_bytes_of_a_value_are_about_right(shape, size):
    least = {"texts": size // 100 * (40 + sys.getsizeof("") + 8), "nested": size}.get(shape, size)
    assert least * 0.99 <= held_bytes(SHAPES[shape](size)) <= least * 1.3 + 1000


def test_a_mapped_file_takes_no_memory(tmp_path):
    np.save(tmp_path / "mapped.npy", np.zeros(1_000_000))
    mapped = np.load(tmp_path / "mapped.npy", mmap_mode="r")
    assert held_bytes({"vectors": mapped[10:]}) < 5_000
    assert held_bytes({"vectors": np.array(mapped)}) > 8_000_000


def test_what_refers_to_the_cache_does_not_weigh_what_is_in_it():
    kept = Kept(BOUND)
    kept.value_of("large", lambda: bytes(BOUND // 2))
    assert held_bytes([kept]) < 1_000


def test_several_who_ask_at_once_get_the_same_value_and_leave_the_cache_within_its_bytes():
    kept, start, found = Kept(BOUND), Barrier(8), list[tuple[int, object]]()

    def ask(number):
        start.wait()
        found.extend(
            (key, kept.value_of(key, lambda: bytes(BOUND // 4))) for key in range(number, number + 6)
        )

    threads = [Thread(target=ask, args=(number % 2,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 48
    assert sum(kept.sizes.values()) <= BOUND
    assert kept.sizes.keys() == kept.values.keys()
