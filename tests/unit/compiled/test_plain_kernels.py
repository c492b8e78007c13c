"""Kernels that are not compiled: for debuggers and coverage, and with the same results."""

import os
import subprocess
import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.compiled import byte_masks, wide_loads
from tokcore.compiled.compilation import kernel_without_allocation, read_only

USE_ALL = """
import hashlib, random
from tokcore import learner_warm_up, schemes, warm_up
from tokcore.corpus.dataset import Block, BlockText, CorpusFile, Split
from tokcore.corpus.formats.lines import Lines
from tokcore.counts.block_counting import BlockCounter
from tokcore.records.example_encoding import Feature, FeatureEncoder, encode_block
from tokcore.subword.learner import MemoryLearner
from tokcore.subword.text_encoder import SubwordTextEncoder

warm_up.compile_kernels(schemes.find_scheme())
learner_warm_up.compile_learner_kernels()
dice = random.Random(5)
words = ['the', 'then', 'there', '2024', '----------', 'Ärger', '語彙', '👍', 'snake_case', '\\\\']
text = ''.join(
    ' '.join(dice.choices(words, k=dice.randint(0, 9))) + dice.choice(['\\n', '\\r\\n', ' \\n'])
    for _ in range(150)
).encode()
scheme = schemes.find_scheme()
splits = (Split('train', Lines(), ((CorpusFile('text', 'text', len(text), False),),)),)
block = Block('train', Lines(), 0, (BlockText(0, text),))
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


def printed(**environment):
    ended = subprocess.run(
        [sys.executable, '-W', 'ignore::RuntimeWarning', '-c', USE_ALL],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_all_of_them_give_what_the_compiled_ones_give():
    plain = printed(NUMBA_DISABLE_JIT='1')
    assert len(plain.splitlines()) == 4
    assert plain == printed(NUMBA_DISABLE_JIT='0')


@kernel_without_allocation
def masks(data, place, other):
    return (
        byte_masks.byte_range_mask(data, place, 0x30, 0x39),
        wide_loads.mismatch_mask(data, place, data, other),
        wide_loads.load_word(data, place),
    )


@settings(deadline=None)
@given(st.binary(min_size=64, max_size=90), st.data())
def test_each_of_a_chunk(data, draw):
    array = read_only(np.frombuffer(data, np.uint8))
    place, other = (np.uint64(draw.draw(st.integers(0, len(data) - 64))) for _ in range(2))
    assert masks(array, place, other) == (
        byte_masks._byte_range_mask(array, place, 0x30, 0x39),
        wide_loads._mismatch_mask(array, place, array, other),
        wide_loads._load_word(array, place),
    )


@kernel_without_allocation
def bits(word):
    return byte_masks.trailing_zeros(word), byte_masks.popcount(word)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1 << 63, 2**64 - 1]))
def test_each_of_a_word(word):
    word = np.uint64(word)
    assert bits(word) == (byte_masks._trailing_zeros(word), byte_masks._popcount(word))
