"""Bit masks, atomic operations, and kernels that are not compiled and give the same."""

import concurrent.futures
import os
import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokcore.kernels import simd
from tokcore.kernels.jit import kernel_without_allocation, read_only
from tokcore.kernels.simd import (
    exchange_if,
    load_acquired,
    store_pair,
    store_released,
)

USE_ALL = """
import hashlib, random
from tokcore import schemes, warm_up
from tokcore.corpus.corpus import Block, BlockText, CorpusFile, Split
from tokcore.corpus.declarations import PlainText
from tokcore.counts.tables import BlockCounter
from tokcore.records.examples import Feature, FeatureEncoder, encode_block
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.text_encoder import SubwordTextEncoder

warm_up.compile_kernels(schemes.find_scheme())
warm_up.compile_learner_kernels()
dice = random.Random(5)
words = ['the', 'then', 'there', '2024', '----------', 'Ärger', '語彙', '👍', 'snake_case', '\\\\']
text = ''.join(
    ' '.join(dice.choices(words, k=dice.randint(0, 9))) + dice.choice(['\\n', '\\r\\n', ' \\n'])
    for _ in range(150)
).encode()
scheme = schemes.find_scheme()
splits = (Split('train', PlainText(), ((CorpusFile('text', 'text', len(text), False),),)),)
block = Block('train', PlainText(), 0, (BlockText(0, text),))
counter = BlockCounter(((0,),), scheme.normalizer, scheme.pre_tokenizer)
counter.add(block, splits)
[table] = counter.finish()
print(sorted(table.items()))
for longest in (200, 4):
    subtokens = MemoryLearner(table, max_subtoken_length=longest).build(3)[:]
    print(subtokens)
vocabulary = SubwordTextEncoder(subtokens)
feature = FeatureEncoder(
    Feature('targets', 0), scheme.encoder(vocabulary), scheme.template(vocabulary)
)
rows = encode_block(block, (feature,), 0, splits, scheme.normalizer).rows
print(hashlib.sha256(rows.records.tobytes()).hexdigest(), rows.keys.tolist())
"""


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


@kernel_without_allocation
def store(numbers, place, word):
    store_pair(numbers, place, word)


@given(st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_a_word_is_two_numbers(word, place):
    numbers = np.arange(5, dtype=np.int32)
    store(numbers, np.uint64(place), np.uint64(word))
    expected = bytearray(np.arange(5, dtype='<i4').tobytes())
    expected[4 * place : 4 * place + 8] = word.to_bytes(8, 'little')
    assert numbers.tobytes() == bytes(expected)


def printed(**environment):
    ended = subprocess.run(
        [sys.executable, '-W', 'ignore::RuntimeWarning', '-c', USE_ALL],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_plain_forms_compute_the_same_as_compiled_ones(capsys):
    plain = printed(NUMBA_DISABLE_JIT='1')
    assert len(plain.splitlines()) == 4
    exec(USE_ALL, {})
    assert plain == capsys.readouterr().out


@kernel_without_allocation
def masks(data, place, other, lowest):
    return (
        simd.byte_range_mask(data, place, 0x30, 0x39),
        simd.at_least_mask(data, place, lowest),
        simd.mismatch_mask(data, place, data, other),
        simd.load_word(data, place),
    )


@given(st.binary(min_size=64, max_size=90), st.data())
def test_intrinsics_on_chunks(data, draw):
    array = read_only(np.frombuffer(data, np.uint8))
    place, other = (np.uint64(draw.draw(st.integers(0, len(data) - 64))) for _ in range(2))
    lowest = np.uint64(draw.draw(st.integers(0, 255)))
    chunk, another = data[place:][:64], data[other:][:32]
    assert masks(array, place, other, lowest) == (
        sum(1 << i for i, byte in enumerate(chunk) if 0x30 <= byte <= 0x39),
        sum(1 << i for i, byte in enumerate(chunk) if byte >= lowest),
        sum(1 << i for i, (one, two) in enumerate(zip(chunk, another)) if one != two),
        int.from_bytes(chunk[:8], 'little'),
    )


@kernel_without_allocation
def bits(word):
    return simd.trailing_zeros(word), simd.popcount(word)


@given(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1 << 63, 2**64 - 1]))
def test_intrinsics_on_words(word):
    digits = f'{word:064b}'
    assert bits(np.uint64(word)) == (64 - len(digits.rstrip('0')), digits.count('1'))
