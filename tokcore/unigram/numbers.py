"""Exponentials and logarithms of basic operations, so that a model has the same bits on every machine.

The C library's functions differ between systems in the last bit. These differ from glibc's by one unit in
the last place at most. `add_logs` and `add_times_exp` round to single precision; nearly always a few terms
from a table are enough to know the result, and the rest is computed by the functions.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from tokcore.kernels.jit import inlined_kernel, kernel_without_allocation, read_only

_f32, _f64 = np.float32, np.float64

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""The sum is log(2); the first has 32 bits, so that its product with an exponent is exact."""

_LOG2_E = 1.44269504088896338700
_SQRT_2, _SQRT_HALF = 1.4142135623730951, 0.7071067811865476
_SMALLEST_POWER = -1074

_EXP_TERMS = tuple(1.0 / math.factorial(n) for n in range(13, 1, -1))
_LOG_TERMS = tuple(1.0 / n for n in range(21, 1, -2))

_STEPS = 16
"""Entries of the table of `add_logs` for a unit of the difference."""

_FARTHEST = 50
"""Logs that differ by more are not added: the larger one is the result."""

_FRACTIONS = 32
"""Fractions of an exponent of two in the table of `add_times_exp`."""

_LOG_ERROR, _EXP_ERROR = 4e-12, 4e-12
"""More than the terms of the tables lack: of a log, and of an exponential as a part of it."""


class Tables(NamedTuple):
    """The numbers that the kernels look up."""

    powers: np.ndarray  # float64: powers of two from 2^-1074 to 2^1023
    logs: np.ndarray  # float64[entries, 6]: terms of log(1 + exp(-x)), by powers of the distance
    fractions: np.ndarray  # float64[32]: 2^(i / 32)


@functools.cache
def number_tables() -> Tables:
    """Returns the tables, read-only."""
    powers = np.array([math.ldexp(1.0, k) for k in range(_SMALLEST_POWER, 1024)])
    logs = np.zeros((_FARTHEST * _STEPS + 2, 6))
    for i in range(len(logs)):
        e = exp(-i / _STEPS, powers)
        s = e / (1.0 + e)
        t = s * (1.0 - s)
        logs[i, :3] = log1p(e), s, t / 2
        logs[i, 3] = t * (1 - 2 * s) / 6
        logs[i, 4] = t * (1 - 6 * t) / 24
        logs[i, 5] = t * (1 - 2 * s) * (1 - 12 * t) / 120
    fractions = np.array([exp(i / _FRACTIONS * (_LN2_HIGH + _LN2_LOW), powers) for i in range(32)])
    return Tables(read_only(powers), read_only(logs), read_only(fractions))


@kernel_without_allocation
def exp(x, powers):
    """e^x by a series around the nearest multiple of log(2); 0 below the normal numbers."""
    if x < -708.0:
        return 0.0
    k = math.floor(x * _LOG2_E + 0.5)
    near = x - k * _LN2_HIGH
    low = k * _LN2_LOW
    r = near - low
    rest = (near - r) - low
    p = 0.0
    for term in _EXP_TERMS:
        p = p * r + term
    return (1.0 + (r + (r * r * p + rest))) * powers[np.int64(k) - _SMALLEST_POWER]


@kernel_without_allocation
def log(x):
    """The natural logarithm of a positive number."""
    mantissa, k = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa *= 2.0
        k -= 1
    return _log_around_one(mantissa - 1.0, k, 0.0)


@kernel_without_allocation
def log1p(y):
    """log(1 + y) of 0 <= y <= 1."""
    if y < _SQRT_2 - 1.0:
        return _log_around_one(y, 0, 0.0)
    x = 1.0 + y
    return _log_around_one(x * 0.5 - 1.0, 1, (y - (x - 1.0)) / x)


@kernel_without_allocation
def _log_around_one(f, k, rest):
    """k * log(2) + log(1 + f) + rest, 1 + f from sqrt(1/2) to sqrt(2), by the series of 2 artanh(f / (2 + f))."""
    s = f / (2.0 + f)
    z = s * s
    p = 0.0
    for term in _LOG_TERMS:
        p = p * z + term
    # The first term of the series is 2s = f - s * f; f - f * f / 2 is rounded less.
    half = 0.5 * f * f
    return k * _LN2_HIGH - ((half - (s * (half + 2.0 * z * p) + (k * _LN2_LOW + rest))) - f)


@kernel_without_allocation
def digamma(x):
    """The digamma function of a positive number, in the terms of SentencePiece's trainer."""
    result = 0.0
    while x < 7.0:
        result -= 1.0 / x
        x += 1.0
    x -= 0.5
    xx = 1.0 / x
    xx2 = xx * xx
    xx4 = xx2 * xx2
    return result + (
        log(x)
        + (1.0 / 24.0) * xx2
        - (7.0 / 960.0) * xx4
        + (31.0 / 8064.0) * xx4 * xx2
        - (127.0 / 30720.0) * xx4 * xx4
    )


@inlined_kernel
def add_logs(x, y, tables):
    """log(exp(x) + exp(y)) of two float32, rounded as SentencePiece's trainer does."""
    low, high = min(x, y), max(x, y)
    if high > _f32(low + _f32(_FARTHEST)):
        return high
    difference = _f64(_f32(high - low))
    entry = np.int64(difference * _STEPS + 0.5)
    # The table is of log(1 + exp(-x)): the distance counts downwards.
    r = entry * (1.0 / _STEPS) - difference
    logs = tables.logs
    entry = np.uint64(entry)
    r2 = r * r
    added = (logs[entry, 0] + logs[entry, 1] * r) + r2 * (
        (logs[entry, 2] + logs[entry, 3] * r) + r2 * (logs[entry, 4] + logs[entry, 5] * r)
    )
    result = _f32(_f64(high) + (added - _LOG_ERROR))
    if result != _f32(_f64(high) + (added + _LOG_ERROR)):
        result = _f32(_f64(high) + log1p(exp(-difference, tables.powers)))
    return result


@inlined_kernel
def add_times_exp(total, times, x, tables):
    """total + times * exp(x) of float32 in double precision, rounded once; `times` is not negative."""
    if x < _f32(-700.0) or x > _f32(700.0):
        return _f32(_f64(total) + _f64(times) * exp(_f64(x), tables.powers))
    n = math.floor(_f64(x) * (_FRACTIONS * _LOG2_E) + 0.5)
    r = _f64(x) - n * (_LN2_HIGH / _FRACTIONS) - n * (_LN2_LOW / _FRACTIONS)
    k = np.int64(n)
    value = tables.fractions[np.uint64(k & (_FRACTIONS - 1))]
    value *= tables.powers[np.uint64((k >> 5) - _SMALLEST_POWER)]
    value *= 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0))))
    added = _f64(times) * value
    result = _f32(_f64(total) + added * (1.0 - _EXP_ERROR))
    if result != _f32(_f64(total) + added * (1.0 + _EXP_ERROR)):
        result = _f32(_f64(total) + _f64(times) * exp(_f64(x), tables.powers))
    return result
