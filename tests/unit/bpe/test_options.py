"""What may be asked of the learner of merges, and what a preset's file cannot hold."""

import pytest

from tokcore.bpe.options import PRESETS, BpeOptions, BpeRules
from tokcore.errors import InputError

ENDS = ('<|endoftext|>',)


@pytest.mark.parametrize(
    ('preset', 'expected'),
    [
        ('gpt2', BpeRules('smallest-ids', True, '', 1, special_tokens=ENDS, merges=5)),
        ('cl100k', BpeRules('smallest-ids', True, '', 1, special_tokens=ENDS, merges=5)),
        ('subword-nmt', BpeRules('largest-pair', False, '</w>', 2, merges=5)),
        ('textbook', BpeRules('first', False, '', 1, merges=5)),
    ],
)
def test_a_preset_sets_all(preset, expected):
    assert BpeOptions(merges=5).rules(preset) == expected


@pytest.mark.parametrize('preset', PRESETS)
def test_what_every_file_can_hold_takes_the_place_of_the_presets(preset):
    asked = {'min_count': 9, 'max_piece_length': 4}
    rules = BpeOptions(vocab_size=300, **asked).rules(preset)
    assert {name: getattr(rules, name) for name in asked} == asked
    assert (rules.vocab_size, rules.merges) == (300, None)


def test_what_one_file_can_hold():
    asked = BpeOptions(merges=5, special_tokens=('<pad>', '</s>'))
    assert asked.rules('gpt2').special_tokens == asked.first_entries == ('<pad>', '</s>')
    assert BpeOptions(merges=5).first_entries is None
    assert BpeOptions(merges=5, extend='old.json').rules('gpt2').special_tokens == ()
    without = BpeOptions(merges=5, special_tokens=())
    assert without.rules('gpt2').special_tokens == without.first_entries == ()
    assert BpeOptions(merges=5, limit_alphabet=80).rules('textbook').limit_alphabet == 80
    assert BpeOptions(merges=5, total_symbols=True).rules('subword-nmt').total_symbols


@pytest.mark.parametrize(
    ('preset', 'asked', 'named'),
    [
        ('gpt2', {'limit_alphabet': 300}, '--limit-alphabet'),
        ('cl100k', {'total_symbols': True}, '--total-symbols'),
        ('subword-nmt', {'limit_alphabet': 300}, '--limit-alphabet'),
        ('subword-nmt', {'special_tokens': ('<pad>',)}, '--special-tokens'),
        ('textbook', {'special_tokens': ('<pad>',)}, '--special-tokens'),
        ('textbook', {'special_tokens': ()}, '--special-tokens'),
        ('textbook', {'total_symbols': True}, '--total-symbols'),
    ],
)
def test_what_its_file_cannot_hold_is_refused_by_name(preset, asked, named):
    with pytest.raises(InputError, match=f'^{named} cannot go with --preset {preset}: '):
        BpeOptions(merges=5, **asked).rules(preset)


@pytest.mark.parametrize(
    'asked',
    [
        {},
        {'merges': 5, 'vocab_size': 300},
        {'vocab_size': 300, 'total_symbols': True},
        {'merges': 5, 'extend': 'old.json', 'special_tokens': ()},
        {'shrink': 'old.json', 'special_tokens': ()},
    ],
)
def test_options_that_do_not_go_together(asked):
    with pytest.raises(InputError):
        BpeOptions(**asked)


def test_names_of_files_have_the_size_or_the_merges():
    assert BpeOptions(vocab_size=300).size_label == '300'
    assert BpeOptions(merges=5).size_label == 'merges-5'
