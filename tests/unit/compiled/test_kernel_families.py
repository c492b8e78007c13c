"""Functions whose body is chosen by the type of a state, in kernels and from Python."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from tokcore.compiled.compilation import kernel, kernel_without_allocation
from tokcore.compiled.kernel_families import kernel_family


class Plain(NamedTuple):
    numbers: np.ndarray


class Doubled(NamedTuple):
    numbers: np.ndarray


class Unknown(NamedTuple):
    numbers: np.ndarray


@kernel_family('state')
def value(place, state):
    """A number."""


@value.register(Plain)
@kernel_without_allocation
def _plain_value(place, state):
    return state.numbers[place]


@value.register(Doubled)
@kernel
def _doubled_value(place, state):
    both = np.empty(2, np.int64)
    both[:] = state.numbers[place]
    return both.sum()


@kernel
def total(state):
    found = 0
    for place in range(len(state.numbers)):
        found += value(place, state)
    return found


NUMBERS = np.arange(5)


def test_the_type_of_the_state_chooses_in_kernels():
    assert total(Plain(NUMBERS)) == 10
    assert total(Doubled(NUMBERS)) == 20


def test_the_type_of_the_state_chooses_from_python():
    assert value(3, Plain(NUMBERS)) == 3
    assert value(3, Doubled(NUMBERS)) == 6


def test_a_state_without_a_body_is_refused():
    with pytest.raises(TypeError, match='value has no body for .*Unknown'):
        value(3, Unknown(NUMBERS))
    with pytest.raises((TypeError, numba.TypingError), match='Unknown'):
        total(Unknown(NUMBERS))


def test_a_body_has_the_arguments_of_its_family():
    with pytest.raises(TypeError, match='_other has other arguments than value'):

        @value.register(Unknown)
        @kernel
        def _other(state, place):
            return 0
