"""Exponentials and logarithms of basic operations, next to those of the C library."""

import math

import numpy as np
import pytest

from tokcore.kernels.jit import IS_DISABLED, kernel
from tokcore.unigram.numbers import (
    add_logs,
    add_times_exp,
    digamma,
    exp,
    log,
    log1p,
    number_tables,
)

F32, F64 = np.float32, np.float64
MANY = 10_000 if IS_DISABLED else 300_000


@kernel
def apply_all(numbers, positive, powers, ours, library):
    for i in range(len(numbers)):
        ours[0, i], library[0, i] = exp(numbers[i], powers), math.exp(numbers[i])
        ours[1, i], library[1, i] = log1p(library[0, i]), math.log1p(library[0, i])
        ours[2, i], library[2, i] = log(positive[i]), math.log(positive[i])


def differences(many, seed):
    """For exp, log1p and log: the share of arguments that differ, and by how many units at most."""
    rng = np.random.default_rng(seed)
    # As the differences of logs in a model: single precision, the small ones most often.
    numbers = (-50 * rng.random(many).astype(F32) ** 2).astype(F64)
    positive = np.exp(rng.uniform(-300, 300, many))
    ours, library = np.empty((2, 3, many))
    apply_all(numbers, positive, number_tables().powers, ours, library)
    units = np.abs(ours.view(np.int64) - library.view(np.int64))
    return (units > 0).mean(axis=1), units.max(axis=1)


def test_functions_are_within_one_unit_of_the_library():
    shares, most = differences(MANY, seed=1)
    assert most.tolist() == [1, 1, 1]
    assert (shares < 0.12).all()


@pytest.mark.slow
def test_functions_are_within_one_unit_of_the_library_for_ten_million_arguments():
    shares, most = differences(10_000_000, seed=2)
    print('arguments with another last bit (exp, log1p, log):', shares.round(4).tolist())
    assert most.tolist() == [1, 1, 1]


def test_exponentials_of_any_number():
    powers = number_tables().powers
    assert [exp(x, powers) for x in (0.0, -709.0, -1e9)] == [1.0, 0.0, 0.0]
    for x in (-700.0, -1e-9, 1e-9, 0.3, 88.0, 700.0):
        assert exp(x, powers) == pytest.approx(math.exp(x), rel=3e-16)


def test_the_digamma_function():
    # Psi(1) is minus Euler's constant, and psi(x + 1) = psi(x) + 1 / x.
    assert digamma(1.0) == pytest.approx(-0.5772156649015329, abs=1e-9)
    for x in (0.5, 3.25, 7.0, 1e6):
        assert digamma(x + 1.0) == pytest.approx(digamma(x) + 1 / x, abs=1e-9)


@kernel
def add_by_tables(x, y, times, tables, sums, products):
    for i in range(len(x)):
        sums[i] = add_logs(x[i], y[i], tables)
        products[i] = add_times_exp(y[i] * y[i], times[i], x[i], tables)


@kernel
def add_by_functions(x, y, times, tables, sums, products):
    for i in range(len(x)):
        low, high = min(x[i], y[i]), max(x[i], y[i])
        if high > F32(low + F32(50)):
            sums[i] = high
        else:
            added = log1p(exp(F64(F32(low - high)), tables.powers))
            sums[i] = F32(F64(high) + added)
        added = F64(times[i]) * exp(F64(x[i]), tables.powers)
        products[i] = F32(F64(y[i] * y[i]) + added)


@pytest.mark.parametrize('scale', [1e-4, 1, 100, 1e4])
def test_sums_by_tables_are_those_by_functions(scale):
    rng = np.random.default_rng(3)
    x = (-rng.random(MANY) * scale).astype(F32)
    y = (x - rng.normal(0, 9, MANY) * rng.integers(0, 2, MANY)).astype(F32)
    times = rng.integers(1, 1 << 24, MANY).astype(F32)
    by_tables, by_functions = np.zeros((2, 2, MANY), F32)
    add_by_tables(x, y, times, number_tables(), *by_tables)
    add_by_functions(x, y, times, number_tables(), *by_functions)
    np.testing.assert_array_equal(by_tables.view(np.int32), by_functions.view(np.int32))
