"""What is asked for as a sample: budgets and shares, each with one spelling."""

import argparse

import pytest

from tokcore.counts.vocab_sample import LineBudget, UniformShare, sample_from_option, vocab_sample


@pytest.mark.parametrize(
    ('typed', 'size'),
    [
        # What Tensor2Tensor's problems have as file_byte_budget=1e8 and 1e6.
        ('t2t:100MB', 100_000_000),
        ('t2t:1e8', 100_000_000),
        ('t2t:1e6', 1_000_000),
        ('t2t:64kb', 64_000),
        ('t2t:100MiB', 104_857_600),
        ('t2t:3 GB', 3_000_000_000),
        ('t2t:12B', 12),
        ('t2t:1', 1),
    ],
)
def test_a_budget_is_a_number_of_bytes_and_its_mb_are_millions(typed, size):
    recorded = vocab_sample(typed)
    assert recorded == f't2t:{size}'
    assert sample_from_option(recorded) == LineBudget(size)
    assert vocab_sample(recorded) == recorded


@pytest.mark.parametrize(
    ('typed', 'share', 'threshold'),
    [
        ('uniform:0.1', '0.1', (1 << 64) // 10),
        ('uniform:.50', '0.5', 1 << 63),
        ('uniform:0.000000000000000001', '0.000000000000000001', 18),
    ],
)
def test_a_share_is_a_decimal_and_exact(typed, share, threshold):
    recorded = vocab_sample(typed)
    assert recorded == f'uniform:{share}'
    assert sample_from_option(recorded) == UniformShare(share)
    assert sample_from_option(recorded).threshold == threshold


@pytest.mark.parametrize(
    'typed',
    [
        '', '100MB', 't2t:', 't2t:0', 't2t:1.5MB', 't2t:-1', 't2t:1e99', 't2t:9999999TB', 't2t:5X',
        't2t:100M', 'uniform:0', 'uniform:0.0', 'uniform:1', 'uniform:1.5', 'uniform:10%', 'uniform:',
        'uniform:0.1 0', 'random:0.1', 't2t:１００',
    ],
)  # fmt: skip
def test_nothing_else_is_a_sample(typed):
    with pytest.raises(argparse.ArgumentTypeError):
        vocab_sample(typed)
