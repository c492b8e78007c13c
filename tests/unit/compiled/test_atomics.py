"""Numbers that several threads change at once."""

import concurrent.futures

import numpy as np

from tokcore.compiled.atomics import exchange_if, load_acquired, store_released
from tokcore.compiled.compilation import kernel_without_allocation


@kernel_without_allocation
def add_under_lock(state, times):
    for _ in range(times):
        while exchange_if(state, np.uint64(0), 0, 1) != 0:
            pass
        state[1] += 1
        store_released(state, np.uint64(0), 0)


@kernel_without_allocation
def exchange(state, expected, number):
    return exchange_if(state, np.uint64(1), expected, number)


@kernel_without_allocation
def move(numbers, source, target):
    store_released(numbers, target, load_acquired(numbers, source))


def test_no_addition_under_a_lock_is_lost():
    state = np.zeros(2, np.int64)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(add_under_lock, [state] * 8, [20_000] * 8))
    assert state.tolist() == [0, 160_000]


def test_only_the_expected_number_is_exchanged():
    state = np.array([7, 5], np.int64)
    assert exchange(state, 4, 9) == 5
    assert state.tolist() == [7, 5]
    assert exchange(state, 5, 9) == 5
    assert state.tolist() == [7, 9]


def test_numbers_of_any_width_are_loaded_and_stored():
    for dtype in (np.uint32, np.int64):
        numbers = np.array([1, 2, np.iinfo(dtype).max], dtype)
        move(numbers, np.uint64(2), np.uint64(0))
        assert numbers.tolist() == [np.iinfo(dtype).max, 2, np.iinfo(dtype).max]
